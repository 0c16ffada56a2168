//! Configurations of a program that has every protocol.

mod check;
mod diff;
mod docs;
mod example;
mod graph;
mod read;

use outflow_config::{Config, ConfigErrors};

/// Reads a configuration.
fn parse(text: &str, file: &str) -> Result<Config, ConfigErrors> {
    Config::parse(text, file, &outflow_fronts::protocols())
}
