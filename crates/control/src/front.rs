//! What a protocol is to the relay.

use std::fmt::Debug;
use std::sync::Arc;

use outflow_config::{Config, Protocol, Protocols, Scheme, StreamConfig};
use outflow_engine::message::ControlError;
use outflow_graph::{Element, Settings, Unfit};

use crate::control::Control;
use crate::pushes::PushOptions;
use crate::task::Task;
use crate::upgrade::Part;

/// Work that runs until the relay ends, or why it cannot begin.
pub type Started = Task<Result<Vec<Task<()>>, ControlError>>;

/// Makes an element of its settings, or says what keeps it from being made, and what to do.
pub type MakeElement = fn(&Settings) -> Result<Box<dyn Element>, Unfit>;

/// A protocol: its listeners, the sources that it pulls, the receivers that it sends to.
///
/// What packets go through is elsewhere: a publisher is handed to [`Control::publish`], a receiver to
/// [`Control::play`], whatever the protocol. Every method does nothing where it is not given.
pub trait Front: Debug + Send + Sync {
    /// What it adds to the configuration: its listeners, tables and keys, and the addresses that it pulls and sends
    /// to.
    fn protocol(&self) -> Protocol {
        Protocol::default()
    }

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

    /// Opens its listeners. Called when all configured streams and receivers are there.
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

    /// Keeps a stream published with what its configured source sends, until aborted.
    fn pull(&self, control: Control, stream: String, config: StreamConfig) -> Task<()> {
        let _ = (control, stream, config);
        Box::pin(std::future::ready(()))
    }

    /// Why another process could not begin with what this configuration says while this one runs; none if it could.
    fn stays(&self, config: &Config) -> Option<&'static str> {
        let _ = config;
        None
    }

    /// What the parts are called that its tasks give of their connections for an upgrade, in the order in which they are
    /// taken.
    fn parts(&self) -> &'static [&'static str] {
        &[]
    }

    /// Goes on with connections of the process before, those of one name at once; those that bring media come first.
    /// Workers serve other receivers meanwhile, and these as soon as they are told how they are reached
    /// ([`Playing::start`](crate::Playing::start)). What cannot go on is dropped, which ends it.
    fn take(&self, control: Control, name: &'static str, parts: Vec<Part>) {
        let _ = (control, name, parts);
    }

    /// What makes elements of this kind, which the graph of services knows by name alone; none if this front does
    /// not. It is called aside, and may take long.
    fn maker(&self, kind: &str) -> Option<MakeElement> {
        let _ = kind;
        None
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

/// What these fronts add to the configuration.
pub fn protocols(fronts: &[Arc<dyn Front>]) -> Protocols {
    fronts.iter().map(|front| front.protocol()).collect()
}

/// The fronts of a relay.
#[derive(Debug, Default)]
pub(crate) struct Fronts {
    all: Vec<Arc<dyn Front>>,
    protocols: Protocols,
}

impl Fronts {
    pub(crate) fn new(fronts: Vec<Arc<dyn Front>>) -> Self {
        Fronts { protocols: protocols(&fronts), all: fronts }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<dyn Front>> {
        self.all.iter()
    }

    pub(crate) fn protocols(&self) -> &Protocols {
        &self.protocols
    }

    /// What makes elements of this kind, if a front does.
    pub(crate) fn maker(&self, kind: &str) -> Option<MakeElement> {
        self.all.iter().find_map(|front| front.maker(kind))
    }

    /// The one that pulls sources of this scheme.
    ///
    /// # Errors
    /// None does.
    pub(crate) fn of_source(&self, scheme: &str) -> Result<&dyn Front, ControlError> {
        self.that(scheme, |protocol| protocol.sources)
    }

    /// The one that sends to receivers of this scheme.
    ///
    /// # Errors
    /// None does.
    pub(crate) fn of_sink(&self, scheme: &str) -> Result<&dyn Front, ControlError> {
        self.that(scheme, |protocol| protocol.sinks)
    }

    fn that(
        &self,
        scheme: &str,
        schemes: impl Fn(&Protocol) -> &'static [Scheme],
    ) -> Result<&dyn Front, ControlError> {
        let mut all = self.all.iter().map(|front| &**front);
        let has = |front: &dyn Front| schemes(&front.protocol()).iter().any(|known| known.name == scheme);
        all.find(|front| has(*front)).ok_or_else(|| {
            let text = format!("this program was built without '{scheme}://': build it with that feature");
            ControlError::Unsupported(text)
        })
    }
}
