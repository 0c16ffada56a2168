//! Towards the source: which relay is asked, which is taken, and what if it is lost.

use core::time::Duration;

use outflow_media::Time;

use super::limits::{
    ASK_LIFE, ASK_WAIT, ASKS_MAX, DEPTH_MAX, FULL_REST, IN_VAIN_REST, LOOKUPS, LOST_REST, NO_PATH_REST,
    OTHERS_MAX, PATIENCE, RENEW, REVIEW,
};
use super::message::{Action, Message, Refusal};
use super::path::{Contact, Offer, Path, RelayId};
use super::stream::{Asked, Context, Parent, Tree};

/// A parent is not left for one that is less than so much nearer, in microseconds.
const NEARER_US: u64 = 2_000;

impl Tree {
    /// Others say which relays have the stream.
    pub(super) fn learn(&mut self, cx: &mut Context<'_>, offers: &[Offer]) {
        for offer in offers {
            if offer.contact.relay != cx.settings.me.relay {
                self.candidates.learn(cx.now, *offer, cx.random);
            }
        }
    }

    /// Without a parent: asks a candidate, and the directory if there is none.
    pub(super) fn seek(&mut self, cx: &mut Context<'_>) {
        if !self.is_orphan() {
            return;
        }
        self.orphan_since.get_or_insert(cx.now);
        let is_due = self.asks.is_empty() || self.hedge_at.is_some_and(|at| at <= cx.now);
        if self.hedge_at.is_some_and(|at| at <= cx.now) {
            self.hedge_at = None;
        }
        if is_due && self.asks.len() < ASKS_MAX {
            let best = self.best(cx.now, |_| true).copied();
            if let Some(offer) = best {
                self.ask(cx, offer.contact);
            }
        }
        if self.asks.is_empty() {
            // Children may know another relay.
            self.cut(cx);
            self.withdraw(cx);
            if self.lookup_at.is_none_or(|at| at <= cx.now) {
                cx.outbox.push_back(Action::Lookup { stream: self.stream });
                cx.counters.lookups += 1;
                self.lookup_at = Some(cx.now + cx.random.stretched(self.lookups.wait()));
            }
        }
    }

    /// The best that may be asked now, if there is one rather of those that can be taken without letting
    /// children go.
    fn best(&self, now: Time, may: impl Fn(&Offer) -> bool) -> Option<&Offer> {
        let is_asked = |relay| self.asks.values().any(|ask| ask.to.relay == relay);
        let is_other = |offer: &Offer| {
            let relay = offer.contact.relay;
            !self.served.contains_key(&relay) && !is_asked(relay) && may(offer)
        };
        let bound = self.bound();
        let is_above = |path: Path| bound.is_none_or(|own| (path.root, path.depth) < (own.root, own.depth));
        let above = self.candidates.best(now, |offer| is_other(offer) && is_above(offer.path));
        above.or_else(|| self.candidates.best(now, is_other))
    }

    fn ask(&mut self, cx: &mut Context<'_>, to: Contact) {
        let Some(level) = self.demand else { return };
        *cx.asked = cx.asked.wrapping_add(1);
        let ask = *cx.asked;
        self.asks.insert(ask, Asked { to, at: cx.now, until: cx.now + ASK_LIFE, granted: None });
        self.hedge_at = Some(cx.now + cx.random.stretched(ASK_WAIT));
        cx.send(to, self.stream, Message::Ask { ask, level });
    }

    pub(super) fn handle_grant(
        &mut self,
        cx: &mut Context<'_>,
        from: Contact,
        ask: u32,
        path: Path,
        age: Duration,
    ) {
        let Some(asked) = self.asks.get_mut(&ask).filter(|asked| asked.to.relay == from.relay) else {
            if self.parent.as_ref().is_none_or(|parent| parent.ask != ask) {
                cx.send(from, self.stream, Message::Leave { ask });
            }
            return;
        };
        self.candidates.measure(from.relay, cx.now.since(asked.at));
        asked.granted = Some((path, cx.now - age));
        asked.until = cx.now + ASK_LIFE;
        self.consider(cx);
    }

