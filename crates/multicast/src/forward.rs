//! Which packets are forwarded, and where: the entries that the kernel and user space have. No I/O.
//!
//! Both ask about a source and a group that they have no entry for. Each gets one, even if it goes nowhere, so
//! that its packets are dropped at no cost until a host wants them.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use outflow_media::Time;
use outflow_routing::forwarding::Pair;
use outflow_routing::membership::Level;

use crate::limits::{FLOW_IDLE, FLOWS_MAX};
use crate::ports::PortId;
use crate::sys::{FlowCounts, Vifs};

/// Where user space forwards packets, by the index of the interface.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Outputs {
    /// All of them.
    pub(crate) whole: Vec<u32>,
    /// What belongs to a level, of packets that say what they are.
    pub(crate) thinned: Vec<(u32, Level)>,
}

impl Outputs {
    pub(crate) fn is_empty(&self) -> bool {
        self.whole.is_empty() && self.thinned.is_empty()
    }
}

/// Where packets go: by the kernel, by user space, and by the relay.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Route {
    pub(crate) kernel: Vifs,
    pub(crate) user: Outputs,
    /// As those of user space: what the relay makes itself of what it has.
    pub(crate) relay: Vec<(u32, Level)>,
}

impl Route {
    /// The way to all ports that want packets that come in by `parent`: what is wanted at a lower level by the
    /// relay where it can make that, and else by user space; the others by the kernel if both have numbers in its
    /// table, and else by user space. Where there were gaps in the numbers, there is no way back to the kernel, which
    /// cannot close them.
    pub(crate) fn new(
        parent: PortId,
        wants: impl IntoIterator<Item = (PortId, Level)>,
        is_relayed: impl Fn(u32) -> bool,
        before: &Route,
    ) -> Self {
        let was_thinned = |index: u32| before.user.thinned.iter().any(|(to, _)| *to == index);
        let mut route = Route::default();
        for (to, level) in wants.into_iter().filter(|(to, _)| to.index != parent.index) {
            if level != Level::BEST && is_relayed(to.index) {
                route.relay.push((to.index, level));
            } else if level != Level::BEST || was_thinned(to.index) {
                route.user.thinned.push((to.index, level));
            } else if let (Some(_), Some(vif)) = (parent.vif, to.vif) {
                route.kernel.insert(vif);
            } else {
                route.user.whole.push(to.index);
            }
        }
        route
    }

    /// Whether no port wants packets.
    pub(crate) fn is_empty(&self) -> bool {
        self.kernel == Vifs::default() && self.user.is_empty() && self.relay.is_empty()
    }
}

/// What of a group the relay sends to the hosts that want it, from its own addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Relayed {
    /// What is wanted at lower levels. The kernel forwards what is wanted at its best, or by hosts that take
    /// nothing that comes from the relay.
    Lower,
    /// All of it: the kernel forwards nothing, and nothing is joined upstream.
    All,
}

/// An entry.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) parent: PortId,
    /// Whether the source may be there.
    pub(crate) is_placed: bool,
    pub(crate) route: Route,
    /// Packets that came in by `parent` and by others, when it was last asked.
    counted: FlowCounts,
    /// Of the former, how many there were when one came in elsewhere.
    at_wrong: Option<u64>,
    used: Time,
}

/// What is to become of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Use {
    /// It stays; nothing came since it was last looked at.
    Keep,
    /// Packets came in by this interface, where they should.
    Data(PortId),
    Remove,
}

/// The entries.
#[derive(Debug, Default)]
pub(crate) struct Flows {
    entries: BTreeMap<Pair, Entry>,
}

const fn right(counts: &FlowCounts) -> u64 {
    counts.packets.saturating_sub(counts.wrong_interface)
}

impl Flows {
    /// Makes an entry, or another one in its place. False if there are too many.
    pub(crate) fn insert(&mut self, now: Time, pair: Pair, parent: PortId, is_placed: bool) -> bool {
        if self.entries.len() >= FLOWS_MAX && !self.entries.contains_key(&pair) {
            return false;
        }
        let (route, counted) = (Route::default(), FlowCounts::default());
        let entry = Entry { parent, is_placed, route, counted, at_wrong: None, used: now };
        self.entries.insert(pair, entry);
        true
    }

