//! What both ends are told.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, ValueEnum};
use outflow_petri::service::Flow;
use outflow_poc::limits::DATAGRAM_BYTES_MAX;
use outflow_poc::packet::Code;
use outflow_poc_socket::noise::Keys;
use outflow_poc_socket::{Address, Options, PocListener, PocSocket, Security, look_up};
use tokio::signal::unix::{SignalKind, signal};

/// Arguments of both ends.
#[derive(Debug, Args)]
pub(super) struct Common {
    /// Where to: poc://HOST:PORT/RESOURCE
    #[arg(value_name = "URL")]
    pub(super) address: Address,
    /// Wait for the other end at this address, instead of looking for it there
    #[arg(long)]
    pub(super) listen: bool,
    /// What a unit is
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = Format::Ts)]
    pub(super) format: Format,
    /// Wait for missing units within this time, unless the service says otherwise ("200 ms")
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(super) latency: Option<Duration>,
    /// Encrypt, with the keys of this file (see `outflow poc key`)
    #[arg(long, value_name = "FILE", required_unless_present = "insecure")]
    key_file: Option<PathBuf>,
    /// Do not encrypt: for networks of your own
    #[arg(long, conflicts_with = "key_file")]
    insecure: bool,
    /// Bytes of a datagram at most; what the path carries is found out
    #[arg(long, value_name = "BYTES", default_value_t = 1452)]
    #[arg(value_parser = clap::value_parser!(u16).range(1200..))]
    datagram: u16,
    /// Never send less than this, whatever congestion control says, in kbit/s
    #[arg(long, value_name = "KBPS")]
    min_rate: Option<u64>,
    /// Never send more than this, in kbit/s
    #[arg(long, value_name = "KBPS")]
    max_rate: Option<u64>,
    /// Write what happened to this file in the end, as JSON
    #[arg(long, value_name = "FILE")]
    pub(super) json_stats: Option<PathBuf>,
}

/// What a unit is: how they go in and come out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// Seven packets of MPEG-TS
    Ts,
    /// A datagram of UDP
    Datagrams,
    /// A slice of MPEG-2 video, or the headers in front of a picture
    Mpeg2,
    /// What is said in front of each: its number (8 bytes), its length (4) and zeros (4), the lowest byte first
    Units,
}

impl Common {
    pub(super) fn options(&self) -> Result<Options, String> {
        let security = self.key_file.as_deref().map_or(Ok(Security::Plain), keys)?;
        let mut options = Options::new(security);
        let connection = &mut options.settings.connection;
        connection.datagram_bytes_max = usize::from(self.datagram).max(DATAGRAM_BYTES_MAX);
        if let Some(kbps) = self.min_rate {
            connection.congestion.min_bps = kbps.saturating_mul(1000);
        }
        if let Some(kbps) = self.max_rate {
            connection.congestion.max_bps = kbps.saturating_mul(1000);
        }
        Ok(options)
    }
}

/// The keys in a file.
pub(in super::super) fn keys(file: &Path) -> Result<Security, String> {
    let wrong = |error: &dyn std::fmt::Display| format!("{}: {error}", file.display());
    let text = std::fs::read_to_string(file).map_err(|error| wrong(&error))?;
    let keys: Keys = text.parse().map_err(|error| wrong(&error))?;
    Ok(Security::Keys(Arc::new(keys)))
}

fn duration(text: &str) -> Result<Duration, String> {
    outflow_config::parse_duration(text).map_err(|error| error.to_string())
}

/// Why a peer that asks for something else is refused.
const NOT_HERE: Code = Code(64);

/// Waits for a peer that asks for the resource of this address; what is there to be sent is `source`.
pub(super) async fn wait_for_peer(
    address: &Address,
    source: Option<&Flow>,
    options: Options,
) -> Result<PocSocket, String> {
    let place = look_up(address).await.map_err(|error| error.to_string())?;
    let listener = PocListener::bind(place, options).map_err(|error| format!("{address}: {error}"))?;
    loop {
        let asking = listener.accept().await.map_err(|error| error.to_string())?;
        if asking.request().resource != address.resource {
            let text = format!("there is no {} here, but {}", asking.request().resource, address.resource);
            asking.refuse(NOT_HERE, &text);
            continue;
        }
        match asking.answer(source) {
            Ok(socket) => return Ok(socket),
            Err(error) => eprintln!("{error}"),
        }
    }
}

/// Ends with the first signal that asks for it.
pub(super) async fn asked_to_end() {
    let (Ok(mut term), Ok(mut int)) = (signal(SignalKind::terminate()), signal(SignalKind::interrupt()))
    else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = term.recv() => (),
        _ = int.recv() => (),
    }
}

/// Does something in an event loop with one thread. It is a task like those that it works with: they wake it as
/// each other, without a call of the system.
pub(super) fn run(
    what: impl Future<Output = Result<(), String>> + std::marker::Send + 'static,
) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| format!("the system gives no event loop: {error}"))?;
    runtime.block_on(async { tokio::spawn(what).await.map_err(|error| error.to_string())? })
}