    /// The parent is so far as its answer took.
    pub(super) fn handle_echo_reply(&mut self, cx: &mut Context<'_>, from: RelayId, ask: u32) {
        let parent = self.parent.as_mut().filter(|parent| parent.ask == ask && parent.contact.relay == from);
        if let Some(at) = parent.and_then(|parent| parent.measured_from.take()) {
            self.candidates.measure(from, cx.now.since(at));
            self.consider(cx);
        }
    }

    pub(super) fn handle_refuse(&mut self, cx: &mut Context<'_>, from: RelayId, ask: u32, why: Refusal) {
        if self.asks.get(&ask).is_none_or(|asked| asked.to.relay != from) {
            return;
        }
        self.asks.remove(&ask);
        let rest = if why == Refusal::NoPath { NO_PATH_REST } else { FULL_REST };
        self.candidates.refused(from, cx.now, cx.random.stretched(rest));
        self.seek(cx);
    }

    /// Takes the best of those that would be the parent, if one may be.
    pub(super) fn consider(&mut self, cx: &mut Context<'_>) {
        let bound = self.bound();
        let granted = self.asks.iter().filter_map(|(ask, asked)| Some((*ask, asked.to, asked.granted?)));
        let able = granted
            .filter(|(_, _, (path, _))| path.depth < DEPTH_MAX && bound.is_none_or(|bound| *path < bound));
        let cost = |to: Contact| self.candidates.cost_us(cx.now, to.relay);
        let has_failed = |to: Contact| self.candidates.has_failed(cx.now, to.relay);
        let best = able.min_by_key(|(_, to, (path, _))| (path.root, has_failed(*to), cost(*to)));
        let Some((ask, contact, (path, heard))) = best else { return };
        match &self.parent {
            // As far as it looked, the other one was nearer: now both have been measured.
            Some(parent) if parent.path.root <= path.root => {
                if parent.measured_from.is_some() {
                    return;
                }
                if parent.path.root < path.root || !self.is_nearer(cx.now, contact.relay) {
                    self.asks.remove(&ask);
                    cx.send(contact, self.stream, Message::Leave { ask });
                    return;
                }
            }
            _ => {}
        }
        self.asks.remove(&ask);
        self.take(cx, Parent { contact, ask, path, measured_from: None }, heard);
    }

    /// Whether another one is clearly nearer than the parent.
    fn is_nearer(&self, now: Time, other: RelayId) -> bool {
        let cost_us = |relay| self.candidates.cost_us(now, relay);
        let parent_us = self.parent.as_ref().and_then(|parent| cost_us(parent.contact.relay)).unwrap_or(0);
        cost_us(other).is_some_and(|other_us| other_us + NEARER_US < parent_us / 4 * 3)
    }

    fn take(&mut self, cx: &mut Context<'_>, parent: Parent, heard: Time) {
        let (relay, path) = (parent.contact.relay, parent.path);
        self.path = Some(path.below());
        self.heard = heard;
        self.orphan_since = None;
        (self.lookup_at, self.lookups, self.hedge_at) = (None, LOOKUPS, None);
        self.renew_at = cx.now + cx.random.stretched(RENEW);
        self.review_at = cx.now + cx.random.between(REVIEW / 4, REVIEW);
        let load = self.candidates.offer(relay).map_or(0, |offer| offer.load);
        self.candidates.learn(cx.now, Offer { contact: parent.contact, path, load }, cx.random);
        cx.outbox.push_back(Action::Take { stream: self.stream, parent: relay });
        cx.counters.taken += 1;
        let before = self.parent.replace(parent);
        if let Some(before) = before {
            cx.send(before.contact, self.stream, Message::Leave { ask: before.ask });
        }
        self.leave_asked(cx);
        self.announce(cx);
    }

