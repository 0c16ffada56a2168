//! A connection of which the read side stays here while the write side may be given away.

use std::io;
use std::net::{Shutdown, TcpStream as StdTcpStream};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream as StdUnixStream;
use std::sync::Arc;

use bytes::BytesMut;
use outflow_engine::message::WriteSide;
use socket2::SockRef;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, ReadHalf, WriteHalf};
use tokio::net::{TcpStream, UnixStream};
use tokio::task::JoinHandle;
use tokio_rustls::server::TlsStream;

use super::limits::ENCRYPT_BYTES;

/// A connection, plain or encrypted.
pub(super) enum Wire {
    Plain { tcp: Arc<TcpStream>, given_away: bool },
    Tls { reader: ReadHalf<TlsStream<TcpStream>>, writer: TlsWriter },
}

/// What writes the data that is to be encrypted.
pub(super) enum TlsWriter {
    /// We do.
    Here(WriteHalf<TlsStream<TcpStream>>),
    /// A task does, with what the worker writes to a local socket.
    Away { _pump: Pump },
}

/// Ends the task when it is dropped.
pub(super) struct Pump(JoinHandle<()>);

impl Drop for Pump {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Wire {
    pub(super) fn plain(tcp: TcpStream) -> Self {
        Wire::Plain { tcp: Arc::new(tcp), given_away: false }
    }

    /// A plain one that another process has had.
    pub(super) fn taken(descriptor: OwnedFd) -> io::Result<Self> {
        let tcp = StdTcpStream::from(descriptor);
        tcp.set_nonblocking(true)?;
        Ok(Wire::plain(TcpStream::from_std(tcp)?))
    }

    /// The descriptor of the same connection once more; none of an encrypted one, whose keys stay here.
    pub(super) fn copied(&self) -> Option<OwnedFd> {
        match self {
            Wire::Plain { tcp, .. } => tcp.as_fd().try_clone_to_owned().ok(),
            Wire::Tls { .. } => None,
        }
    }

    pub(super) fn tls(stream: TlsStream<TcpStream>) -> Self {
        let (reader, writer) = tokio::io::split(stream);
        Wire::Tls { reader, writer: TlsWriter::Here(writer) }
    }

    pub(super) fn is_encrypted(&self) -> bool {
        matches!(self, Wire::Tls { .. })
    }

    /// Reads what is there, up to `bytes`, to the end of `input`; 0 bytes at the end of the connection. Nothing is
    /// lost if this is cancelled.
    pub(super) async fn read(&mut self, input: &mut BytesMut, bytes: usize) -> io::Result<usize> {
        input.reserve(bytes);
        match self {
            Wire::Plain { tcp, .. } => loop {
                tcp.readable().await?;
                match tcp.try_read_buf(input) {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    result => return result,
                }
            },
            Wire::Tls { reader, .. } => reader.read_buf(input).await,
        }
    }

    /// Writes all of `bytes`.
    ///
    /// # Errors
    /// What the system says, or that the write side was given away.
    pub(super) async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Wire::Plain { tcp, .. } => write_all(tcp, bytes).await,
            Wire::Tls { writer: TlsWriter::Here(writer), .. } => {
                writer.write_all(bytes).await?;
                writer.flush().await
            }
            Wire::Tls { writer: TlsWriter::Away { .. }, .. } => {
                Err(io::Error::other("the write side is the worker's"))
            }
        }
    }

    /// Whether another task or thread writes.
    pub(super) fn is_given_away(&self) -> bool {
        matches!(
            self,
            Wire::Plain { given_away: true, .. } | Wire::Tls { writer: TlsWriter::Away { .. }, .. }
        )
    }

    /// Tells the peer that nothing else will be sent.
    pub(super) async fn finish(&mut self) -> io::Result<()> {
        match self {
            Wire::Plain { tcp, .. } => SockRef::from(&**tcp).shutdown(Shutdown::Write),
            Wire::Tls { writer: TlsWriter::Here(writer), .. } => writer.shutdown().await,
            Wire::Tls { writer: TlsWriter::Away { .. }, .. } => Ok(()),
        }
    }

    /// Gives the write side away: what is written there goes out from now on.
    pub(super) fn give_away(&mut self) -> io::Result<WriteSide> {
        let writer = match self {
            Wire::Plain { tcp, given_away } => {
                *given_away = true;
                return Ok(WriteSide::Shared(Arc::clone(tcp)));
            }
            Wire::Tls { writer, .. } => writer,
        };
        let (theirs, ours) = StdUnixStream::pair()?;
        theirs.set_nonblocking(true)?;
        ours.set_nonblocking(true)?;
        let ours = UnixStream::from_std(ours)?;
        let idle = TlsWriter::Away { _pump: Pump(tokio::spawn(async {})) };
        match std::mem::replace(writer, idle) {
            TlsWriter::Here(to) => {
                *writer = TlsWriter::Away { _pump: Pump(tokio::spawn(encrypt(ours, to))) };
                Ok(WriteSide::Own(theirs.into()))
            }
            away @ TlsWriter::Away { .. } => {
                *writer = away;
                Err(io::Error::other("the write side was given away before"))
            }
        }
    }
}

/// Writes all of `bytes` to a connection that others may read from.
async fn write_all(tcp: &TcpStream, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        tcp.writable().await?;
        match tcp.try_write(bytes) {
            Ok(written) => bytes = &bytes[written..],
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Encrypts what the worker writes, until it closes its end.
async fn encrypt(mut from: UnixStream, mut to: WriteHalf<TlsStream<TcpStream>>) {
    let mut buffer = BytesMut::with_capacity(ENCRYPT_BYTES);
    loop {
        buffer.clear();
        match from.read_buf(&mut buffer).await {
            Ok(0) | Err(_) => break,
            Ok(_) => {}
        }
        // A broken connection shows itself to the worker when its end of the pair is closed.
        if to.write_all(&buffer).await.is_err() || to.flush().await.is_err() {
            return;
        }
    }
    // A peer that has gone needs no goodbye.
    let _ = to.shutdown().await;
}
