//! Where fronts listen: by TCP, plain and in TLS, and by UDP.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd as _, OwnedFd};

use outflow_engine::message::ControlError;
use outflow_socket::choose_families;
use outflow_udp::{Options, Udp};
use tokio::net::{TcpListener, TcpSocket};
use tokio_rustls::TlsAcceptor;

use crate::control::Control;
use crate::upgrade::Upgrade;

/// Connections that wait to be accepted: as many as the system allows (`net.core.somaxconn`).
const BACKLOG: u32 = u32::MAX;

/// Where a front is reached, and what decrypts what comes there.
pub type Listener = (TcpListener, Option<TlsAcceptor>);

impl Control {
    /// Listens for a protocol at an address, and, where the configuration has a certificate, at another one in TLS.
    ///
    /// # Errors
    /// An address or the certificate cannot be used.
    pub fn listeners(
        &self,
        protocol: &str,
        plain: Option<SocketAddr>,
        encrypted: Option<SocketAddr>,
    ) -> Result<Vec<Listener>, ControlError> {
        let config = self.config();
        let acceptor = |tls| outflow_door::tls::acceptor(tls, &["http/1.1"]);
        let tls = config.tls.as_ref().map(acceptor).transpose();
        let tls = tls.map_err(|error| ControlError::Configuration(error.to_string()))?;
        let mut listeners = Vec::new();
        for (at, tls) in [(plain, None), (encrypted.filter(|_| tls.is_some()), tls)] {
            if let Some(at) = at {
                listeners.push((listener(self, protocol, at)?, tls));
            }
        }
        Ok(listeners)
    }
}

/// A socket of UDP for a protocol at an address: that of the process before, or a new one. An upgrade hands it on.
///
/// # Errors
/// The address cannot be used.
pub fn datagrams(control: &Control, protocol: &str, at: SocketAddr) -> Result<Udp, ControlError> {
    let at = place(protocol, at);
    let failed = |e| ControlError::system(format!("listening for {protocol} at {at} (see [listen])"), &e);
    let (upgrade, options) = (control.shared::<Upgrade>(), Options::default());
    let udp = match upgrade.listener(protocol, at) {
        Some(taken) => Udp::taken(taken, &options),
        None => Udp::bind(at, &options),
    };
    let udp = udp.map_err(failed)?;
    upgrade.listens(protocol, at, udp.as_fd().try_clone_to_owned().map_err(failed)?);
    tracing::info!(protocol, %at, "listening");
    Ok(udp)
}

/// Where to listen for a protocol that is to be heard at an address: `[::]` is `0.0.0.0` where there is no IPv6.
pub fn place(protocol: &str, at: SocketAddr) -> SocketAddr {
    let place = outflow_socket::place(at, outflow_socket::has_v6);
    if place != at {
        let help = "give that address in [listen], or switch IPv6 on and start the relay again";
        tracing::info!(protocol, %place, "there is no IPv6 here, so [::] is all of IPv4: {help}");
    }
    place
}

/// A listener of the process before, or a new one. An upgrade hands it on.
fn listener(control: &Control, protocol: &str, at: SocketAddr) -> Result<TcpListener, ControlError> {
    let at = place(protocol, at);
    let failed = |e| ControlError::system(format!("listening for {protocol} at {at} (see [listen])"), &e);
    let upgrade = control.shared::<Upgrade>();
    let (at, listener) = match inherited(&upgrade, protocol, at) {
        Some((at, taken)) => (at, TcpListener::from_std(taken.into()).map_err(failed)?),
        None => (at, bind(at).map_err(failed)?),
    };
    upgrade.listens(protocol, at, listener.as_fd().try_clone_to_owned().map_err(failed)?);
    tracing::info!(protocol, %at, "listening");
    Ok(listener)
}

/// A listener of the process before, and where it is. One at all addresses of IPv4, where relays listened by themselves
/// before they took IPv6 there, too, goes on in the place of `[::]`, which is not to be had beside it.
fn inherited(upgrade: &Upgrade, protocol: &str, at: SocketAddr) -> Option<(SocketAddr, OwnedFd)> {
    if let Some(taken) = upgrade.listener(protocol, at) {
        return Some((at, taken));
    }
    if at.ip() != IpAddr::from(Ipv6Addr::UNSPECIFIED) {
        return None;
    }
    let v4 = SocketAddr::from((Ipv4Addr::UNSPECIFIED, at.port()));
    let taken = upgrade.listener(protocol, v4)?;
    let help = "stop the relay and start it again, when its receivers can do without it";
    tracing::warn!(protocol, at = %v4, "it still listens for IPv4 alone, as the process before: {help}");
    Some((v4, taken))
}

/// Listens at an address, at `[::]` for IPv4, too.
fn bind(at: SocketAddr) -> io::Result<TcpListener> {
    let socket = if at.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    choose_families(&socket, at)?;
    // Connections of a process before may still be closing.
    socket.set_reuseaddr(true)?;
    socket.bind(at)?;
    socket.listen(BACKLOG)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_listened_for_ipv4_goes_on_where_both_families_are_to_be_heard_and_nowhere_else() {
        let address = |text: &str| text.parse::<SocketAddr>().expect("an address");
        let (before, upgrade) = (address("0.0.0.0:8080"), Upgrade::default());
        let socket = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        upgrade.listens("one", before, socket.into());
        let found = |protocol, at| inherited(&upgrade, protocol, address(at)).map(|(at, _)| at);
        for (protocol, at) in [("other", "[::]:8080"), ("one", "[::]:8081"), ("one", "[::1]:8080")] {
            assert_eq!(found(protocol, at), None, "{protocol} {at}");
        }
        assert_eq!(found("one", "[::]:8080"), Some(before));
        assert_eq!(found("one", "[::]:8080"), None, "it is taken");
    }
}
