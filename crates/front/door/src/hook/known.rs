//! What the hook has said, and the sessions that it has let in. Without I/O.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use outflow_config::{OnError, Secret};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;
use tokio::time::Instant;

use crate::limits::{HOOK_AGAIN, HOOK_ANSWERS_MAX, HOOK_GRACE};
use crate::rules::Right;

/// What the hook is asked.
#[derive(Clone)]
pub(crate) struct Question {
    pub(crate) right: Right,
    pub(crate) stream: String,
    pub(crate) token: Option<Secret>,
    pub(crate) peer: IpAddr,
    pub(crate) protocol: Cow<'static, str>,
}

/// The token stays out of logs.
impl fmt::Debug for Question {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Question { right, stream, peer, protocol, .. } = self;
        write!(f, "Question {{ {right:?} {stream} to {peer} by {protocol} }}")
    }
}

/// What tells questions apart.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    right: Right,
    stream: String,
    token: Option<[u8; 32]>,
    peer: IpAddr,
}

impl Question {
    /// Whether it is about this address and token.
    pub(crate) fn is_of(&self, peer: IpAddr, token: Option<&str>) -> bool {
        let is_shown = match (&self.token, token) {
            (Some(own), Some(token)) => own.as_bytes().ct_eq(token.as_bytes()).into(),
            (own, token) => own.is_none() && token.is_none(),
        };
        is_shown && self.peer.to_canonical() == peer.to_canonical()
    }

    pub(crate) fn key(&self) -> Key {
        let token = self.token.as_ref().map(|token| Sha256::digest(token.as_bytes()).into());
        Key { right: self.right, stream: self.stream.clone(), token, peer: self.peer.to_canonical() }
    }
}

/// What the hook has said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) allows: bool,
    /// How long that is good.
    pub(crate) ttl: Duration,
}

/// What a session was let in by: the hook is asked again for as long as it is kept.
#[derive(Debug)]
pub(crate) struct Lease {
    pub(crate) question: Question,
    is_over: AtomicBool,
}

impl Lease {
    /// Whether the hook has said that it is over.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }
}

/// All that is known of the hook's answers.
#[derive(Debug, Default)]
pub(crate) struct Known {
    answers: BTreeMap<Key, (bool, Instant)>,
    /// As many as there are sessions: what none keeps is let go at the next look.
    leases: BTreeMap<Key, Leased>,
}

#[derive(Debug)]
struct Leased {
    lease: Weak<Lease>,
    /// When the hook is asked again.
    due: Instant,
    /// When it is over if the hook goes on failing.
    ends: Option<Instant>,
}

impl Known {
    /// What the hook has said, if that is still good.
    pub(crate) fn answer(&self, now: Instant, key: &Key) -> Option<bool> {
        self.answers.get(key).filter(|(_, until)| now < *until).map(|(allows, _)| *allows)
    }

    /// The hook has said this.
    pub(crate) fn learn(&mut self, now: Instant, key: Key, Answer { allows, ttl }: Answer) {
        if self.answers.len() >= HOOK_ANSWERS_MAX && !self.answers.contains_key(&key) {
            self.answers.retain(|_, (_, until)| now < *until);
            if self.answers.len() >= HOOK_ANSWERS_MAX {
                let first = self.answers.iter().min_by_key(|(_, (_, until))| *until);
                let first = first.map(|(key, _)| key.clone());
                first.and_then(|key| self.answers.remove(&key));
            }
        }
        self.answers.insert(key, (allows, now + ttl));
    }

    /// What a session keeps that was let in; until then the hook is not asked again, unless it is for another one.
    pub(crate) fn lease(&mut self, question: Question, key: Key, due: Instant) -> Arc<Lease> {
        let kept = self.leases.get(&key).and_then(|leased| leased.lease.upgrade());
        if let Some(lease) = kept {
            return lease;
        }
        let lease = Arc::new(Lease { question, is_over: AtomicBool::new(false) });
        self.leases.insert(key, Leased { lease: Arc::downgrade(&lease), due, ends: None });
        lease
    }

    /// When what the hook has said is good no longer.
    pub(crate) fn good_until(&self, key: &Key) -> Option<Instant> {
        self.answers.get(key).map(|(_, until)| *until)
    }

    /// The leases that the hook is to be asked for now, `max` at most, the longest due first.
    pub(crate) fn due(&mut self, now: Instant, max: usize) -> Vec<Arc<Lease>> {
        self.leases.retain(|_, leased| leased.lease.strong_count() > 0);
        let mut due: Vec<_> = self.leases.values().filter(|leased| leased.due <= now).collect();
        due.sort_by_key(|leased| leased.due);
        due.into_iter().take(max).filter_map(|leased| leased.lease.upgrade()).collect()
    }

