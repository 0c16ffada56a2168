//! A connection of which the read side stays here while the write side may be given away.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream as StdUnixStream;

use bytes::BytesMut;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, ReadHalf, WriteHalf};
use tokio::net::{TcpStream, UnixStream};
use tokio::task::JoinHandle;
use tokio_rustls::server::TlsStream;

use super::limits::ENCRYPT_BYTES;

/// A connection, plain or encrypted.
pub(super) enum Wire {
    Plain { tcp: TcpStream, given_away: bool },
    Tls { reader: ReadHalf<TlsStream<TcpStream>>, writer: TlsWriter },
}

/// Who writes what is to be encrypted.
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
        Wire::Plain { tcp, given_away: false }
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
            Wire::Plain { tcp, .. } => tcp.read_buf(input).await,
            Wire::Tls { reader, .. } => reader.read_buf(input).await,
        }
    }

    /// Writes all of `bytes`.
    ///
    /// # Errors
    /// What the system says, or that the write side was given away.
    pub(super) async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Wire::Plain { tcp, .. } => tcp.write_all(bytes).await,
            Wire::Tls { writer: TlsWriter::Here(writer), .. } => {
                writer.write_all(bytes).await?;
                writer.flush().await
            }
            Wire::Tls { writer: TlsWriter::Away { .. }, .. } => {
                Err(io::Error::other("the write side is the worker's"))
            }
        }
    }

    /// Whether somebody else writes.
    pub(super) fn is_given_away(&self) -> bool {
        matches!(
            self,
            Wire::Plain { given_away: true, .. } | Wire::Tls { writer: TlsWriter::Away { .. }, .. }
        )
    }

    /// Tells the peer that nothing else will be sent.
    pub(super) async fn finish(&mut self) -> io::Result<()> {
        match self {
            Wire::Plain { tcp, .. } => tcp.shutdown().await,
            Wire::Tls { writer: TlsWriter::Here(writer), .. } => writer.shutdown().await,
            Wire::Tls { writer: TlsWriter::Away { .. }, .. } => Ok(()),
        }
    }

    /// Gives the write side away: what is written to the returned socket goes out from now on.
    pub(super) fn give_away(&mut self) -> io::Result<OwnedFd> {
        let writer = match self {
            Wire::Plain { tcp, given_away } => {
                *given_away = true;
                return tcp.as_fd().try_clone_to_owned();
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
                Ok(theirs.into())
            }
            away @ TlsWriter::Away { .. } => {
                *writer = away;
                Err(io::Error::other("the write side was given away before"))
            }
        }
    }
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
