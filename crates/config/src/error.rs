//! What is wrong with a configuration, and where.

use std::fmt;
use std::ops::Range;

use crate::Invalid;
use crate::limits::{ERRORS_SHOWN_MAX, SNIPPET_COLUMNS};
use crate::secret_url::veiled;

/// One mistake in a configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigError {
    /// Name of the file, as it was given.
    pub file: String,
    /// Line, counted from 1.
    pub line: usize,
    /// Column in characters, counted from 1.
    pub column: usize,
    /// What is wrong.
    pub what: String,
    /// What to do.
    pub help: String,
    /// The part of the line that is shown, and where in it how many characters are wrong.
    snippet: Snippet,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Snippet {
    text: String,
    before: usize,
    width: usize,
}

/// All mistakes that were found in a configuration, in the order of the file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct ConfigErrors(Vec<ConfigError>);

impl ConfigErrors {
    /// The mistakes, in the order of the file; at least one.
    pub fn errors(&self) -> &[ConfigError] {
        &self.0
    }
}

/// Collects mistakes while a text is read.
#[derive(Debug)]
pub(crate) struct Collector<'a> {
    file: &'a str,
    text: &'a str,
    found: Vec<(Range<usize>, Invalid)>,
}

impl<'a> Collector<'a> {
    pub(crate) fn new(file: &'a str, text: &'a str) -> Self {
        Collector { file, text, found: Vec::new() }
    }

    /// Writes down what is wrong with the bytes `span` of the text.
    pub(crate) fn add(&mut self, span: Range<usize>, invalid: Invalid) {
        self.found.push((span, invalid));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// `value` if nothing was wrong, else what was.
    pub(crate) fn finish<T>(mut self, value: T) -> Result<T, ConfigErrors> {
        if self.found.is_empty() {
            return Ok(value);
        }
        self.found.sort_by_key(|(span, _)| (span.start, span.end));
        let errors =
            self.found.iter().map(|(span, invalid)| ConfigError::locate(self.file, self.text, span, invalid));
        Err(ConfigErrors(errors.collect()))
    }
}

impl ConfigError {
    fn locate(file: &str, text: &str, span: &Range<usize>, invalid: &Invalid) -> Self {
        let start = floor_char_boundary(text, span.start);
        let line_start = text[..start].rfind('\n').map_or(0, |at| at + 1);
        let line_end = text[start..].find(['\n', '\r']).map_or(text.len(), |at| start + at);
        let end = floor_char_boundary(text, span.end).clamp(start, line_end.max(start));
        let before = text[line_start..start].chars().count();
        let width = text[start..end].chars().count().max(1);
        let skip = before.saturating_sub(SNIPPET_COLUMNS);
        let line = veiled(&text[line_start..line_end.max(start)]);
        let shown = printable(&line.chars().skip(skip).take(2 * SNIPPET_COLUMNS).collect::<String>());
        let before_shown = before - skip;
        let width = width.min(shown.chars().count().saturating_sub(before_shown).max(1));
        ConfigError {
            file: file.to_owned(),
            line: text[..line_start].bytes().filter(|byte| *byte == b'\n').count() + 1,
            column: before + 1,
            what: printable(&invalid.what),
            help: printable(&invalid.help),
            snippet: Snippet { text: shown, before: before_shown, width },
        }
    }
}

/// Control characters would move the caret, or do something to the reader's terminal.
fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

fn floor_char_boundary(text: &str, at: usize) -> usize {
    text.floor_char_boundary(at.min(text.len()))
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = self.line.to_string();
        let margin = " ".repeat(number.len());
        let Snippet { text, before, width } = &self.snippet;
        writeln!(f, "{}:{}:{}: {}", self.file, self.line, self.column, self.what)?;
        writeln!(f, "{margin} |")?;
        writeln!(f, "{number} | {text}")?;
        writeln!(f, "{margin} | {}{}", " ".repeat(*before), "^".repeat(*width))?;
        write!(f, "{margin} = {}", self.help)
    }
}

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, error) in self.0.iter().take(ERRORS_SHOWN_MAX).enumerate() {
            if index > 0 {
                f.write_str("\n\n")?;
            }
            write!(f, "{error}")?;
        }
        match self.0.len().saturating_sub(ERRORS_SHOWN_MAX) {
            0 => Ok(()),
            more => write!(f, "\n\n… and {more} more"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str, span: Range<usize>) -> String {
        let mut collector = Collector::new("a.toml", text);
        collector.add(span, Invalid::new("wrong", "do right"));
        collector.finish(()).expect_err("an error").to_string()
    }

    #[test]
    fn a_caret_stands_below_the_mistake() {
        let text = "a = 1\nring = \"8\"\n";
        assert_eq!(
            shown(text, 13..16),
            "a.toml:2:8: wrong\n  |\n2 | ring = \"8\"\n  |        ^^^\n  = do right"
        );
    }

    #[test]
    fn characters_are_counted_not_bytes() {
        assert!(shown("ä = \"ö\" # x", 5..9).starts_with("a.toml:1:5: "));
        // A span that begins inside a character is moved to its start.
        assert!(shown("ä", 1..2).starts_with("a.toml:1:1: "));
    }

    #[test]
    fn long_lines_and_spans_beyond_the_end_are_cut() {
        let long = format!("{}x{}", "a".repeat(10_000), "b".repeat(10_000));
        let text = shown(&long, 10_000..10_001);
        assert!(text.len() < 500, "{text}");
        assert!(text.contains("x"));
        shown("a", 5..9);
        shown("", 0..0);
        assert!(shown("a = [\n1,\n2]", 4..11).contains("1 | a = ["), "only the first line of several");
    }

    #[test]
    fn many_errors_are_counted_beyond_the_first() {
        let mut collector = Collector::new("a.toml", "x");
        (0..25).for_each(|_| collector.add(0..1, Invalid::new("wrong", "do right")));
        let errors = collector.finish(()).expect_err("errors");
        assert_eq!(errors.errors().len(), 25);
        assert!(errors.to_string().ends_with("… and 5 more"));
    }
}
