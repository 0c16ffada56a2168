//! What the relay shows of itself: a snapshot, made by the workers a few times a second.

use std::collections::BTreeMap;

use outflow_media::Time;
use outflow_relay::feedback::Reception;
use serde::Serialize;
use utoipa::ToSchema;

use super::{ReceiverState, Receivers, StreamId};

/// The whole relay.
#[derive(Debug, Clone, Default, Serialize)]
pub struct RelayState {
    /// Version of the program.
    pub version: &'static str,
    /// Milliseconds since the relay started.
    pub uptime_ms: u64,
    /// CPU time used by the process over the last interval, percent of one core.
    pub cpu_percent: f64,
    /// Resident memory in bytes.
    pub rss_bytes: u64,
    /// All streams, in the order of their names.
    pub streams: Vec<StreamState>,
    /// All links, by name.
    pub links: Vec<LinkState>,
    /// RTCP packets that came by UDP from addresses of no receiver.
    pub rtcp_strangers: u64,
    /// What is said of receivers is not older than this: a worker that is busy looks less often.
    #[serde(skip)]
    pub as_of: Time,
}

impl RelayState {
    /// The stream of this name. Of two, one of which is being removed, it is the older one.
    pub fn stream(&self, name: &str) -> Option<&StreamState> {
        let at = self.streams.partition_point(|stream| *stream.name < *name);
        self.streams.get(at).filter(|stream| stream.name == name)
    }
}

/// A link that receivers are behind.
#[derive(Debug, Clone, Default, Serialize, ToSchema)]
pub struct LinkState {
    /// Its name.
    pub name: String,
    /// What it carries now, bits a second, with IP headers like all that is said of it.
    pub rate_bps: u64,
    /// Whether that follows what receivers report.
    pub follows: bool,
    /// What receivers have reserved of that, where the link admits as many as fit.
    pub reserved_bps: Option<u64>,
    /// Which flows share a buffer, and which of them loses what when it is full.
    pub policy: &'static str,
    /// Whose turn it is.
    pub scheduler: &'static str,
    /// What is discarded at least: "packet" or "frame".
    pub unit: &'static str,
    /// Tracks of receivers of which packets have come.
    pub flows: u64,
    /// Bytes that wait now.
    pub waiting_bytes: u64,
    /// Packets that wait now.
    pub waiting_packets: u64,
    /// Bits a second that are offered to it, over the last interval.
    pub offered_bps: u64,
    /// Bits a second that it lets go, over the last interval.
    pub sent_bps: u64,
    /// Packets offered.
    pub offered_packets: u64,
    /// Bytes offered.
    pub offered_bytes: u64,
    /// Packets that it let go.
    pub sent_packets: u64,
    /// Bytes that it let go.
    pub sent_bytes: u64,
    /// How long half of the packets waited at most that went in the last seconds, in milliseconds.
    pub delay_p50_ms: f64,
    /// The same, for 99 of 100.
    pub delay_p99_ms: f64,
    /// The longest that any of them waited.
    pub delay_max_ms: f64,
    /// Packets that it gave up, by reason.
    pub drops: BTreeMap<&'static str, u64>,
    /// Its applications: flows of one medium that are alike.
    pub applications: Vec<LinkApplicationState>,
}

/// Flows of a link that are alike.
#[derive(Debug, Clone, Default, Serialize, ToSchema)]
pub struct LinkApplicationState {
    /// "video", "audio" or "data"; with a number where flows of one medium are not alike.
    pub name: String,
    /// Bits a second that are offered, over the last interval.
    pub offered_bps: u64,
    /// Bits a second that go, over the last interval.
    pub sent_bps: u64,
    /// Packets offered.
    pub offered_packets: u64,
    /// Bytes offered.
    pub offered_bytes: u64,
    /// Packets that went.
    pub sent_packets: u64,
    /// Bytes that went.
    pub sent_bytes: u64,
    /// Packets given up, by reason.
    pub drops: BTreeMap<&'static str, u64>,
}

/// What a worker has.
#[derive(Debug, Clone, Default)]
pub struct WorkerState {
    /// Streams, or parts of them.
    pub streams: Vec<StreamPart>,
    /// Links.
    pub links: Vec<LinkState>,
    /// RTCP packets that came by UDP from addresses of no receiver.
    pub rtcp_strangers: u64,
    /// When it was begun.
    pub as_of: Time,
}

