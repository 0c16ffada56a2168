//! The task that keeps the connection: connects, puts what is to be put, and connects again, for ever.

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_nats::Event as News;
use async_nats::jetstream::context::PublishError;
use fastrand::Rng;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;
use tokio::time::{interval, sleep};
use tracing::{debug, info, warn};

use crate::directory::{Event, Link, Shared};
use crate::limits::{GOOD_FOR, IN_FLIGHT_MAX, REACH_AGAIN, SWEEP_EVERY};
use crate::options::Access;
use crate::session::{Session, connect, is_away};

pub(crate) async fn run(shared: Arc<Shared>, access: Access, events: mpsc::Sender<Event>) {
    let mut events = Events { to: events, unsent: None };
    let mut backoff = REACH_AGAIN;
    let mut said: Option<String> = None;
    loop {
        let why = match connect(&access).await {
            Ok((session, mut news)) => {
                let (session, began) = (Arc::new(session), Instant::now());
                info!("the directory is reached at {}, bucket '{}'", session.server, access.options.bucket);
                said = None;
                shared.counts.connected.add_one();
                up(&shared, session.clone());
                events.say(Event::Back);
                let why = serve(&shared, &session, &mut news, &mut events).await;
                shared.counts.lost.add_one();
                if began.elapsed() > GOOD_FOR {
                    backoff.reset();
                }
                why
            }
            Err(why) => why,
        };
        away(&shared, &why);
        if said.as_ref() == Some(&why) {
            debug!("the directory is still away: {why}");
        } else {
            warn!(
                "the directory is away: {why}; it is tried again for ever, and what is known is used meanwhile"
            );
            events.say(Event::Away { why: why.clone() });
            said = Some(why);
        }
        let pause = some_of(backoff.wait(), &mut shared.state().random);
        sleep(pause).await;
        events.flush();
        shared.state().own.sweep(Instant::now());
    }
}

/// Half of a time to all of it, by chance: not all relays come back in the same moment.
fn some_of(wait: Duration, random: &mut Rng) -> Duration {
    wait.mul_f64(0.5 + random.f64() / 2.0)
}

fn up(shared: &Shared, session: Arc<Session>) {
    let mut state = shared.state();
    state.link = Link::Up(session);
    state.in_flight = 0;
    state.own.sweep(Instant::now());
    state.own.put_all_again();
}

fn away(shared: &Shared, why: &str) {
    let mut state = shared.state();
    state.link = Link::Away(why.to_owned());
    state.watches.clear();
}

/// Puts what is to be put, until the connection is lost. Answers why it is.
async fn serve(
    shared: &Shared,
    session: &Session,
    news: &mut mpsc::Receiver<News>,
    events: &mut Events,
) -> String {
    let mut answers = FuturesUnordered::new();
    let mut sweep = interval(SWEEP_EVERY);
    let mut has_refused = false;
    let mut last_error = None;
    loop {
        while answers.len() < IN_FLIGHT_MAX {
            let Some((key, value)) = next(shared) else { break };
            match session.put(&key, value).await {
                Ok(answer) => answers.push(answer.into_future()),
                Err(error) if is_away(&error) => return lost(session, &error.to_string(), last_error),
                Err(error) => refused(shared, &error, &mut has_refused),
            }
        }
        shared.state().in_flight = answers.len();
        if answers.is_empty() {
            shared.settled.notify_waiters();
        }
        tokio::select! {
            () = shared.changed.notified(), if answers.len() < IN_FLIGHT_MAX => {}
            Some(answer) = answers.next() => match answer {
                Ok(_taken) => shared.counts.put.add_one(),
                Err(error) if is_away(&error) => return lost(session, &error.to_string(), last_error),
                Err(error) => refused(shared, &error, &mut has_refused),
            },
            event = news.recv() => match event {
                None | Some(News::Disconnected | News::Closed) => {
                    return lost(session, "the connection is lost", last_error);
                }
                Some(News::ServerError(error)) => {
                    // Such as permissions that are missing: the server says it once, and then does not answer.
                    warn!("the directory at {} says: {error}", session.server);
                    last_error = Some(error.to_string());
                }
                Some(_) => {}
            },
            _ = sweep.tick() => {
                let (mut state, now) = (shared.state(), Instant::now());
                state.own.sweep(now);
                state.watches.sweep(now);
                drop(state);
                events.flush();
            }
        }
    }
}

fn next(shared: &Shared) -> Option<(String, crate::own::Value)> {
    let mut state = shared.state();
    let next = state.own.next()?;
    state.in_flight += 1;
    Some(next)
}

fn lost(session: &Session, what: &str, last_error: Option<String>) -> String {
    match last_error {
        Some(error) => format!("{}: {what}; before, the server said: {error}", session.server),
        None => format!("{}: {what}", session.server),
    }
}

fn refused(shared: &Shared, error: &PublishError, has_refused: &mut bool) {
    shared.counts.put_refused.add_one();
    if !std::mem::replace(has_refused, true) {
        warn!("the directory does not take what this relay says: {error}; further ones are counted only");
    }
}

/// Events for a reader that may be slow: then the newest waits for room.
struct Events {
    to: mpsc::Sender<Event>,
    unsent: Option<Event>,
}

impl Events {
    fn say(&mut self, event: Event) {
        self.unsent = Some(event);
        self.flush();
    }

    fn flush(&mut self) {
        if let Some(event) = self.unsent.take()
            && let Err(TrySendError::Full(event)) = self.to.try_send(event)
        {
            self.unsent = Some(event);
        }
    }
}
