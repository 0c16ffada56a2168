//! VP9 in RTP (RFC 9628).

use anyhow::{Context, Result, ensure};
use outflow_rtp::HEADER;
use outflow_rtp::payload::vp9::{Descriptor, GroupPicture, Layer, PictureId, Structure};

use super::packets::Body;
use super::{Coding, Encoded, Plan};

/// The number of the first picture, of 15 bits; the next ones are 0 soon.
const FIRST_NUMBER: u16 = 0x7ff0;
/// More than a descriptor takes.
const ROOM: usize = 48;

/// The packets of a frame.
pub(super) fn bodies(encoded: &Encoded, number: usize) -> Vec<Body> {
    let pieces: Vec<&[u8]> =
        encoded.frames[number].chunks(encoded.plan.shape.packet_bytes - HEADER - ROOM).collect();
    let of_frame = descriptor(encoded.coding, &encoded.plan, number);
    let body = |(at, piece): (usize, &&[u8])| {
        let (first, last) = (at == 0, at + 1 == pieces.len());
        let structure = of_frame.structure.clone().filter(|_| first);
        let mut payload = Vec::new();
        Descriptor { first, last, structure, ..of_frame.clone() }.emit(&mut payload);
        payload.extend(*piece);
        Body { payload, ..Body::default() }
    };
    pieces.iter().enumerate().map(body).collect()
}

fn descriptor(coding: Coding, plan: &Plan, number: usize) -> Descriptor {
    let frame = &plan.frames[number];
    let is_flexible = coding == Coding::Vp9Flexible;
    let lowest = plan.frames[..=number].iter().filter(|of| of.spatial == 0 && of.temporal == 0);
    let distance = frame.own.map(|own| (frame.picture - plan.frames[own.frame].picture) as u8);
    Descriptor {
        picture: Some(PictureId { value: (FIRST_NUMBER + frame.picture as u16) & 0x7fff, is_long: true }),
        is_inter: frame.own.is_some(),
        layer: Some(Layer {
            temporal: frame.temporal,
            // Frames of a temporal layer refer to none before the last one of each layer below.
            switches_up: true,
            spatial: frame.spatial,
            needs_below: frame.below.is_some(),
        }),
        base_picture: if is_flexible { 0 } else { (lowest.count() - 1) as u8 },
        is_flexible,
        references: distance.into_iter().filter(|_| is_flexible).collect(),
        structure: (frame.key && frame.spatial == 0).then(|| structure(plan, !is_flexible)),
        is_not_below: frame.spatial + 1 == plan.spatial,
        ..Descriptor::default()
    }
}

fn structure(plan: &Plan, has_group: bool) -> Structure {
    let size = |spatial: u8| {
        let (width, height) = plan.shape.size_of(spatial, plan.spatial);
        (width as u16, height as u16)
    };
    let picture = |temporal, distance| GroupPicture {
        temporal,
        switches_up: true,
        references: [distance].into_iter().collect(),
    };
    let group = match plan.temporal {
        1 => vec![picture(0, 1)],
        2 => vec![picture(0, 2), picture(1, 1)],
        _ => vec![picture(0, 4), picture(2, 1), picture(1, 2), picture(2, 1)],
    };
    Structure {
        spatial: plan.spatial,
        resolutions: (0..plan.spatial).map(size).collect(),
        group: has_group.then_some(group),
    }
}

/// The frames of a picture, with their spatial layers, from the payloads of its packets.
pub(super) fn frames(payloads: &[&[u8]]) -> Result<Vec<(u8, Vec<u8>)>> {
    let mut frames: Vec<(u8, Vec<u8>)> = Vec::new();
    let mut is_whole = true;
    for payload in payloads {
        let (descriptor, data) = Descriptor::parse(payload)?;
        ensure!(descriptor.first == is_whole, "a frame that is not whole");
        let spatial = descriptor.layer.context("a layer")?.spatial;
        if descriptor.first {
            frames.push((spatial, Vec::new()));
        }
        let (of, bytes) = frames.last_mut().context("a beginning")?;
        ensure!(*of == spatial, "a frame of two layers");
        bytes.extend(data);
        is_whole = descriptor.last;
    }
    ensure!(is_whole, "its last frame is not whole");
    Ok(frames)
}
