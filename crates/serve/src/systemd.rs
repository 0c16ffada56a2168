//! What systemd is told of the relay (sd_notify(3)): that it is ready, that it goes on, that it ends.

use std::env;
use std::ffi::OsString;
use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::Arc;
use std::time::Duration;

use outflow_control::Control;
use tokio::sync::Notify;

/// In each period of the watchdog it is told this many times that the relay goes on.
const TIMES_A_PERIOD: u32 = 3;

/// The way to systemd, if it has started this process and wants to be told.
#[derive(Debug, Default)]
pub(crate) struct Systemd {
    socket: Option<UnixDatagram>,
    /// It ends a relay that it has not heard of for so long.
    watchdog: Option<Duration>,
    is_ready: Notify,
}

impl Systemd {
    /// What the environment of this process says.
    pub(crate) fn of_environment() -> Self {
        let Some(path) = env::var_os("NOTIFY_SOCKET") else { return Self::default() };
        match connected(&path) {
            Ok(socket) => Systemd { socket: Some(socket), watchdog: watchdog(), is_ready: Notify::new() },
            Err(error) => {
                tracing::warn!(?path, %error, "systemd cannot be told anything: NOTIFY_SOCKET leads nowhere");
                Self::default()
            }
        }
    }

    /// Whether it takes another process for the relay when it is told so.
    pub(crate) fn follows(&self) -> bool {
        self.socket.is_some()
    }

    /// Says it. If systemd does not take it at once, it is left out.
    pub(crate) fn say(&self, text: &str) {
        if let Some(socket) = &self.socket {
            let _ = socket.send(text.as_bytes());
        }
    }

    /// Says that the relay has started.
    pub(crate) fn say_ready(&self) {
        self.say("READY=1");
        self.is_ready.notify_one();
    }

    /// Says that the relay goes on, once it has started, as long as its heartbeats say so.
    pub(crate) async fn watch(self: Arc<Self>, control: Control) {
        let Some(period) = self.watchdog else { return };
        self.is_ready.notified().await;
        let mut ticks = tokio::time::interval(period / TIMES_A_PERIOD);
        loop {
            ticks.tick().await;
            match control.health().check() {
                Ok(()) => self.say("WATCHDOG=1\nSTATUS=running"),
                Err(late) => self.say(&format!("STATUS={late}")),
            }
        }
    }
}

/// A socket that does not block, connected to systemd's.
fn connected(path: &OsString) -> io::Result<UnixDatagram> {
    let address = match path.as_bytes() {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
        _ => SocketAddr::from_pathname(path)?,
    };
    let socket = UnixDatagram::unbound()?;
    socket.connect_addr(&address)?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

/// How often systemd wants to hear of this process, at least.
fn watchdog() -> Option<Duration> {
    let number = |name| env::var(name).ok()?.parse::<u64>().ok();
    let is_for_another = number("WATCHDOG_PID").is_some_and(|pid| pid != u64::from(std::process::id()));
    let period = Duration::from_micros(number("WATCHDOG_USEC")?);
    (!is_for_another && !period.is_zero()).then_some(period)
}
