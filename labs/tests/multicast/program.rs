//! A program on a host that says levels by reports, as a relay does upstream, and answers when it is asked.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Instant;

use super::*;

/// It ends without a word when this is dropped.
pub(super) struct LevelProgram {
    levels: Option<Sender<Level>>,
    thread: Option<JoinHandle<()>>,
}

impl LevelProgram {
    /// One that has said nothing yet.
    pub(super) fn start(host: &Namespace) -> Result<Self> {
        let (interface, kernel) =
            host.run(|| anyhow::Ok((Interface::find("eth0")?, Routing::open(None)?)))?;
        // Without this its socket hears no queries of groups that the kernel is no member of.
        kernel.add_vif(0, interface.index)?;
        let (levels, said) = channel();
        let thread = std::thread::spawn(move || {
            let start = Instant::now();
            let mut members = Host::new(Time::ZERO, HostSettings::new(interface.link(), 1));
            let mut buffer = vec![0; 2048];
            loop {
                let level = said.recv_timeout(Duration::from_millis(2));
                let now = Time::ZERO + start.elapsed();
                match level {
                    Ok(level) => members.set(now, GROUP.into(), Interest::all(level)).expect("it is a group"),
                    Err(RecvTimeoutError::Timeout) => members.handle_timeout(now),
                    Err(RecvTimeoutError::Disconnected) => return,
                }
                while let Ok(received) = kernel.receive(&mut buffer) {
                    members.handle_packet(now, &buffer[..received.length]);
                }
                let mut packet = Vec::new();
                while let Some(IpAddr::V4(to)) = members.poll_transmit(&mut packet) {
                    kernel.send(&packet, to, interface.index).expect("a way out");
                }
            }
        });
        Ok(LevelProgram { levels: Some(levels), thread: Some(thread) })
    }

    pub(super) fn says(&self, level: u8) -> Result<()> {
        let levels = self.levels.as_ref().context("it runs")?;
        levels.send(Level::new(level).context("not zero")?).context("it runs")
    }
}

impl Drop for LevelProgram {
    fn drop(&mut self) {
        self.levels = None;
        let _panicked = self.thread.take().map(JoinHandle::join);
    }
}
