//! A receiver of a transport stream: what it got, against what came in.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use outflow_ts::PACKET_BYTES;
use outflow_ts::packet::{NULL_PID, Packet};
use outflow_ts::pes::PesHeader;

use super::source::{Picture, Sent, VIDEO};
use crate::schedule::SinkKey;

pub(super) struct Receiver {
    pub(super) key: SinkKey,
    by_rtp: bool,
    pub(super) is_there: bool,
    /// This many packets are taken, and then none for this many groups of pictures.
    pub(super) block: Option<(u64, u32)>,
    packets: Vec<Bytes>,
    sequence: Option<u16>,
}

/// What a packet is that was got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Got {
    /// The one with this number that came in.
    Came(usize),
    /// Of that one, what is left without its payload.
    Bare(usize),
    /// It carries nothing.
    Filling,
}

impl Receiver {
    pub(super) fn new(key: SinkKey, by_rtp: bool) -> Self {
        Receiver { key, by_rtp, is_there: true, block: None, packets: Vec::new(), sequence: None }
    }

    /// What an order begins with: the tables for a sink that joins, or what brings one that changes from one
    /// branch to another.
    pub(super) fn spliced(&mut self, bytes: &Bytes, header: [u8; 12], sequence_offset: u16, joins: bool) {
        match joins {
            true => self.number(header, sequence_offset),
            false => self.datagram(bytes, header, sequence_offset),
        }
    }

    pub(super) fn datagram(&mut self, bytes: &Bytes, header: [u8; 12], sequence_offset: u16) {
        self.number(header, sequence_offset);
        self.packets
            .extend((0..bytes.len()).step_by(PACKET_BYTES).map(|at| bytes.slice(at..at + PACKET_BYTES)));
    }

    fn number(&mut self, header: [u8; 12], sequence_offset: u16) {
        let number = u16::from_be_bytes([header[2], header[3]]).wrapping_sub(sequence_offset);
        if let Some(before) = self.sequence.replace(number).filter(|_| self.by_rtp) {
            assert_eq!(number, before.wrapping_add(1), "RTP sequence numbers go on");
        }
    }

    /// What came of it, packet by packet; whether counters and clocks go on, and everything that is not video
    /// is there.
    pub(super) fn check(&self, came: &[Sent], is_lossy: bool) -> Vec<Got> {
        let got = self.identify(came);
        let Some(first) = got.iter().find_map(|got| got.came()) else { return got };
        let last = got.iter().rev().find_map(|got| got.came()).unwrap_or(first);
        let kept = |at: &usize| pid(&came[*at].bytes) != VIDEO;
        let expected: Vec<_> = (first..=last).filter(kept).collect();
        let others: Vec<_> = got.iter().filter_map(|got| got.came()).filter(kept).collect();
        assert_eq!(others, expected, "what is not video passes");
        let clock = |at: usize| parsed(&came[at].bytes).adaptation().pcr();
        let clocks: Vec<_> = self.packets.iter().filter_map(|p| parsed(p).adaptation().pcr()).collect();
        assert_eq!(clocks, (first..=last).filter_map(clock).collect::<Vec<_>>(), "clocks pass");
        self.check_counters(&got, came, first, is_lossy);
        got
    }

    /// Which of the packets that came in each is: they keep their order.
    fn identify(&self, came: &[Sent]) -> Vec<Got> {
        let clock = |packet: &Packet<'_>| packet.adaptation().pcr();
        // By payload; a clock reference stands nowhere else.
        let (mut known, mut clocks) = (BTreeMap::<_, Vec<usize>>::new(), BTreeMap::new());
        for (at, sent) in came.iter().enumerate() {
            let packet = parsed(&sent.bytes);
            known.entry((packet.pid(), packet.payload(), clock(&packet))).or_default().push(at);
            clocks.extend(clock(&packet).map(|pcr| (pcr, at)));
        }
        let mut next = 0;
        let mut identify = |bytes: &Bytes| {
            let packet = parsed(bytes);
            if is_filling(&packet) {
                return Got::Filling;
            }
            let places = known.get(&(packet.pid(), packet.payload(), clock(&packet)));
            let whole = places.and_then(|places| places.iter().copied().find(|at| *at >= next));
            let bare =
                clock(&packet).filter(|_| !packet.has_payload()).and_then(|pcr| clocks.get(&pcr).copied());
            let at = whole.or(bare).filter(|at| *at >= next);
            let at = at.unwrap_or_else(|| panic!("{bytes:x?} behind {next} came from nowhere"));
            next = at + 1;
            if whole.is_some() { Got::Came(at) } else { Got::Bare(at) }
        };
        self.packets.iter().map(&mut identify).collect()
    }

