//! Streams: what wants them, which are here, and which come from other relays.
use outflow_engine::message::Demand;
use outflow_front_groups::{number, of_path, of_tree};
use outflow_media::Time;
use outflow_packet::Level;
use outflow_routing::tree::StreamId;
use tokio::sync::oneshot;

use super::super::input::{Input, LinkId, Parent};
use super::super::limits::{
    ADOPTED_LINGER, ADOPTED_MAX, FETCH, REACH, REACHED, UNWANTED_LINGER, WAITING_MAX,
};
use super::super::wants::{Change, Wanter};
use super::super::wire::Notice;
use super::Driver;
use super::waiting::{Asker, Waiting};
use crate::settings;
use crate::settings::{Tree, TreeStreams};

impl Driver {
    /// Whether the relay has such a stream, be it without a source.
    pub(super) fn is_there(&self, stream: &str) -> bool {
        self.control.known(stream).is_some()
    }

    /// Whether a stream may be taken of others.
    fn may_fetch(&self, stream: &str) -> bool {
        match self.control.known(stream) {
            Some(known) => known.is_of_relays,
            None => {
                self.control.config().section::<Tree>().streams == TreeStreams::Any
                    && outflow_config::check_name(stream).is_ok()
            }
        }
    }

    /// Receivers with a worker want another level than before.
    pub(super) fn handle_demand(&mut self, demand: Demand) {
        let Some((stream, known)) = self.control.known_by_number(demand.stream) else { return };
        self.want(&stream, Wanter::Receivers(demand.stream), demand.level, None);
        // Renditions are handed on as they are, whatever is wanted of the whole.
        let config = self.control.config();
        let renditions = config.streams.get(&stream).map(|config| config.source.renditions());
        let (wanter, level) = (Wanter::Rendition(known.number), demand.level.map(|_| Level::BEST));
        for rendition in renditions.unwrap_or_default() {
            self.want(rendition, wanter, level, None);
        }
    }

    fn want(&mut self, stream: &str, wanter: Wanter, level: Option<Level>, until: Option<Time>) {
        let config = self.control.config();
        // Services work on all of a stream.
        let is_worked_on = config.streams.get(stream).is_some_and(|config| !config.plan().is_empty());
        let level = level.map(|level| of_tree(if is_worked_on { Level::BEST } else { level }));
        if level.is_some() && !self.may_fetch(stream) {
            return;
        }
        if let Some(change) = self.wants.set(stream, wanter, level, until) {
            self.pass_on(&change);
        }
        if let Some(level) = level.filter(|_| matches!(wanter, Wanter::Receivers(_))) {
            self.wants.come(stream, level);
        }
    }

    fn pass_on(&mut self, change: &Change) {
        let Some(id) = self.id(&change.stream) else { return };
        let now = self.control.now();
        if let Some(level) = change.after
            && self.node.handle_receivers(now, id, level, 1).is_err()
        {
            tracing::warn!(stream = change.stream, "too many streams are wanted: this one is not fetched");
        }
        if let Some(level) = change.before {
            // A receiver that leaves is never refused.
            let _ = self.node.handle_receivers(now, id, level, 0);
        }
    }

    pub(super) fn handle_reach(&mut self, stream: &str, level: Level, reply: oneshot::Sender<bool>) {
        if !self.may_fetch(stream) || self.waiting.len() >= WAITING_MAX {
            // The caller that asked may be gone.
            let _ = reply.send(false);
            return;
        }
        self.wait_for(stream, level, REACH, Asker::Receiver(reply));
    }

    /// Another relay asks which relays have a stream.
    pub(super) fn handle_lookup(
        &mut self,
        link: LinkId,
        question: u32,
        stream: &str,
        fetch: Option<outflow_routing::Level>,
    ) {
        let own = self.node.offer(self.control.now(), StreamId(number(stream)));
        match fetch {
            Some(level) if own.is_none() && self.may_fetch(stream) && self.waiting.len() < WAITING_MAX => {
                self.wait_for(stream, of_path(level), FETCH, Asker::Relay(link, question));
            }
            _ => self.reply(link, Notice::Offers { number: question, offers: own.into_iter().collect() }),
        }
    }

    /// Wants a stream for a receiver that is not there yet. If the stream is there already, the caller is
    /// told so in a moment.
    fn wait_for(&mut self, stream: &str, level: Level, wait: core::time::Duration, asker: Asker) {
        self.turn += 1;
        let (wanter, until) = (Wanter::Soon(self.turn), self.control.now() + wait);
        self.want(stream, wanter, Some(level), Some(until));
        self.waiting.push(Waiting { stream: stream.to_owned(), level, wanter, until, asker });
    }

