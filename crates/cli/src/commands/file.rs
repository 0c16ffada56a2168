//! The configuration file that a command is given.

use std::io::Read;
use std::path::{Path, PathBuf};

use clap::Args;
use outflow_config::Config;

/// A configuration file.
#[derive(Debug, Args)]
pub(crate) struct ConfigFile {
    /// Configuration file (TOML), or - for standard input
    #[arg(value_name = "FILE")]
    path: PathBuf,
}

impl ConfigFile {
    /// Its name for messages.
    pub(crate) fn name(&self) -> String {
        if self.is_input() { "standard input".to_owned() } else { self.path.display().to_string() }
    }

    /// Reads and checks it.
    ///
    /// # Errors
    /// What is wrong and what to do, for people.
    pub(crate) fn load(&self) -> Result<Config, String> {
        let text = if self.is_input() {
            let mut text = String::new();
            std::io::stdin().read_to_string(&mut text).map(|_| text)
        } else {
            std::fs::read_to_string(&self.path)
        };
        let name = self.name();
        let text = text.map_err(|error| format!("{name}: {error}: give a file that can be read, or -"))?;
        Config::parse(&text, &name, &outflow_fronts::protocols()).map_err(|errors| errors.to_string())
    }

    fn is_input(&self) -> bool {
        self.path == Path::new("-")
    }
}
