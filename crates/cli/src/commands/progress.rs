//! How long work shows that it goes on.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// How often it moves.
const REFRESH: Duration = Duration::from_millis(250);

/// A line on standard error that is kept up to date, if that is a terminal.
pub(super) fn line() -> ProgressBar {
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    let style = ProgressStyle::with_template("{spinner} {msg}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
    bar.enable_steady_tick(REFRESH);
    bar
}
