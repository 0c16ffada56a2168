//! What peers were let in for: kept by receiver and by publisher, which end when it holds no longer.

use std::sync::Arc;

use outflow_door::limits::GRANTS_LOOK_EVERY;
use outflow_door::{Grant, Look, Refused};
use outflow_engine::message::ControlError;
use tokio::time::MissedTickBehavior;

use crate::control::Control;

/// A stream that is to be played or published: by a peer that the door has let in, or by the relay itself.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    pub(crate) stream: &'a str,
    pub(crate) grant: Option<&'a Grant>,
}

impl<'a> From<&'a Grant> for Wanted<'a> {
    fn from(grant: &'a Grant) -> Self {
        Wanted { stream: grant.stream(), grant: Some(grant) }
    }
}

/// By the relay itself: what its configuration, or an operator, says.
impl<'a> From<&'a str> for Wanted<'a> {
    fn from(stream: &'a str) -> Self {
        Wanted { stream, grant: None }
    }
}

impl<'a> From<&'a String> for Wanted<'a> {
    fn from(stream: &'a String) -> Self {
        Wanted::from(stream.as_str())
    }
}

impl Wanted<'_> {
    /// What the token is called that lets a peer in, if that has a name.
    pub(crate) fn token(&self) -> Option<&str> {
        self.grant.and_then(Grant::name)
    }

    /// Whether it may still be had, to be asked once it is written down: what changes later is seen there.
    pub(crate) fn check(&self, control: &Control) -> Result<(), ControlError> {
        match self.grant {
            Some(grant) if !control.door().holds(grant) => Err(Refused::Revoked.into()),
            _ => Ok(()),
        }
    }
}

/// Ends what was granted and holds no longer.
pub(crate) async fn watch(control: Control) {
    let (mut look, mut lingering) = (Look::default(), false);
    let mut ticks = tokio::time::interval(GRANTS_LOOK_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let door = Arc::clone(control.door());
        if door.may_have_lapsed(&mut look) || lingering {
            let tell = |owner, command| control.workers().tell(&owner, command);
            let revoked = control.registry().revoke(|grant| door.holds(grant), tell);
            door.count_revoked(revoked.sessions);
            lingering = revoked.lingering;
        }
    }
}
