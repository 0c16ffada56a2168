//! Which level `outflow watch` asks for.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use outflow_adapt::{Adaptation, Gradient, Paper, Policy};
use outflow_client::machine::{Machine, POWER_SUPPLIES};
use outflow_client::{Adapter, AskBy, Received, Subscription};
use outflow_media::Time;

#[derive(Debug, Args)]
pub(super) struct LevelArgs {
    /// Ask for this level of quality: 1 is the best. With --adapt none is asked for that is better
    #[arg(long, value_name = "LEVEL", value_parser = clap::value_parser!(u8).range(1..))]
    level: Option<u8>,
    /// Change the level as network, CPU and battery allow
    #[arg(long, value_name = "POLICY", value_enum, num_args = 0..=1, default_missing_value = "delay")]
    adapt: Option<PolicyName>,
    /// How the relay is asked where it is played by RTSP, whose own answers do not tell what levels cost,
    /// which --adapt has to know. By HTTP it is asked at the session that it names
    #[arg(long, value_enum, default_value = "rtcp")]
    ask: Ask,
    /// Where the system shows its batteries
    #[arg(long, value_name = "FOLDER", default_value = POWER_SUPPLIES)]
    pub(super) power_supply: PathBuf,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum PolicyName {
    /// By how long packets wait on the way, and by loss
    Delay,
    /// By what arrives in a second, as in the paper on generalized multicast
    Paper,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Ask {
    /// On the session's RTCP port, again until it is answered
    Rtcp,
    /// By SET_PARAMETER in the session
    Rtsp,
}

impl PolicyName {
    fn policy(self) -> Box<dyn Policy> {
        match self {
            PolicyName::Delay => Box::new(Gradient::default()),
            PolicyName::Paper => Box::new(Paper::default()),
        }
    }
}

impl LevelArgs {
    /// Why it cannot be so.
    pub(super) fn check(&self) -> Result<(), String> {
        if self.adapt.is_some() && self.ask == Ask::Rtsp {
            return Err(
                "--adapt has to know what levels cost, which RTSP does not tell: leave --ask out".into()
            );
        }
        Ok(())
    }

    pub(super) fn ask_by(&self) -> AskBy {
        match self.ask {
            Ask::Rtcp => AskBy::Rtcp,
            Ask::Rtsp => AskBy::Rtsp,
        }
    }

    /// Asks for what is wanted from the beginning. `None` if it stays with that.
    pub(super) fn begin(&self, subscription: &mut Subscription) -> Result<Option<Quality>, String> {
        if self.level.is_none() && self.adapt.is_none() {
            return Ok(None);
        }
        if self.adapt.is_some() && !subscription.is_by_rtp() {
            return Err("--adapt looks at how long packets wait on the way, which only RTP tells: \
                        watch an rtsp:// or rtp:// URL, or ask for one level with --level alone"
                .into());
        }
        let first = self.level.unwrap_or(1);
        subscription.ask_level(first).map_err(|error| error.to_string())?;
        let Some(policy) = self.adapt else { return Ok(None) };
        let adaptation = Adaptation::new(policy.policy(), first);
        let adapter = Adapter::new(subscription.format(), adaptation);
        Ok(Some(Quality { adapter, machine: Machine::open(&self.power_supply) }))
    }
}

/// Adapts the level.
#[derive(Debug)]
pub(super) struct Quality {
    pub(super) adapter: Adapter,
    machine: Machine,
}

impl Quality {
    /// Something was received.
    pub(super) fn received(&mut self, received: &Received) {
        self.adapter.received(received);
    }

    /// Looks at what the machine has.
    pub(super) fn look(&mut self, now: Time) {
        self.adapter.resources(now, self.machine.resources());
    }

    /// Asks for another level if that is decided now. Returns what to say of it.
    pub(super) fn decide(&mut self, now: Time, subscription: &mut Subscription) -> Option<String> {
        let known = self.adapter.changes().len();
        let level = self.adapter.decide(now)?;
        // It could be asked at the beginning, so it can be asked now.
        let _ = subscription.ask_level(level);
        let change = self.adapter.changes().get(known)?;
        Some(format!("{:.3} s: {change}", now.as_micros() as f64 / 1e6))
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        levels: LevelArgs,
    }

    fn read(words: &[&str]) -> Result<LevelArgs, clap::Error> {
        Line::try_parse_from([&["watch"], words].concat()).map(|line| line.levels)
    }

    #[test]
    fn the_policy_needs_no_name() {
        assert_eq!(read(&[]).expect("nothing is asked for").adapt, None);
        assert_eq!(read(&["--adapt"]).expect("ours").adapt, Some(PolicyName::Delay));
        assert_eq!(read(&["--adapt", "paper"]).expect("theirs").adapt, Some(PolicyName::Paper));
        assert!(read(&["--level", "0"]).is_err() && read(&["--level", "256"]).is_err());
    }

    #[test]
    fn one_that_adapts_has_to_be_told_what_levels_cost() {
        let error = read(&["--adapt", "--ask", "rtsp"]).expect("words").check().expect_err("no rates");
        assert!(error.contains("leave --ask out"), "{error}");
        read(&["--level", "2", "--ask", "rtsp"]).expect("words").check().expect("one level needs no rates");
    }
}
