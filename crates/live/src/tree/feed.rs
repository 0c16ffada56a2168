//! A stream that comes from another relay: as any player does, this relay subscribes to it there, at the level that
//! is wanted here, and publishes it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use outflow_client::{Error, Lower, Options, Received, Subscription, subscribe};
use outflow_config::TreeTransport;
use outflow_media::Format;
use outflow_relay::Level;
use outflow_routing::tree::RelayId;
use tokio::sync::{mpsc, watch};
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep_until};

use super::driver::Input;
use super::group::{Grouped, Shown};
use super::limits::{LEVELS_PACKETS, LEVELS_WAIT, TRIES, TRY_AGAIN};
use crate::control::{Control, ControlError, PublishOptions, Publisher, Push};
use crate::source::{self, Failure};
use crate::system::random_u32;

/// Whether a parent is there is known otherwise: a source may be silent.
const SILENCE: Duration = Duration::from_secs(3600);

/// Of whom a stream is to be taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Parent {
    pub(super) relay: RelayId,
    pub(super) name: String,
    /// Where it listens for the transport that is used.
    pub(super) at: SocketAddr,
    /// The number of this turn: the same parent may be taken again.
    pub(super) turn: u64,
}

/// What a feed is told; when this is dropped, it ends.
#[derive(Debug)]
pub(super) struct Feed {
    pub(super) parent: watch::Sender<Option<Parent>>,
    pub(super) level: watch::Sender<Level>,
    /// Packets come.
    pub(super) is_up: bool,
    /// The parent, once the stream itself is there.
    pub(super) planned: Option<Parent>,
    /// How it comes, where that is by multicast.
    pub(super) shown: Arc<Shown>,
    task: AbortHandle,
}

impl Drop for Feed {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Feed {
    pub(super) fn start(control: Control, stream: &str, level: Level, inputs: mpsc::Sender<Input>) -> Feed {
        let (parent, parents) = watch::channel(None);
        let (level, levels) = watch::channel(level);
        let shown = Arc::new(Shown::default());
        let (stream, by) = (stream.to_owned(), shown.clone());
        let feeding = Feeding { control, stream, parents, levels, inputs, shown: by };
        let task = tokio::spawn(feeding.run()).abort_handle();
        Feed { parent, level, is_up: false, planned: None, shown, task }
    }
}

struct Feeding {
    control: Control,
    stream: String,
    parents: watch::Receiver<Option<Parent>>,
    levels: watch::Receiver<Level>,
    inputs: mpsc::Sender<Input>,
    shown: Arc<Shown>,
}

/// How a stream comes of a parent.
enum Way {
    Alone(Box<Subscription>),
    Grouped(Box<Grouped>),
}

impl Way {
    fn format(&self) -> &Format {
        match self {
            Way::Alone(subscription) => subscription.format(),
            Way::Grouped(grouped) => grouped.format(),
        }
    }

    fn ask_level(&mut self, level: u8) -> Result<(), Error> {
        match self {
            Way::Alone(subscription) => subscription.ask_level(level),
            Way::Grouped(grouped) => grouped.ask_level(level),
        }
    }

