//! The handle, and the task that keeps the connection.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use fastrand::Rng;
use outflow_routing::tree::{Location, RelayId};
use tokio::sync::{Notify, Semaphore, mpsc};
use tokio::task::AbortHandle;
use tokio::time::timeout;

use crate::choose::choose;
use crate::counters::{Counters, Counts};
use crate::entry::{Entry, RelayRecord};
use crate::key::Key;
use crate::limits::{EVENTS_MAX, LEAVE_WAIT, LOOKUP_WAIT, READING_MAX, READS_MAX};
use crate::options::{Access, Error, Options};
use crate::own::{Own, Value};
use crate::session::Session;
use crate::task;
use crate::watch::{self, Phase, Watches};

/// The directory. Handles may be cloned; when the last is gone, the connection is closed, and what this relay
/// has said expires. [`Directory::leave`] takes it back at once.
#[derive(Debug, Clone)]
pub struct Directory {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    shared: Arc<Shared>,
    task: AbortHandle,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.task.abort();
        self.shared.state().watches.clear();
    }
}

/// Whether NATS can be reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// It cannot. Everything goes on with what is known, and it is tried again for ever.
    Away {
        /// Why, in words for the operator.
        why: String,
    },
    /// It can, for the first time or again. What this relay has said lately is said again.
    Back,
}

/// A question that has no answer, as NATS is away.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the directory is away: {why}")]
pub struct Away {
    /// Why, in words for the operator.
    pub why: String,
}

/// What handles and tasks share.
#[derive(Debug)]
pub(crate) struct Shared {
    state: Mutex<State>,
    /// There is something to be put.
    pub(crate) changed: Notify,
    /// Everything is put.
    pub(crate) settled: Notify,
    /// To read entries.
    pub(crate) turns: Semaphore,
    pub(crate) counts: Counts,
    pub(crate) max_age: Duration,
}

/// What is behind the lock, which is held for moments only.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) own: Own,
    /// Values that were sent and are not answered.
    pub(crate) in_flight: usize,
    pub(crate) link: Link,
    pub(crate) watches: Watches,
    pub(crate) random: Rng,
}

/// The connection.
#[derive(Debug)]
pub(crate) enum Link {
    Up(Arc<Session>),
    Away(String),
}

impl Shared {
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        // Nothing is left half done where it could panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Directory {
    /// Begins to connect, within a tokio runtime, for as long as there is a handle. That NATS is away is no
    /// error: it is tried again for ever.
    ///
    /// # Errors
    /// What is wrong with the options, or with the files that they name.
    pub fn start(options: Options) -> Result<(Directory, mpsc::Receiver<Event>), Error> {
        let access = Access::check(options)?;
        let (events, receiver) = mpsc::channel(EVENTS_MAX);
        let max_age = access.options.max_age;
        let state = State {
            own: Own::new(max_age),
            in_flight: 0,
            link: Link::Away("it was not reached yet".to_owned()),
            watches: Watches::default(),
            random: Rng::with_seed(access.options.seed),
        };
        let shared = Arc::new(Shared {
            state: Mutex::new(state),
            changed: Notify::new(),
            settled: Notify::new(),
            turns: Semaphore::new(READING_MAX),
            counts: Counts::default(),
            max_age,
        });
        let task = tokio::spawn(task::run(shared.clone(), access, events)).abort_handle();
        Ok((Directory { inner: Arc::new(Inner { shared, task }) }, receiver))
    }

    /// Says that a relay has a stream, until it is withdrawn or [`Options::max_age`] is over. It never blocks:
    /// the newest for a stream and a relay is put as soon as NATS can be reached.
    pub fn register(&self, entry: &Entry) {
        let key = Key::Stream(entry.stream.clone(), entry.offer.contact.relay);
        if entry.check().is_err() {
            self.inner.shared.counts.own_refused.add_one();
            return;
        }
        self.say(&key, Some(entry.to_json().into()));
    }

    /// Says that a relay has a stream no more.
    pub fn withdraw(&self, stream: &str, relay: RelayId) {
        self.say(&Key::Stream(stream.to_owned(), relay), None);
    }

    /// Says what this relay is, until [`Options::max_age`] is over.
    pub fn announce(&self, relay: &RelayRecord) {
        self.say(&Key::Relay(relay.relay), Some(Bytes::from(relay.to_json())));
    }

    fn say(&self, key: &Key, value: Value) {
        let shared = &self.inner.shared;
        let text = key.to_text();
        if text.is_some_and(|text| shared.state().own.say(Instant::now(), text, value)) {
            shared.changed.notify_one();
        } else {
            shared.counts.own_refused.add_one();
        }
    }

