//! The header line of YUV4MPEG2.

use core::fmt;

use outflow_media::Malformed;

use super::malformed;
use crate::picture::{Sampling, Shape};

const MAGIC: &str = "YUV4MPEG2";

/// How many there are of one thing for how many of another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    numerator: u32,
    denominator: u32,
}

impl Rate {
    /// 25 frames a second: where nothing is said.
    pub const DEFAULT: Rate = Rate { numerator: 25, denominator: 1 };

    /// Frames in seconds; neither may be 0.
    pub const fn new(numerator: u32, denominator: u32) -> Option<Self> {
        if numerator == 0 || denominator == 0 {
            return None;
        }
        Some(Rate { numerator, denominator })
    }

    /// From text like `25`, `30000:1001` or `30000/1001`.
    pub fn parse(text: &str) -> Option<Self> {
        let (numerator, denominator) = text.split_once([':', '/']).unwrap_or((text, "1"));
        Rate::new(numerator.parse().ok()?, denominator.parse().ok()?)
    }

    /// Where a frame begins, in ticks of a clock, counted from the first.
    pub fn ticks(self, frame: u64, clock_rate: u32) -> u64 {
        let ticks = u128::from(frame) * u128::from(clock_rate) * u128::from(self.denominator);
        (ticks / u128::from(self.numerator)) as u64
    }

    /// Frames a second.
    pub fn per_second(self) -> f64 {
        f64::from(self.numerator) / f64::from(self.denominator)
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.numerator, self.denominator)
    }
}

/// What is said of a video in front of its pictures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// What its pictures are like.
    pub shape: Shape,
    /// Frames a second, if told.
    pub rate: Option<Rate>,
    /// All else that is told, as it stands: interlacing, pixel aspect, where chroma is sited.
    others: String,
}

impl Header {
    /// Of pictures whose sampling needs no more to be said.
    pub fn new(shape: Shape, rate: Rate) -> Self {
        let colour = match shape.sampling {
            Sampling::Mono => "Cmono",
            Sampling::C420 => "C420jpeg",
            Sampling::C422 => "C422",
            Sampling::C444 => "C444",
        };
        Header { shape, rate: Some(rate), others: format!(" {colour}") }
    }

    /// Reads a line, with its end or without.
    ///
    /// # Errors
    /// It is no such line, or names a size or sampling that cannot be worked on.
    pub fn parse(line: &[u8]) -> Result<Self, Malformed> {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let text = str::from_utf8(line)
            .ok()
            .filter(|text| text.chars().all(|c| c.is_ascii_graphic() || c == ' '))
            .ok_or(malformed(0, "it is no text"))?;
        let parameters = text.strip_prefix(MAGIC).filter(|rest| rest.starts_with(' '));
        let parameters = parameters.ok_or(malformed(0, "it does not begin with YUV4MPEG2"))?;
        let (mut width, mut height, mut rate) = (None, None, None);
        let (mut sampling, mut others) = (Sampling::C420, String::new());
        let mut at = MAGIC.len() + 1;
        for word in parameters[1..].split(' ') {
            let wrong = |reason| malformed(at, reason);
            match word.split_at_checked(1) {
                None => {}
                Some(("W", value)) => width = Some(side(value).ok_or(wrong("no width"))?),
                Some(("H", value)) => height = Some(side(value).ok_or(wrong("no height"))?),
                // 0:0 means that it is not known.
                Some(("F", "0:0")) => rate = None,
                Some(("F", value)) => rate = Some(Rate::parse(value).ok_or(wrong("no frame rate"))?),
                Some((kind, value)) => {
                    if kind == "C" {
                        sampling = of_colour(value)
                            .ok_or(wrong("a sampling other than mono, 420, 422 and 444 of 8 bits"))?;
                    }
                    others.extend([" ", word]);
                }
            }
            at += word.len() + 1;
        }
        let missing = malformed(line.len(), "it tells no width or no height");
        let shape = Shape::new(width.ok_or(missing)?, height.ok_or(missing)?, sampling);
        let shape = shape.ok_or(malformed(0, "more pixels than can be worked on"))?;
        Ok(Header { shape, rate, others })
    }
}

impl fmt::Display for Header {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{MAGIC} W{} H{}", self.shape.width, self.shape.height)?;
        if let Some(rate) = self.rate {
            write!(f, " F{rate}")?;
        }
        f.write_str(&self.others)
    }
}

fn side(text: &str) -> Option<u32> {
    text.parse().ok().filter(|side| *side > 0)
}

/// What `C` says. The kinds of 4:2:0 differ in where chroma is sited, not in how it is laid out.
fn of_colour(value: &str) -> Option<Sampling> {
    Some(match value {
        "mono" => Sampling::Mono,
        "420" | "420jpeg" | "420mpeg2" | "420paldv" => Sampling::C420,
        "422" => Sampling::C422,
        "444" => Sampling::C444,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_of_ffmpeg_is_read_and_written_again() {
        let line = "YUV4MPEG2 W352 H288 F30000:1001 Ip A128:117 C420jpeg XYSCSS=420JPEG";
        let header = Header::parse(line.as_bytes()).expect("valid");
        let shape = Shape { width: 352, height: 288, sampling: Sampling::C420 };
        assert_eq!((header.shape, header.rate), (shape, Rate::new(30_000, 1001)));
        assert_eq!(header.to_string(), line);
    }

    #[test]
    fn what_is_left_out_is_what_it_usually_is() {
        let header = Header::parse(b"YUV4MPEG2 H2 W4 F0:0\n").expect("valid");
        let shape = Shape { width: 4, height: 2, sampling: Sampling::C420 };
        assert_eq!((header.shape, header.rate), (shape, None));
        let made = Header::new(Shape { sampling: Sampling::Mono, ..shape }, Rate::DEFAULT);
        assert_eq!(made.to_string(), "YUV4MPEG2 W4 H2 F25:1 Cmono");
        assert_eq!(Header::parse(made.to_string().as_bytes()), Ok(made));
    }

    #[test]
    fn what_cannot_be_worked_on_is_named() {
        let cases = [
            ("YUV4MPEG W2 H2", 0, "it does not begin with YUV4MPEG2"),
            ("YUV4MPEG2 W2", 12, "it tells no width or no height"),
            ("YUV4MPEG2 W0 H2", 10, "no width"),
            ("YUV4MPEG2 W2 H-2", 13, "no height"),
            ("YUV4MPEG2 W2 H2 F25", 0, ""),
            ("YUV4MPEG2 W2 H2 F25:0", 16, "no frame rate"),
            ("YUV4MPEG2 W2 H2 C420p10", 16, "a sampling other than mono, 420, 422 and 444 of 8 bits"),
            ("YUV4MPEG2 W99999 H99999", 0, "more pixels than can be worked on"),
        ];
        for (line, offset, reason) in cases {
            match Header::parse(line.as_bytes()) {
                Ok(_) => assert_eq!(reason, "", "{line}"),
                Err(error) => assert_eq!((error.offset, error.reason), (offset, reason), "{line}"),
            }
        }
    }

    #[test]
    fn frames_begin_where_their_rate_says() {
        let ntsc = Rate::parse("30000/1001").expect("valid");
        assert_eq!((ntsc.ticks(1, 90_000), ntsc.ticks(30_000, 90_000)), (3003, 1001 * 90_000));
        assert_eq!(Rate::DEFAULT.ticks(3, 90_000), 10_800);
        assert_eq!((Rate::parse("0"), Rate::parse("1:0"), Rate::parse("x")), (None, None, None));
    }
}
