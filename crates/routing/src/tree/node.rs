//! A relay's place in all trees.

use core::cmp::Reverse;
use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use outflow_media::Time;

use super::limits::{OTHERS_MAX, STREAMS_MAX};
use super::message::{Action, Message};
use super::path::{Contact, Offer, Path, RelayId, Root, StreamId};
use super::stream::{Context, Tree};
use super::{Child, Counters};
use crate::demand::Table;
use crate::{Level, Random, demand};

/// What a node is to know of itself.
#[derive(Debug, Clone)]
pub struct Settings {
    /// How it is found.
    pub me: Contact,
    /// Larger with each start, as the time of the start is.
    pub incarnation: u64,
    /// What delays and choices are drawn from; differs from relay to relay.
    pub seed: u64,
    /// Other relays that are served at the same time, of all streams. A further one is refused and told of
    /// others.
    pub children_max: usize,
    /// How long to wait before less is asked for.
    pub demand: demand::Settings,
}

impl Settings {
    /// How much of the room for children `children` of them take.
    pub(super) fn load(&self, children: usize) -> u8 {
        (children * 255 / self.children_max.max(1)).min(255) as u8
    }
}

/// One relay's place in the trees of all its streams. After anything that takes `now`, [`Self::poll`] says
/// what is to be done, and [`Self::next_timeout`] may be another.
#[derive(Debug, Clone)]
pub struct Node {
    settings: Settings,
    random: Random,
    asked: u32,
    trees: BTreeMap<StreamId, Tree>,
    timers: BTreeSet<(Time, StreamId)>,
    demand: Table<StreamId, Child>,
    outbox: VecDeque<Action>,
    children: usize,
    counters: Counters,
}

impl Node {
    /// One that has and wants nothing.
    pub fn new(settings: Settings) -> Self {
        let mut random = Random::new(settings.seed);
        Node {
            asked: random.bits() as u32,
            random,
            trees: BTreeMap::new(),
            timers: BTreeSet::new(),
            demand: Table::new(settings.demand),
            outbox: VecDeque::new(),
            children: 0,
            counters: Counters::default(),
            settings,
        }
    }

    /// A source of the stream came here, with the operator's preference among sources of the same stream (0
    /// first), or went.
    pub fn handle_source(&mut self, now: Time, stream: StreamId, preference: Option<u8>) {
        let (relay, incarnation) = (self.settings.me.relay, Reverse(self.settings.incarnation));
        let root = preference.map(|preference| Root { preference, relay, incarnation });
        self.with(now, stream, root.is_some(), |tree, cx| tree.handle_source(cx, root));
        self.settle(now, stream);
    }

    /// `count` receivers here want this level of the stream.
    ///
    /// # Errors
    ///
    /// There is no room for another stream.
    pub fn handle_receivers(
        &mut self,
        now: Time,
        stream: StreamId,
        level: Level,
        count: u64,
    ) -> Result<(), demand::Full> {
        let child = Child::Receivers(level);
        if count == 0 {
            self.demand.handle_leave(now, stream, &child);
        } else {
            self.demand.handle_want(now, stream, child, level, None)?;
        }
        self.settle(now, stream);
        Ok(())
    }

    /// The directory says which relays have the stream.
    pub fn handle_offers(&mut self, now: Time, stream: StreamId, offers: &[Offer]) {
        self.with(now, stream, false, |tree, cx| {
            tree.learn(cx, offers);
            tree.seek(cx);
        });
        self.settle(now, stream);
    }

    /// This relay is about to end: it takes no more children. Those that it has stay.
    pub fn handle_closing(&mut self) {
        self.settings.children_max = 0;
    }

    /// The directory can be reached again, and may have forgotten everything.
    pub fn handle_directory_back(&mut self, now: Time) {
        self.with_all(now, Tree::handle_directory_back);
    }

    /// The connection with this relay cannot be made, is broken, or is silent.
    pub fn handle_lost(&mut self, now: Time, peer: RelayId) {
        self.with_all(now, |tree, cx| {
            tree.stop(cx, peer);
            tree.handle_lost_above(cx, peer);
        });
    }

    /// The stream does not come from this relay, though that is there, agreed, and may give others: it is passed
    /// over for this one, for longer each time.
    pub fn handle_failed(&mut self, now: Time, stream: StreamId, parent: RelayId) {
        self.with(now, stream, false, |tree, cx| tree.handle_failed(cx, parent));
        self.settle(now, stream);
    }

    /// Another relay says something of a stream. The driver made sure which relay it is.
    pub fn handle_message(&mut self, now: Time, from: Contact, stream: StreamId, message: Message) {
        let is_ask = matches!(message, Message::Ask { .. });
        let unknown = match &message {
            Message::Want { ask, .. } => Some(Message::Drop { ask: *ask }),
            Message::Grant { ask, .. } | Message::Beat { ask, .. } => Some(Message::Leave { ask: *ask }),
            Message::Echo { ask } => Some(Message::EchoReply { ask: *ask }),
            _ => None,
        };
        let done = self.with(now, stream, is_ask, |tree, cx| handle(tree, cx, from, message));
        if let (None, Some(message)) = (done, unknown) {
            self.counters.sent += 1;
            self.outbox.push_back(Action::Send { to: from, stream, message });
        }
        self.settle(now, stream);
    }

    /// Does what is due.
    pub fn handle_timeout(&mut self, now: Time) {
        self.demand.handle_timeout(now);
        self.settle_demand(now);
        while let Some((at, stream)) = self.timers.first().copied()
            && at <= now
        {
            self.timers.pop_first();
            if let Some(tree) = self.trees.get_mut(&stream) {
                tree.timer = None;
            }
            self.with(now, stream, false, Tree::handle_timeout);
            self.settle(now, stream);
        }
    }

