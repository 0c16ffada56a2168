//! Images without their colour.

use crate::element::images::{Images, MEMORY, Memory, Recipe, TAKES};
use crate::graph::{Contract, Gives, Kind, Make, OUT};

/// The element.
pub const KIND: Kind = Kind {
    name: "gray",
    doc: "Takes the colour out of images. Raw video stays of its sampling; PPM becomes PGM.",
    contract: |_| Contract { takes: TAKES, gives: Gives::Same },
    outputs: OUT,
    options: &[MEMORY],
    make: Make::Core(|settings| {
        let recipe = Recipe { gray: true, ..Recipe::default() };
        Ok(Box::new(Images::new(recipe, Memory::of(settings))))
    }),
};
