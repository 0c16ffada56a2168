//! What can be asked of receivers that are there, by their numbers and by the names of their sessions.

use std::collections::BTreeMap;
use std::net::IpAddr;

use outflow_engine::message::{
    CloseReason, Command, ControlError, ReceiverId, ServicesCommand, SessionState,
};
use outflow_graph::View;
use outflow_packet::Level;
use outflow_relay::Priority;

use crate::control::Control;
use crate::session::SessionToken;
use crate::workers::Owner;

impl Control {
    /// Ends a receiver.
    ///
    /// # Errors
    /// There is no such receiver.
    pub fn remove_receiver(&self, receiver: ReceiverId) -> Result<(), ControlError> {
        let owner = self.receiver_owner(receiver)?;
        self.workers()
            .tell(&owner, Command::Leave { stream: owner.stream, receiver, reason: CloseReason::Removed });
        Ok(())
    }

    /// Lets a receiver see something else of images from now on.
    ///
    /// # Errors
    /// There is no such receiver, or nothing like that to be seen; it sees what it saw then.
    pub async fn set_view(&self, receiver: ReceiverId, view: View) -> Result<(), ControlError> {
        let owner = self.receiver_owner(receiver)?;
        let stream = owner.stream;
        let command = |reply| Command::Services(ServicesCommand::View { stream, receiver, view, reply });
        self.workers().ask(&owner, command).await
    }

    /// Lets a receiver have another quality from now on: less from the next frame on, more from where that
    /// can be decoded.
    ///
    /// # Errors
    /// There is no such receiver, or no such level; it keeps the one it has.
    pub async fn set_level(&self, receiver: ReceiverId, level: Level) -> Result<(), ControlError> {
        let owner = self.receiver_owner(receiver)?;
        let stream = owner.stream;
        let command = |reply| Command::Services(ServicesCommand::Level { stream, receiver, level, reply });
        self.workers().ask(&owner, command).await
    }

    /// Changes a receiver's class; nothing it is owed gets lost.
    ///
    /// # Errors
    /// There is no such receiver.
    pub fn set_priority(&self, receiver: ReceiverId, priority: Priority) -> Result<(), ControlError> {
        let owner = self.receiver_owner(receiver)?;
        self.workers().tell(&owner, Command::SetPriority { stream: owner.stream, receiver, priority });
        Ok(())
    }

    /// Names the session of a receiver, with which it ends.
    ///
    /// # Errors
    /// The system has no randomness.
    pub fn open_session(&self, receiver: ReceiverId) -> Result<SessionToken, ControlError> {
        let token = SessionToken::new()?;
        self.registry().open_session(receiver, token);
        Ok(token)
    }

    /// What a session gets, after it was given the level that it asks for, if it asks for one.
    ///
    /// # Errors
    /// There is no such session or level, or it asks too often; it keeps the level it has.
    pub async fn ask_session(
        &self,
        token: SessionToken,
        level: Option<u8>,
    ) -> Result<SessionState, ControlError> {
        let receiver = self.registry().session(token).ok_or(ControlError::UnknownSession)?;
        let owner = self.registry().receiver(receiver).ok_or(ControlError::UnknownSession)?;
        let stream = owner.stream;
        let command = |reply| Command::Services(ServicesCommand::Session { stream, receiver, level, reply });
        self.workers().ask(&owner, command).await
    }

    /// The name of the stream that a receiver gets, if it is there.
    pub fn stream_of(&self, receiver: ReceiverId) -> Option<String> {
        self.registry().stream_of(receiver)
    }

    fn receiver_owner(&self, receiver: ReceiverId) -> Result<Owner, ControlError> {
        self.registry().receiver(receiver).ok_or(ControlError::UnknownReceiver(receiver))
    }
}

/// Whether the hook has let a session in for this address and token: so its player may ask about it.
pub fn is_session_of(control: &Control, session: SessionToken, peer: IpAddr, token: Option<&str>) -> bool {
    let receiver = control.registry().session(session);
    receiver.is_some_and(|receiver| control.registry().was_asked_for(receiver, peer, token))
}

/// How many receivers and publishers each token with a name has let in that are there.
pub fn sessions_of_tokens(control: &Control) -> BTreeMap<String, u64> {
    control.registry().sessions_of_tokens()
}
