//! What the configuration says of the partial-order transport: `[poc]`, and `poc://` addresses.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use outflow_config::Step::{Index, Key};
use outflow_config::{
    Address, BitRate, Check, Contract, Invalid, Listener, Protocol, Scheme, SecretUrl, Step, StreamAddress,
    Table, Written, out_of, parse_duration, section, words,
};

use crate::limits::POC_LATENCY;

section! {
    /// How the partial-order transport is used, where an address does not say otherwise.
    pub struct Poc {
        /// Keys, as a path from the relay's working directory.
        key_file: Option<PathBuf> = None,
        /// Whether connections are encrypted.
        encryption: Encryption = Encryption::On,
        /// How long a packet is worth sending again, and what is missing is waited for.
        latency: Duration = Duration::from_millis(200),
        /// A connection sends no less, whatever congestion control says; nothing if that decides.
        min_rate: Option<BitRate> = None,
        /// A connection sends no more; as much as congestion control says if not given.
        max_rate: Option<BitRate> = None,
    }
}

words! {
    /// Whether connections are encrypted.
    pub enum Encryption: "a choice" {
        /// They are; keys are needed.
        On = "on",
        /// They are not: for networks of one's own.
        Off = "off",
    }
}

/// The key of `[listen]`, the table, and the scheme of addresses.
pub(crate) const NAME: &str = "poc";

const SCHEME: Scheme = Scheme {
    name: NAME,
    prefixes: &[NAME],
    example: "poc://HOST:PORT/NAME",
    parse: |text| Ok(Arc::new(text.parse::<PocUrl>()?)),
};

pub(crate) fn protocol() -> Protocol {
    Protocol {
        listeners: &[Listener {
            key: NAME,
            port: None,
            needs_tls: false,
            is_tcp: false,
            players: ("POC players", Contract::Rtp),
            address: Some(StreamAddress { label: "POC", usual_port: None, suffix: "", publish: None }),
        }],
        tables: vec![Table::of::<Poc>(NAME)],
        sources: &[SCHEME],
        sinks: &[SCHEME],
        check: Some(check),
        relay_tokens: None,
    }
}

/// Whether all that needs keys has them, and latencies are possible.
fn check(check: &mut Check<'_, '_, '_>) {
    let config = check.config();
    let poc = config.section::<Poc>();
    if let Some(invalid) = out_of(poc.latency, &POC_LATENCY, |time| Written(*time).to_string()) {
        check.add(&[Key(NAME), Key("latency")], invalid.what, invalid.help);
    }
    let is_plain = poc.encryption == Encryption::Off;
    if poc.key_file.is_some() && is_plain {
        let help = "leave it or encryption = \"off\" out";
        check.add(&[Key(NAME), Key("key_file")], "`key_file` is set but encryption is off".to_owned(), help);
    }
    let needs_keys = poc.key_file.is_none() && !is_plain;
    if needs_keys && config.listen.at(NAME).is_some() {
        no_keys(check, &[Key("listen"), Key(NAME)]);
    }
    for (name, stream) in &config.streams {
        if let Some(url) = stream.source.address::<PocUrl>() {
            check_url(check, url, needs_keys, &[Key("streams"), Key(name), Key("source")]);
        }
    }
    for (index, sink) in config.sinks.iter().enumerate() {
        if let Some(url) = sink.to.address::<PocUrl>() {
            check_url(check, url, needs_keys, &[Key("sinks"), Index(index), Key("to")]);
        }
    }
}

fn check_url(check: &mut Check<'_, '_, '_>, url: &PocUrl, needs_keys: bool, at: &[Step<'_>]) {
    let invalid = url.latency.and_then(|time| out_of(time, &POC_LATENCY, |t| Written(*t).to_string()));
    if let Some(invalid) = invalid {
        check.add(at, format!("latency: {}", invalid.what), invalid.help);
    }
    if needs_keys && url.key_file.is_none() && !url.is_plain {
        no_keys(check, at);
    }
}

/// Without a key for all, each address has one.
fn no_keys(check: &mut Check<'_, '_, '_>, at: &[Step<'_>]) {
    let help = "add [poc] key_file = \"poc.key\" (`outflow poc key` makes one), \
                or encryption = \"off\" in a network of your own";
    check.add(at, "connections are encrypted, and there is no key".to_owned(), help);
}

