//! The receivers of a stream in a snapshot.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Serialize, Serializer};
use utoipa::ToSchema;

use super::ReceiverId;

/// One receiver.
#[derive(Debug, Clone, Default, Serialize, ToSchema)]
pub struct ReceiverState {
    /// Its number; never given twice while the relay runs.
    pub id: u64,
    /// Name of its stream.
    pub stream: String,
    /// How it is served: a word of its front, "udp" or "rtp".
    pub kind: &'static str,
    /// By which way its packets leave: "user" (the relay's own system calls), "tc" or "xdp" (the
    /// kernel's fan-out).
    pub path: &'static str,
    /// Why by no faster one, for receivers that are reached by UDP.
    pub path_because: Option<&'static str>,
    /// The tracks of the stream that have no place in what it gets, as "video AV1" in a transport stream.
    pub left_out: Vec<String>,
    /// Its address.
    pub to: String,
    /// Its name, for receivers from the configuration or the API.
    pub name: Option<String>,
    /// What the token is called that it was let in by, if that has a name.
    pub token: Option<String>,
    /// The link that it is behind.
    pub link: Option<String>,
    /// Its class: "high", "normal" or "low".
    pub priority: &'static str,
    /// The quality that it is to get, 1 is the best: the one that it asked for, or less while a rule says so.
    pub level: u8,
    /// The quality that it asked for.
    pub level_asked: u8,
    /// "live", "behind", "waiting" (for a key frame) or "paused".
    pub state: &'static str,
    /// Milliseconds since it joined.
    pub age_ms: u64,
    /// Bits a second, over the last interval.
    pub bps: u64,
    /// Packets sent.
    pub packets: u64,
    /// Bytes sent.
    pub bytes: u64,
    /// Packets waiting for it in the ring.
    pub queue_packets: u64,
    /// How old the oldest of them is, in milliseconds.
    pub queue_delay_ms: u64,
    /// Packets that it did not get, by reason.
    pub drops: BTreeMap<&'static str, u64>,
    /// Requests for a level that it sent by RTCP or to its session, and that were taken.
    pub level_requests: u64,
    /// Those that were refused, by reason.
    pub level_refusals: BTreeMap<&'static str, u64>,
    /// RTCP packets of it that were not read, and parts of such, by reason.
    pub rtcp_drops: BTreeMap<&'static str, u64>,
    /// What its RTCP receiver reports say, per track, if it sends any.
    pub reports: Vec<ReceiverReport>,
    /// Bits a second that its way carries, as it says (REMB, TMMBR), or as the relay found by what it says of packets
    /// (`transport-cc`).
    pub carries_bps: Option<u64>,
    /// Key frames that it asked for (PLI, FIR), as it could not decode on; and those that the relay asked for in its
    /// place, as pictures that others need were left out.
    pub key_frame_requests: u64,
}

/// The newest RTCP report block of a receiver for one track (RFC 3550, section 6.4.1).
#[derive(Debug, Clone, Copy, Default, Serialize, ToSchema)]
pub struct ReceiverReport {
    /// The track.
    pub track: u8,
    /// Share of packets lost since the report before, 0 to 1.
    pub fraction_lost: f64,
    /// Packets lost since it joined.
    pub lost: i64,
    /// Interarrival jitter in milliseconds.
    pub jitter_ms: f64,
    /// Round-trip time in milliseconds, if it answered a sender report.
    pub rtt_ms: Option<f64>,
}

/// Receivers by id: what each worker that serves the stream has noted, put together without
/// copying it. Clones are the same receivers.
#[derive(Debug, Clone, Default)]
pub struct Receivers {
    parts: Vec<Arc<Vec<ReceiverState>>>,
}

impl Receivers {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.parts.iter().map(|part| part.len()).sum()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.parts.iter().all(|part| part.is_empty())
    }

    /// All of them, by id.
    pub fn iter(&self) -> Iter<'_> {
        Iter { rest: self.parts.iter().map(|part| &part[..]).collect() }
    }

    /// The one with this number.
    pub fn get(&self, id: ReceiverId) -> Option<&ReceiverState> {
        self.parts.iter().find_map(|part| {
            let at = part.binary_search_by_key(&id, |receiver| receiver.id).ok()?;
            part.get(at)
        })
    }

    /// Adds those of another part of the same stream.
    pub(super) fn add(&mut self, others: &Receivers) {
        self.parts.extend(others.parts.iter().filter(|part| !part.is_empty()).cloned());
    }
}

/// Of one worker; by id.
impl From<Vec<ReceiverState>> for Receivers {
    fn from(receivers: Vec<ReceiverState>) -> Self {
        Receivers { parts: vec![Arc::new(receivers)] }
    }
}

impl<'a> IntoIterator for &'a Receivers {
    type Item = &'a ReceiverState;
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Iter<'a> {
        self.iter()
    }
}

impl Serialize for Receivers {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self)
    }
}

/// Goes through [`Receivers`] by id.
#[derive(Debug, Clone)]
pub struct Iter<'a> {
    /// What is left of each part: there are few of them.
    rest: Vec<&'a [ReceiverState]>,
}

impl<'a> Iterator for Iter<'a> {
    type Item = &'a ReceiverState;

    fn next(&mut self) -> Option<&'a ReceiverState> {
        let parts = self.rest.iter_mut().filter(|part| !part.is_empty());
        let part = parts.min_by_key(|part| part.first().map(|receiver| receiver.id))?;
        let (first, rest) = part.split_first()?;
        *part = rest;
        Some(first)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.rest.iter().map(|part| part.len()).sum();
        (left, Some(left))
    }
}