    /// The next packet or report. Nothing is lost if this is cancelled.
    async fn recv(&mut self) -> Result<Received, Failure> {
        match self {
            Way::Alone(subscription) => Ok(subscription.recv().await?),
            Way::Grouped(grouped) => grouped.recv().await,
        }
    }
}

/// A subscription whose packets are not published yet: those of the parent before still are.
struct Coming {
    subscription: Way,
    parent: Parent,
    held: Vec<Received>,
    /// When packets go on though it is not known how many levels there are.
    until: Option<Instant>,
    layers: Option<u8>,
}

impl Coming {
    fn of(subscription: Way, parent: &Parent, level: Level) -> Self {
        let until = (level == Level::BEST).then(Instant::now);
        Coming { subscription, parent: parent.clone(), held: Vec::new(), until, layers: None }
    }
}

/// One whose packets are published.
struct Current {
    subscription: Way,
    parent: Parent,
    publisher: Publisher,
}

/// What is to be done next.
enum Step {
    Parent,
    Level,
    Passed(Result<(), Failure>),
    Arrived(Result<bool, Failure>),
}

impl Feeding {
    async fn run(mut self) {
        let (mut current, mut coming): (Option<Current>, Option<Coming>) = (None, None);
        let (mut wanted, mut tries): (Option<Parent>, u32) = (None, 0);
        loop {
            if let Some(parent) = wanted.take() {
                coming = match self.begin(&parent).await {
                    Ok(begun) => Some(begun),
                    Err(failure) => {
                        wanted = self.again(parent, &mut tries, &failure).await;
                        continue;
                    }
                };
            }
            let step = tokio::select! {
                biased;
                changed = self.parents.changed() => match changed {
                    Ok(()) => Step::Parent,
                    Err(_) => return,
                },
                changed = self.levels.changed() => match changed {
                    Ok(()) => Step::Level,
                    Err(_) => return,
                },
                arrived = arrive(&mut coming) => Step::Arrived(arrived),
                passed = pass(&self.control, &self.stream, &mut current) => Step::Passed(passed),
            };
            match step {
                Step::Parent => {
                    (wanted, coming, tries) = (self.parents.borrow_and_update().clone(), None, 0);
                    if wanted.is_none() {
                        current = None;
                    }
                }
                Step::Level => self.ask_level(&mut current, &mut coming),
                Step::Arrived(Ok(false)) => {}
                Step::Arrived(Ok(true)) => {
                    drop(current.take());
                    let Some(begun) = coming.take() else { continue };
                    let parent = begun.parent.clone();
                    match self.publish(begun).await {
                        Ok(published) => (current, tries) = (Some(published), 0),
                        Err(failure) => wanted = self.again(parent, &mut tries, &failure).await,
                    }
                }
                Step::Arrived(Err(failure)) => {
                    let parent = coming.take().map(|begun| begun.parent);
                    if let Some(parent) = parent {
                        wanted = self.again(parent, &mut tries, &failure).await;
                    }
                }
                Step::Passed(Ok(())) => {}
                Step::Passed(Err(failure)) => {
                    let parent = current.take().map(|ended| ended.parent);
                    // Another one may be on the way already.
                    if let Some(parent) = parent.filter(|_| coming.is_none()) {
                        wanted = self.again(parent, &mut tries, &failure).await;
                    }
                }
            }
        }
    }

    /// Asks for the level that is wanted now.
    fn ask_level(&mut self, current: &mut Option<Current>, coming: &mut Option<Coming>) {
        let level = self.levels.borrow_and_update().number();
        let both = current.iter_mut().map(|one| &mut one.subscription);
        let both = both.chain(coming.iter_mut().map(|one| &mut one.subscription));
        // All ways between relays can be asked for levels.
        both.for_each(|subscription| _ = subscription.ask_level(level));
    }

    /// The same parent again, if another one is not wanted and this was not tried too often.
    async fn again(&mut self, parent: Parent, tries: &mut u32, failure: &Failure) -> Option<Parent> {
        let (stream, relay) = (&self.stream, &parent.name);
        tracing::warn!(stream, relay, why = %failure, "the stream cannot be taken of this relay");
        *tries += 1;
        if *tries >= TRIES {
            let input = Input::FeedFailed { stream: self.stream.clone(), parent: parent.clone() };
            // The driver may have ended.
            let _ = self.inputs.send(input).await;
            return None;
        }
        let other = self.parents.wait_for(|now| now.as_ref() != Some(&parent));
        if tokio::time::timeout(TRY_AGAIN, other).await.is_err() {
            return Some(parent);
        }
        // What it changed to is looked at next.
        self.parents.mark_changed();
        None
    }

