//! Quantities in scenarios, written as in configurations.

use core::fmt;
use core::str::FromStr;
use core::time::Duration;

use outflow_config::{Invalid, Share, Weight, parse_duration};
use serde::de::{Error as _, Visitor};
use serde::{Deserialize, Deserializer};

/// A value with its unit, in quotes, for serde.
///
/// # Errors
/// It is none, and what can be written.
pub fn quantity<'de, D: Deserializer<'de>, T: FromStr<Err = Invalid>>(given: D) -> Result<T, D::Error> {
    String::deserialize(given)?.parse().map_err(D::Error::custom)
}

/// The same, where it may be missing.
pub(super) fn maybe<'de, D: Deserializer<'de>, T: FromStr<Err = Invalid>>(
    given: D,
) -> Result<Option<T>, D::Error> {
    quantity(given).map(Some)
}

/// A duration such as "35 s".
pub(super) fn duration<'de, D: Deserializer<'de>>(given: D) -> Result<Duration, D::Error> {
    parse_duration(&String::deserialize(given)?).map_err(D::Error::custom)
}

/// The same, where it may be missing.
pub(super) fn maybe_duration<'de, D: Deserializer<'de>>(given: D) -> Result<Option<Duration>, D::Error> {
    duration(given).map(Some)
}

/// A weight: a whole number.
pub(super) fn weight<'de, D: Deserializer<'de>>(given: D) -> Result<Weight, D::Error> {
    Weight::new(u32::deserialize(given)?).map_err(D::Error::custom)
}

/// The same, where it may be missing.
pub(super) fn maybe_weight<'de, D: Deserializer<'de>>(given: D) -> Result<Option<Weight>, D::Error> {
    weight(given).map(Some)
}

/// A share such as "1 %", 0 to 1.
pub(super) fn share<'de, D: Deserializer<'de>>(given: D) -> Result<f64, D::Error> {
    let text = String::deserialize(given)?;
    let number = text.trim().strip_suffix('%').and_then(|number| number.trim().parse::<f64>().ok());
    let share = number.map(|percent| percent / 100.0).filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| {
        D::Error::custom(format!("'{text}' is no share: write it like \"1 %\", up to \"100 %\""))
    })
}

/// A share that may be "off".
pub(super) fn share_or_off<'de, D: Deserializer<'de>>(given: D) -> Result<Option<Share>, D::Error> {
    match String::deserialize(given)?.as_str() {
        "off" => Ok(None),
        text => text.parse().map(Some).map_err(D::Error::custom),
    }
}

/// One of a list of things that have names.
pub(super) fn named<'de, D: Deserializer<'de>, T: Copy>(
    given: D,
    all: &[T],
    name: fn(T) -> &'static str,
) -> Result<T, D::Error> {
    let word = String::deserialize(given)?;
    let known = || all.iter().map(|one| name(*one)).collect::<Vec<_>>().join(", ");
    let found = all.iter().copied().find(|one| name(*one) == word);
    found.ok_or_else(|| D::Error::custom(format!("'{word}' is not known: write one of {}", known())))
}

/// A whole number of bytes as such, or a word for it.
pub(super) fn bytes_or<'de, D: Deserializer<'de>>(given: D, word: &str) -> Result<Option<usize>, D::Error> {
    struct Given<'w>(&'w str);

    impl Visitor<'_> for Given<'_> {
        type Value = Option<usize>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "a number of bytes, or \"{}\"", self.0)
        }

        fn visit_i64<E: serde::de::Error>(self, bytes: i64) -> Result<Self::Value, E> {
            let bytes = usize::try_from(bytes).ok().filter(|bytes| (1..=65_535).contains(bytes));
            bytes.map(Some).ok_or_else(|| E::custom("packets have 1 to 65535 bytes"))
        }

        fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Self::Value, E> {
            if text == self.0 {
                Ok(None)
            } else {
                Err(E::invalid_value(serde::de::Unexpected::Str(text), &self))
            }
        }
    }

    given.deserialize_any(Given(word))
}
