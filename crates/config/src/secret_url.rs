//! Addresses that may carry secrets, and what is shown of them.

use std::fmt;

use crate::Secret;
use crate::value::{Fault, Given, Value};

/// What stands for what is not shown.
const HIDDEN: &str = "…";

/// An address that may carry secrets: a user, a password, values of its query. Printed, it has its scheme, host, port
/// and path, the names in its query, and of the values those that its protocol calls harmless.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretUrl {
    whole: Secret,
    shown: String,
}

impl SecretUrl {
    /// Keeps what is secret in `whole` from being shown. Values of the names in `harmless` are no secrets.
    pub fn new(whole: impl Into<String>, harmless: &[&str]) -> Self {
        let whole = whole.into();
        let shown = without_secrets(&whole, harmless);
        SecretUrl { whole: Secret::new(whole), shown }
    }

    /// All of it, for the peer that it leads to.
    pub fn reveal(&self) -> &str {
        self.whole.reveal()
    }

    /// What is shown of it.
    pub fn shown(&self) -> &str {
        &self.shown
    }
}

impl fmt::Debug for SecretUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

impl fmt::Display for SecretUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

impl Value for Vec<SecretUrl> {
    fn read(given: &Given<'_>) -> Result<Self, Fault> {
        let texts = Vec::<String>::read(given)?;
        Ok(texts.into_iter().map(|text| SecretUrl::new(text, &[])).collect())
    }
}

/// An address without its user, its password, and the values of its query but those of the names in `harmless`. What
/// is no address is taken for one that was mistyped.
pub fn without_secrets(text: &str, harmless: &[&str]) -> String {
    let (scheme, rest) = match text.split_once("://") {
        Some((scheme, rest)) if is_scheme(scheme) => (&text[..scheme.len() + 3], rest),
        _ => ("", text),
    };
    let rest = &rest[host(rest)..];
    let (rest, fragment) = rest.split_once('#').map_or((rest, ""), |(rest, _)| (rest, HIDDEN));
    let (path, query) = rest.split_once('?').map_or((rest, None), |(path, query)| (path, Some(query)));
    let mut shown = [scheme, path].concat();
    if let Some(query) = query {
        let pairs: Vec<_> = query.split('&').map(|pair| pair_shown(pair, harmless)).collect();
        shown.push('?');
        shown.push_str(&pairs.join("&"));
    }
    if !fragment.is_empty() {
        shown.push('#');
        shown.push_str(fragment);
    }
    shown
}

/// A line of a configuration with a star for each character that may be secret in an address.
pub(crate) fn veiled(line: &str) -> String {
    let stars = |text: &str| "*".repeat(text.chars().count());
    let (mut shown, mut rest) = (String::with_capacity(line.len()), line);
    while let Some(at) = rest.find("://") {
        let (before, behind) = rest.split_at(at + 3);
        // It ends with the quote that it began with: the other one may be part of it.
        let quote = before.chars().rev().find(|c| matches!(c, '"' | '\'')).unwrap_or('"');
        let (address, behind) = behind.split_at(behind.find(quote).unwrap_or(behind.len()));
        let (user, place) = address.split_at(host(address));
        let (place, query) = place.split_at(place.find(['?', '#']).unwrap_or(place.len()));
        shown.push_str(before);
        shown.push_str(&stars(user));
        shown.push_str(place);
        // There are no secrets where datagrams go.
        if ["udp://", "rtp://"].iter().any(|scheme| before.ends_with(scheme)) {
            shown.push_str(query);
        } else {
            for pair in query.split_inclusive(['?', '&']) {
                let (name, value) = pair.split_at(pair.find('=').map_or(0, |at| at + 1));
                let (value, end) = value.split_at(value.trim_end_matches(['?', '&']).len());
                shown.push_str(&[name, &stars(value), end].concat());
            }
        }
        rest = behind;
    }
    shown + rest
}

/// Where the host begins in what follows a scheme.
fn host(rest: &str) -> usize {
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let behind = |text: &str| text.rfind('@').map_or(0, |at| at + 1);
    let start = behind(&rest[..end]);
    // A password with a '/' in it looks like a port, and what follows like a path.
    let port = rest[start..end].rsplit_once(':').map_or("", |(_, port)| port);
    let is_port = port.ends_with(']') || port.bytes().all(|byte| byte.is_ascii_digit());
    if is_port { start } else { behind(rest) }
}

fn is_scheme(text: &str) -> bool {
    let is_in_it = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
    text.starts_with(|c: char| c.is_ascii_alphabetic()) && text.chars().all(is_in_it)
}