    /// Takes back everything that was said by this handle and its clones, and waits for a moment until NATS
    /// knows. For relays that are about to end.
    pub async fn leave(&self) {
        let shared = &self.inner.shared;
        shared.state().own.withdraw_all(Instant::now());
        let all_is_put = async {
            loop {
                let settled = shared.settled.notified();
                shared.changed.notify_one();
                if shared.state().has_nothing_to_put() {
                    return;
                }
                settled.await;
            }
        };
        // If NATS is away or does not answer, what was said expires.
        let _late = timeout(LEAVE_WAIT, all_is_put).await;
    }

    /// The relays that have a stream: the [`NEAREST`](crate::limits::NEAREST) to a place, nearest first, and
    /// [`OTHERS`](crate::limits::OTHERS) of the rest by chance. This relay is among them if it has the stream.
    /// The answer comes within [`LOOKUP_WAIT`], and from memory if the stream was looked up lately.
    ///
    /// # Errors
    /// NATS is away, or does not answer in time.
    pub async fn lookup(&self, stream: &str, near: Location) -> Result<Vec<Entry>, Away> {
        let shared = &self.inner.shared;
        shared.counts.lookups.add_one();
        let answer = self.look_up(stream, near).await;
        if answer.is_err() {
            shared.counts.lookups_away.add_one();
        }
        answer
    }

    async fn look_up(&self, stream: &str, near: Location) -> Result<Vec<Entry>, Away> {
        let shared = &self.inner.shared;
        let mut phase = {
            let mut state = shared.state();
            let session = state.session()?;
            match state.watches.used(Instant::now(), stream) {
                Some(phase) => phase,
                None => watch::begin(shared, &mut state.watches, session, stream).ok_or_else(|| Away {
                    why: format!("more than {READS_MAX} streams are looked up at once"),
                })?,
            }
        };
        if *phase.borrow() != Phase::Reading {
            shared.counts.lookups_known.add_one();
        }
        let read = timeout(LOOKUP_WAIT, phase.wait_for(|phase| *phase != Phase::Reading)).await;
        let why = match read {
            Ok(Ok(phase)) => match &*phase {
                Phase::Failed(why) => Some(why.clone()),
                Phase::Reading | Phase::Read => None,
            },
            Ok(Err(_gone)) => Some("the connection was lost".to_owned()),
            Err(_late) => {
                shared.counts.lookups_late.add_one();
                Some(format!("no answer within {LOOKUP_WAIT:?}"))
            }
        };
        let mut state = shared.state();
        let entries = state.watches.entries(Instant::now(), stream);
        match why {
            Some(why) if entries.is_empty() => Err(Away { why }),
            Some(_) | None => Ok(choose(entries, near, &mut state.random)),
        }
    }

    /// All relays that are there, by their numbers; what has come within
    /// [`RELAYS_WAIT`](crate::limits::RELAYS_WAIT).
    ///
    /// # Errors
    /// NATS is away, or does not answer in time.
    pub async fn relays(&self) -> Result<Vec<RelayRecord>, Away> {
        let shared = &self.inner.shared;
        let session = shared.state().session()?;
        watch::relays(&shared.counts, &session).await.map_err(|why| Away { why })
    }

    /// Tells all that listen to a subject now, at most once.
    ///
    /// # Errors
    /// NATS cannot be reached: it is not told.
    pub async fn tell(&self, subject: String, message: Bytes) -> Result<(), Away> {
        let session = self.inner.shared.state().session()?;
        session.tell(subject, message).await.map_err(|why| Away { why })
    }

    /// Why NATS cannot be reached, if it cannot.
    pub fn away(&self) -> Option<String> {
        self.inner.shared.state().session().err().map(|away| away.why)
    }

    /// What happened so far.
    pub fn counters(&self) -> Counters {
        self.inner.shared.counts.read()
    }
}

impl State {
    /// Also if it could not be put now.
    fn has_nothing_to_put(&self) -> bool {
        self.session().is_err() || (self.in_flight == 0 && !self.own.has_due())
    }

    fn session(&self) -> Result<Arc<Session>, Away> {
        match &self.link {
            Link::Up(session) if session.is_connected() => Ok(session.clone()),
            Link::Up(session) => Err(Away { why: format!("{} is not connected", session.server) }),
            Link::Away(why) => Err(Away { why: why.clone() }),
        }
    }
}
