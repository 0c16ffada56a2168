//! A relay in this process, from its start to a signal, or to the end of something without which it cannot go on.

use std::convert::Infallible;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use outflow_config::{Config, Log as LogConfig, LogFormat};
use outflow_control::{Control, Ended, Front, LogState, Relay, hand_over};
use outflow_engine::system::{Part, give_up_privileges, keep_privileges};
use outflow_handover::Line;
use outflow_log::Log;
use outflow_privilege::apart;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::systemd::Systemd;
use crate::{fail, helper, starter, status};

/// The status of a process that ends because something in it has failed (EX_SOFTWARE of sysexits.h).
const FAILED: u8 = 70;

/// A relay whose drain is over, and that has not ended by then, is aborted: longer than the limits of all its parts.
const ENDS_WITHIN: Duration = Duration::from_secs(6);

/// How long peers have to take their last answers and to close their connections.
const CONNECTIONS_END_WITHIN: Duration = Duration::from_millis(500);

/// How often it is looked whether they have.
const CONNECTIONS_LOOK: Duration = Duration::from_millis(5);

/// How long calls that do not yield have to end.
const CALLS_END_WITHIN: Duration = Duration::from_millis(500);

/// How often signals are looked for once there was one.
const SIGNAL_LOOK: Duration = Duration::from_millis(100);

/// What is shown while the relay runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// Nothing but the log.
    None,
    /// A line that is kept up to date; where standard error is no terminal, one every ten seconds.
    Line,
}

/// Runs a relay with these protocols until a signal ends it. `ready` is called when it listens. To be called before other
/// threads run.
pub fn serve(
    loaded: Loaded,
    fronts: Vec<Arc<dyn Front>>,
    status: Status,
    ready: impl FnOnce() -> Result<(), String>,
) -> ExitCode {
    // It has what this process has now.
    let starter = starter::start();
    let log = match start_log(&loaded.config.log) {
        Ok(log) => log,
        Err(error) => return fail(error),
    };
    if let Err(error) = starter {
        tracing::warn!(%error, "the relay cannot be upgraded: its starter cannot be started");
    }
    until_ended(&log, loaded, fronts, status, ready)
}

/// Gives up what no part of a relay needs, and starts to log to standard error, as configured. To be called before
/// other threads run.
///
/// # Errors
/// The system refuses a thread or a descriptor, or does not let privileges be given up.
fn start_log(config: &LogConfig) -> Result<Log, String> {
    let helped = helper::start();
    outflow_privilege::confine().map_err(|error| error.to_string())?;
    let level = config.level.as_str();
    // What NATS's client says, the directory says in its own words.
    let filter = format!("warn,async_nats=off,outflow={level}");
    let log = apart(Log::to_standard_error).flatten();
    let log = log.map_err(|error| format!("the log cannot be started: {error}"))?;
    log.install(filter.parse().expect("levels have their usual names"), config.format == LogFormat::Json);
    if let Err(error) = helped {
        tracing::warn!(%error, "threads keep CAP_NET_ADMIN: a helper that would have it cannot be started");
    }
    Ok(log)
}

/// What a relay begins with.
pub struct Loaded {
    /// What it does.
    pub config: Config,
    /// The file that it is from.
    pub path: Option<PathBuf>,
    /// Whether that may say nothing when it is loaded again.
    pub allow_empty: bool,
    /// The relay with which it goes on, if it takes over from one.
    pub from: Option<Line>,
}

fn until_ended(
    log: &Log,
    loaded: Loaded,
    fronts: Vec<Arc<dyn Front>>,
    status: Status,
    ready: impl FnOnce() -> Result<(), String>,
) -> ExitCode {
    let ended = run(log, loaded, fronts, status, ready);
    let code = match &ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(Unasked::NotStarted(_)) => ExitCode::FAILURE,
        Err(Unasked::Failed(_)) => ExitCode::from(FAILED),
    };
    if let Err(Unasked::NotStarted(why) | Unasked::Failed(why)) = ended {
        log.say(&why);
    }
    // What is lost is counted, but not asked for any more.
    log.finish();
    code
}

/// Why a relay has ended, if it was not asked to.
#[derive(Debug)]
enum Unasked {
    NotStarted(String),
    Failed(String),
}

