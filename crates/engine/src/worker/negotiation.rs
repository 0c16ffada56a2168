//! What receivers ask for over RTCP, or of their sessions, goes to the core, and its answers to them.

use outflow_packet::Level;
use outflow_relay::SinkKey;
use outflow_relay::control::Granted;
use outflow_relay::requests::Refusal;
use outflow_rtp::rtcp::{LevelMessage, LevelRequest, Limit, Report, limit_noted};

use super::Worker;
use super::rtcp::CNAME;
use super::services::unsupported;
use super::stream::LiveStream;
use crate::message::{ControlError, ReceiverId, SessionState, StreamId};

/// What a receiver asks for.
#[derive(Debug, Clone, Copy)]
pub(super) enum Wish {
    /// A level.
    Level(LevelRequest),
    /// No more than its way carries. `owner` waits for an answer (RFC 5104).
    Limit { limit: Limit, owner: Option<u32> },
}

impl Wish {
    /// What a report asks for, if it does.
    pub(super) fn of(report: Report) -> Option<Self> {
        match report {
            Report::Level { message: LevelMessage::Request(request), .. } => Some(Wish::Level(request)),
            Report::Limit { from, limit, is_tmmbr } => {
                Some(Wish::Limit { limit, owner: is_tmmbr.then_some(from) })
            }
            _ => None,
        }
    }
}

impl Worker {
    /// Lets the core decide about a wish, and answers.
    pub(super) fn negotiate(&mut self, index: usize, key: SinkKey, wish: Wish) {
        let now = self.clock.now();
        let Some(stream) = self.streams.get_mut(index) else { return };
        let branch = stream.core.sink(key).and_then(|sink| sink.branch);
        let track = branch.and_then(|branch| stream.core.main_track(branch)).unwrap_or(0);
        let before = stream.core.spec(key).map(|spec| spec.level);
        let answer = match wish {
            Wish::Level(request) => {
                let answer = stream.core.handle_level_request(now, key, request);
                answer.map(|answer| {
                    let ssrc = answer.media;
                    LevelMessage::Answer(answer).emit(ssrc, CNAME)
                })
            }
            Wish::Limit { limit, owner } => {
                let is_taken = stream.core.handle_limit(now, key, limit);
                if is_taken {
                    stream.core.handle_estimate(limit.bps);
                }
                if is_taken
                    && let Some(sink) = stream.sink_mut(key)
                    && let Some(behind) = &sink.behind
                {
                    self.links.handle_limit(now, behind, sink.id, limit.bps);
                }
                owner.filter(|_| is_taken).map(|owner| limit_noted(limit.media, owner, limit, CNAME))
            }
        };
        stream.note_level(key, before, &wish);
        stream.touched = true;
        if let Some(bytes) = answer {
            self.send_rtcp(index, key, track, &bytes);
        }
    }

    /// Lets the core decide about what a receiver asks its session.
    pub(super) fn ask_session(
        &mut self,
        (id, receiver): (StreamId, ReceiverId),
        level: Option<u8>,
    ) -> Result<SessionState, ControlError> {
        let now = self.clock.now();
        // It leaves at times while its session is asked.
        let mut answer = Err(ControlError::UnknownSession);
        self.with_sink(id, receiver, |stream, key| {
            let before = stream.core.spec(key).map(|spec| spec.level);
            let told = stream.core.handle_session_request(now, key, level);
            stream.note_level(key, before, &level);
            answer = told.map_err(|(refusal, unfit)| match refusal {
                Refusal::TooMany => ControlError::TooOften(unfit.to_string()),
                _ => unsupported(&stream.name, &unfit),
            });
        });
        answer.map(|Granted { level, rates }| SessionState { level, levels: rates })
    }
}

impl LiveStream {
    /// Writes down that a receiver gets another level than before, if so, by this wish.
    fn note_level(&mut self, key: SinkKey, before: Option<Level>, wish: &dyn core::fmt::Debug) {
        self.count_wish(key);
        let level = self.core.spec(key).map(|spec| spec.level);
        if let (Some(level), true) = (level, level != before) {
            let receiver = self.sink_mut(key).map_or(0, |sink| sink.id);
            let (stream, level) = (&self.name, level.number());
            tracing::info!(stream, receiver, level, ?wish, "a receiver gets another level");
        }
    }
}
