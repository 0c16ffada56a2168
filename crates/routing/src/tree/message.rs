//! What relays say to each other, and what a node asks its driver to do.

use core::time::Duration;

use serde::{Deserialize, Serialize};

use super::path::{Contact, Offer, Path, RelayId, StreamId};
use crate::Level;

/// What relays say to each other of a stream. `ask` is the number of the subscription, which the child chose:
/// what is said of another one is old.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "the fields of a variant are said with it")]
pub enum Message {
    /// To a parent: may I have it, at this level?
    Ask { ask: u32, level: Level },
    /// To a child: yes, from now on.
    Grant {
        ask: u32,
        /// That of the parent.
        path: Path,
        /// Since when the parent has heard of no beat. In text, in milliseconds.
        #[serde(with = "millis")]
        age: Duration,
        /// Which other relays have it.
        others: Vec<Offer>,
    },
    /// To a child: no. Others may have it.
    Refuse { ask: u32, why: Refusal, others: Vec<Offer> },
    /// To a parent: I want this level from now on, or still.
    Want { ask: u32, level: Level },
    /// To a child: the source is there.
    Beat { ask: u32, path: Path, others: Vec<Offer> },
    /// To a parent: no more.
    Leave { ask: u32 },
    /// To a child: no more, or you are none.
    Drop { ask: u32 },
    /// To a parent: say that back, so that I know how far you are.
    Echo { ask: u32 },
    /// To a relay that said [`Message::Echo`]: this is it.
    EchoReply { ask: u32 },
}

/// Why a relay is no parent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "kebab-case")]
pub enum Refusal {
    /// It does not have the stream, or has not heard of its source for too long, or has it of the asker.
    #[error("it does not have the stream")]
    NoPath,
    /// It has as many children as it may.
    #[error("it has as many children as it may")]
    Full,
    /// [`super::limits::DEPTH_MAX`].
    #[error("the tree is too deep there")]
    TooDeep,
}

/// What a node asks its driver to do.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields of a variant are said with it")]
pub enum Action {
    /// Say this to a relay, over the connection with it, which is made if there is none. If it cannot be
    /// said, [`super::Node::handle_lost`] is told so.
    Send { to: Contact, stream: StreamId, message: Message },
    /// Take the stream from this parent from now on, and from no other, at the level that [`super::Node::demand`]
    /// says. The one before goes on until it has
    /// read the `Leave` that comes next, so that the change may be at a key frame.
    Take { stream: StreamId, parent: RelayId },
    /// Take this level of the stream from its parent from now on.
    Level { stream: StreamId, level: Level },
    /// There is no parent now.
    Lost { stream: StreamId },
    /// Send the stream to this child, at this level.
    Serve { stream: StreamId, child: RelayId, level: Level },
    /// Send it no more.
    Stop { stream: StreamId, child: RelayId },
    /// Say this to the directory, which forgets it after [`super::limits::ENTRY_LIFE`].
    Register { stream: StreamId, offer: Offer },
    /// The relay no longer has the stream.
    Withdraw { stream: StreamId },
    /// Ask the directory which relays have the stream. [`super::Node::handle_offers`] takes the answer: some
    /// that are near, and some others.
    Lookup { stream: StreamId },
}

/// Durations as milliseconds.
mod millis {
    use core::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(duration: &Duration, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u64(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
        u64::deserialize(from).map(Duration::from_millis)
    }
}

#[cfg(test)]
mod tests {
    use core::cmp::Reverse;

    use super::super::{Location, Root};
    use super::*;

    #[test]
    fn messages_are_text_that_others_can_read() {
        let relay = RelayId(7);
        let root = Root { preference: 0, relay, incarnation: Reverse(1_700_000_000_000) };
        let path = Path { root, beat: Reverse(9), depth: 2 };
        let address = "192.0.2.7:4433".parse().expect("an address");
        let contact = Contact { relay, address, location: Location { x_km: -3, y_km: 4 } };
        let others = vec![Offer { contact, path, load: 128 }];
        let grant = Message::Grant { ask: 5, path, age: Duration::from_millis(40), others };
        let text = serde_json::to_string(&grant).expect("text");
        let root = r#"{"preference":0,"relay":"0000000000000007","incarnation":1700000000000}"#;
        let path = format!(r#"{{"root":{root},"beat":9,"depth":2}}"#);
        let contact =
            r#"{"relay":"0000000000000007","address":"192.0.2.7:4433","location":{"x_km":-3,"y_km":4}}"#;
        let offer = format!(r#"{{"contact":{contact},"path":{path},"load":128}}"#);
        assert_eq!(text, format!(r#"{{"grant":{{"ask":5,"path":{path},"age":40,"others":[{offer}]}}}}"#));
        assert_eq!(serde_json::from_str::<Message>(&text).expect("a message"), grant);
        let ask = Message::Ask { ask: 1, level: Level::BEST };
        assert_eq!(serde_json::to_string(&ask).expect("text"), r#"{"ask":{"ask":1,"level":1}}"#);
        assert!(serde_json::from_str::<Message>(r#"{"want":{"ask":1,"level":0}}"#).is_err(), "no level");
        let refuse = r#"{"refuse":{"ask":3,"why":"no-path","others":[]}}"#;
        let expected = Message::Refuse { ask: 3, why: Refusal::NoPath, others: Vec::new() };
        assert_eq!(serde_json::from_str::<Message>(refuse).expect("a message"), expected);
    }
}
