//! This relay's place in the trees of streams: a stream without a source here is taken from the nearest relay
//! that has it, at the best level that is wanted here, and let go when no receiver wants it any more.
//!
//! | module | what |
//! |---|---|
//! | `handle`, `input` | what can be asked of this relay's part of a tree, and all that the driver is told |
//! | `driver` | drives the state machine ([`outflow_routing::tree::Node`]), and whatever it asks for |
//! | `link`, `wire` | connections with other relays, and what is said there |
//! | `places` | the directory, and where relays are that are named |
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
mod handle;
mod input;
mod limits;
mod link;
mod lookup;
mod mark;
mod news;
mod pages;
mod places;
mod settings;
mod splice;
mod survey;
mod view;
mod wants;
pub mod wire;

use std::sync::Arc;

use outflow_api::{Page, Pages};
use outflow_config::Protocol;
use outflow_control::{Control, Front, Started, Task};
use outflow_door::{Permit, Right, query_value};
use outflow_front_poc::{REFUSED, Resources};
use outflow_poc_socket::Asking;

use handle::{Attached, Tree};
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
            Attached::set(&control, tree);
            Ok(vec![Box::pin(driven) as Task<()>])
        })
    }
}

/// Talks to another relay of the tree.
async fn talk(control: &Control, asking: Asking, permit: Permit, token: Option<String>) {
    let peer = asking.from();
    let denied = match (Attached::of(control), control.door().pass(Right::Relay, peer.ip(), token.as_deref()))
    {
        (None, _) => "this relay is none of a tree: it has no [tree]".to_owned(),
        (Some(_), Err(refused)) => refused.to_string(),
        (Some(tree), Ok(pass)) => match asking.answer(Some(&wire::flow())) {
            Ok(socket) => return tree.accept(socket, peer, (permit, pass)).await,
            Err(error) => return tracing::info!(%peer, %error, "a relay has gone before it was answered"),
        },
    };
    tracing::info!(%peer, why = denied, "a relay is not admitted to the tree");
    asking.refuse(REFUSED, &denied);
}