    fn leave_asked(&mut self, cx: &mut Context<'_>) {
        for (ask, asked) in core::mem::take(&mut self.asks) {
            cx.send(asked.to, self.stream, Message::Leave { ask });
        }
    }

    /// Neither asks nor takes anything any more.
    pub(super) fn leave_all(&mut self, cx: &mut Context<'_>) {
        self.leave_asked(cx);
        if let Some(parent) = self.parent.take() {
            cx.send(parent.contact, self.stream, Message::Leave { ask: parent.ask });
            cx.outbox.push_back(Action::Lost { stream: self.stream });
        }
    }

    fn lose_parent(&mut self, cx: &mut Context<'_>) {
        let Some(parent) = self.parent.take() else { return };
        self.candidates.rest(parent.contact.relay, cx.now + LOST_REST);
        self.orphan(cx);
    }

    /// The stream does not come from its parent, which is there.
    pub(super) fn handle_failed(&mut self, cx: &mut Context<'_>, relay: RelayId) {
        let Some(parent) = self.parent.take_if(|parent| parent.contact.relay == relay) else { return };
        cx.send(parent.contact, self.stream, Message::Leave { ask: parent.ask });
        self.candidates.failed(relay, cx.now, cx.random.stretched(LOST_REST));
        cx.counters.failed += 1;
        self.orphan(cx);
    }

    /// There was a parent until now.
    fn orphan(&mut self, cx: &mut Context<'_>) {
        cx.outbox.push_back(Action::Lost { stream: self.stream });
        cx.counters.lost += 1;
        self.orphan_since = Some(cx.now);
        self.consider(cx);
        self.seek(cx);
    }

    /// The parent lets this relay go, or one that would have been.
    pub(super) fn handle_drop(&mut self, cx: &mut Context<'_>, from: RelayId, ask: u32) {
        if self.parent.as_ref().is_some_and(|parent| parent.ask == ask && parent.contact.relay == from) {
            self.lose_parent(cx);
        } else if self.asks.get(&ask).is_some_and(|asked| asked.to.relay == from) {
            self.asks.remove(&ask);
            self.candidates.rest(from, cx.now + NO_PATH_REST);
            self.seek(cx);
        }
    }

    /// The connection with this relay is gone.
    pub(super) fn handle_lost_above(&mut self, cx: &mut Context<'_>, peer: RelayId) {
        self.candidates.rest(peer, cx.now + LOST_REST);
        self.asks.retain(|_, asked| asked.to.relay != peer);
        if self.parent.as_ref().is_some_and(|parent| parent.contact.relay == peer) {
            self.lose_parent(cx);
        } else {
            self.seek(cx);
        }
    }

    pub(super) fn handle_beat(&mut self, cx: &mut Context<'_>, from: Contact, ask: u32, path: Path) {
        if let Some(parent) = self.parent.as_mut().filter(|parent| parent.ask == ask) {
            let own = path.below();
            let Some(before) = self.path.filter(|before| own < *before) else { return };
            parent.path = path;
            if (own.root, own.beat) < (before.root, before.beat) {
                self.heard = cx.now;
            }
            self.path = Some(own);
            self.announce(cx);
        } else if let Some(asked) = self.asks.get_mut(&ask) {
            asked.granted = asked.granted.map(|_| (path, cx.now));
        } else {
            cx.send(from, self.stream, Message::Leave { ask });
            return;
        }
        self.consider(cx);
    }

    /// Says to the parent what is wanted.
    pub(super) fn renew(&mut self, cx: &mut Context<'_>) {
        self.renew_at = cx.now + cx.random.stretched(RENEW);
        let (Some(parent), Some(level)) = (&self.parent, self.demand) else { return };
        let (contact, ask) = (parent.contact, parent.ask);
        cx.send(contact, self.stream, Message::Want { ask, level });
    }

