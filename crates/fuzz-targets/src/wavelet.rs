//! Wavelet video: raw video, files of codestreams, and packets that frames are put together from.

use bytes::Bytes;
use outflow_wavelet::rtp::{Assembler, Timeline};
use outflow_wavelet::y4m::{self as raw, Rate};
use outflow_wavelet::{Codestream, codestream, openjpeg};

use crate::packets::packets;

/// Raw video: what is read is what is written, up to the first mistake.
pub(crate) fn y4m(data: &[u8]) {
    let Ok(reader) = raw::Reader::new(data) else { return };
    let header = reader.header().clone();
    let mut again = format!("{header}\n").into_bytes();
    let mut count = 0;
    for picture in reader.map_while(Result::ok) {
        raw::write_picture(&mut again, &picture).expect("memory");
        count += 1;
    }
    let reader = raw::Reader::new(&again[..]).expect("it was just written");
    assert_eq!(*reader.header(), header);
    assert_eq!(reader.inspect(|picture| assert!(picture.is_ok(), "it was just written")).count(), count);
}

/// Codestreams one behind the other: those before the first mistake are the bytes that were there, and
/// what is left of each with fewer layers is one again.
pub(crate) fn wavelet_file(data: &[u8]) {
    let mut again = Vec::new();
    for frame in codestream::Reader::new(data).map_while(Result::ok) {
        again.extend(frame.to_bytes());
        for layers in 1..=frame.layers() {
            check(&frame, layers);
        }
    }
    assert!(data.starts_with(&again));
}

/// Packets: each frame that is told is a codestream.
pub(crate) fn wavelet_packets(data: &[u8]) {
    let (mut assembler, mut told) = (Assembler::default(), Vec::new());
    packets(data)
        .for_each(|packet| assembler.handle(Bytes::copy_from_slice(packet), |frame| told.push(frame)));
    assembler.flush(|frame| told.push(frame));
    let counts = assembler.counts();
    assert_eq!(counts.frames + counts.lost, told.len() as u64);
    let mut timeline = Timeline::new(Rate::DEFAULT);
    for frame in told {
        timeline.frame(frame.timestamp);
        if let Some(frame) = frame.codestream {
            check(&frame, frame.layers());
        }
    }
}

fn check(frame: &Codestream, layers: usize) {
    let mut prefix = frame.clone();
    prefix.truncate(layers);
    assert_eq!((prefix.layers(), prefix.to_bytes().len()), (layers, frame.length(layers)));
    assert_eq!(Codestream::new(prefix.to_bytes()), Ok(prefix));
    // Whether it can be decoded here; what OpenJPEG makes of it is not asked.
    let _fits = openjpeg::shape(frame.header());
}
