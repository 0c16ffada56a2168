//! What the state machine asks for.
use outflow_directory::{Directory, Entry, RelayRecord};
use outflow_front_groups::of_path;
use outflow_routing::tree::{Action, RelayId, StreamId};

use super::super::feed::Feed;
use super::super::input::Parent;
use super::super::lookup::{self, Question};
use super::super::wire::Notice;
use super::Driver;
use crate::settings::{Tree, TreeTransport};

impl Driver {
    pub(super) fn carry_out(&mut self, action: Action) {
        match action {
            Action::Send { to, stream, message } => {
                if let Some(name) = self.names.get(&stream) {
                    let said = Notice::Tree { stream: name.clone(), message };
                    self.say(to, said);
                }
            }
            Action::Take { stream, parent } => self.take(stream, parent),
            Action::Level { stream, level } => {
                if let Some(feed) = self.names.get(&stream).and_then(|name| self.feeds.get(name)) {
                    feed.ask_level(of_path(level));
                }
            }
            Action::Lost { stream } => self.let_go(stream),
            // A child subscribes as every receiver does; the node knows which relays are children.
            Action::Serve { .. } | Action::Stop { .. } => {}
            Action::Register { stream, offer } => {
                if let (Some(directory), Some(name)) = (self.said_to(), self.names.get(&stream)) {
                    directory.register(&Entry { stream: name.clone(), offer });
                }
            }
            Action::Withdraw { stream } => {
                if let (Some(directory), Some(name)) = (&self.directory, self.names.get(&stream)) {
                    directory.withdraw(name, self.me.contact.relay);
                }
            }
            Action::Lookup { stream } => self.look_up(stream),
        }
    }

    fn look_up(&mut self, id: StreamId) {
        let Some(stream) = self.names.get(&id).cloned() else { return };
        if !self.looking.insert(id) {
            return;
        }
        let is_orphan = self.node.parent(id).is_none();
        let fetch = self.node.demand(id).filter(|_| is_orphan);
        let (near, parents) = (self.me.contact.location, self.parents.len());
        let question = Question { id, stream, fetch, near, parents };
        tokio::spawn(lookup::look_up(question, self.directory.clone(), self.inputs.clone()));
    }

    /// Takes a stream of a parent from now on.
    fn take(&mut self, id: StreamId, relay: RelayId) {
        let Some(stream) = self.names.get(&id).cloned() else { return };
        let Some(link) = self.links.with(relay) else {
            // It went the moment it agreed.
            self.node.handle_lost(self.control.now(), relay);
            return;
        };
        let (contact, rtsp) = (link.peer.contact, link.peer.rtsp);
        let mut at = contact.address;
        if self.control.config().section::<Tree>().transport != TreeTransport::Poc {
            let Some(port) = rtsp else {
                tracing::error!(
                    stream,
                    relay = link.peer.name,
                    "the stream cannot come by RTP or multicast: that relay has no RTSP server; set [listen] \
                     rtsp there, or [tree] transport here"
                );
                self.node.handle_failed(self.control.now(), id, relay);
                return;
            };
            at.set_port(port);
        }
        self.turn += 1;
        let parent = Parent { relay, name: link.peer.name.clone(), at, turn: self.turn };
        tracing::info!(stream, parent = parent.name, %at, "the stream is taken of another relay");
        let level = self.node.demand(id).map(of_path).unwrap_or_default();
        let start = || Feed::start(self.control.clone(), &stream, level, self.inputs.clone());
        let feed = self.feeds.entry(stream.clone()).or_insert_with(start);
        feed.ask_level(level);
        feed.planned = Some(parent);
        if self.is_there(&stream) { self.begin_feed(&stream) } else { self.adopt(&stream) }
    }

    /// The stream's parent may be taken, now that the stream itself is there.
    pub(super) fn begin_feed(&mut self, stream: &str) {
        if let Some(feed) = self.feeds.get_mut(stream)
            && let Some(parent) = feed.planned.take()
        {
            feed.parent.send_replace(Some(parent));
        }
    }

    /// A stream has no parent any more.
    fn let_go(&mut self, id: StreamId) {
        let Some(stream) = self.names.get(&id).cloned() else { return };
        if self.node.demand(id).is_none() {
            tracing::info!(stream, "the stream is not wanted any more: it is let go");
            self.feeds.remove(&stream);
        } else if let Some(feed) = self.feeds.get_mut(&stream) {
            tracing::warn!(stream, "the stream has lost its parent");
            (feed.planned, feed.is_up) = (None, false);
            feed.parent.send_replace(None);
        }
    }

    /// The directory, as long as other relays are to find this one.
    fn said_to(&self) -> Option<&Directory> {
        self.directory.as_ref().filter(|_| !self.is_ending)
    }

    /// Says to the directory that this relay is there.
    pub(super) fn announce(&self) {
        let Some(directory) = self.said_to() else { return };
        let has = self.sources.iter().chain(self.feeds.keys());
        let config = self.control.config();
        let state = self.control.state();
        let receivers: u64 = state.streams.iter().map(|stream| stream.receivers.len() as u64).sum();
        let streams: Vec<String> = has.cloned().collect();
        directory.announce(&RelayRecord {
            relay: self.me.contact.relay,
            name: self.me.name.clone(),
            addresses: vec![self.me.contact.address.to_string()],
            version: env!("CARGO_PKG_VERSION").to_owned(),
            location: self.me.contact.location,
            load: (receivers.saturating_mul(255) / config.limits.receivers.max(1) as u64).min(255) as u8,
            streams_total: u32::try_from(streams.len()).unwrap_or(u32::MAX),
            streams,
        });
    }
}
