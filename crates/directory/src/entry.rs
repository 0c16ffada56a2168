//! What relays say in the directory, as JSON.
//!
//! An [`Entry`] says that a relay has a stream:
//!
//! ```json
//! {"v":1,"stream":"sport/1","offer":{
//!   "contact":{"relay":"00000000000000ab","address":"203.0.113.7:8080","location":{"x_km":-120,"y_km":40}},
//!   "path":{"root":{"preference":0,"relay":"0000000000000001","incarnation":1700000000000},"beat":9,"depth":1},
//!   "load":12}}
//! ```
//!
//! A [`RelayRecord`] says what a relay is:
//!
//! ```json
//! {"v":1,"relay":"00000000000000ab","name":"edge-berlin","addresses":["203.0.113.7:8080"],"version":"0.1.0",
//!  "location":{"x_km":-120,"y_km":40},"load":12,"streams":["sport/1"],"streams_total":1}
//! ```
//!
//! `v` is the version. Fields may be added to a version, and readers pass over those that they do not know; a
//! change of what is there is a new version. A client that may write to the bucket may write anything, so
//! what is read is bounded and checked, and text has no control characters.

use outflow_routing::tree::{Location, Offer, RelayId};
use serde::{Deserialize, Serialize};

use crate::limits::{
    ENTRY_BYTES_MAX, NAME_BYTES_MAX, RECORD_ADDRESSES_MAX, RECORD_BYTES_MAX, TEXT_BYTES_MAX,
};

/// The version that is written, and the newest that is read.
pub const VERSION: u32 = 1;

/// A relay has a stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// The name of the stream.
    pub stream: String,
    /// Which relay has it, how far from which source, and how much room is taken.
    pub offer: Offer,
}

/// A relay.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RelayRecord {
    /// Which.
    pub relay: RelayId,
    /// What its operator calls it.
    pub name: String,
    /// Where other relays reach it, as `HOST:PORT`; at most [`RECORD_ADDRESSES_MAX`].
    pub addresses: Vec<String>,
    /// The version of its program.
    pub version: String,
    /// Where it is.
    pub location: Location,
    /// How much of its room is taken, up to 255 for all.
    pub load: u8,
    /// Streams that it has; not all of them if there are many.
    pub streams: Vec<String>,
    /// How many streams it has.
    pub streams_total: u32,
}

/// Why a value is left out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// A relay of a later version wrote it.
    #[error("its version is {0}, and this relay reads {VERSION}: update this relay")]
    Newer(u32),
    /// It is longer than its limit.
    #[error("it has {0} bytes, which is too long")]
    TooLong(usize),
    /// It is no JSON, or fields are missing or have other types.
    #[error("{0}")]
    Json(String),
    /// A field has a value that cannot be.
    #[error("its `{0}` cannot be")]
    Field(&'static str),
}

#[derive(Deserialize)]
struct Version {
    v: u32,
}

#[derive(Serialize)]
struct Versioned<'a, T> {
    v: u32,
    #[serde(flatten)]
    value: &'a T,
}

fn read<'a, T: Deserialize<'a>>(json: &'a [u8], bytes_max: usize) -> Result<T, Malformed> {
    if json.len() > bytes_max {
        return Err(Malformed::TooLong(json.len()));
    }
    let wrong = |error: serde_json::Error| Malformed::Json(error.to_string());
    match serde_json::from_slice::<Version>(json).map_err(wrong)?.v {
        VERSION => serde_json::from_slice(json).map_err(wrong),
        0 => Err(Malformed::Field("v")),
        newer => Err(Malformed::Newer(newer)),
    }
}

fn write<T: Serialize>(value: &T) -> Vec<u8> {
    serde_json::to_vec(&Versioned { v: VERSION, value }).expect("texts and numbers are JSON")
}

fn is_text(text: &str, bytes_max: usize) -> bool {
    !text.is_empty() && text.len() <= bytes_max && !text.contains(char::is_control)
}

impl Entry {
    /// Reads what a relay wrote.
    ///
    /// # Errors
    /// Why it is to be left out.
    pub fn parse(json: &[u8]) -> Result<Entry, Malformed> {
        let entry: Entry = read(json, ENTRY_BYTES_MAX)?;
        entry.check()?;
        Ok(entry)
    }

    /// As JSON.
    pub fn to_json(&self) -> Vec<u8> {
        write(self)
    }

    /// Whether others will take it.
    pub(crate) fn check(&self) -> Result<(), Malformed> {
        let address = self.offer.contact.address;
        if !is_text(&self.stream, NAME_BYTES_MAX) {
            return Err(Malformed::Field("stream"));
        }
        if address.port() == 0 || address.ip().is_unspecified() || address.ip().is_multicast() {
            return Err(Malformed::Field("address"));
        }
        Ok(())
    }
}

impl RelayRecord {
    /// Reads what a relay wrote.
    ///
    /// # Errors
    /// Why it is to be left out.
    pub fn parse(json: &[u8]) -> Result<RelayRecord, Malformed> {
        let record: RelayRecord = read(json, RECORD_BYTES_MAX)?;
        let texts = record.addresses.iter().chain([&record.name, &record.version]);
        if !texts.into_iter().all(|text| is_text(text, TEXT_BYTES_MAX)) {
            return Err(Malformed::Field("name, version or addresses"));
        }
        if record.addresses.len() > RECORD_ADDRESSES_MAX {
            return Err(Malformed::Field("addresses"));
        }
        if !record.streams.iter().all(|name| is_text(name, NAME_BYTES_MAX)) {
            return Err(Malformed::Field("streams"));
        }
        Ok(record)
    }

