//! A connection by TCP, and its gateway to the port.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::sync::Arc;

use outflow_control::Lingering;
use outflow_ice::Check;
use outflow_ice::frame::{LENGTH_BYTES, Unframer, cut};
use socket2::SockRef;
use tokio::net::{TcpStream, UdpSocket};
use tokio::time::{Instant, sleep_until};

use super::counts::{Connections, Way};
use super::gateways::{Gateways, Known};
use crate::limits::{
    DATAGRAM_BYTES_MAX, TCP_BEGINS_WITHIN, TCP_SEND_BUFFER_BYTES, TCP_SILENT_MAX, TCP_TURN_BYTES,
};

#[cfg(test)]
mod tests;

/// A connection of a peer's.
#[derive(Debug)]
pub(super) struct Gateway {
    tcp: TcpStream,
    /// Connected to the relay's port.
    udp: UdpSocket,
    frames: Unframer,
    /// What is still to be written of a frame of which a part has gone.
    rest: Vec<u8>,
    stage: Stage,
    /// It is over at the earlier of these, unless the peer says something before, or the relay to it.
    peer_until: Instant,
    relay_until: Instant,
    connections: Arc<Connections>,
    _known: Known,
    /// The port, and those that come by this, may go on in another process.
    _lingering: Lingering,
}

/// How far a connection has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Nothing has come yet.
    New,
    /// A check has come.
    Checked,
    /// The relay has answered.
    Answered,
}

/// Why a connection is over.
#[derive(Debug, thiserror::Error)]
pub(super) enum End {
    /// The peer has closed it.
    #[error("it was closed")]
    Closed,
    /// No check has come that the relay has answered.
    #[error("no check of a session came in time")]
    Late,
    /// The peer says nothing any more, or the relay nothing to it.
    #[error("nothing was heard for too long")]
    Silent,
    /// It did not begin with a check, or a frame is too long.
    #[error("what came was not WebRTC")]
    Malformed,
    /// The connection, or the gateway, has failed.
    #[error(transparent)]
    Failed(#[from] io::Error),
}

impl Gateway {
    /// The gateway of a connection.
    ///
    /// # Errors
    /// The connection is over already, or there is no socket for the gateway.
    pub(super) async fn open(
        tcp: TcpStream,
        peer: SocketAddr,
        gateways: &Arc<Gateways>,
        (connections, lingering): (Arc<Connections>, Lingering),
    ) -> io::Result<Self> {
        tcp.set_nodelay(true)?;
        SockRef::from(&tcp).set_send_buffer_size(TCP_SEND_BUFFER_BYTES)?;
        let udp = UdpSocket::bind(gateways.at(0)).await?;
        udp.connect(gateways.port()).await?;
        let known = gateways.enter(udp.local_addr()?.port(), peer);
        // Before that is known, what is sent finds no room.
        udp.writable().await?;
        tcp.writable().await?;
        let until = Instant::now() + TCP_BEGINS_WITHIN;
        Ok(Gateway {
            tcp,
            udp,
            frames: Unframer::new(DATAGRAM_BYTES_MAX),
            rest: Vec::new(),
            stage: Stage::New,
            peer_until: until,
            relay_until: until,
            connections,
            _known: known,
            _lingering: lingering,
        })
    }

    /// Carries frames and datagrams until it is over, and answers why.
    pub(super) async fn run(mut self) -> End {
        loop {
            let done = tokio::select! {
                readable = self.tcp.readable() => readable.map_err(End::from).and_then(|()| self.take()),
                readable = self.udp.readable() => readable.map_err(End::from).and_then(|()| self.give()),
                writable = self.tcp.writable(), if !self.rest.is_empty() => {
                    writable.map_err(End::from).and_then(|()| self.go_on())
                }
                () = sleep_until(self.peer_until.min(self.relay_until)) => {
                    Err(if self.stage == Stage::Answered { End::Silent } else { End::Late })
                }
            };
            if let Err(end) = done {
                return end;
            }
        }
    }

    /// Reads frames, which go to the port.
    fn take(&mut self) -> Result<(), End> {
        let mut bytes = [0; TCP_TURN_BYTES];
        let read = match self.tcp.try_read(&mut bytes) {
            Ok(0) => return Err(End::Closed),
            Ok(read) => read,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        let Gateway { udp, frames, stage, peer_until, connections, .. } = self;
        let mut done = Ok(());
        let whole = frames.take(&bytes[..read], |datagram| {
            if done.is_err() {
                return;
            }
            if *stage == Stage::New && !is_request(datagram) {
                done = Err(End::Malformed);
                return;
            }
            match *stage {
                Stage::Answered => *peer_until = Instant::now() + TCP_SILENT_MAX,
                Stage::New | Stage::Checked => *stage = Stage::Checked,
            }
            match udp.try_send(datagram) {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    connections.count_dropped(Way::Relay, 1)
                }
                Err(error) => done = Err(error.into()),
            }
        });
        done.and(whole.map_err(|_| End::Malformed))
    }

    /// Reads datagrams of the port, which go to the peer as far as its connection has room now: what would wait is late.
    fn give(&mut self) -> Result<(), End> {
        let (mut frames, mut end) = ([0; TCP_TURN_BYTES], 0);
        while let Some(room) = frames.get_mut(end..end + LENGTH_BYTES + DATAGRAM_BYTES_MAX) {
            let (length, datagram) = room.split_at_mut(LENGTH_BYTES);
            match self.udp.try_recv(datagram) {
                Ok(bytes) => {
                    length.copy_from_slice(&(bytes as u16).to_be_bytes());
                    end += LENGTH_BYTES + bytes;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(error.into()),
            }
        }
        if end > 0 {
            self.relay_until = Instant::now() + TCP_SILENT_MAX;
            if self.stage != Stage::Answered {
                self.stage = Stage::Answered;
                self.peer_until = self.relay_until;
            }
        }
        self.go_on()?;
        let frames = &frames[..end];
        let written = if self.rest.is_empty() { self.write(frames)? } else { 0 };
        let (rest, others) = cut(frames, written);
        self.rest.extend_from_slice(rest);
        self.connections.count_dropped(Way::Peer, others);
        Ok(())
    }

    /// Writes on where a frame was cut.
    fn go_on(&mut self) -> Result<(), End> {
        let written = self.write(&self.rest)?;
        self.rest.drain(..written);
        Ok(())
    }

    /// Writes as much as there is room for now, and answers how much that is.
    fn write(&self, bytes: &[u8]) -> Result<usize, End> {
        if bytes.is_empty() {
            return Ok(0);
        }
        match self.tcp.try_write(bytes) {
            Ok(written) => Ok(written),
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(0),
            Err(error) => Err(error.into()),
        }
    }
}

/// Whether it asks for an answer as those do that have been told of the relay.
fn is_request(datagram: &[u8]) -> bool {
    Check::is_stun(datagram) && Check::new_checked(datagram).is_ok_and(|check| check.names().is_some())
}
