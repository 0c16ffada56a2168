//! Quantities with their units: sizes, rates, durations.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::Invalid;

/// A number of bytes: "8 MB", "64 KiB".
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ByteSize(pub u64);

/// Bits a second: "20 Mbit/s".
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct BitRate(pub u64);

/// A share of something, in thousandths of a percent: "50 %".
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Share(pub u64);

impl Share {
    /// In thousandths of a percent.
    pub fn thousandths(self) -> u32 {
        u32::try_from(self.0).unwrap_or(u32::MAX)
    }

    /// What a class is promised, if it is.
    pub fn promised(share: Option<Share>) -> outflow_link::Share {
        share.map_or(outflow_link::Share::NONE, |share| outflow_link::Share::of_100_000(share.thousandths()))
    }
}

impl FromStr for Share {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let number = text.trim().strip_suffix('%').and_then(|number| number.trim().parse::<f64>().ok());
        let share = number.filter(|percent| (0.001..=100_000.0).contains(percent));
        let wrong = || Invalid::new(format!("'{text}' is no share"), "write it like \"50 %\"");
        share.map(|percent| Share((percent * 1000.0).round() as u64)).ok_or_else(wrong)
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} %", self.0 as f64 / 1000.0)
    }
}

type Units = [(&'static str, u64)];

const BYTES: &Units = &[
    ("B", 1),
    ("kB", 1_000),
    ("KiB", 1 << 10),
    ("MB", 1_000_000),
    ("MiB", 1 << 20),
    ("GB", 1_000_000_000),
    ("GiB", 1 << 30),
];
const BITS_A_SECOND: &Units =
    &[("bit/s", 1), ("kbit/s", 1_000), ("Mbit/s", 1_000_000), ("Gbit/s", 1_000_000_000)];
const NANOSECONDS: &Units = &[
    ("ns", 1),
    ("us", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("min", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

impl ByteSize {
    /// The number of bytes, as far as this machine can count.
    pub fn as_usize(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }
}

impl FromStr for ByteSize {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        quantity(text, BYTES, "size", "8 MB").map(ByteSize)
    }
}

impl FromStr for BitRate {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        quantity(text, BITS_A_SECOND, "rate", "20 Mbit/s").map(BitRate)
    }
}

/// Reads a duration such as "10 s", "2.5 s", "500 ms" or "2 min".
///
/// # Errors
/// No number, no unit or an unknown one, or more than fits.
pub fn parse_duration(text: &str) -> Result<Duration, Invalid> {
    quantity(text, NANOSECONDS, "duration", "10 s").map(Duration::from_nanos)
}

impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_quantity(f, self.0, BYTES)
    }
}

impl fmt::Display for BitRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_quantity(f, self.0, BITS_A_SECOND)
    }
}

/// A duration as it is written in a configuration: displays as "10 s".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written(pub Duration);

impl fmt::Display for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_quantity(f, u64::try_from(self.0.as_nanos()).unwrap_or(u64::MAX), NANOSECONDS)
    }
}

/// Reads `<digits>[.<digits>] <unit>` into whole base units, exactly: no rounding, no overflow.
fn quantity(text: &str, units: &Units, kind: &str, example: &str) -> Result<u64, Invalid> {
    let trimmed = text.trim();
    let help = || format!("write it like \"{example}\"; units: {}", names(units));
    let end = trimmed.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(trimmed.len());
    let (number, unit) = trimmed.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = whole.len() + fraction.len();
    if whole.is_empty() || number.ends_with('.') || fraction.contains('.') || digits > 18 {
        return Err(Invalid::new(format!("'{text}' is no {kind}"), help()));
    }
    let unit = unit.trim_start();
    let Some(&(_, factor)) = units.iter().find(|(name, _)| *name == unit) else {
        let what = if unit.is_empty() {
            format!("'{text}' has no unit")
        } else {
            format!("'{text}' has the unknown unit '{unit}'")
        };
        return Err(Invalid::new(what, help()));
    };
    let scale = 10_u128.pow(fraction.len() as u32);
    let all: u128 = format!("{whole}{fraction}").parse().map_err(|_| Invalid::new("no number", help()))?;
    let product = all * u128::from(factor);
    if !product.is_multiple_of(scale) {
        return Err(Invalid::new(format!("'{text}' is finer than one {}", units[0].0), help()));
    }
    u64::try_from(product / scale)
        .map_err(|_| Invalid::new(format!("'{text}' is too large a {kind}"), "choose a smaller one"))
}

fn names(units: &Units) -> String {
    units.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
}

/// Writes `value` in the largest unit of which it is a whole number.
fn write_quantity(f: &mut fmt::Formatter<'_>, value: u64, units: &Units) -> fmt::Result {
    let whole = |factor: u64| value != 0 && value.is_multiple_of(factor);
    let (name, factor) = units
        .iter()
        .filter(|(_, factor)| whole(*factor))
        .max_by_key(|(_, factor)| *factor)
        .unwrap_or(&units[0]);
    write!(f, "{} {name}", value / factor)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn sizes_rates_and_durations_have_units() {
        assert_eq!("8 MB".parse(), Ok(ByteSize(8_000_000)));
        assert_eq!(" 64KiB ".parse(), Ok(ByteSize(65_536)));
        assert_eq!("1.5 kB".parse(), Ok(ByteSize(1_500)));
        assert_eq!("20 Mbit/s".parse(), Ok(BitRate(20_000_000)));
        assert_eq!(parse_duration("2.5 s"), Ok(Duration::from_millis(2_500)));
        assert_eq!(parse_duration("2 min"), Ok(Duration::from_secs(120)));
    }

    #[test]
    fn what_is_no_quantity_is_refused_with_the_reason() {
        let refused = |text: &str| text.parse::<ByteSize>().expect_err(text);
        assert_eq!(refused("8").what, "'8' has no unit");
        assert!(refused("8 mb").what.contains("unknown unit 'mb'"));
        assert!(refused("8 mb").help.contains("MiB"));
        for text in ["", "MB", "-1 MB", "1. MB", "1.2.3 MB", ".5 MB", "8 M B", "8 MB MB", "∞ MB", "9e9 MB"]
        {
            refused(text);
        }
        assert!(refused("1.5 B").what.contains("finer"));
        assert!(refused("99999999999999999 GB").what.contains("too large"));
        assert!(refused("9999999999999999999999 B").what.contains("no size"));
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(bytes: u64) {
            // More than 18 digits are refused; no size has as many.
            let bytes = bytes % 1_000_000_000_000_000_000;
            prop_assert_eq!(ByteSize(bytes).to_string().parse(), Ok(ByteSize(bytes)));
            prop_assert_eq!(BitRate(bytes).to_string().parse(), Ok(BitRate(bytes)));
            let duration = Duration::from_nanos(bytes);
            prop_assert_eq!(parse_duration(&Written(duration).to_string()), Ok(duration));
        }

        #[test]
        fn no_text_panics(text: String) {
            let _ = text.parse::<ByteSize>();
            let _ = parse_duration(&text);
        }
    }
}
