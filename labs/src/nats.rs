//! A NATS server under test, which dies and comes back.

use std::net::{SocketAddrV4, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use tempfile::TempDir;

use crate::net::Namespace;
use crate::process::{Program, Running};
use crate::relay::PATIENCE;

/// NATS in a namespace, with what it stores.
#[derive(Debug)]
pub struct Nats<'n> {
    namespace: &'n Namespace,
    address: SocketAddrV4,
    folder: TempDir,
    process: Option<Running>,
}

impl<'n> Nats<'n> {
    /// Starts it at this address, with JetStream.
    pub fn start(namespace: &'n Namespace, address: SocketAddrV4) -> Result<Self> {
        let mut nats = Self { namespace, address, folder: tempfile::tempdir()?, process: None };
        nats.restart()?;
        Ok(nats)
    }

    /// Kills it.
    pub fn kill(&mut self) {
        self.process = None;
    }

    /// Starts it with what it has stored, and waits until it answers.
    pub fn restart(&mut self) -> Result<()> {
        let (store, ip, port) = (self.folder.path().display(), self.address.ip(), self.address.port());
        let line = format!("nats-server -js -sd {store} -a {ip} -p {port}");
        let mut process = Program::words(&line).within(self.namespace).start()?;
        let until = Instant::now() + PATIENCE;
        let answers = || self.namespace.run(|| TcpStream::connect(self.address).is_ok());
        while !answers() {
            ensure!(process.alive() && Instant::now() < until, "no NATS: {}", process.account());
            std::thread::sleep(Duration::from_millis(20));
        }
        self.process = Some(process);
        Ok(())
    }
}