    /// Between two packets of a PID, the counter goes on as it did between those that came in: with what was
    /// lost before, and what came twice; what was left out counts nothing.
    fn check_counters(&self, got: &[Got], came: &[Sent], first: usize, is_lossy: bool) {
        let mut at = first;
        let mut last: BTreeMap<u16, u8> = BTreeMap::new();
        // The last counter of each PID that came in, whether it came twice, and what was not as it should be
        // since a packet of the PID was got.
        let mut before: BTreeMap<u16, (u8, bool, u8)> = BTreeMap::new();
        for (got, bytes) in got.iter().zip(&self.packets) {
            let packet = parsed(bytes);
            let pid = packet.pid();
            let mut expected = last.get(&pid).map(|last| last + u8::from(packet.has_payload()));
            if let Some(here) = got.came() {
                for (index, sent) in came.iter().enumerate().take(here + 1).skip(at) {
                    let sent = parsed(&sent.bytes);
                    let (counter, counts) = (sent.continuity(), sent.has_payload());
                    let known = before.get(&sent.pid()).copied();
                    let repeats = counts && known.is_some_and(|(last, twice, _)| last == counter && !twice);
                    let mut extra = known.map_or(0, |(_, _, extra)| extra);
                    // What was left out has not come once more.
                    if let Some((known, ..)) = known.filter(|_| !repeats || *got == Got::Came(index)) {
                        extra += counter.wrapping_sub(known + u8::from(counts)) & 15;
                    }
                    let stands = !counts && known.is_some_and(|(last, twice, _)| last == counter && twice);
                    before.insert(sent.pid(), (counter, repeats || stands, extra & 15));
                }
                at = here + 1;
                let extra = before.get_mut(&pid).map_or(0, |(.., extra)| core::mem::take(extra));
                expected = expected.map(|expected| expected + extra);
            }
            let found = packet.continuity();
            if is_lossy && *got == Got::Filling {
                // Where in front of it something was lost shows behind it.
                last.insert(pid, expected.unwrap_or(found) & 15);
                continue;
            }
            if let Some(expected) = expected.filter(|_| pid != NULL_PID) {
                assert_eq!(found, expected & 15, "{got:?} of {pid:#x}");
            }
            last.insert(pid, found);
        }
    }

    /// Whether pictures are whole, and refer to nothing that is not there.
    pub(super) fn check_pictures(&self, got: &[Got], came: &[Sent], pictures: &[Picture]) {
        let parts = |number: usize| came.iter().filter(move |sent| sent.picture == Some(number)).count();
        let arrived = self.arrived(got, came);
        let last = arrived.keys().next_back().copied();
        // In the datagram in which one's key frame begins, there may be the end of the picture before.
        let Some(joined) = arrived.keys().find(|number| pictures[**number].key).copied() else {
            return assert!(arrived.len() < 2, "one joins at key frames");
        };
        assert!(arrived.range(..joined).count() < 3, "one joins at key frames");
        for (&number, &packets) in arrived.range(joined..) {
            assert!(packets == parts(number) || Some(number) == last, "picture {number} is not whole");
            for needed in &pictures[number].refers {
                // A receiver that joins gets what is shown before the key frame, and lets it go.
                assert!(*needed < joined || arrived.contains_key(needed), "{number} needs {needed}");
            }
        }
    }

    /// Pictures of which it has something, and how many packets.
    pub(super) fn arrived(&self, got: &[Got], came: &[Sent]) -> BTreeMap<usize, usize> {
        let mut arrived = BTreeMap::new();
        for got in got {
            if let Got::Came(at) = got
                && let Some(picture) = came[*at].picture
            {
                *arrived.entry(picture).or_default() += 1;
            }
        }
        arrived
    }

    /// The numbers of the pictures of which it has something.
    pub(super) fn pictures(&self, came: &[Sent]) -> BTreeSet<usize> {
        self.arrived(&self.check(came, false), came).into_keys().collect()
    }
}

impl Got {
    fn came(&self) -> Option<usize> {
        match *self {
            Got::Came(at) | Got::Bare(at) => Some(at),
            Got::Filling => None,
        }
    }
}

fn parsed(bytes: &[u8]) -> Packet<'_> {
    Packet::new_checked(bytes).expect("a packet")
}

fn pid(bytes: &[u8]) -> u16 {
    parsed(bytes).pid()
}

/// A PES packet without a time, of one zero.
fn is_filling(packet: &Packet<'_>) -> bool {
    let is_empty = |header: PesHeader| header.pts.is_none() && packet.payload()[header.header_bytes..] == [0];
    packet.pid() == VIDEO && packet.unit_start() && PesHeader::parse(packet.payload()).is_ok_and(is_empty)
}
