//! Peers that were not let in, as they are told to whatever wants to know: a few of them in each second.

use std::fmt;
use std::net::IpAddr;
use std::sync::{Mutex, OnceLock, PoisonError};

use outflow_media::{Rate, Time, TokenBucket};
use tokio::time::Instant;

use crate::limits::{REFUSALS_AT_ONCE, REFUSALS_TOLD};
use crate::refused::Refused;
use crate::rules::{Asked, Right};

/// A peer that was not let in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// What it wanted to do.
    pub right: Right,
    /// With which stream, if with one.
    pub stream: Option<String>,
    /// Its address.
    pub peer: IpAddr,
    /// Why it may not.
    pub why: Refused,
    /// How many others were refused since the one that was told before.
    pub left_out: u64,
}

/// Takes what is told. It must not wait.
type Listener = Box<dyn Fn(Refusal) + Send + Sync>;

/// Those that were refused lately.
pub(crate) struct Refusals {
    listener: OnceLock<Listener>,
    lately: Mutex<Lately>,
}

#[derive(Debug)]
struct Lately {
    since: Instant,
    bucket: TokenBucket,
    left_out: u64,
}

impl Refusals {
    pub(crate) fn new(now: Instant) -> Self {
        let bucket = TokenBucket::new(REFUSALS_AT_ONCE);
        let lately = Mutex::new(Lately { since: now, bucket, left_out: 0 });
        Refusals { listener: OnceLock::new(), lately }
    }

    /// Has them told to this; the first one stays.
    pub(crate) fn listen(&self, listener: impl Fn(Refusal) + Send + Sync + 'static) {
        let _ = self.listener.set(Box::new(listener));
    }

    /// Tells one, if it is not one of too many.
    pub(crate) fn tell(&self, now: Instant, asked: &Asked<'_>, why: &Refused) {
        let Some(listener) = self.listener.get() else { return };
        // A client that is asked for its password has shown none before.
        if *why == Refused::TokenMissing {
            return;
        }
        let Some(left_out) = self.may(now) else { return };
        let (stream, why) = (asked.stream.map(str::to_owned), why.clone());
        listener(Refusal { right: asked.right, stream, peer: asked.peer, why, left_out });
    }

    /// Whether one more may be told, and how many were not since the last.
    fn may(&self, now: Instant) -> Option<u64> {
        // Numbers cannot be left half changed.
        let mut lately = self.lately.lock().unwrap_or_else(PoisonError::into_inner);
        let at = Time::ZERO + now.saturating_duration_since(lately.since);
        if lately.bucket.pass(at, Rate::per_second(REFUSALS_TOLD)) {
            return Some(std::mem::take(&mut lately.left_out));
        }
        lately.left_out += 1;
        None
    }
}

impl fmt::Debug for Refusals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.lately.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use outflow_config::Date;

    use super::*;

    #[test]
    fn of_a_flood_some_are_told_and_how_many_were_not() {
        let (now, told) = (Instant::now(), Arc::new(Mutex::new(Vec::new())));
        let refusals = Refusals::new(now);
        let asked =
            Asked { right: Right::Play, peer: [10, 0, 0, 1].into(), stream: Some("a"), today: Date(0) };
        refusals.tell(now, &asked, &Refused::TokenWrong);
        let taken = Arc::clone(&told);
        refusals.listen(move |refusal| taken.lock().expect("whole").push(refusal));
        refusals.tell(now, &asked, &Refused::TokenMissing);
        (0..REFUSALS_AT_ONCE + 7).for_each(|_| refusals.tell(now, &asked, &Refused::TokenWrong));
        assert_eq!(told.lock().expect("whole").len() as u64, REFUSALS_AT_ONCE);
        refusals.tell(now + Duration::from_secs(1), &asked, &Refused::TokenWrong);
        let told = told.lock().expect("whole");
        let last = told.last().expect("one more");
        assert_eq!((last.left_out, last.stream.as_deref()), (7, Some("a")));
        assert_eq!((last.right, &last.why), (Right::Play, &Refused::TokenWrong));
    }
}
