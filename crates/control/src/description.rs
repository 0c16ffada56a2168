//! Session descriptions that the configuration names.

use std::path::Path;

use outflow_rtp::sdp::Description;

use crate::limits::SDP_BYTES_MAX;

/// Reads one.
///
/// # Errors
/// Why it is none, with the name of the file in front.
pub fn session_description(file: &Path) -> Result<Description, String> {
    let wrong = |why: &dyn std::fmt::Display| format!("{}: {why}", file.display());
    let text = outflow_file::read(file, SDP_BYTES_MAX).map_err(|error| wrong(&error))?;
    outflow_rtp::sdp::parse(&text).map_err(|error| wrong(&error))
}
