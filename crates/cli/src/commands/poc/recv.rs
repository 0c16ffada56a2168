//! `outflow poc recv`

use std::fs::File;
use std::net::SocketAddr;
use std::os::fd::AsFd;

use clap::Args;
use outflow_petri::service::{Bounds, Request, Want, presets};
use outflow_poc::connection::{By, Closed};
use outflow_poc::packet::Code;
use outflow_poc_socket::{PocSocket, look_up};
use tokio::net::UdpSocket;

use super::common::{Common, asked_to_end, run, wait_for_peer};
use super::statistics;
use super::units::write;

/// Receives what is sent, in the order that the service allows
#[derive(Debug, Args)]
pub(super) struct Recv {
    #[command(flatten)]
    common: Common,
    /// Where to put it: - for standard output, or udp://HOST:PORT, a datagram for each unit
    #[arg(long, value_name = "TO", default_value = "-", value_parser = sink)]
    to: Sink,
}

#[derive(Debug, Clone)]
enum Sink {
    Standard,
    Udp(SocketAddr),
}

fn sink(text: &str) -> Result<Sink, String> {
    match text.strip_prefix("udp://") {
        None if text == "-" => Ok(Sink::Standard),
        None => Err("it is neither - nor udp://HOST:PORT".to_owned()),
        Some(place) => place.parse().map(Sink::Udp).map_err(|error| error.to_string()),
    }
}

impl Recv {
    pub(super) fn run(self) -> Result<(), String> {
        run(self.receive())
    }

    async fn receive(self) -> Result<(), String> {
        let (options, common) = (self.common.options()?, &self.common);
        let socket = if common.listen {
            wait_for_peer(&common.address, None, options).await?
        } else {
            let place = look_up(&common.address).await.map_err(|error| error.to_string())?;
            let bounds = Bounds {
                rounds: outflow_petri::limits::WINDOW_ROUNDS_MAX as u32,
                buffer_bytes: presets::BUFFER_BYTES,
                validity: common.latency,
            };
            let to_client = Some(Want::Theirs(bounds));
            let request = Request { resource: common.address.resource.clone(), to_server: None, to_client };
            PocSocket::connect(place, request, &options).await.map_err(|error| error.to_string())?
        };
        let ended = tokio::select! {
            ended = self.pass(&socket) => ended,
            () = asked_to_end() => Ok(()),
        };
        statistics::write(self.common.json_stats.as_deref(), socket.statistics())?;
        ended
    }

    /// Hands on units until the connection is over.
    async fn pass(&self, socket: &PocSocket) -> Result<(), String> {
        let out = match self.to {
            Sink::Standard => None,
            Sink::Udp(to) => {
                let any: SocketAddr = if to.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" }.parse().expect("any");
                let udp = UdpSocket::bind(any).await.map_err(|error| error.to_string())?;
                udp.connect(to).await.map_err(|error| format!("udp://{to}: {error}"))?;
                Some(udp)
            }
        };
        // Nothing is to wait in a buffer until a line ends.
        let standard = std::io::stdout().as_fd().try_clone_to_owned();
        let mut standard = File::from(standard.map_err(|error| format!("standard output: {error}"))?);
        loop {
            let (unit, data) = match socket.recv().await {
                Ok(unit) => unit,
                Err(closed) if closed.code == Code::DONE => return Ok(()),
                Err(closed) => return Err(told(&closed)),
            };
            match &out {
                // A receiver that is not there (yet) loses it.
                Some(udp) => _ = udp.send(&data).await,
                None => {
                    let written = write(&mut standard, self.common.format, unit, &data);
                    written.map_err(|error| format!("standard output: {error}"))?;
                }
            }
        }
    }
}

/// How a connection ended.
pub(super) fn told(closed: &Closed) -> String {
    let end = if closed.by == By::Peer { "the other end" } else { "this end" };
    let text = if closed.text.is_empty() { "nothing more to say" } else { &closed.text };
    format!("{end} closed the connection: {text} (code {})", closed.code.0)
}