/// One stream.
#[derive(Debug, Clone, Default, Serialize, ToSchema)]
pub struct StreamState {
    /// Its name.
    pub name: String,
    /// Its source.
    pub source: SourceState,
    /// Bits a second of each level, the best first, over the last seconds. Receivers that ask for a level
    /// get what it costs.
    pub levels: Vec<u64>,
    /// Bytes in the ring now.
    pub ring_bytes: u64,
    /// Packets in the ring now.
    pub ring_packets: u64,
    /// How large the ring may get, in bytes.
    pub ring_bytes_max: u64,
    /// Bits a second to all receivers, over the last interval.
    pub out_bps: u64,
    /// Packets sent to all receivers, those that have left included.
    pub out_packets: u64,
    /// Bytes sent to all receivers, those that have left included.
    pub out_bytes: u64,
    /// How long workers have worked for it, microseconds.
    pub worker_us: u64,
    /// Receivers that ever joined.
    pub joins: u64,
    /// Packets dropped on the way to receivers, by reason, those that have left included.
    pub out_drops: BTreeMap<&'static str, u64>,
    /// The elements of its services, in the order in which packets go through.
    pub elements: Vec<ElementState>,
    /// Its branches, by name; that of the stream as it comes in is not among them.
    pub branches: Vec<BranchState>,
    /// What there is to say of its services: that they were put back, and why.
    pub services_note: Option<String>,
    /// What receivers have reported of it in the last seconds, put together; none if none did.
    pub reported: Option<ReceptionState>,
    /// Its receivers, by id.
    #[schema(value_type = Vec<ReceiverState>)]
    pub receivers: Receivers,
}

/// What the receivers of a stream have reported (RFC 3550, section 6.4.1; REMB, TMMBR), put together over a second.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, ToSchema)]
pub struct ReceptionState {
    /// Reports that say what was lost.
    pub reports: u32,
    /// Share of packets lost on average, 0 to 1.
    pub fraction_lost_mean: f64,
    /// The largest share that one of them lost, 0 to 1.
    pub fraction_lost_most: f64,
    /// Bits a second that the best path to one of them carries, if one said that.
    pub estimate_bps: Option<u64>,
}

impl From<Reception> for ReceptionState {
    fn from(Reception { reports, lost_most, lost_mean, estimate_bps }: Reception) -> Self {
        let fraction = |share: u8| f64::from(share) / 256.0;
        ReceptionState {
            reports,
            fraction_lost_mean: fraction(lost_mean),
            fraction_lost_most: fraction(lost_most),
            estimate_bps,
        }
    }
}

/// A stream's source.
#[derive(Debug, Clone, Default, Serialize, ToSchema)]
pub struct SourceState {
    /// Where it comes from, as configured; secrets are left out.
    pub url: String,
    /// Whether packets are coming in.
    pub up: bool,
    /// The peer that sends, if there is one.
    pub peer: Option<String>,
    /// What it carries, for example "MPEG-TS: H.264, AAC"; empty until known.
    pub format: String,
    /// Milliseconds since it last came or went.
    pub since_ms: u64,
    /// Bits a second, over the last second.
    pub bps: u64,
    /// Packets received.
    pub packets: u64,
    /// Bytes received.
    pub bytes: u64,
    /// Packets lost before they came here (RTP sequence numbers, transport stream continuity).
    pub lost: u64,
    /// Interarrival jitter in milliseconds (RFC 3550, section 6.4.1), RTP only.
    pub jitter_ms: f64,
    /// Milliseconds between the last two key frames.
    pub key_interval_ms: u64,
    /// How often it came (1: never went away).
    pub starts: u64,
    /// Packets dropped on receipt, by reason.
    pub drops: BTreeMap<&'static str, u64>,
    /// What could be better about how it is coded, and how.
    pub advice: Option<&'static str>,
}

/// One element of a stream's services.
#[derive(Debug, Clone, Default, Serialize, ToSchema)]
pub struct ElementState {
    /// Its name.
    pub name: String,
    /// What it is, a name of `outflow elements`.
    pub element: &'static str,
    /// The execution context that it runs in; empty for the stream's own worker.
    pub context: String,
    /// What comes out of it is wanted; otherwise it rests.
    pub wanted: bool,
    /// It lets everything pass as it is.
    pub bypass: bool,
    /// It cannot work on what the stream carries.
    pub unfit: bool,
    /// Packets that came in.
    pub packets_in: u64,
    /// Their bytes.
    pub bytes_in: u64,
    /// Packets that went out.
    pub packets_out: u64,
    /// Their bytes.
    pub bytes_out: u64,
    /// Bits a second that came in, over the last interval.
    pub in_bps: u64,
    /// Bits a second that went out, over the last interval.
    pub out_bps: u64,
    /// Packets that it left out, by reason.
    pub drops: BTreeMap<&'static str, u64>,
    /// Packets in the queue to its context, where it is the first element there.
    pub queue_packets: u64,
    /// Nanoseconds a packet, of those batches that were timed.
    pub packet_ns: u64,
    /// Share of one core over the last interval, percent, estimated from those.
    pub cpu_percent: f64,
    /// How long it held its thread at a time, about the longest of lately, microseconds.
    pub turn_us: u64,
    /// How often that was more than 20 ms.
    pub long_turns: u64,
    /// Bytes of memory that it holds, where it knows.
    pub memory_bytes: u64,
    /// How often something went wrong in it.
    pub faults: u64,
    /// What went wrong last, or why it is unfit.
    pub fault: Option<String>,
}