fn pair_shown(pair: &str, harmless: &[&str]) -> String {
    // Some servers have more than one pair between two '&'.
    let is_plain = |value: &str| value.bytes().all(|c| c.is_ascii_alphanumeric() || b".,:/%_+-".contains(&c));
    match pair.split_once('=') {
        Some((name, value)) if harmless.contains(&name) && is_plain(value) => pair.to_owned(),
        Some((name, _)) => format!("{name}={HIDDEN}"),
        None if pair.is_empty() || harmless.contains(&pair) => pair.to_owned(),
        None => HIDDEN.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_tells_addresses_apart_is_shown() {
        let shown = |text: &str| SecretUrl::new(text, &["profile"]).to_string();
        for (whole, expected) in [
            ("rtsp://cam:554/a/b", "rtsp://cam:554/a/b"),
            ("rtsp://u:p4ss@cam/a@b?token=s3cret&profile=1", "rtsp://cam/a@b?token=…&profile=1"),
            ("rtsps://u@[fd00::1]:8322/a?s3cret", "rtsps://[fd00::1]:8322/a?…"),
            ("rtsp://[fd00::1]/a", "rtsp://[fd00::1]/a"),
            ("rtsp://cam/?profile=1;token=s3cret", "rtsp://cam/?profile=…"),
            ("rtsp://cam/?profile=1#s3cret", "rtsp://cam/?profile=1#…"),
            ("/live/cam?level=2&token=s3cret", "/live/cam?level=…&token=…"),
            // Mistyped.
            ("rtsp://u:p4/ss@cam/a", "rtsp://cam/a"),
            ("u:p4ss@cam", "cam"),
            ("u:p4ss@cam?u=http://x", "cam?u=…"),
        ] {
            assert_eq!(shown(whole), expected, "{whole}");
        }
    }

    #[test]
    fn lines_keep_their_length() {
        for (line, shown) in [
            ("source = \"udp://239.1.1.1:1?interface=é\"", "source = \"udp://239.1.1.1:1?interface=é\""),
            ("s = \"rtsp://u:p4ßs@h/x?a=s3cret&b\" # x", "s = \"rtsp://*******h/x?a=******&*\" # x"),
            ("directory = ['nats://t@a', \"nats://b\"]", "directory = ['nats://**a', \"nats://b\"]"),
            ("ring = \"1 MB\"", "ring = \"1 MB\""),
        ] {
            assert_eq!(veiled(line), shown);
        }
    }

    proptest! {
        #[test]
        fn no_secret_is_shown(
            scheme in "[a-z][a-z0-9+.-]{0,6}",
            around in prop::collection::vec("[A-Za-z0-9._~!$'()*+,;:-]{0,6}", 4),
            host in "([a-z]{1,8}(\\.[a-z]{1,4})?|10\\.0\\.0\\.5|\\[fd00::1\\])",
            port in prop::option::of(1_u16..),
            path in "(/[a-z0-9@:._-]{0,8}){0,3}",
            names in prop::collection::vec("(|[a-z;_-]{1,8})", 0..5),
            secret_at in 0_usize..8,
        ) {
            const MARK: &str = "S3CRET";
            let marked = |place: usize| if place == secret_at { MARK } else { "" };
            let [a, b, c, d] = &around[..] else { unreachable!("four") };
            let user = format!("{a}{}{b}", marked(0));
            let password = format!("{c}{}{d}", marked(1));
            let port = port.map(|port| format!(":{port}")).unwrap_or_default();
            let pairs: Vec<_> = names.iter().enumerate().map(|(at, name)| {
                if name.is_empty() { format!("{}{a}", marked(at + 2)) }
                else { format!("{name}={b}{}=?{c}", marked(at + 2)) }
            }).collect();
            let query = if pairs.is_empty() { String::new() } else { format!("?{}", pairs.join("&")) };
            let whole = format!("{scheme}://{user}:{password}@{host}{port}{path}{query}");
            let url = SecretUrl::new(&*whole, &["level"]);
            let line = veiled(&format!("source = \"{whole}\""));
            prop_assert!(!line.contains(MARK), "{} of {}", line, whole);
            for shown in [url.to_string(), format!("{url:?}"), without_secrets(&whole, &[])] {
                prop_assert!(!shown.contains(MARK), "{} of {}", shown, whole);
                prop_assert!(shown.starts_with(&format!("{scheme}://{host}{port}{path}")), "{}", shown);
            }
            prop_assert_eq!(url.reveal(), whole);
        }

        #[test]
        fn a_password_that_is_not_encoded_is_not_shown(
            user in "[a-z]{0,8}",
            password in "[a-z]{1,4}[/?#@:]",
            host in "[a-z]{1,8}",
        ) {
            let shown = without_secrets(&format!("rtsp://{user}:{password}S3CRET@{host}"), &[]);
            prop_assert!(!shown.contains("S3CRET"), "{}", shown);
        }
    }
}
