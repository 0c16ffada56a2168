//! Which packets user space forwards, and where: what the driver has said, and what waits for it to say. No I/O.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use outflow_media::Time;
use outflow_packet::Level;
use outflow_packet::gmc::{Described, Ways};
use outflow_routing::forwarding::Pair;

use super::filtered::Places;
use crate::limits::{WAITING_MAX, WAITING_PACKETS_MAX, WAITING_PAIRS_MAX};
use crate::sys::FlowCounts;

/// What came of a pair, as [`FlowCounts`] says; the forwarder counts, and the driver reads.
#[derive(Debug, Default)]
pub(crate) struct FlowCounter {
    packets: AtomicU64,
    bytes: AtomicU64,
    wrong: AtomicU64,
}

impl FlowCounter {
    pub(crate) fn read(&self) -> FlowCounts {
        let read = |at: &AtomicU64| at.load(Ordering::Relaxed);
        // Those that came in elsewhere first: they are never more than all.
        let wrong_interface = read(&self.wrong);
        FlowCounts { packets: read(&self.packets), bytes: read(&self.bytes), wrong_interface }
    }

    fn count(&self, bytes: usize, is_wrong: bool) {
        self.packets.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        self.wrong.fetch_add(is_wrong.into(), Ordering::Relaxed);
    }
}

/// Where packets of a pair come from, by the index of the interface, and where they go.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) parent: u32,
    /// Where all of them go.
    pub(crate) whole: Arc<[u32]>,
    /// Where those of a level go.
    pub(crate) thinned: Vec<(u32, Level)>,
    /// Where all of them went before.
    pub(crate) had_all: Vec<u32>,
    /// What they are, as far as they do not say it.
    pub(crate) described: Arc<Described>,
    pub(crate) counts: Arc<FlowCounter>,
    /// The kernel's filter forwards them, until it leaves them to user space: where their ways stand there.
    pub(super) places: Option<Places>,
}

/// An entry, and how far its packets are where some are left out.
#[derive(Debug)]
struct Known {
    parent: u32,
    whole: Arc<[u32]>,
    ways: Ways,
    counts: Arc<FlowCounter>,
    places: Option<Places>,
}

/// Packets of a pair that nothing was said of yet.
#[derive(Debug)]
struct Waiting {
    parent: u32,
    since: Time,
    packets: Vec<Vec<u8>>,
}

/// What is to become of a packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It goes there, and where its level is wanted ([`Table::ways`]).
    Forward(Arc<[u32]>),
    /// It is wanted nowhere.
    Drop,
    /// It may wait ([`Table::hold`]); whether the driver is to be told of it.
    Wait { is_news: bool },
    /// It came in elsewhere than it should; whether the driver is to be told of it.
    Elsewhere { is_news: bool },
    /// Too many wait already.
    Refuse,
    /// It is the kernel's.
    Leave,
}

/// All of it.
#[derive(Debug, Default)]
pub(crate) struct Table {
    entries: BTreeMap<Pair, Known>,
    waiting: BTreeMap<Pair, Waiting>,
    /// When the driver was told that packets of a pair come in elsewhere than they should.
    told: BTreeMap<Pair, Time>,
}

impl Table {
    /// Sets where packets go, and says which have waited for it; and how many in vain, as they came in elsewhere.
    pub(crate) fn set(&mut self, pair: Pair, entry: Entry) -> (Vec<Vec<u8>>, usize) {
        let Entry { parent, whole, thinned, had_all, described, counts, places } = entry;
        let mut ways = self.entries.remove(&pair).map(|known| known.ways).unwrap_or_default();
        ways.describe(described);
        ways.set(thinned, |to| had_all.contains(&to));
        self.entries.insert(pair, Known { parent, whole, ways, counts, places });
        match self.waiting.remove(&pair) {
            Some(waited) if waited.parent == parent => (waited.packets, 0),
            other => (Vec::new(), other.map_or(0, |waited| waited.packets.len())),
        }
    }

    pub(crate) fn remove(&mut self, pair: Pair) {
        self.entries.remove(&pair);
        self.told.remove(&pair);
    }

    /// User space forwards a pair from now on: where its packets come in, and how it went in the kernel up to now, if it
    /// did.
    pub(super) fn take_over(&mut self, pair: Pair) -> Option<(u32, Places, &mut Ways)> {
        let entry = self.entries.get_mut(&pair)?;
        Some((entry.parent, entry.places.take()?, &mut entry.ways))
    }

    /// Whether the kernel's filter forwards it: nothing for a pair that is not known.
    pub(super) fn is_filtered(&self, pair: Pair) -> Option<bool> {
        self.entries.get(&pair).map(|entry| entry.places.is_some())
    }

    /// Where packets of a pair go that are wanted there.
    pub(crate) fn ways(&mut self, pair: Pair) -> Option<&mut Ways> {
        self.entries.get_mut(&pair).map(|entry| &mut entry.ways)
    }

    /// What is to become of a packet that came in by an interface, which is the kernel's unless it `is_ours`.
    pub(crate) fn judge(
        &mut self,
        now: Time,
        (interface, is_ours): (u32, bool),
        pair: Pair,
        bytes: usize,
    ) -> Verdict {
        let Some(entry) = self.entries.get(&pair) else {
            return if is_ours { self.wait(now, interface, pair) } else { Verdict::Leave };
        };
        if entry.parent == interface {
            entry.counts.count(bytes, false);
            let is_wanted = !entry.whole.is_empty() || !entry.ways.is_empty();
            return if is_wanted { Verdict::Forward(Arc::clone(&entry.whole)) } else { Verdict::Drop };
        }
        if !is_ours {
            return Verdict::Leave;
        }
        entry.counts.count(bytes, true);
        let is_news = self.told.get(&pair).is_none_or(|told| now.since(*told) >= WAITING_MAX);
        if is_news {
            self.told.insert(pair, now);
        }
        Verdict::Elsewhere { is_news }
    }

