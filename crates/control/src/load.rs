//! The configuration file.

use std::path::Path;

use outflow_config::{Config, Protocols};
use outflow_engine::message::ControlError;

/// Reads and checks a configuration file of a program that has these protocols.
///
/// # Errors
/// It cannot be read, or is not valid; the text names every line that is wrong.
pub fn load(path: &Path, protocols: &Protocols) -> Result<Config, ControlError> {
    let text = std::fs::read_to_string(path).map_err(|e| {
        ControlError::Configuration(format!(
            "{}: {e}: give the path of a file that can be read",
            path.display()
        ))
    })?;
    Config::parse(&text, &path.display().to_string(), protocols)
        .map_err(|e| ControlError::Configuration(e.to_string()))
}
