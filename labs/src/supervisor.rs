//! What stands for systemd: it is told which process its program is by now (sd_notify(3)).

use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Result;

use crate::process::Program;

/// How often it is looked at what was told.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// A supervisor of one program.
#[derive(Debug)]
pub struct Supervisor {
    socket: UnixDatagram,
    path: PathBuf,
}

impl Supervisor {
    /// One that is told what there is to tell in this folder.
    pub fn new(folder: &Path) -> Result<Self> {
        let path = folder.join("notify");
        let socket = UnixDatagram::bind(&path)?;
        socket.set_nonblocking(true)?;
        Ok(Self { socket, path })
    }

    /// The same program, which tells it.
    pub fn of(&self, program: Program) -> Program {
        program.env("NOTIFY_SOCKET", &self.path.display().to_string())
    }

    /// The process that its program was said to be last, of all that it was told since it was looked at.
    pub fn main_process(&self) -> Option<u32> {
        let (mut text, mut last) = ([0; 1000], None);
        while let Ok(length) = self.socket.recv(&mut text) {
            let text = String::from_utf8_lossy(&text[..length]);
            let pid = text.lines().find_map(|line| line.strip_prefix("MAINPID=")?.parse().ok());
            last = pid.or(last);
        }
        last
    }

    /// Waits until it is told of another process, or something else is so.
    pub fn wait(&self, within: Duration, mut or: impl FnMut() -> bool) -> Option<u32> {
        let until = Instant::now() + within;
        loop {
            // What it was told before that is heard, too.
            let is_over = Instant::now() >= until || or();
            let told = self.main_process();
            if told.is_some() || is_over {
                return told;
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_process_that_was_said_last_is_known_once() -> Result<()> {
        let folder = tempfile::tempdir()?;
        let supervisor = Supervisor::new(folder.path())?;
        assert_eq!(supervisor.main_process(), None);
        let teller = UnixDatagram::unbound()?;
        teller.connect(&supervisor.path)?;
        for said in ["READY=1", "MAINPID=7", "MAINPID=12\nSTATUS=running", "STOPPING=1"] {
            teller.send(said.as_bytes())?;
        }
        assert_eq!(supervisor.wait(Duration::ZERO, || false), Some(12));
        assert_eq!(supervisor.wait(Duration::from_secs(20), || true), None);
        Ok(())
    }
}
