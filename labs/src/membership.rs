//! A program on a host that says levels by reports of IGMPv3 or MLDv2 (RFC 9279), as a relay does upstream, and answers
//! when it is asked. It receives nothing: players of the host do, whose kernel says no levels.

use std::net::IpAddr;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use outflow_media::Time;
use outflow_multicast::Interface;
use outflow_multicast::sys::{Listener, Routing};
use outflow_routing::Level;
use outflow_routing::membership::{Family, Host, HostSettings, Interest};

use crate::net::Namespace;

/// How often it looks for queries.
const LOOK: Duration = Duration::from_millis(2);

/// A group, and the level that is wanted of it from now on.
type Wish = (IpAddr, Option<Level>);

/// It ends without a word when this is dropped.
pub struct LevelProgram {
    wishes: Option<Sender<Wish>>,
    thread: Option<JoinHandle<Result<()>>>,
}

impl LevelProgram {
    /// One that has said nothing yet, on `eth0` of a host.
    pub fn start(host: &Namespace, family: Family) -> Result<Self> {
        let (ends, interface) = host.run(|| {
            let interface = Interface::find(family, "eth0")?;
            let ends = Ends { hears: Listener::open(family)?, speaks: Routing::open(family, None)? };
            // The kernel may be no member of what it says.
            ends.hears.add(interface.index)?;
            anyhow::Ok((ends, interface))
        })?;
        let (wishes, said) = channel();
        let thread = std::thread::spawn(move || speak(&interface, &ends, &said));
        Ok(LevelProgram { wishes: Some(wishes), thread: Some(thread) })
    }

    /// Wants a level of a group from now on, or nothing.
    pub fn says(&self, group: impl Into<IpAddr>, level: Option<u8>) -> Result<()> {
        let level = level.map(|level| Level::new(level).context("levels are 1 to 127")).transpose()?;
        let wishes = self.wishes.as_ref().context("it runs")?;
        wishes.send((group.into(), level)).context("the program that says levels has ended")
    }
}

impl Drop for LevelProgram {
    fn drop(&mut self) {
        self.wishes = None;
        if let Some(Ok(Err(error))) = self.thread.take().map(JoinHandle::join) {
            eprintln!("the program that says levels had failed: {error:#}");
        }
    }
}

/// Its sockets.
struct Ends {
    hears: Listener,
    speaks: Routing,
}

fn speak(interface: &Interface, ends: &Ends, wishes: &Receiver<Wish>) -> Result<()> {
    let start = Instant::now();
    let mut members = Host::new(Time::ZERO, HostSettings::new(interface.link(), 1));
    let mut buffer = vec![0; 2048];
    let mut packet = Vec::new();
    loop {
        let wish = wishes.recv_timeout(LOOK);
        let now = Time::ZERO + start.elapsed();
        match wish {
            Ok((group, level)) => {
                let interest = level.map_or(Interest::nothing(), Interest::all);
                members.set(now, group, interest).map_err(|_| anyhow!("{group} is no group"))?;
            }
            Err(RecvTimeoutError::Timeout) => members.handle_timeout(now),
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
        }
        while let Ok(received) = ends.hears.receive(&mut buffer) {
            members.handle_packet(now, &buffer[..received.length.min(buffer.len())]);
        }
        while let Some(to) = members.poll_transmit(&mut packet) {
            ends.speaks.send(&packet, to, interface.index)?;
        }
    }
}
