//! Images without their colour.

use crate::elements::images::{GRAY, Images, MEMORY, Memory, Recipe, TAKES, contract};
use crate::{Kind, Make, OUT};

/// The element.
pub const KIND: Kind = Kind {
    name: "gray",
    doc: "Takes the colour out of images. Raw video stays of its sampling; PPM becomes PGM.",
    contract: |_| contract(TAKES, GRAY),
    outputs: OUT,
    options: &[MEMORY],
    make: Make::Core(|settings| {
        let recipe = Recipe { gray: true, ..Recipe::default() };
        Ok(Box::new(Images::new(recipe, Memory::of(settings))))
    }),
};