    /// When [`Self::handle_timeout`] is due.
    pub fn next_timeout(&self) -> Option<Time> {
        let tree = self.timers.first().map(|(at, _)| *at);
        tree.into_iter().chain(self.demand.next_timeout()).min()
    }

    /// What is to be done next, in this order.
    pub fn poll(&mut self) -> Option<Action> {
        self.outbox.pop_front()
    }

    /// The relay that the stream is taken from, and the number of that subscription.
    pub fn parent(&self, stream: StreamId) -> Option<(RelayId, u32)> {
        let parent = self.trees.get(&stream)?.parent.as_ref()?;
        Some((parent.contact.relay, parent.ask))
    }

    /// The relays that are served, at which level, and the number of each one's subscription.
    pub fn children(&self, stream: StreamId) -> impl Iterator<Item = (RelayId, Level, u32)> {
        let served = self.trees.get(&stream).into_iter().flat_map(|tree| &tree.served);
        served.map(|(relay, child)| (*relay, child.level, child.ask))
    }

    /// How far from which source this relay is, if it has the stream.
    pub fn path(&self, now: Time, stream: StreamId) -> Option<Path> {
        self.trees.get(&stream).filter(|tree| tree.is_fresh(now))?.path
    }

    /// What this relay says of itself to a relay that asks which have the stream, if it has it.
    pub fn offer(&self, now: Time, stream: StreamId) -> Option<Offer> {
        let path = self.path(now, stream)?;
        Some(Offer { contact: self.settings.me, path, load: self.settings.load(self.children) })
    }

    /// What is asked for above.
    pub fn demand(&self, stream: StreamId) -> Option<Level> {
        self.trees.get(&stream)?.demand
    }

    /// Entries that are kept: streams, parents, children, asks and candidates.
    pub fn state(&self) -> usize {
        let of = |tree: &Tree| 2 + tree.served.len() + tree.asks.len() + tree.candidates.len();
        self.trees.values().map(of).sum()
    }

    /// What happened so far.
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    fn with<R>(
        &mut self,
        now: Time,
        stream: StreamId,
        is_made: bool,
        f: impl FnOnce(&mut Tree, &mut Context<'_>) -> R,
    ) -> Option<R> {
        let mut cx = Context {
            now,
            settings: &self.settings,
            random: &mut self.random,
            asked: &mut self.asked,
            outbox: &mut self.outbox,
            demand: &mut self.demand,
            children: &mut self.children,
            counters: &mut self.counters,
        };
        if !self.trees.contains_key(&stream) {
            if !is_made {
                return None;
            }
            if self.trees.len() >= STREAMS_MAX {
                cx.counters.streams_refused += 1;
                return None;
            }
            self.trees.insert(stream, Tree::new(stream, &mut cx));
        }
        let tree = self.trees.get_mut(&stream)?;
        Some(f(tree, &mut cx))
    }

    fn with_all(&mut self, now: Time, f: impl Fn(&mut Tree, &mut Context<'_>)) {
        let streams: Vec<_> = self.trees.keys().copied().collect();
        for stream in streams {
            self.with(now, stream, false, &f);
            self.settle(now, stream);
        }
    }

    /// Tells trees of changed demands.
    fn settle_demand(&mut self, now: Time) {
        while let Some(demand::Change { key, demand }) = self.demand.poll() {
            self.with(now, key, demand.is_some(), |tree, cx| tree.handle_demand(cx, demand));
            self.settle_tree(now, key);
        }
    }

    fn settle(&mut self, now: Time, stream: StreamId) {
        self.settle_demand(now);
        self.settle_tree(now, stream);
    }

    /// Forgets a tree that is over, and looks when others are due.
    fn settle_tree(&mut self, now: Time, stream: StreamId) {
        let Some(after) = self.with(now, stream, false, |tree, cx| {
            tree.refresh_registration(cx);
            if tree.is_over() {
                tree.withdraw(cx);
            }
            (!tree.is_over()).then(|| tree.next_timeout(now))
        }) else {
            return;
        };
        let before = self.trees.get_mut(&stream).and_then(|tree| tree.timer.take());
        before.map(|at| self.timers.remove(&(at, stream)));
        let Some(after) = after else {
            self.trees.remove(&stream);
            return;
        };
        let after = after.map(|at| at.max(now + Duration::from_micros(1)));
        after.map(|at| self.timers.insert((at, stream)));
        if let Some(tree) = self.trees.get_mut(&stream) {
            tree.timer = after;
        }
    }
}

fn handle(tree: &mut Tree, cx: &mut Context<'_>, from: Contact, message: Message) {
    let learn = |tree: &mut Tree, cx: &mut Context<'_>, others: &[Offer]| {
        tree.learn(cx, &others[..others.len().min(OTHERS_MAX)]);
    };
    match message {
        Message::Ask { ask, level } => tree.handle_ask(cx, from, ask, level),
        Message::Grant { ask, path, age, others } => {
            learn(tree, cx, &others);
            tree.handle_grant(cx, from, ask, path, age);
        }
        Message::Refuse { ask, why, others } => {
            learn(tree, cx, &others);
            tree.handle_refuse(cx, from.relay, ask, why);
        }
        Message::Want { ask, level } => tree.handle_want(cx, from, ask, level),
        Message::Beat { ask, path, others } => {
            learn(tree, cx, &others);
            tree.handle_beat(cx, from, ask, path);
        }
        Message::Leave { ask } => tree.handle_leave(cx, from.relay, ask),
        Message::Drop { ask } => tree.handle_drop(cx, from.relay, ask),
        Message::Echo { ask } => cx.send(from, tree.stream, Message::EchoReply { ask }),
        Message::EchoReply { ask } => tree.handle_echo_reply(cx, from.relay, ask),
    }
}
