//! `outflow element`

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use outflow_plugin::{Lang, scaffold};
use outflow_serve::fail;

/// Begins a new element: a plug-in in WebAssembly
///
/// Writes a project that builds, with a test and a page that says how. What is built stands in the
/// configuration as element = "wasm", file = "NAME.wasm".
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  outflow element new thinner --lang go\n  \
                        outflow element new mark --lang rust --into plugins/mark")]
pub(crate) struct Element {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Writes the project
    New {
        /// Its name: small letters, digits and '-'
        name: String,
        /// The language: rust, go, c or js
        #[arg(long, value_parser = language)]
        lang: Lang,
        /// The folder, which is made if need be; the name's if left out
        #[arg(long, value_name = "FOLDER")]
        into: Option<PathBuf>,
    },
}

fn language(text: &str) -> Result<Lang, String> {
    Lang::find(text).ok_or_else(|| {
        let all: Vec<_> = Lang::ALL.iter().map(|lang| lang.as_str()).collect();
        format!("possible are {}", all.join(", "))
    })
}

impl Element {
    pub(crate) fn run(self) -> ExitCode {
        let What::New { name, lang, into } = self.what;
        let into = into.unwrap_or_else(|| PathBuf::from(&name));
        match scaffold(&name, lang, &into) {
            Ok(files) => {
                files.iter().for_each(|file| println!("{}", file.display()));
                eprintln!("written; {} says how to build and test it", into.join("README.md").display());
                ExitCode::SUCCESS
            }
            Err(error) => fail(error),
        }
    }
}
