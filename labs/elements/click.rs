//! Click, where there is one: the same packets through chains of its own empty element.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Result, ensure};

use super::chain::BYTES;

/// Packets of a short and of a long run: what is between them is theirs alone.
const PACKETS: [u64; 2] = [1_000_000, 11_000_000];

/// The program that is named by `CLICK`.
pub(crate) fn click() -> Option<PathBuf> {
    let click = std::env::var_os("CLICK").map(PathBuf::from);
    if click.is_none() {
        eprintln!("SKIPPED: Click (name its user-level program: CLICK=…/userlevel/click)");
    }
    click
}

/// Nanoseconds that a packet takes through `elements` elements, from a source that hands out references to
/// one and the same packet, 32 at a time, to where they are let go.
pub(crate) fn nanos_a_packet(click: &Path, elements: usize) -> Result<f64> {
    let [short, long] = PACKETS.map(|packets| run(click, elements, packets));
    Ok((long? - short?) / (PACKETS[1] - PACKETS[0]) as f64)
}

/// How long that takes, in nanoseconds.
fn run(click: &Path, elements: usize, packets: u64) -> Result<f64> {
    let source = format!("InfiniteSource(LENGTH {BYTES}, LIMIT {packets}, BURST 32, STOP true)");
    let router = format!("{source} -> {}Discard;", "Null -> ".repeat(elements));
    let began = Instant::now();
    let status = Command::new(click).args(["-e", &router]).status()?;
    ensure!(status.success(), "{} failed: {status}", click.display());
    Ok(began.elapsed().as_nanos() as f64)
}
