//! Files that these commands read and write, or standard input and output, and how far they have got.

use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::Path;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

pub(super) fn is_standard(path: &Path) -> bool {
    path == Path::new("-")
}

/// A file's name for messages.
pub(super) fn name(path: &Path) -> String {
    if is_standard(path) { "standard input".to_owned() } else { path.display().to_string() }
}

/// Opens a file, or standard input.
pub(super) fn input(path: &Path) -> Result<Box<dyn BufRead + Send>, String> {
    if is_standard(path) {
        return Ok(Box::new(BufReader::new(io::stdin())));
    }
    let file = File::open(path).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(Box::new(BufReader::new(file)))
}

/// Makes a file, or takes standard output.
pub(super) fn output(path: &Path) -> Result<Box<dyn Write>, String> {
    if is_standard(path) {
        return Ok(Box::new(BufWriter::new(io::stdout())));
    }
    let file = File::create(path).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(Box::new(BufWriter::new(file)))
}

pub(super) fn cannot_write(error: io::Error) -> String {
    format!("cannot write: {error}")
}

/// Shows how far it has got, on standard error.
pub(super) fn progress() -> ProgressBar {
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    let style = ProgressStyle::with_template("{spinner} {pos} frames · {per_sec} · {msg}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
    bar
}
