//! Connections with other relays.
use std::net::SocketAddr;
use std::sync::Arc;

use outflow_door::{Pass, Permit};
use outflow_poc_socket::PocSocket;
use outflow_routing::tree::{Contact, RelayId};
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::super::input::{Input, LinkEvent, LinkId, Question, To};
use super::super::limits::{LINKS_MAX, RECONNECT_WAIT_MAX, UNSAID_MAX};
use super::super::link;
use super::super::link::{Link, Terms};
use super::super::places::look_up;
use super::super::wire::{Hello, Notice};
use super::{Driver, Links};
use crate::settings::Tree;

impl Links {
    /// The connection by which a relay is talked to.
    pub(super) fn with(&self, relay: RelayId) -> Option<&Link> {
        self.up.get(self.of_relay.get(&relay)?.last()?)
    }

    fn count(&self) -> usize {
        self.up.len() + self.dialled.len() + self.unknown.len()
    }

    fn next(&mut self) -> LinkId {
        self.newest += 1;
        self.newest
    }
}

impl Driver {
    /// A relay wants to talk.
    pub(super) fn accept(&mut self, socket: PocSocket, from: SocketAddr, (permit, pass): (Permit, Pass)) {
        if self.links.count() >= LINKS_MAX {
            tracing::warn!(%from, limit = LINKS_MAX, "too many relays are connected: this one is not");
            return;
        }
        let link = self.links.next();
        self.links.unknown.insert(link);
        let terms = Terms { link, me: self.me.clone(), is_kept: false };
        let door = Arc::clone(self.control.door());
        tokio::spawn(link::answer(terms, (socket, permit), (door, pass), self.inputs.clone()));
    }

    /// Connects to an address. None if nothing can be encrypted.
    fn dial(&mut self, to: SocketAddr, is_kept: bool) -> Option<LinkId> {
        if self.links.count() >= LINKS_MAX {
            return None;
        }
        let config = self.control.config();
        let options = match outflow_front_poc::options(&config.section(), None) {
            Ok(options) => options,
            Err(error) => {
                tracing::error!(%error, "other relays cannot be reached");
                return None;
            }
        };
        let link = self.links.next();
        let token = config.section::<Tree>().token.as_ref().map(|token| token.reveal().to_owned());
        let terms = Terms { link, me: self.me.clone(), is_kept };
        tokio::spawn(link::dial(terms, (to, token, options), self.inputs.clone()));
        Some(link)
    }

    /// Says something to a relay, over a connection that is made if there is none.
    pub(super) fn say(&mut self, to: Contact, said: Notice) {
        if let Some(link) = self.links.with(to.relay) {
            if link.to.try_send(said).is_err() {
                // It reads too slowly, or it ends; its end is told then.
                self.node.handle_lost(self.control.now(), to.relay);
            }
            return;
        }
        let dialled = self.links.dialled.values_mut().find(|(relay, _)| *relay == to.relay);
        if let Some((_, unsaid)) = dialled {
            if unsaid.len() < UNSAID_MAX {
                unsaid.push(said);
            }
            return;
        }
        match self.dial(to.address, false) {
            Some(link) => _ = self.links.dialled.insert(link, (to.relay, vec![said])),
            None => self.node.handle_lost(self.control.now(), to.relay),
        }
    }

    /// Asks a relay something. A relay that is not to be reached never answers.
    pub(super) fn ask(&mut self, to: To, said: Question, reply: oneshot::Sender<Notice>) {
        self.links.asked.retain(|_, (_, reply)| !reply.is_closed());
        self.links.question = self.links.question.wrapping_add(1);
        let number = self.links.question;
        match to {
            To::Parent(place) => {
                let link = self.parents.get(place).filter(|parent| parent.is_up).and_then(|above| above.link);
                if let Some(link) = link
                    && self.links.up.get(&link).is_some_and(|up| up.to.try_send(said(number)).is_ok())
                {
                    self.links.asked.insert(number, (link, reply));
                }
            }
            To::Relay(contact) => {
                self.say(contact, said(number));
                let of_relay = self.links.of_relay.get(&contact.relay).and_then(|all| all.last());
                let dialled = self.links.dialled.iter().find(|(_, (relay, _))| *relay == contact.relay);
                if let Some(link) = of_relay.copied().or(dialled.map(|(link, _)| *link)) {
                    self.links.asked.insert(number, (link, reply));
                }
            }
        }
    }

    pub(super) fn handle_link(&mut self, event: LinkEvent) {
        match event {
            LinkEvent::Up { link, peer, to } => self.handle_up(link, *peer, to),
            LinkEvent::Heard { link, said } => self.handle_said(link, said),
            LinkEvent::Down { link, why } => self.handle_down(link, &why),
        }
    }

