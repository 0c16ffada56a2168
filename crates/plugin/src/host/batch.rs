//! A batch on its way to a plug-in, and what the plug-in says of it on its way back.

use std::sync::Arc;

use bytes::{BufMut as _, Bytes, BytesMut};
use outflow_graph::elements::wasm::OUTPUTS;
use outflow_graph::{Item, Tally};
use outflow_media::Format;
use outflow_media::image::ppm;
use outflow_packet::DropReason;
use outflow_rtp::HEADER;

use super::contract::{Action, Chosen, Edit, Packet, Packets, Payload};
use crate::limits::{MADE_BYTES_MAX, MADE_PER_PACKET_MAX};

/// What packets are, as far as it matters here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Carries {
    Ts,
    Rtp,
    Images,
}

impl From<&Format> for Carries {
    fn from(format: &Format) -> Self {
        match format {
            // No element takes opaque datagrams.
            Format::Ts | Format::Data => Carries::Ts,
            Format::Rtp(_) => Carries::Rtp,
            Format::Images => Carries::Images,
        }
    }
}

/// Memory that serves batch after batch.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    packets: Packets,
    bytes: BytesMut,
    out: Vec<Item>,
    slots: Vec<Option<Item>>,
}

/// The part of an RTP header that stands apart from its packet.
fn apart(item: &Item, carries: Carries) -> &[u8] {
    if carries == Carries::Rtp && item.rtp_header[0] != 0 { &item.rtp_header } else { &[] }
}

/// Bytes of a packet as plug-ins see it.
pub(crate) fn size(item: &Item, carries: Carries) -> usize {
    item.len() + apart(item, carries).len()
}

/// Bytes of a packet that a plug-in wants to see.
pub(crate) fn seen(payload: Payload, size: usize) -> usize {
    match payload {
        Payload::None => 0,
        Payload::Head(bytes) => size.min(bytes as usize),
        Payload::All => size,
        Payload::Parts(bytes) => size.min(bytes as usize),
    }
}

impl Scratch {
    /// What a plug-in is given of a batch. What it was given is to be let go before the next.
    pub(crate) fn gather(&mut self, items: &[Item], carries: Carries, payload: Payload) -> (Packets, Bytes) {
        if Arc::get_mut(&mut self.packets).is_none() {
            self.packets = Packets::default();
        }
        let packets = Arc::get_mut(&mut self.packets).expect("no other has it");
        packets.clear();
        if let [item] = items
            && apart(item, carries).is_empty()
        {
            // It is in one piece already.
            let bytes = item.packet.bytes.slice(..seen(payload, item.len()));
            packets.push(Packet::new(&item.packet.tag, item.packet.arrived, 0, bytes.len(), item.len()));
            return (self.packets.clone(), bytes);
        }
        self.bytes.clear();
        for item in items {
            let (head, size) = (apart(item, carries), size(item, carries));
            let (offset, seen) = (self.bytes.len(), seen(payload, size));
            let of_head = seen.min(head.len());
            self.bytes.put_slice(&head[..of_head]);
            self.bytes.put_slice(&item.packet.bytes[..seen - of_head]);
            packets.push(Packet::new(&item.packet.tag, item.packet.arrived, offset, seen, size));
        }
        (self.packets.clone(), self.bytes.split().freeze())
    }

    /// What a plug-in is given of a packet part by part.
    pub(crate) fn part(&mut self, item: &Item, begin: usize, seen: usize, size: usize) -> Packets {
        let (tag, arrived) = (&item.packet.tag, item.packet.arrived);
        match Arc::get_mut(&mut self.packets) {
            Some(packets) => {
                packets.clear();
                packets.push(Packet::new(tag, arrived, begin, seen, size));
            }
            None => self.packets = Arc::new(vec![Packet::new(tag, arrived, begin, seen, size)]),
        }
        self.packets.clone()
    }

    /// Gets back the memory of bytes that were gathered, if nothing else holds them.
    pub(crate) fn reclaim(&mut self, bytes: Bytes) {
        if let Ok(bytes) = bytes.try_into_mut()
            && bytes.capacity() > self.bytes.capacity()
        {
            self.bytes = bytes;
        }
    }

    /// Does what a plug-in said, which is to be checked before.
    pub(crate) fn apply(
        &mut self,
        chosen: Chosen,
        made: usize,
        carries: Carries,
        items: &mut Vec<Item>,
        tally: &mut Tally,
    ) {
        let Chosen { actions, bytes } = chosen;
        let mut editor = Editor { given: bytes.into(), block: BytesMut::with_capacity(made), carries };
        let before = items.len();
        let named = if actions.is_sorted_by(|a, b| a.packet < b.packet) {
            let (mut index, mut actions) = (0, actions.iter().peekable());
            items.retain_mut(|item| {
                let action = actions.next_if(|action| action.packet == index);
                index += 1;
                action.map(|action| editor.act(item, action)).is_some()
            });
            items.len()
        } else {
            self.reorder(&actions, &mut editor, items)
        };
        tally.drops.add(DropReason::Filtered, (before - named) as u64);
    }

    /// The same for packets that change places, or go on more than once. How many were named.
    fn reorder(&mut self, actions: &[Action], editor: &mut Editor, items: &mut Vec<Item>) -> usize {
        self.slots.extend(items.drain(..).map(Some));
        let mut uses = vec![0_usize; self.slots.len()];
        actions.iter().for_each(|action| uses[action.packet as usize] += 1);
        let named = uses.iter().filter(|uses| **uses > 0).count();
        for action in actions {
            let index = action.packet as usize;
            uses[index] -= 1;
            let slot = &mut self.slots[index];
            let item = if uses[index] == 0 { slot.take() } else { slot.clone() };
            self.out.extend(item.map(|mut item| {
                editor.act(&mut item, action);
                item
            }));
        }
        self.slots.clear();
        items.append(&mut self.out);
        named
    }
}

