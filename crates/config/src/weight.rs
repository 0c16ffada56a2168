//! What one weighs among others that share something.

use std::fmt;

use crate::Invalid;
use crate::invalid::out_of;
use crate::limits::WEIGHT;
use crate::value::{Fault, Given, Value, type_fault};

/// A weight: its share is this over the sum of the weights of all that want something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Weight(u32);

impl Weight {
    /// A weight of this.
    ///
    /// # Errors
    /// It is out of range.
    pub fn new(weight: u32) -> Result<Self, Invalid> {
        out_of(weight, &WEIGHT, ToString::to_string).map_or(Ok(Weight(weight)), Err)
    }

    /// It as a number.
    pub const fn get(self) -> u32 {
        self.0
    }
}

impl Default for Weight {
    fn default() -> Self {
        Weight(1)
    }
}

impl fmt::Display for Weight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Value for Weight {
    fn read(given: &Given<'_>) -> Result<Self, Fault> {
        let wanted = format!("a whole number from {} to {}", WEIGHT.start(), WEIGHT.end());
        let number = given.get_ref().as_integer().ok_or_else(|| type_fault(given, &wanted, "3"))?;
        let number = i128::from_str_radix(number.as_str(), number.radix()).unwrap_or(i128::MAX);
        let allowed = i128::from(*WEIGHT.start())..=i128::from(*WEIGHT.end());
        match out_of(number, &allowed, ToString::to_string) {
            None => Ok(Weight(u32::try_from(number).unwrap_or(*WEIGHT.end()))),
            Some(invalid) => Err((given.span(), invalid)),
        }
    }
}

#[cfg(test)]
mod tests {
    use toml::de::DeValue;

    use super::*;

    #[test]
    fn weights_are_whole_and_within_their_range() {
        let read = |toml: &str| {
            let read = Weight::read(&DeValue::parse(toml).expect("TOML"));
            read.map_err(|(_, invalid)| invalid.to_string())
        };
        assert_eq!(read("1"), Ok(Weight::default()));
        assert_eq!(read("1_000").map(Weight::get), Ok(1000));
        let much = Err("1001 is too much: possible: 1 to 1000".to_owned());
        assert_eq!((read("1001"), Weight::new(1001).map_err(|e| e.to_string())), (much.clone(), much));
        assert_eq!(read("0"), Err("0 is too little: possible: 1 to 1000".to_owned()));
        assert_eq!(read("-3"), Err("-3 is too little: possible: 1 to 1000".to_owned()));
        let text = "a whole number from 1 to 1000 is needed here, not a text: write it like 3";
        assert_eq!(read("\"3\""), Err(text.to_owned()));
        assert!(read("1.5").is_err_and(|e| e.contains("not a number with a point")));
    }
}
