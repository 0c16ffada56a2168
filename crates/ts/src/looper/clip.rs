//! What must be known of a clip to play it in a loop.

use std::collections::BTreeMap;

use outflow_media::Malformed;

use crate::clock::{pcr_distance, pts_distance};
use crate::packet::{NULL_PID, PACKET_BYTES, Packet, check_aligned};
use crate::pes::PesHeader;
use crate::{DATAGRAM_BYTES, Programme, TsReader};

const fn malformed(offset: usize, reason: &'static str) -> Malformed {
    Malformed { format: "MPEG-TS clip", offset, reason }
}

/// A clip's clock, counters and length.
#[derive(Debug)]
pub(super) struct Clip {
    /// How long a round lasts, in ticks of 90 kHz.
    ticks: i64,
    packets: usize,
    /// Packets with a clock reference: their index, and the reference in ticks of 27 MHz since
    /// the first one. There is at least one.
    clock: Vec<(usize, i64)>,
    /// When the first packet is due, on the scale of `clock`.
    start: i64,
    /// By how much the counter of each PID goes on in a round.
    counter_steps: Vec<(u16, u8)>,
    /// The PIDs with PES packets.
    elementary: Vec<u16>,
}

/// What was seen of a PID.
#[derive(Debug, Default)]
struct Seen {
    /// The counter that a packet before its first one would have.
    counter_before: u8,
    counter: u8,
    /// The time stamps of its PES packets, as distances from the first.
    first_stamp: Option<u64>,
    stamps: i64,
    latest: i64,
}

impl Clip {
    /// Reads a clip of whole packets.
    pub(super) fn analyse(bytes: &[u8]) -> Result<Self, Malformed> {
        check_aligned(bytes)?;
        let mut reader = TsReader::default();
        for datagram in bytes.chunks(DATAGRAM_BYTES) {
            reader.read(datagram)?;
        }
        let Some(programme) = reader.programme() else {
            return Err(malformed(bytes.len(), "it has no PAT, or no PMT"));
        };
        let (clock, seen) = walk(bytes, programme)?;
        let ticks = round_ticks(programme, &clock, &seen)?;
        let mut clip = Clip {
            ticks,
            packets: bytes.len() / PACKET_BYTES,
            clock,
            start: 0,
            counter_steps: seen
                .iter()
                .map(|(pid, seen)| (*pid, seen.counter.wrapping_sub(seen.counter_before) & 0x0f))
                .collect(),
            elementary: programme.streams.iter().map(|stream| stream.pid).collect(),
        };
        clip.start = clip.clock_at(0);
        Ok(clip)
    }

    /// How long a round lasts, in ticks of 90 kHz.
    pub(super) const fn ticks(&self) -> u64 {
        self.ticks.unsigned_abs()
    }

    pub(super) fn counter_steps(&self) -> impl Iterator<Item = (u16, u8)> + '_ {
        self.counter_steps.iter().copied()
    }

    /// Whether the packets with this PID carry PES packets.
    pub(super) fn is_elementary(&self, pid: u16) -> bool {
        self.elementary.contains(&pid)
    }

    /// When the packet at `index` is due in round `rounds`, in ticks of 27 MHz from the start.
    pub(super) fn due(&self, rounds: u64, index: usize) -> u64 {
        let within = self.clock_at(index) - self.start;
        rounds.saturating_mul(self.ticks() * 300).saturating_add_signed(within)
    }

    /// The clock at a packet: on a line between the references around it, which for the last one
    /// and the first one goes over the edge of the round.
    fn clock_at(&self, index: usize) -> i64 {
        let round = (self.packets as i64, self.ticks * 300);
        let knot = |(index, clock): (usize, i64), rounds: i64| {
            (index as i64 + rounds * round.0, clock + rounds * round.1)
        };
        let behind = self.clock.partition_point(|(at, _)| *at <= index);
        let (Some(&first), Some(&last)) = (self.clock.first(), self.clock.last()) else { return 0 };
        let before = behind.checked_sub(1).and_then(|i| self.clock.get(i));
        let before = before.map_or(knot(last, -1), |b| knot(*b, 0));
        let after = self.clock.get(behind).map_or(knot(first, 1), |a| knot(*a, 0));
        let share = |whole: i64| {
            let part = i128::from(whole) * i128::from(index as i64 - before.0);
            // Between the two, so it fits as they do.
            (part / i128::from(after.0 - before.0)) as i64
        };
        before.1 + share(after.1 - before.1)
    }
}

/// Reads all packets: the clock, and what was seen of each PID.
#[expect(clippy::type_complexity, reason = "two lists that are taken apart at once")]
fn walk(bytes: &[u8], programme: &Programme) -> Result<(Vec<(usize, i64)>, BTreeMap<u16, Seen>), Malformed> {
    let mut clock: Vec<(usize, i64)> = Vec::new();
    let mut clock_origin = None;
    let mut all: BTreeMap<u16, Seen> = BTreeMap::new();
    for (index, bytes) in bytes.chunks_exact(PACKET_BYTES).enumerate() {
        let offset = index * PACKET_BYTES;
        let packet = Packet::new_checked(bytes).map_err(|e| Malformed { offset: offset + e.offset, ..e })?;
        let pid = packet.pid();
        if pid == NULL_PID {
            continue;
        }
        let seen = all.entry(pid).or_insert_with(|| Seen {
            counter_before: packet.continuity().wrapping_sub(u8::from(packet.has_payload())),
            ..Seen::default()
        });
        seen.counter = packet.continuity();
        if let Some(pcr) = packet.adaptation().pcr().filter(|_| pid == programme.pcr_pid) {
            let since = pcr_distance(*clock_origin.get_or_insert(pcr), pcr);
            if clock.last().is_some_and(|(_, last)| *last > since) {
                return Err(malformed(offset, "its clock goes back"));
            }
            clock.push((index, since));
        }
        let elementary = programme.streams.iter().any(|stream| stream.pid == pid);
        if elementary && packet.unit_start() && !packet.is_scrambled() {
            let header = PesHeader::parse(packet.payload())
                .map_err(|e| Malformed { offset: offset + packet.payload_offset() + e.offset, ..e })?;
            seen.stamp(&header);
        }
    }
    if clock.is_empty() {
        clock.push((0, 0));
    }
    Ok((clock, all))
}

impl Seen {
    fn stamp(&mut self, header: &PesHeader) {
        let Some(stamp) = header.decoded_at() else { return };
        let first = *self.first_stamp.get_or_insert(stamp);
        self.latest = self.latest.max(pts_distance(first, stamp));
        self.stamps += 1;
    }
}

/// How long a round lasts: as many frames of the main stream as it has, or more if its clock or
/// another stream goes on for longer.
fn round_ticks(
    programme: &Programme,
    clock: &[(usize, i64)],
    seen: &BTreeMap<u16, Seen>,
) -> Result<i64, Malformed> {
    let main = programme.main().and_then(|main| seen.get(&main.pid));
    let Some(main) = main.filter(|main| main.stamps > 1 && main.latest > 0) else {
        return Err(malformed(0, "its main stream has less than two time stamps"));
    };
    let clock = clock.last().map_or(0, |(_, last)| last / 300);
    let others = programme.streams.iter().filter_map(|stream| seen.get(&stream.pid)).map(|s| s.latest);
    let longest = others.chain([clock]).max().unwrap_or(0);
    // This many frames are between the first and the last time stamp.
    let between = main.stamps - 1;
    let rounded = |frames: i64| (main.latest * frames + between / 2) / between;
    let frames = main.stamps.max(longest * between / main.latest + 1);
    Ok(rounded(frames))
}
