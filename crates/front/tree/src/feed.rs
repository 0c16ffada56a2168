//! A stream that comes from another relay: as any player does, this relay subscribes to it there, at the level that
//! is wanted here, and publishes it.

mod coming;
mod saved;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use outflow_client::{Error, Lower, Options, Received, Subscription, subscribe};
use outflow_control::{Control, Heard, Member, PULLED, PublishOptions, Publisher, Push, Upgrade};
use outflow_engine::message::ControlError;
use outflow_engine::system::random_u32;
use outflow_front_poc::Poc;
use outflow_front_pull::{Failure, hand_on};
use outflow_media::{Format, Time};
use outflow_packet::{DropReason, Level};
use tokio::sync::{mpsc, watch};
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep_until};

use super::group::{Grouped, Shown};
use super::input::{Input, Parent};
use super::limits::{LEFT, LEFT_QUIET, TRIES, TRY_AGAIN};
use super::splice::{Splice, Strange};
use crate::settings::{Tree, TreeTransport};
use coming::{Coming, arrive, packet};

/// Whether a parent is there is known otherwise: a source may be silent.
const SILENCE: Duration = Duration::from_secs(3600);

/// What a feed is told; when this is dropped, it ends.
#[derive(Debug)]
pub(super) struct Feed {
    pub(super) parent: watch::Sender<Option<Parent>>,
    level: watch::Sender<Level>,
    /// Packets come.
    pub(super) is_up: bool,
    /// The parent, once the stream itself is there.
    pub(super) planned: Option<Parent>,
    /// How it comes, where that is by multicast.
    pub(super) shown: Arc<Shown>,
    /// Since when nothing here has wanted it.
    pub(super) unwanted_since: Option<Time>,
    task: AbortHandle,
}

impl Drop for Feed {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Feed {
    pub(super) fn start(control: Control, stream: &str, level: Level, inputs: mpsc::Sender<Input>) -> Feed {
        let (told, feeding) = Feeding::new(control, stream, level, inputs);
        Feed::of(told, feeding, Turn::default())
    }

    fn of((parent, level): Told, feeding: Feeding, turn: Turn) -> Feed {
        let shown = Arc::clone(&feeding.shown);
        let task = tokio::spawn(feeding.run(turn)).abort_handle();
        Feed { parent, level, is_up: false, planned: None, shown, unwanted_since: None, task }
    }

    /// Takes this level from now on.
    pub(super) fn ask_level(&self, level: Level) {
        self.level.send_if_modified(|asked| std::mem::replace(asked, level) != level);
    }

    /// Whether it is this turn of a parent that is asked for now.
    pub(super) fn is_of(&self, parent: &Parent) -> bool {
        self.parent.borrow().as_ref() == Some(parent)
    }
}

/// By what a feed is told of its parent and its level.
type Told = (watch::Sender<Option<Parent>>, watch::Sender<Level>);

struct Feeding {
    control: Control,
    stream: String,
    parents: watch::Receiver<Option<Parent>>,
    levels: watch::Receiver<Level>,
    inputs: mpsc::Sender<Input>,
    published: Option<Published>,
    /// What receivers say of what is published.
    heard: Heard,
    /// How many levels there are, if a parent has said so.
    layers: Option<u8>,
    shown: Arc<Shown>,
    member: Member,
}

/// How a stream comes of a parent.
enum ParentPath {
    Alone(Box<Subscription>),
    Grouped(Box<Grouped>),
}

impl ParentPath {
    fn format(&self) -> &Format {
        match self {
            ParentPath::Alone(subscription) => subscription.format(),
            ParentPath::Grouped(grouped) => grouped.format(),
        }
    }

    /// How many levels there are, if that was said.
    fn levels(&self) -> Option<u8> {
        match self {
            ParentPath::Alone(subscription) => subscription.levels(),
            ParentPath::Grouped(grouped) => grouped.levels(),
        }
    }

    fn ask_level(&mut self, level: u8) -> Result<(), Error> {
        match self {
            ParentPath::Alone(subscription) => subscription.ask_level(level),
            ParentPath::Grouped(grouped) => grouped.ask_level(level),
        }
    }

    fn ask_key_frame(&mut self, track: u8) {
        match self {
            ParentPath::Alone(subscription) => subscription.ask_key_frame(track),
            ParentPath::Grouped(grouped) => grouped.ask_key_frame(track),
        }
    }

    /// The next packet or report. Nothing is lost if this is cancelled.
    async fn recv(&mut self) -> Result<Received, Failure> {
        match self {
            ParentPath::Alone(subscription) => Ok(subscription.recv().await?),
            ParentPath::Grouped(grouped) => grouped.recv().await,
        }
    }
}

/// One whose packets are published.
struct Current {
    subscription: ParentPath,
    format: Format,
    parent: Parent,
    /// When something came of it.
    heard_at: Instant,
    /// It is the parent no more, and no other one has taken its place: what it still sends is passed on until then.
    left_until: Option<Instant>,
}

impl Current {
    fn new(subscription: ParentPath, format: Format, parent: Parent) -> Self {
        Current { subscription, format, parent, heard_at: Instant::now(), left_until: None }
    }

