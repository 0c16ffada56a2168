//! The upgrade without a gap: another process goes on with all that this one has, and peers do not notice.
//!
//! The old process starts the new one, lets it get ready, and says what does not change with media while it still
//! serves. Then it stands still, says all else ([`describe`], [`saved`]), and ends when the new one has it ([`give`]).
//! The new one goes on with that ([`take`]). Until the old one has said that the new one may go on, it can go on itself
//! as if nothing had been; from then on it never does.
//!
//! | what | how it goes on |
//! |---|---|
//! | streams, receivers, sources, as workers have them | values of theirs ([`outflow_engine::message::SavedWorker`]) |
//! | connections that tasks of fronts hold | each gives a [`Part`] to its own front ([`Member`], [`Front::take`]) |
//! | listeners | their descriptors; what connects meanwhile waits |
//! | what a library reads or encrypts | the old process goes on with it, and lives until that is over ([`pipe`]) |
//! | what a front carries to a socket that goes on | the same ([`Lingering`]) |

mod describe;
mod give;
mod kept;
mod lingering;
mod member;
mod part;
mod parts;
mod pipe;
mod recover;
mod recoveries;
mod saved;
mod take;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use outflow_engine::message::{ControlError, ReceiverId, SourceId};
use outflow_vital::Fatal;
use tokio::sync::watch;

pub(crate) use give::give;
use kept::Kept;
pub use lingering::Lingering;
pub use member::Member;
pub use part::Part;
use parts::Parts;
pub(crate) use recover::recover;
use recoveries::Recoveries;
pub(crate) use take::Old;

use crate::change::{Changed, ConfigChange};
use crate::control::Control;
use crate::publisher::Publisher;
use crate::receiver::Playing;

/// What parts are called of sources that are pulled ([`Upgrade::pulled`]).
pub const PULLED: &str = "pulled";

/// How often it is looked whether anything goes on through a process that has handed the relay over.
const LINGER_LOOK: Duration = Duration::from_millis(100);

/// What an upgrade did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Upgraded {
    /// The version that runs now.
    pub version: String,
    /// How long the relay stood still.
    pub gap: Duration,
}

/// Starts a new process, and lets that go on with the relay. This one ends then.
///
/// # Errors
/// Why it was not handed over: it goes on here as before.
pub async fn hand_over(control: &Control) -> Result<Upgraded, ControlError> {
    let Changed { lines, waited, .. } = control.change(ConfigChange::Upgrade).await?;
    Ok(Upgraded { version: lines.into_iter().next().unwrap_or_default(), gap: waited.unwrap_or_default() })
}

/// How often another process has gone on with the relay because something of it had ended.
pub fn recovered(control: &Control) -> u64 {
    control.shared::<Upgrade>().recoveries().count
}

/// What upgrades of a relay need of its parts.
#[derive(Debug, Default)]
pub struct Upgrade {
    parts: Arc<Parts>,
    kept: Mutex<Kept>,
    /// Where fronts listen, or the process before did: by protocol and address, a copy each.
    listeners: Mutex<BTreeMap<(String, SocketAddr), OwnedFd>>,
    /// The process that goes on with the relay, once one does; or that was to, and has ended instead.
    successor: watch::Sender<Option<Result<u32, Fatal>>>,
    /// What goes on through this process though another one has the relay.
    piped: Arc<AtomicUsize>,
    recoveries: Mutex<Recoveries>,
}

impl Upgrade {
    /// A task joins that holds a connection which could go on in another process. `front` is the one that goes on with
    /// it there ([`Front::parts`](crate::Front::parts)).
    pub fn join(&self, front: &'static str) -> Member {
        Member::new(front, &self.parts)
    }

    /// Something of a front's goes on through this process even if another one has the relay: this process lives until
    /// what is answered is dropped.
    pub fn lingering(&self) -> Lingering {
        Lingering::new(&self.piped)
    }

    /// A receiver of the process before goes on; it is there once.
    pub fn playing(&self, receiver: ReceiverId) -> Option<Playing> {
        self.kept().take_playing(receiver)
    }

    /// A source's turn of the process before goes on; it is there once.
    pub fn publisher(&self, control: &Control, source: SourceId) -> Option<Publisher> {
        let turn = self.kept().take_turn(source)?;
        turn.open(control)
    }

    /// A source of this stream that is pulled goes on: its turn, and what its task gave. It is there once.
    pub fn pulled(&self, control: &Control, stream: &str) -> Option<(Publisher, Part)> {
        let mut part = self.kept().take_pulled(stream)?;
        let publisher = self.publisher(control, part.turn.take()?)?;
        Some((publisher, part))
    }

    /// Streams that are not in the file, and that there are as the process before had them. They are told once.
    pub fn adopted(&self) -> Vec<String> {
        std::mem::take(&mut self.kept().adopted)
    }

    /// What a receiver's state machine has said of itself.
    pub fn peer(&self, receiver: ReceiverId) -> Option<Vec<u8>> {
        self.kept().take_peer(receiver)
    }

    /// The listener that the process before had there, if it had one.
    pub(crate) fn listener(&self, protocol: &str, at: SocketAddr) -> Option<OwnedFd> {
        self.listeners().remove(&(protocol.to_owned(), at))
    }

    /// A front listens there.
    pub(crate) fn listens(&self, protocol: &str, at: SocketAddr, copy: OwnedFd) {
        self.listeners().insert((protocol.to_owned(), at), copy);
    }

    /// Waits until another process has the relay, and says which.
    ///
    /// # Errors
    /// That process has ended before it could go on with it, and too late for this one to go on.
    pub(crate) async fn over(&self) -> Result<u32, Fatal> {
        let mut successor = self.successor.subscribe();
        loop {
            if let Some(successor) = &*successor.borrow_and_update() {
                return successor.clone();
            }
            // The sending end is held here.
            let _ = successor.changed().await;
        }
    }

    /// Waits until nothing goes on through this process any more, once another one has the relay.
    pub(crate) async fn lingers(&self, control: &Control) {
        while self.piped.load(Ordering::Relaxed) > 0 || control.registry().receivers() > 0 {
            tokio::time::sleep(LINGER_LOOK).await;
        }
    }

    /// How often another process has gone on with the relay because something had ended.
    fn recoveries(&self) -> Recoveries {
        *self.recoveries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set_recoveries(&self, recoveries: Recoveries) {
        *self.recoveries.lock().unwrap_or_else(PoisonError::into_inner) = recoveries;
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn listeners(&self) -> MutexGuard<'_, BTreeMap<(String, SocketAddr), OwnedFd>> {
        self.listeners.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
