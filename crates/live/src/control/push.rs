//! Receivers that are sent to without their asking: from the configuration or through the API.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use outflow_config::{SinkProtocol, SinkUrl};
use outflow_relay::{Carriage, Priority, Timing};
use tokio::task::AbortHandle;

use super::{CloseReason, Control, ControlError, Playing, PushRoute};

/// How long to wait before trying again what the system refused.
const RETRY: Duration = Duration::from_secs(1);

/// A receiver to send to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PushOptions {
    /// The stream that it gets.
    pub stream: String,
    /// Where it is, and what goes there.
    pub to: SinkUrl,
    /// What it is called; unique among those of the relay.
    pub name: String,
    /// Its class, if it is not the stream's own.
    pub priority: Option<Priority>,
    /// When its packets go, if not as the stream says.
    pub timing: Option<Timing>,
}

/// The tasks that keep such receivers, by name.
#[derive(Debug, Default)]
pub(crate) struct Pushes {
    tasks: Mutex<BTreeMap<String, (String, AbortHandle)>>,
}

impl Pushes {
    fn tasks(&self) -> MutexGuard<'_, BTreeMap<String, (String, AbortHandle)>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Control {
    /// Begins to send to a receiver, and goes on until [`Control::remove_push`]. Returns its number.
    ///
    /// # Errors
    /// Unknown stream, the name is taken, a limit is reached, or the system refuses the socket.
    pub async fn add_push(&self, options: PushOptions) -> Result<super::ReceiverId, ControlError> {
        if self.pushes().tasks().contains_key(&options.name) {
            return Err(ControlError::NameTaken(options.name));
        }
        let playing = self.open_push(&options).await?;
        let id = playing.id();
        let (name, stream) = (options.name.clone(), options.stream.clone());
        let task = tokio::spawn(keep(self.clone(), options, playing));
        self.pushes().tasks().insert(name, (stream, task.abort_handle()));
        Ok(id)
    }

    /// Ends a receiver that was added by [`Control::add_push`], if it is one of `stream`.
    ///
    /// # Errors
    /// There is none of that name.
    pub fn remove_push(&self, stream: &str, name: &str) -> Result<(), ControlError> {
        let mut tasks = self.pushes().tasks();
        match tasks.remove(name) {
            Some((of, task)) if of == stream => {
                task.abort();
                Ok(())
            }
            Some(other) => {
                tasks.insert(name.to_owned(), other);
                Err(ControlError::UnknownSink(name.to_owned(), stream.to_owned()))
            }
            None => Err(ControlError::UnknownSink(name.to_owned(), stream.to_owned())),
        }
    }

    async fn open_push(&self, options: &PushOptions) -> Result<Playing, ControlError> {
        let carriage = match options.to.protocol {
            SinkProtocol::Udp => Carriage::Ts,
            SinkProtocol::Rtp => Carriage::Rtp,
        };
        let SinkUrl { to, ttl, interface, .. } = options.to.clone();
        let priority = options.priority.unwrap_or_else(|| self.stream_priority(&options.stream));
        let timing = options.timing.unwrap_or_else(|| self.stream_timing(&options.stream));
        let route = PushRoute { to, ttl, interface };
        self.push(&options.stream, (carriage, route), (priority, timing), Some(options.name.clone())).await
    }
}

/// Keeps a receiver at its stream, whatever format the source comes back with.
async fn keep(control: Control, options: PushOptions, mut playing: Playing) {
    loop {
        let reason = playing.closed().await;
        drop(playing);
        if matches!(reason, CloseReason::StreamRemoved | CloseReason::Removed | CloseReason::ShuttingDown) {
            break;
        }
        playing = loop {
            match control.open_push(&options).await {
                Ok(playing) => break playing,
                Err(ControlError::UnknownStream(_) | ControlError::ShuttingDown) => return,
                Err(error) => {
                    tracing::warn!(name = options.name, %error, "a receiver cannot be sent to; trying again");
                    tokio::time::sleep(RETRY).await;
                }
            }
        };
    }
    control.pushes().tasks().remove(&options.name);
}
