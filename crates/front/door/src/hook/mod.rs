//! A program that is asked by HTTP which peer may come in (`[access.hook]`).

mod known;
mod places;

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use outflow_config::{HookConfig, OnError};
use outflow_fetch::{Agent, Error, agent, body, post};
use serde::{Deserialize, Serialize};
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};

use crate::access::Door;
use crate::limits::{
    GRANTS_LOOK_EVERY, HOOK_AGAIN, HOOK_ANSWER_BYTES_MAX, HOOK_OPEN_OF_SESSIONS, HOOK_TTL_MAX, HOOK_TTL_MIN,
    HOOK_TTL_NO, HOOK_WITHIN,
};
use crate::seldom::Seldom;
use known::{Answer, Known};
pub(crate) use known::{Lease, Question};
use places::Places;

/// What asks, and what it has learned.
pub(crate) struct Hook {
    /// Made with the first question: the certificates that it reads are for relays that have a hook.
    agent: LazyLock<Agent>,
    places: Places,
    known: Mutex<Known>,
    log: Mutex<Seldom>,
    /// A session is over at which grants have not been looked at since.
    has_ended: AtomicBool,
    failed: AtomicU64,
}

/// What became of a question.
#[derive(Debug)]
pub(crate) enum Said {
    /// The peer may come in, for as long as this is not over.
    Yes(Arc<Lease>),
    /// It may not.
    No,
    /// There was no answer.
    Nothing,
}

/// A question as it is sent.
#[derive(Serialize)]
struct Asked<'a> {
    right: &'static str,
    stream: &'a str,
    token: Option<&'a str>,
    address: String,
    protocol: &'a str,
}

/// An answer as it comes.
#[derive(Debug, Deserialize)]
struct Answered {
    allow: bool,
    ttl: Option<f64>,
}

impl Hook {
    pub(crate) fn new() -> Self {
        Hook {
            agent: LazyLock::new(|| agent(HOOK_WITHIN)),
            places: Places::new(),
            known: Mutex::default(),
            log: Mutex::default(),
            has_ended: AtomicBool::new(false),
            failed: AtomicU64::new(0),
        }
    }

    /// Whether a peer may come in.
    pub(crate) async fn ask(&self, config: &Arc<HookConfig>, question: Question) -> Said {
        let (key, now) = (question.key(), Instant::now());
        let known = self.known().answer(now, &key);
        let allows = match known {
            Some(allows) => Some(allows),
            None => {
                let place = self.places.take(question.peer);
                let answer = self.answer(config, &question, place).await;
                if let Some(answer) = answer {
                    self.known().learn(Instant::now(), key.clone(), answer);
                }
                answer.map(|answer| answer.allows)
            }
        };
        if allows == Some(false) {
            return Said::No;
        }
        if allows.is_none() && config.on_error == OnError::Deny {
            return Said::Nothing;
        }
        let mut known = self.known();
        let due = known.good_until(&key).filter(|_| allows.is_some());
        Said::Yes(known.lease(question, key, due.unwrap_or_else(|| Instant::now() + HOOK_AGAIN)))
    }

    /// What a session keeps that another process has let in: the hook is asked for it soon.
    pub(crate) fn lease_again(&self, question: Question) -> Arc<Lease> {
        let key = question.key();
        self.known().lease(question, key, Instant::now() + HOOK_AGAIN)
    }

