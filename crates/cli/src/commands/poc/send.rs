//! `outflow poc send`

use std::io::BufReader;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use clap::Args;
use outflow_petri::service::{Flow, Preset, Request};
use outflow_poc::connection::{Event, SendError, Worth};
use outflow_poc_socket::{PocSocket, look_up};
use tokio::net::UdpSocket;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::common::{Common, Format, asked_to_end, run, wait_for_peer};
use super::statistics;
use super::units::{Group, Unit, cut};

/// How long what is under way is waited for when a signal ends it.
const GOODBYE: Duration = Duration::from_secs(1);

/// Bytes of the longest datagram of UDP.
const DATAGRAM_BYTES: usize = 65_535;

/// Sends what it reads, as a service says
///
/// Services: datagrams, mpeg, audio, av-sync, j2k-layers and parts, with parameters behind them, as in
/// mpeg:headers=yes,b=partial or datagrams:order=8; or a file that describes one (--net).
#[derive(Debug, Args)]
pub(super) struct Send {
    #[command(flatten)]
    common: Common,
    /// What to send: - for standard input, or udp://HOST:PORT where datagrams come
    #[arg(long, value_name = "FROM", default_value = "-", value_parser = source)]
    from: Source,
    /// The service; what suits the format if left out
    #[arg(long, value_name = "NAME", value_parser = preset)]
    service: Option<Flow>,
    /// Pictures of a period of the service, of MPEG-2 video
    #[arg(long, value_name = "COUNT", default_value_t = 12)]
    gop: u32,
    /// A file that describes the service: its net, and how reliable what is
    #[arg(long, value_name = "FILE", conflicts_with = "service")]
    net: Option<PathBuf>,
}

#[derive(Debug, Clone)]
enum Source {
    Standard,
    Udp(SocketAddr),
}

fn source(text: &str) -> Result<Source, String> {
    match text.strip_prefix("udp://") {
        None if text == "-" => Ok(Source::Standard),
        None => Err("it is neither - nor udp://HOST:PORT".to_owned()),
        Some(place) => place.parse().map(Source::Udp).map_err(|error| error.to_string()),
    }
}

fn preset(text: &str) -> Result<Flow, String> {
    Preset::parse(text).map_err(|error| error.to_string())
}

impl Send {
    pub(super) fn run(self) -> Result<(), String> {
        let flow = self.flow()?;
        run(self.send(flow))
    }

    fn flow(&self) -> Result<Flow, String> {
        let named = match (&self.net, &self.service, self.common.format) {
            (Some(file), ..) => {
                let text = std::fs::read_to_string(file);
                let text = text.map_err(|error| format!("{}: {error}", file.display()))?;
                text.parse::<Flow>().map_err(|error| format!("{}: {error}", file.display()))?
            }
            (None, Some(flow), _) => flow.clone(),
            (None, None, Format::Mpeg2) => preset("mpeg:headers=yes,b=partial")?,
            (None, None, _) => preset("datagrams:latency=200ms,repair=reliable")?,
        };
        match self.common.latency {
            Some(latency) => named.within(latency).map_err(|error| error.to_string()),
            None => Ok(named),
        }
    }

    async fn send(self, flow: Flow) -> Result<(), String> {
        let (options, common) = (self.common.options()?, &self.common);
        let socket = if common.listen {
            wait_for_peer(&common.address, Some(&flow), options).await?
        } else {
            let place = look_up(&common.address).await.map_err(|error| error.to_string())?;
            let resource = common.address.resource.clone();
            let request = Request { resource, to_server: Some(flow.clone()), to_client: None };
            PocSocket::connect(place, request, &options).await.map_err(|error| error.to_string())?
        };
        let Some(agreed) =
            (if common.listen { &socket.service().to_client } else { &socket.service().to_server })
        else {
            return Err("the other end does not want to be sent anything".to_owned());
        };
        let group = Group::new(agreed, if common.format == Format::Mpeg2 { self.gop } else { 1 })?;
        let socket = Arc::new(socket);
        let ended = tokio::select! {
            ended = async {
                match self.from {
                    Source::Standard => pass_standard(&socket, common.format, group).await?,
                    Source::Udp(at) => pass_datagrams(&socket, at).await?,
                }
                finish(&socket).await;
                Ok(())
            } => ended,
            () = asked_to_end() => {
                // The other end is given a moment for what is under way.
                _ = tokio::time::timeout(GOODBYE, finish(&socket)).await;
                Ok(())
            }
        };
        statistics::write(common.json_stats.as_deref(), socket.statistics())?;
        ended
    }
}

/// Sends what standard input has, until it ends. A thread reads it, because it may be a file; the thread
/// sends it itself, which wakes no other thread.
async fn pass_standard(socket: &Arc<PocSocket>, format: Format, group: Group) -> Result<(), String> {
    let (done, ended) = oneshot::channel();
    let (socket_there, runtime) = (Arc::clone(socket), Handle::current());
    thread::spawn(move || {
        let mut from = BufReader::new(std::io::stdin().lock());
        let mut failed = None;
        let cut = cut(&mut from, format, group, |unit| {
            failed = give(&socket_there, &runtime, unit).err();
            failed.is_none()
        });
        // The receiver is gone if a signal has ended the program.
        _ = done.send((cut, failed));
    });
    match ended.await {
        Ok((_, Some(SendError::Closed))) => Err(closed(socket).await),
        Ok((_, Some(error))) => Err(error.to_string()),
        Ok((cut, None)) => cut,
        Err(_) => Err("standard input was not read to its end".to_owned()),
    }
}

/// Gives a unit from a thread; waits while there is no room.
fn give(socket: &PocSocket, runtime: &Handle, (number, data): Unit) -> Result<(), SendError> {
    let data = Bytes::from(data);
    match socket.try_send_unit(number, data.clone(), Worth::default()) {
        Err(SendError::Full) => runtime.block_on(socket.send_unit(number, data, Worth::default())).map(drop),
        given => given.map(drop),
    }
}

/// Sends datagrams that come to an address.
async fn pass_datagrams(socket: &PocSocket, at: SocketAddr) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("udp://{at}: {error}");
    let udp = UdpSocket::bind(at).await.map_err(failed)?;
    let mut bytes = vec![0; DATAGRAM_BYTES];
    loop {
        let count = udp.recv(&mut bytes).await.map_err(failed)?;
        let data = Bytes::copy_from_slice(&bytes[..count]);
        match socket.send_unit(None, data, Worth::default()).await {
            Ok(_) => (),
            Err(SendError::Closed) => return Err(closed(socket).await),
            Err(error) => return Err(error.to_string()),
        }
    }
}

async fn closed(socket: &PocSocket) -> String {
    loop {
        if let Event::Closed(closed) = socket.event().await {
            return super::recv::told(&closed);
        }
    }
}

/// Waits until the other end is done with everything.
async fn finish(socket: &PocSocket) {
    socket.begin_finish();
    while !matches!(socket.event().await, Event::Closed(_)) {}
}