    /// Whether it sends. One that was left may do so no more, though nothing says that.
    fn is_there(&self) -> bool {
        self.left_until.is_none() || self.heard_at.elapsed() < LEFT_QUIET
    }

    /// It may send for a while yet.
    fn leave(&mut self) {
        self.left_until.get_or_insert_with(|| Instant::now() + LEFT);
    }
}

/// What is published, whichever relay it is taken from.
struct Published {
    publisher: Publisher,
    splice: Splice,
}

/// What is to be done next.
enum Step {
    Parent,
    Level,
    /// Receivers want a key frame of this track.
    KeyFrame(u8),
    /// The parent that was left has sent for long enough.
    Left,
    Passed(Result<Received, Failure>),
    Arrived(Result<bool, Failure>),
}

/// The relay that a stream is taken from, and the one it is to be taken from.
#[derive(Default)]
struct Turn {
    current: Option<Current>,
    coming: Option<Coming>,
    wanted: Option<Parent>,
    tries: u32,
}

impl Feeding {
    fn new(control: Control, stream: &str, level: Level, inputs: mpsc::Sender<Input>) -> (Told, Self) {
        let (parent, parents) = watch::channel(None);
        let (level, levels) = watch::channel(level);
        let mut member = control.shared::<Upgrade>().join(PULLED);
        member.brings_media();
        let feeding = Feeding {
            control,
            stream: stream.to_owned(),
            parents,
            levels,
            inputs,
            published: None,
            heard: Heard::default(),
            layers: None,
            shown: Arc::default(),
            member,
        };
        ((parent, level), feeding)
    }

    async fn run(mut self, mut turn: Turn) {
        loop {
            if let Some(parent) = turn.wanted.take() {
                turn.coming = match self.begin(&parent).await {
                    Ok(begun) => Some(begun),
                    Err(failure) => {
                        turn.wanted = self.again(parent, &mut turn.tries, &failure).await;
                        continue;
                    }
                };
            }
            let left_until = turn.current.as_ref().and_then(|current| current.left_until);
            let over_at = left_until.unwrap_or_else(Instant::now);
            let is_other_there = turn.current.as_ref().is_some_and(Current::is_there);
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
                track = self.heard.key_frame() => Step::KeyFrame(track),
                () = self.member.asked() => match self.hand_over(&mut turn).await {
                    true => return,
                    false => continue,
                },
                () = sleep_until(over_at), if left_until.is_some() => Step::Left,
                arrived = arrive(&mut turn.coming, &self.published, is_other_there) => Step::Arrived(arrived),
                passed = receive(&mut turn.current) => Step::Passed(passed),
            };
            self.take_step(&mut turn, step).await;
        }
    }