fn run(
    log: &Log,
    Loaded { config, path, allow_empty, from }: Loaded,
    fronts: Vec<Arc<dyn Front>>,
    status: Status,
    ready: impl FnOnce() -> Result<(), String>,
) -> Result<(), Unasked> {
    let systemd = Arc::new(Systemd::of_environment());
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    // What a reload may need.
    builder.enable_all().on_thread_start(|| keep_privileges("control", Part::Control));
    let runtime =
        builder.build().map_err(|e| Unasked::NotStarted(format!("the system gives no threads: {e}")))?;
    let heard =
        heard(&runtime).map_err(|e| Unasked::NotStarted(format!("signals cannot be waited for: {e}")))?;
    let started = runtime.block_on(Relay::start(config, path, fronts, from));
    let mut relay = started.map_err(|error| Unasked::NotStarted(error.to_string()))?;
    // This thread waits from now on.
    give_up_privileges("main");
    let counting = log.clone();
    relay.control().health().set_log(move || log_state(&counting));
    if let Err(error) = ready() {
        relay.shut_down();
        return Err(Unasked::NotStarted(error));
    }
    let shown = (status == Status::Line).then(|| log.clone());
    let ended = runtime.block_on(go_on(&mut relay, &systemd, heard, allow_empty, shown));
    if let Ok(Ended::HandedOver { .. }) = ended {
        // As it is: what is dropped would say goodbye to peers that go on elsewhere.
        log.finish();
        std::process::exit(0);
    }
    systemd.say("STOPPING=1");
    let door = relay.control().door().clone();
    let left = relay.shut_down();
    if let Err(why) = ended {
        // All that peers can do now is to come back, and that the sooner the sooner this is over.
        runtime.shutdown_background();
        return Err(Unasked::Failed(why));
    }
    runtime.block_on(connections_end(|| door.counts().open));
    // Connections that control still holds end with the runtime.
    runtime.shutdown_timeout(CALLS_END_WITHIN);
    if left.is_empty() {
        return Ok(());
    }
    Err(Unasked::Failed(format!(
        "these did not end, or not well: {}; the process ends without them",
        left.join(", ")
    )))
}

/// Obeys signals until the relay has ended, or nothing goes on by this process any more. A status line goes by `shown`.
async fn go_on(
    relay: &mut Relay,
    systemd: &Arc<Systemd>,
    heard: Heard,
    allow_empty: bool,
    shown: Option<Log>,
) -> Result<Ended, String> {
    let control = relay.control().clone();
    let shown = shown.map(|log| tokio::spawn(status::show(control.clone(), log)));
    let watched = tokio::spawn(systemd.clone().watch(control.clone()));
    let quiet = || shown.iter().chain([&watched]).for_each(tokio::task::JoinHandle::abort);
    let ending = async {
        let ended = match relay.ended().await {
            // Another supervisor would take the end of this process for that of the relay.
            Err(fatal) if systemd.follows() => relay.recover(fatal).await,
            ended => ended,
        };
        let ended = ended.map_err(|fatal| fatal.to_string())?;
        if let Ended::HandedOver { pid } = ended {
            quiet();
            systemd.say(&format!("MAINPID={pid}"));
            linger(relay).await;
        }
        Ok(ended)
    };
    let ended = tokio::select! {
        Err(error) = signals(&control, systemd, heard, allow_empty) => {
            Err(format!("signals cannot be waited for: {error}"))
        }
        ended = ending => ended,
    };
    quiet();
    ended
}

/// Of a relay that goes on in another process: waits until nothing goes on by this one any more, or until it was told to
/// end and the time of that is over.
async fn linger(relay: &mut Relay) {
    let control = relay.control().clone();
    let told = async {
        control.health().ending().begun().await;
        tokio::time::sleep(control.config().limits.drain).await;
    };
    tokio::select! {
        () = relay.lingers() => {}
        () = told => {}
    }
    connections_end(|| control.door().counts().open).await;
}

/// Gives peers a while to take their last answers and to close their connections; `open` says how many there are.
async fn connections_end(open: impl Fn() -> u64) {
    let until = Instant::now() + CONNECTIONS_END_WITHIN;
    while open() > 0 && Instant::now() < until {
        tokio::time::sleep(CONNECTIONS_LOOK).await;
    }
}

