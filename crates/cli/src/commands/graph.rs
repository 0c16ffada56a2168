//! `outflow graph`

use std::io::{ErrorKind, Write};
use std::process::ExitCode;

use clap::Args;

use super::fail;
use super::file::ConfigFile;

/// Draws a configuration: every packet's way, in the DOT language of Graphviz
///
/// What the configuration leaves unsaid is written out: sources, rings, branches and receivers of
/// every stream, and what each connection between them carries.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  outflow graph outflow.toml > outflow.dot\n  \
                        outflow graph outflow.toml | dot -Tsvg -o outflow.svg")]
pub(crate) struct Graph {
    #[command(flatten)]
    file: ConfigFile,
}

impl Graph {
    pub(crate) fn run(self) -> ExitCode {
        let config = match self.file.load() {
            Ok(config) => config,
            Err(mistakes) => return fail(mistakes),
        };
        let graph = outflow_config::Graph::new(&config);
        match std::io::stdout().write_all(graph.to_string().as_bytes()) {
            // Whoever reads may have seen enough.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => ExitCode::SUCCESS,
            Err(error) => fail(format!("the graph cannot be written: {error}")),
            Ok(()) => ExitCode::SUCCESS,
        }
    }
}
