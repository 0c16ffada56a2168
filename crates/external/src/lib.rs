//! Another program as an element: what comes in goes to its standard input, what it writes on its
//! standard output goes on. It runs beside the path: no packet waits for it.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "this crate owns processes, threads and time"
)]

mod limits;
mod log;
mod process;
#[cfg(test)]
mod tests;

use std::any::Any;

use bytes::Bytes;
use outflow_graph::elements::external::gives_images;
use outflow_graph::elements::ppm_bytes::PpmBytes;
use outflow_graph::elements::ts_bytes::TsBytes;
use outflow_graph::{Element, Item, Settings, Tally, Unfit};
use outflow_media::{Format, Time};
use outflow_packet::DropReason;
use process::{Output, Process, Words};

use crate::limits::CHUNKS;

/// The element. Its program is started with the first packet.
#[derive(Debug)]
pub struct External {
    words: Words,
    images: bool,
    running: Option<Running>,
    made: Vec<Item>,
}

/// The program at work.
#[derive(Debug)]
struct Running {
    words: Words,
    images: bool,
    process: Process,
    bytes: Apart,
}

/// What takes apart what the program writes.
#[derive(Debug)]
enum Apart {
    Ts(Box<TsBytes>),
    Ppm(PpmBytes),
}

impl Apart {
    fn new(images: bool) -> Self {
        if images { Apart::Ppm(PpmBytes::default()) } else { Apart::Ts(Box::default()) }
    }

    fn push(&mut self, chunk: Bytes, like: &Item, out: &mut Vec<Item>, tally: &mut Tally) {
        match self {
            Apart::Ts(ts) => ts.push(chunk, like, out, tally),
            Apart::Ppm(ppm) => ppm.push(&chunk, like, out, tally),
        }
    }

    fn restart(&mut self, tally: &mut Tally) {
        match self {
            Apart::Ts(ts) => ts.restart(),
            Apart::Ppm(ppm) => ppm.restart(tally),
        }
    }
}

impl External {
    /// What the options say.
    ///
    /// # Errors
    /// They name no program, or a variable without a name.
    pub fn new(settings: &Settings) -> Result<Self, Unfit> {
        let command = settings.texts("command").unwrap_or_default().to_vec();
        if command.first().is_none_or(String::is_empty) {
            let help = "write the program and its arguments, as command = [\"ffmpeg\", …]";
            return Err(Unfit::new("the command names no program", help));
        }
        let env = settings.texts("env").unwrap_or_default().to_vec();
        if let Some(variable) = env.iter().find(|variable| variable.is_empty() || variable.starts_with('=')) {
            let help = "write \"NAME\" for what the relay has, or \"NAME=VALUE\"";
            return Err(Unfit::new(format!("\"{variable}\" in env names no variable"), help));
        }
        let (nice, memory) =
            (settings.whole("nice").unwrap_or(5), settings.size("memory").unwrap_or(4 << 30));
        let (words, images) = (Words { command, nice, memory, env }, gives_images(settings));
        Ok(External { words, images, running: None, made: Vec::new() })
    }
}

impl Element for External {
    fn bind(&mut self, input: &Format) -> Result<Format, Unfit> {
        match input {
            Format::Ts if self.images => Ok(Format::Images),
            Format::Ts => Ok(Format::Ts),
            _ => Err(Unfit::new("another program gets MPEG-TS", "put \"to-ts\" before it")),
        }
    }

    fn work(&mut self, _: Time, batch: &mut Vec<Item>, tally: &mut Tally) {
        let Self { words, images, running, made } = self;
        let Running { process, bytes, .. } = running.get_or_insert_with(|| Running {
            words: words.clone(),
            images: *images,
            process: Process::start(words),
            bytes: Apart::new(*images),
        });
        for item in batch.iter() {
            if !process.give(&item.packet.bytes) {
                tally.drop(DropReason::ContextFull);
            }
        }
        if let Some(like) = batch.last() {
            // No more at once than can wait: it may write as fast as it is read.
            for output in std::iter::from_fn(|| process.take()).take(CHUNKS) {
                match output {
                    Output::Bytes(chunk) => bytes.push(chunk, like, made, tally),
                    Output::End => bytes.restart(tally),
                }
            }
        }
        tally.drops.add(DropReason::ElementFault, process.missed());
        while let Some(what) = process.trouble() {
            tally.fail(what);
        }
        batch.clear();
        core::mem::swap(batch, made);
    }

    fn state(&mut self) -> Option<Box<dyn Any + Send>> {
        self.running.take().map(|running| Box::new(running) as Box<dyn Any + Send>)
    }

    fn resume(&mut self, state: Box<dyn Any + Send>) {
        // Another command is another program: that of before ends.
        let running = state.downcast::<Running>().ok().map(|running| *running);
        self.running = running.filter(|running| running.words == self.words && running.images == self.images);
    }
}
