//! Packets whose format says their layer, each as its RFC lays it out, go where that layer is wanted.

use outflow_rtp::dependency::{Descriptor, Frame, Indication, Structure};
use outflow_rtp::{PlainHeader, RtpHeader, sdp};

use super::*;
use crate::gmc::{Sent, Ways};
use crate::layers::Level;

const PORT: u16 = 5004;
const PAYLOAD_TYPE: u8 = 96;
/// The identifier of the header extension in use.
const EXTENSION: u8 = 5;
const DEPENDENCY: &str =
    "https://aomediacodec.github.io/av1-rtp-spec/#dependency-descriptor-rtp-header-extension";
const FRAME_MARKING: &str = "urn:ietf:params:rtp-hdrext:framemarking";

/// What a session description says of a format.
fn described(format: &str, more: &str) -> Described {
    let text = format!(
        "v=0\ns=x\nc=IN IP4 239.1.1.1/8\nm=video {PORT} RTP/AVP {PAYLOAD_TYPE}\n\
         a=rtpmap:{PAYLOAD_TYPE} {format}/90000\n{more}\n"
    );
    let mut described = Described::default();
    for media in sdp::parse(text.as_bytes()).expect("a description").media {
        described.add(media.port, media.track);
    }
    described
}

fn extension(name: &str) -> String {
    format!("a=extmap:{EXTENSION} {name}")
}

/// What stands behind the plain header of a packet, and of which picture it is.
struct Body {
    picture: u32,
    extension: Vec<u8>,
    payload: Vec<u8>,
}

fn body(picture: u32, payload: &[u8]) -> Body {
    Body { picture, extension: Vec::new(), payload: payload.to_vec() }
}

fn extended(picture: u32, extension: &[u8]) -> Body {
    Body { picture, extension: extension.to_vec(), payload: b"media".to_vec() }
}

/// The packet, with the marker if it is the last of its picture; its extension in the form of two bytes (RFC 8285,
/// section 4.3).
fn packet(sequence: u16, body: &Body, marker: bool) -> Vec<u8> {
    let timestamp = body.picture.wrapping_mul(3000);
    let header = PlainHeader { marker, payload_type: PAYLOAD_TYPE, sequence, timestamp, ssrc: 1 };
    let mut packet = header.emit().to_vec();
    if !body.extension.is_empty() {
        let mut elements = [&[EXTENSION, body.extension.len() as u8], &body.extension[..]].concat();
        elements.resize(elements.len().next_multiple_of(4), 0);
        packet[0] |= 0x10;
        packet.extend([0x10, 0, 0, (elements.len() / 4) as u8]);
        packet.extend(elements);
    }
    packet.extend(&body.payload);
    packet
}

fn packets(bodies: &[Body]) -> Vec<Vec<u8>> {
    let is_last = |at: usize| bodies.get(at + 1).is_none_or(|next| next.picture != bodies[at].picture);
    let of = |(at, body): (usize, &Body)| packet(at as u16, body, is_last(at));
    bodies.iter().enumerate().map(of).collect()
}

/// Layers as the reader tells them, and how many there are; 0 of 1 where a packet says nothing.
fn layers(described: &Described, packets: &[Vec<u8>]) -> Vec<(u8, u8)> {
    let mut reader = described.reader(PORT, PAYLOAD_TYPE).expect("it is described");
    let of = |packet: &Vec<u8>| reader.read(packet).map_or((0, 1), |mark| (mark.layer, mark.layers));
    packets.iter().map(of).collect()
}

