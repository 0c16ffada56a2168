//! The commands, one file each: its arguments, its help, and what it does.

mod api;
mod check;
mod element;
mod elements;
mod emulate;
mod file;
mod graph;
mod poc;
mod progress;
mod run;
mod sim;
mod stop;
#[cfg(test)]
mod tests;
mod token;
mod tree;
mod upgrade;
mod watch;
mod wavelet;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use outflow_serve::Demo;

/// Relays live media: one stream in, thousands of receivers out, each as fast as it can.
#[derive(Debug, Parser)]
#[command(name = "outflow", version, subcommand_required = true, arg_required_else_help = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Run(run::Run),
    Demo(Demo),
    Check(check::Check),
    Elements(elements::Elements),
    Element(element::Element),
    Emulate(Box<emulate::Emulate>),
    Graph(graph::Graph),
    Poc(poc::Poc),
    Sim(sim::Sim),
    Stop(stop::Stop),
    Token(token::Token),
    Tree(tree::Tree),
    Upgrade(upgrade::Upgrade),
    Watch(watch::Watch),
    Wavelet(wavelet::Wavelet),
}

impl Cli {
    /// Does what was asked for.
    pub(crate) fn run(self) -> ExitCode {
        match self.command {
            Command::Run(run) => run.run(),
            Command::Demo(demo) => demo.run(outflow_fronts::all()),
            Command::Check(check) => check.run(),
            Command::Elements(elements) => elements.run(),
            Command::Element(element) => element.run(),
            Command::Emulate(emulate) => emulate.run(),
            Command::Graph(graph) => graph.run(),
            Command::Poc(poc) => poc.run(),
            Command::Sim(sim) => sim.run(),
            Command::Stop(stop) => stop.run(),
            Command::Token(token) => token.run(),
            Command::Tree(tree) => tree.run(),
            Command::Upgrade(upgrade) => upgrade.run(),
            Command::Watch(watch) => watch.run(),
            Command::Wavelet(wavelet) => wavelet.run(),
        }
    }
}
