//! Times and sizes as people write them.

use core::fmt;
use core::time::Duration;

use crate::service::Class;

/// `200 ms`, `200ms`, `3 s`, `40 us`; `inf` for what has no end. Only whole numbers.
pub(super) fn time(text: &str) -> Option<Option<Duration>> {
    if text.trim() == "inf" {
        return Some(None);
    }
    let scale = |unit: &str| match unit {
        "s" => Some(1_000_000),
        "ms" => Some(1000),
        "us" => Some(1),
        _ => None,
    };
    scaled(text, scale).map(|us| Some(Duration::from_micros(us)))
}

/// `reliable`, `partial`, `unreliable`.
pub(super) fn class(text: &str) -> Option<Class> {
    [Class::Reliable, Class::Partial, Class::Unreliable].into_iter().find(|known| class_word(*known) == text)
}

pub(super) const fn class_word(class: Class) -> &'static str {
    match class {
        Class::Reliable => "reliable",
        Class::Partial => "partial",
        Class::Unreliable => "unreliable",
    }
}

/// `8 MiB`, `512KiB`, `1 GiB`, `100 B`.
pub(super) fn bytes(text: &str) -> Option<u32> {
    let scale = |unit: &str| match unit {
        "GiB" => Some(1 << 30),
        "MiB" => Some(1 << 20),
        "KiB" => Some(1 << 10),
        "B" => Some(1),
        _ => None,
    };
    scaled(text, scale).and_then(|bytes| u32::try_from(bytes).ok())
}

fn scaled(text: &str, scale: impl Fn(&str) -> Option<u64>) -> Option<u64> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = text.split_at(digits);
    number.parse::<u64>().ok()?.checked_mul(scale(unit.trim_start())?)
}

/// A time in the largest unit that leaves a whole number.
pub(super) struct Time(pub(super) Option<Duration>);

/// A size in the largest unit that leaves a whole number.
pub(super) struct Bytes(pub(super) u32);

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.map(|time| time.as_micros()) {
            None => f.write_str("inf"),
            Some(us) if us > 0 && us % 1_000_000 == 0 => write!(f, "{} s", us / 1_000_000),
            Some(us) if us % 1000 == 0 => write!(f, "{} ms", us / 1000),
            Some(us) => write!(f, "{us} us"),
        }
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [(30, "GiB"), (20, "MiB"), (10, "KiB"), (0, "B")];
        let fits = |(shift, _): &(u32, &str)| self.0 >> shift > 0 && self.0.trailing_zeros() >= *shift;
        let (shift, unit) = units.into_iter().find(fits).unwrap_or((0, "B"));
        write!(f, "{} {unit}", self.0 >> shift)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_sizes_are_read_as_they_are_said() {
        for us in [0, 1, 40_000, 1_000_000, 1_500_000, 86_400_000_000] {
            let told = Some(Duration::from_micros(us));
            assert_eq!(time(&Time(told).to_string()), Some(told));
        }
        assert_eq!(time(&Time(None).to_string()), Some(None));
        for size in [0, 1, 1023, 1024, 3 << 20, 1 << 30, u32::MAX] {
            assert_eq!(bytes(&Bytes(size).to_string()), Some(size));
        }
        assert_eq!((Time(time("1500ms").flatten()).to_string(), Bytes(8 << 20).to_string()).1, "8 MiB");
    }

    #[test]
    fn what_is_no_time_or_size_is_none() {
        for text in ["", "40", "ms", "1.5 s", "-1 s", "99999999999999999999 s", "40 MiB"] {
            assert_eq!(time(text), None, "{text}");
        }
        for text in ["", "40", "4 GiB", "1 MB", "inf"] {
            assert_eq!(bytes(text), None, "{text}");
        }
    }
}
