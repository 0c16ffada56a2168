//! A relay in this process, from its start to a signal.

use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use outflow_config::{Config, Log, LogFormat};
use outflow_control::{Control, Relay};
use outflow_engine::message::RelayState;
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use super::failure::fail;

/// What is shown while the relay runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Status {
    /// Nothing but the log.
    None,
    /// A line that is kept up to date; where standard error is no terminal, one every ten seconds.
    Line,
}

/// Starts to log to standard error, as configured.
pub(super) fn start_log(log: &Log) {
    let level = log.level.as_str();
    // What NATS's client says, the directory says in its own words.
    let filter = format!("warn,async_nats=off,outflow={level}");
    let filter: Targets = filter.parse().expect("levels have their usual names");
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    let registry = tracing_subscriber::registry();
    match log.format {
        LogFormat::Text => {
            let lines = lines.with_ansi(std::io::stderr().is_terminal()).with_target(false);
            registry.with(lines).with(filter).init();
        }
        LogFormat::Json => registry.with(lines.json().flatten_event(true)).with(filter).init(),
    }
}

/// Runs a relay until a signal ends it. `ready` is called when it listens. `allow_empty`: a reload may remove every
/// stream.
pub(super) fn until_ended(
    config: Config,
    path: Option<PathBuf>,
    allow_empty: bool,
    status: Status,
    ready: impl FnOnce() -> Result<(), String>,
) -> ExitCode {
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return fail(format!("the system gives no threads: {error}")),
    };
    let relay = match runtime.block_on(Relay::start(config, path, outflow_fronts::all())) {
        Ok(relay) => relay,
        Err(error) => return fail(error),
    };
    if let Err(error) = ready() {
        relay.shut_down();
        return fail(error);
    }
    let ended = runtime.block_on(async {
        let shown = (status == Status::Line).then(|| tokio::spawn(show(relay.control().clone())));
        let ended = signals(relay.control(), allow_empty).await;
        if let Some(shown) = shown {
            shown.abort();
        }
        ended
    });
    relay.shut_down();
    // Connections that control still holds end with the runtime.
    runtime.shutdown_timeout(Duration::from_millis(500));
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(format!("signals cannot be waited for: {error}")),
    }
}

/// Obeys signals until one says to end.
async fn signals(control: &Control, allow_empty: bool) -> std::io::Result<()> {
    let mut hangup = signal(SignalKind::hangup())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    loop {
        tokio::select! {
            _ = terminate.recv() => return Ok(()),
            _ = interrupt.recv() => return Ok(()),
            _ = hangup.recv() => {
                if let Err(error) = control.reload(allow_empty).await {
                    tracing::error!(%error, "the configuration was not reloaded; nothing has changed");
                }
            }
        }
    }
}

/// Keeps the status line up to date.
async fn show(control: Control) {
    const BETWEEN_LINES: u32 = 20;
    let mut states = control.watch();
    let bar = ProgressBar::new_spinner();
    if let Ok(style) = ProgressStyle::with_template("{spinner} {wide_msg}") {
        bar.set_style(style);
    }
    let mut shown = 0;
    // The first snapshot is older than the streams.
    if states.changed().await.is_err() {
        return;
    }
    while states.changed().await.is_ok() {
        let line = line(&states.borrow_and_update().clone());
        if !bar.is_hidden() {
            bar.set_message(line);
            bar.tick();
        } else if shown % BETWEEN_LINES == 0 {
            eprintln!("{line}");
        }
        shown += 1;
    }
}

/// The state in one line.
fn line(state: &RelayState) -> String {
    let streams = &state.streams;
    let up = streams.iter().filter(|stream| stream.source.up).count();
    let receivers: usize = streams.iter().map(|stream| stream.receivers.len()).sum();
    let incoming: u64 = streams.iter().map(|stream| stream.source.bps).sum();
    let outgoing: u64 = streams.iter().map(|stream| stream.out_bps).sum();
    format!(
        "{up} of {} streams up · {receivers} receivers · in {} · out {} · {} · CPU {:.1} %",
        streams.len(),
        rate(incoming),
        rate(outgoing),
        drops(state),
        state.cpu_percent
    )
}

fn drops(state: &RelayState) -> String {
    let mut sum = std::collections::BTreeMap::new();
    for stream in &state.streams {
        for (reason, packets) in stream.source.drops.iter().chain(&stream.out_drops) {
            *sum.entry(*reason).or_insert(0) += packets;
        }
    }
    if sum.is_empty() {
        return "nothing dropped".to_owned();
    }
    let parts: Vec<_> = sum.iter().map(|(reason, packets)| format!("{packets} {reason}")).collect();
    format!("dropped: {}", parts.join(", "))
}

fn rate(bps: u64) -> String {
    match bps {
        0..1_000_000 => format!("{:.0} kbit/s", bps as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.2} Mbit/s", bps as f64 / 1e6),
        _ => format!("{:.2} Gbit/s", bps as f64 / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use outflow_engine::message::StreamState;

    use super::*;

    #[test]
    fn the_line_sums_up_all_streams() {
        let mut stream = StreamState { out_bps: 2_500_000, ..StreamState::default() };
        stream.source.up = true;
        stream.source.bps = 850_000;
        stream.out_drops.insert("slow-sink", 3);
        let other = StreamState { out_drops: [("slow-sink", 4)].into(), ..StreamState::default() };
        let state = RelayState { streams: vec![stream, other], cpu_percent: 1.25, ..RelayState::default() };
        assert_eq!(
            line(&state),
            "1 of 2 streams up · 0 receivers · in 850 kbit/s · out 2.50 Mbit/s · dropped: 7 slow-sink · CPU 1.2 %"
        );
    }
}
