//! Which of the relays that have a stream are told.

use fastrand::Rng;
use outflow_routing::tree::Location;

use crate::entry::Entry;
use crate::limits::{NEAREST, OTHERS};

/// The [`NEAREST`] to a place, nearest first, and [`OTHERS`] of the rest by chance. Of those that are as far,
/// chance says which: relays whose place is not known must not all go to the same one.
pub(crate) fn choose(mut entries: Vec<Entry>, near: Location, random: &mut Rng) -> Vec<Entry> {
    random.shuffle(&mut entries);
    entries.sort_by_key(|entry| near.round_trip(entry.offer.contact.location));
    if entries.len() > NEAREST {
        random.shuffle(&mut entries[NEAREST..]);
        entries.truncate(NEAREST + OTHERS);
    }
    entries
}

#[cfg(test)]
mod tests {
    use std::cmp::Reverse;
    use std::collections::BTreeSet;

    use outflow_routing::tree::{Contact, Offer, Path, RelayId, Root};

    use super::*;

    fn at(relay: u64, x_km: i32) -> Entry {
        let root = Root { preference: 0, relay: RelayId(0), incarnation: Reverse(1) };
        let contact = Contact {
            relay: RelayId(relay),
            address: "192.0.2.1:80".parse().expect("an address"),
            location: Location { x_km, y_km: 0 },
        };
        let path = Path { root, beat: Reverse(1), depth: 1 };
        Entry { stream: "s".to_owned(), offer: Offer { contact, path, load: 0 } }
    }

    fn relays(entries: &[Entry]) -> Vec<u64> {
        entries.iter().map(|entry| entry.offer.contact.relay.0).collect()
    }

    #[test]
    fn the_nearest_come_first_and_some_others_behind() {
        let here = Location { x_km: 500, y_km: 0 };
        let all: Vec<_> = (0..100).map(|n| at(n, n as i32 * 10)).collect();
        let mut others = BTreeSet::new();
        let mut random = Rng::with_seed(1);
        for _ in 0..200 {
            let chosen = relays(&choose(all.clone(), here, &mut random));
            assert_eq!(chosen.len(), NEAREST + OTHERS);
            assert_eq!(chosen[0], 50);
            assert!(chosen[..NEAREST].iter().all(|n| (45..=55).contains(n)), "{chosen:?}");
            assert_eq!(chosen.iter().collect::<BTreeSet<_>>().len(), chosen.len(), "each once");
            others.extend(chosen[NEAREST..].iter().copied());
        }
        assert!(others.len() > 80, "anybody may be among the others: {others:?}");
    }

    #[test]
    fn few_are_all_told_and_chance_decides_between_equals() {
        let mut random = Rng::with_seed(1);
        assert_eq!(relays(&choose(vec![at(1, 9), at(2, 3)], Location::default(), &mut random)), [2, 1]);
        let all: Vec<_> = (0..50).map(|n| at(n, 0)).collect();
        let first: BTreeSet<_> =
            (0..100).map(|_| relays(&choose(all.clone(), Location::default(), &mut random))[0]).collect();
        assert!(first.len() > 20, "{first:?}");
    }
}
