//! Sizes and parts of images as they are written: "640x360", "640x360+16+0".

use core::fmt;
use core::str::FromStr;

use super::Rect;

/// Width and height, neither of which is 0; `None` if the text is no size.
pub fn parse_size(text: &str) -> Option<(usize, usize)> {
    let (width, height) = text.split_once('x')?;
    let (width, height) = (number(width)?, number(height)?);
    (width > 0 && height > 0).then_some((width, height))
}

/// Why a text is no part of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not written like 640x360+16+0: width, height, pixels left of it, rows above it")]
pub struct NoRect;

impl FromStr for Rect {
    type Err = NoRect;

    fn from_str(text: &str) -> Result<Self, NoRect> {
        let parse = || {
            let mut fields = text.splitn(3, '+');
            let (width, height) = parse_size(fields.next()?)?;
            Some(Rect { width, height, left: number(fields.next()?)?, top: number(fields.next()?)? })
        };
        parse().ok_or(NoRect)
    }
}

impl fmt::Display for Rect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Rect { left, top, width, height } = self;
        write!(f, "{width}x{height}+{left}+{top}")
    }
}

/// Digits alone; [`str::parse`] would take a sign, too.
fn number(text: &str) -> Option<usize> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_read_as_they_are_written() {
        let part = Rect { left: 16, top: 0, width: 640, height: 360 };
        assert_eq!(part.to_string(), "640x360+16+0");
        assert_eq!("640x360+16+0".parse(), Ok(part));
        for text in ["1x1", "1x1+2", "1x1+2+3+4", "1x1+-2+3", "0x1+0+0", "1x+0+0", ""] {
            assert_eq!(text.parse::<Rect>(), Err(NoRect), "{text}");
        }
        assert_eq!((parse_size("3x4"), parse_size("+3x4"), parse_size("3")), (Some((3, 4)), None, None));
    }
}
