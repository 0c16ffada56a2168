//! Which relay has which stream, as a place knows it that can be unreachable.

use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};

use fastrand::Rng;
use outflow_media::Time;
use outflow_routing::tree::limits::ENTRY_LIFE;
use outflow_routing::tree::{Contact, Offer, RelayId, StreamId};

/// One way to it.
pub(super) const WAY: Duration = Duration::from_millis(20);
/// Entries in an answer.
const ANSWER: usize = 16;
/// What the near ones of an answer are the nearest of.
const SAMPLE: usize = 96;

/// Which relay has which stream.
#[derive(Debug)]
pub(crate) struct Directory {
    pub(super) is_there: bool,
    entries: BTreeMap<StreamId, BTreeMap<RelayId, (Offer, Time)>>,
}

impl Directory {
    /// One that knows of nothing.
    pub(crate) const fn new() -> Self {
        Directory { is_there: true, entries: BTreeMap::new() }
    }

    /// A relay has a stream, or has it no more.
    pub(crate) fn put(&mut self, now: Time, stream: StreamId, relay: RelayId, offer: Option<Offer>) {
        let entries = self.entries.entry(stream).or_default();
        match offer {
            Some(offer) => entries.insert(relay, (offer, now + ENTRY_LIFE)),
            None => entries.remove(&relay),
        };
    }

    /// How many entries are not too old.
    pub(crate) fn len(&self, now: Time) -> usize {
        self.entries.values().flat_map(BTreeMap::values).filter(|(_, until)| *until > now).count()
    }

    /// Half of the answer are the nearest of a sample, half are any.
    pub(crate) fn answer(
        &mut self,
        now: Time,
        stream: StreamId,
        asker: Contact,
        random: &mut Rng,
    ) -> Vec<Offer> {
        let Some(entries) = self.entries.get_mut(&stream) else { return Vec::new() };
        let last = entries.last_key_value().map_or(0, |(relay, _)| relay.0);
        let mut sample = BTreeSet::new();
        if entries.len() <= SAMPLE {
            sample.extend(entries.keys().copied());
        } else {
            for _ in 0..SAMPLE {
                let from = RelayId(random.u64(..=last));
                sample.extend(entries.range(from..).next().map(|(relay, _)| *relay));
            }
        }
        let mut offers = Vec::with_capacity(sample.len());
        for relay in sample {
            match entries.get(&relay) {
                Some((_, until)) if *until <= now => drop(entries.remove(&relay)),
                Some((offer, _)) if relay != asker.relay => offers.push(*offer),
                _ => (),
            }
        }
        random.shuffle(&mut offers);
        let mut near = offers.split_off(offers.len().min(ANSWER / 2));
        near.sort_by_key(|offer| asker.location.round_trip(offer.contact.location));
        offers.extend(near.into_iter().take(ANSWER / 2));
        offers
    }
}