    pub(crate) fn get(&self, pair: Pair) -> Option<&Entry> {
        self.entries.get(&pair)
    }

    pub(crate) fn remove(&mut self, pair: Pair) -> Option<Entry> {
        self.entries.remove(&pair)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (Pair, &Entry)> {
        self.entries.iter().map(|(pair, entry)| (*pair, entry))
    }

    /// The pairs of a group, or all.
    pub(crate) fn pairs(&self, group: Option<IpAddr>) -> Vec<Pair> {
        let Some(group) = group else { return self.entries.keys().copied().collect() };
        // The lowest of all addresses.
        let first = Pair { group, source: Ipv4Addr::UNSPECIFIED.into() };
        let behind = self.entries.range(first..).map(|(pair, _)| *pair);
        behind.take_while(|pair| pair.group == group).collect()
    }

    /// Sets where packets go. True if that is new.
    pub(crate) fn set_route(&mut self, pair: Pair, route: Route) -> bool {
        let Some(entry) = self.entries.get_mut(&pair) else { return false };
        let is_new = entry.route != route;
        entry.route = route;
        is_new
    }

    /// A packet came in by another interface than the entry says. True if the source is there now: nothing
    /// came in where it was since this was last asked, or it may not be there at all.
    pub(crate) fn is_moved(&mut self, pair: Pair, counts: &FlowCounts) -> bool {
        let Some(entry) = self.entries.get_mut(&pair) else { return false };
        let before = entry.at_wrong.replace(right(counts));
        !entry.is_placed || before == Some(right(counts))
    }

    /// Whether an entry is still of use, by what was counted. One by which packets come in elsewhere only is
    /// removed, so that it is asked again.
    pub(crate) fn settle(&mut self, now: Time, pair: Pair, counts: FlowCounts) -> Use {
        let Some(entry) = self.entries.get_mut(&pair) else { return Use::Remove };
        let before = std::mem::replace(&mut entry.counted, counts);
        if right(&counts) != right(&before) {
            entry.used = now;
            return Use::Data(entry.parent);
        }
        let is_elsewhere = counts.wrong_interface != before.wrong_interface;
        let idle: Duration = now.since(entry.used);
        if is_elsewhere || idle >= FLOW_IDLE { Use::Remove } else { Use::Keep }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(group: u8, source: u8) -> Pair {
        Pair { group: [239, 0, 0, group].into(), source: [10, 0, 0, source].into() }
    }

    /// The interface of this index, with the number before it in the kernel's table, which 33 and more do not have.
    fn port(index: u32) -> PortId {
        PortId { index, vif: (1..=32).contains(&index).then(|| index as u16 - 1) }
    }

    fn thinned(to: &[(u32, Level)]) -> Outputs {
        Outputs { whole: Vec::new(), thinned: to.to_vec() }
    }

    fn counts(packets: u64, wrong_interface: u64) -> FlowCounts {
        FlowCounts { packets, bytes: 0, wrong_interface }
    }

    #[test]
    fn the_kernel_forwards_the_best_level_alone_and_never_back() {
        let low = Level::new(3).expect("not zero");
        let wants = [(1, Level::BEST), (2, low), (3, Level::BEST), (6, Level::BEST), (7, low)];
        let wants = wants.map(|(index, level)| (port(index), level));
        let route = Route::new(port(3), wants, |index| index < 7, &Route::default());
        assert_eq!(route.kernel, Vifs(0b10_0001));
        assert_eq!(
            (route.user, route.relay),
            (thinned(&[(7, low)]), vec![(2, low)]),
            "the last is no relay's"
        );
    }

    #[test]
    fn user_space_forwards_what_has_no_number_at_one_end() {
        let low = Level::new(3).expect("not zero");
        let wants = [(1, Level::BEST), (2, Level::BEST), (40, Level::BEST), (41, Level::BEST), (42, low)];
        let wants = wants.map(|(index, level)| (port(index), level));
        let route = |from| Route::new(port(from), wants, |_| true, &Route::default());
        let from_kernel = route(1);
        assert_eq!((from_kernel.kernel, from_kernel.user.whole), (Vifs(0b10), vec![40, 41]));
        let from_other = route(40);
        assert_eq!((from_other.kernel, from_other.user.whole), (Vifs(0), vec![1, 2, 41]));
        assert_eq!(from_other.relay, [(42, low)]);
    }

    #[test]
    fn what_has_lost_packets_on_purpose_stays_where_its_numbers_are_kept() {
        let low = Level::new(3).expect("not zero");
        let next = |level, before: &Route| Route::new(port(1), [(port(2), level)], |_| false, before);
        let whole = next(Level::BEST, &Route::default());
        assert_eq!((whole.kernel, &whole.user), (Vifs(0b10), &Outputs::default()));
        let lower = next(low, &whole);
        assert_eq!((lower.kernel, &lower.user), (Vifs(0), &thinned(&[(2, low)])));
        let again = next(Level::BEST, &lower);
        assert_eq!((again.kernel, &again.user), (Vifs(0), &thinned(&[(2, Level::BEST)])));
        let none = Route::new(port(1), [], |_| false, &again);
        assert!(none.is_empty() && !again.is_empty());
        assert_eq!(next(Level::BEST, &none), whole, "it begins again");
    }

    #[test]
    fn pairs_are_found_by_their_group() {
        let mut flows = Flows::default();
        for (group, source) in [(1, 9), (2, 1), (2, 255), (3, 1)] {
            assert!(flows.insert(Time::ZERO, pair(group, source), port(1), true));
        }
        assert_eq!(flows.pairs(Some(pair(2, 0).group)), [pair(2, 1), pair(2, 255)]);
        assert_eq!(flows.pairs(None).len(), 4);
        let route = || Route::new(port(1), [(port(2), Level::BEST)], |_| true, &Route::default());
        assert!(flows.set_route(pair(1, 9), route()));
        assert!(!flows.set_route(pair(1, 9), route()));
    }

    #[test]
    fn further_pairs_than_there_is_room_for_are_refused() {
        let mut flows = Flows::default();
        let nth = |number: usize| Pair { source: Ipv4Addr::from(number as u32).into(), ..pair(1, 0) };
        assert!((0..FLOWS_MAX).all(|number| flows.insert(Time::ZERO, nth(number), port(1), true)));
        assert!(!flows.insert(Time::ZERO, nth(FLOWS_MAX), port(1), true));
        assert!(flows.insert(Time::ZERO, nth(3), port(2), true), "one that is there may change");
    }

    #[test]
    fn a_source_has_moved_once_nothing_comes_from_where_it_was() {
        let mut flows = Flows::default();
        flows.insert(Time::ZERO, pair(1, 1), port(1), true);
        assert!(!flows.is_moved(pair(1, 1), &counts(11, 1)), "both may be alive");
        assert!(!flows.is_moved(pair(1, 1), &counts(25, 5)), "both are");
        assert!(flows.is_moved(pair(1, 1), &counts(29, 9)), "nothing but wrong ones");
        flows.insert(Time::ZERO, pair(1, 2), port(1), false);
        assert!(flows.is_moved(pair(1, 2), &counts(10, 1)), "it may not be there");
    }

    #[test]
    fn what_is_not_used_is_removed() {
        let mut flows = Flows::default();
        flows.insert(Time::ZERO, pair(1, 1), port(1), true);
        let at = |seconds| Time::ZERO + Duration::from_secs(seconds);
        assert_eq!(flows.settle(at(50), pair(1, 1), counts(3, 0)), Use::Data(port(1)));
        assert_eq!(flows.settle(at(100), pair(1, 1), counts(3, 0)), Use::Keep);
        assert_eq!(flows.settle(at(110), pair(1, 1), counts(3, 0)), Use::Remove);
        assert_eq!(flows.settle(at(120), pair(1, 1), counts(4, 0)), Use::Data(port(1)));
        assert_eq!(flows.settle(at(121), pair(1, 1), counts(7, 3)), Use::Remove, "it is elsewhere");
    }
}
