//! `outflow sim`

mod replay;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use outflow_serve::fail;
use outflow_sim::{Outcome, Scenario};
use outflow_study::plot::svg;
use outflow_study::{Point, Progress, Study, csv, json, set, words};
use serde_json::json;

use replay::Replay;

/// Plays a scenario in virtual time, with the same code that relays live
///
/// FILE is a network (links and traffic, with sweeps and searches over their values), or a relay with its
/// receivers. All cores are used; what comes out does not depend on how many there are, and the same seed
/// gives the same bytes. With --replay, a capture is sent through a link of some rate, and each policy is
/// told by what can still be decoded.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  outflow sim uplink.toml\n  \
    outflow sim uplink.toml --set links.uplink.rate='30Mbit/s' --csv results.csv --svg results.svg\n  \
    outflow sim --replay capture.pcapng --link '20Mbit/s' --policies shb,abd,least-value")]
pub(crate) struct Sim {
    /// The scenario
    #[arg(value_name = "FILE", required_unless_present = "replay")]
    file: Option<PathBuf>,
    /// Another value for a key of it, as links.uplink.rate='30 Mbit/s'
    #[arg(long, value_name = "KEY=VALUE", requires = "file")]
    set: Vec<String>,
    /// Where to write the results as CSV
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// Where to write what the scenario's [plot] says as a picture
    #[arg(long, value_name = "FILE", requires = "file")]
    svg: Option<PathBuf>,
    /// Print the results as JSON
    #[arg(long)]
    json: bool,
    /// How many cores to use; all if not given
    #[arg(long, value_name = "COUNT")]
    cores: Option<usize>,
    #[command(flatten)]
    replay: Replay,
}

impl Sim {
    pub(crate) fn run(self) -> ExitCode {
        match self.play() {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => fail(error),
        }
    }

    fn play(&self) -> Result<(), String> {
        if let Some(cores) = self.cores {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(cores).build_global();
            pool.map_err(|error| format!("cannot use {cores} cores: {error}"))?;
        }
        if let Some(study) = self.replay.study()? {
            return self.tell(&study, &played(&study)?);
        }
        let Some(file) = &self.file else { return Err("name a scenario".to_owned()) };
        let text = std::fs::read_to_string(file)
            .map_err(|error| format!("cannot read {}: {error}", file.display()))?;
        let in_file = |error: &dyn std::fmt::Display| format!("{}: {error}", file.display());
        let mut table: toml::Table = text.parse().map_err(|error: toml::de::Error| in_file(&error))?;
        for change in &self.set {
            let (key, value) = assignment(change)?;
            set(&mut table, key, value).map_err(|error| error.to_string())?;
        }
        if table.contains_key("relay") {
            return self.relay(&toml::to_string(&table).map_err(|error| in_file(&error))?, file);
        }
        let study = Study::from_table(table).map_err(|error| in_file(&error))?;
        self.tell(&study, &played(&study)?)
    }

    /// A relay and its receivers: one run.
    fn relay(&self, text: &str, file: &Path) -> Result<(), String> {
        if self.csv.is_some() || self.svg.is_some() {
            return Err(
                "a relay with its receivers is one run: leave --csv and --svg out, or add --json".into()
            );
        }
        let scenario =
            Scenario::parse(text, &file.display().to_string()).map_err(|error| error.to_string())?;
        let outcome = outflow_sim::run(&scenario).map_err(|error| error.to_string())?;
        print!("{}", if self.json { figures(&outcome) } else { told(&outcome) });
        Ok(())
    }

    fn tell(&self, study: &Study, points: &[Point]) -> Result<(), String> {
        let write = |file: &PathBuf, text: String| {
            std::fs::write(file, text).map_err(|error| format!("cannot write {}: {error}", file.display()))
        };
        if let Some(file) = &self.csv {
            write(file, csv(points))?;
        }
        if let Some(file) = &self.svg {
            let missing = "the scenario does not say what to draw: add [plot] with x = and y =";
            let plot = study.plot.as_ref().ok_or(missing)?;
            write(file, svg(&[plot.panel(points)]).map_err(|error| error.to_string())?)?;
        }
        if self.json {
            println!("{}", json(points))
        } else {
            print!("{}", words(points))
        }
        Ok(())
    }
}

/// A key and its value: TOML, or else a text.
fn assignment(change: &str) -> Result<(&str, toml::Value), String> {
    let wrong = || format!("'{change}' is no change: write it like links.uplink.rate='30 Mbit/s'");
    let (key, value) = change.split_once('=').ok_or_else(wrong)?;
    let read: Option<toml::Table> = format!("value = {value}").parse().ok();
    let value = read.and_then(|mut table| table.remove("value"));
    Ok((key.trim(), value.unwrap_or_else(|| toml::Value::String(change[key.len() + 1..].trim().to_owned()))))
}

/// Runs a study, and shows how far it is.
fn played(study: &Study) -> Result<Vec<Point>, String> {
    let bar = ProgressBar::new(study.points() as u64);
    if let Ok(style) = ProgressStyle::with_template("{bar:40} {pos} of {len} points, {msg} runs, {eta} left")
    {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(200));
    let points = study.run(&|Progress { points, runs }| {
        bar.set_position(points.0);
        bar.set_message(runs.to_string());
    });
    bar.finish_and_clear();
    points.map_err(|error| error.to_string())
}