fn log_state(log: &Log) -> LogState {
    let counts = log.counts();
    LogState {
        written: counts.written,
        lost: counts.lost,
        left_out: counts.left_out,
        write_errors: counts.write_errors,
    }
}

/// Signals that do not end the relay, when they come while it starts neither.
struct Heard {
    /// SIGHUP has the file loaded again.
    reload: Signal,
    /// SIGUSR2 has the relay go on as another process.
    upgrade: Signal,
}

/// What hears them from now on.
fn heard(runtime: &Runtime) -> std::io::Result<Heard> {
    let _within = runtime.enter();
    Ok(Heard { reload: signal(SignalKind::hangup())?, upgrade: signal(SignalKind::user_defined2())? })
}

/// Obeys signals. The first one that says to end begins a drain as it is configured, another one ends that.
async fn signals(
    control: &Control,
    systemd: &Systemd,
    mut heard: Heard,
    allow_empty: bool,
) -> std::io::Result<Infallible> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    end_at_last(Signals::new([SIGTERM, SIGINT])?, control.clone())?;
    systemd.say_ready();
    let mut is_first = true;
    loop {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
            _ = heard.reload.recv() => {
                // Not waited for: it may take long, and the relay can be told to end meanwhile.
                drop(tokio::spawn(reload(control.clone(), allow_empty)));
                continue;
            }
            _ = heard.upgrade.recv() => {
                drop(tokio::spawn(upgrade(control.clone())));
                continue;
            }
        }
        let time = if std::mem::take(&mut is_first) { control.config().limits.drain } else { Duration::ZERO };
        if !time.is_zero() {
            let within_us = (time + ENDS_WITHIN).as_micros();
            systemd
                .say(&format!("EXTEND_TIMEOUT_USEC={within_us}\nSTATUS=ends when its receivers have left"));
        }
        control.health().ending().begin(time);
    }
}

async fn reload(control: Control, allow_empty: bool) {
    if let Err(error) = control.reload(allow_empty).await {
        tracing::error!(%error, "the configuration was not reloaded; nothing has changed");
    }
}

async fn upgrade(control: Control) {
    // The log tells what came of it.
    let _ = hand_over(&control).await;
}

/// Aborts the process a while after its drain should be over, whatever hangs in it: the control plane, too.
fn end_at_last(mut signals: Signals, control: Control) -> std::io::Result<()> {
    let wait = move || {
        if signals.forever().next().is_none() {
            return;
        }
        let mut until = Instant::now() + control.config().limits.drain + ENDS_WITHIN;
        while Instant::now() < until {
            std::thread::sleep(SIGNAL_LOOK);
            if signals.pending().next().is_some() {
                until = until.min(Instant::now() + ENDS_WITHIN);
            }
        }
        tracing::error!("the relay did not end when it was told to, and is aborted");
        std::process::abort();
    };
    std::thread::Builder::new().name("end".to_owned()).spawn(wait).map(drop)
}

#[cfg(test)]
mod tests {
    use outflow_control::{Started, Task};

    use super::*;

    /// A protocol with a mistake in it.
    #[derive(Debug)]
    struct Mistaken;

    async fn mistake() {
        panic!("on purpose");
    }

    impl Front for Mistaken {
        fn start(&self, _: Control) -> Started {
            let task: Task<()> = Box::pin(mistake());
            Box::pin(async { Ok(vec![task]) })
        }
    }

    #[test]
    fn a_relay_of_which_a_task_panics_ends_with_the_reason_and_a_status_that_says_so() {
        let written = tempfile::NamedTempFile::new().expect("a file");
        let log = Log::to(written.reopen().expect("the same file"), false).expect("started");
        let fronts: Vec<Arc<dyn Front>> = vec![Arc::new(Mistaken)];
        let text = "[listen]\nrtp_ports = \"46900-46999\"\n";
        let config = Config::parse(text, "test", &outflow_control::protocols(&fronts));
        let config = config.unwrap_or_else(|errors| panic!("{errors}"));
        let loaded = Loaded { config, path: None, allow_empty: false, from: None };
        let code = until_ended(&log, loaded, fronts, Status::None, || Ok(()));
        assert_eq!(code, ExitCode::from(FAILED));
        let text = std::fs::read_to_string(written.path()).expect("it was written");
        assert!(text.contains("Mistaken has ended (a panic: on purpose)"), "{text}");
    }
}