    fn handle_up(&mut self, link: LinkId, peer: Hello, to: tokio::sync::mpsc::Sender<Notice>) {
        let relay = peer.contact.relay;
        self.links.unknown.remove(&link);
        if let Some((expected, unsaid)) = self.links.dialled.remove(&link) {
            if expected != relay {
                self.node.handle_lost(self.control.now(), expected);
            } else {
                for said in unsaid {
                    // There is room for as much as may wait.
                    let _ = to.try_send(said);
                }
            }
        }
        for parent in self.parents.iter_mut().filter(|parent| parent.link == Some(link)) {
            parent.is_up = true;
            parent.backoff.reset();
        }
        tracing::info!(relay = peer.name, at = %peer.contact.address, "another relay is connected");
        self.links.names.insert(relay, peer.name.clone());
        self.links.of_relay.entry(relay).or_default().push(link);
        self.links.up.insert(link, Link { peer, to });
        // A receiver may have waited for just this one.
        if self.parents.iter().any(|parent| parent.link == Some(link)) {
            self.node.handle_directory_back(self.control.now());
        }
    }

    fn handle_down(&mut self, link: LinkId, why: &str) {
        self.links.unknown.remove(&link);
        self.links.asked.retain(|_, (asked, _)| *asked != link);
        for parent in self.parents.iter_mut().filter(|parent| parent.link == Some(link)) {
            (parent.link, parent.is_up) = (None, false);
            parent.again_at = Instant::now() + parent.backoff.wait();
            tracing::warn!(parent = parent.place, why, "the parent cannot be reached; trying again");
        }
        if let Some((relay, _)) = self.links.dialled.remove(&link) {
            tracing::info!(%relay, why, "another relay cannot be reached");
            self.node.handle_lost(self.control.now(), relay);
        }
        let Some(Link { peer, .. }) = self.links.up.remove(&link) else { return };
        let relay = peer.contact.relay;
        tracing::info!(relay = peer.name, why, "another relay is no longer connected");
        if let Some(all) = self.links.of_relay.get_mut(&relay) {
            all.retain(|one| *one != link);
            if all.is_empty() {
                self.links.of_relay.remove(&relay);
                self.node.handle_lost(self.control.now(), relay);
            }
        }
    }

    fn handle_said(&mut self, link: LinkId, said: Notice) {
        let Some(Link { peer, .. }) = self.links.up.get(&link) else { return };
        let from = peer.contact;
        match said {
            Notice::Tree { stream, message } => {
                if let Some(id) = self.id(&stream) {
                    self.node.handle_message(self.control.now(), from, id, message);
                }
            }
            Notice::Lookup { number, stream, fetch } => self.handle_lookup(link, number, &stream, fetch),
            Notice::Offers { number, .. } | Notice::Shown { number, .. } => {
                let asked = self.links.asked.get(&number).is_some_and(|(asked, _)| *asked == link);
                if asked && let Some((_, reply)) = self.links.asked.remove(&number) {
                    // The caller that asked may have given up.
                    let _ = reply.send(said);
                }
            }
            Notice::Show { number } => {
                let (view, _) = self.show();
                self.reply(link, Notice::Shown { number, view: Box::new(view) });
            }
            // Said by the connection itself.
            Notice::Hello(_) | Notice::Alive => {}
        }
    }

    /// Says something over a connection, if that is still there and has room.
    pub(super) fn reply(&self, link: LinkId, said: Notice) {
        if let Some(link) = self.links.up.get(&link) {
            let _ = link.to.try_send(said);
        }
    }

    /// Connects with parents that are not connected.
    pub(super) fn tend_parents(&mut self) {
        let now = Instant::now();
        for place in 0..self.parents.len() {
            let parent = &mut self.parents[place];
            if parent.link.is_some() || parent.again_at > now {
                continue;
            }
            parent.again_at = now + RECONNECT_WAIT_MAX;
            let (name, inputs) = (parent.place.clone(), self.inputs.clone());
            // Looking up may take long; it is told as an input.
            tokio::spawn(async move {
                let found = look_up(&name).await;
                let _ = inputs.send(Input::Found { place, found }).await;
            });
        }
    }

    /// A parent's address is known, or not.
    pub(super) fn handle_found(
        &mut self,
        place: usize,
        found: Result<SocketAddr, outflow_engine::message::ControlError>,
    ) {
        let failed = match found {
            Ok(at) => {
                let link = self.dial(at, true);
                if let Some(parent) = self.parents.get_mut(place) {
                    parent.link = link;
                }
                return;
            }
            Err(error) => error,
        };
        tracing::warn!(error = %failed, "a parent cannot be found; trying again");
    }
}
