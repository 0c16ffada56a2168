//! The paper's experiments as studies: what varies, what is sought.

use anyhow::Result;
use outflow_study::{Study, set};
use toml::{Table, Value};

use crate::parameters::Parameters;

/// The paper's link and traffic, from which all others differ by a few values.
pub(crate) const SCENARIO: &str = include_str!("../../crates/sim/scenarios/abd.toml");

/// Connections of the first experiments, 90 % of 20 Mbit/s.
const CONNECTIONS: usize = 30;
/// Mean rate of a connection, bits a second (Table 1).
const CONNECTION_BPS: f64 = 605_000.0;

/// An experiment; several figures may show it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Experiment {
    /// Sections 5.2: the least buffer with which `goodput` percent are good, by the number of Videos
    /// of 30.
    Buffer { goodput: u32 },
    /// Section 5.3: the same, by the number of connections, through links of which they use 90 %.
    Links { goodput: u32 },
    /// Section 5.4: goodput by the buffer a connection.
    Sizes,
    /// Section 5.4: goodput by the load.
    Load,
    /// Section 5.5: as the first, all Video connections at once.
    Synchronised,
}

/// How much is played.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// As the paper did.
    Full,
    /// A few values, five short replications.
    Short,
    /// Fewer still.
    Quick,
}

/// A line of the figures: its name, policy and scheduler.
pub(crate) type Line = (&'static str, &'static str, &'static str);

const PAPER: &[Line] = &[
    ("shb", "shb", "wrr"),
    ("pfb", "pfb", "wrr"),
    ("pfb-ad", "pfb-ad", "wrr"),
    ("abd", "abd", "wrr"),
    ("abd-weq", "abd", "weq"),
];

impl Experiment {
    /// The policies that it compares.
    pub(crate) fn lines(self) -> &'static [Line] {
        match self {
            // The paper left the others out.
            Experiment::Links { .. } => &[("shb", "shb", "wrr"), ("abd", "abd", "wrr")],
            _ => PAPER,
        }
    }

    /// Values of what varies.
    fn values(self, extent: Extent) -> Vec<usize> {
        let full: &[usize] = match self {
            Experiment::Buffer { .. } => &[2, 4, 6, 8, 10, 12, 14, 15, 16, 18, 20, 22, 24, 26, 28, 30],
            Experiment::Synchronised => &[2, 6, 10, 14, 18, 22, 26, 30],
            // T1 to OC3.
            Experiment::Links { .. } => &[3, 6, 12, 24, 48, 96, 150, 231],
            Experiment::Sizes => &[125, 250, 375, 500, 750, 1000, 1250, 1500, 2000, 3000, 4500, 6000],
            Experiment::Load => &[10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30, 32, 36, 40],
        };
        let short: &[usize] = match self {
            Experiment::Buffer { .. } => &[2, 8, 14, 15, 20, 26, 30],
            Experiment::Synchronised => &[2, 10, 20, 30],
            Experiment::Links { .. } => &[3, 12, 48, 96],
            Experiment::Sizes => &[250, 500, 1000, 1500, 3000, 6000],
            Experiment::Load => &[14, 20, 22, 24, 28, 36],
        };
        match extent {
            Extent::Full => full.to_vec(),
            Extent::Short | Extent::Quick => short.to_vec(),
        }
    }

    /// The study.
    pub(crate) fn study(self, parameters: &Parameters, extent: Extent) -> Result<Study> {
        let mut study: Table = SCENARIO.parse()?;
        parameters.put(&mut study)?;
        study.remove("plot");
        let (replications, seconds) = match extent {
            Extent::Full => (20, (35, 5)),
            Extent::Short => (5, (17, 5)),
            Extent::Quick => (3, (8, 2)),
        };
        set(&mut study, "replications", Value::Integer(replications))?;
        set(&mut study, "duration", format!("{} s", seconds.0).into())?;
        set(&mut study, "warm_up", format!("{} s", seconds.1).into())?;
        if self == Experiment::Synchronised {
            set(&mut study, "traffic.video.start_within", "0 s".into())?;
        }
        let values = self.values(extent);
        let sweeps = vec![Value::Table(self.sweep(&values)), Value::Table(self.policies(parameters))];
        study.insert("sweep".to_owned(), Value::Array(sweeps));
        if let Some(goodput) = self.goodput() {
            study.insert("search".to_owned(), Value::Table(search(goodput)?));
        }
        Ok(Study::from_table(study)?)
    }

    fn goodput(self) -> Option<u32> {
        match self {
            Experiment::Buffer { goodput } | Experiment::Links { goodput } => Some(goodput),
            Experiment::Synchronised => Some(90),
            Experiment::Sizes | Experiment::Load => None,
        }
    }

    /// What varies from left to right, called `x`.
    fn sweep(self, values: &[usize]) -> Table {
        let mut sweep = Table::new();
        let mut put = |key: &str, value: &dyn Fn(usize) -> Value| {
            sweep.insert(key.to_owned(), values.iter().map(|x| value(*x)).collect::<Vec<_>>().into());
        };
        let number = |number: usize| Value::Integer(number as i64);
        put("labels", &number);
        match self {
            Experiment::Buffer { .. } | Experiment::Synchronised => {
                put("traffic.video.flows", &number);
                put("traffic.data.flows", &|x| number(CONNECTIONS - x));
            }
            Experiment::Links { .. } => {
                put("traffic.video.flows", &|x| number(videos_of(x)));
                put("traffic.data.flows", &|x| number(x - videos_of(x)));
                put("links.out.rate", &|x| {
                    Value::String(format!("{} bit/s", (x as f64 * CONNECTION_BPS / 0.9) as u64))
                });
            }
            Experiment::Sizes => put("links.out.buffer_per_flow", &|x| Value::String(format!("{x} B"))),
            Experiment::Load => {
                put("traffic.video.flows", &number);
                put("traffic.data.flows", &|x| number(x / 2));
            }
        }
        sweep.insert("name".to_owned(), "x".into());
        sweep
    }

    fn policies(self, parameters: &Parameters) -> Table {
        let lines = self.lines();
        let mut sweep = Table::new();
        let list = |of: &dyn Fn(&Line) -> Value| Value::Array(lines.iter().map(of).collect());
        sweep.insert("name".to_owned(), "policy".into());
        sweep.insert("labels".to_owned(), list(&|line| line.0.into()));
        sweep.insert("links.out.policy".to_owned(), list(&|line| line.1.into()));
        sweep.insert("links.out.scheduler".to_owned(), list(&|line| parameters.scheduler(line.2).into()));
        sweep
    }
}

/// Of `connections`, those of Video in section 5.3, where the paper does not say: two in three, as in
/// section 5.4.
pub(crate) fn videos_of(connections: usize) -> usize {
    connections * 2 / 3
}

/// The least buffer with which `goodput` percent of Video are good (section 5.1).
fn search(goodput: u32) -> Result<Table> {
    let text = format!(
        "key = 'links.out.buffer_per_flow'\nunit = 'B'\nfrom = 20\nto = 400000\n\
         goodput = '{goodput} %'\neach = '90 %'\nof = ['video']\n"
    );
    Ok(text.parse()?)
}