    /// What the hook says to a question, once there is a place for it; that it says nothing is logged and counted.
    async fn answer<P: Send + 'static>(
        &self,
        config: &Arc<HookConfig>,
        question: &Question,
        place: impl Future<Output = Option<P>>,
    ) -> Option<Answer> {
        let (agent, config, question) = (self.agent.clone(), Arc::clone(config), question.clone());
        let asking = async move {
            let place = place.await.ok_or("the relay ends")?;
            let asked = spawn_blocking(move || {
                // It is given back when the answer is there, and not when that is waited for no longer.
                let _place = place;
                send(&agent, &config, &question)
            });
            asked.await.unwrap_or_else(|error| Err(error.to_string()))
        };
        let late = |_| Err(format!("there is no answer within {} s", HOOK_WITHIN.as_secs()));
        let answer = timeout(HOOK_WITHIN, asking).await.unwrap_or_else(late);
        answer.inspect_err(|why| self.fail(why)).ok()
    }

    fn fail(&self, why: &str) {
        self.failed.fetch_add(1, Ordering::Relaxed);
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(times) = log.happened(Instant::now()) {
            tracing::warn!(why, times, "the hook of [access.hook] does not answer well");
        }
    }

    /// How often it did not answer.
    pub(crate) fn failed(&self) -> u64 {
        self.failed.load(Ordering::Relaxed)
    }

    /// Whether a session that it has let in is over; told once.
    pub(crate) fn has_ended(&self) -> bool {
        self.has_ended.swap(false, Ordering::Relaxed)
    }

    /// Another hook counts from now on.
    pub(crate) fn forget(&self) {
        self.known().forget(Instant::now());
    }

    /// Asks for what a session keeps once more; no more than there are places for sessions at once.
    async fn renew(&self, config: &Arc<HookConfig>, lease: &Lease) {
        let answer = self.answer(config, &lease.question, async { Some(()) }).await;
        if self.known().renewed(Instant::now(), lease, answer, config.on_error) {
            self.has_ended.store(true, Ordering::Relaxed);
        }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        // Each change is whole, or did not begin.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Hook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.known().fmt(f)
    }
}

/// Asks for sessions again whose answers are good no longer, until the relay ends.
pub async fn ask_again(door: Arc<Door>) {
    let mut ticks = interval(GRANTS_LOOK_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        while let Some(config) = door.hook_config() {
            let due = door.hook().known().due(Instant::now(), HOOK_OPEN_OF_SESSIONS);
            let is_all = due.len() < HOOK_OPEN_OF_SESSIONS;
            let renew = |lease: Arc<Lease>| {
                let (door, config) = (Arc::clone(&door), Arc::clone(&config));
                async move { door.hook().renew(&config, &lease).await }
            };
            due.into_iter().map(renew).collect::<JoinSet<()>>().join_all().await;
            if is_all {
                break;
            }
        }
    }
}

/// Sends a question, and waits for the answer.
fn send(agent: &Agent, config: &HookConfig, question: &Question) -> Result<Answer, String> {
    let Question { right, stream, token, peer, protocol } = question;
    let (right, token) = (right.name(), token.as_ref().map(|token| token.reveal()));
    let asked = Asked { right, stream, token, address: peer.to_canonical().to_string(), protocol };
    // It is texts: it can always be written.
    let text = serde_json::to_string(&asked).unwrap_or_default();
    let secret = config.secret.as_ref().map(|secret| secret.as_bytes());
    let answered = post(agent, config.url.0.reveal(), &text, secret).send(&text);
    match answered.and_then(|answer| body(answer, HOOK_ANSWER_BYTES_MAX)) {
        Ok(bytes) => read(&bytes),
        Err(Error::StatusCode(401 | 403)) => Ok(Answer { allows: false, ttl: HOOK_TTL_NO }),
        Err(error) => Err(format!("{}: {error}", config.url.0.shown())),
    }
}

fn read(bytes: &[u8]) -> Result<Answer, String> {
    let Answered { allow, ttl } =
        serde_json::from_slice(bytes).map_err(|error| format!("its answer cannot be read: {error}"))?;
    let ttl = ttl.and_then(|seconds| Duration::try_from_secs_f64(seconds.max(0.0)).ok());
    let ttl = ttl.unwrap_or(if allow { HOOK_TTL_MAX } else { HOOK_TTL_NO }).clamp(HOOK_TTL_MIN, HOOK_TTL_MAX);
    Ok(Answer { allows: allow, ttl })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_says_whether_and_for_how_long_within_bounds() {
        let said = |text: &str| read(text.as_bytes()).map(|answer| (answer.allows, answer.ttl.as_secs_f64()));
        assert_eq!(said("{\"allow\":true,\"ttl\":5.5,\"more\":1}"), Ok((true, 5.5)));
        assert_eq!(said("{\"allow\":false}"), Ok((false, HOOK_TTL_NO.as_secs_f64())));
        assert_eq!(said("{\"allow\":true,\"ttl\":1e300}"), Ok((true, HOOK_TTL_MAX.as_secs_f64())));
        assert_eq!(said("{\"allow\":true,\"ttl\":-1}"), Ok((true, HOOK_TTL_MIN.as_secs_f64())));
        for bad in ["", "ok", "{}", "{\"allow\":\"yes\"}", "{\"allow\":1}"] {
            assert!(said(bad).is_err(), "{bad}");
        }
    }
}
