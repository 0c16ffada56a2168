//! The end of a peer's checks.

use core::fmt;
use std::collections::VecDeque;

use arrayvec::ArrayVec;
use outflow_media::Time;
use sha2::{Digest as _, Sha256};
use stun_types::message::{IntegrityKey, TransactionId};

use crate::check::{Answer, Check, Kind, request};
use crate::limits::{ASK_AGAIN, ASK_TIMES, CONSENT, PATHS_MAX};
use crate::{Credentials, Path};

#[cfg(test)]
mod tests;

/// The relay's end of one peer's ways.
///
/// Every call may change what [`poll`](Self::poll) answers: it is to be asked after each, until it says to wait.
#[derive(Debug)]
pub struct Agent {
    secret: Secret,
    asked: u64,
    names: Names,
    /// Those from before a restart, until a path has been chosen with the new ones (RFC 8445, section 9).
    names_before: Option<Names>,
    /// Ways that the peer's checks have come by, oldest first.
    valid: ArrayVec<Path, PATHS_MAX>,
    selected: Option<Path>,
    /// The peer has shown by more than checks that it is at the path that is selected.
    is_secure: bool,
    asking: Option<Asking>,
    /// When it was heard of last.
    heard: Time,
    ended: bool,
    // bounded: a call adds four at most, and all are taken out before the next.
    outputs: VecDeque<Output>,
}

/// A peer that has come, for an [`Agent`] that goes on with it elsewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Saved {
    /// The own name and password.
    pub ours: Credentials,
    /// The peer's.
    pub theirs: Credentials,
    /// Where media goes.
    pub selected: Path,
    /// When it was heard of last.
    pub heard: Time,
}

/// Bytes that cannot be guessed: ids of own requests come of them.
struct Secret([u8; 32]);

/// What both ends are called, and by what it is known.
struct Names {
    ours: Credentials,
    key: IntegrityKey,
    theirs: Credentials,
}

/// The peer is asked whether it wants media another way.
#[derive(Debug, Clone, Copy)]
struct Asking {
    path: Path,
    transaction: TransactionId,
    again: Time,
    times: u32,
}

/// What an [`Agent`] wants done, or tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Output {
    /// A datagram is to be sent.
    Send(Path, Vec<u8>),
    /// The peer has been heard there: other datagrams from there are for it.
    Valid(Path),
    /// They are not any more.
    Invalid(Path),
    /// Media goes there from now on.
    Selected(Path),
    /// The peer is gone. The last output.
    Ended(End),
    /// Nothing more, until [`Agent::handle_timeout`] is called at this time, for this reason.
    Wait(Time, Wake),
    /// Nothing more: the peer is gone.
    Nothing,
}

/// What is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Wake {
    /// The peer counts as gone, if nothing is heard of it.
    Consent,
    /// The peer is asked again whether it wants media another way.
    Ask,
}

/// Why a peer counts as gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// It has never been heard.
    NeverCame,
    /// It has not said for too long that it wants to go on (RFC 7675).
    Silent,
}

/// Why a message was passed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ignored {
    /// It is for another relay, or from another peer.
    OtherNames,
    /// It is not signed with what the names are known by.
    Unsigned,
    /// Nothing was asked that it answers.
    NotAsked,
    /// It asks for nothing.
    Indication,
}

impl Agent {
    /// The end of a peer that is told `ours` and has said `theirs`. `secret` is 32 bytes that cannot be guessed.
    pub fn new(now: Time, secret: [u8; 32], ours: Credentials, theirs: Credentials) -> Self {
        Agent {
            secret: Secret(secret),
            asked: 0,
            names: Names::new(ours, theirs),
            names_before: None,
            valid: ArrayVec::new(),
            selected: None,
            is_secure: false,
            asking: None,
            heard: now,
            ended: false,
            outputs: VecDeque::new(),
        }
    }

