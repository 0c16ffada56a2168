//! The frames that later ones may refer to.

use crate::Needs;

/// Temporal layers that codecs have room for.
pub const TEMPORAL_LAYERS: usize = 8;

/// The newest reference of each kind since a key frame: of the intra frames, which need none of the
/// others, and of each temporal layer.
#[derive(Debug, Clone, Copy, Default)]
pub struct References {
    intra: Option<u32>,
    layers: [Option<u32>; TEMPORAL_LAYERS],
}

impl References {
    /// Enters a frame: an intra one, or one of a temporal layer.
    pub fn enter(&mut self, number: u32, temporal: Option<u8>) {
        match temporal {
            None => self.intra = Some(number),
            Some(layer) => {
                if let Some(last) = self.layers.get_mut(usize::from(layer)) {
                    *last = Some(number);
                }
            }
        }
    }

    /// What an intra frame with this number needs: the one before it. It refers to nothing, but what its
    /// decoder knows of the stream comes from there.
    pub fn of_intra(&self, number: u32) -> Needs {
        self.intra.map_or(Needs::NOTHING, |intra| Needs::reaching(number.wrapping_sub(intra)))
    }

    /// What another frame of a temporal layer needs: the newest one of its layer or a lower one, and the
    /// newest intra frame, unless that is behind the former and so in the chain.
    pub fn of(&self, number: u32, temporal: u8) -> Needs {
        let back = |other: u32| number.wrapping_sub(other);
        let nearest = self.layers.iter().take(usize::from(temporal) + 1).flatten().map(|n| back(*n)).min();
        let intra = self.intra.map(back).filter(|intra| nearest.is_none_or(|nearest| *intra < nearest));
        let needs = |distance: Option<u32>| distance.map_or(Needs::NOTHING, Needs::reaching);
        needs(nearest).and(needs(intra))
    }

    /// The newer ones of both, as seen from a frame with this number.
    pub fn newer(&self, other: &References, number: u32) -> References {
        let newer = |a: Option<u32>, b: Option<u32>| {
            a.into_iter().chain(b).min_by_key(|known| number.wrapping_sub(*known))
        };
        References {
            intra: newer(self.intra, other.intra),
            layers: core::array::from_fn(|layer| newer(self.layers[layer], other.layers[layer])),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn distances(needs: Needs) -> Vec<u32> {
        needs.distances().collect()
    }

    #[test]
    fn frames_need_the_newest_one_of_their_layer_or_below_and_an_intra_one_in_front_of_it() {
        let mut references = References::default();
        references.enter(10, None);
        references.enter(11, Some(0));
        references.enter(12, Some(2));
        assert_eq!(distances(references.of(14, 0)), [3]);
        assert_eq!(distances(references.of(14, 2)), [2]);
        assert_eq!(distances(references.of_intra(14)), [4]);
        // An intra frame cuts no chain: what comes next may refer past it.
        references.enter(13, None);
        assert_eq!(distances(references.of(14, 0)), [1, 3]);
    }

    #[test]
    fn what_is_further_back_than_can_be_said_is_left_out() {
        let mut references = References::default();
        references.enter(1, None);
        assert_eq!(references.of_intra(33), Needs::back(32));
        assert!(references.of_intra(34).is_nothing());
    }

    #[test]
    fn of_two_sets_the_newer_ones_count() {
        let (mut a, mut b) = (References::default(), References::default());
        a.enter(u32::MAX, Some(0));
        b.enter(1, Some(0));
        b.enter(0, Some(1));
        let both = a.newer(&b, 2);
        assert_eq!((distances(both.of(2, 0)), distances(both.of(2, 1))), (vec![1], vec![1]));
        assert_eq!(distances(a.newer(&References::default(), 2).of(2, 0)), [3]);
    }
}
