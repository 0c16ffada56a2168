//! Packets that an order asks to be sent to sinks behind a link are offered to it.

use bytes::Bytes;
use outflow_link::{ApplicationId, FlowId, Medium};
use outflow_media::{Format, Kind, Tag, Time};
use outflow_relay::{LinkId, Order, Priority, Share, SinkKey, Stream};

use super::super::stream::{LiveSink, Out};
use super::super::tasks::Tasks;
use super::{Behind, Links, LiveLink, Parcel, Task};
use crate::send::Piece;

/// The packets of an order, and whose they are.
pub(in super::super) struct Offered<'a> {
    /// The stream, and its index at the worker.
    pub(in super::super) stream: (&'a Stream, usize),
    pub(in super::super) order: &'a Order,
    pub(in super::super) share: Share,
    /// As they would go on the wire.
    pub(in super::super) pieces: &'a [Piece<'a>],
    pub(in super::super) members: &'a [SinkKey],
}

impl Links {
    /// Offers packets to a link. What it gives up for them is to be settled.
    pub(in super::super) fn offer(
        &mut self,
        (now, id): (Time, LinkId),
        offered: &Offered<'_>,
        sinks: &mut [Option<LiveSink>],
        tasks: &mut Tasks,
    ) {
        let Some(at) = self.place(id) else { return };
        let live = &mut self.all[at];
        offered.each(|piece, tag, body| {
            for key in offered.members {
                let sink = sinks.get_mut(key.0).and_then(Option::as_mut);
                if let Some(sink) = sink.filter(|sink| sink.is_reached(piece.track)) {
                    live.offer(now, offered, (*key, sink), (piece, tag, body));
                }
            }
        });
        if live.due.is_none() && live.link.waiting().1 > 0 {
            live.due = Some(now);
            tasks.add(Priority::High, Task::Depart(id));
        }
    }
}

impl LiveLink {
    fn offer(
        &mut self,
        now: Time,
        offered: &Offered<'_>,
        (key, sink): (SinkKey, &mut LiveSink),
        (piece, tag, body): (&Piece<'_>, Tag, &Bytes),
    ) {
        let (stream, index) = offered.stream;
        let class = stream.spec(key).map_or(0, |spec| spec.priority as u8);
        let Some(behind) = &mut sink.behind else { return };
        let bytes = piece.len() + behind.overhead;
        let known = behind.flows.iter().find(|(track, _)| *track == piece.track);
        let flow = known.map(|(_, flow)| *flow);
        let format = stream.branch_format(offered.order.branch);
        let flow = match flow {
            Some(flow) => flow,
            None => self.begin(now, behind, piece.track, (medium(format, piece.track), class)),
        };
        let alike = self.similar.look(now, flow, &tag, bytes);
        if let Some(application) = alike.filter(|_| tag.needs.is_nothing() && self.link.shows(flow, &tag)) {
            self.link.regroup(flow, application);
        }
        let application = self.link.application(flow).unwrap_or(ApplicationId::of(Medium::Data, 0));
        self.tally.offered(application, bytes);
        let header = piece.header.first_chunk().copied();
        let (track, is_preamble) = (piece.track, piece.is_preamble);
        let (receiver, body) = (sink.id, body.clone());
        let (stream, sink, place, worth) = (index, key, 0, piece.worth);
        let parcel =
            Parcel { stream, sink, receiver, application, track, place, is_preamble, worth, header, body };
        self.link.offer(now, flow, tag, bytes, parcel);
    }

    /// The first packet of a sink's track.
    fn begin(&mut self, now: Time, behind: &mut Behind, track: u8, (medium, class): (Medium, u8)) -> FlowId {
        let flow = self.link.add_flow(ApplicationId::of(medium, 0), class);
        self.similar.begin(now, flow, medium);
        self.receivers += usize::from(behind.flows.is_empty());
        // As many as there are tracks; a table that is full would be a track too many.
        if behind.flows.try_push((track, flow)).is_err() {
            tracing::error!(link = self.name, track, "a track too many behind a link");
        }
        flow
    }
}

impl Offered<'_> {
    /// Each packet, with what it means and the bytes behind its header.
    fn each(&self, mut offer: impl FnMut(&Piece<'_>, Tag, &Bytes)) {
        let (stream, _) = self.stream;
        let mut packets = stream.packets(self.order, self.share).peekable();
        for piece in self.pieces {
            if piece.is_preamble {
                let Some((bytes, _)) = stream.preamble(self.order) else { continue };
                let before = packets.peek().map_or(Tag::default(), |(_, entry, _)| entry.packet.tag);
                let tag = Tag { kind: Kind::Header, first: false, last: false, ..before };
                offer(piece, tag, &bytes.slice_ref(piece.body));
            } else if let Some((_, entry, _)) = packets.next() {
                offer(piece, entry.packet.tag, &entry.packet.bytes.slice_ref(piece.body));
            }
        }
    }
}

impl LiveSink {
    /// Whether packets of a track have an address to go to.
    fn is_reached(&self, track: u8) -> bool {
        match &self.out {
            Out::Udp { route, .. } => route.address(track).is_some(),
            Out::Stream { connection, .. } => connection.is_some(),
            Out::Peer { place, .. } => place.is_some(),
        }
    }
}

/// What a track is for. A transport stream, whatever is in it, counts as video.
fn medium(format: Option<&Format>, track: u8) -> Medium {
    let Some(format) = format else { return Medium::Data };
    match format.track(track) {
        None if *format == Format::Data => Medium::Data,
        None => Medium::Video,
        Some(track) if track.codec.is_video() => Medium::Video,
        Some(_) => Medium::Audio,
    }
}
