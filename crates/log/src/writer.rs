//! The thread that writes.

use std::io::{self, ErrorKind, Write};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Instant;

use outflow_media::Backoff;

use crate::bound::Bound;
use crate::limits::{FULL_AGAIN, SUMMARY_EVERY, WRITE_AGAIN};
use crate::lines::{Item, Queued};

/// Clears the line that the cursor is in, and goes to its beginning.
const CLEAR: &str = "\r\x1b[K";

/// The writing end of the queue.
pub(crate) struct Writer<W> {
    out: W,
    items: Receiver<Item>,
    queued: Arc<Queued>,
    bound: Arc<Bound>,
    again: Backoff,
    /// What is shown below all lines, as it is written there; empty where nothing is.
    status: String,
    /// Of the lines that were lost, how many the log has told of.
    told_lost: u64,
}

impl<W: Write> Writer<W> {
    pub(crate) fn new(out: W, items: Receiver<Item>, queued: Arc<Queued>, bound: Arc<Bound>) -> Self {
        Writer { out, items, queued, bound, again: WRITE_AGAIN, status: String::new(), told_lost: 0 }
    }

    /// Writes until there is nothing left that could log.
    pub(crate) fn run(mut self) {
        let mut summary_at = Instant::now() + SUMMARY_EVERY;
        loop {
            match self.items.recv_timeout(summary_at.saturating_duration_since(Instant::now())) {
                Ok(item) => self.take(item),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            if Instant::now() >= summary_at {
                summary_at = Instant::now() + SUMMARY_EVERY;
                self.sum_up();
            }
        }
    }

    fn take(&mut self, item: Item) {
        match item {
            Item::Line(line) => {
                self.queued.bytes.fetch_sub(line.len(), Ordering::Relaxed);
                let written = if self.status.is_empty() {
                    self.write(&line)
                } else {
                    let line = [CLEAR.as_bytes(), &line, self.status.as_bytes()].concat();
                    self.write(&line)
                };
                let count = if written { &self.queued.written } else { &self.queued.lost };
                count.add_one();
            }
            Item::Status(text) => {
                self.queued.has_status.store(false, Ordering::Relaxed);
                // What does not fit the terminal's width is cut off, not wrapped.
                self.status = format!("\x1b[?7l{text}\x1b[?7h");
                let text = format!("{CLEAR}{}", self.status);
                self.write(text.as_bytes());
            }
            Item::Finish(done) => {
                if !core::mem::take(&mut self.status).is_empty() {
                    self.write(CLEAR.as_bytes());
                }
                // The caller may have given up waiting.
                let _ = done.try_send(());
            }
        }
    }

    /// Writes all of it; after a failure it waits. Returns whether it was written.
    fn write(&mut self, bytes: &[u8]) -> bool {
        match write_all(&mut self.out, bytes) {
            Ok(()) => self.again.reset(),
            Err(_) => {
                self.queued.write_errors.add_one();
                std::thread::sleep(self.again.wait());
                return false;
            }
        }
        true
    }

    /// Says what is missing in the log. Like all lines, these go through the queue.
    fn sum_up(&mut self) {
        for (subject, lines) in self.bound.take_left_out() {
            tracing::warn!(subject, lines, "lines of the log were left out: too many of one kind");
        }
        let lost = self.queued.lost.get();
        let lines = lost - core::mem::replace(&mut self.told_lost, lost);
        if lines > 0 {
            tracing::warn!(lines, "lines of the log were lost: what takes the log was slow, or failed");
        }
    }
}

/// Writes all of it; a descriptor that does not block, and is full, is waited for.
fn write_all(out: &mut impl Write, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match out.write(bytes) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(written) => bytes = &bytes[written..],
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => std::thread::sleep(FULL_AGAIN),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{self, SyncSender};
    use std::sync::{Mutex, PoisonError};

    use super::*;
    use crate::Log;
    use crate::limits::{BYTES_MAX, LINES_MAX};

    /// What was written, after this many writes that failed.
    #[derive(Clone, Default)]
    struct Disk {
        failures: Arc<Mutex<u32>>,
        written: Arc<Mutex<Vec<u8>>>,
    }

    impl Disk {
        fn text(&self) -> String {
            let written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
            String::from_utf8(written.clone()).expect("UTF-8")
        }
    }

    impl Write for Disk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
            if *failures > 0 {
                *failures -= 1;
                return Err(ErrorKind::StorageFull.into());
            }
            // As little as a file may take at once.
            let some = &bytes[..bytes.len().min(7)];
            self.written.lock().unwrap_or_else(PoisonError::into_inner).extend(some);
            Ok(some.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Takes nothing until the other end is dropped.
    struct Stalled(Receiver<()>);

    impl Stalled {
        fn new() -> (Self, SyncSender<()>) {
            let (end, stalled) = mpsc::sync_channel(0);
            (Stalled(stalled), end)
        }
    }

    impl Write for Stalled {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let _ = self.0.recv();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_disk_that_was_full_gets_the_lines_that_come_when_there_is_room() {
        let disk = Disk { failures: Arc::new(Mutex::new(2)), ..Disk::default() };
        let log = Log::to(disk.clone(), false).expect("started");
        for line in ["one", "two", "three", "four"] {
            log.say(line);
        }
        while !log.finish() {}
        assert_eq!(disk.text(), "three\nfour\n");
        let counts = log.counts();
        assert_eq!((counts.written, counts.lost, counts.write_errors), (2, 2, 2));
    }

    #[test]
    fn lines_that_find_the_queue_full_are_lost_and_counted() {
        let (stalled, end) = Stalled::new();
        let log = Log::to(stalled, false).expect("started");
        let all = 3 * LINES_MAX as u64;
        for _ in 0..all {
            log.say("a line");
        }
        let lost = log.counts().lost;
        // The one that is being written is no longer in the queue.
        assert!((all - LINES_MAX as u64 - 1..=all - LINES_MAX as u64).contains(&lost), "{lost}");
        assert!(!log.finish(), "nothing is written");
        drop(end);
        while !log.finish() {}
        assert_eq!(log.counts().written + log.counts().lost, all);
        log.say("another line");
        assert!(log.finish(), "it goes on");
        assert_eq!(log.counts().lost, lost);
    }

    #[test]
    fn few_long_lines_fill_the_queue_too() {
        let (stalled, _end) = Stalled::new();
        let log = Log::to(stalled, false).expect("started");
        let long = "x".repeat(BYTES_MAX / 4);
        for _ in 0..10 {
            log.say(&long);
        }
        assert!(log.counts().lost >= 6, "{:?}", log.counts());
    }

    #[test]
    fn a_status_is_shown_below_all_lines_and_gone_at_the_end() {
        let disk = Disk::default();
        let log = Log::to(disk.clone(), true).expect("started");
        log.show_status("up");
        log.say("a line");
        assert!(log.finish());
        let shown = "\x1b[?7lup\x1b[?7h";
        assert_eq!(disk.text(), format!("{CLEAR}{shown}{CLEAR}a line\n{shown}{CLEAR}"));
    }
}
