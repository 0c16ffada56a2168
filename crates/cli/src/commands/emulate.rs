//! `outflow emulate`

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use clap::Args;
use outflow_emulate::live::{End, Live};
use outflow_emulate::{between, link};
use outflow_file::read_text;
use outflow_rtp::sdp;
use outflow_serve::fail;
use outflow_sim::network::{EndModel, LinkModel, Network};

/// Bytes of a network or a session description. A longer one is refused.
const TEXT_BYTES_MAX: u64 = 1 << 20;

/// Runs programs behind links with a rate, a delay and losses
///
/// With --link, a program runs in a network namespace of its own. This machine is at EMULATE_HERE from there, as
/// 10.213.0.1 (and fd6f:7574:666c::1); from here the program is at 10.213.0.2. What both send each other goes through
/// links with the buffers, policies and impairments of `outflow sim`, by the same code.
///
/// FILE is a network as `outflow sim` takes it, with ends at which programs run, each in a network namespace of its own,
/// and paths between them.
///
/// It needs root (CAP_NET_ADMIN and CAP_SYS_ADMIN), ends with the programs, and leaves nothing behind.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    outflow emulate --link '20 Mbit/s, 50 ms' -- sh -c 'ffplay rtsp://$EMULATE_HERE:8554/live'\n  \
    outflow emulate --link '8 Mbit/s, 20 ms, loss 1 % bursts 30 ms' --back '1 Mbit/s, 20 ms' -- bash\n  \
    outflow emulate network.toml\n\n\
    A link is what of this is said, separated by commas: a rate ('20 Mbit/s'), a delay ('50 ms'), \
    'loss 1 %', 'loss 1 % bursts 30 ms', 'reorder 1 % by 5 ms', 'duplicate 0.1 %', 'buffer 64 kB' or \
    'buffer 100 ms', 'policy elastic', 'scheduler wrr', 'useful 200 ms'.")]
pub(crate) struct Emulate {
    /// A network with programs at its ends
    #[arg(value_name = "FILE", required_unless_present = "link", conflicts_with = "link")]
    file: Option<PathBuf>,
    /// The link to the program
    #[arg(long, value_name = "LINK", value_parser = link, requires = "command")]
    link: Option<LinkModel>,
    /// The link back; as the link to it if not given
    #[arg(long, value_name = "LINK", value_parser = link, requires = "link")]
    back: Option<LinkModel>,
    /// The session description of media that go through it, for policies that know what packets mean
    #[arg(long, value_name = "FILE")]
    sdp: Option<PathBuf>,
    /// Where chance begins; 1 if nothing is said, or that of the file
    #[arg(long, value_name = "NUMBER")]
    seed: Option<u64>,
    /// Print what came of it as JSON, as the last line on standard error
    #[arg(long)]
    json: bool,
    /// The program and its arguments
    #[arg(value_name = "COMMAND", last = true, requires = "link")]
    command: Vec<String>,
}

impl Emulate {
    pub(crate) fn run(self) -> ExitCode {
        match self.emulate() {
            Ok(code) => code,
            Err(error) => fail(error),
        }
    }