    /// What another agent needs to go on with the peer; none before that has said where media goes, and while it restarts.
    pub fn save(&self) -> Option<Saved> {
        let selected = self.selected.filter(|_| self.names_before.is_none() && !self.ended)?;
        let Names { ours, theirs, .. } = &self.names;
        Some(Saved { ours: ours.clone(), theirs: theirs.clone(), selected, heard: self.heard })
    }

    /// Goes on with a peer. Other paths than the one in use are found again by its checks. `secret` is 32 new bytes that
    /// cannot be guessed.
    pub fn resume(secret: [u8; 32], saved: Saved) -> Self {
        let Saved { ours, theirs, selected, heard } = saved;
        let mut agent = Agent::new(heard, secret, ours, theirs);
        agent.select(selected);
        agent.is_secure = true;
        agent
    }

    /// Both ends have other names from now on; what is selected stays until the peer says which path it wants
    /// (RFC 8445, section 9).
    pub fn restart(&mut self, ours: Credentials, theirs: Credentials) {
        let before = core::mem::replace(&mut self.names, Names::new(ours, theirs));
        // Those from before an earlier restart, whose end did not come, are forgotten.
        self.names_before = Some(before);
        self.asking = None;
    }

    /// Media goes there; none as long as the peer has not said which path it wants.
    pub fn selected(&self) -> Option<Path> {
        self.selected
    }

    /// Whether the peer has been heard there, so that other datagrams from there are for it.
    pub fn is_valid(&self, path: Path) -> bool {
        self.valid.contains(&path)
    }

