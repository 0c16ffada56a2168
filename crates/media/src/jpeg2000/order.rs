//! In which order the packets of a tile come (T.800, B.12).

use super::geometry::Precincts;
use super::header::Header;

/// A packet's place: of which layer, resolution, component and precinct it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) layer: u16,
    pub(super) resolution: u8,
    pub(super) component: u8,
    pub(super) precinct: u32,
}

/// The packets of a tile, in the order of the codestream.
pub(super) fn places(header: &Header, precincts: &Precincts) -> Vec<Place> {
    let mut places = Vec::new();
    for (component, resolutions) in (0..).zip(precincts) {
        for (resolution, all) in (0..).zip(resolutions) {
            for (precinct, known) in (0..).zip(all) {
                for layer in 0..header.layers {
                    let place = Place { layer, resolution, component, precinct };
                    places.push((key(header.progression, place, known.position), place));
                }
            }
        }
    }
    places.sort_unstable_by_key(|(key, _)| *key);
    places.into_iter().map(|(_, place)| place).collect()
}

/// What packets are sorted by; no two have the same.
fn key(progression: u8, place: Place, (y, x): (u64, u64)) -> [u64; 6] {
    let (l, r, c, p) = (
        u64::from(place.layer),
        u64::from(place.resolution),
        u64::from(place.component),
        u64::from(place.precinct),
    );
    match progression {
        0 => [l, r, c, p, 0, 0],
        1 => [r, l, c, p, 0, 0],
        2 => [r, y, x, c, p, l],
        3 => [y, x, c, r, p, l],
        _ => [c, y, x, r, p, l],
    }
}