    /// As JSON of at most [`RECORD_BYTES_MAX`] bytes: what others would not take is cut or left out.
    pub fn to_json(&self) -> Vec<u8> {
        let mut record = RelayRecord {
            name: cut(&self.name),
            version: cut(&self.version),
            streams: Vec::new(),
            ..self.clone()
        };
        record.addresses.retain(|address| is_text(address, TEXT_BYTES_MAX));
        record.addresses.truncate(RECORD_ADDRESSES_MAX);
        let mut room = RECORD_BYTES_MAX.saturating_sub(write(&record).len());
        for name in self.streams.iter().filter(|name| is_text(name, NAME_BYTES_MAX)) {
            let bytes = serde_json::to_string(name).map_or(usize::MAX, |json| json.len() + 1);
            let Some(left) = room.checked_sub(bytes) else { break };
            room = left;
            record.streams.push(name.clone());
        }
        write(&record)
    }
}

/// A text without control characters and of at most [`TEXT_BYTES_MAX`] bytes, which is not empty.
fn cut(text: &str) -> String {
    let mut cut = String::new();
    for c in text.chars().filter(|c| !c.is_control()) {
        if cut.len() + c.len_utf8() > TEXT_BYTES_MAX {
            break;
        }
        cut.push(c);
    }
    if cut.is_empty() { "?".to_owned() } else { cut }
}

#[cfg(test)]
mod tests {
    use core::cmp::Reverse;

    use outflow_routing::tree::{Contact, Path, Root};

    use super::*;

    fn entry() -> Entry {
        let root = Root { preference: 0, relay: RelayId(1), incarnation: Reverse(1_700_000_000_000) };
        let path = Path { root, beat: Reverse(9), depth: 1 };
        let address = "203.0.113.7:8080".parse().expect("an address");
        let contact = Contact { relay: RelayId(0xab), address, location: Location { x_km: -120, y_km: 40 } };
        Entry { stream: "sport/1".to_owned(), offer: Offer { contact, path, load: 12 } }
    }

    fn record() -> RelayRecord {
        RelayRecord {
            relay: RelayId(0xab),
            name: "edge-berlin".to_owned(),
            addresses: vec!["203.0.113.7:8080".to_owned()],
            version: "0.1.0".to_owned(),
            location: Location { x_km: -120, y_km: 40 },
            load: 12,
            streams: vec!["sport/1".to_owned()],
            streams_total: 1,
        }
    }

    /// The JSON of the documentation above, without line breaks.
    fn documented(number: usize) -> String {
        let page = include_str!("entry.rs").split("//! ```json").nth(number).expect("a block");
        let block = page.split("//! ```").next().expect("its end");
        block.replace("\n//!   ", "").replace("\n//!  ", "").replace("\n//! ", "").trim().to_owned()
    }

    #[test]
    fn entries_and_records_are_as_documented() {
        let json = String::from_utf8(entry().to_json()).expect("text");
        assert_eq!(json, documented(1));
        assert_eq!(Entry::parse(json.as_bytes()), Ok(entry()));
        let json = String::from_utf8(record().to_json()).expect("text");
        assert_eq!(json, documented(2));
        assert_eq!(RelayRecord::parse(json.as_bytes()), Ok(record()));
    }

    #[test]
    fn fields_may_be_added_and_versions_are_refused() {
        let json = String::from_utf8(entry().to_json()).expect("text");
        let more = json.replacen('{', r#"{"colour":"red","#, 1);
        assert_eq!(Entry::parse(more.as_bytes()), Ok(entry()));
        let newer = json.replace(r#""v":1"#, r#""v":2"#);
        assert_eq!(Entry::parse(newer.as_bytes()), Err(Malformed::Newer(2)));
        let newest = r#"{"v":3,"what":"else"}"#;
        assert_eq!(RelayRecord::parse(newest.as_bytes()), Err(Malformed::Newer(3)));
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let json = String::from_utf8(entry().to_json()).expect("text");
        for (from, to) in [
            ("203.0.113.7:8080", "203.0.113.7:0"),
            ("203.0.113.7:8080", "0.0.0.0:8080"),
            ("203.0.113.7:8080", "224.0.0.1:8080"),
            ("203.0.113.7:8080", "nowhere"),
            ("sport/1", ""),
            ("sport/1", "\\u001b[2J"),
            (r#""load":12"#, r#""load":256"#),
            (r#""v":1,"#, ""),
        ] {
            let wrong = json.replace(from, to);
            assert!(wrong != json && Entry::parse(wrong.as_bytes()).is_err(), "{wrong}");
        }
        let long = json.replace("sport/1", &"x".repeat(ENTRY_BYTES_MAX));
        assert_eq!(Entry::parse(long.as_bytes()), Err(Malformed::TooLong(long.len())));
        assert!(matches!(Entry::parse(b"\xff"), Err(Malformed::Json(_))));
    }

    #[test]
    fn records_that_are_too_long_name_fewer_streams() {
        let mut record = record();
        record.name = "x\n".repeat(1000);
        record.addresses = vec!["a:1".to_owned(); 100];
        record.streams = (0..10_000).map(|n| format!("stream/{n:05}")).collect();
        record.streams_total = 10_000;
        let json = record.to_json();
        assert!(json.len() <= RECORD_BYTES_MAX && json.len() > RECORD_BYTES_MAX - 100);
        let read = RelayRecord::parse(&json).expect("a record");
        assert_eq!((read.name.len(), read.addresses.len()), (TEXT_BYTES_MAX, RECORD_ADDRESSES_MAX));
        assert!(read.streams.len() > 3000 && read.streams_total == 10_000);
    }
}
