//! How pictures are coded: how many quality layers, and how small each.

use crate::limits::LAYERS_MAX;

/// Layers, if nothing else is said: those of the paper on generalized multicast.
pub const LAYERS: usize = 33;
/// How much smaller than the raw picture the base alone is, and the picture with all layers.
const RATIO_BASE: f32 = 400.0;
const RATIO_ALL: f32 = 6.0;

/// Why pictures cannot be coded so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CodingError {
    /// No layers, or more than OpenJPEG can make.
    #[error("{0} layers: there can be 1 to {LAYERS_MAX}")]
    Layers(usize),
    /// Each layer adds something.
    #[error("the ratio of layer {0} is not above 1, or not below that of the layer before it")]
    Ratio(usize),
}

/// How pictures are coded.
///
/// A ratio says how many times smaller than the raw picture (its bytes in Y4M) it is with all layers up
/// to that one, headers included: so they decrease.
#[derive(Debug, Clone, PartialEq)]
pub struct Coding {
    ratios: Vec<f32>,
}

impl Default for Coding {
    fn default() -> Self {
        Coding { ratios: geometric(LAYERS) }
    }
}

impl Coding {
    /// `layers` layers, each larger than the one before it by the same factor: from 1/400 of the raw picture
    /// to 1/6, where ordinary pictures are near lossless and have something left to say for the last layer.
    ///
    /// # Errors
    /// There cannot be that number of layers.
    pub fn of_layers(layers: usize) -> Result<Self, CodingError> {
        if (1..=LAYERS_MAX).contains(&layers) {
            Ok(Coding { ratios: geometric(layers) })
        } else {
            Err(CodingError::Layers(layers))
        }
    }

    /// A layer for each ratio.
    ///
    /// # Errors
    /// There are none or too many, or they do not decrease.
    pub fn of_ratios(ratios: Vec<f32>) -> Result<Self, CodingError> {
        if !(1..=LAYERS_MAX).contains(&ratios.len()) {
            return Err(CodingError::Layers(ratios.len()));
        }
        let mut before = f32::INFINITY;
        for (layer, ratio) in ratios.iter().enumerate() {
            // Not a number is neither.
            if !(*ratio > 1.0 && *ratio < before) {
                return Err(CodingError::Ratio(layer));
            }
            before = *ratio;
        }
        Ok(Coding { ratios })
    }

    /// The ratios, from the base up.
    pub fn ratios(&self) -> &[f32] {
        &self.ratios
    }
}

fn geometric(layers: usize) -> Vec<f32> {
    let steps = layers.max(2) - 1;
    let step = (RATIO_ALL / RATIO_BASE).powf(1.0 / steps as f32);
    // One layer alone is all of them.
    let first = if layers == 1 { RATIO_ALL } else { RATIO_BASE };
    (0..layers).map(|layer| first * step.powi(layer as i32)).collect()
}

/// How many layers a level has: level 1 is all of them, level `layers` the base alone. `None` if there is
/// no such level.
pub fn layers_of_level(layers: usize, level: usize) -> Option<usize> {
    (1..=layers).contains(&level).then(|| layers + 1 - level)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_go_from_the_base_to_all_layers() {
        let coding = Coding::default();
        let near = |ratio: f32, expected: f32| (ratio / expected - 1.0).abs() < 1e-4;
        assert_eq!(coding.ratios().len(), LAYERS);
        assert!(near(coding.ratios()[0], RATIO_BASE) && near(coding.ratios()[32], RATIO_ALL));
        for layers in 1..=LAYERS_MAX {
            let ratios = Coding::of_layers(layers).expect("a number that can be").ratios;
            assert!(near(ratios[layers - 1], RATIO_ALL), "{layers}");
            Coding::of_ratios(ratios).expect("they decrease");
        }
    }

    #[test]
    fn what_openjpeg_would_not_survive_is_refused() {
        assert_eq!(Coding::of_layers(101), Err(CodingError::Layers(101)));
        assert_eq!(Coding::of_ratios(vec![2.0; 101]), Err(CodingError::Layers(101)));
        assert_eq!(Coding::of_ratios(vec![]), Err(CodingError::Layers(0)));
        for (ratios, layer) in [(vec![9.0, 9.0], 1), (vec![9.0, f32::NAN], 1), (vec![9.0, 3.0, 1.0], 2)] {
            assert_eq!(Coding::of_ratios(ratios), Err(CodingError::Ratio(layer)));
        }
    }

    #[test]
    fn levels_count_from_the_best() {
        let all = [0, 1, 2, 33, 34].map(|level| layers_of_level(33, level));
        assert_eq!(all, [None, Some(33), Some(32), Some(1), None]);
    }
}
