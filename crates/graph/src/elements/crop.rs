//! A part of images.

use crate::elements::images::{Images, MEMORY, Memory, Recipe, TAKES, contract};
use crate::{Form, Kind, Make, OUT, Opt, Unfit};

/// The element.
pub const KIND: Kind = Kind {
    name: "crop",
    doc: "Leaves a part of images. Of JPEG 2000, the tiles that have some of it.",
    contract: |_| contract(TAKES, &[]),
    outputs: OUT,
    options: &[Opt::needed("part", Form::Part, "What is left, in pixels of the image."), MEMORY],
    make: Make::Core(|settings| {
        let part = settings.part("part");
        let part = part.ok_or_else(|| Unfit::new("no part to leave", "say it by 'part'"))?;
        let recipe = Recipe { part: Some(part), ..Recipe::default() };
        Ok(Box::new(Images::new(recipe, Memory::of(settings))))
    }),
};
