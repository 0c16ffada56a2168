//! Basic and Digest authentication, RFC 7617, RFC 7616 and RFC 2617, both sides.

mod answer;
mod challenge;
mod digest;

pub use answer::{Authorization, DigestAnswer, Known, Verdict};
pub use challenge::{Challenge, Realm};
pub use digest::{Algorithm, ha1};

use core::fmt;

/// A user name and a password.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    /// The user's name.
    pub user: String,
    /// The password, or the token.
    pub password: String,
}

impl fmt::Debug for Credentials {
    /// Without the password, so that it does not end up in a log.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").field("user", &self.user).finish_non_exhaustive()
    }
}

/// `name=value` or `name="quoted value"`.
fn parameter(text: &str) -> Option<(String, String)> {
    let (name, value) = text.split_once('=')?;
    let value = value.trim();
    let value = match value.strip_prefix('"') {
        Some(quoted) => unquote(quoted.strip_suffix('"').unwrap_or(quoted)),
        None => value.to_owned(),
    };
    Some((name.trim().to_ascii_lowercase(), value))
}

fn unquote(text: &str) -> String {
    let mut escaped = false;
    text.chars()
        .filter(|c| {
            let drop = *c == '\\' && !escaped;
            escaped = drop;
            !drop
        })
        .collect()
}

fn quote(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    for c in text.chars().filter(|c| !c.is_control()) {
        if matches!(c, '"' | '\\') {
            quoted.push('\\');
        }
        quoted.push(c);
    }
    quoted
}
