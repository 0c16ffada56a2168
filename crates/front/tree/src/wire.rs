//! What relays of a tree say to each other, over a connection of the partial-order transport: each unit is a list
//! in JSON. The first thing that both say is [`Hello`]. What is not understood ends the connection.

use bytes::Bytes;
use outflow_petri::service::presets::{Order, datagrams};
use outflow_petri::service::{Class, Flow, Request};
use outflow_poc_socket::media;
use outflow_routing::tree::{Contact, Message, Offer};
use serde::{Deserialize, Serialize};

use super::limits::{BATCH_BYTES, SAID_BYTES_MAX};
use super::view::RelayView;

/// What is asked for: no stream has such a name.
pub(crate) const RESOURCE: &str = "/.tree";

/// The version of all this. Relays of another one are no relays of the tree.
pub const VERSION: u32 = 1;

/// What a relay says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// [`VERSION`].
    pub v: u32,
    /// How it is found.
    pub contact: Contact,
    /// For people.
    pub name: String,
    /// Larger with each start.
    pub incarnation: u64,
    /// The port of its RTSP server.
    pub rtsp: Option<u16>,
}

/// What is said.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "the fields of a variant are said with it")]
pub enum Notice {
    /// What this relay is.
    Hello(Box<Hello>),
    /// About the tree of a stream.
    Tree { stream: String, message: Message },
    /// Which relays have this stream? If you do not, and I would be your child: fetch it at this level.
    Lookup { number: u32, stream: String, fetch: Option<outflow_routing::Level> },
    /// These have it.
    Offers { number: u32, offers: Vec<Offer> },
    /// What is your part of the tree?
    Show { number: u32 },
    /// This.
    Shown { number: u32, view: Box<RelayView> },
    /// I am there.
    Alive,
}

/// What the other end said cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum Strange {
    /// More than is read of one.
    #[error("it says too much at once")]
    TooMuch,
    /// It is not what relays say.
    #[error("it cannot be parsed: {0}")]
    Unknown(#[from] serde_json::Error),
    /// It is about what cannot be a stream.
    #[error(transparent)]
    BadName(#[from] outflow_config::Invalid),
}

/// Reads a unit.
///
/// # Errors
/// The peer says too much, or what no relay of this version does.
pub fn read(unit: &[u8]) -> Result<Vec<Notice>, Strange> {
    if unit.len() > SAID_BYTES_MAX {
        return Err(Strange::TooMuch);
    }
    let all: Vec<Notice> = serde_json::from_slice(unit)?;
    for said in &all {
        if let Notice::Tree { stream, .. } | Notice::Lookup { stream, .. } = said {
            outflow_config::check_name(stream)?;
        }
    }
    Ok(all)
}

/// Puts as much as there is of `more` behind `first`, into one unit.
pub fn write(first: &Notice, mut more: impl FnMut() -> Option<Notice>) -> Bytes {
    let mut text = vec![b'['];
    let mut next = Some(std::borrow::Cow::Borrowed(first));
    while let Some(said) = next {
        if text.len() > 1 {
            text.push(b',');
        }
        // What is said are texts and numbers, which have a form in JSON.
        let _ = serde_json::to_writer(&mut text, &said);
        next = if text.len() < BATCH_BYTES { more().map(std::borrow::Cow::Owned) } else { None };
    }
    text.push(b']');
    text.into()
}

/// In order, and all of it.
pub(crate) fn flow() -> Flow {
    datagrams(Order::Total, None, Class::Reliable).expect("it is a preset")
}

/// Asks another relay to talk.
pub fn request(token: Option<&str>) -> Request {
    Request {
        resource: token.map_or(RESOURCE.to_owned(), |token| media::with_query(RESOURCE, "token", token)),
        to_server: Some(flow()),
        to_client: Some(media::whatever(None)),
    }
}

#[cfg(test)]
mod tests {
    use outflow_routing::Level;
    use outflow_routing::tree::{Location, RelayId};

    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let address = "192.0.2.7:7000".parse().expect("an address");
        let contact = Contact { relay: RelayId(7), address, location: Location::default() };
        let hello = Hello { v: VERSION, contact, name: "a".into(), incarnation: 1, rtsp: Some(8554) };
        let ask = Message::Ask { ask: 1, level: Level::BEST };
        let all = vec![
            Notice::Hello(Box::new(hello)),
            Notice::Tree { stream: "cam".to_owned(), message: ask },
            Notice::Lookup { number: 3, stream: "cam".to_owned(), fetch: Some(Level::BEST) },
            Notice::Alive,
        ];
        let mut rest = all[1..].iter().cloned();
        let unit = write(&all[0], || rest.next());
        assert_eq!(read(&unit).expect("it is parsed"), all);
        assert!(read(b"{}").is_err() && read(&vec![b' '; SAID_BYTES_MAX + 1]).is_err());
    }

    #[test]
    fn what_no_stream_can_be_called_is_refused_as_such() {
        for name in ["", "a b", ".cam", "api/v1", "cam.ts"] {
            let expected = outflow_config::check_name(name).expect_err("no name").to_string();
            let stream = name.to_owned();
            let lookup = Notice::Lookup { number: 3, stream: stream.clone(), fetch: None };
            for said in [lookup, Notice::Tree { stream, message: Message::Leave { ask: 1 } }] {
                let refused = read(&write(&said, || None)).expect_err("refused").to_string();
                assert!(refused.contains(&expected), "{refused}");
            }
        }
    }

    #[test]
    fn what_is_too_much_for_one_unit_goes_in_the_next() {
        let said = Notice::Tree { stream: ["s"; 100].join("/"), message: Message::Leave { ask: 1 } };
        let mut left = 1000;
        let unit = write(&said, || {
            left -= 1;
            Some(said.clone())
        });
        assert!(left > 800 && unit.len() < BATCH_BYTES + 400);
        assert_eq!(read(&unit).expect("it is parsed").len(), 1000 - left + 1);
    }
}
