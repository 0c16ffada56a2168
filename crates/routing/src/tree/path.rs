//! Relays, streams, and the way from the source.

use core::cmp::Reverse;
use core::fmt;
use core::net::SocketAddr;
use core::str::FromStr;
use core::time::Duration;

use serde::{Deserialize, Serialize};

/// A relay, by a number that is its own among all, also after a restart. In text it has 16 hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RelayId(pub u64);

impl fmt::Display for RelayId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl From<RelayId> for String {
    fn from(relay: RelayId) -> String {
        relay.to_string()
    }
}

/// What was given is not the number of a relay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a relay's number is written with 16 hexadecimal digits")]
pub struct NoRelayId;

impl FromStr for RelayId {
    type Err = NoRelayId;

    fn from_str(text: &str) -> Result<Self, NoRelayId> {
        let is_one = text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let number = is_one.then(|| u64::from_str_radix(text, 16).ok()).flatten();
        number.map(RelayId).ok_or(NoRelayId)
    }
}

impl TryFrom<String> for RelayId {
    type Error = NoRelayId;

    fn try_from(text: String) -> Result<Self, NoRelayId> {
        text.parse()
    }
}

/// A stream, by a number that all relays know it by. What it is made of its name is for the driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId(pub u64);

/// Where a relay is, on the operator's map: kilometres east and north of anywhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offer {
    /// The relay.
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
    fn relays_are_written_with_16_digits() {
        let relay = RelayId(0x00ab_cdef_0123_4567);
        assert_eq!(relay.to_string(), "00abcdef01234567");
        assert_eq!("00abcdef01234567".parse(), Ok(relay));
        for text in ["", "abcdef01234567", "+0abcdef01234567", "00abcdef012345678"] {
            assert_eq!(text.parse::<RelayId>(), Err(NoRelayId), "{text}");
        }
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