/// Which of the packets go down a way of each level from the best on. Their numbers are without gap, and each picture
/// ends with the marker and has no other one, but for the first: that it has several packets may not be known.
fn down(described: Described, packets: &[Vec<u8>], levels: u8) -> Vec<Vec<usize>> {
    let mut ways = Ways::default();
    ways.describe(described.into());
    let level = |number| (u32::from(number), Level::new(number).expect("it is one"));
    ways.set((1..=levels).map(level), |_| false);
    let mut seen = vec![Vec::new(); usize::from(levels)];
    for (at, packet) in packets.iter().enumerate() {
        ways.judge(PORT, packet, |to, sent| seen[to as usize - 1].push((at, sent)));
    }
    for (number, seen) in (1..).zip(&seen) {
        let ends = |(at, sent): &(usize, Option<Sent>)| {
            let header = RtpHeader::new_checked(&packets[*at]).expect("RTP");
            (header.timestamp(), header.marker() || sent.is_some_and(|sent| sent.ends))
        };
        let sent = seen.iter().map(ends).collect::<Vec<_>>();
        for picture in sent.chunk_by(|one, other| one.0 == other.0).skip(1) {
            let expected = (1..=picture.len()).map(|count| count == picture.len());
            assert!(picture.iter().map(|(_, ends)| *ends).eq(expected), "level {number}: {sent:?}");
        }
        let sequences = seen.iter().filter_map(|(_, sent)| Some(sent.as_ref()?.sequence)).collect::<Vec<_>>();
        assert!(sequences.windows(2).all(|pair| pair[1] == pair[0] + 1), "level {number}: {sequences:?}");
    }
    seen.into_iter().map(|seen| seen.into_iter().map(|(at, _)| at).collect()).collect()
}

/// The reader tells these layers of the packets, of this many, and each level gets what is of its layers.
fn assert_layers(described: Described, bodies: &[Body], (expected, count): (&[u8], u8)) {
    let packets = packets(bodies);
    let told = expected.iter().map(|layer| (*layer, count)).collect::<Vec<_>>();
    assert_eq!(layers(&described, &packets), told);
    let levels = count + 1;
    for (level, seen) in (1..).zip(down(described, &packets, levels)) {
        // A level beyond the last is the base.
        let most = count.saturating_sub(level);
        let wanted = (0..expected.len()).filter(|at| expected[*at] <= most).collect::<Vec<_>>();
        assert_eq!(seen, wanted, "level {level} of {count}");
    }
}

/// Temporal layers of a group of four pictures, and how far back the picture is that each refers to.
const GROUP: [(u8, u16); 4] = [(0, 4), (2, 1), (1, 2), (2, 1)];

/// Three spatial layers, each of three temporal ones.
fn l3t3() -> Structure {
    let layers = || (0..3).flat_map(|spatial| (0..3).map(move |temporal| (spatial, temporal)));
    let of = |own: (u8, u8), target: (u8, u8)| match own.0 <= target.0 && own.1 <= target.1 {
        true => Indication::Required,
        false => Indication::NotPresent,
    };
    let template = |own: (u8, u8)| Frame {
        spatial: own.0,
        temporal: own.1,
        indications: layers().map(|target| of(own, target)).collect(),
        ..Frame::default()
    };
    Structure {
        first_template: 62,
        targets: 9,
        protected_by: Default::default(),
        chains: 0,
        templates: layers().map(template).collect(),
        resolutions: Default::default(),
    }
}

/// The value of a dependency descriptor. The structure goes with key pictures.
fn dependency(structure: &Structure, picture: u16, spatial: u8) -> Vec<u8> {
    let (temporal, back) = GROUP[usize::from(picture % 4)];
    let is_key = picture.is_multiple_of(8);
    let template = (structure.first_template + 3 * spatial + temporal) & 63;
    let mut frame = structure.template(template).expect("there is one").clone();
    let inter = (!is_key).then_some(3 * back);
    frame.references = inter.into_iter().chain((spatial > 0).then_some(1)).collect();
    let attached = (is_key && spatial == 0).then(|| Box::new(structure.clone()));
    let descriptor = Descriptor {
        first: true,
        last: true,
        template,
        number: 65_530_u16.wrapping_add(3 * picture + u16::from(spatial)),
        structure: attached,
        active_targets: None,
        frame,
    };
    let mut value = Vec::new();
    descriptor.emit(structure, &mut value).expect("a template");
    value
}

