//! Smaller images.

use outflow_media::image::FACTOR_MAX;

use crate::elements::images::{Images, MEMORY, Memory, Recipe, Size, TAKES, contract};
use crate::{Form, Kind, Make, OUT, Opt, Settings, Unfit};

/// The element.
pub const KIND: Kind = Kind {
    name: "shrink",
    doc: "Makes images smaller by a whole number; each pixel is the mean of those that it stands for. \
          Of JPEG 2000, the resolution that is next in size, or the smallest that there is.",
    contract: |_| contract(TAKES, &[]),
    outputs: OUT,
    options: &[
        Opt::new("to", Form::Dimensions, None, "A size that they fit into; they keep their proportions."),
        Opt::new("factor", Form::Whole(2, FACTOR_MAX as u64), None, "By how much, instead of a size."),
        MEMORY,
    ],
    make: Make::Core(|settings| {
        let recipe = Recipe { size: Some(size(settings)?), ..Recipe::default() };
        Ok(Box::new(Images::new(recipe, Memory::of(settings))))
    }),
};

fn size(settings: &Settings) -> Result<Size, Unfit> {
    match (settings.dimensions("to"), settings.whole("factor")) {
        (Some((width, height)), None) => Ok(Size::Within(width, height)),
        (None, Some(factor)) => Ok(Size::Factor(usize::try_from(factor).unwrap_or(FACTOR_MAX))),
        (Some(_), Some(_)) => Err(Unfit::new("both a size and a factor", "say one of 'to' and 'factor'")),
        (None, None) => Err(Unfit::new("neither a size nor a factor", "say 'to' or 'factor'")),
    }
}
