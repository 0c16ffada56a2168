//! Keys of the bucket: `streams.NAME.RELAY` and `relays.RELAY`.
//!
//! A stream's name is one token of the key. NATS allows letters, digits, `-`, `_`, `=` and `/` in one
//! (ADR-8, and NATS's rules for subjects): these stand as they are, but `=`, and every other byte is `=` and
//! two hexadecimal digits. A relay is 16 hexadecimal digits.

use outflow_routing::tree::RelayId;

use crate::limits::NAME_BYTES_MAX;

/// What a key is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Key {
    /// That a relay has a stream.
    Stream(String, RelayId),
    /// A relay.
    Relay(RelayId),
}

impl Key {
    /// The key as NATS knows it. `None` if the stream's name is empty or longer than [`NAME_BYTES_MAX`].
    pub fn to_text(&self) -> Option<String> {
        match self {
            Key::Stream(name, relay) => Some(format!("streams.{}.{:016x}", token(name)?, relay.0)),
            Key::Relay(relay) => Some(format!("relays.{:016x}", relay.0)),
        }
    }

    /// Reads a key. Only what [`Key::to_text`] writes is one.
    pub fn parse(text: &str) -> Option<Key> {
        let key = match text.split_once('.')? {
            ("streams", rest) => {
                let (token, relay) = rest.split_once('.')?;
                Key::Stream(name(token)?, parse_relay(relay)?)
            }
            ("relays", relay) => Key::Relay(parse_relay(relay)?),
            _ => return None,
        };
        (key.to_text().as_deref() == Some(text)).then_some(key)
    }
}

/// What selects all entries of a stream.
pub(crate) fn all_of(stream: &str) -> Option<String> {
    Some(format!("streams.{}.*", token(stream)?))
}

/// What selects all relays.
pub(crate) const ALL_RELAYS: &str = "relays.*";

fn token(name: &str) -> Option<String> {
    if name.is_empty() || name.len() > NAME_BYTES_MAX {
        return None;
    }
    let mut token = String::with_capacity(name.len() + 8);
    for byte in name.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'/' => token.push(char::from(byte)),
            _ => token.push_str(&format!("={byte:02X}")),
        }
    }
    Some(token)
}

fn name(token: &str) -> Option<String> {
    let mut bytes = token.bytes();
    let mut name = Vec::new();
    while let Some(byte) = bytes.next() {
        name.push(match byte {
            b'=' => hex_digit(bytes.next()?)? << 4 | hex_digit(bytes.next()?)?,
            _ => byte,
        });
        if name.len() > NAME_BYTES_MAX {
            return None;
        }
    }
    String::from_utf8(name).ok()
}

fn hex_digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).map(|digit| digit as u8)
}

fn parse_relay(text: &str) -> Option<RelayId> {
    (text.len() == 16).then(|| u64::from_str_radix(text, 16).ok().map(RelayId)).flatten()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_stay_readable_where_nats_allows_it() {
        let key = Key::Stream("sport/cam_1.hd".to_owned(), RelayId(0xab));
        assert_eq!(key.to_text().as_deref(), Some("streams.sport/cam_1=2Ehd.00000000000000ab"));
        assert_eq!(all_of("a.b").as_deref(), Some("streams.a=2Eb.*"));
    }

    #[test]
    fn what_is_not_written_so_is_no_key() {
        let relay = "00000000000000ab";
        for text in [
            format!("streams..{relay}"),
            format!("streams.a.b.{relay}"),
            format!("streams.a=2eb.{relay}"),
            format!("streams.=41.{relay}"),
            format!("streams.a=2.{relay}"),
            format!("streams.=FF.{relay}"),
            format!("streams.a.{}", &relay[1..]),
            "relays.00000000000000AB".to_owned(),
            "relays.+0000000000000ab".to_owned(),
            format!("others.{relay}"),
        ] {
            assert_eq!(Key::parse(&text), None, "{text}");
        }
        assert_eq!(Key::Stream("x".repeat(NAME_BYTES_MAX + 1), RelayId(1)).to_text(), None);
    }

    proptest! {
        #[test]
        fn keys_are_read_as_they_were_written(name in "\\PC{1,60}", relay: u64) {
            for key in [Key::Stream(name, RelayId(relay)), Key::Relay(RelayId(relay))] {
                let text = key.to_text().expect("short enough");
                prop_assert!(text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_=/.".contains(&b)));
                prop_assert_eq!(Key::parse(&text), Some(key));
            }
        }
    }
}
