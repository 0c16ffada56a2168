//! The flows that the kernel's filter forwards, and those that it leaves to user space.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use outflow_kernel::limits::WAYS_MAX;
use outflow_kernel::thin::{Counts, Filter, FlowId, Seat, Track, TrackId, Version, Way};
use outflow_packet::gmc::{Prioritized, Ways};
use outflow_packet::{Level, MaxLayer};
use outflow_routing::forwarding::Pair;
use outflow_routing::membership::Family;

use crate::sys::Ethernet;

/// A way that has a place in a flow's table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    to: u32,
    epoch: u32,
    begins: MaxLayer,
}

/// Where the ways of a flow stand in the kernel. Each stays where it is as long as it is there.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Places(Vec<Option<Place>>);

/// A way that is wanted: where it leads, at which level, and whether all went there before.
pub(super) type Wanted = (u32, Level, bool);

/// A flow as the kernel's filter has it.
pub(super) const fn flow_id(pair: Pair, ifindex: u32) -> FlowId {
    FlowId { source: pair.source, group: pair.group, ifindex }
}

/// What the kernel's filter is told; by the driver, before its table of multicast routing.
#[derive(Debug)]
pub(super) struct Filtered {
    version: Version,
    filter: Arc<Filter>,
    flows: BTreeMap<Pair, (FlowId, Places)>,
}

impl Filtered {
    pub(super) fn new(family: Family, filter: Arc<Filter>) -> Self {
        let version = match family {
            Family::V4 => Version::V4,
            Family::V6 => Version::V6,
        };
        Filtered { version, filter, flows: BTreeMap::new() }
    }

    /// Has it sit at an interface of Ethernet.
    pub(super) fn sit(&self, ifindex: u32) -> Result<Seat, String> {
        self.filter.attach(self.version, ifindex).map_err(|error| error.to_string())
    }

    /// What it has done with packets of this family.
    pub(super) fn counts(&self) -> Counts {
        self.filter.counts(self.version)
    }

    pub(super) fn filter(&self) -> &Arc<Filter> {
        &self.filter
    }

    /// Where packets of a pair go from now on, by the kernel if it can. Without a way, or if it cannot, or could not
    /// once, they are user space's.
    ///
    /// # Errors
    /// The kernel has no memory for either.
    pub(super) fn set(
        &mut self,
        (pair, parent): (Pair, u32),
        (wanted, described): (&[Wanted], &[Prioritized]),
        ethernet: impl Fn(u32) -> Option<Ethernet>,
    ) -> io::Result<Option<Places>> {
        let id = flow_id(pair, parent);
        let (_, places) = self.flows.entry(pair).or_insert_with(|| (id, Places::default()));
        if !wanted.is_empty() && wanted.len() <= WAYS_MAX && !self.filter.is_given(&id) {
            places.settle(|| self.filter.next_epoch(), wanted);
            let told = places.told(wanted, ethernet);
            if told.is_some_and(|told| self.filter.set(&id, &told, described)) {
                return Ok(Some(places.clone()));
            }
        }
        if self.filter.give(&id) { Ok(None) } else { Err(io::ErrorKind::OutOfMemory.into()) }
    }

    /// Whether it forwards a pair, as far as it has not left it to user space.
    pub(super) fn has(&self, pair: Pair) -> bool {
        self.flows.get(&pair).is_some_and(|(id, _)| !self.filter.is_given(id))
    }

    pub(super) fn remove(&mut self, pair: Pair) {
        if let Some((id, _)) = self.flows.remove(&pair) {
            self.filter.remove(&id);
        }
    }
}

impl Drop for Filtered {
    fn drop(&mut self) {
        // Others may have the filter after this one.
        self.flows.values().for_each(|(id, _)| self.filter.remove(id));
    }
}