    /// The hook was asked for a lease again: whether that is over now.
    pub(crate) fn renewed(
        &mut self,
        now: Instant,
        lease: &Lease,
        answer: Option<Answer>,
        on_error: OnError,
    ) -> bool {
        let key = lease.question.key();
        if let Some(answer) = answer {
            self.learn(now, key.clone(), answer);
        }
        let Some(leased) = self.leases.get_mut(&key) else { return false };
        let (goes_on, wait, ends) = match (answer, on_error) {
            (Some(Answer { allows, ttl }), _) => (allows, ttl, None),
            (None, OnError::Allow) => (true, HOOK_AGAIN, None),
            (None, OnError::Deny) => {
                let ends = leased.ends.unwrap_or(now + HOOK_GRACE);
                (now < ends, HOOK_AGAIN, Some(ends))
            }
        };
        (leased.due, leased.ends) = (now + wait, ends);
        if !goes_on {
            lease.is_over.store(true, Ordering::Relaxed);
            self.leases.remove(&key);
        }
        !goes_on
    }

    /// Another hook counts: what this one said is no longer known, and it is asked for each session.
    pub(crate) fn forget(&mut self, now: Instant) {
        self.answers.clear();
        self.leases.values_mut().for_each(|leased| leased.due = leased.due.min(now));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(host: u32, token: &str) -> Question {
        Question {
            right: Right::Play,
            stream: "a".to_owned(),
            token: Some(Secret::new(token)),
            peer: IpAddr::from((0x0a00_0000 + host).to_be_bytes()),
            protocol: "http".into(),
        }
    }

    const fn says(allows: bool, seconds: u64) -> Answer {
        Answer { allows, ttl: Duration::from_secs(seconds) }
    }

    #[test]
    fn answers_are_good_for_their_time_and_for_the_same_question() {
        let (mut known, now) = (Known::default(), Instant::now());
        let key = question(1, "x").key();
        known.learn(now, key.clone(), says(true, 10));
        known.learn(now, question(2, "x").key(), says(false, 10));
        let later = now + Duration::from_secs(10);
        assert_eq!((known.answer(now, &key), known.answer(later, &key)), (Some(true), None));
        assert_eq!(known.answer(now, &question(2, "x").key()), Some(false));
        for other in [question(3, "x"), question(1, "y"), Question { token: None, ..question(1, "x") }] {
            assert_eq!(known.answer(now, &other.key()), None);
        }
        assert!(!format!("{:?}", question(1, "s3cret")).contains("s3cret"));
    }

    #[test]
    fn no_more_answers_are_kept_than_there_are_places() {
        let (mut known, now) = (Known::default(), Instant::now());
        (0..HOOK_ANSWERS_MAX as u32 + 5)
            .for_each(|n| known.learn(now, question(n, "x").key(), says(true, 5 + u64::from(n))));
        assert_eq!(known.answers.len(), HOOK_ANSWERS_MAX);
        let is_known = |known: &Known, n| known.answer(now, &question(n, "x").key()).is_some();
        assert!(!is_known(&known, 4) && is_known(&known, 5), "those go first that end first");
        let later = now + Duration::from_secs(60 * 60 * 24);
        known.learn(later, question(1, "z").key(), says(true, 5));
        assert_eq!(known.answers.len(), 1, "what is over takes no place");
    }

    #[test]
    fn a_session_is_asked_for_again_and_ends_with_a_no() {
        let (mut known, now) = (Known::default(), Instant::now());
        let at = |seconds| now + Duration::from_secs(seconds);
        let lease = |known: &mut Known, host| {
            let question = question(host, "x");
            let key = question.key();
            known.lease(question, key, at(10))
        };
        let (one, two) = (lease(&mut known, 1), lease(&mut known, 2));
        assert!(Arc::ptr_eq(&one, &lease(&mut known, 1)), "sessions of the same question share one");
        assert!(known.due(at(9), 9).is_empty());
        assert_eq!((known.due(at(10), 1).len(), known.due(at(10), 9).len()), (1, 2));
        assert!(!known.renewed(at(10), &one, Some(says(true, 20)), OnError::Deny));
        assert!(known.renewed(at(10), &two, Some(says(false, 20)), OnError::Deny));
        assert!(!one.is_over() && two.is_over());
        assert!(known.due(at(29), 9).is_empty() && known.due(at(30), 9).len() == 1);
        known.forget(at(11));
        assert_eq!((known.due(at(11), 9).len(), known.answer(at(11), &one.question.key())), (1, None));
        drop(one);
        assert!(known.due(at(30), 9).is_empty() && known.leases.is_empty(), "none keeps it");
    }

    #[test]
    fn a_hook_that_fails_is_asked_again_for_a_while_before_that_counts() {
        let (mut known, now) = (Known::default(), Instant::now());
        let question = question(1, "x");
        let lease = known.lease(question.clone(), question.key(), now);
        assert!(!known.renewed(now, &lease, None, OnError::Deny));
        assert!(known.due(now, 9).is_empty() && known.due(now + HOOK_AGAIN, 9).len() == 1);
        assert!(!known.renewed(now + HOOK_GRACE, &lease, None, OnError::Allow), "as it is configured");
        assert!(!known.renewed(now, &lease, None, OnError::Deny));
        assert!(!known.renewed(now, &lease, Some(says(true, 1)), OnError::Deny));
        assert!(!known.renewed(now + HOOK_GRACE, &lease, None, OnError::Deny), "it has answered since");
        assert!(known.renewed(now + 2 * HOOK_GRACE, &lease, None, OnError::Deny) && lease.is_over());
    }
}
