//! One live source and all its receivers.

use core::ops::Deref;

use outflow_media::Time;

use super::options::StreamOptions;
use super::output::{Output, ReportTo};
use super::renditions::{awaited_key_frames, origin_of};
use super::state::State;
use crate::feedback::Feedback;
use crate::limits::SENDER_REPORT_EVERY;
use crate::schedule::{Priority, Room, SinkKey, SinkSpec};
use crate::send::Report;

/// A stream: what its driver tells it, and what the driver is to do next. What can be read of it is in [`State`].
///
/// The driver calls a `handle_…` method when something comes in, and then [`poll`](Stream::poll) until there is
/// nothing more to do before a certain time. It has no other duty: whatever there is to send, to hand on or to know
/// comes out of `poll`. [`drive`](crate::drive) is that loop, for drivers of all sorts. This is all of one, with a clock
/// and a network of its own:
///
/// ```
/// use outflow_media::{Format, Time};
/// use outflow_relay::{Encapsulation, Output, Report, SinkSpec, Stream, StreamOptions, Transport};
///
/// /// Does all that a stream wants. Returns when it wants to be polled again, if at all.
/// fn drive(stream: &mut Stream, now: Time, sent: &mut Vec<(u64, Vec<u8>)>) -> Option<Time> {
///     loop {
///         match stream.poll(now) {
///             Output::Order(order) => {
///                 for key in stream.members(&order).to_vec() {
///                     let share = stream.share(&order, key);
///                     let Some(id) = stream.sink(key).map(|sink| sink.id) else { continue };
///                     // What it begins with: the tables of a transport stream, say.
///                     if let Some((bytes, _)) = stream.preamble(&order) {
///                         sent.push((id, bytes.to_vec()));
///                     }
///                     let mut blocked = None;
///                     for (seq, entry, _sequence_offset) in stream.packets(&order, share) {
///                         let is_full = sent.len() >= 100;
///                         if is_full {
///                             blocked = Some(seq);
///                             break;
///                         }
///                         sent.push((id, entry.packet.bytes.to_vec()));
///                     }
///                     if let Some(next) = blocked {
///                         stream.handle_report(key, Report::Blocked { next });
///                     }
///                 }
///             }
///             // RTCP, for receivers that get RTP: see `sender_report`.
///             Output::SenderReports(_to) => {}
///             // What receivers say, for the publisher: a key frame is wanted, or what they lose.
///             Output::Feedback(feedback) => println!("{feedback:?}"),
///             // For replicas elsewhere, if `handle_replica` said that there are any.
///             Output::HandOver(handed) => println!("{handed:?}"),
///             // Stages of the services in other threads, if there are any.
///             Output::Stages(stages) => println!("{stages:?}"),
///             Output::Event(event) => println!("{event:?}"),
///             // Work that is more urgent may go first, if there is any.
///             Output::GoOn => {}
///             Output::Wait { until } => return until.map(|(at, _reason)| at),
///         }
///     }
/// }
///
/// let mut stream = Stream::new(StreamOptions::default());
/// let (mut now, mut sent) = (Time::ZERO, Vec::new());
/// stream.handle_source(now, Format::Data);
/// stream.handle_join(now, 7, SinkSpec::new(Encapsulation::Ts, Transport::Datagram));
/// for datagram in [&b"one"[..], b"two"] {
///     stream.handle_media(now, 0, bytes::Bytes::from_static(datagram).into());
///     let again = drive(&mut stream, now, &mut sent).expect("the source may go away");
///     assert!(again > now);
///     now = now + core::time::Duration::from_millis(20);
/// }
/// assert_eq!(sent, [(7, b"one".to_vec()), (7, b"two".to_vec())]);
/// ```
#[derive(Debug)]
pub struct Stream {
    pub(super) state: State,
}

impl Deref for Stream {
    type Target = State;

    fn deref(&self) -> &State {
        &self.state
    }
}

impl Stream {
    /// A stream without a source.
    pub fn new(options: StreamOptions) -> Self {
        Stream { state: State::new(options) }
    }

    /// Changes what can be changed while packets flow: all options but the SSRC and the seed.
    pub fn set_options(&mut self, options: StreamOptions) {
        self.state.out.set_options(options);
    }

    /// A sink joins, at the newest key frame. `id` is the driver's name for it.
    pub fn handle_join(&mut self, now: Time, id: u64, spec: SinkSpec) -> SinkKey {
        self.state.out.join(now, id, spec)
    }

