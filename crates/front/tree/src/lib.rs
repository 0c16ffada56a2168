//! This relay's place in the trees of streams: a stream without a source here is taken from the nearest relay
//! that has it, at the best level that is wanted here, and let go when no receiver wants it any more.
//!
//! | module | what |
//! |---|---|
//! | `driver` | drives the state machine ([`outflow_routing::tree::Node`]), and whatever it asks for |
//! | `link`, `wire` | connections with other relays, and what is said there |
//! | `lookup` | which relays have a stream: parents, and the directory |
//! | `feed` | streams that come from another relay |
//! | `group` | those that come by multicast |
//! | `splice` | where packets of another parent go on from those of the one before |
//! | `wants` | what is wanted here |
//! | `view`, `survey` | what is shown of all this |

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the control plane owns time, tasks and I/O"
)]

mod driver;
mod feed;
mod group;
mod limits;
mod link;
mod lookup;
mod mark;
mod pages;
mod settings;
mod splice;
mod survey;
mod view;
mod wants;
pub mod wire;

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};

use outflow_api::{Page, Pages};
use outflow_config::Protocol;
use outflow_control::{Control, Front, Reach, Started, Task};
use outflow_directory::{Auth, Directory, Tls};
use outflow_door::{Permit, Right, query_value};
use outflow_engine::message::{ControlError, Demand};
use outflow_front_poc::{REFUSED, Resources};
use outflow_packet::Level;
use outflow_poc_socket::{Asking, PocSocket};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::{mpsc, oneshot};

use driver::Input;
pub use settings::{Place, TreeStreams, TreeTransport};
pub use view::{PeerView, RelayView, StreamView};

/// Trees of relays: `[tree]`, `source = "tree"`.
pub fn front() -> Arc<dyn Front> {
    Arc::new(Trees)
}

#[derive(Debug)]
struct Trees;

impl Front for Trees {
    fn protocol(&self) -> Protocol {
        settings::protocol()
    }

    fn attach(&self, control: &Control) {
        control.shared::<Pages>().add(Page { guarded: pages::guarded(), ..Page::default() });
        let asked = control.clone();
        let handler = move |asking: Asking, permit: Permit, query: &str| {
            let (control, token) = (asked.clone(), query_value(query, "token"));
            Box::pin(async move { talk(&control, asking, permit, token).await }) as Task<()>
        };
        control.shared::<Resources>().add(wire::RESOURCE, Arc::new(handler));
    }

    fn start(&self, control: Control) -> Started {
        Box::pin(async move {
            let settings = control.config().section::<settings::Tree>();
            let (Some(name), Some(address)) = (&settings.name, &settings.address) else {
                return Ok(Vec::new());
            };
            let Some(demands) = control.take_demands() else { return Ok(Vec::new()) };
            let (tree, driven) = Tree::start(&control, (name, address), demands).await?;
            control.set_reach(Arc::new(tree.clone()));
            // There is one tree.
            let _ = control.shared::<Attached>().0.set(tree);
            Ok(vec![Box::pin(driven) as Task<()>])
        })
    }
}

/// Where pages and connections find the relay's place in the tree; nothing without `[tree]`.
#[derive(Debug, Default)]
pub(crate) struct Attached(OnceLock<Tree>);

impl Attached {
    fn of(control: &Control) -> Option<Tree> {
        control.shared::<Attached>().0.get().cloned()
    }

    /// The whole tree of relays, as far as it can be seen from this one; nothing without `[tree]`.
    pub(crate) async fn survey(control: &Control) -> Vec<RelayView> {
        match Attached::of(control) {
            Some(tree) => tree.survey().await,
            None => Vec::new(),
        }
    }
}