/// One branch that a stream's services make.
#[derive(Debug, Clone, Default, Serialize, ToSchema)]
pub struct BranchState {
    /// Its name.
    pub name: String,
    /// It has a receiver, or had one in the last seconds.
    pub wanted: bool,
    /// Why nothing comes out of it, if that is so.
    pub unfit: Option<String>,
}

/// What a player's own session gets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct SessionState {
    /// The level, 1 is the best.
    pub level: u8,
    /// Bits a second of each level, the best first; none before that is known.
    pub levels: Vec<u64>,
}

/// A stream as one worker serves it.
#[derive(Debug, Clone)]
pub struct StreamPart {
    /// The stream's number at its owner.
    pub owner: StreamId,
    /// It has no source of its own.
    pub is_replica: bool,
    /// What it shows.
    pub state: StreamState,
}

/// Puts the parts of streams together, in the order of their names, which [`RelayState::stream`] relies on. A
/// replica whose owner is not there yet, or no longer, is left out.
pub fn together<'a>(parts: impl Iterator<Item = &'a StreamPart> + Clone) -> Vec<StreamState> {
    let owners = parts.clone().filter(|part| !part.is_replica);
    let mut streams: BTreeMap<_, _> = owners.map(|part| (part.owner, part.state.clone())).collect();
    for part in parts.filter(|part| part.is_replica) {
        if let Some(stream) = streams.get_mut(&part.owner) {
            stream.add(&part.state);
        }
    }
    let mut streams: Vec<_> = streams.into_values().collect();
    streams.sort_by(|a, b| a.name.cmp(&b.name));
    streams
}

impl StreamState {
    /// Adds what a replica has done. Its ring holds the very packets of its owner's; of both, the
    /// fuller one is shown.
    fn add(&mut self, replica: &StreamState) {
        self.ring_bytes = self.ring_bytes.max(replica.ring_bytes);
        self.ring_packets = self.ring_packets.max(replica.ring_packets);
        self.out_bps += replica.out_bps;
        self.out_packets += replica.out_packets;
        self.worker_us += replica.worker_us;
        self.out_bytes += replica.out_bytes;
        self.joins += replica.joins;
        for (reason, packets) in &replica.out_drops {
            *self.out_drops.entry(reason).or_default() += packets;
        }
        self.receivers.add(&replica.receivers);
    }
}

/// Counters with names, as they stand in snapshots; zeros are left out.
pub fn named(drops: &outflow_packet::Drops) -> BTreeMap<&'static str, u64> {
    drops.iter().filter(|(_, n)| *n > 0).map(|(reason, n)| (reason.as_str(), n)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(owner: StreamId, is_replica: bool, name: &str, receivers: &[u64]) -> StreamPart {
        let ids = receivers.iter().map(|&id| ReceiverState { id, ..ReceiverState::default() });
        let receivers: Receivers = ids.collect::<Vec<_>>().into();
        let (ring_bytes, out_drops) = (receivers.len() as u64, [("slow-sink", 1)].into());
        let name = name.to_owned();
        let state =
            StreamState { name, receivers, joins: 2, ring_bytes, out_drops, ..StreamState::default() };
        StreamPart { owner, is_replica, state }
    }

    #[test]
    fn parts_of_a_stream_are_shown_as_one() {
        let parts = [
            part(1, true, "z", &[2, 5]),
            part(1, false, "z", &[1, 4, 6]),
            part(2, false, "a", &[7]),
            part(1, true, "z", &[3]),
            part(9, true, "gone", &[8]),
        ];
        let streams = together(parts.iter());
        assert_eq!(streams.iter().map(|stream| &*stream.name).collect::<Vec<_>>(), ["a", "z"]);
        let whole = &streams[1];
        assert_eq!(whole.receivers.iter().map(|r| r.id).collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6]);
        assert_eq!((whole.joins, whole.ring_bytes, whole.out_drops["slow-sink"]), (6, 3, 3));
        assert_eq!(whole.receivers.len(), 6);
        assert_eq!(whole.receivers.get(5).map(|receiver| receiver.id), Some(5));
        assert!(whole.receivers.get(7).is_none());
    }

    #[test]
    fn a_stream_is_found_by_its_name_whichever_worker_shows_it() {
        let names = ["m", "stage/2", "b", "stage", "z", "stage/10", "Stage"];
        let parts: Vec<_> = (0..).zip(names).map(|(owner, name)| part(owner, false, name, &[])).collect();
        // Workers show theirs by the times at which they were added: newest and oldest are mixed.
        let parts = [&parts[4..], &parts[..4], &[part(9, false, "m", &[1])]].concat();
        let state = RelayState { streams: together(parts.iter()), ..RelayState::default() };
        for name in names {
            assert_eq!(state.stream(name).map(|stream| &*stream.name), Some(name));
        }
        assert!(["", "a", "stage/", "zz"].iter().all(|name| state.stream(name).is_none()));
        assert!(state.stream("m").is_some_and(|stream| stream.receivers.is_empty()), "the older one");
    }
}
