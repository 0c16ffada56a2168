//! The place of a relay in the tree of one stream.

use core::time::Duration;
use std::collections::{BTreeMap, VecDeque};

use outflow_media::{Backoff, Time};

use super::candidates::Candidates;
use super::limits::{BEAT, DRY, LOOKUPS, PATIENCE, REGISTER_AGAIN, REGISTER_LEAST};
use super::message::{Action, Message};
use super::path::{Contact, Offer, Path, RelayId, Root, StreamId};
use super::{Child, Counters, Settings};
use crate::demand::Table;
use crate::{Level, Random};

/// What the trees of a node share.
pub(super) struct Context<'a> {
    pub(super) now: Time,
    pub(super) settings: &'a Settings,
    pub(super) random: &'a mut Random,
    /// The number of the last subscription.
    pub(super) asked: &'a mut u32,
    pub(super) outbox: &'a mut VecDeque<Action>,
    pub(super) demand: &'a mut Table<StreamId, Child>,
    /// Children of all streams.
    pub(super) children: &'a mut usize,
    pub(super) counters: &'a mut Counters,
}

impl Context<'_> {
    pub(super) fn send(&mut self, to: Contact, stream: StreamId, message: Message) {
        self.counters.sent += 1;
        self.outbox.push_back(Action::Send { to, stream, message });
    }

    /// How much of the room for children is taken.
    pub(super) fn load(&self) -> u8 {
        self.settings.load(*self.children)
    }
}

/// The relay that the stream comes from.
#[derive(Debug, Clone)]
pub(super) struct Parent {
    pub(super) contact: Contact,
    pub(super) ask: u32,
    pub(super) path: Path,
    /// Since when it is being measured, beside another one, if it has not answered.
    pub(super) measured_from: Option<Time>,
}

/// The relay that was asked to be the parent.
#[derive(Debug, Clone)]
pub(super) struct Asked {
    pub(super) to: Contact,
    pub(super) at: Time,
    pub(super) until: Time,
    /// It would, with this path, and heard of the source then.
    pub(super) granted: Option<(Path, Time)>,
}

/// Another relay that is served.
#[derive(Debug, Clone)]
pub(super) struct Served {
    pub(super) contact: Contact,
    pub(super) ask: u32,
    pub(super) level: Level,
    pub(super) until: Time,
}

/// What the directory was told.
type Registered = (Root, u16, u8);

#[derive(Debug, Clone)]
pub(super) struct Tree {
    pub(super) stream: StreamId,
    /// The source that is here.
    pub(super) root: Option<Root>,
    /// What children were told last. It gets smaller as long as there are any.
    pub(super) path: Option<Path>,
    /// When the last beat came here, or when one came where this relay has it from.
    pub(super) heard: Time,
    pub(super) parent: Option<Parent>,
    pub(super) asks: BTreeMap<u32, Asked>,
    pub(super) candidates: Candidates,
    pub(super) served: BTreeMap<RelayId, Served>,
    /// What is asked for above.
    pub(super) demand: Option<Level>,
    pub(super) orphan_since: Option<Time>,
    /// When another candidate is asked, too.
    pub(super) hedge_at: Option<Time>,
    pub(super) lookup_at: Option<Time>,
    pub(super) lookups: Backoff,
    pub(super) renew_at: Time,
    pub(super) review_at: Time,
    pub(super) dry_after: Duration,
    beat_at: Time,
    register_at: Option<Time>,
    registered: Option<(Registered, Time)>,
    /// When the node looks after it.
    pub(super) timer: Option<Time>,
}

impl Tree {
    pub(super) fn new(stream: StreamId, cx: &mut Context<'_>) -> Self {
        Tree {
            stream,
            root: None,
            path: None,
            heard: cx.now,
            parent: None,
            asks: BTreeMap::new(),
            candidates: Candidates::new(cx.settings.me.location),
            served: BTreeMap::new(),
            demand: None,
            orphan_since: None,
            hedge_at: None,
            lookup_at: None,
            lookups: LOOKUPS,
            renew_at: cx.now,
            review_at: cx.now,
            dry_after: cx.random.stretched(DRY),
            beat_at: cx.now,
            register_at: None,
            registered: None,
            timer: None,
        }
    }

    /// Whether it has the stream, as far as it can know.
    pub(super) fn is_fresh(&self, now: Time) -> bool {
        self.root.is_some() || self.parent.is_some() && now.since(self.heard) < DRY
    }

    /// Whether it wants a parent and has none.
    pub(super) const fn is_orphan(&self) -> bool {
        self.root.is_none() && self.parent.is_none() && self.demand.is_some()
    }

    /// Whether there is nothing left to remember.
    pub(super) fn is_over(&self) -> bool {
        self.root.is_none() && self.demand.is_none() && self.served.is_empty()
    }