fn told(outcome: &Outcome) -> String {
    let drops: Vec<_> = outcome.drops.iter().map(|(reason, count)| format!("{reason} {count}")).collect();
    let drops = if drops.is_empty() { "none".to_owned() } else { drops.join(", ") };
    let viewing = |viewing: &outflow_sim::Viewing| {
        format!(
            "{} receivers, {:.2} % of {} frames",
            viewing.receivers,
            100.0 * viewing.goodput(),
            viewing.frames
        )
    };
    format!(
        "packets sent {}, delivered {}\ncould decode: healthy {}; lagging {}\ndropped: {drops}\ndigest {:016x}\n",
        outcome.source_packets,
        outcome.delivered,
        viewing(&outcome.healthy),
        viewing(&outcome.lagging),
        outcome.digest.0
    )
}

fn figures(outcome: &Outcome) -> String {
    let viewing = |viewing: &outflow_sim::Viewing| {
        json!({
            "receivers": viewing.receivers,
            "frames": viewing.frames,
            "goodput_pct": 100.0 * viewing.goodput(),
            "delay_p99_ms": viewing.delays.quantile_ms(0.99),
        })
    };
    let all = json!({
        "source_packets": outcome.source_packets,
        "delivered": outcome.delivered,
        "healthy": viewing(&outcome.healthy),
        "lagging": viewing(&outcome.lagging),
        "drops": outcome.drops,
        "digest": format!("{:016x}", outcome.digest.0),
    });
    format!("{all}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCENARIO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../sim/scenarios/abd.toml");
    const CLIP: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../assets/demo.ts");

    /// What the command does with these arguments.
    fn played(arguments: &[&str]) -> Result<(), String> {
        use clap::Parser;

        #[derive(Parser)]
        struct Command {
            #[command(flatten)]
            sim: Sim,
        }
        let arguments = std::iter::once(&"sim").chain(arguments);
        Command::try_parse_from(arguments).map_err(|error| error.to_string())?.sim.play()
    }

    #[test]
    fn results_are_written_where_they_are_asked_for() {
        let folder = tempfile::tempdir().expect("there is room");
        let file = |name: &str| folder.path().join(name).display().to_string();
        let (csv, svg) = (file("results.csv"), file("results.svg"));
        let changes = ["replications=2", "duration=2 s", "warm_up=1 s", "plot.y='data.delay_ms'"];
        let changes = changes.iter().flat_map(|change| ["--set", change]);
        let files = ["--csv", &csv, "--svg", &svg];
        let arguments: Vec<&str> = [SCENARIO].into_iter().chain(changes).chain(files).collect();
        played(&arguments).expect("it can be played");
        let csv = std::fs::read_to_string(csv).expect("it is written");
        assert_eq!(csv.lines().count(), 9, "{csv}");
        assert!(std::fs::read_to_string(svg).is_ok_and(|svg| svg.contains("data.delay_ms")));
    }

    #[test]
    fn a_transport_stream_is_replayed_through_a_link() {
        let folder = tempfile::tempdir().expect("there is room");
        let csv = folder.path().join("results.csv").display().to_string();
        let policies = ["--policies", "shb,elastic", "--csv", &csv];
        played(&[&["--replay", CLIP, "--link", "300kbit/s"], &policies[..]].concat())
            .expect("it can be played");
        let csv = std::fs::read_to_string(csv).expect("it is written");
        let goodput = |line: &str| line.split(',').nth(12).and_then(|field| field.parse::<f64>().ok());
        let goodputs: Vec<f64> = csv.lines().skip(1).filter_map(goodput).collect();
        assert!(goodputs.len() == 2 && goodputs[0] < goodputs[1] && goodputs[1] < 100.0, "{csv}");
    }

    #[test]
    fn errors_say_what_to_do() {
        let error = played(&[SCENARIO, "--set", "links.out.rate='fast'"]).expect_err("no rate");
        assert!(error.contains("abd.toml"), "{error}");
        assert!(played(&[]).is_err_and(|error| error.contains("FILE")));
        let error = played(&["--replay", SCENARIO, "--link", "1Mbit/s"]).expect_err("no capture");
        assert!(error.contains("is no capture"), "{error}");
        assert!(
            played(&["--replay", CLIP, "--link", "fast"]).is_err_and(|error| error.contains("20 Mbit/s"))
        );
    }

    #[test]
    fn values_are_toml_or_words() {
        assert_eq!(assignment("a.b=3"), Ok(("a.b", toml::Value::Integer(3))));
        assert_eq!(assignment("rate=20 Mbit/s"), Ok(("rate", toml::Value::String("20 Mbit/s".into()))));
        assert_eq!(assignment("rate='20 Mbit/s'"), Ok(("rate", toml::Value::String("20 Mbit/s".into()))));
        assert!(assignment("rate").is_err_and(|error| error.contains("write it like")));
    }
}