#[test]
fn packets_of_av1_go_by_their_dependency_descriptors() {
    let structure = l3t3();
    let of = |(picture, spatial)| extended(picture, &dependency(&structure, picture as u16, spatial));
    let frames = || (0..16).flat_map(|picture| (0..3).map(move |spatial| (picture, spatial)));
    let bodies = frames().map(of).collect::<Vec<_>>();
    // A spatial layer has all temporal ones: they are above those of the lowest one.
    let layer = |(picture, spatial): (u32, u8)| match spatial {
        0 => GROUP[picture as usize % 4].0,
        _ => 2 + spatial,
    };
    let expected = frames().map(layer).collect::<Vec<_>>();
    assert_layers(described("AV1", &extension(DEPENDENCY)), &bodies, (&expected, 5));
}

#[test]
fn packets_of_av1_of_which_the_structure_is_not_known_go_everywhere_until_it_comes() {
    let structure = l3t3();
    let of = |picture: u32| extended(picture, &dependency(&structure, picture as u16, 0));
    // It begins behind a key picture; the last group is behind another one.
    let bodies = (5..12).map(of).collect::<Vec<_>>();
    let seen = down(described("AV1", &extension(DEPENDENCY)), &packets(&bodies), 5);
    let all = (0..7).collect::<Vec<_>>();
    assert_eq!(seen, [&all[..], &all, &all, &[0, 1, 2, 3, 5], &[0, 1, 2, 3]]);
}

/// Payload descriptors of VP9 (RFC 9628, section 4.2), not flexible: two spatial layers, each of three temporal ones.
fn vp9(picture: u8, spatial: u8) -> Body {
    let (temporal, _) = GROUP[usize::from(picture % 4)];
    let is_key = picture == 0;
    let has_structure = is_key && spatial == 0;
    let inter = if is_key { 0 } else { 0x40 };
    let flags = 0x80 | inter | 0x20 | 0x0c | u8::from(has_structure) << 1;
    let layer = temporal << 5 | spatial << 1 | u8::from(spatial > 0);
    let mut payload = vec![flags, 0x78 + picture, layer, picture / 4];
    if has_structure {
        payload.extend([1 << 5 | 1 << 3, 4]);
        payload.extend(GROUP.iter().flat_map(|(temporal, back)| [temporal << 5 | 1 << 2, *back as u8]));
    }
    payload.push(if is_key && spatial == 0 { 0x82 } else { 0x86 });
    body(picture.into(), &payload)
}

#[test]
fn packets_of_vp9_go_by_their_payload_descriptors() {
    let frames = || (0..8).flat_map(|picture| (0..2).map(move |spatial| (picture, spatial)));
    let bodies = frames().map(|(picture, spatial)| vp9(picture, spatial)).collect::<Vec<_>>();
    let layer = |(picture, spatial)| if spatial == 0 { GROUP[usize::from(picture % 4_u8)].0 } else { 3 };
    let expected = frames().map(layer).collect::<Vec<_>>();
    assert_layers(described("VP9", ""), &bodies, (&expected, 4));
}

/// A payload descriptor of VP8 (RFC 7741, section 4.2) with all that it can have.
fn vp8(picture: u8, is_key: bool) -> Body {
    let (temporal, _) = GROUP[usize::from(picture % 4)];
    let no_reference = if temporal == 2 { 0x20 } else { 0 };
    let syncs = if temporal > 0 && picture < 4 { 0x20 } else { 0 };
    let descriptor = [0x90 | no_reference, 0xf0, picture, picture / 4, temporal << 6 | syncs | 1];
    body(picture.into(), &[&descriptor[..], &[u8::from(!is_key), 0, 0]].concat())
}

