//! Viewers of pictures in layers, whose packets say what their frames need.

use outflow_media::importance::{Class, Importance};
use outflow_packet::DropReason;

use super::*;

/// The number of the descriptor in the stream, and at the viewer.
const NUMBERS: (u8, u8) = (5, 9);

const REFERENCE: (Class, u8) = (Class::Reference, 0);

fn scene() -> Scene {
    Scene::ready_with(Elements { descriptor: Some(NUMBERS), ..Elements::default() })
}

/// The descriptor of a frame, with a structure or without.
fn value(frame: u8, has_structure: bool) -> Vec<u8> {
    let all = [0xc3, 0, frame, 0x80, 7];
    all[..if has_structure { 5 } else { 3 }].to_vec()
}

/// A packet of a frame that came to the relay this number of ms ago, and whether it is the last of its picture for those that
/// take nothing above its layer.
fn gives(
    scene: &mut Scene,
    (sequence, value): (u16, &[u8]),
    (ms, (class, layer), is_lower): (u64, (Class, u8), bool),
) -> Result<(), Undelivered> {
    let words = (1 + value.len()).div_ceil(4);
    let mut packet = vec![0x90, 96, 0, 0, 0, 0, sequence as u8, 0, 0, 0, 0, 0, 0xbe, 0xde, 0, words as u8];
    packet.push(NUMBERS.0 << 4 | (value.len() - 1) as u8);
    packet.extend_from_slice(value);
    packet.resize(16 + 4 * words, 0);
    packet.push(sequence as u8);
    outflow_rtp::set_sequence(&mut packet, sequence);
    let arrived = Time::from_nanos(scene.now.as_nanos() - Duration::from_millis(ms).as_nanos() as u64);
    let rank = Importance::of(class, layer).rank();
    let worth = Worth { rank, arrived, is_left: false };
    let ends = is_lower.then_some(layer);
    let head = PacketHead { track: 1, worth, bytes: packet.len(), ends, is_preamble: false };
    let packet = Bytes::from(packet);
    let given = scene.recent.add(scene.now, packet.clone());
    scene.viewer.take(scene.now, &head, || (packet.clone(), given), None)
}

/// What the viewer was sent: descriptors, markers, the last byte.
fn got(scene: &mut Scene) -> Vec<(Vec<u8>, bool, u8)> {
    scene.settle();
    let (_, opener) = scene.srtp.as_mut().expect("it is ready");
    let sent = core::mem::take(&mut scene.sent).into_iter();
    let media = sent.filter(|datagram| !outflow_rtp::is_rtcp(datagram)).map(|mut datagram| {
        let length = opener.open(&mut datagram).expect("it is sealed");
        let packet = RtpHeader::new_checked(&datagram[..length]).expect("RTP");
        let said = packet.extension(NUMBERS.1).expect("a descriptor").to_vec();
        (said, packet.marker(), packet.payload().last().copied().unwrap_or(0))
    });
    media.collect()
}

#[test]
fn descriptors_go_on_once_more_and_in_another_process() {
    let mut scene = scene();
    let now = (0, REFERENCE, false);
    gives(&mut scene, (10, &value(200, true)), now).expect("there is room");
    gives(&mut scene, (11, &value(203, false)), now).expect("there is room");
    // Another rendition, whose frames have lower numbers.
    gives(&mut scene, (12, &value(30, true)), now).expect("there is room");
    let of = |frame, has_structure, last| (value(frame, has_structure), false, last);
    assert_eq!(got(&mut scene), [of(200, true, 10), of(203, false, 11), of(204, true, 12)]);
    scene.say(rtcp::lost(7, OWN, &[257, 258], "x"));
    assert_eq!(got(&mut scene), [of(203, false, 11), of(204, true, 12)]);

    let saved = scene.viewer.save().expect("it has come");
    let SavedViewer { session, tracks, way, token, .. } = minicbor::decode(&saved).expect("it is read");
    let session = Session::resume([8; 32], session.read().expect("it is read"));
    let told = (scene.viewer.news.clone(), Arc::clone(&scene.viewer.gateways), Restarts::default());
    scene.viewer = Viewer::resume(5, session, told, (tracks, token.parse().expect("a token")), (way, None));
    scene.settle();
    gives(&mut scene, (13, &value(31, false)), now).expect("there is room");
    assert_eq!(got(&mut scene), [of(205, false, 13)]);
}

#[test]
fn what_all_layers_need_is_sent_once_more_first() {
    let mut scene = scene();
    assert!(scene.viewer.thinning.hear(1_000, 9_000, true));
    for (number, layer) in [(1, 0), (2, 4), (3, 3), (4, 0)] {
        let frame = value(number, false);
        gives(&mut scene, (number.into(), &frame), (0, (Class::Reference, layer), false)).expect("room");
    }
    assert_eq!(got(&mut scene).len(), 4);
    scene.say(rtcp::lost(7, OWN, &[256, 257, 258, 259], "x"));
    let lasts: Vec<u8> = got(&mut scene).into_iter().map(|(_, _, last)| last).collect();
    assert_eq!(lasts, [1, 4, 2, 3]);
}

#[test]
fn a_picture_ends_below_the_layers_that_are_left_out() {
    let mut scene = scene();
    assert!(scene.viewer.thinning.hear(1_000, 9_000, true));
    gives(&mut scene, (10, &value(1, false)), (0, REFERENCE, true)).expect("there is room");
    // A reference of the next temporal layer comes too late: all above it is left out until the next key frame.
    let late = gives(&mut scene, (11, &value(2, false)), (450, (Class::Reference, 1), true));
    assert_eq!(late, Err(Undelivered::Dropped(DropReason::LessValuable)));
    gives(&mut scene, (12, &value(3, false)), (0, REFERENCE, true)).expect("there is room");
    let larger = gives(&mut scene, (13, &value(4, false)), (0, (Class::Reference, 3), false));
    assert_eq!(larger, Err(Undelivered::Dropped(DropReason::DependsOnDropped)));
    let of = |frame, marker, last| (value(frame, false), marker, last);
    assert_eq!(got(&mut scene), [of(1, false, 10), of(3, true, 12)]);
    scene.say(rtcp::lost(7, OWN, &[257], "x"));
    assert_eq!(got(&mut scene), [of(3, true, 12)], "once more");
}
