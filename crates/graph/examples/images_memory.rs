//! What the ways to use memory cost, see `Memory`: time for a frame, and the longest that a batch of
//! packets takes: a gathered frame's, which its last packet waits for. `cargo run --release -p outflow-graph --example images_memory`.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "it measures times")]

use std::time::Instant;

use outflow_graph::elements::images::{Images, Memory, Recipe, Size};
use outflow_graph::{Element, Item, Tally};
use outflow_media::image::{Pixels, Rect, Shape};
use outflow_media::{Codec, Format, Tag, Time, Track};
use outflow_packet::Packet;
use outflow_rtp::PlainHeader;
use outflow_rtp::payload::raw_video;

const FRAMES: u32 = 60;
const BATCH: usize = 32;
const MIDDLE: Rect = Rect { left: 480, top: 270, width: 960, height: 540 };

/// The packets of a frame, with 1400 bytes of payload at most.
fn packets(shape: Shape) -> Vec<Item> {
    let image: Vec<u8> = (0..shape.bytes()).map(|at| (at / 7) as u8).collect();
    let mut items = Vec::new();
    raw_video::emit(shape, &image, 1400, 0, |payload, marker| {
        let sequence = items.len() as u16;
        let header = PlainHeader { marker, payload_type: 96, sequence, timestamp: 0, ssrc: 1 };
        let bytes = [&header.emit()[..], payload].concat().into();
        let mut item = Item::empty();
        item.packet = Packet { bytes, tag: Tag::default(), arrived: Time::ZERO };
        items.push(item);
    })
    .expect("it fits");
    items
}

/// The same packets, of another frame. Their bytes are shared, as with a stream that is also relayed as
/// it is; the header stands apart.
fn of_frame(items: &[Item], number: u32) -> Vec<Item> {
    let mut items = items.to_vec();
    for (index, item) in items.iter_mut().enumerate() {
        let sequence = (number.wrapping_mul(5000) as u16).wrapping_add(index as u16);
        let header = item.header_mut().expect("RTP");
        header[2..4].copy_from_slice(&sequence.to_be_bytes());
        header[4..8].copy_from_slice(&(number * 3600).to_be_bytes());
        item.packet.tag.frame = number;
    }
    items
}

fn main() {
    let nothing = Recipe::default();
    let recipes = [
        ("gray", Recipe { gray: true, ..nothing }),
        ("crop", Recipe { part: Some(MIDDLE), ..nothing }),
        ("shrink", Recipe { size: Some(Size::Factor(2)), ..nothing }),
    ];
    for pixels in [Pixels::Rgb, Pixels::Uyvy] {
        let shape = Shape { pixels, width: 1920, height: 1080 };
        let packets = packets(shape);
        let track = Track { codec: Codec::RawVideo(Some(shape)), ..Track::mp2t() };
        for (name, recipe) in recipes {
            for memory in [Memory::Fragments, Memory::Lines, Memory::Gather] {
                let mut element = Images::new(recipe, memory);
                if element.bind(&Format::Rtp(vec![track.clone()])).is_ok() {
                    measure(&format!("{pixels:?} {name} {memory:?}"), &mut element, &packets);
                }
            }
        }
    }
}

/// Sends frames through, and prints the best of them: what the machine did besides does not count.
fn measure(what: &str, element: &mut Images, packets: &[Item]) {
    let (mut frame_us, mut last_us, mut out) = (Vec::new(), Vec::new(), 0);
    for number in 0..FRAMES {
        let mut rest = of_frame(packets, number);
        let (mut frame, mut longest, mut gone) = (0.0, 0.0_f64, Vec::new());
        while !rest.is_empty() {
            let mut batch: Vec<Item> = rest.drain(..BATCH.min(rest.len())).collect();
            let began = Instant::now();
            element.work(Time::ZERO, &mut batch, &mut Tally::default());
            let took = began.elapsed().as_secs_f64() * 1e6;
            frame += took;
            longest = longest.max(took);
            gone.append(&mut batch);
        }
        out = gone.len();
        frame_us.push(frame);
        last_us.push(longest);
    }
    let least = |values: &[f64]| values.iter().copied().fold(f64::INFINITY, f64::min);
    let (frame, last) = (least(&frame_us), least(&last_us));
    let packet = frame * 1e3 / packets.len() as f64;
    println!("{what}: {frame:.0} us a frame, {packet:.0} ns a packet; longest batch {last:.0} us; {out} out");
}