    pub(super) fn handle_above_timeout(&mut self, cx: &mut Context<'_>) {
        let late: Vec<_> = self.asks.iter().filter(|(_, asked)| asked.until <= cx.now).collect();
        let late: Vec<_> = late.into_iter().map(|(ask, asked)| (*ask, asked.to, asked.granted)).collect();
        for (ask, to, granted) in late {
            self.asks.remove(&ask);
            let rest = if granted.is_some() { IN_VAIN_REST } else { LOST_REST };
            self.candidates.rest(to.relay, cx.now + rest);
            cx.send(to, self.stream, Message::Leave { ask });
        }
        if self.parent.is_some() {
            if self.heard + self.dry_after <= cx.now {
                if let Some(parent) = &self.parent {
                    cx.send(parent.contact, self.stream, Message::Leave { ask: parent.ask });
                }
                cx.counters.dry += 1;
                self.lose_parent(cx);
                return;
            }
            if self.renew_at <= cx.now {
                self.renew(cx);
            }
            if self.review_at <= cx.now {
                self.review(cx);
            }
        } else if self.is_orphan() {
            if self.orphan_since.is_some_and(|since| since + PATIENCE <= cx.now) && !self.served.is_empty() {
                self.cut(cx);
                self.consider(cx);
            }
            self.seek(cx);
        }
    }

    /// Asks a candidate that is clearly better than the parent, and the directory for others before the next
    /// time. How far a candidate is may only be guessed so far, and an answer that was late once is no long way:
    /// the parent is measured once more, too.
    fn review(&mut self, cx: &mut Context<'_>) {
        self.review_at = cx.now + cx.random.stretched(REVIEW);
        let Some(parent) = &self.parent else { return };
        let (now, relay, root) = (cx.now, parent.contact.relay, parent.path.root);
        let bound = self.bound();
        let is_better = |offer: &Offer| {
            let other = offer.contact.relay;
            // Deeper than this relay, it could hardly be taken with children.
            let is_above = bound.is_none_or(|own| offer.path.depth < own.depth);
            let is_nearer = offer.path.root == root && self.is_nearer(now, other);
            let is_worth_it = offer.path.root < root || (is_nearer && is_above && offer.load < 255);
            other != relay && is_worth_it && !self.candidates.has_failed(now, other)
        };
        let better = self.best(now, is_better).copied();
        if let Some(offer) = better {
            self.measure_parent(cx);
            self.ask(cx, offer.contact);
        }
        cx.outbox.push_back(Action::Lookup { stream: self.stream });
        cx.counters.lookups += 1;
    }

    /// To ask it again would not do: it might serve this relay again, as a parent that must not be taken now.
    fn measure_parent(&mut self, cx: &mut Context<'_>) {
        let Some(parent) = &mut self.parent else { return };
        parent.measured_from = Some(cx.now);
        let (contact, ask) = (parent.contact, parent.ask);
        cx.send(contact, self.stream, Message::Echo { ask });
    }

    /// Candidates that a child or a relay that is refused may ask.
    pub(super) fn others(&self, cx: &mut Context<'_>, asker: RelayId, is_full: bool) -> Vec<Offer> {
        let mut others = Vec::with_capacity(OTHERS_MAX);
        others.extend(self.parent.as_ref().filter(|_| !is_full).map(|parent| Offer {
            contact: parent.contact,
            path: parent.path,
            load: 128,
        }));
        if let Some(path) = self.path.filter(|_| !self.served.is_empty()) {
            let first = (cx.random.bits() % self.served.len() as u64) as usize;
            let most = if is_full { self.served.len() } else { OTHERS_MAX / 2 };
            let children = self.served.values().cycle().skip(first).take(most.min(self.served.len()));
            others.extend(children.map(|child| Offer {
                contact: child.contact,
                path: path.below(),
                load: 128,
            }));
        }
        others.extend(self.candidates.offers());
        others.retain(|offer| offer.contact.relay != asker);
        others.truncate(OTHERS_MAX);
        others
    }
}
