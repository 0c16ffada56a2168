//! What the host keeps of a plug-in: its limits, what it logs, and what it is given.

use outflow_media::Time;
use wasmtime::ResourceLimiter;

use super::parts::Parts;
use crate::limits::{
    ERROR_BYTES_MAX, LOG_LINE_BYTES_MAX, LOG_LINES_PER_SECOND, PARTS_MAX, TABLE_ELEMENTS_MAX,
};

/// What the host keeps of a plug-in.
#[derive(Debug)]
pub(crate) struct Guest {
    now: Time,
    memory_bytes: usize,
    memory_bytes_max: usize,
    /// It wanted more than it may have.
    wanted: Option<usize>,
    /// The second of the lines that were logged last, how many there were, and how many were not.
    logged: (u64, u32, u64),
    /// The beginning of a line that has no end yet.
    begun: String,
    /// What it logged in the call that it is in.
    words: String,
    /// The packet that it is given part by part.
    parts: Option<Parts>,
}

impl Guest {
    /// One that begins now, and may have this much memory.
    pub(crate) const fn new(now: Time, memory_bytes_max: usize) -> Self {
        Guest {
            now,
            memory_bytes: 0,
            memory_bytes_max,
            wanted: None,
            logged: (0, 0, 0),
            begun: String::new(),
            words: String::new(),
            parts: None,
        }
    }

    /// A call begins.
    pub(crate) fn begin(&mut self, now: Time) {
        self.now = now;
        self.words.clear();
    }

    /// Bytes of its memory.
    pub(crate) const fn memory_bytes(&self) -> usize {
        self.memory_bytes
    }

    /// How much memory it wanted, and how much it may have, if that was more.
    pub(crate) fn wanted(&self) -> Option<(usize, usize)> {
        self.wanted.map(|wanted| (wanted, self.memory_bytes_max))
    }

    /// What it logged in the call that it is in.
    pub(crate) fn words(&self) -> &str {
        &self.words
    }

    /// Nanoseconds: the time of the batch.
    pub(crate) const fn now(&self) -> u64 {
        self.now.as_nanos()
    }

    /// The packet that it is given part by part, in the call that it is in.
    pub(crate) const fn parts(&mut self) -> &mut Option<Parts> {
        &mut self.parts
    }

    /// A line for the log.
    pub(crate) fn log(&mut self, line: &str) {
        let line = cut(line.trim_end(), LOG_LINE_BYTES_MAX);
        if self.words.len() + line.len() <= ERROR_BYTES_MAX {
            self.words.push_str(if self.words.is_empty() { "" } else { "; " });
            self.words.push_str(line);
        }
        let second = self.now.as_millis() / 1000;
        let (last, lines, left_out) = &mut self.logged;
        if *last != second {
            (*last, *lines) = (second, 0);
        }
        *lines += 1;
        if *lines > LOG_LINES_PER_SECOND {
            *left_out += 1;
            return;
        }
        tracing::info!(left_out = core::mem::take(left_out), "plug-in: {line}");
    }

    /// A piece of a line for the log.
    pub(crate) fn print(&mut self, text: &str) {
        let mut begun = core::mem::take(&mut self.begun);
        for piece in text.split_inclusive('\n') {
            let room = LOG_LINE_BYTES_MAX.saturating_sub(begun.len());
            begun.push_str(cut(piece, room));
            if piece.ends_with('\n') {
                self.log(&begun);
                begun.clear();
            }
        }
        self.begun = begun;
    }
}

impl ResourceLimiter for Guest {
    fn memory_growing(&mut self, current: usize, desired: usize, _: Option<usize>) -> wasmtime::Result<bool> {
        let all = self.memory_bytes + desired.saturating_sub(current);
        if all > self.memory_bytes_max {
            self.wanted = Some(all);
            wasmtime::bail!("no more memory");
        }
        self.memory_bytes = all;
        Ok(true)
    }

    fn table_growing(&mut self, _: usize, desired: usize, _: Option<usize>) -> wasmtime::Result<bool> {
        wasmtime::ensure!(
            desired <= TABLE_ELEMENTS_MAX,
            "a table of more than {TABLE_ELEMENTS_MAX} elements"
        );
        Ok(true)
    }

    fn instances(&self) -> usize {
        PARTS_MAX
    }

    fn tables(&self) -> usize {
        PARTS_MAX
    }

    fn memories(&self) -> usize {
        PARTS_MAX
    }
}

/// The beginning of a text, with at most `bytes_max` bytes.
pub(crate) fn cut(text: &str, bytes_max: usize) -> &str {
    &text[..text.floor_char_boundary(bytes_max)]
}
