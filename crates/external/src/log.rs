//! What a program says on its standard error: read as long as it says anything, so that it never waits
//! for that; logged within bounds.

use std::io::Read;
use std::time::Instant;

use crate::limits::{LINE_BYTES_MAX, LINES_PER_SECOND};

/// Reads until nothing more can come, and gives the last line there was.
pub(crate) fn drain(program: &str, mut from: impl Read) -> String {
    let began = Instant::now();
    let mut lines = Lines::default();
    let mut log = |line: &str, left_out: u64| {
        tracing::info!(program, left_out, line, "another program says");
    };
    let mut buffer = [0; 4096];
    loop {
        match from.read(&mut buffer) {
            Ok(read) if read > 0 => lines.push(began.elapsed().as_secs(), &buffer[..read], &mut log),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Ok(_) | Err(_) => return lines.end(began.elapsed().as_secs(), &mut log),
        }
    }
}

/// Takes what is said apart into lines, of which some are logged. Progress is often written over itself,
/// with a carriage return and no end of the line: that is one, too.
#[derive(Debug, Default)]
struct Lines {
    /// The beginning of a line that has no end yet.
    begun: Vec<u8>,
    last: String,
    /// The second of the lines that were logged last, and how many there were.
    second: u64,
    logged: u32,
    /// Lines that were not logged since the last that was.
    left_out: u64,
}

impl Lines {
    /// What was said in this second. `log` gets each line to be logged, and how many before it were not.
    fn push(&mut self, second: u64, bytes: &[u8], log: &mut dyn FnMut(&str, u64)) {
        for piece in bytes.split_inclusive(|byte| matches!(byte, b'\n' | b'\r')) {
            let (text, is_whole) = match piece {
                [text @ .., b'\n' | b'\r'] => (text, true),
                text => (text, false),
            };
            let room = LINE_BYTES_MAX - self.begun.len();
            self.begun.extend_from_slice(&text[..text.len().min(room)]);
            if is_whole {
                self.line(second, log);
            }
        }
    }

    fn line(&mut self, second: u64, log: &mut dyn FnMut(&str, u64)) {
        let line = String::from_utf8_lossy(&self.begun).trim().to_owned();
        self.begun.clear();
        if line.is_empty() {
            return;
        }
        if self.second != second {
            (self.second, self.logged) = (second, 0);
        }
        if self.logged < LINES_PER_SECOND {
            self.logged += 1;
            log(&line, core::mem::take(&mut self.left_out));
        } else {
            self.left_out += 1;
        }
        self.last = line;
    }

    /// Nothing more is said. The last line is logged in any case.
    fn end(mut self, second: u64, log: &mut dyn FnMut(&str, u64)) -> String {
        self.line(second, log);
        if let Some(before) = self.left_out.checked_sub(1) {
            log(&self.last, before);
        }
        self.last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is logged of pieces that are said, with the second of each.
    fn logged(pieces: &[(u64, &[u8])]) -> (Vec<(String, u64)>, String) {
        let (mut lines, mut all) = (Lines::default(), Vec::new());
        let mut log = |line: &str, left_out| all.push((line.to_owned(), left_out));
        pieces.iter().for_each(|(second, piece)| lines.push(*second, piece, &mut log));
        let last = lines.end(pieces.last().map_or(0, |(second, _)| *second), &mut log);
        (all, last)
    }

    #[test]
    fn progress_that_is_written_over_itself_is_lines() {
        let (all, last) = logged(&[(0, b"frame=1 \rfra"), (0, b"me=2\r\n\n"), (0, b"done")]);
        let lines: Vec<_> = all.iter().map(|(line, _)| line.as_str()).collect();
        assert_eq!((lines, last.as_str()), (vec!["frame=1", "frame=2", "done"], "done"));
    }

    #[test]
    fn lines_above_the_limit_of_a_second_are_counted_and_not_logged() {
        let most = u64::from(LINES_PER_SECOND);
        let (all, last) = logged(&[(0, &b"again\n".repeat(30)), (1, b"later\n"), (1, &b"x\r".repeat(30))]);
        let left_out: u64 = all.iter().map(|(_, left_out)| left_out).sum();
        assert_eq!(all.len() as u64 + left_out, 61);
        assert_eq!(all[most as usize], ("later".to_owned(), 30 - most));
        assert_eq!(all.len() as u64, 2 * most + 1, "the last one goes in any case");
        assert_eq!(last, "x");
    }

    #[test]
    fn a_line_without_end_takes_no_more_room_than_a_line() {
        let mut lines = Lines::default();
        for _ in 0..1000 {
            lines.push(0, &[b'x'; 4096], &mut |_, _| panic!("it has no end"));
        }
        assert!(lines.begun.capacity() <= 2 * LINE_BYTES_MAX);
        assert_eq!(lines.end(0, &mut |_, _| {}).len(), LINE_BYTES_MAX);
    }
}
