//! The relay over pion: built by Go, where that is installed.

use anyhow::Result;

use super::place::SOURCE_PORT;
use crate::net::{RELAY_IN, RELAY_OUT};
use crate::pion::program;
use crate::process::Program;
use crate::relay::HTTP_PORT;

/// Where its viewers come to.
const UDP_PORT: u16 = 8189;

/// Builds it; it is to listen for a stream at [`SOURCE_PORT`].
///
/// # Errors
/// Go is not there, or cannot build it.
pub fn pion() -> Result<Program> {
    Ok(program("relay")?.args([
        format!("{RELAY_IN}:{SOURCE_PORT}"),
        format!("{RELAY_OUT}:{HTTP_PORT}"),
        format!("{RELAY_OUT}:{UDP_PORT}"),
    ]))
}
