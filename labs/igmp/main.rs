//! How soon does a router answer? From an IGMP message on the wire to the answer on the wire, of Outflow's
//! querier and of FRR's pimd, in turns, each with a link and a processor's turn of the same kind.
//!
//! Two exchanges. *Leave*: the only member of a group says that it leaves (IGMPv2), the router asks for others
//! (a query of the group). *Election*: a router with a higher address asks, and a member leaves directly behind
//! it. No RFC has a router answer a query that loses the election (RFC 3376 section 6.6.2); that it goes on as
//! the querier is what can be seen, and the time is from the query that loses to the one of the group.
//!
//! `exchanges` of each kind are tried with each router. Times are of those that were answered; how many were not
//! is `unanswered`, and more than a tenth of a round is a measurement that failed.

mod exchange;
mod frr;
mod rounds;
mod scene;
mod serve;

use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::Parser;
use outflow_labs::figures::{Options, conclude, progress};
use outflow_labs::net::cannot_make_namespaces;
use outflow_labs::process::{be_preferred, keep_to_cpu};
use serde_json::{Value, json};

use exchange::Kind;
use rounds::{Round, figures};
use scene::{CPU, Scene};

/// What the lab can do.
#[derive(Debug, Parser)]
struct Arguments {
    #[command(flatten)]
    options: Options,
    /// Be the querier of these interfaces, instead: what the lab starts in a namespace
    #[arg(long, hide = true, value_name = "INTERFACE", num_args = 1..)]
    serve: Vec<String>,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if arguments.serve.is_empty() {
        return conclude("igmp", lab(&arguments.options));
    }
    match serve::serve(&arguments.serve) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("igmp: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn lab(options: &Options) -> Result<Value> {
    if let Some(why) = cannot_make_namespaces().or_else(frr::is_missing) {
        bail!("{why}");
    }
    let exchanges = if options.quick { 200 } else { 1000 };
    keep_to_cpu(CPU)?;
    be_preferred();
    let mut outflow = Scene::outflow()?;
    let mut frr = Scene::frr()?;
    let mut measured = [Vec::new(), Vec::new()];
    let rounds = exchanges / rounds::EXCHANGES;
    for round in 0..rounds {
        for (kind, measured) in [Kind::Leave, Kind::Election].into_iter().zip(&mut measured) {
            let ours = Round::measure(&mut outflow, kind)?;
            let theirs = Round::measure(&mut frr, kind)?;
            progress(format!("round {} of {rounds}, {kind:?}: Outflow {ours}, FRR {theirs}", round + 1));
            measured.push((ours, theirs));
            // What this round has the routers do later is over before the next one.
            std::thread::sleep(rounds::APART);
        }
    }
    let [leave, election] = measured.map(|measured| figures(&measured));
    let mut all = leave;
    all["election"] = election;
    all["exchanges"] = json!(rounds * rounds::EXCHANGES);
    all["c_daemon"] = json!(frr::version()?);
    Ok(all)
}