/// Keys of a query that are meant for this end; all others are for the other one.
const OWN_KEYS: [&str; 3] = ["key-file", "encryption", "latency"];

/// Keys of a query that say what is wanted of a stream: no secrets.
const HARMLESS: [&str; 5] = ["level", "branch", "part", "size", "gray"];

/// `poc://HOST:PORT/NAME?…`. Displayed, it leaves a token out, and values that may be secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PocUrl {
    /// Host and port; a host of IPv6 in brackets.
    pub place: String,
    /// What is asked for there, with what the query says to the other end.
    pub resource: SecretUrl,
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
        let address: outflow_poc::address::Address =
            text.parse().map_err(|error| Invalid::new(format!("no address of a relay: {error}"), help))?;
        let (path, query) = address.resource.split_once('?').unwrap_or((&address.resource, ""));
        if path.len() < 2 {
            return Err(Invalid::new("the address names no stream", help));
        }
        let mut resource = path.to_owned();
        let mut url = PocUrl {
            place: address.place.clone(),
            resource: SecretUrl::new("", &[]),
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
                    resource.push(if resource.contains('?') { '&' } else { '?' });
                    resource.push_str(pair);
                }
            }
        }
        if url.is_plain && url.key_file.is_some() {
            let help = "leave key-file or encryption=off out";
            return Err(Invalid::new("a key file is named but encryption is off", help));
        }
        url.resource = SecretUrl::new(resource, &HARMLESS);
        Ok(url)
    }
}

impl Address for PocUrl {
    fn place(&self) -> String {
        let path = self.resource.shown().split('?').next().unwrap_or_default();
        format!("poc://{}{path}", self.place)
    }

    fn beside(&self, file: &Path) -> Option<Arc<dyn Address>> {
        let mut beside = self.clone();
        outflow_config::Value::beside(&mut beside.key_file, file);
        Some(Arc::new(beside))
    }
}

/// For how long packets are worth sending again. An address has no blanks.
fn latency(text: &str) -> Result<Duration, Invalid> {
    parse_duration(&text.replace("%20", " "))
}

impl fmt::Display for PocUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = self.resource.shown();
        let (path, query) = shown.split_once('?').unwrap_or((shown, ""));
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
        assert_eq!((url.place.as_str(), url.resource.reveal()), ("relay:7000", "/live/cam?level=2&token=t"));
        assert_eq!(url.key_file, Some(PathBuf::from("a/b.key")));
        assert_eq!(url.latency, Some(Duration::from_millis(120)));
        assert_eq!(url.to_string(), "poc://relay:7000/live/cam?level=2&key-file=a/b.key&latency=120ms");
        assert!(good("poc://[::1]:7000/cam?encryption=off").is_plain);
    }

    #[test]
    fn what_it_writes_it_reads() {
        for text in ["poc://h:1/a", "poc://h:1/a?encryption=off", "poc://h:1/a?level=2&latency=2500ms"] {
            assert_eq!(good(text).to_string(), text);
        }
    }

    #[test]
    fn what_may_be_secret_is_not_written() {
        let url = good("poc://h:1/a?level=2&token=s3cret&password=s3cret");
        assert_eq!(url.to_string(), "poc://h:1/a?level=2&password=…");
        assert!(!format!("{url:?}").contains("s3cret"));
    }

    #[test]
    fn what_cannot_be_is_refused_with_what_to_do() {
        let what = |text: &str| text.parse::<PocUrl>().expect_err(text).to_string();
        assert!(what("poc://relay/cam").contains("poc://192.0.2.1:7000/stage"));
        assert!(what("poc://relay:7000").contains("names no stream"));
        assert!(what("poc://relay:7000/a?latency=soon").contains("soon"));
        assert!(what("poc://relay:7000/a?encryption=on").contains("encryption=off"));
        assert!(what("poc://relay:7000/a?as=ts").contains("leave as= out"));
        assert!(what("poc://relay:7000/a?encryption=off&key-file=k").contains("encryption is off"));
    }
}