/// User space goes on with a flow where the kernel was.
pub(super) fn take_over(filter: &Filter, id: &FlowId, places: &Places, ways: &mut Ways) {
    filter.give(id);
    for Track { id: TrackId { port, ssrc }, reading, states } in filter.tracks(id) {
        ways.resume((port, ssrc), reading, |to| {
            let (at, epoch) = places.at(to)?;
            let state = states.get(at).filter(|state| state.epoch == epoch)?;
            Some((state.max_layer, state.closed))
        });
    }
}

impl Places {
    fn at(&self, to: u32) -> Option<(usize, u32)> {
        let mut places = self.0.iter().enumerate();
        places.find_map(|(at, place)| place.filter(|place| place.to == to).map(|place| (at, place.epoch)))
    }

    /// Gives a place to each way that has none, and takes those of others.
    fn settle(&mut self, mut epoch: impl FnMut() -> u32, wanted: &[Wanted]) {
        for place in &mut self.0 {
            *place = place.filter(|place| wanted.iter().any(|(to, ..)| *to == place.to));
        }
        for (to, _, had_all) in wanted {
            if self.at(*to).is_some() {
                continue;
            }
            let begins = if *had_all { MaxLayer::ALL } else { MaxLayer::up_to(0) };
            let place = Some(Place { to: *to, epoch: epoch(), begins });
            match self.0.iter_mut().find(|place| place.is_none()) {
                Some(free) => *free = place,
                None => self.0.push(place),
            }
        }
    }

    /// As the kernel is told of them; nothing if one leads to no Ethernet.
    fn told(
        &self,
        wanted: &[Wanted],
        ethernet: impl Fn(u32) -> Option<Ethernet>,
    ) -> Option<Vec<Option<Way>>> {
        let way = |place: Place| {
            let (_, level, _) = *wanted.iter().find(|(to, ..)| *to == place.to)?;
            let Place { to: ifindex, epoch, begins } = place;
            let Ethernet { address: source_mac, mtu } = ethernet(ifindex)?;
            Some(Way { ifindex, epoch, source_mac, mtu, level, begins })
        };
        self.0.iter().map(|place| place.map_or(Some(None), |place| way(place).map(Some))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_way_stays_at_its_place_and_one_that_comes_again_is_another() {
        let (mut places, mut epochs) = (Places::default(), 1..);
        let mut epoch = || epochs.next().expect("there are more");
        let (all, base) = (MaxLayer::ALL, MaxLayer::up_to(0));
        let place = |to, epoch, begins| Some(Place { to, epoch, begins });
        let wanted = |ways: &[u32]| ways.iter().map(|to| (*to, Level::BEST, *to == 8)).collect::<Vec<_>>();
        places.settle(&mut epoch, &wanted(&[7, 8, 9]));
        let first = [place(7, 1, base), place(8, 2, all), place(9, 3, base)];
        assert_eq!(places.0, first);
        places.settle(&mut epoch, &wanted(&[9, 7]));
        assert_eq!(places.0, [first[0], None, first[2]]);
        places.settle(&mut epoch, &wanted(&[8, 9, 7, 10]));
        assert_eq!(places.0, [first[0], place(8, 4, all), first[2], place(10, 5, base)]);
        assert_eq!((places.at(9), places.at(6)), (Some((2, 3)), None));
    }

    #[test]
    fn a_flow_with_a_way_that_is_no_ethernet_is_not_told() {
        let mut places = Places::default();
        let wanted = [(7, Level::BEST, false), (8, Level::BEST, false)];
        places.settle(|| 1, &wanted);
        places.settle(|| 1, &wanted[1..]);
        let told = places
            .told(&wanted[1..], |to| Some(Ethernet { address: [to as u8; 6], mtu: 1500 }))
            .expect("all are");
        assert_eq!(
            told.iter().map(|way| way.map(|way| way.source_mac)).collect::<Vec<_>>(),
            [None, Some([8; 6])]
        );
        assert_eq!(places.told(&wanted[1..], |_| None), None);
    }
}