#[test]
fn packets_of_vp8_go_by_their_payload_descriptors() {
    let bodies = (0..16).map(|picture| vp8(picture, picture % 8 == 0)).collect::<Vec<_>>();
    let packets = packets(&bodies);
    let told = layers(&described("VP8", ""), &packets);
    // That there are more layers than one is known when a frame of a higher one comes.
    let expected = (1..16).map(|picture| (GROUP[picture % 4].0, 3)).collect::<Vec<_>>();
    assert_eq!((told[0], &told[1..]), ((0, 1), &expected[..]));
    let seen = down(described("VP8", ""), &packets, 4);
    let of = |most: u8| (0..16).filter(|at| GROUP[at % 4].0 <= most).collect::<Vec<_>>();
    assert_eq!(seen, [of(2), of(1), of(0), of(0)]);
}

#[test]
fn packets_go_by_their_frame_marking() {
    // RFC 9626, section 3.1: start, end, independent, discardable, base layer sync and TID; LID; TL0PICIDX.
    let of = |(picture, spatial): (u32, u8)| {
        let (temporal, _) = GROUP[picture as usize % 4];
        let flags = 0xc0 | if picture.is_multiple_of(8) { 0x20 } else { 0 } | temporal;
        extended(picture, &[flags, spatial, picture as u8 / 4])
    };
    let frames = || (0..16).flat_map(|picture| (0..2).map(move |spatial| (picture, spatial)));
    let bodies = frames().map(of).collect::<Vec<_>>();
    let marked = described("X-VIDEO", &extension(FRAME_MARKING));
    let told = layers(&marked, &packets(&bodies));
    let layer = |(picture, spatial): (u32, u8)| if spatial == 0 { GROUP[picture as usize % 4].0 } else { 3 };
    // With the second picture, all that there is has been seen.
    let expected = frames().map(layer).collect::<Vec<_>>();
    assert_eq!(told[2..], expected[2..].iter().map(|layer| (*layer, 4)).collect::<Vec<_>>());
    for (seen, most) in down(marked, &packets(&bodies), 4).iter().zip([3, 2, 1, 0]) {
        let wanted = (0..32).filter(|at| expected[*at] <= most).collect::<Vec<_>>();
        assert_eq!(*seen, wanted, "up to {most}");
    }
}

#[test]
fn frames_that_are_marked_as_discardable_are_a_layer() {
    // RFC 9626, section 3.2: one byte.
    let kinds = [0xe0, 0xd0, 0xc0, 0xd0];
    let bodies = (0..).zip(kinds).map(|(picture, flags)| extended(picture, &[flags])).collect::<Vec<_>>();
    let seen = down(described("X-VIDEO", &extension(FRAME_MARKING)), &packets(&bodies), 2);
    assert_eq!(seen, [&[0, 1, 2, 3][..], &[0, 2]]);
}

/// A codestream of one tile of which each layer is one tile-part, in a packet each: its main header first (ITU-T T.800,
/// annex A; RFC 5371, section 4.1; RFC 5372, section 3).
fn jpeg2000(picture: u32, layers: u8) -> Vec<Body> {
    let size = [0, 0, 0, 64].repeat(2);
    let nothing = [0; 8];
    let siz = [&[0xff, 0x51, 0, 41, 0, 0][..], &size, &nothing, &size, &nothing, &[0, 1, 7, 1, 1]].concat();
    let cod = [0xff, 0x52, 0, 12, 0, 0, 0, layers, 0, 5, 4, 4, 0, 1];
    let main = [&[0xff, 0x4f][..], &siz, &cod].concat();
    let mut bodies = vec![body(picture, &[&[0x31, 0, 0, 0, 0, 0, 0, 0][..], &main].concat())];
    let mut offset = main.len() as u32;
    for layer in 0..layers {
        let part = [0xff, 0x90, 0, 10, 0, 0, 0, 0, 0, 16, layer, layers, 0xff, 0x93, 7, 7];
        let [_, high, middle, low] = offset.to_be_bytes();
        bodies.push(body(picture, &[&[0, layer + 1, 0, 0, 0, high, middle, low][..], &part].concat()));
        offset += part.len() as u32;
    }
    bodies
}

