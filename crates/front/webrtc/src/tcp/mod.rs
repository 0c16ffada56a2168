//! Peers by TCP (RFC 6544), for networks without UDP.
//!
//! Each connection has a gateway: a socket of UDP of its own, on this machine, from which its frames go to the port as
//! datagrams, and back. So the port and the workers have a peer by TCP as any other; only the path by which it came, as
//! its session knows that, is the connection's ([`Gateways::path`]). When another process goes on with the port, gateways go
//! on as they are, and this process lives as long as they do.

mod counts;
mod gateway;
mod gateways;

use std::sync::Arc;

use outflow_control::{Control, Task, Upgrade};
use outflow_engine::message::ControlError;
use tokio::net::TcpListener;

pub(crate) use counts::measure;
pub(crate) use gateways::Gateways;

use counts::Connections;
use gateway::{End, Gateway};

/// What the listener is called beside the port, at the same address.
const PROTOCOL: &str = "WebRTC by TCP";

/// Listens where the port is. The tasks do not end.
///
/// # Errors
/// The address cannot be used.
pub(crate) fn listen(
    control: &Control,
    gateways: &Arc<Gateways>,
) -> Result<impl Iterator<Item = Task<()>> + use<>, ControlError> {
    let listeners = control.listeners(PROTOCOL, Some(gateways.bound()), None)?;
    let (control, gateways) = (control.clone(), Arc::clone(gateways));
    Ok(listeners.into_iter().map(move |(listener, _)| {
        Box::pin(serve(listener, control.clone(), Arc::clone(&gateways))) as Task<()>
    }))
}

async fn serve(listener: TcpListener, control: Control, gateways: Arc<Gateways>) {
    let (door, connections) = (control.door().clone(), control.shared::<Connections>());
    let upgrade = control.shared::<Upgrade>();
    outflow_door::accept(listener, door, move |tcp, peer, permit| {
        let Some(place) = connections.enter(peer.ip()) else { return };
        let (gateways, connections) = (Arc::clone(&gateways), Arc::clone(&connections));
        let going = (connections, upgrade.lingering());
        tokio::spawn(async move {
            let ended = match Gateway::open(tcp, peer, &gateways, going).await {
                Ok(gateway) => gateway.run().await,
                Err(error) => End::Failed(error),
            };
            match &ended {
                End::Late => permit.count_slow(),
                End::Malformed => permit.count_malformed(),
                End::Closed | End::Silent | End::Failed(_) => {}
            }
            tracing::debug!(%peer, why = %ended, "a connection of WebRTC by TCP has ended");
            drop(place);
        });
    })
    .await;
}
