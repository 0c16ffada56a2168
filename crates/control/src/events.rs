//! What happens at the relay, as it is told to whatever follows it: hooks, NATS, the API's event stream.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use outflow_door::Refusal;
use outflow_engine::message::ReceiverId;
use serde::Serialize;
use tokio::sync::broadcast;
use utoipa::ToSchema;

use crate::limits::EVENTS_KEPT;

/// Something that has happened, and when.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Event {
    /// Its number: one more than the one before since the relay started, so that a reader knows what it has missed.
    pub number: u64,
    /// Seconds since 1970.
    pub at: f64,
    /// What has happened.
    #[serde(flatten)]
    pub what: Happened,
}

/// What can happen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Happened {
    /// A publisher, or a source that is pulled, has a stream from now on.
    Published {
        /// The stream.
        stream: String,
        /// Its protocol and address, for people: "HTTP from 10.0.0.7:51234".
        peer: String,
    },
    /// It has no more.
    Gone {
        /// The stream.
        stream: String,
        /// As it was published.
        peer: String,
    },
    /// A receiver takes a stream from now on.
    Joined {
        /// The stream.
        stream: String,
        /// Its number.
        receiver: ReceiverId,
        /// How it is served: a word of its front, "udp" or "rtp".
        kind: &'static str,
        /// Its address.
        peer: String,
    },
    /// It takes it no more.
    Left {
        /// The stream.
        stream: String,
        /// Its number.
        receiver: ReceiverId,
        /// Why.
        why: String,
    },
    /// A peer was not let in. Of many in a second, some are told.
    Refused {
        /// The stream that it wanted, if it wanted one.
        #[serde(skip_serializing_if = "Option::is_none")]
        stream: Option<String>,
        /// What it wanted to do: "publish", "play", "control" or "relay".
        right: &'static str,
        /// Its address.
        peer: String,
        /// Why it may not.
        why: String,
        /// Others that were refused since the one that was told before.
        left_out: u64,
    },
}

impl From<Refusal> for Happened {
    fn from(refusal: Refusal) -> Self {
        let Refusal { right, stream, peer, why, left_out } = refusal;
        let (right, peer, why) = (right.name(), peer.to_string(), why.to_string());
        Happened::Refused { stream, right, peer, why, left_out }
    }
}

impl Happened {
    /// What all are called.
    pub const KINDS: [&str; 5] = ["published", "gone", "joined", "left", "refused"];

    /// What it is called.
    pub fn kind(&self) -> &'static str {
        match self {
            Happened::Published { .. } => "published",
            Happened::Gone { .. } => "gone",
            Happened::Joined { .. } => "joined",
            Happened::Left { .. } => "left",
            Happened::Refused { .. } => "refused",
        }
    }
}

/// Where it is told, and followed. Nothing waits for a follower: one that is slow misses the oldest.
#[derive(Debug)]
pub struct Events {
    told: broadcast::Sender<Arc<Event>>,
    count: AtomicU64,
    /// Another process tells what happens.
    is_closed: AtomicBool,
}

impl Default for Events {
    fn default() -> Self {
        Events {
            told: broadcast::Sender::new(EVENTS_KEPT),
            count: AtomicU64::new(0),
            is_closed: AtomicBool::new(false),
        }
    }
}

impl Events {
    /// What happens from now on.
    pub fn follow(&self) -> broadcast::Receiver<Arc<Event>> {
        self.told.subscribe()
    }

    /// Nothing more is told here.
    pub(crate) fn close(&self) {
        self.is_closed.store(true, Ordering::Relaxed);
    }

    /// Tells it to all that follow.
    pub(crate) fn tell(&self, what: Happened) {
        if self.is_closed.load(Ordering::Relaxed) {
            return;
        }
        let number = self.count.fetch_add(1, Ordering::Relaxed) + 1;
        let at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
        // Without a follower, it is told to none.
        let _ = self.told.send(Arc::new(Event { number, at, what }));
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::broadcast::error::TryRecvError;

    use super::*;

    fn gone(stream: usize) -> Happened {
        Happened::Gone { stream: stream.to_string(), peer: "HTTP from 10.0.0.7:5".to_owned() }
    }

    #[test]
    fn one_that_is_slow_misses_the_oldest_and_knows_how_many() {
        let events = Events::default();
        events.tell(gone(0));
        let mut follower = events.follow();
        (0..EVENTS_KEPT + 3).for_each(|stream| events.tell(gone(stream)));
        assert!(matches!(follower.try_recv(), Err(TryRecvError::Lagged(3))));
        let next = follower.try_recv().expect("the oldest that is kept");
        assert_eq!((next.number, &next.what), (5, &gone(3)));
    }

    #[test]
    fn an_event_is_flat_json_that_says_what_it_is() {
        let event = Event { number: 7, at: 1.5, what: gone(2) };
        let text = serde_json::to_string(&event).expect("text");
        assert_eq!(
            text,
            r#"{"number":7,"at":1.5,"event":"gone","stream":"2","peer":"HTTP from 10.0.0.7:5"}"#
        );
        assert_eq!(event.what.kind(), "gone");
    }
}
