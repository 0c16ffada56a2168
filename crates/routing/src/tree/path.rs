//! Who and where: relays, streams, and the way from the source.

use core::cmp::Reverse;
use core::net::SocketAddr;
use core::time::Duration;

/// A relay, by a number that is its own among all, also after a restart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RelayId(pub u64);

/// A stream, by a number that all relays know it by. What it is made of its name is for the driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId(pub u64);

/// Where a relay is, on the operator's map: kilometres east and north of anywhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Location {
    /// East.
    pub x_km: i32,
    /// North.
    pub y_km: i32,
}

impl Location {
    /// What a round trip should take: 100 km a millisecond, which is light in a fibre there and back.
    pub fn round_trip(self, other: Location) -> Duration {
        let square = |a: i32, b: i32| u64::from(a.abs_diff(b)).pow(2);
        let km = (square(self.x_km, other.x_km).saturating_add(square(self.y_km, other.y_km))).isqrt();
        Duration::from_micros(km.saturating_mul(10))
    }
}

/// How a relay is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Contact {
    /// Which.
    pub relay: RelayId,
    /// Where it is asked.
    pub address: SocketAddr,
    /// Where it is.
    pub location: Location,
}

/// A source of a stream. The smaller one is preferred: of several of one stream, all relays that hear of it
/// move to that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Root {
    /// What the operator prefers: 0 first.
    pub preference: u8,
    /// The relay that has it.
    pub relay: RelayId,
    /// Which life of this relay: larger with each start, and preferred to the lives before.
    pub incarnation: Reverse<u64>,
}

/// How far a relay is from a source, and when that was so. The smaller one is nearer or newer: [the
/// rule](super#loops) is that a relay never takes a parent whose path is not smaller than its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Path {
    /// The source.
    pub root: Root,
    /// Its last beat that came here.
    pub beat: Reverse<u64>,
    /// Relays on the way, 0 at the source.
    pub depth: u16,
}

impl Path {
    /// That of a child.
    pub const fn below(self) -> Path {
        Path { depth: self.depth.saturating_add(1), ..self }
    }
}

/// A relay that has a stream: what the directory and other relays say of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offer {
    /// Who.
    pub contact: Contact,
    /// How far from which source. Its beat is old when it is read.
    pub path: Path,
    /// How much of its room for children is taken, up to 255 for all.
    pub load: u8,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trips_are_10_us_a_kilometre() {
        let (a, b) = (Location { x_km: -300, y_km: 0 }, Location { x_km: 0, y_km: 400 });
        assert_eq!(a.round_trip(b), Duration::from_millis(5));
        let far = [i32::MIN, i32::MAX].map(|km| Location { x_km: km, y_km: km });
        assert!(far[0].round_trip(far[1]) > Duration::from_secs(1), "no overflow");
    }

    #[test]
    fn paths_are_ordered_by_root_then_beat_then_depth() {
        let root = |preference, relay, incarnation| Root {
            preference,
            relay: RelayId(relay),
            incarnation: Reverse(incarnation),
        };
        let path = |root, beat, depth| Path { root, beat: Reverse(beat), depth };
        let order = [
            path(root(0, 9, 1), 1, 9),
            path(root(1, 2, 5), 1, 9),
            path(root(1, 2, 4), 7, 3),
            path(root(1, 2, 4), 6, 0),
            path(root(1, 2, 4), 6, 1),
            path(root(1, 3, 9), 9, 0),
        ];
        assert!(order.is_sorted());
    }
}
