//! The source: the same packets at the same pace until stopped.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::Result;
use outflow_labs::media::{Pulse, Pulses};
use outflow_labs::net::{Namespace, RELAY_IN};
use outflow_labs::process::be_preferred;

/// Between two looks at whether to stop.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Sends from a thread.
pub(crate) struct Source {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<u32>,
}

impl Source {
    pub(crate) fn start(namespace: &Namespace, port: u16, pulses: Pulses) -> Result<Self> {
        let mut pulse = Pulse::new(namespace, SocketAddr::from((RELAY_IN, port)), pulses)?;
        let stop = Arc::new(AtomicBool::new(false));
        let theirs = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            // What delays the source would look like a gap.
            be_preferred();
            // Where that is refused, packets come in larger groups.
            let _ = nix::sys::prctl::set_timerslack(1);
            let mut sent = 0;
            while !theirs.load(Ordering::Relaxed) {
                sent += pulse.run(LOOK_EVERY) as u32;
            }
            sent
        });
        Ok(Source { stop, thread })
    }

    /// Stops; how many packets were sent, which were numbered from 0.
    pub(crate) fn stop(self) -> u32 {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().expect("it does not panic")
    }
}
