//! Connections: TCP, with or without TLS.

use core::fmt;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::ServerName;

use crate::{Error, Options, tls};

/// A connection's bytes, whatever is below them.
pub(crate) trait Io: AsyncRead + AsyncWrite + Send + Unpin {
    /// Its descriptor, if that is all that is below them.
    fn plain(&self) -> Option<BorrowedFd<'_>>;
}

impl Io for TcpStream {
    fn plain(&self) -> Option<BorrowedFd<'_>> {
        Some(self.as_fd())
    }
}

impl Io for TlsStream<TcpStream> {
    fn plain(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

/// A connection.
pub(crate) struct Wire {
    pub(crate) io: Box<dyn Io>,
    pub(crate) peer: SocketAddr,
    pub(crate) local: SocketAddr,
}

impl fmt::Debug for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wire").field("peer", &self.peer).finish_non_exhaustive()
    }
}

/// Connects to the first address of `host` that answers.
pub(crate) async fn dial(host: &str, port: u16, secure: bool, options: &Options) -> Result<Wire, Error> {
    let doing = || format!("connecting to {host}:{port}");
    let connected = timeout(options.patience, connect(host, port)).await;
    let tcp = connected.map_err(|_| Error::Slow { doing: doing(), after: options.patience })??;
    let system = |error| Error::System { doing: doing(), error };
    tcp.set_nodelay(true).map_err(system)?;
    let (peer, local) = (tcp.peer_addr().map_err(system)?, tcp.local_addr().map_err(system)?);
    if !secure {
        return Ok(Wire { io: Box::new(tcp), peer, local });
    }
    let failed = |error| Error::Tls { host: host.to_owned(), error };
    let name = ServerName::try_from(host.to_owned()).map_err(|e| failed(io::Error::other(e)))?;
    let config = tls::config(&options.certificates).map_err(failed)?;
    let secured = timeout(options.patience, TlsConnector::from(Arc::new(config)).connect(name, tcp)).await;
    let secured = secured
        .map_err(|_| Error::Slow { doing: format!("TLS with {host}"), after: options.patience })?
        .map_err(failed)?;
    Ok(Wire { io: Box::new(secured), peer, local })
}

async fn connect(host: &str, port: u16) -> Result<TcpStream, Error> {
    let unknown = |error| Error::Unknown { host: host.to_owned(), error };
    let addresses = tokio::net::lookup_host((host, port)).await.map_err(unknown)?;
    let mut failed = unknown(io::Error::other("the resolver knows none"));
    for to in addresses {
        match TcpStream::connect(to).await {
            Ok(tcp) => return Ok(tcp),
            Err(error) => failed = Error::Connect { to: to.to_string(), error },
        }
    }
    Err(failed)
}
