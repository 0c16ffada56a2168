//! What relays do and say to each other, and what becomes of it.

use outflow_routing::tree::{Action, Message, RelayId, StreamId};

use super::Network;
use crate::trees::directory::WAY;
use crate::trees::timetable::Event;

impl Network {
    pub(super) fn handle(&mut self, event: Event) {
        let now = self.now();
        let lives = |relay: usize, life: u64| self.relays[relay].is_alive && self.relays[relay].life == life;
        match event {
            Event::Wake { relay } => self.wake(relay),
            Event::Message { from, life, to, stream, message } => {
                if lives(from, life) && self.relays.reaches(from, to) {
                    self.deliver(from, to, stream, message);
                } else {
                    self.find_lost(from, life, to);
                }
            }
            Event::Lost { relay, life, peer, peer_life } if lives(relay, life) => {
                if self.relays[relay].heard.get(&peer).is_none_or(|heard| *heard <= peer_life) {
                    self.relays[relay].node.handle_lost(now, RelayId(peer as u64));
                    self.settle_all(relay);
                }
            }
            Event::Put { relay, stream, offer } if self.reaches_directory(relay) => {
                self.directory.put(now, stream, self.relays[relay].contact.relay, offer);
            }
            Event::Ask { relay, life, stream } if self.reaches_directory(relay) => {
                let asker = self.relays[relay].contact;
                let offers = self.directory.answer(now, stream, asker, &mut self.random);
                self.timetable.add(WAY, Event::Offers { relay, life, stream, offers });
            }
            Event::Offers { relay, life, stream, offers } if lives(relay, life) => {
                self.relays[relay].node.handle_offers(now, stream, &offers);
                self.drain(relay);
                self.look(relay, stream);
            }
            Event::Back { relay, life } if lives(relay, life) => {
                self.relays[relay].node.handle_directory_back(now);
                self.settle_all(relay);
            }
            Event::Change { relay } => self.change(relay),
            Event::Lost { .. }
            | Event::Put { .. }
            | Event::Ask { .. }
            | Event::Offers { .. }
            | Event::Back { .. } => (),
        }
    }

    fn reaches_directory(&self, relay: usize) -> bool {
        self.directory.is_there && self.relays[relay].part == 0 && self.relays[relay].is_alive
    }

    fn wake(&mut self, relay: usize) {
        let now = self.now();
        let it = &mut self.relays[relay];
        if !it.is_alive || it.timer != Some(now) {
            return;
        }
        it.timer = None;
        if it.node.next_timeout().is_some_and(|at| at <= now) {
            it.node.handle_timeout(now);
            self.settle_all(relay);
        } else {
            self.drain(relay);
        }
    }

    fn deliver(&mut self, from: usize, to: usize, stream: StreamId, message: Message) {
        let now = self.now();
        let (contact, life) = (self.relays[from].contact, self.relays[from].life);
        if life > 1 {
            let before = self.relays[to].heard.insert(from, life).unwrap_or(1);
            if before < life && self.relays[to].is_beside(contact.relay) {
                // A new connection: what was said in the old one is of no use any more.
                self.relays[to].node.handle_lost(now, contact.relay);
            }
        }
        self.relays[to].node.handle_message(now, contact, stream, message);
        self.drain(to);
        self.look(to, stream);
    }

    fn settle_all(&mut self, relay: usize) {
        self.drain(relay);
        for stream in self.relays.streams_of(relay) {
            self.look(relay, stream);
        }
    }

    /// Does what a node asks for, and looks at what became of its edges.
    pub(super) fn drain(&mut self, relay: usize) {
        let now = self.now();
        while let Some(action) = self.relays[relay].node.poll() {
            self.act(relay, action);
        }
        if !self.touched.is_empty() {
            let mut touched = core::mem::take(&mut self.touched);
            self.media.refresh(now, &mut self.relays, &touched);
            touched.clear();
            self.touched = touched;
        }
        let next = self.relays[relay].node.next_timeout();
        // A relay woken too early goes to sleep again.
        if let Some(at) = next
            && self.relays[relay].timer.is_none_or(|timer| at < timer)
        {
            self.relays[relay].timer = Some(at);
            self.timetable.add(at.since(now), Event::Wake { relay });
        }
    }

    fn act(&mut self, relay: usize, action: Action) {
        let (now, life) = (self.now(), self.relays[relay].life);
        match action {
            Action::Send { to, stream, message } => {
                let to_relay = to.relay.0 as usize;
                self.relays[relay].counted.sent(now, to_relay);
                if self.random.u32(..1000) < self.loss {
                    return;
                }
                let after = self.relays.way(relay, to_relay);
                self.timetable
                    .add(after, Event::Message { from: relay, life, to: to_relay, stream, message });
            }
            Action::Register { stream, offer } => {
                self.relays[relay].counted.traffic.directory += 1;
                self.timetable.add(WAY, Event::Put { relay, stream, offer: Some(offer) });
            }
            Action::Withdraw { stream } => {
                self.relays[relay].counted.traffic.directory += 1;
                self.timetable.add(WAY, Event::Put { relay, stream, offer: None });
            }
            Action::Lookup { stream } => {
                self.relays[relay].counted.traffic.directory += 1;
                self.timetable.add(WAY, Event::Ask { relay, life, stream });
            }
            // It is the child that knows what it asks for.
            Action::Level { .. } => (),
            Action::Take { stream, .. } | Action::Lost { stream } => {
                let is_taken = matches!(action, Action::Take { .. });
                self.relays[relay].counted.traffic.taken += u64::from(is_taken);
                self.touched.push((stream, relay));
            }
            Action::Serve { stream, child, .. } | Action::Stop { stream, child } => {
                self.media.sends(now, &mut self.relays, (stream, relay, child.0 as usize));
                self.touched.push((stream, child.0 as usize));
            }
        }
    }

    /// Looks whether a relay asks for what is wanted of it.
    pub(super) fn look(&mut self, relay: usize, stream: StreamId) {
        self.media.look(self.timetable.now(), &mut self.relays, relay, stream);
    }

    /// The receivers at a relay change their minds.
    fn change(&mut self, relay: usize) {
        let Some(crowd) = self.crowd else { return };
        if let Some((stream, wishes)) = crowd.change(&self.relays[relay], &mut self.random) {
            self.set_all_receivers(relay, stream, wishes);
        }
        self.change_again(relay, &crowd);
    }
}