    async fn take_step(&mut self, turn: &mut Turn, step: Step) {
        let (parent, failure) = match step {
            Step::Parent => {
                turn.wanted = self.parents.borrow_and_update().clone();
                (turn.coming, turn.tries) = (None, 0);
                if let (None, Some(current)) = (&turn.wanted, &mut turn.current) {
                    current.leave();
                }
                return;
            }
            Step::Left => return turn.current = None,
            Step::Level => return self.ask_level(&mut turn.current, &mut turn.coming),
            Step::KeyFrame(track) => {
                if let Some(Current { subscription, .. }) = &mut turn.current {
                    subscription.ask_key_frame(track);
                }
                return;
            }
            Step::Arrived(Ok(false)) => return,
            Step::Arrived(Ok(true)) => {
                turn.current = None;
                let Some(begun) = turn.coming.take() else { return };
                let parent = begun.parent.clone();
                match self.go_on_with(begun).await {
                    Ok(going) => return (turn.current, turn.tries) = (Some(going), 0),
                    Err(failure) => (Some(parent), failure),
                }
            }
            Step::Arrived(Err(failure)) => (turn.coming.take().map(|begun| begun.parent), failure),
            Step::Passed(passed) => {
                let Some(current) = &mut turn.current else { return };
                current.heard_at = Instant::now();
                let Current { format, parent, left_until, .. } = current;
                let is_left = left_until.is_some();
                let done = match passed {
                    Ok(received) => self.pass(received, format, parent).await,
                    Err(failure) => Err(failure),
                };
                let Err(failure) = done else { return };
                let parent = turn.current.take().map(|ended| ended.parent);
                // Another one may be on the way already, or be looked for.
                (parent.filter(|_| turn.coming.is_none() && !is_left), failure)
            }
        };
        if let Some(parent) = parent {
            turn.wanted = self.again(parent, &mut turn.tries, &failure).await;
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
        let level = *self.levels.borrow();
        let (url, options) = self.asked(parent.at, level)?;
        if self.is_by_multicast() {
            return self.begin_grouped(parent, options, level).await;
        }
        let mut subscription = subscribe(&url, options).await?;
        subscription.ask_level(level.number())?;
        Ok(Coming::of(ParentPath::Alone(Box::new(subscription)), parent, level))
    }

    /// Whether the stream is to come by a group.
    fn is_by_multicast(&self) -> bool {
        self.control.config().section::<Tree>().transport == TreeTransport::Multicast
    }

    /// How a relay is asked for the stream.
    fn asked(&self, at: SocketAddr, level: Level) -> Result<(String, Options), Failure> {
        let config = self.control.config();
        let tree = config.section::<Tree>();
        let token = tree.token.as_ref().map(|token| token.reveal().to_owned());
        let mut options =
            Options { token, seed: u64::from(random_u32()), silence: SILENCE, ..Options::default() };
        let scheme = match tree.transport {
            TreeTransport::Poc => {
                let poc = config.section::<Poc>();
                options.poc = Some(outflow_front_poc::options(&poc, None)?);
                options.poc_latency = Some(poc.latency);
                "poc"
            }
            TreeTransport::Rtp => {
                options.transport = Lower::Udp;
                "rtsp"
            }
            // What a group does not bring.
            TreeTransport::Multicast => "rtsp",
        };
        let query = if level == Level::BEST { String::new() } else { format!("?level={level}") };
        Ok((format!("{scheme}://{at}/{}{query}", self.stream), options))
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
        Ok(Coming::of(ParentPath::Grouped(Box::new(grouped)), parent, level))
    }

    /// Publishes what a parent sends from now on: behind what was published before, or as another source's.
    async fn go_on_with(&mut self, begun: Coming) -> Result<Current, Failure> {
        let Coming { subscription, parent, held, layers, .. } = begun;
        if let Some(layers) = layers {
            self.set_layers(layers);
        }
        let format = subscription.format().clone();
        let first = held.iter().find_map(packet);
        let goes_on = |splice: &Splice| first.is_none_or(|first| splice.may_go_on(&format, first));
        match self.published.as_mut().filter(|published| goes_on(&published.splice)) {
            Some(Published { publisher, splice }) => {
                splice.change();
                publisher.set_peer(peer(&parent));
            }
            None => self.publish(&format, &parent).await?,
        }
        for received in held {
            self.pass(received, &format, &parent).await?;
        }
        // The driver may have ended.
        let _ = self.inputs.send(Input::FeedUp { stream: self.stream.clone() }).await;
        Ok(Current::new(subscription, format, parent))
    }

    fn set_layers(&mut self, layers: u8) {
        self.layers = Some(layers);
        self.control.set_layers(&self.stream, layers);
    }

    /// Begins as a new source.
    async fn publish(&mut self, format: &Format, parent: &Parent) -> Result<(), Failure> {
        // The place of the one before is free then.
        self.published = None;
        let options = PublishOptions { format: format.clone(), peer: peer(parent), configured: true };
        let mut publisher = self.control.publish(&self.stream, options).await?;
        self.heard = publisher.take_feedback();
        self.published = Some(Published { publisher, splice: Splice::new(format) });
        Ok(())
    }

    /// Passes one thing on that a parent has sent.
    async fn pass(&mut self, received: Received, format: &Format, parent: &Parent) -> Result<(), Failure> {
        let gone = || Failure::from(ControlError::UnknownStream(self.stream.clone()));
        let Some(Published { publisher, splice }) = &mut self.published else { return Err(gone()) };
        let mut pushed = Push::Taken;
        let mut hand_on = |publisher: &Publisher, received| {
            if hand_on(publisher, received) == Push::Closed {
                pushed = Push::Closed;
            }
        };
        match received {
            Received::Packet(packet) => {
                let taken = splice.take(packet, |packet| hand_on(publisher, Received::Packet(packet)));
                let left_out = splice.take_left_out();
                publisher.dropped(DropReason::Duplicate, left_out.repeated);
                publisher.dropped(DropReason::Late, left_out.late);
                if let Err(Strange(packets)) = taken {
                    self.publish(format, parent).await?;
                    let Some(Published { publisher, splice }) = &mut self.published else { return Ok(()) };
                    for packet in packets {
                        // Nothing was published of it that it could be strange to.
                        let _ = splice.take(packet, |packet| hand_on(publisher, Received::Packet(packet)));
                    }
                }
            }
            Received::Levels { rates, .. } => {
                self.set_layers(u8::try_from(rates.len()).unwrap_or(0));
            }
            report @ Received::SenderReport { .. } => hand_on(publisher, report),
        }
        match pushed {
            Push::Closed => Err(ControlError::UnknownStream(self.stream.clone()).into()),
            Push::Taken | Push::Full => Ok(()),
        }
    }
}

fn peer(parent: &Parent) -> String {
    format!("relay {} at {}", parent.name, parent.at)
}

/// What the parent sends next.
async fn receive(current: &mut Option<Current>) -> Result<Received, Failure> {
    match current {
        Some(Current { subscription, .. }) => subscription.recv().await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests;
