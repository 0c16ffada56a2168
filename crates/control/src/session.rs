//! Sessions of players. Each has a name that cannot be guessed and that its player alone is told, so that
//! the player can ask about itself, and for another level, beside the download.

use core::fmt;
use core::str::FromStr;

use outflow_engine::message::ControlError;
use outflow_engine::system::random_bytes;

/// What names a session.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct SessionToken(u128);

impl SessionToken {
    /// A new one.
    ///
    /// # Errors
    /// The system has no randomness.
    pub fn new() -> Result<Self, ControlError> {
        let bytes =
            random_bytes().map_err(|error| ControlError::system("asking for random bytes", &error))?;
        Ok(SessionToken(u128::from_be_bytes(bytes)))
    }
}

impl SessionToken {
    /// Its two halves, for another process.
    pub(crate) fn halves(self) -> (u64, u64) {
        ((self.0 >> 64) as u64, self.0 as u64)
    }

    /// One of another process.
    pub(crate) fn of((high, low): (u64, u64)) -> Self {
        SessionToken(u128::from(high) << 64 | u128::from(low))
    }
}

impl fmt::Display for SessionToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// It stays out of logs.
impl fmt::Debug for SessionToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SessionToken")
    }
}

impl FromStr for SessionToken {
    type Err = ControlError;

    fn from_str(text: &str) -> Result<Self, ControlError> {
        let is_one = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let number = is_one.then(|| u128::from_str_radix(text, 16).ok()).flatten();
        number.map(SessionToken).ok_or(ControlError::UnknownSession)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_hexadecimal_digits_and_no_two_are_alike() {
        let (one, other) = (SessionToken::new().expect("one"), SessionToken::new().expect("one"));
        assert_ne!(one, other);
        let text = one.to_string();
        assert_eq!((text.len(), text.parse()), (32, Ok(one)));
        assert!(!format!("{one:?}").contains(&text));
        for text in ["", "0", &text[1..], &format!("+{}", &text[1..]), &format!("{text}0")] {
            assert_eq!(text.parse::<SessionToken>(), Err(ControlError::UnknownSession), "{text}");
        }
    }
}
