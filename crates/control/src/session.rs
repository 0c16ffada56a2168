//! Sessions of players. Each has a name that cannot be guessed and that its player alone is told, so that
//! the player can ask about itself, and for another level, beside the download.

use core::fmt;
use core::str::FromStr;

use outflow_engine::message::{Command, ControlError, ReceiverId, ServicesCommand, SessionState};
use outflow_engine::system::random_bytes;

use crate::control::Control;

/// What names a session.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct SessionToken(u128);

impl SessionToken {
    fn new() -> Result<Self, ControlError> {
        let bytes =
            random_bytes().map_err(|error| ControlError::system("asking for random bytes", &error))?;
        Ok(SessionToken(u128::from_be_bytes(bytes)))
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

impl Control {
    /// Names the session of a receiver, with which it ends.
    ///
    /// # Errors
    /// The system has no randomness.
    pub fn open_session(&self, receiver: ReceiverId) -> Result<SessionToken, ControlError> {
        let token = SessionToken::new()?;
        self.registry().open_session(receiver, token);
        Ok(token)
    }

    /// What a session gets, after it was given the level that it asks for, if it asks for one.
    ///
    /// # Errors
    /// There is no such session or level, or it asks too often; it keeps the level it has.
    pub async fn ask_session(
        &self,
        token: SessionToken,
        level: Option<u8>,
    ) -> Result<SessionState, ControlError> {
        let receiver = self.registry().session(token).ok_or(ControlError::UnknownSession)?;
        let owner = self.registry().receiver(receiver).ok_or(ControlError::UnknownSession)?;
        let stream = owner.stream;
        let command = |reply| Command::Services(ServicesCommand::Session { stream, receiver, level, reply });
        self.ask(&owner, command).await
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