/// Talks to another relay of the tree.
async fn talk(control: &Control, asking: Asking, permit: Permit, token: Option<String>) {
    let peer = asking.from();
    let denied =
        match (Attached::of(control), control.door().enter(Right::Relay, peer.ip(), token.as_deref())) {
            (None, _) => "this relay is none of a tree: it has no [tree]".to_owned(),
            (Some(_), Err(refused)) => refused.to_string(),
            (Some(tree), Ok(())) => match asking.answer(Some(&wire::flow())) {
                Ok(socket) => return tree.accept(socket, peer, permit).await,
                Err(error) => return tracing::info!(%peer, %error, "a relay has gone before it was answered"),
            },
        };
    tracing::info!(%peer, why = denied, "a relay is not admitted to the tree");
    asking.refuse(REFUSED, &denied);
}

/// What others ask of this relay's part of the tree.
#[derive(Debug, Clone)]
pub(crate) struct Tree {
    inputs: mpsc::Sender<Input>,
}

impl Tree {
    /// Begins. What drives it is to be run by the caller, until the relay ends.
    ///
    /// # Errors
    /// An address that cannot be looked up, or files that cannot be read.
    pub(crate) async fn start(
        control: &Control,
        (name, address): (&str, &str),
        demands: UnboundedReceiver<Demand>,
    ) -> Result<(Tree, impl Future<Output = ()> + Send + use<>), ControlError> {
        let at = look_up(address).await?;
        let (inputs, queue) = mpsc::channel(limits::INPUTS_MAX);
        let driver = driver::Driver::new(control.clone(), (name, at), inputs.clone())?;
        tracing::info!(name, %at, relay = %driver.relay(), "this relay is one of a tree");
        Ok((Tree { inputs }, driver.run(queue, demands)))
    }

    async fn fetched(&self, stream: &str, level: Level) -> Result<(), ControlError> {
        let (reply, answer) = oneshot::channel();
        let reach = Input::Reach { stream: stream.to_owned(), level, reply };
        self.inputs.send(reach).await.map_err(|_| ControlError::ShuttingDown)?;
        match answer.await.map_err(|_| ControlError::ShuttingDown)? {
            true => Ok(()),
            false => Err(ControlError::UnknownStream(stream.to_owned())),
        }
    }

    /// All of the tree that can be seen from here.
    pub(crate) async fn survey(&self) -> Vec<RelayView> {
        survey::survey(&self.inputs).await
    }

    /// Talks to a relay that wants to, from now on.
    pub(crate) async fn accept(&self, socket: PocSocket, from: SocketAddr, permit: Permit) {
        // If the driver has ended, so has the relay.
        let _ = self.inputs.send(Input::Accepted { socket, from, permit }).await;
    }
}

impl Reach for Tree {
    fn reach(&self, stream: String, level: Level) -> Task<Result<(), ControlError>> {
        let tree = self.clone();
        Box::pin(async move { tree.fetched(&stream, level).await })
    }
}

/// The directory, if there is to be one.
///
/// # Errors
/// The configuration names what there is not.
fn directory(
    config: &settings::Tree,
    name: &str,
    seed: u64,
) -> Result<Option<(Directory, mpsc::Receiver<outflow_directory::Event>)>, ControlError> {
    if config.directory.is_empty() {
        return Ok(None);
    }
    let auth = config.credentials.clone().map_or(Auth::None, Auth::File);
    let tls = config.ca.clone().map(|ca| Tls { ca: Some(ca), ..Tls::default() });
    let started = Directory::start(outflow_directory::Options {
        servers: config.directory.clone(),
        bucket: config.bucket.clone(),
        auth,
        tls,
        name: name.to_owned(),
        seed,
        ..outflow_directory::Options::default()
    });
    started.map(Some).map_err(|error| ControlError::Configuration(format!("[tree] directory: {error}")))
}

/// Where a relay is reached that is named by host and port.
async fn look_up(place: &str) -> Result<SocketAddr, ControlError> {
    let failed = |error: &std::io::Error| {
        ControlError::system(format!("looking up {place} (see [tree] in the configuration)"), error)
    };
    let mut all = tokio::net::lookup_host(place).await.map_err(|error| failed(&error))?;
    let unknown = std::io::Error::new(std::io::ErrorKind::NotFound, "nobody knows it");
    all.next().ok_or_else(|| failed(&unknown))
}
