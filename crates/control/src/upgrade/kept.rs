//! What a new process has of the one before, until its owners come for it.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;

use outflow_engine::message::{Receiver, ReceiverId, SourceId, SourceSocket};

use super::{Part, Upgrade};
use crate::control::Control;
use crate::publisher::Publisher;
use crate::receiver::Playing;
use crate::turn::Turn;

/// What is there.
#[derive(Debug, Default)]
pub(super) struct Kept {
    receivers: BTreeMap<ReceiverId, KeptReceiver>,
    turns: BTreeMap<SourceId, KeptTurn>,
    /// Configured sources that have gone on, by stream.
    configured: BTreeMap<String, Publisher>,
    /// Sources that are pulled, by stream.
    pulled: BTreeMap<String, Part>,
    peers: BTreeMap<ReceiverId, Vec<u8>>,
    /// Which worker owned which stream.
    pub(super) places: BTreeMap<String, usize>,
    /// Streams that are not in the file.
    pub(super) adopted: Vec<String>,
}

/// A receiver that goes on.
#[derive(Debug)]
pub(super) struct KeptReceiver {
    playing: Playing,
    stream: String,
    /// Its name, if it is a configured one, and where it is.
    name: Option<String>,
    to: String,
    /// Whether its worker has all of it.
    is_alone: bool,
}

/// A turn that goes on.
#[derive(Debug)]
pub(super) struct KeptTurn {
    pub(super) stream: String,
    pub(super) turn: Turn,
    /// The sockets that its worker reads.
    pub(super) sockets: Vec<SourceSocket>,
    /// What its packets come through from the old process.
    pub(super) pipe: Option<OwnedFd>,
    /// Whether the stream's source is what publishers bring.
    pub(super) is_pushed: bool,
}

impl KeptReceiver {
    /// One of which its worker has not said anything yet.
    pub(super) fn new(playing: Playing, stream: String) -> Self {
        KeptReceiver { playing, stream, name: None, to: String::new(), is_alone: false }
    }
}

impl KeptTurn {
    pub(super) fn open(self, control: &Control) -> Option<Publisher> {
        Publisher::go_on(control, &self.stream, &self.turn, self.sockets)
    }
}

impl Kept {
    pub(super) fn add_receiver(&mut self, receiver: KeptReceiver) {
        self.receivers.insert(receiver.playing.id(), receiver);
    }

    /// What its worker knows of a receiver: how it is called, where it is, and whether that is all of it.
    pub(super) fn know(
        &mut self,
        receiver: ReceiverId,
        (name, to): (Option<String>, String),
        is_alone: bool,
    ) {
        if let Some(kept) = self.receivers.get_mut(&receiver) {
            (kept.name, kept.to, kept.is_alone) = (name, to, is_alone);
        }
    }

    pub(super) fn add_turn(&mut self, turn: KeptTurn) {
        self.turns.insert(turn.turn.source, turn);
    }

    pub(super) fn add_peer(&mut self, receiver: ReceiverId, value: Vec<u8>) {
        self.peers.insert(receiver, value);
    }

    pub(super) fn take_playing(&mut self, receiver: ReceiverId) -> Option<Playing> {
        self.receivers.remove(&receiver).map(|kept| kept.playing)
    }

    /// A source that is pulled, which is that of its turn's stream.
    pub(super) fn add_pulled(&mut self, part: Part) {
        if let Some(turn) = part.turn.and_then(|turn| self.turns.get(&turn)) {
            self.pulled.insert(turn.stream.clone(), part);
        }
    }

    pub(super) fn take_pulled(&mut self, stream: &str) -> Option<Part> {
        self.pulled.remove(stream)
    }

    pub(super) fn take_turn(&mut self, source: SourceId) -> Option<KeptTurn> {
        self.turns.remove(&source)
    }

    pub(super) fn take_peer(&mut self, receiver: ReceiverId) -> Option<Vec<u8>> {
        self.peers.remove(&receiver)
    }

    /// Turns whose packets come from the old process.
    pub(super) fn take_pipes(&mut self) -> Vec<(SourceId, OwnedFd)> {
        let pipe = |(source, turn): (&SourceId, &mut KeptTurn)| Some((*source, turn.pipe.take()?));
        self.turns.iter_mut().filter_map(pipe).collect()
    }

    /// Turns of configured sources that workers read themselves.
    fn take_configured(&mut self) -> Vec<KeptTurn> {
        let is_configured = |turn: &KeptTurn| !turn.is_pushed && !turn.sockets.is_empty();
        let (configured, rest) =
            std::mem::take(&mut self.turns).into_iter().partition(|(_, t)| is_configured(t));
        self.turns = rest;
        BTreeMap::<_, KeptTurn>::into_values(configured).collect()
    }

    /// Receivers of which nothing else is needed, and where they are.
    fn take_alone(&mut self) -> Vec<(Playing, String)> {
        let all = std::mem::take(&mut self.receivers);
        let (alone, rest): (BTreeMap<_, _>, _) = all.into_iter().partition(|(_, kept)| kept.is_alone);
        self.receivers = rest;
        alone.into_values().map(|kept| (kept.playing, kept.to)).collect()
    }
}

impl Upgrade {
    /// A receiver of that name that the process before sent to goes on; it is there once.
    pub fn named(&self, stream: &str, receiver: &Receiver) -> Option<Playing> {
        let name = receiver.name.as_ref()?;
        let mut kept = self.kept();
        let mut all = kept.receivers.iter();
        let is_it = |kept: &KeptReceiver| {
            kept.name.as_ref() == Some(name) && kept.stream == stream && kept.to == receiver.address
        };
        let id = *all.find(|(_, kept)| is_it(kept))?.0;
        kept.take_playing(id)
    }

    /// A configured source goes on; it is there once.
    pub(crate) fn configured(&self, stream: &str) -> Option<Publisher> {
        self.kept().configured.remove(stream)
    }

    /// The worker that a stream was with.
    pub(crate) fn place(&self, stream: &str) -> Option<usize> {
        self.kept().places.get(stream).copied()
    }

    /// Configured sources that workers read themselves go on.
    pub(super) fn open_configured(&self, control: &Control) {
        let turns = self.kept().take_configured();
        for turn in turns {
            let stream = turn.stream.clone();
            if let Some(publisher) = turn.open(control) {
                self.kept().configured.insert(stream, publisher);
            }
        }
    }

    /// Receivers go on of which their workers have all.
    pub(super) fn keep_alone(&self, control: &Control) {
        let alone = self.kept().take_alone();
        for (mut playing, to) in alone {
            let peer = to.parse().ok().map(|to: std::net::SocketAddr| to.ip());
            let permit = peer.map(|peer| control.door().admit(peer));
            tokio::spawn(async move {
                playing.closed().await;
                drop(permit);
            });
        }
    }

    /// What nothing came for ends.
    pub(crate) fn let_go_of_the_rest(&self) {
        let rest = std::mem::take(&mut *self.kept());
        let (receivers, turns) = (rest.receivers.len(), rest.turns.len());
        if receivers + turns > 0 {
            tracing::warn!(
                receivers,
                turns,
                "these of the process before do not go on: nothing asks for them here"
            );
        }
        for turn in rest.turns.into_values() {
            tracing::info!(stream = turn.stream, peer = turn.turn.peer, "a publisher does not go on");
        }
    }
}
