//! The same sockets for programs without tokio: each call waits.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use outflow_petri::service::{Flow, Request, Service};
use outflow_poc::connection::{Closed, Event, SendError, Worth};
use tokio::runtime::{Builder, Runtime};

use crate::{OpenError, Options, Statistics};

/// One end of a connection, with a thread of its own that drives it.
#[derive(Debug)]
pub struct PocSocket {
    // Before the runtime, so that it can say goodbye.
    socket: Option<crate::PocSocket>,
    runtime: Runtime,
}

impl PocSocket {
    /// Connects to a server.
    pub fn connect(server: SocketAddr, request: Request, options: &Options) -> Result<Self, OpenError> {
        let runtime = runtime()?;
        let socket = runtime.block_on(crate::PocSocket::connect(server, request, options))?;
        Ok(PocSocket { socket: Some(socket), runtime })
    }

    /// Binds to an address, and waits for the first client.
    pub fn bind(address: SocketAddr, source: Option<&Flow>, options: Options) -> Result<Self, OpenError> {
        let runtime = runtime()?;
        let socket = runtime.block_on(crate::PocSocket::bind(address, source, options))?;
        Ok(PocSocket { socket: Some(socket), runtime })
    }

    /// What both ends agreed on.
    pub fn service(&self) -> &Service {
        self.socket().service()
    }

    /// Sends the next unit, when there is room for it. Answers its number.
    pub fn send(&self, data: impl Into<Bytes>) -> Result<u64, SendError> {
        self.runtime.block_on(self.socket().send(data))
    }

    /// Sends a unit by its number in the net, and by what it is worth.
    pub fn send_unit(&self, unit: u64, data: Bytes, worth: Worth) -> Result<u64, SendError> {
        self.runtime.block_on(self.socket().send_unit(Some(unit), data, worth))
    }

    /// The next unit that is delivered. An error tells how the connection ended.
    pub fn recv(&self) -> Result<(u64, Bytes), Closed> {
        self.runtime.block_on(self.socket().recv())
    }

    /// The next thing that happens.
    pub fn event(&self) -> Event {
        self.runtime.block_on(self.socket().event())
    }

    /// Waits until the peer is done with all that was sent, and closes.
    pub fn finish(mut self) -> Option<Closed> {
        let socket = self.socket.take()?;
        let closed = self.runtime.block_on(socket.finish());
        Some(closed)
    }

    /// What became of everything so far.
    pub fn statistics(&self) -> Option<Statistics> {
        self.socket().statistics()
    }

    fn socket(&self) -> &crate::PocSocket {
        self.socket.as_ref().expect("it is only taken by what consumes this")
    }
}

impl Drop for PocSocket {
    fn drop(&mut self) {
        let Some(socket) = self.socket.take() else { return };
        self.runtime.block_on(async {
            drop(socket);
            // The peer is to be told.
            tokio::time::sleep(Duration::from_millis(20)).await;
        });
    }
}

fn runtime() -> io::Result<Runtime> {
    Builder::new_multi_thread().worker_threads(1).thread_name("poc").enable_all().build()
}