    fn wait(&mut self, now: Time, interface: u32, pair: Pair) -> Verdict {
        if self.waiting.contains_key(&pair) {
            return Verdict::Wait { is_news: false };
        }
        if self.waiting.len() >= WAITING_PAIRS_MAX {
            return Verdict::Refuse;
        }
        self.waiting.insert(pair, Waiting { parent: interface, since: now, packets: Vec::new() });
        Verdict::Wait { is_news: true }
    }

    /// Keeps a packet until the driver has said where it goes. False if enough of that pair are kept.
    pub(crate) fn hold(&mut self, pair: Pair, packet: &[u8]) -> bool {
        let waiting = self.waiting.get_mut(&pair);
        let Some(waiting) = waiting.filter(|waiting| waiting.packets.len() < WAITING_PACKETS_MAX) else {
            return false;
        };
        waiting.packets.push(packet.to_vec());
        true
    }

    /// The driver could not be told of a pair: it is to be, by the next packet.
    pub(crate) fn forget(&mut self, pair: Pair) -> usize {
        self.told.remove(&pair);
        self.waiting.remove(&pair).map_or(0, |waited| waited.packets.len())
    }

    /// Forgets those of which the driver has said nothing for long, and says how many packets these were.
    pub(crate) fn expire(&mut self, now: Time) -> usize {
        let mut packets = 0;
        self.waiting.retain(|_, waiting| {
            let is_kept = now.since(waiting.since) < WAITING_MAX;
            packets += if is_kept { 0 } else { waiting.packets.len() };
            is_kept
        });
        packets
    }

    /// Whether packets may wait.
    pub(crate) fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    use std::time::Duration;

    use super::*;

    const HERE: (u32, bool) = (7, true);

    fn pair(number: usize) -> Pair {
        let source = Ipv4Addr::from(0x0a00_0000 + number as u32).into();
        Pair { group: [239, 0, 0, 1].into(), source }
    }

    fn entry(parent: u32) -> (Entry, Arc<FlowCounter>) {
        let counts = Arc::<FlowCounter>::default();
        let (whole, thinned, had_all) = ([8, 9].into(), Vec::new(), Vec::new());
        let (described, of) = (Arc::default(), Arc::clone(&counts));
        (Entry { parent, whole, thinned, had_all, described, counts: of, places: None }, counts)
    }

    fn at(seconds: u64) -> Time {
        Time::ZERO + Duration::from_secs(seconds)
    }

    #[test]
    fn the_first_packets_wait_for_the_driver_and_it_is_told_once() {
        let mut table = Table::default();
        assert_eq!(table.judge(at(0), (7, false), pair(1), 100), Verdict::Leave, "the kernel tells of it");
        assert_eq!(table.judge(at(0), HERE, pair(1), 100), Verdict::Wait { is_news: true });
        assert_eq!(table.judge(at(0), HERE, pair(1), 100), Verdict::Wait { is_news: false });
        assert!((0..WAITING_PACKETS_MAX).all(|number| table.hold(pair(1), &[number as u8])));
        assert!(!table.hold(pair(1), &[9]) && !table.hold(pair(2), &[9]));
        let (there, counts) = entry(7);
        assert_eq!(table.set(pair(1), there), (vec![vec![0], vec![1], vec![2], vec![3]], 0));
        assert_eq!(table.judge(at(0), HERE, pair(1), 100), Verdict::Forward([8, 9].into()));
        assert_eq!(counts.read(), FlowCounts { packets: 1, bytes: 100, wrong_interface: 0 });
        assert!(!table.has_waiting());
    }

    #[test]
    fn what_nothing_is_said_of_is_forgotten_and_room_is_bounded() {
        let mut table = Table::default();
        let wait = |table: &mut Table, number| table.judge(at(1), HERE, pair(number), 100);
        for number in 0..WAITING_PAIRS_MAX {
            assert_eq!(wait(&mut table, number), Verdict::Wait { is_news: true });
        }
        assert_eq!(wait(&mut table, WAITING_PAIRS_MAX), Verdict::Refuse);
        assert!(table.hold(pair(3), &[1]) && table.hold(pair(4), &[1]));
        assert_eq!((table.forget(pair(3)), table.expire(at(3)), table.expire(at(4))), (1, 0, 1));
        assert_eq!(wait(&mut table, 3), Verdict::Wait { is_news: true });
    }

    #[test]
    fn packets_that_come_in_elsewhere_are_told_of_now_and_then() {
        let mut table = Table::default();
        let (there, counts) = entry(5);
        table.set(pair(1), there);
        let elsewhere = |table: &mut Table, seconds| table.judge(at(seconds), HERE, pair(1), 100);
        for (seconds, is_news) in [(0, true), (2, false), (3, true), (4, false)] {
            assert_eq!(elsewhere(&mut table, seconds), Verdict::Elsewhere { is_news });
        }
        assert_eq!(counts.read(), FlowCounts { packets: 4, bytes: 400, wrong_interface: 4 });
        assert_eq!(table.judge(at(4), (6, false), pair(1), 100), Verdict::Leave, "the kernel counts that");
        assert_eq!(table.forget(pair(1)), 0);
        assert_eq!(elsewhere(&mut table, 4), Verdict::Elsewhere { is_news: true });
        table.remove(pair(1));
        assert_eq!(elsewhere(&mut table, 4), Verdict::Wait { is_news: true });
        assert!(table.hold(pair(1), &[1]));
        assert_eq!(table.set(pair(1), entry(5).0), (vec![], 1), "it goes on from elsewhere");
    }
}
