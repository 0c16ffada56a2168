//! Towards the receivers: relays that are served.

use super::Child;
use super::limits::{BEAT, CHILD_LIFE, DEPTH_MAX, OTHERS_EVERY};
use super::message::{Action, Message, Refusal};
use super::path::{Contact, RelayId};
use super::stream::{Context, Served, Tree};
use crate::Level;

impl Tree {
    pub(super) fn handle_ask(&mut self, cx: &mut Context<'_>, from: Contact, ask: u32, level: Level) {
        if let Err(why) = self.admit(cx, from, ask, level) {
            cx.counters.refused += 1;
            let others = self.others(cx, from.relay, why != Refusal::NoPath);
            cx.send(from, self.stream, Message::Refuse { ask, why, others });
            return;
        }
        let Some(path) = self.path else { return };
        let age = if self.root.is_some() { core::time::Duration::ZERO } else { cx.now.since(self.heard) };
        let others = self.others(cx, from.relay, false);
        cx.send(from, self.stream, Message::Grant { ask, path, age, others });
    }

    fn admit(&mut self, cx: &mut Context<'_>, from: Contact, ask: u32, level: Level) -> Result<(), Refusal> {
        let is_parent = self.parent.as_ref().is_some_and(|parent| parent.contact.relay == from.relay);
        let path = self.path.filter(|_| self.is_fresh(cx.now) && !is_parent).ok_or(Refusal::NoPath)?;
        if path.depth >= DEPTH_MAX {
            return Err(Refusal::TooDeep);
        }
        let is_new = !self.served.contains_key(&from.relay);
        if is_new && *cx.children >= cx.settings.children_max {
            return Err(Refusal::Full);
        }
        let child = Child::Relay(from.relay);
        cx.demand.handle_want(cx.now, self.stream, child, level, None).map_err(|_| Refusal::Full)?;
        *cx.children += usize::from(is_new);
        let served = Served { contact: from, ask, level, until: cx.now + CHILD_LIFE };
        self.served.insert(from.relay, served);
        cx.outbox.push_back(Action::Serve { stream: self.stream, child: from.relay, level });
        Ok(())
    }

    pub(super) fn handle_want(&mut self, cx: &mut Context<'_>, from: Contact, ask: u32, level: Level) {
        let Some(child) = self.served.get_mut(&from.relay).filter(|child| child.ask == ask) else {
            cx.send(from, self.stream, Message::Drop { ask });
            return;
        };
        child.until = cx.now + CHILD_LIFE;
        if child.level != level {
            child.level = level;
            // A child that is there is never refused.
            let _ = cx.demand.handle_want(cx.now, self.stream, Child::Relay(from.relay), level, None);
            cx.outbox.push_back(Action::Serve { stream: self.stream, child: from.relay, level });
        }
    }

    pub(super) fn handle_leave(&mut self, cx: &mut Context<'_>, from: RelayId, ask: u32) {
        if self.served.get(&from).is_some_and(|child| child.ask == ask) {
            self.stop(cx, from);
        }
    }

    pub(super) fn stop(&mut self, cx: &mut Context<'_>, child: RelayId) {
        if self.served.remove(&child).is_some() {
            *cx.children -= 1;
            cx.demand.handle_leave(cx.now, self.stream, &Child::Relay(child));
            cx.outbox.push_back(Action::Stop { stream: self.stream, child });
        }
    }

    /// Lets all children go, so that any parent may be taken.
    pub(super) fn cut(&mut self, cx: &mut Context<'_>) {
        let children: Vec<_> = self.served.values().map(|child| (child.contact, child.ask)).collect();
        for (contact, ask) in children {
            cx.counters.cut += 1;
            cx.send(contact, self.stream, Message::Drop { ask });
            self.stop(cx, contact.relay);
        }
    }

    /// Forgets children that do not say again what they want.
    pub(super) fn sweep(&mut self, cx: &mut Context<'_>) {
        let late = self.served.values().filter(|child| child.until <= cx.now);
        let late: Vec<_> = late.map(|child| child.contact.relay).collect();
        for child in late {
            cx.counters.expired += 1;
            self.stop(cx, child);
        }
    }

    /// Says to the children that the source is there, and how far.
    pub(super) fn announce(&mut self, cx: &mut Context<'_>) {
        let Some(path) = self.path else { return };
        let names_others = (path.beat.0 / BEAT.as_millis() as u64).is_multiple_of(OTHERS_EVERY);
        let children: Vec<_> = self.served.values().map(|child| (child.contact, child.ask)).collect();
        for (contact, ask) in children {
            let others = if names_others { self.others(cx, contact.relay, false) } else { Vec::new() };
            cx.send(contact, self.stream, Message::Beat { ask, path, others });
        }
    }
}
