//! Drives the state machine: what is wanted and what others say goes in, what it asks for is done.

mod actions;
mod links;
mod show;
mod streams;
mod waiting;

use std::collections::{BTreeMap, BTreeSet};
use std::future::pending;
use std::net::SocketAddr;
use std::pin::pin;
use std::time::SystemTime;

use outflow_control::{Control, Upgrade};
use outflow_directory::Directory;
use outflow_engine::message::{ControlError, DemandQueue};
use outflow_engine::system::random_u32;
use outflow_front_groups::{GroupSettings, number};
use outflow_media::{Backoff, Time};
use outflow_routing::demand;
use outflow_routing::tree::{Contact, Location, Node, RelayId, Settings, StreamId};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use super::feed::Feed;
use super::input::{Input, LinkId};
use super::limits::{NAMES_MAX, RECONNECT, SWEEP};
use super::link::Link;
use super::news;
use super::places::directory;
use super::wants::Wants;
use super::wire::{Hello, Notice, VERSION};
use crate::settings::Tree;
use waiting::Waiting;

/// A configured parent.
#[derive(Debug)]
struct Above {
    /// Host and port.
    place: String,
    link: Option<LinkId>,
    is_up: bool,
    backoff: Backoff,
    again_at: Instant,
}

/// Connections, and what is to be said over those that are not up yet.
#[derive(Debug, Default)]
struct Links {
    newest: LinkId,
    up: BTreeMap<LinkId, Link>,
    /// The newest connection with a relay comes last.
    of_relay: BTreeMap<RelayId, Vec<LinkId>>,
    /// Being made: with which relay, and what is to be said.
    dialled: BTreeMap<LinkId, (RelayId, Vec<Notice>)>,
    /// All others that are not up yet.
    unknown: BTreeSet<LinkId>,
    /// Questions that wait for an answer.
    asked: BTreeMap<u32, (LinkId, oneshot::Sender<Notice>)>,
    question: u32,
    /// Names of relays, for people.
    names: BTreeMap<RelayId, String>,
}

pub(super) struct Driver {
    control: Control,
    me: Hello,
    node: Node,
    /// Of streams that are something to this relay, or to others.
    names: BTreeMap<StreamId, String>,
    links: Links,
    parents: Vec<Above>,
    wants: Wants,
    /// Streams whose source is here.
    sources: BTreeSet<String>,
    feeds: BTreeMap<String, Feed>,
    /// Streams that are not configured, and since when no receiver has wanted them.
    adopted: BTreeMap<String, Option<Time>>,
    adopting: BTreeSet<String>,
    waiting: Vec<Waiting>,
    /// Streams that are looked up just now.
    looking: BTreeSet<StreamId>,
    directory: Option<Directory>,
    /// The relay was told to end: no other relay is to find it any more.
    is_ending: bool,
    events: Option<mpsc::Receiver<outflow_directory::Event>>,
    inputs: mpsc::Sender<Input>,
    turn: u64,
    swept_at: Time,
}

impl Driver {
    /// One that knows of no other relay yet.
    pub(super) fn new(
        control: Control,
        (name, address): (&str, SocketAddr),
        inputs: mpsc::Sender<Input>,
    ) -> Result<Self, ControlError> {
        let config = control.config();
        let (tree, groups) = (config.section::<Tree>(), config.section::<GroupSettings>());
        let location = Location { x_km: tree.location.x_km, y_km: tree.location.y_km };
        let contact = Contact { relay: RelayId(number(name)), address, location };
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let incarnation = since.as_millis() as u64;
        let rtsp = config.listen.at("rtsp").map(|at| at.port());
        let me = Hello { v: VERSION, contact, name: name.to_owned(), incarnation, rtsp };
        let seed = u64::from(random_u32()) << 32 | u64::from(random_u32());
        let node = Node::new(Settings {
            me: contact,
            incarnation,
            seed,
            children_max: tree.children,
            demand: demand::Settings { hold: groups.hold, linger: groups.hold },
        });
        let (directory, events) = directory(&tree, name, seed)?.unzip();
        let above = |place: &String| Above {
            place: place.clone(),
            link: None,
            is_up: false,
            backoff: RECONNECT,
            again_at: Instant::now(),
        };
        let parents = tree.parents.iter().map(above).collect();
        let mut driver = Driver {
            me,
            node,
            parents,
            directory,
            events,
            inputs,
            names: BTreeMap::new(),
            links: Links::default(),
            wants: Wants::default(),
            sources: BTreeSet::new(),
            feeds: BTreeMap::new(),
            adopted: BTreeMap::new(),
            adopting: BTreeSet::new(),
            waiting: Vec::new(),
            looking: BTreeSet::new(),
            is_ending: false,
            turn: 0,
            swept_at: control.now(),
            control,
        };
        driver.go_on();
        Ok(driver)
    }