/// What makes new bytes for packets.
struct Editor {
    /// The answer's bytes.
    given: Bytes,
    /// What packets are put together in.
    block: BytesMut,
    carries: Carries,
}

impl Editor {
    fn act(&mut self, item: &mut Item, action: &Action) {
        item.port = action.port;
        if let Some(edit) = &action.edit {
            self.edit(item, edit);
        }
    }

    fn edit(&mut self, item: &mut Item, edit: &Edit) {
        let (begin, length) = (edit.offset as usize, edit.length as usize);
        let after = edit.after as usize;
        let apart = apart(item, self.carries);
        if after >= item.len() + apart.len() {
            item.packet.bytes = self.given.slice(begin..begin + length);
        } else if (length, after) == (0, 0) {
            return;
        } else {
            self.block.put_slice(&self.given[begin..begin + length]);
            let of_head = after.min(apart.len());
            self.block.put_slice(&apart[of_head..]);
            self.block.put_slice(&item.packet.bytes[after - of_head..]);
            item.packet.bytes = self.block.split().freeze();
        }
        if self.carries == Carries::Rtp {
            item.rtp_header = [0; HEADER];
        }
    }
}

/// A packet in one piece.
pub(crate) fn whole(item: &Item, carries: Carries) -> Bytes {
    match apart(item, carries) {
        [] => item.packet.bytes.clone(),
        head => [head, &item.packet.bytes].concat().into(),
    }
}

/// Puts other bytes in the place of a packet's, as many.
///
/// # Errors
/// What is wrong with them.
pub(crate) fn replace(item: &mut Item, carries: Carries, bytes: Bytes) -> Result<(), String> {
    let is_what_it_says = match carries {
        Carries::Rtp => bytes.first().is_some_and(|first| first >> 6 == 2),
        Carries::Ts => starts(&bytes, 0x47),
        Carries::Images => is_image(&bytes),
    };
    if !is_what_it_says {
        return Err(format!("the {} bytes that it wrote are no {}", bytes.len(), name(carries)));
    }
    item.packet.bytes = bytes;
    if carries == Carries::Rtp {
        item.rtp_header = [0; HEADER];
    }
    Ok(())
}

/// Checks what a plug-in said of a batch; how many bytes are to be put together for it.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn check(
    chosen: &Chosen,
    items: &[Item],
    carries: Carries,
    bytes_max: usize,
) -> Result<usize, String> {
    let most = items.len() * MADE_PER_PACKET_MAX;
    if chosen.actions.len() > most {
        return Err(format!("it made {} packets of {}", chosen.actions.len(), items.len()));
    }
    let (mut made, mut all) = (0, chosen.bytes.len());
    for action in &chosen.actions {
        let Some(item) = items.get(action.packet as usize) else {
            return Err(format!("it named packet {} of {}", action.packet, items.len()));
        };
        if usize::from(action.port) >= OUTPUTS.len() {
            return Err(format!("it named output {} of {}", action.port, OUTPUTS.len()));
        }
        if let Some(edit) = &action.edit {
            let bytes = check_edit(edit, chosen, item, carries)?;
            (made, all) = (made + bytes, all + bytes);
        }
        if all > bytes_max {
            return Err(format!("it made more than {bytes_max} bytes of a batch"));
        }
    }
    Ok(made)
}

/// Checks new bytes of a packet; how many are to be put together.
fn check_edit(edit: &Edit, chosen: &Chosen, item: &Item, carries: Carries) -> Result<usize, String> {
    let begin = edit.offset as usize;
    let given = begin.checked_add(edit.length as usize).and_then(|end| chosen.bytes.get(begin..end));
    let Some(given) = given else {
        let (offset, length) = (edit.offset, edit.length);
        return Err(format!("it named {length} bytes from {offset} of {}", chosen.bytes.len()));
    };
    let (apart, after) = (apart(item, carries), edit.after as usize);
    let rest = (item.len() + apart.len()).saturating_sub(after);
    let bytes = given.len() + rest;
    let is_what_it_says = match carries {
        // What stands first decides; the rest is the receivers' business.
        Carries::Rtp if given.is_empty() && after == 0 => true,
        Carries::Rtp => {
            (HEADER..=MADE_BYTES_MAX).contains(&bytes) && given.first().is_some_and(|b| b >> 6 == 2)
        }
        Carries::Ts => {
            bytes > 0 && bytes.is_multiple_of(188) && bytes <= MADE_BYTES_MAX && starts(given, 0x47)
        }
        Carries::Images => rest > 0 || is_image(given),
    };
    if !is_what_it_says {
        return Err(format!("the {bytes} bytes that it made are no {}", name(carries)));
    }
    Ok(if rest > 0 { bytes } else { 0 })
}

fn starts(bytes: &[u8], with: u8) -> bool {
    bytes.first().is_none_or(|first| *first == with)
}

fn is_image(bytes: &[u8]) -> bool {
    let header = ppm::Header::parse(bytes).ok().flatten();
    header.is_some_and(|header| header.bytes + header.shape.bytes() == bytes.len())
}

const fn name(carries: Carries) -> &'static str {
    match carries {
        Carries::Ts => "transport stream packets",
        Carries::Rtp => "RTP packet",
        Carries::Images => "image",
    }
}
