//! `outflow elements`

use std::process::ExitCode;

use clap::Args;
use outflow_graph::{CATALOGUE, find};
use outflow_serve::fail;

/// Lists the elements that services are made of
///
/// Of each: what it takes and gives, its outputs, its options with their defaults, and what they are
/// for. They stand in the configuration as [streams.NAME.elements.NAME], or in the list of services
/// of a branch.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  outflow elements\n  outflow elements filter")]
pub(crate) struct Elements {
    /// Only this one
    #[arg(value_name = "ELEMENT")]
    name: Option<String>,
}

impl Elements {
    pub(crate) fn run(self) -> ExitCode {
        match &self.name {
            None => CATALOGUE.iter().for_each(|kind| println!("{}", kind.describe())),
            Some(name) => match find(name) {
                Some(kind) => print!("{}", kind.describe()),
                None => {
                    let names: Vec<_> = CATALOGUE.iter().map(|kind| kind.name).collect();
                    return fail(format!("there is no element '{name}': possible are {}", names.join(", ")));
                }
            },
        }
        ExitCode::SUCCESS
    }
}