    /// Goes on with the streams that the process before took of other relays.
    fn go_on(&mut self) {
        let adopted = self.control.shared::<Upgrade>().adopted();
        self.adopted = adopted.into_iter().map(|stream| (stream, None)).collect();
        for stream in self.control.config().streams.keys() {
            let is_of_relays = self.control.known(stream).is_some_and(|known| known.is_of_relays);
            if is_of_relays
                && let Some(feed) = Feed::go_on(&self.control, stream, self.inputs.clone())
                && self.id(stream).is_some()
            {
                self.feeds.insert(stream.clone(), feed);
            }
        }
    }

    /// Its number among relays.
    pub(super) fn relay(&self) -> RelayId {
        self.me.contact.relay
    }

    /// Goes on until every sender of `queue` is gone.
    pub(super) async fn run(mut self, mut queue: mpsc::Receiver<Input>, mut demands: DemandQueue) {
        let mut states = self.control.watch();
        // Ends with this.
        let mut telling = JoinSet::new();
        if let Some(directory) = self.directory.clone() {
            telling.spawn(news::tell(directory, self.me.name.clone(), self.control.events().follow()));
        }
        let control = self.control.clone();
        let mut begun = pin!(control.health().ending().begun());
        self.tend_parents();
        loop {
            let deadline = self.next_timeout();
            tokio::select! {
                input = queue.recv() => match input {
                    Some(input) => self.handle(input),
                    None => return,
                },
                Some(demand) = demands.recv() => self.handle_demand(demand),
                Ok(()) = states.changed() => {
                    states.mark_unchanged();
                    self.look_at_sources();
                }
                event = directory_event(&mut self.events) => self.handle_directory(event),
                () = &mut begun, if !self.is_ending => self.retire(),
                () = sleep_until(deadline) => {}
            }
            self.settle();
        }
    }

    /// Lets other relays find others from now on. Those that take streams of this one go on.
    fn retire(&mut self) {
        self.is_ending = true;
        self.node.handle_closing();
        if let Some(directory) = self.directory.clone() {
            tokio::spawn(async move { directory.leave().await });
        }
    }

    fn next_timeout(&self) -> Instant {
        let now = self.control.now();
        let others =
            self.node.next_timeout().into_iter().chain(self.waiting.iter().map(|waiting| waiting.until));
        let next = others.fold(self.swept_at + SWEEP, Time::min);
        Instant::now() + next.since(now)
    }

    fn handle(&mut self, input: Input) {
        match input {
            Input::Reach { stream, level, reply } => self.handle_reach(&stream, level, reply),
            Input::Accepted { socket, from, admitted } => self.accept(socket, from, *admitted),
            Input::Link(event) => self.handle_link(event),
            Input::Ask { to, said, reply } => self.ask(to, said, reply),
            Input::Offers { id, offers } => {
                self.looking.remove(&id);
                self.node.handle_offers(self.control.now(), id, &offers);
            }
            Input::FeedUp { stream } => self.handle_feed_up(&stream),
            Input::FeedFailed { stream, parent } => self.handle_feed_failed(&stream, &parent),
            Input::Adopted { stream, is_there } => self.handle_adopted(&stream, is_there),
            Input::Found { place, found } => self.handle_found(place, found),
            // The caller that asked may be gone.
            Input::Own { reply } => drop(reply.send(self.show())),
        }
    }

    fn handle_directory(&mut self, event: outflow_directory::Event) {
        match event {
            outflow_directory::Event::Back => {
                self.announce();
                self.node.handle_directory_back(self.control.now());
            }
            // It says so in the log; everything goes on with what is known.
            outflow_directory::Event::Away { .. } => {}
        }
    }

    /// Does what is due, and all that follows from what came in.
    fn settle(&mut self) {
        let now = self.control.now();
        self.node.handle_timeout(now);
        if self.swept_at + SWEEP <= now {
            self.swept_at = now;
            self.sweep(now);
        }
        self.settle_waiting(now);
        while let Some(action) = self.node.poll() {
            self.carry_out(action);
        }
    }

    /// The number of a stream whose name is remembered from now on; none if too many are.
    fn id(&mut self, stream: &str) -> Option<StreamId> {
        let id = StreamId(number(stream));
        match self.names.get(&id) {
            Some(known) => (known == stream).then_some(id),
            None if self.names.len() >= NAMES_MAX => None,
            None => {
                self.names.insert(id, stream.to_owned());
                Some(id)
            }
        }
    }
}

async fn directory_event(
    events: &mut Option<mpsc::Receiver<outflow_directory::Event>>,
) -> outflow_directory::Event {
    match events {
        Some(receiver) => match receiver.recv().await {
            Some(event) => event,
            None => pending().await,
        },
        None => pending().await,
    }
}
