//! JPEG 2000 in RTP.

use outflow_media::jpeg2000::{Selection, select, select_pieces};
use outflow_rtp::payload::jpeg2000 as j2k;
use outflow_rtp::payload::jpeg2000::MainHeader;

use super::*;

fn jpeg2000(fmtp: &str) -> Format {
    let (codec, encoding) = (Codec::Jpeg2000, "jpeg2000".to_owned());
    Format::Rtp(vec![Track { codec, encoding, fmtp: fmtp.to_owned(), payload_type: 96, ..Track::mp2t() }])
}

/// A codestream with colours, resolutions and tiles, and its size.
fn codestream() -> (Vec<u8>, usize, usize) {
    let seeds = [
        &include_bytes!("../../../../../../fuzz/seeds/jpeg2000/1")[..],
        include_bytes!("../../../../../../fuzz/seeds/jpeg2000/2"),
        include_bytes!("../../../../../../fuzz/seeds/jpeg2000/3"),
        include_bytes!("../../../../../../fuzz/seeds/jpeg2000/4"),
        include_bytes!("../../../../../../fuzz/seeds/jpeg2000/5"),
    ];
    let rich = seeds.into_iter().map(|seed| &seed[4..]).find_map(|codestream| {
        let header = outflow_media::jpeg2000::Header::parse(codestream).unwrap();
        let (width, height) = Selection::default().size(&header);
        let corner = Some(Rect { left: 0, top: 0, width: 1, height: 1 });
        let size = Selection { part: corner, halved: 1, ..Selection::default() }.size(&header);
        let is_rich = header.components.len() == 3 && size.0 * 2 < width && header.components[0].levels > 0;
        is_rich.then(|| (codestream.to_vec(), width as usize, height as usize))
    });
    rich.expect("there is one")
}

fn j2k_payloads(codestream: &[u8], max: usize) -> Vec<Vec<u8>> {
    let (mut again, mut pieces, mut all) = (Vec::new(), Vec::new(), Vec::new());
    select_pieces(codestream, &Selection::default(), &mut again, |piece| pieces.push(piece)).unwrap();
    j2k::packets(&pieces, again.len(), max, j2k::Priorities::None, |header, range, _| {
        all.push([&header.emit()[..], &again[range]].concat());
    })
    .unwrap();
    all
}

/// The codestreams in packets, by timestamp, and the priorities of those.
fn codestreams(packets: &[Parsed]) -> (Vec<(u32, Vec<u8>)>, Vec<u8>) {
    let (mut streams, mut priorities): (Vec<(u32, Vec<u8>)>, _) = (Vec::new(), Vec::new());
    for (index, parsed) in packets.iter().enumerate() {
        let packet = whole(parsed);
        let rtp = RtpHeader::new_checked(&packet).unwrap();
        let (header, bytes) = j2k::Header::parse(rtp.payload()).unwrap();
        if header.offset == 0 {
            streams.push((rtp.timestamp(), Vec::new()));
            assert_ne!(header.main_header, MainHeader::None);
        }
        let (timestamp, stream) = streams.last_mut().unwrap();
        assert_eq!((*timestamp, stream.len()), (rtp.timestamp(), header.offset as usize));
        stream.extend_from_slice(bytes);
        assert_eq!(rtp.marker(), stream.ends_with(&[0xff, 0xd9]), "{index}");
        assert_eq!((parsed.packet.tag.first, parsed.packet.tag.last), (header.offset == 0, rtp.marker()));
        priorities.push(header.priority);
    }
    (streams, priorities)
}

#[test]
fn codestreams_are_cut_down() {
    let (whole, width, height) = codestream();
    let corner = Rect { left: 0, top: 0, width: width / 3, height: height / 3 };
    let half = Setting::Dimensions(width.div_ceil(2), height.div_ceil(2));
    let none = Settings::default;
    let all = Selection::default();
    let part = none().with("part", Setting::Part(corner));
    let cases = [
        ("gray", none(), Selection { gray: true, ..all }),
        ("crop", part, Selection { part: Some(corner), ..all }),
        ("shrink", none().with("factor", Setting::Whole(2)), Selection { halved: 1, ..all }),
        ("view", none().with("size", half), Selection { halved: 1, ..all }),
    ];
    for (kind, settings, selection) in cases {
        let mut expected = Vec::new();
        select(&whole, &selection, &mut expected).unwrap();
        assert!(expected.len() < whole.len(), "{kind} takes nothing away");
        let format = jpeg2000("sampling=RGB; width=99; height=99; mhc=1; pt=layer");
        let mut bench = Bench::new(kind, settings, &format);
        let given = match kind {
            "gray" => jpeg2000("sampling=GRAYSCALE; width=99; height=99; pt=layer"),
            _ => jpeg2000("sampling=RGB; pt=layer"),
        };
        assert_eq!(bench.format(), Ok(given));
        let mut payloads = j2k_payloads(&whole, 100);
        payloads.swap(2, 3);
        bench.enter_frame(7, &payloads, &[]);
        bench.enter_frame(8, &payloads, &[]);
        let out = bench.run();
        let (streams, priorities) = codestreams(&out);
        assert!(streams == [(7, expected.clone()), (8, expected)], "{kind}");
        assert!(priorities[0] == 0 && priorities.iter().all(|priority| *priority < 10), "{priorities:?}");
        assert_eq!(bench.drops(DropReason::Incomplete), 0);
    }
}

#[test]
fn of_a_codestream_with_a_gap_its_beginning_goes_on() {
    let (whole, ..) = codestream();
    let payloads = j2k_payloads(&whole, 100);
    let gap = payloads.len() - 4;
    let mut bench = Bench::new("gray", Settings::default(), &jpeg2000(""));
    bench.enter_frame(7, &payloads, &[gap]);
    bench.enter_frame(8, &payloads, &[0]);
    bench.enter_frame(9, &payloads, &[]);
    let before: Vec<u8> = payloads[..gap].iter().flat_map(|payload| payload[8..].to_vec()).collect();
    let (mut expected, mut all) = (Vec::new(), Vec::new());
    let gray = Selection { gray: true, ..Selection::default() };
    select(&before, &gray, &mut expected).unwrap();
    select(&whole, &gray, &mut all).unwrap();
    let (streams, _) = codestreams(&bench.run());
    // Without its main header, nothing of the second can be read.
    assert!(streams == [(7, expected), (9, all)]);
    assert_eq!(bench.drops(DropReason::Incomplete), 3 + payloads.len() as u64 - 1);
}
