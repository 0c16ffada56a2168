//! What a receiver asks to see of images.

use core::fmt;
use core::str::FromStr;

use outflow_media::image::{Rect, parse_size};

use crate::elements::images::{GRAY, Images, MEMORY, Memory, Recipe, Size, TAKES, contract};
use crate::{Form, Kind, Make, OUT, Opt, Setting, Settings};

/// The element.
pub const KIND: Kind = Kind {
    name: "view",
    doc: "What a receiver asks to see: a part of images, that made smaller, and that without colour.",
    contract: |settings| contract(TAKES, if View::of(settings).gray { GRAY } else { &[] }),
    outputs: OUT,
    options: &[
        Opt::new("part", Form::Part, None, "What is left, in pixels of the image."),
        Opt::new("size", Form::Dimensions, None, "A size that this fits into, once made smaller."),
        Opt::new("gray", Form::Flag, Some("false"), "Without colour."),
        MEMORY,
    ],
    make: Make::Core(|settings| {
        let view = View::of(settings);
        Ok(Box::new(Images::new(view.into(), Memory::of(settings))))
    }),
};

/// A view: a part, that made smaller, and that without colour, in this order. As text it is the query
/// of a URL, `part=640x360+16+0&size=320x180&gray=1`; the default is the empty text, everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct View {
    /// What is left, in pixels of the image.
    pub part: Option<Rect>,
    /// Width and height that this fits into, once it is made smaller.
    pub size: Option<(usize, usize)>,
    /// Without colour.
    pub gray: bool,
}

/// Why a text is no view.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{what}' is no view: write it like part=640x360+16+0&size=320x180&gray=1")]
pub struct NoView {
    /// What is wrong.
    pub what: String,
}

impl View {
    /// As the options of the element say.
    pub fn of(settings: &Settings) -> Self {
        View {
            part: settings.part("part"),
            size: settings.dimensions("size"),
            gray: settings.flag("gray").unwrap_or(false),
        }
    }
}

impl From<View> for Settings {
    fn from(View { part, size, gray }: View) -> Self {
        let mut settings = Settings::default();
        if let Some(part) = part {
            settings.set("part", Setting::Part(part));
        }
        if let Some((width, height)) = size {
            settings.set("size", Setting::Dimensions(width, height));
        }
        settings.with("gray", Setting::Flag(gray))
    }
}

impl From<View> for Recipe {
    fn from(View { part, size, gray }: View) -> Self {
        let size = size.map(|(width, height)| Size::Within(width, height));
        Recipe { part, size, gray, pixels: None }
    }
}

impl fmt::Display for View {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut join = "";
        if let Some(part) = self.part {
            write!(f, "part={part}")?;
            join = "&";
        }
        if let Some((width, height)) = self.size {
            write!(f, "{join}size={width}x{height}")?;
            join = "&";
        }
        if self.gray { write!(f, "{join}gray=1") } else { Ok(()) }
    }
}

impl FromStr for View {
    type Err = NoView;

    fn from_str(text: &str) -> Result<Self, NoView> {
        let mut view = View::default();
        for parameter in text.split('&').filter(|parameter| !parameter.is_empty()) {
            let wrong = || NoView { what: parameter.to_owned() };
            let (name, value) = parameter.split_once('=').ok_or_else(wrong)?;
            match name {
                "part" if view.part.is_none() => {
                    // In URLs, a plus may be written as %2B, and may have become a blank.
                    let value = value.replace("%2B", "+").replace("%2b", "+").replace(' ', "+");
                    view.part = Some(value.parse().map_err(|_| wrong())?);
                }
                "size" if view.size.is_none() => view.size = Some(parse_size(value).ok_or_else(wrong)?),
                "gray" => {
                    view.gray = match value {
                        "1" | "true" => true,
                        "0" | "false" => false,
                        _ => return Err(wrong()),
                    }
                }
                _ => return Err(wrong()),
            }
        }
        Ok(view)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn views_are_read_as_they_are_written() {
        let part = Some(Rect { left: 16, top: 0, width: 640, height: 360 });
        let all = View { part, size: Some((320, 180)), gray: true };
        assert_eq!(all.to_string(), "part=640x360+16+0&size=320x180&gray=1");
        let views = [all, View { part: None, ..all }, View { gray: false, ..all }, View::default()];
        for view in views {
            assert_eq!(view.to_string().parse(), Ok(view));
        }
        for text in ["part=640x360%2B16%2b0", "part=640x360 16 0", "&part=640x360+16+0&gray=0"] {
            assert_eq!(text.parse(), Ok(View { part, ..View::default() }), "{text}");
        }
    }

    #[test]
    fn what_is_no_view_is_refused() {
        for text in [
            "colour=1",
            "gray",
            "gray=2",
            "size=0x10",
            "size=10",
            "size=1x2&size=1x2",
            "size=+1x2",
            "part=1x1",
            "part=1x1+2",
            "part=1x1+2+3+4",
            "part=1x1+-2+3",
            "size=99999999999999999999x1",
        ] {
            text.parse::<View>().expect_err(text);
        }
    }
}
