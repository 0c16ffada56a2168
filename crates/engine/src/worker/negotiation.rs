//! What receivers ask for over RTCP, or of their sessions, goes to the core, and its answers to them.

use outflow_media::Time;
use outflow_packet::Level;
use outflow_relay::SinkKey;
use outflow_relay::control::Granted;
use outflow_relay::requests::Refusal;
use outflow_rtp::rtcp::{LevelMessage, LevelRequest, Limit, Report, limit_noted};

use super::links::Links;
use super::reports::CNAME;
use super::stream::LiveStream;
use crate::message::{ControlError, SessionState};

/// What a receiver asks for.
#[derive(Debug, Clone, Copy)]
pub(super) enum Request {
    /// A level.
    Level(LevelRequest),
    /// No more than its way carries. `owner` waits for an answer (RFC 5104).
    Limit { limit: Limit, owner: Option<u32> },
}

impl Request {
    /// What a report asks for, if it does.
    pub(super) fn of(report: Report) -> Option<Self> {
        match report {
            Report::Level { message: LevelMessage::Request(request), .. } => Some(Request::Level(request)),
            Report::Limit { from, limit, is_tmmbr } => {
                Some(Request::Limit { limit, owner: is_tmmbr.then_some(from) })
            }
            _ => None,
        }
    }
}

impl LiveStream {
    /// Lets the core decide about a wish. Returns the RTCP packet that answers it, and its track.
    pub(super) fn negotiate(
        &mut self,
        now: Time,
        key: SinkKey,
        wish: Request,
        links: &mut Links,
    ) -> Option<(u8, Vec<u8>)> {
        let branch = self.core.sink(key).and_then(|sink| sink.branch);
        let track = branch.and_then(|branch| self.core.main_track(branch)).unwrap_or(0);
        let (before, wanted) = (self.core.spec(key).map(|spec| spec.level), self.wish(key));
        let answer = match wish {
            Request::Level(request) => {
                let answer = self.core.handle_level_request(now, key, request);
                let is_kept = self.keep_within_link(now, key, wanted, links).is_err();
                answer.map(|mut answer| {
                    if let Some(kept) = wanted.filter(|_| is_kept) {
                        answer.level = kept.level().number();
                    }
                    let ssrc = answer.media;
                    LevelMessage::Answer(answer).emit(ssrc, CNAME)
                })
            }
            Request::Limit { limit, owner } => {
                let is_taken = self.core.handle_limit(now, key, limit);
                if is_taken {
                    self.core.handle_estimate(limit.bps);
                }
                if is_taken && let Some(sink) = self.sink_mut(key) {
                    sink.carries_bps = Some(limit.bps);
                    if let Some(behind) = &sink.behind {
                        links.handle_limit(now, behind, sink.id, limit.bps);
                    }
                }
                // One that says what its way carries waits for no answer about the link's.
                let _ = self.keep_within_link(now, key, wanted, links);
                owner.filter(|_| is_taken).map(|owner| limit_noted(limit.media, owner, limit, CNAME))
            }
        };
        self.note_level(key, before, &wish);
        self.touched = true;
        answer.map(|bytes| (track, bytes))
    }

    /// Lets the core decide about what a receiver asks its session.
    pub(super) fn ask_session(
        &mut self,
        now: Time,
        key: SinkKey,
        level: Option<u8>,
        links: &mut Links,
    ) -> Result<SessionState, ControlError> {
        let (before, wanted) = (self.core.spec(key).map(|spec| spec.level), self.wish(key));
        let told = self.core.handle_session_request(now, key, level);
        let kept = self.keep_within_link(now, key, wanted, links);
        self.note_level(key, before, &level);
        let Granted { level, rates } = told.map_err(|(refusal, unfit)| match refusal {
            Refusal::TooMany => ControlError::TooOften(unfit.to_string()),
            _ => self.unsupported(&unfit),
        })?;
        kept?;
        Ok(SessionState { level, levels: rates })
    }

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