    /// A sink leaves.
    pub fn handle_leave(&mut self, now: Time, key: SinkKey) {
        self.state.out.leave(now, key);
    }

    /// A sink wants nothing until [`Stream::handle_resume`].
    pub fn handle_pause(&mut self, key: SinkKey) {
        self.state.out.displace(key);
    }

    /// A sink that paused takes a place at the newest key frame again, held until it is reported
    /// writable.
    pub fn handle_resume(&mut self, now: Time, key: SinkKey) {
        let out = &mut self.state.out;
        out.displace(key);
        if let Some(sink) = out.sinks.get_mut(key.0) {
            sink.blocked = true;
            sink.spec.held = true;
        }
        out.place(now, key);
    }

    /// What became of an order, as far as it is not "sent".
    pub fn handle_report(&mut self, key: SinkKey, report: Report) {
        self.state.out.report(key, report);
    }

    /// A receiver cannot go on without a key frame of a track.
    pub fn handle_key_frame_request(&mut self, key: SinkKey, track: u8) {
        let (rendition, track) = origin_of(&self.state.out, key, track);
        self.state.feedback.want_key_frame(rendition, track);
    }

    /// A receiver has lost this share of its packets lately, in 256ths.
    pub fn handle_loss(&mut self, share: u8) {
        self.state.feedback.lost(share);
    }

    /// The path to a receiver carries that many bits a second, as it says.
    pub fn handle_estimate(&mut self, bps: u64) {
        self.state.feedback.estimate(bps);
    }

    /// What the receivers of a replica, or of a stream that this one is a rendition of, say.
    pub fn handle_feedback(&mut self, feedback: Feedback) {
        self.state.feedback.add(feedback);
    }

    /// Changes a sink's class. Nothing that it is owed gets lost.
    pub fn set_priority(&mut self, key: SinkKey, priority: Priority) {
        self.state.out.set_priority(key, priority);
    }

    /// What to do next, whatever its class; see [`Output::Wait`].
    pub fn poll(&mut self, now: Time) -> Output {
        let order = |state: &mut State| {
            Priority::ALL.into_iter().find_map(|class| next_order(state, now, class, Room::UNLIMITED))
        };
        self.poll_with(now, order)
    }

    /// What to do next in this class, for at most `room` sinks at once; what is owed in other
    /// classes waits. Everything but orders is of every class.
    pub fn poll_class(&mut self, now: Time, class: Priority, room: Room) -> Output {
        self.poll_with(now, |state| next_order(state, now, class, room))
    }

    fn poll_with(&mut self, now: Time, next: impl Fn(&mut State) -> Option<Output>) -> Output {
        self.state.out.serve(now);
        self.check_source(now);
        // First of all, so that replicas can begin.
        if let Some(handed) = self.state.sharing.take_handed() {
            return Output::HandOver(handed);
        }
        let out = &mut self.state.out;
        out.check_hopeless(now);
        out.check_linger(now);
        if let Some(stages) = out.services.next_of_stages() {
            return Output::Stages(stages);
        }
        if let Some(event) = out.events.pop_front() {
            return Output::Event(event);
        }
        out.change_levels(now);
        loop {
            if let Some(output) = next(&mut self.state) {
                return output;
            }
            if !self.state.out.change_levels(now) {
                break;
            }
        }
        let State { out, source, feedback, reports_due, .. } = &mut self.state;
        for (rendition, track) in awaited_key_frames(out) {
            feedback.want_key_frame(rendition, track);
        }
        if let Some(feedback) = feedback.poll(now) {
            return Output::Feedback(feedback);
        }
        if let Some(key) = out.audience.next_begun() {
            return Output::SenderReports(ReportTo::One(key));
        }
        if source.is_up() && now >= *reports_due {
            *reports_due = now + SENDER_REPORT_EVERY;
            return Output::SenderReports(ReportTo::All);
        }
        // Of what was done just now something may be for stages elsewhere.
        match out.services.next_of_stages() {
            Some(stages) => Output::Stages(stages),
            None => Output::Wait { until: self.next_wake() },
        }
    }

    fn check_source(&mut self, now: Time) {
        let State { source, out, .. } = &self.state;
        let silent = now.since(source.last_packet());
        // A replica is told.
        if source.is_up() && silent >= out.options.source_timeout && !self.is_replica() {
            self.source_went_away(now);
        }
    }
}

fn next_order(state: &mut State, now: Time, class: Priority, room: Room) -> Option<Output> {
    let bps = state.source.bps(now);
    state.out.next_order(now, class, room, bps)
}
