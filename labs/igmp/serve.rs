//! Outflow's querier as a program of its own: a line on standard input is answered by the times that were noted
//! since the last one, as a line of JSON.

use std::io::{BufRead, BufReader, Write};
use std::process::{ChildStdin, ChildStdout};
use std::time::Duration;

use anyhow::{Context, Result};
use outflow_multicast::{Downstream, Interface, Multicast, Options, Timing, open_filter};
use outflow_routing::membership::Family;
use tokio::sync::mpsc;

/// Says that all interfaces take part.
const READY: &str = "ready";

/// Is the querier of these interfaces until standard input ends.
pub(crate) fn serve(names: &[String]) -> Result<()> {
    let (said, mut lines) = mpsc::channel(1);
    std::thread::spawn(move || {
        let lines = std::io::stdin().lines();
        lines.map_while(Result::ok).try_for_each(|_| said.blocking_send(()))
    });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let options = Options { timings: true, ..Options::default() };
        let (multicast, mut events) = Multicast::start(options, open_filter())?;
        for name in names {
            multicast.add(Downstream::new(Interface::find(Family::V4, name)?)).await?;
        }
        println!("{READY}");
        loop {
            tokio::select! {
                event = events.recv() => { event.context("the querier ended")?; }
                line = lines.recv() => {
                    let Some(()) = line else { return Ok(()) };
                    let timings = multicast.snapshot().await?.timings;
                    println!("{}", serde_json::to_string(&timings.iter().map(written).collect::<Vec<_>>())?);
                }
            }
        }
    })
}

fn written(timing: &Timing) -> [u64; 6] {
    let times = [timing.receive, timing.process, timing.update, timing.reply];
    let [receive, process, update, reply] = times.map(|time| time.as_nanos() as u64);
    [timing.packets.into(), timing.replies.into(), receive, process, update, reply]
}

/// The other end of its standard input and output.
#[derive(Debug)]
pub(crate) struct Asking {
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Asking {
    /// Waits until it is ready.
    pub(crate) fn new(input: ChildStdin, output: ChildStdout) -> Result<Self> {
        let mut asking = Asking { input, output: BufReader::new(output) };
        let line = asking.line()?;
        anyhow::ensure!(line == READY, "the querier said `{line}`");
        Ok(asking)
    }

    /// What was noted since this was last asked.
    pub(crate) fn timings(&mut self) -> Result<Vec<Timing>> {
        self.input.write_all(b"\n")?;
        let read: Vec<[u64; 6]> = serde_json::from_str(&self.line()?)?;
        Ok(read.into_iter().map(timing).collect())
    }

    fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        let length = self.output.read_line(&mut line)?;
        anyhow::ensure!(length > 0, "the querier ended");
        Ok(line.trim_end().to_owned())
    }
}

fn timing([packets, replies, receive, process, update, reply]: [u64; 6]) -> Timing {
    let [receive, process, update, reply] = [receive, process, update, reply].map(Duration::from_nanos);
    Timing { packets: packets as u32, replies: replies as u32, receive, process, update, reply }
}
