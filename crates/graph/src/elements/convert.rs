//! Images with their pixels laid out in another way.

use outflow_media::image::Pixels;

use crate::elements::images::{GRAY, Images, MEMORY, Memory, Recipe, contract};
use crate::{Content, Contents, Contract, Form, Kind, Make, OUT, Opt, Settings, Unfit};

/// The element.
pub const KIND: Kind = Kind {
    name: "convert",
    doc: "Changes the layout of pixels: raw video as RGB or YCbCr-4:2:2, PPM as RGB or gray.",
    contract: |settings| promised(pixels(settings)),
    outputs: OUT,
    options: &[Opt::needed("pixels", Form::Word(&["rgb", "gray", "uyvy"]), "How they lie then."), MEMORY],
    make: Make::Core(|settings| {
        let pixels = pixels(settings);
        let pixels = pixels.ok_or_else(|| Unfit::new("no pixels to convert to", "say them by 'pixels'"))?;
        let recipe = Recipe { pixels: Some(pixels), ..Recipe::default() };
        Ok(Box::new(Images::new(recipe, Memory::of(settings))))
    }),
};

fn pixels(settings: &Settings) -> Option<Pixels> {
    match settings.text("pixels")? {
        "rgb" => Some(Pixels::Rgb),
        "gray" => Some(Pixels::Gray),
        "uyvy" => Some(Pixels::Uyvy),
        _ => None,
    }
}

/// PPM has no 4:2:2, and RFC 4175 nothing gray.
const fn promised(pixels: Option<Pixels>) -> Contract {
    match pixels {
        Some(Pixels::Gray) => contract(Contents::PNM, GRAY),
        Some(Pixels::Uyvy) => contract(Contents::RAW_VIDEO, &[(Content::RawRgb, Content::RawUyvy)]),
        Some(Pixels::Rgb) | None => {
            contract(Contents::IMAGES, &[(Content::RawUyvy, Content::RawRgb), (Content::Pgm, Content::Ppm)])
        }
    }
}