#[test]
fn packets_of_jpeg_2000_go_by_their_priorities() {
    for layers in [2, 33, 127] {
        let bodies = (0..3).flat_map(|picture| jpeg2000(picture, layers)).collect::<Vec<_>>();
        let expected = (0..3).flat_map(|_| [0].into_iter().chain(0..layers)).collect::<Vec<_>>();
        assert_layers(described("jpeg2000", "a=fmtp:96 pt=layer"), &bodies, (&expected, layers));
    }
}

#[test]
fn priorities_are_at_a_fixed_place_in_tracks_that_say_their_layer_by_them() {
    let sound = "m=audio 5006 RTP/AVP 97\na=rtpmap:97 opus/48000/2";
    let by_layer = described("jpeg2000", &format!("a=fmtp:96 pt=layer\n{sound}")).prioritized();
    assert_eq!(by_layer, Some(vec![Prioritized { port: PORT, payload_type: PAYLOAD_TYPE }]));
    assert_eq!(described("jpeg2000", "a=fmtp:96 pt=resolution").prioritized(), None);
    assert_eq!(described("VP9", "").prioritized(), None);
    assert_eq!(Described::default().prioritized(), Some(Vec::new()));
}

#[test]
fn priorities_that_are_no_layers_leave_nothing_out() {
    let bodies = (0..2).flat_map(|picture| jpeg2000(picture, 5)).collect::<Vec<_>>();
    let all = (0..bodies.len()).collect::<Vec<_>>();
    let by_resolution = described("jpeg2000", "a=fmtp:96 pt=resolution");
    assert_eq!(down(by_resolution, &packets(&bodies), 5), vec![all.clone(); 5]);
    // No priority (RFC 5371, section 4.1).
    let none = bodies.into_iter().map(|mut body| {
        body.payload[1] = 255;
        body
    });
    let packets = packets(&none.collect::<Vec<_>>());
    assert!(layers(&described("jpeg2000", ""), &packets).iter().all(|told| told.0 == 0));
    assert_eq!(down(described("jpeg2000", ""), &packets, 5), vec![all; 5]);
}

#[test]
fn what_is_broken_goes_everywhere_and_disturbs_nothing() {
    let structure = l3t3();
    let cases = [
        (
            "AV1",
            DEPENDENCY,
            extended(3, &[0x80, 0]),
            [0, 2, 4].map(|p| extended(p, &dependency(&structure, p as u16, 0))),
        ),
        ("VP9", "none", body(3, &[0xa0, 0x80]), [0, 2, 4].map(|p| vp9(p as u8, 0))),
        ("VP8", "none", body(3, &[0x90, 0xf0]), [0, 2, 4].map(|p| vp8(p as u8, p == 0))),
        (
            "jpeg2000",
            "none",
            body(3, &[0, 9, 0]),
            [0, 1, 2].map(|p| jpeg2000(p, 5).remove(usize::from(p == 1) * 4)),
        ),
    ];
    for (format, name, broken, [key, higher, base]) in cases {
        let packets = packets(&[key, higher, broken, base]);
        let seen = down(described(format, &extension(name)), &packets, 5);
        assert_eq!((&seen[0], &seen[4]), (&vec![0, 1, 2, 3], &vec![0, 2, 3]), "{format}");
    }
}

#[test]
fn a_payload_type_that_is_not_described_says_nothing_within_a_track_that_is() {
    let mut packets = packets(&(0..4).map(|picture| vp8(picture, picture == 0)).collect::<Vec<_>>());
    // As a repair of losses in the same stream would be (RFC 5109): what stands there is not what VP8 means.
    packets[3][1] = packets[3][1] & 0x80 | 97;
    assert_eq!(down(described("VP8", ""), &packets, 3)[2], [0, 3]);
    let mut reader = described("VP8", "").reader(PORT, PAYLOAD_TYPE).expect("it is described");
    assert!(reader.read(&packets[1]).is_some() && reader.read(&packets[3]).is_none());
}
