//! The relay over pion: built by Go, where that is installed.

use anyhow::Result;
use outflow_labs::bench::SOURCE_PORT;
use outflow_labs::net::{RELAY_IN, RELAY_OUT};
use outflow_labs::pion;
use outflow_labs::process::Program;
use outflow_labs::relay::HTTP_PORT;

/// Where its viewers come to.
const UDP_PORT: u16 = 8189;

pub(crate) fn program() -> Result<Program> {
    Ok(pion::program("relay")?.args([
        format!("{RELAY_IN}:{SOURCE_PORT}"),
        format!("{RELAY_OUT}:{HTTP_PORT}"),
        format!("{RELAY_OUT}:{UDP_PORT}"),
    ]))
}