    /// A parent's path has to be smaller, so that there is no loop. Without children there can be none.
    pub(super) fn bound(&self) -> Option<Path> {
        self.path.filter(|_| !self.served.is_empty())
    }

    /// A source came here or went.
    pub(super) fn handle_source(&mut self, cx: &mut Context<'_>, root: Option<Root>) {
        self.root = root;
        let Some(root) = root else {
            self.seek(cx);
            return;
        };
        self.leave_all(cx);
        let path = Path { root, beat: core::cmp::Reverse(cx.now.as_millis()), depth: 0 };
        if self.bound().is_some_and(|bound| path >= bound) {
            self.cut(cx);
        }
        self.path = Some(path);
        self.orphan_since = None;
        self.beat_at = cx.now + BEAT;
        self.announce(cx);
    }

    /// What is asked for above changed.
    pub(super) fn handle_demand(&mut self, cx: &mut Context<'_>, demand: Option<Level>) {
        self.demand = demand;
        match demand {
            Some(level) if self.parent.is_some() => {
                cx.outbox.push_back(Action::Level { stream: self.stream, level });
                self.renew(cx);
            }
            Some(_) => self.seek(cx),
            None => {
                self.leave_all(cx);
                self.orphan_since = None;
            }
        }
    }

    pub(super) fn handle_timeout(&mut self, cx: &mut Context<'_>) {
        self.sweep(cx);
        if let Some(root) = self.root
            && self.beat_at <= cx.now
        {
            self.beat_at = cx.now + BEAT;
            self.path = Some(Path { root, beat: core::cmp::Reverse(cx.now.as_millis()), depth: 0 });
            self.announce(cx);
        }
        self.handle_above_timeout(cx);
        if self.register_at.is_some_and(|at| at <= cx.now) {
            self.register(cx);
        }
    }

    pub(super) fn next_timeout(&self, now: Time) -> Option<Time> {
        let beat = self.root.map(|_| self.beat_at);
        let child = self.served.values().map(|child| child.until).min();
        let ask = self.asks.values().map(|ask| ask.until).min();
        let with_parent = [self.renew_at, self.review_at, self.heard + self.dry_after];
        let with_parent = self.parent.as_ref().and_then(|_| with_parent.into_iter().min());
        let mut least = [beat, self.register_at, child, ask, with_parent].into_iter().flatten().min();
        if self.is_orphan() {
            let patience = self.orphan_since.filter(|_| !self.served.is_empty());
            let patience = patience.map(|since| since + PATIENCE);
            let is_asking = !self.asks.is_empty();
            let lookup = self.lookup_at.filter(|_| !is_asking);
            let rested = if is_asking { None } else { self.candidates.next_rested(now) };
            let orphan = [self.hedge_at, patience, lookup, rested];
            least = least.into_iter().chain(orphan.into_iter().flatten()).min();
        }
        least
    }

    /// The directory is back: it may have forgotten all.
    pub(super) fn handle_directory_back(&mut self, cx: &mut Context<'_>) {
        if self.registered.take().is_some() {
            self.register_at = Some(cx.now + cx.random.delay(REGISTER_LEAST));
        }
        self.lookups = LOOKUPS;
        if self.is_orphan() {
            self.lookup_at = Some(cx.now + cx.random.delay(REGISTER_LEAST));
        }
    }

    /// If what the directory knows is no longer so, it is told soon.
    pub(super) fn refresh_registration(&mut self, cx: &mut Context<'_>) {
        let Some(state) = self.registration(cx) else { return };
        let soonest = match self.registered {
            Some((told, _)) if told == state => return,
            Some((_, at)) => (at + REGISTER_LEAST).max(cx.now),
            None => cx.now,
        };
        self.register_at = Some(self.register_at.map_or(soonest, |at| at.min(soonest)));
    }

    fn registration(&self, cx: &Context<'_>) -> Option<Registered> {
        let path = self.path.filter(|_| self.is_fresh(cx.now))?;
        Some((path.root, path.depth, cx.load() / 64))
    }

    fn register(&mut self, cx: &mut Context<'_>) {
        self.register_at = Some(cx.now + cx.random.stretched(REGISTER_AGAIN));
        let (Some(path), Some(state)) = (self.path, self.registration(cx)) else { return };
        self.registered = Some((state, cx.now));
        cx.counters.registered += 1;
        let offer = Offer { contact: cx.settings.me, path, load: cx.load() };
        cx.outbox.push_back(Action::Register { stream: self.stream, offer });
    }

    /// The directory is not to name this relay any more.
    pub(super) fn withdraw(&mut self, cx: &mut Context<'_>) {
        self.register_at = None;
        if self.registered.take().is_some() {
            cx.outbox.push_back(Action::Withdraw { stream: self.stream });
        }
    }
}