    fn emulate(&self) -> Result<ExitCode, String> {
        let (mut network, ends, lasts) = match &self.file {
            Some(file) => self.scenario(file)?,
            None => self.between()?,
        };
        network.seed = self.seed.unwrap_or(network.seed);
        let mut described = Vec::new();
        if let Some(file) = &self.sdp {
            let text = read_text(file, TEXT_BYTES_MAX).map_err(|error| error.to_string())?;
            let read = sdp::parse(text.as_bytes());
            described = read.map_err(|error| format!("{}: {error}", file.display()))?.media;
        }
        let stop = Arc::new(AtomicBool::new(false));
        for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
            signal_hook::flag::register(signal, Arc::clone(&stop))
                .map_err(|error| format!("cannot wait for signals: {error}"))?;
        }
        let mut live = Live::new(&network, &described, ends).map_err(|error| error.to_string())?;
        let report = live.run(&stop, lasts).map_err(|error| error.to_string())?;
        match self.json {
            true => eprintln!("{}", report.json()),
            false => eprint!("{}", report.words()),
        }
        let failed = live.statuses().flatten().find(|status| !status.success());
        Ok(failed.map_or(ExitCode::SUCCESS, code))
    }

    /// A program behind a link.
    fn between(&self) -> Result<(Network, Vec<End>, Option<Duration>), String> {
        let link = self.link.clone().ok_or("name a link: --link '20 Mbit/s, 50 ms'")?;
        let back = self.back.clone().unwrap_or_else(|| link.clone());
        let there = End { is_here: false, program: program(&self.command) };
        let ends = vec![End { is_here: true, program: None }, there];
        Ok((between(["here", "there"], link, back, 1), ends, None))
    }

    /// A network of a file.
    fn scenario(&self, file: &Path) -> Result<(Network, Vec<End>, Option<Duration>), String> {
        let text = read_text(file, TEXT_BYTES_MAX).map_err(|error| error.to_string())?;
        let network = Network::parse(&text).map_err(|error| format!("{}: {error}", file.display()))?;
        let end = |end: &EndModel| End { is_here: false, program: program(&end.run) };
        let (ends, lasts) = (network.ends.values().map(end).collect(), network.duration);
        Ok((network, ends, Some(lasts)))
    }
}

fn program(line: &[String]) -> Option<Command> {
    let [name, arguments @ ..] = line else { return None };
    let mut program = Command::new(name);
    program.args(arguments);
    Some(program)
}

/// That of a program; 128 and its number if a signal ended it, as shells say it.
fn code(status: std::process::ExitStatus) -> ExitCode {
    use std::os::unix::process::ExitStatusExt;

    let ended_by = status.signal().map(|signal| 128 + signal);
    let code = status.code().or(ended_by).and_then(|code| u8::try_from(code).ok());
    ExitCode::from(code.unwrap_or(1))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Cli {
        #[command(flatten)]
        emulate: Emulate,
    }

    fn parsed(arguments: &[&str]) -> Result<Emulate, String> {
        let arguments = std::iter::once(&"emulate").chain(arguments);
        Cli::try_parse_from(arguments).map(|cli| cli.emulate).map_err(|error| error.to_string())
    }

    #[test]
    fn links_and_a_program_are_named() {
        let emulate = parsed(&["--link", "5 ms, loss 1 %", "--", "ls", "-l"]).expect("valid");
        assert_eq!((emulate.command, emulate.back), (vec!["ls".to_owned(), "-l".to_owned()], None));
        assert!(parsed(&["net.toml"]).expect("valid").file.is_some());
        assert!(parsed(&["net.toml", "--link", "5 ms", "--", "ls"]).is_err());
        assert!(parsed(&["--link", "quick", "--", "ls"]).is_err_and(|error| error.contains("write a rate")));
        assert!(parsed(&["--link", "5 ms"]).is_err_and(|error| error.contains("COMMAND")));
        assert!(parsed(&["--", "ls"]).is_err_and(|error| error.contains("--link")));
    }

    #[test]
    fn a_network_whose_paths_lead_nowhere_is_refused() {
        let file = tempfile::NamedTempFile::new().expect("there is room");
        let network = "seed = 1\nduration = '1 s'\n[links]\n[ends.a]\nrun = ['true']\n\
            [[paths]]\nfrom = 'a'\nto = 'b'\nvia = []\n";
        std::fs::write(file.path(), network).expect("there is room");
        let emulate = parsed(&[&file.path().display().to_string()]).expect("valid");
        let error = emulate.emulate().expect_err("there is no such end");
        assert!(error.contains("the path from a to b: there is no end 'b': possible are a"), "{error}");
    }

    #[test]
    fn a_description_that_is_none_is_named() {
        let file = tempfile::NamedTempFile::new().expect("there is room");
        std::fs::write(file.path(), "nothing").expect("there is room");
        let name = file.path().display().to_string();
        let emulate = parsed(&["--link", "5 ms", "--sdp", &name, "--", "ls"]).expect("valid");
        assert!(emulate.emulate().is_err_and(|error| error.contains(&name)));
    }
}
