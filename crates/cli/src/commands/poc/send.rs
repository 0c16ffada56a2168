//! `outflow poc send`

use std::io::BufReader;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use clap::Args;
use outflow_poc::connection::{Event, SendError, Worth};
use outflow_poc::service::{Flow, Preset, Request};
use outflow_poc_socket::{PocSocket, look_up};
use tokio::net::UdpSocket;
use tokio::sync::mpsc;

use super::common::{Common, Format, asked_to_end, runtime, wait_for_peer};
use super::statistics;
use super::units::{Group, Unit, cut};

/// How long what is under way is waited for when a signal ends it.
const GOODBYE: Duration = Duration::from_secs(1);

/// Units that wait between who reads them and who sends them.
const WAITING: usize = 64;

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
        runtime()?.block_on(self.send(flow))
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
        let mut units = self.units(agreed.clone()).await?;
        let ended = tokio::select! {
            ended = async {
                pass(&mut units, &socket).await?;
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

    /// What is read, unit by unit.
    async fn units(&self, flow: Flow) -> Result<mpsc::Receiver<Result<Unit, String>>, String> {
        let (to, units) = mpsc::channel(WAITING);
        let format = self.common.format;
        let group = Group::new(&flow, if format == Format::Mpeg2 { self.gop } else { 1 })?;
        match self.from {
            Source::Standard => {
                thread::spawn(move || {
                    let mut from = BufReader::new(std::io::stdin().lock());
                    let cut = cut(&mut from, format, group, |unit| to.blocking_send(Ok(unit)).is_ok());
                    cut.err().into_iter().for_each(|error| _ = to.blocking_send(Err(error)));
                });
            }
            Source::Udp(at) => {
                let socket = UdpSocket::bind(at).await.map_err(|error| format!("udp://{at}: {error}"))?;
                tokio::spawn(async move {
                    let mut bytes = vec![0; DATAGRAM_BYTES];
                    while let Ok(count) = socket.recv(&mut bytes).await {
                        if to.send(Ok((None, bytes[..count].to_vec()))).await.is_err() {
                            break;
                        }
                    }
                });
            }
        }
        Ok(units)
    }
}

/// Sends units until there are none any more.
async fn pass(units: &mut mpsc::Receiver<Result<Unit, String>>, socket: &PocSocket) -> Result<(), String> {
    while let Some(unit) = units.recv().await {
        let (number, data) = unit?;
        match socket.send_unit(number, Bytes::from(data), Worth::default()).await {
            Ok(_) => (),
            Err(SendError::Closed) => return Err(closed(socket).await),
            Err(error) => return Err(error.to_string()),
        }
    }
    Ok(())
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
