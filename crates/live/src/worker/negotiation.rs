//! What receivers ask for over RTCP goes to the core, and its answers to them.

use outflow_media::rtcp::{LevelMessage, LevelRequest, Limit, Report, limit_noted};
use outflow_relay::SinkKey;

use super::Worker;
use super::rtcp::CNAME;

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
                owner.filter(|_| is_taken).map(|owner| limit_noted(limit.media, owner, limit, CNAME))
            }
        };
        let level = stream.core.spec(key).map(|spec| spec.level);
        if let (Some(level), true) = (level, level != before) {
            let receiver = stream.sink_mut(key).map_or(0, |sink| sink.id);
            let name = &stream.name;
            tracing::info!(
                stream = name,
                receiver,
                level = level.number(),
                ?wish,
                "a receiver gets another level"
            );
        }
        stream.touched = true;
        if let Some(bytes) = answer {
            self.send_rtcp(index, key, track, &bytes);
        }
    }
}
