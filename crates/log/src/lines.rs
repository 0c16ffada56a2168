//! The queue of lines, as threads that log see it.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, SyncSender, TrySendError};
use std::time::Instant;

use tracing_subscriber::fmt::MakeWriter;

use crate::bound::Bound;
use crate::counts::{Count, Counts};
use crate::limits::{BYTES_MAX, FINISH_AGAIN, FINISH_WITHIN, LINES_MAX};
use crate::writer::Writer;

/// What the thread that writes is to do.
#[derive(Debug)]
pub(crate) enum Item {
    /// Write this line, with its end.
    Line(Vec<u8>),
    /// Show this status below all lines.
    Status(String),
    /// Say when all before has been written.
    Finish(SyncSender<()>),
}

/// What the queue's ends have in common.
#[derive(Debug, Default)]
pub(crate) struct Queued {
    /// Bytes of lines in the queue.
    pub(crate) bytes: AtomicUsize,
    /// A status is in the queue; there is no second one.
    pub(crate) has_status: AtomicBool,
    pub(crate) written: Count,
    pub(crate) lost: Count,
    pub(crate) write_errors: Count,
}

/// The queue to the thread that writes. Nothing that puts lines into it waits.
#[derive(Debug, Clone)]
pub(crate) struct Lines {
    queue: SyncSender<Item>,
    queued: Arc<Queued>,
}

impl Lines {
    /// Starts the thread, which writes to `out`. It ends with the last clone of this.
    pub(crate) fn start(out: impl io::Write + Send + 'static, bound: Arc<Bound>) -> io::Result<Self> {
        let (queue, items) = mpsc::sync_channel(LINES_MAX);
        let queued = Arc::new(Queued::default());
        let writer = Writer::new(out, items, Arc::clone(&queued), bound);
        std::thread::Builder::new().name("log".to_owned()).spawn(move || writer.run())?;
        Ok(Lines { queue, queued })
    }

    /// Puts a line down, or counts it as lost.
    pub(crate) fn put(&self, line: &[u8]) {
        let before = self.queued.bytes.fetch_add(line.len(), Ordering::Relaxed);
        let has_room = before + line.len() <= BYTES_MAX;
        if !has_room || self.queue.try_send(Item::Line(line.to_vec())).is_err() {
            self.queued.bytes.fetch_sub(line.len(), Ordering::Relaxed);
            self.queued.lost.add_one();
        }
    }

    pub(crate) fn show_status(&self, text: &str) {
        if self.queued.has_status.swap(true, Ordering::Relaxed) {
            return;
        }
        if self.queue.try_send(Item::Status(text.to_owned())).is_err() {
            self.queued.has_status.store(false, Ordering::Relaxed);
        }
    }

    /// Waits for all that was put down, for a while.
    pub(crate) fn finish(&self) -> bool {
        let until = Instant::now() + FINISH_WITHIN;
        let (done, finished) = mpsc::sync_channel(1);
        let mut item = Item::Finish(done);
        loop {
            match self.queue.try_send(item) {
                Ok(()) => break,
                Err(TrySendError::Full(back)) if Instant::now() < until => item = back,
                Err(_) => return false,
            }
            std::thread::sleep(FINISH_AGAIN);
        }
        finished.recv_timeout(until.saturating_duration_since(Instant::now())).is_ok()
    }

    pub(crate) fn counts(&self) -> Counts {
        let Queued { written, lost, write_errors, .. } = &*self.queued;
        Counts { written: written.get(), lost: lost.get(), left_out: 0, write_errors: write_errors.get() }
    }
}

/// A line comes by one write.
impl io::Write for &Lines {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.put(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Lines {
    type Writer = &'a Lines;

    fn make_writer(&'a self) -> &'a Lines {
        self
    }
}
