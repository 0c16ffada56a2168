//! Packets that are made: their memory, their numbers, their headers.

use bytes::{Bytes, BytesMut};
use outflow_packet::Packet;
use outflow_rtp::limits::LOST_PACKETS_MAX;
use outflow_rtp::{HEADER, PlainHeader, sequence_distance};

use crate::Item;
use crate::limits::POOL_BLOCK_BYTES;

/// Memory for packets: many share a block, which comes back when the last of them is gone.
#[derive(Debug, Default)]
pub(super) struct Pool {
    block: BytesMut,
}

impl Pool {
    /// Room for a packet of `bytes` bytes, to be written behind what is there.
    pub(super) fn room(&mut self, bytes: usize) -> &mut BytesMut {
        if self.block.capacity() < bytes && !self.block.try_reclaim(bytes) {
            self.block = BytesMut::with_capacity(bytes.max(POOL_BLOCK_BYTES));
        }
        &mut self.block
    }

    /// What was written since the last packet.
    pub(super) fn packet(&mut self) -> Bytes {
        self.block.split().freeze()
    }

    /// These bytes to be changed: themselves if nothing else holds them, else a copy.
    pub(super) fn own(&mut self, bytes: Bytes) -> BytesMut {
        bytes.try_into_mut().unwrap_or_else(|shared| {
            self.room(shared.len()).extend_from_slice(&shared);
            self.block.split()
        })
    }
}

/// The sequence numbers of a track's packets that are made, with 32 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Numbers {
    /// Of the last packet that came in: its number, and how many came into the graph before it.
    last: Option<(u16, Option<u16>)>,
    next: Option<u32>,
    /// The frame of the last packet that was made.
    frame: Option<u32>,
}

impl Numbers {
    /// Numbers go on behind the last, or begin here.
    pub(super) fn begin(&mut self, number: u32) {
        self.next.get_or_insert(number);
    }

    /// A packet came in. What got lost before it on the network leaves a gap, once: what comes late
    /// is numbered where it comes.
    pub(super) fn came(&mut self, sequence: u16, entered: Option<u16>) {
        if let Some((last, before)) = self.last {
            let distance = sequence_distance(last, sequence);
            if distance <= 0 {
                return;
            }
            let left_out = match (before, entered) {
                (Some(before), Some(entered)) => entered.wrapping_sub(before),
                _ => 1,
            };
            let lost = distance.unsigned_abs().saturating_sub(left_out);
            if let Some(next) = self.next.as_mut().filter(|_| lost <= LOST_PACKETS_MAX) {
                *next = next.wrapping_add(lost.into());
            }
        }
        self.last = Some((sequence, entered));
    }

    /// The number of the packet that is made next.
    pub(super) fn next(&self) -> u32 {
        self.next.unwrap_or_default()
    }

    fn take(&mut self, frame: u32) -> (u32, bool) {
        let number = self.next();
        self.next = Some(number.wrapping_add(1));
        (number, self.frame.replace(frame) != Some(frame))
    }
}

/// What packets are made like: the last of those that they are made of.
#[derive(Debug)]
pub(super) struct Like {
    item: Item,
    payload_type: u8,
    timestamp: u32,
    ssrc: u32,
}

impl Like {
    /// `None` if it has no RTP header.
    pub(super) fn of(item: &Item) -> Option<Self> {
        let header = item.header()?;
        let word =
            |at: usize| u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
        let packet = Packet { bytes: Bytes::new(), ..item.packet };
        Some(Like {
            payload_type: header[1] & 0x7f,
            timestamp: word(4),
            ssrc: word(8),
            item: item.made(packet),
        })
    }

    pub(super) fn timestamp(&self) -> u32 {
        self.timestamp
    }
}

/// Where packets go that are made.
#[derive(Debug)]
pub(super) struct Out<'a> {
    pub(super) pool: &'a mut Pool,
    pub(super) numbers: &'a mut Numbers,
    pub(super) items: &'a mut Vec<Item>,
}

impl Out<'_> {
    /// Makes a packet. `write` adds its payload, of `bytes` at most, and is told its number. `last`:
    /// it ends its frame.
    pub(super) fn make(
        &mut self,
        like: &Like,
        last: bool,
        bytes: usize,
        write: impl FnOnce(&mut BytesMut, u32),
    ) {
        let Like { payload_type, timestamp, ssrc, .. } = *like;
        let (number, first) = self.numbers.take(like.item.packet.tag.frame);
        let header = PlainHeader { marker: last, payload_type, sequence: number as u16, timestamp, ssrc };
        let block = self.pool.room(HEADER + bytes);
        block.extend_from_slice(&header.emit());
        write(block, number);
        let mut item = like.item.clone();
        item.packet.bytes = self.pool.packet();
        (item.packet.tag.first, item.packet.tag.last) = (first, last);
        self.items.push(item);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbered(came: &[(u16, Option<u16>)]) -> Vec<u32> {
        let mut numbers = Numbers::default();
        let each = came.iter().map(|(sequence, entered)| {
            numbers.begin(0x1_fffe);
            numbers.came(*sequence, *entered);
            numbers.take(0).0
        });
        each.collect()
    }

    #[test]
    fn what_got_lost_leaves_a_gap_and_what_was_left_out_does_not() {
        let came = [(9, Some(0)), (10, Some(1)), (12, Some(3)), (15, Some(4)), (14, Some(5)), (16, Some(6))];
        assert_eq!(numbered(&came), [0x1_fffe, 0x1_ffff, 0x2_0000, 0x2_0003, 0x2_0004, 0x2_0005]);
        // Of an element that made them there is only the number.
        assert_eq!(numbered(&[(9, None), (11, None)]), [0x1_fffe, 0x2_0000]);
    }

    #[test]
    fn memory_is_shared_by_packets_and_comes_back() {
        let mut pool = Pool::default();
        let mut packet = || {
            pool.room(1000).extend_from_slice(&[7; 1000]);
            pool.packet()
        };
        let packets: Vec<_> = (0..POOL_BLOCK_BYTES / 1000).map(|_| packet()).collect();
        assert!(packets.windows(2).all(|two| two[0].as_ptr_range().end == two[1].as_ptr()));
        let first = packets[0].as_ptr();
        drop(packets);
        assert_eq!(packet().as_ptr(), first);
    }
}