    /// Tells the callers that waited long enough, or for what is there now.
    pub(super) fn settle_waiting(&mut self, now: Time) {
        let mut index = 0;
        while let Some(Waiting { stream, until, asker, .. }) = self.waiting.get(index) {
            let offer = self.node.offer(now, StreamId(number(stream)));
            let is_there = match asker {
                Asker::Receiver(_) => self.feeds.get(stream).is_some_and(|feed| feed.is_up),
                Asker::Relay(..) => offer.is_some(),
            };
            if !is_there && now < *until {
                index += 1;
                continue;
            }
            let Waiting { stream, level, wanter, asker, .. } = self.waiting.swap_remove(index);
            self.want(&stream, wanter, is_there.then_some(level), Some(now + REACHED));
            match asker {
                // The caller that asked may be gone.
                Asker::Receiver(reply) => drop(reply.send(is_there)),
                Asker::Relay(link, number) => {
                    self.reply(link, Notice::Offers { number, offers: offer.into_iter().collect() });
                }
            }
        }
    }

    /// Sources that came here or went.
    pub(super) fn look_at_sources(&mut self) {
        let state = self.control.state();
        let is_own = |name: &str| self.control.known(name).is_some_and(|known| !known.is_of_relays);
        let here = state.streams.iter().filter(|stream| stream.source.up && is_own(&stream.name));
        let here: std::collections::BTreeSet<String> = here.map(|stream| stream.name.clone()).collect();
        let now = self.control.now();
        for gone in self.sources.difference(&here).cloned().collect::<Vec<_>>() {
            if let Some(id) = self.id(&gone) {
                self.node.handle_source(now, id, None);
            }
        }
        for come in here.difference(&self.sources).cloned().collect::<Vec<_>>() {
            if let Some(id) = self.id(&come) {
                self.node.handle_source(now, id, Some(0));
            }
        }
        self.sources = here;
    }

    pub(super) fn handle_feed_up(&mut self, stream: &str) {
        if let Some(feed) = self.feeds.get_mut(stream) {
            feed.is_up = true;
        }
    }

    pub(super) fn handle_feed_failed(&mut self, stream: &str, parent: &Parent) {
        // Another may have been taken meanwhile, or the same one again.
        if self.feeds.get(stream).is_some_and(|feed| feed.is_of(parent)) {
            self.node.handle_failed(self.control.now(), StreamId(number(stream)), parent.relay);
        }
    }

    /// Has a stream made that is not configured.
    pub(super) fn adopt(&mut self, stream: &str) {
        if self.adopted.len() >= ADOPTED_MAX || !self.adopting.insert(stream.to_owned()) {
            return;
        }
        let (control, inputs, stream) = (self.control.clone(), self.inputs.clone(), stream.to_owned());
        tokio::spawn(async move {
            let made = control.adopt(&stream, settings::of_relays()).await;
            if let Err(error) = &made {
                tracing::warn!(stream, %error, "the stream cannot be taken of another relay");
            }
            let _ = inputs.send(Input::Adopted { stream, is_there: made.is_ok() }).await;
        });
    }

    pub(super) fn handle_adopted(&mut self, stream: &str, is_there: bool) {
        self.adopting.remove(stream);
        if is_there {
            self.adopted.insert(stream.to_owned(), None);
            self.begin_feed(stream);
        } else {
            self.feeds.remove(stream);
        }
    }

    /// Looks for what is no longer needed.
    pub(super) fn sweep(&mut self, now: Time) {
        for change in self.wants.expire(now) {
            self.pass_on(&change);
        }
        self.tend_parents();
        self.forget_feeds(now);
        self.forget_adopted(now);
        let needed = |id: &StreamId, name: &String| {
            self.wants.best(name).is_some()
                || self.feeds.contains_key(name)
                || self.sources.contains(name)
                || self.node.demand(*id).is_some()
                || self.node.children(*id).next().is_some()
        };
        let names = std::mem::take(&mut self.names);
        self.names = names.into_iter().filter(|(id, name)| needed(id, name)).collect();
        if (now.as_millis() / 1000).is_multiple_of(10) {
            self.announce();
        }
    }

    /// Lets feeds go that nothing wants: those that another process began, and that have no parent to be lost.
    fn forget_feeds(&mut self, now: Time) {
        let Driver { feeds, node, .. } = self;
        feeds.retain(|stream, feed| {
            let is_wanted = node.demand(StreamId(number(stream))).is_some();
            let since = *feed.unwanted_since.get_or_insert(now);
            if is_wanted {
                feed.unwanted_since = None;
            }
            is_wanted || now.since(since) < UNWANTED_LINGER
        });
    }

    /// Lets streams go that are not configured, and that no receiver has wanted for a while.
    fn forget_adopted(&mut self, now: Time) {
        let mut gone = Vec::new();
        for (stream, since) in &mut self.adopted {
            let is_needed = self.feeds.contains_key(stream) || self.wants.best(stream).is_some();
            let idle = *since.get_or_insert(now);
            if is_needed {
                *since = None;
            } else if now.since(idle) >= ADOPTED_LINGER {
                gone.push(stream.clone());
            }
        }
        for stream in gone {
            self.adopted.remove(&stream);
            let control = self.control.clone();
            // A receiver that has joined meanwhile keeps it; then it is wanted, and taken again.
            tokio::spawn(async move { control.abandon(&stream).await });
        }
    }
}
