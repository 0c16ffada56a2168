//! A source's turn at a stream: its queue, and the sockets that the worker reads for it.

use outflow_media::Time;
use outflow_packet::DropReason;
use outflow_relay::{Feedback, Stream};
use outflow_rtp::rtcp;
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TryRecvError;

use crate::clock::Clock;
use crate::limits::INGEST_ROUND_PACKETS;
use crate::message::{Ingest, LastMedia, SourceId};

/// A source's turn.
pub(super) struct LiveSource {
    id: SourceId,
    peer: String,
    queue: mpsc::Receiver<Ingest>,
    /// Tokens of its sockets.
    sockets: Vec<usize>,
    /// To its front.
    feedback: mpsc::Sender<Feedback>,
    media: LastMedia,
    /// Key frames that its sender was asked for; it wraps.
    requests: u8,
}

impl LiveSource {
    /// One whose packets come through this queue, or to the sockets of these tokens.
    pub(super) fn new(
        id: SourceId,
        peer: String,
        queue: mpsc::Receiver<Ingest>,
        sockets: Vec<usize>,
        (feedback, media): (mpsc::Sender<Feedback>, LastMedia),
    ) -> Self {
        LiveSource { id, peer, queue, sockets, feedback, media, requests: 0 }
    }

    pub(super) fn id(&self) -> SourceId {
        self.id
    }

    /// What its packets come from, for people.
    pub(super) fn peer(&self) -> &str {
        &self.peer
    }

    /// Its packets come from another peer now.
    pub(super) fn set_peer(&mut self, peer: String) {
        self.peer = peer;
    }

    /// Tokens of its sockets.
    pub(super) fn sockets(&self) -> &[usize] {
        &self.sockets
    }

    /// Takes what its publisher has put into the queue, a round of it at most. Returns how much.
    pub(super) fn drain(&mut self, core: &mut Stream, clock: &Clock) -> usize {
        let (mut taken, mut media_at) = (0, None);
        while taken < INGEST_ROUND_PACKETS {
            let now = clock.now();
            match self.queue.try_recv() {
                Ok(Ingest::Media { track, bytes }) => {
                    if core.handle_media(now, track, bytes) {
                        media_at = Some(now);
                    }
                }
                Ok(Ingest::Rtcp { track, bytes }) => sender_reports(core, now, track, &bytes),
                Ok(Ingest::Dropped { reason, packets }) => {
                    core.count_drop(reason, packets);
                }
                Err(TryRecvError::Empty | TryRecvError::Disconnected) => break,
            }
            taken += 1;
        }
        media_at.into_iter().for_each(|at| self.media.came(at));
        taken
    }

    /// What its packets come through.
    pub(super) fn into_queue(self) -> mpsc::Receiver<Ingest> {
        self.queue
    }

    /// Media came to its sockets.
    pub(super) fn media_came(&self, now: Time) {
        self.media.came(now);
    }

    /// Hands on what receivers say. Returns the track and the number of a key frame request that is for the
    /// sender to its sockets.
    pub(super) fn hand_up(&mut self, feedback: Feedback) -> Option<(u8, u8)> {
        if self.sockets.is_empty() {
            // It is said again, as long as it holds.
            let _ = self.feedback.try_send(feedback);
            return None;
        }
        let Feedback::KeyFrame { track, .. } = feedback else { return None };
        self.requests = self.requests.wrapping_add(1);
        Some((track, self.requests))
    }
}

/// Takes note of the sender reports in a compound RTCP packet of a source.
pub(super) fn sender_reports(core: &mut Stream, now: Time, track: u8, bytes: &[u8]) {
    let told = rtcp::read(bytes, |report| {
        if let rtcp::Report::Sender(report) = report {
            core.handle_sender_report(now, track, report.ntp, report.rtp);
        }
    });
    if told.is_err() {
        core.count_drop(DropReason::Malformed, 1);
    }
}
