//! Addresses of the partial-order transport: where the other end is, and how it is reached.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use outflow_poc::address::Address;

use crate::Invalid;
use crate::units::{Written, parse_duration};

/// Keys of a query that are meant for this end; all others are for the other one.
const OWN_KEYS: [&str; 3] = ["key-file", "encryption", "latency"];

/// `poc://HOST:PORT/NAME?…`. Displayed, it leaves a token out.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PocUrl {
    /// Host and port; a host of IPv6 in brackets.
    pub place: String,
    /// What is asked for there, with what the query says to the other end.
    pub resource: String,
    /// Keys that are not those of `[poc]`, as a path from the relay's working directory.
    pub key_file: Option<PathBuf>,
    /// Whether nothing is encrypted, whatever `[poc]` says.
    pub is_plain: bool,
    /// For how long a packet is worth sending again, if not for as long as `[poc]` says.
    pub latency: Option<Duration>,
}

impl FromStr for PocUrl {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let help = "write it like poc://192.0.2.1:7000/stage";
        let address: Address =
            text.parse().map_err(|error| Invalid::new(format!("no address of a relay: {error}"), help))?;
        let (path, query) = address.resource.split_once('?').unwrap_or((&address.resource, ""));
        if path.len() < 2 {
            return Err(Invalid::new("the address names no stream", help));
        }
        let mut url = PocUrl {
            place: address.place.clone(),
            resource: path.to_owned(),
            key_file: None,
            is_plain: false,
            latency: None,
        };
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            match pair.split_once('=').unwrap_or((pair, "")) {
                ("key-file", file) if !file.is_empty() => url.key_file = Some(PathBuf::from(file)),
                ("encryption", "off") => url.is_plain = true,
                ("latency", time) => url.latency = Some(latency(time)?),
                ("as", _) => {
                    return Err(Invalid::new("relays agree on the form themselves", "leave as= out"));
                }
                (key, value) if OWN_KEYS.contains(&key) => {
                    let help = "write key-file=PATH, or encryption=off";
                    return Err(Invalid::new(format!("'{value}' is no {key}"), help));
                }
                _ => {
                    url.resource.push(if url.resource.contains('?') { '&' } else { '?' });
                    url.resource.push_str(pair);
                }
            }
        }
        if url.is_plain && url.key_file.is_some() {
            let help = "leave key-file or encryption=off out";
            return Err(Invalid::new("a key that encrypts nothing", help));
        }
        Ok(url)
    }
}

impl PocUrl {
    /// Its keys as a file beside another one.
    pub(crate) fn beside(&mut self, file: &Path) {
        if let Some(key) = &mut self.key_file {
            *key = crate::read::beside(file, core::mem::take(key));
        }
    }
}

/// For how long packets are worth sending again. An address has no blanks.
fn latency(text: &str) -> Result<Duration, Invalid> {
    parse_duration(&text.replace("%20", " "))
}

impl fmt::Display for PocUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (path, query) = self.resource.split_once('?').unwrap_or((&self.resource, ""));
        write!(f, "poc://{}{path}", self.place)?;
        let shown = query.split('&').filter(|pair| !pair.is_empty() && !pair.starts_with("token="));
        let mut all: Vec<String> = shown.map(str::to_owned).collect();
        all.extend(self.key_file.as_ref().map(|file| format!("key-file={}", file.display())));
        all.extend(self.is_plain.then(|| "encryption=off".to_owned()));
        all.extend(self.latency.map(|time| format!("latency={}", Written(time)).replace(' ', "")));
        if all.is_empty() { Ok(()) } else { write!(f, "?{}", all.join("&")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn good(text: &str) -> PocUrl {
        text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn what_is_for_this_end_is_told_apart() {
        let url = good("poc://relay:7000/live/cam?level=2&latency=120ms&token=t&key-file=a/b.key");
        assert_eq!((url.place.as_str(), url.resource.as_str()), ("relay:7000", "/live/cam?level=2&token=t"));
        assert_eq!(url.key_file, Some(PathBuf::from("a/b.key")));
        assert_eq!(url.latency, Some(Duration::from_millis(120)));
        assert_eq!(url.to_string(), "poc://relay:7000/live/cam?level=2&key-file=a/b.key&latency=120ms");
        assert!(good("poc://[::1]:7000/cam?encryption=off").is_plain);
    }

    #[test]
    fn what_it_writes_it_reads() {
        for text in ["poc://h:1/a", "poc://h:1/a?encryption=off", "poc://h:1/a?b=c&latency=2500ms"] {
            assert_eq!(good(text).to_string(), text);
        }
    }

    #[test]
    fn what_cannot_be_is_refused_with_what_to_do() {
        let what = |text: &str| text.parse::<PocUrl>().expect_err(text).to_string();
        assert!(what("poc://relay/cam").contains("poc://192.0.2.1:7000/stage"));
        assert!(what("poc://relay:7000").contains("names no stream"));
        assert!(what("poc://relay:7000/a?latency=soon").contains("soon"));
        assert!(what("poc://relay:7000/a?encryption=on").contains("encryption=off"));
        assert!(what("poc://relay:7000/a?as=ts").contains("leave as= out"));
        assert!(what("poc://relay:7000/a?encryption=off&key-file=k").contains("encrypts nothing"));
    }
}
