//! What a protocol is to the relay.

use std::fmt::Debug;
use std::pin::Pin;
use std::sync::Arc;

use outflow_config::{Config, StreamConfig};
use outflow_engine::message::ControlError;

use crate::control::Control;
use crate::pushes::PushOptions;

/// Work that somebody else runs: a listener, a source, a receiver that is sent to.
pub type Task<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Work that runs until the relay ends, or why it cannot begin.
pub type Started = Task<Result<Vec<Task<()>>, ControlError>>;

/// A protocol: its listeners, the sources that it pulls, the receivers that it sends to.
///
/// What packets go through is elsewhere: a publisher is handed to [`Control::publish`], a receiver to
/// [`Control::play`], whatever the protocol. Every method does nothing where it is not given.
pub trait Front: Debug + Send + Sync {
    /// Offers to other fronts what they serve for it (pages of HTTP, say), by [`Control::shared`]. Called once
    /// for each front before any is started.
    fn attach(&self, control: &Control) {
        let _ = control;
    }

    /// Begins what runs beside the streams. Called before configured streams are made.
    ///
    /// # Errors
    /// What keeps the relay from starting.
    fn start(&self, control: Control) -> Started {
        let _ = control;
        nothing()
    }

    /// Opens its listeners. Called when all configured streams are there.
    ///
    /// # Errors
    /// An address cannot be listened at.
    fn listen(&self, control: Control) -> Started {
        let _ = control;
        nothing()
    }

    /// Does as this configuration says from now on. Called at the start, and for each reload.
    ///
    /// # Errors
    /// The system refuses something; it says what.
    fn configure(&self, config: Arc<Config>) -> Task<Result<(), ControlError>> {
        let _ = config;
        Box::pin(std::future::ready(Ok(())))
    }

    /// URL schemes of the sources that it can pull.
    fn source_schemes(&self) -> &'static [&'static str] {
        &[]
    }

    /// Keeps a stream published with what its configured source sends, until aborted.
    fn pull(&self, control: Control, stream: String, config: StreamConfig) -> Task<()> {
        let _ = (control, stream, config);
        Box::pin(std::future::ready(()))
    }

    /// URL schemes of the receivers that it can send to.
    fn sink_schemes(&self) -> &'static [&'static str] {
        &[]
    }

    /// Keeps sending a stream to a configured receiver until the stream is gone, or until aborted.
    fn push(&self, control: Control, push: PushOptions) -> Task<()> {
        let _ = (control, push);
        Box::pin(std::future::ready(()))
    }
}

fn nothing() -> Started {
    Box::pin(std::future::ready(Ok(Vec::new())))
}

/// The fronts of a relay.
#[derive(Debug, Default)]
pub(crate) struct Fronts(Vec<Arc<dyn Front>>);

impl Fronts {
    pub(crate) fn new(fronts: Vec<Arc<dyn Front>>) -> Self {
        Fronts(fronts)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<dyn Front>> {
        self.0.iter()
    }

    /// The one that pulls sources of this scheme.
    ///
    /// # Errors
    /// None does.
    pub(crate) fn of_source(&self, scheme: &str) -> Result<&dyn Front, ControlError> {
        self.that(scheme, |front| front.source_schemes())
    }

    /// The one that sends to receivers of this scheme.
    ///
    /// # Errors
    /// None does.
    pub(crate) fn of_sink(&self, scheme: &str) -> Result<&dyn Front, ControlError> {
        self.that(scheme, |front| front.sink_schemes())
    }

    fn that(
        &self,
        scheme: &str,
        schemes: impl Fn(&dyn Front) -> &'static [&'static str],
    ) -> Result<&dyn Front, ControlError> {
        let mut all = self.0.iter().map(|front| &**front);
        all.find(|front| schemes(*front).contains(&scheme)).ok_or_else(|| {
            let text = format!("this program was built without '{scheme}://': build it with that feature");
            ControlError::Unsupported(text)
        })
    }
}