    async fn begin(&self, parent: &Parent) -> Result<Coming, Failure> {
        let config = self.control.config();
        let level = *self.levels.borrow();
        let (tree, at) = (&config.tree, parent.at);
        let token = tree.token.as_ref().map(|token| token.reveal().to_owned());
        let mut options =
            Options { token, seed: u64::from(random_u32()), silence: SILENCE, ..Options::default() };
        let scheme = match tree.transport {
            TreeTransport::Poc => {
                options.poc = Some(crate::poc::options(&config.poc, None)?);
                options.poc_latency = Some(config.poc.latency);
                "poc"
            }
            TreeTransport::Rtp => {
                options.transport = Lower::Udp;
                "rtsp"
            }
            TreeTransport::Multicast => return self.begin_grouped(parent, options, level).await,
        };
        let query = if level == Level::BEST { String::new() } else { format!("?level={level}") };
        let url = format!("{scheme}://{at}/{}{query}", self.stream);
        let mut subscription = subscribe(&url, options).await?;
        subscription.ask_level(level.number())?;
        Ok(Coming::of(Way::Alone(Box::new(subscription)), parent, level))
    }

    async fn begin_grouped(
        &self,
        parent: &Parent,
        options: Options,
        level: Level,
    ) -> Result<Coming, Failure> {
        let place = parent.at.to_string();
        let of = (&place[..], &self.stream[..]);
        let grouped = Grouped::begin(of, options, level.number(), self.shown.clone()).await?;
        Ok(Coming::of(Way::Grouped(Box::new(grouped)), parent, level))
    }

    /// Publishes what a parent sends from now on.
    async fn publish(&self, begun: Coming) -> Result<Current, Failure> {
        let Coming { subscription, parent, held, layers, .. } = begun;
        self.control.set_layers(&self.stream, layers.unwrap_or(0));
        let format = subscription.format().clone();
        let peer = format!("relay {} at {}", parent.name, parent.at);
        let options = PublishOptions { format, peer, configured: true };
        let publisher = self.control.publish(&self.stream, options).await?;
        for received in held {
            hand_on(&self.control, &self.stream, &publisher, received);
        }
        // The driver may have ended.
        let _ = self.inputs.send(Input::FeedUp { stream: self.stream.clone() }).await;
        Ok(Current { subscription, parent, publisher })
    }
}

/// Waits for the first packets of a new parent. True once they can go on.
async fn arrive(coming: &mut Option<Coming>) -> Result<bool, Failure> {
    let Some(begun) = coming else { return std::future::pending().await };
    let late = begun.until.filter(|_| !begun.held.is_empty());
    let received = tokio::select! {
        received = begun.subscription.recv() => received?,
        () = sleep_until(late.unwrap_or_else(Instant::now)), if late.is_some() => return Ok(true),
    };
    match &received {
        Received::Levels { rates, .. } => begun.layers = u8::try_from(rates.len()).ok(),
        Received::Packet(_) => _ = begun.until.get_or_insert_with(|| Instant::now() + LEVELS_WAIT),
        Received::SenderReport { .. } => {}
    }
    begun.held.push(received);
    let has_packet = begun.held.iter().any(|held| matches!(held, Received::Packet(_)));
    Ok(has_packet && (begun.layers.is_some() || begun.held.len() >= LEVELS_PACKETS))
}

/// Passes one packet on.
async fn pass(control: &Control, stream: &str, current: &mut Option<Current>) -> Result<(), Failure> {
    let Some(Current { subscription, publisher, .. }) = current else {
        return std::future::pending().await;
    };
    let received = subscription.recv().await?;
    match hand_on(control, stream, publisher, received) {
        Push::Closed => Err(ControlError::UnknownStream(stream.to_owned()).into()),
        Push::Taken | Push::Full => Ok(()),
    }
}

fn hand_on(control: &Control, stream: &str, publisher: &Publisher, received: Received) -> Push {
    if let Received::Levels { rates, .. } = &received {
        control.set_layers(stream, u8::try_from(rates.len()).unwrap_or(0));
    }
    source::hand_on(publisher, received)
}
