//! Images: what stands in front of their pixels, and codestreams that are cut down.

use outflow_graph::elements::ppm_bytes::PpmBytes;
use outflow_graph::{Item, Tally};
use outflow_media::image::{Rect, ppm as netpbm};
use outflow_media::jpeg2000::{Header, Selection, select};
use outflow_media::{Codec, Track};
use outflow_rtp::PlainHeader;
use outflow_rtp::payload::raw_video::RawVideo;
use outflow_rtp::payload::{RtpReader, jpeg2000 as payload};

/// The header of a PPM or PGM.
pub(crate) fn ppm(data: &[u8]) {
    let Ok(Some(header)) = netpbm::Header::parse(data) else { return };
    assert!(header.bytes <= data.len());
    let mut again = Vec::new();
    netpbm::emit(header.shape, &mut again).expect("it was read from such a format");
    let read = netpbm::Header::parse(&again).expect("it was just written").expect("all of it");
    assert_eq!(read.shape, header.shape);
}

/// A row of images, as a program writes it; the first byte tells how many bytes come at once. Wherever it
/// is cut, the same comes out of it: whole images.
pub(crate) fn ppm_bytes(data: &[u8]) {
    let Some((&step, row)) = data.split_first() else { return };
    let (whole, dropped) = images([row]);
    assert_eq!(images(row.chunks(1 + usize::from(step))), (whole.clone(), dropped));
    for image in &whole {
        let header = netpbm::Header::parse(image).expect("it was cut by it").expect("all of it");
        assert_eq!(header.bytes + header.shape.bytes(), image.len());
    }
    assert!(whole.iter().map(Vec::len).sum::<usize>() <= row.len());
}

/// The images of a row, and how many pieces were none.
fn images<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> (Vec<Vec<u8>>, u64) {
    let (mut bytes, mut out, mut tally) = (PpmBytes::default(), Vec::new(), Tally::default());
    chunks.into_iter().for_each(|chunk| bytes.push(chunk, &Item::empty(), &mut out, &mut tally));
    (out.iter().map(|item| item.packet.bytes.to_vec()).collect(), tally.drops.total())
}

/// The payload of a packet of raw video: its parts lie one behind the other, within it.
pub(crate) fn raw_video(data: &[u8]) {
    let Ok(raw) = RawVideo::new_checked(data) else { return };
    let end = raw.parts().fold(None, |before: Option<usize>, part| {
        assert!(before.is_none_or(|before| before == part.bytes.start));
        Some(part.bytes.end)
    });
    assert!(end.is_some_and(|end| end <= data.len()));
}

/// A selection, and the codestream that it is made of: what comes out is a codestream again, of which
/// everything can be selected.
pub(crate) fn jpeg2000(data: &[u8]) {
    let Some(([layers, halved, gray, corner], codestream)) = data.split_first_chunk() else { return };
    let at = usize::from(*corner);
    let selection = Selection {
        layers: (*layers > 0).then_some(u16::from(*layers)),
        halved: *halved,
        gray: *gray > 127,
        part: (at > 0).then_some(Rect { left: at, top: at, width: 2 * at, height: at }),
    };
    let mut out = b"before".to_vec();
    let Ok(header) = select(codestream, &selection, &mut out) else {
        assert_eq!(out, b"before");
        return;
    };
    let cut = &out[6..];
    let read = Header::parse(cut).expect("it was just written");
    assert_eq!((read.layers, &read.components), (header.layers, &header.components));
    let mut again = Vec::new();
    select(cut, &Selection::default(), &mut again).expect("it was just written");
    assert!(again == cut, "it changes when nothing is taken away");
}

/// The payload of a packet of JPEG 2000: what is read is what is written, but for what is reserved.
pub(crate) fn jpeg2000_payload(data: &[u8]) {
    let Ok((header, bytes)) = payload::Header::parse(data) else { return };
    let wire = header.emit();
    assert!(wire[..2] == data[..2] && wire[5..] == data[5..8] && bytes == &data[8..]);
    let again = [&wire[..], bytes].concat();
    assert_eq!(payload::Header::parse(&again), Ok((header, bytes)));
    let rtp = PlainHeader { marker: true, payload_type: 96, sequence: 0, timestamp: 0, ssrc: 0 };
    let track = Track { codec: Codec::Jpeg2000, ..Track::mp2t() };
    let tag = RtpReader::new(0, &track).read(&[&rtp.emit()[..], data].concat()).expect("it was read");
    assert!(tag.layer < tag.layers && tag.layers < 128);
}
