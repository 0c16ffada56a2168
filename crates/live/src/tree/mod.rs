//! This relay's place in the trees of streams: what nobody sends here is taken of the nearest relay that has it, at
//! the best level that is wanted here, and let go when nobody wants it any more.
//!
//! | module | what |
//! |---|---|
//! | `driver` | drives the state machine ([`outflow_routing::tree::Node`]), and whatever it asks for |
//! | `link`, `wire` | connections with other relays, and what is said there |
//! | `lookup` | who has a stream: parents, and the directory |
//! | `feed` | streams that come from another relay |
//! | `group` | those that come by multicast |
//! | `splice` | where packets of another parent go on from those of the one before |
//! | `wants` | what is wanted here |
//! | `view`, `survey` | what is shown of all this |

mod driver;
mod feed;
mod group;
mod limits;
mod link;
mod lookup;
mod mark;
mod splice;
mod survey;
mod view;
mod wants;
pub mod wire;

use std::net::SocketAddr;

use outflow_directory::{Auth, Directory, Tls};
use outflow_door::Permit;
use outflow_poc_socket::PocSocket;
use outflow_relay::Level;
use tokio::sync::mpsc::{self, UnboundedReceiver};
use tokio::sync::oneshot;

use crate::control::{Control, ControlError};
use crate::message::Demand;
use driver::Input;
pub(crate) use driver::{number, of_path, of_tree};
pub use view::{PeerView, RelayView, StreamView};

/// What others ask of this relay's part of the tree.
#[derive(Debug, Clone)]
pub(crate) struct Tree {
    inputs: mpsc::Sender<Input>,
}

impl Tree {
    /// Begins, if the configuration says so. What drives it is to be run by the caller, until the relay ends.
    ///
    /// # Errors
    /// An address that cannot be looked up, or files that cannot be read.
    pub(crate) async fn start(
        control: &Control,
        demands: UnboundedReceiver<Demand>,
    ) -> Result<Option<(Tree, impl Future<Output = ()> + Send + 'static)>, ControlError> {
        let config = control.config();
        let (Some(name), Some(address)) = (&config.tree.name, &config.tree.address) else { return Ok(None) };
        let at = look_up(address).await?;
        let (inputs, queue) = mpsc::channel(limits::INPUTS_MAX);
        let driver = driver::Driver::new(control.clone(), (name, at), inputs.clone())?;
        tracing::info!(name, %at, relay = %driver.relay(), "this relay is one of a tree");
        Ok(Some((Tree { inputs }, driver.run(queue, demands))))
    }

    /// Waits until a stream comes from another relay, for somebody who wants this level and will ask for it soon.
    ///
    /// # Errors
    /// No relay has it.
    pub(crate) async fn reach(&self, stream: &str, level: Level) -> Result<(), ControlError> {
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

/// The directory, if there is to be one.
///
/// # Errors
/// The configuration names what there is not.
fn directory(
    config: &outflow_config::Tree,
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