    /// The names by which requests are for this peer: now, and before a restart that is not over.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let before = self.names_before.as_ref().map(|names| names.ours.ufrag.as_str());
        core::iter::once(self.names.ours.ufrag.as_str()).chain(before)
    }

    /// A message came.
    ///
    /// # Errors
    /// Why it was passed over.
    pub fn handle(&mut self, now: Time, path: Path, check: &Check<'_>) -> Result<(), Ignored> {
        match check.kind() {
            Kind::Request => self.handle_request(now, path, check),
            Kind::Success | Kind::Error => self.handle_answer(now, path, check),
            Kind::Indication => Err(Ignored::Indication),
        }
    }

    /// Something came by this path that only the peer can have sent: by DTLS, or SRTCP. That is as good as a check
    /// (RFC 7675, section 4), and where media goes to is not changed any more by checks alone.
    pub fn handle_proof(&mut self, now: Time, path: Path) {
        if self.selected == Some(path) {
            self.is_secure = true;
        }
        if self.valid.contains(&path) {
            self.heard = now;
        }
    }

    /// A path is no more: a connection was closed.
    pub fn handle_closed(&mut self, path: Path) {
        self.valid.retain(|valid| *valid != path);
        self.selected = self.selected.filter(|selected| *selected != path);
        self.asking = self.asking.filter(|asking| asking.path != path);
    }

    /// The time that [`Output::Wait`] said has come.
    pub fn handle_timeout(&mut self, now: Time) {
        if now >= self.heard + CONSENT && !self.ended {
            self.ended = true;
            self.asking = None;
            let why = if self.valid.is_empty() { End::NeverCame } else { End::Silent };
            self.tell(Output::Ended(why));
        }
        match self.asking {
            Some(asking) if now >= asking.again && asking.times < ASK_TIMES => self.ask(now, asking),
            Some(asking) if now >= asking.again => self.asking = None,
            _ => {}
        }
    }

    /// What is next.
    pub fn poll(&mut self) -> Output {
        if let Some(output) = self.outputs.pop_front() {
            return output;
        }
        let over = (!self.ended).then(|| (self.heard + CONSENT, Wake::Consent));
        let again = self.asking.map(|asking| (asking.again, Wake::Ask));
        over.into_iter().chain(again).min().map_or(Output::Nothing, |(at, why)| Output::Wait(at, why))
    }

    fn handle_request(&mut self, now: Time, path: Path, check: &Check<'_>) -> Result<(), Ignored> {
        let (ours, theirs) = check.names().ok_or(Ignored::OtherNames)?;
        let is_of = |names: &&Names| names.ours.ufrag == ours && names.theirs.ufrag == theirs;
        let now_or_before = core::iter::once(&self.names).chain(&self.names_before);
        let names = now_or_before.into_iter().find(is_of).ok_or(Ignored::OtherNames)?;
        if !check.is_signed_by(&names.key) {
            return Err(Ignored::Unsigned);
        }
        let is_new = names.ours == self.names.ours;
        let answer = match check.answer(path.peer, &names.key) {
            Answer::Accepted(answer) => answer,
            Answer::Refused(answer) => {
                self.tell(Output::Send(path, answer));
                return Ok(());
            }
        };
        self.tell(Output::Send(path, answer));
        if !self.ended {
            self.heard = now;
            self.keep(path);
            if check.nominates() && is_new {
                self.names_before = None;
                self.nominate(now, path);
            }
        }
        Ok(())
    }

    /// The latest path that the peer wants is the one: it may not be the one that it would prefer (RFC 8445, section
    /// 8.1.1, ends that nominate as they go).
    fn nominate(&mut self, now: Time, path: Path) {
        if self.selected == Some(path) {
            self.asking = None;
        } else if !self.is_secure {
            self.select(path);
        } else if self.asking.is_none_or(|asking| asking.path != path) {
            // A peer can say in a datagram that it is where it is not, and have all its media sent there.
            self.asked += 1;
            let mut hash = Sha256::new_with_prefix(self.secret.0);
            hash.update(self.asked.to_be_bytes());
            let id = hash.finalize().iter().take(12).fold(0_u128, |id, byte| id << 8 | u128::from(*byte));
            self.ask(now, Asking { path, transaction: id.into(), again: now, times: 0 });
        }
    }

    fn handle_answer(&mut self, now: Time, path: Path, check: &Check<'_>) -> Result<(), Ignored> {
        let asked = |asking: &Asking| asking.path == path && asking.transaction == check.transaction();
        let asking = self.asking.filter(asked).ok_or(Ignored::NotAsked)?;
        if !check.is_signed_by(&self.names.theirs.key()) {
            return Err(Ignored::Unsigned);
        }
        self.asking = None;
        if check.kind() == Kind::Success {
            self.heard = now;
            self.select(asking.path);
        }
        Ok(())
    }

    fn ask(&mut self, now: Time, asking: Asking) {
        /// Of one that is learned from a check (RFC 8445, section 7.1.1); a peer that is asked makes nothing of it.
        const PRIORITY: u32 = 110 << 24 | 0xffff << 8 | 255;
        let wait = ASK_AGAIN.saturating_mul(1 << asking.times);
        let user = format!("{}:{}", self.names.theirs.ufrag, self.names.ours.ufrag);
        let message = request(asking.transaction, &user, PRIORITY, &self.names.theirs.key());
        self.tell(Output::Send(asking.path, message));
        self.asking = Some(Asking { again: now + wait, times: asking.times + 1, ..asking });
    }

    fn select(&mut self, path: Path) {
        self.keep(path);
        self.selected = Some(path);
        self.tell(Output::Selected(path));
    }

    /// Knows a path, and forgets the oldest one for it that is not in use.
    fn keep(&mut self, path: Path) {
        if self.valid.contains(&path) {
            return;
        }
        if self.valid.is_full() {
            let in_use = |path: &Path| {
                self.selected == Some(*path) || self.asking.is_some_and(|asking| asking.path == *path)
            };
            if let Some(place) = self.valid.iter().position(|path| !in_use(path)) {
                let old = self.valid.remove(place);
                self.tell(Output::Invalid(old));
            }
        }
        if self.valid.try_push(path).is_ok() {
            self.tell(Output::Valid(path));
        }
    }

    fn tell(&mut self, output: Output) {
        self.outputs.push_back(output);
    }
}

impl Names {
    fn new(ours: Credentials, theirs: Credentials) -> Self {
        Names { key: ours.key(), ours, theirs }
    }
}

impl fmt::Debug for Names {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Names { ours, theirs, key: _ } = self;
        f.debug_struct("Names").field("ours", ours).field("theirs", theirs).finish_non_exhaustive()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}
