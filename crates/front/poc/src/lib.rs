//! The partial-order transport: peers that play a stream of this relay or publish one, and receivers that are sent to.
//!
//! A connection that a stream goes to leaves its socket, and the receiver's worker drives it (`peer.rs`). All else,
//! its beginning, what is published, what relays say to each other, stays with tasks of control.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the control plane owns time, tasks and I/O"
)]

mod codes;
mod handover;
mod ledger;
mod limits;
mod options;
mod pace;
mod peer;
mod publish;
mod resources;
mod saved;
mod send;
mod server;
mod settings;

use std::sync::Arc;

use outflow_config::{Protocol, SecretUrl, StreamConfig};
use outflow_control::{Control, Front, Part, PushOptions, Started, Task};
use outflow_engine::message::ControlError;
use outflow_engine::system::random_u32;

pub use codes::{NO_MEDIA, REFUSED, REVOKED, TAKEN_OVER};
use handover::TakenSinks;
use options::latency;
pub use options::options;
pub use resources::{Handler, Resources};
pub use server::serve;
pub use settings::{Encryption, Poc, PocUrl};

/// The partial-order transport: `poc://` as a source and as a receiver, `[listen] poc`.
pub fn front() -> Arc<dyn Front> {
    Arc::new(Transport)
}

#[derive(Debug)]
struct Transport;

impl Front for Transport {
    fn listen(&self, control: Control) -> Started {
        Box::pin(async move {
            // What is configured has been begun: what of the process before is not, ends.
            control.shared::<TakenSinks>().end();
            let listener = server::listen(&control)?;
            let serve = |listener| Box::pin(serve(listener, control)) as Task<()>;
            Ok(listener.map(serve).into_iter().collect())
        })
    }

    fn protocol(&self) -> Protocol {
        settings::protocol()
    }

    fn pull(&self, control: Control, stream: String, config: StreamConfig) -> Task<()> {
        Box::pin(outflow_front_pull::pull(control, stream, config, ask))
    }

    fn parts(&self) -> &'static [&'static str] {
        &[handover::PARTS, handover::SINKS]
    }

    fn take(&self, control: Control, name: &'static str, parts: Vec<Part>) {
        match name {
            handover::SINKS => handover::take_sinks(&control, parts),
            _ => handover::take(&control, parts),
        }
    }

    fn push(&self, control: Control, push: PushOptions) -> Task<()> {
        Box::pin(send::keep_sending(control, push))
    }
}

/// Where to ask for a configured source, and how.
fn ask(control: &Control, config: &StreamConfig) -> Result<outflow_front_pull::Asked, ControlError> {
    let Some(url) = config.source.address::<PocUrl>() else {
        let text = format!("{} is no address of the partial-order transport", config.source);
        return Err(ControlError::Unsupported(text));
    };
    let poc = &control.config().section::<Poc>();
    let options = outflow_client::Options {
        poc: Some(options(poc, Some(url))?),
        poc_latency: Some(latency(poc, url)),
        seed: u64::from(random_u32()),
        ..outflow_client::Options::default()
    };
    Ok((SecretUrl::new(format!("poc://{}{}", url.place, url.resource.reveal()), &[]), options))
}
