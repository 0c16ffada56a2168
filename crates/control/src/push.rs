//! Receivers that are sent to without their asking: from the configuration or through the API.

use std::time::Duration;

use outflow_config::{DatagramSink, SinkProtocol};
use outflow_engine::message::{CloseReason, ControlError, Delivery, Destination, Ends, ReceiverId};
use outflow_packet::Level;
use outflow_relay::Encapsulation;
use tokio::sync::{oneshot, watch};

use crate::control::Control;
use crate::pushes::{Claim, PushOptions};
use crate::receiver::Playing;

/// How long to wait before trying again what the system refused.
const RETRY: Duration = Duration::from_secs(1);

impl Control {
    /// Begins to send to a receiver, and goes on until [`Control::remove_push`]. Returns its number; a receiver
    /// that is connected to first has none before that.
    ///
    /// # Errors
    /// Unknown stream, the name or the address is taken, a limit is reached, or the system refuses the
    /// socket.
    pub async fn add_push(&self, options: PushOptions) -> Result<Option<ReceiverId>, ControlError> {
        self.entry(&options.stream)?;
        let claim = Claim::new(self.pushes(), &options)?;
        let Some(sink) = options.to.datagrams().cloned() else {
            let front = self.fronts().of_sink(options.to.scheme())?;
            claim.keep(tokio::spawn(front.push(self.clone(), options.clone())).abort_handle());
            return Ok(None);
        };
        let levels = claim.levels();
        let playing = open(self, &options, &sink).await?;
        let id = playing.id();
        let kept = Kept { control: self.clone(), options: options.clone(), sink, levels };
        claim.keep(tokio::spawn(kept.run(playing)).abort_handle());
        Ok(Some(id))
    }

    /// Sends to a receiver until its stream goes or has another format, or the receiver is removed, and says
    /// as soon as that has begun. Nothing else is sent there meanwhile, nor has another one its name. `kept` is what the
    /// process before had for it ([`Upgrade::named`](crate::Upgrade::named)).
    pub async fn push_once(
        &self,
        options: PushOptions,
        kept: Option<Playing>,
        begun: oneshot::Sender<Result<(), ControlError>>,
    ) {
        let Some(sink) = options.to.datagrams().cloned() else { return };
        let claim = match Claim::new(self.pushes(), &options) {
            Ok(claim) => claim,
            // The caller that waited may be gone.
            Err(error) => return drop(begun.send(Err(error))),
        };
        let (levels, removed) = (claim.levels(), claim.levels());
        let playing = match kept {
            Some(playing) => Ok(playing),
            None => open(self, &options, &sink).await,
        };
        match playing {
            Ok(mut playing) => {
                let _ = begun.send(Ok(()));
                let (control, options) = (self.clone(), options.clone());
                let mut kept = Kept { control, options, sink, levels };
                tokio::select! {
                    _ = kept.until_closed(&mut playing) => (),
                    () = gone(removed) => (),
                }
            }
            Err(error) => drop(begun.send(Err(error))),
        }
    }

    /// Ends a receiver that was added by [`Control::add_push`], if it is one of `stream`.
    ///
    /// # Errors
    /// There is none of that name.
    pub fn remove_push(&self, stream: &str, name: &str) -> Result<(), ControlError> {
        self.pushes().remove(stream, name)
    }

    /// Lets a receiver that was added by [`Control::add_push`] have another quality: less from the next frame
    /// on, and more from where that can be decoded. The last level, if there is none so low.
    ///
    /// # Errors
    /// There is none of that name.
    pub fn set_push_level(&self, stream: &str, name: &str, level: Level) -> Result<(), ControlError> {
        self.pushes().set_level(stream, name, level)
    }

    /// Whether a receiver of that name is sent to, or is about to be.
    pub fn has_push(&self, stream: &str, name: &str) -> bool {
        self.pushes().has(stream, name)
    }
}

/// Begins to send to a receiver of datagrams.
async fn open(
    control: &Control,
    options: &PushOptions,
    sink: &DatagramSink,
) -> Result<Playing, ControlError> {
    let encapsulation = match sink.protocol {
        SinkProtocol::Udp => Encapsulation::Ts,
        SinkProtocol::Rtp => Encapsulation::Rtp,
    };
    let DatagramSink { to, ttl, interface, loops, .. } = sink.clone();
    let destination = Destination { to, from: options.from, ttl, interface, loops };
    let delivery = Delivery::Datagrams(encapsulation, Ends::Configured(destination));
    let playing = control.play(&options.stream, options.receiver.clone(), delivery).await?;
    playing.start(None);
    Ok(playing)
}

/// Waits until a receiver was removed.
async fn gone(levels: Option<watch::Receiver<Level>>) {
    if let Some(mut levels) = levels {
        while levels.changed().await.is_ok() {}
    }
}

/// What keeps a receiver at its stream, whatever format the source comes back with.
struct Kept {
    control: Control,
    options: PushOptions,
    sink: DatagramSink,
    levels: Option<watch::Receiver<Level>>,
}

impl Kept {
    async fn run(mut self, mut playing: Playing) {
        loop {
            let reason = self.until_closed(&mut playing).await;
            drop(playing);
            if matches!(reason, CloseReason::StreamRemoved | CloseReason::Removed | CloseReason::ShuttingDown)
            {
                break;
            }
            playing = loop {
                match open(&self.control, &self.options, &self.sink).await {
                    Ok(playing) => break playing,
                    Err(
                        ControlError::UnknownStream(_)
                        | ControlError::StreamGone
                        | ControlError::ShuttingDown,
                    ) => return,
                    Err(error) => {
                        let name = self.options.name();
                        tracing::warn!(name, %error, "a receiver cannot be sent to; trying again");
                        tokio::time::sleep(RETRY).await;
                    }
                }
            };
        }
        self.control.pushes().ended(self.options.name());
    }

    /// Waits for the end, changing the level meanwhile.
    async fn until_closed(&mut self, playing: &mut Playing) -> CloseReason {
        loop {
            let Some(levels) = &mut self.levels else { return playing.closed().await };
            tokio::select! {
                reason = playing.closed() => return reason,
                changed = levels.changed() => match changed {
                    Ok(()) => {
                        self.options.receiver.selection.level = *levels.borrow_and_update();
                        self.set_level(playing).await;
                    }
                    // It was removed, which ends this, too.
                    Err(_) => self.levels = None,
                },
            }
        }
    }

    async fn set_level(&self, playing: &Playing) {
        let state = self.control.state();
        let stream = state.stream(&self.options.stream);
        let last = stream.and_then(|stream| Level::new(u8::try_from(stream.levels.len()).ok()?));
        let wanted = self.options.receiver.selection.level;
        let level = last.map_or(wanted, |last| wanted.min(last));
        if let Err(error) = self.control.set_level(playing.id(), level).await {
            let name = self.options.name();
            tracing::warn!(name, %level, %error, "a receiver keeps the level that it has");
        }
    }
}
