//! Where the paper is silent: parameters, and the values that the figures use.

use std::collections::BTreeMap;

use anyhow::{Result, bail};
use outflow_study::set;
use toml::{Table, Value};

/// A parameter.
pub(crate) struct Parameter {
    pub(crate) name: &'static str,
    /// Its values; the figures use the first.
    pub(crate) values: &'static [&'static str],
    /// What it is about.
    pub(crate) about: &'static str,
}

/// All parameters.
pub(crate) const PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "packet_bytes",
        values: &["576", "1500", "frame"],
        about: "Video's packets: at most 576 bytes as Data's, at most 1500, whole frames",
    },
    Parameter {
        name: "offering",
        values: &["paced", "burst"],
        about: "a frame's packets over the frame interval, or at once",
    },
    Parameter {
        name: "discard_unit",
        values: &["packet", "frame"],
        about: "what is discarded at least: a packet, or all that still comes of its frame",
    },
    Parameter {
        name: "sizes",
        values: &["mean-fitted", "clamp", "resample"],
        about: "how the exponential sizes of Table 1 are truncated",
    },
    Parameter {
        name: "split",
        values: &["connection", "ample"],
        about: "buffers as large for a connection of Data as for one of Video, or Data's as large as can be",
    },
    Parameter {
        name: "round",
        values: &["packet", "byte"],
        about: "the scheduler's round is of packets, or of bytes",
    },
    Parameter {
        name: "counting",
        values: &["frames", "portions"],
        about: "of a frame of which parts are missing nothing is good, or what arrived",
    },
    Parameter {
        name: "chained",
        values: &["no", "yes"],
        about: "a P frame needs the I of its group (the paper), or the P before it (video as it is coded)",
    },
];

/// A value for each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Parameters(BTreeMap<&'static str, &'static str>);

impl Default for Parameters {
    fn default() -> Self {
        Parameters(PARAMETERS.iter().map(|parameter| (parameter.name, parameter.values[0])).collect())
    }
}

impl Parameters {
    /// With another value for one, as `packet_bytes=1500`.
    pub(crate) fn with(mut self, change: &str) -> Result<Self> {
        let (name, value) = change.split_once('=').unwrap_or((change, ""));
        let Some(parameter) = PARAMETERS.iter().find(|parameter| parameter.name == name) else {
            let names: Vec<_> = PARAMETERS.iter().map(|parameter| parameter.name).collect();
            bail!("there is no parameter '{name}': possible are {}", names.join(", "));
        };
        let Some(value) = parameter.values.iter().find(|known| **known == value) else {
            bail!("{name} cannot be '{value}': possible are {}", parameter.values.join(", "));
        };
        self.0.insert(parameter.name, value);
        Ok(self)
    }

    /// Their names and values.
    pub(crate) fn all(&self) -> &BTreeMap<&'static str, &'static str> {
        &self.0
    }

    /// The word for a scheduler with a round of packets, by what its round is of.
    pub(crate) fn scheduler(&self, by_packet: &str) -> &'static str {
        match (by_packet, self.0["round"]) {
            ("weq", "byte") => "drr-equal",
            ("weq", _) => "weq",
            (_, "byte") => "drr",
            _ => "wrr",
        }
    }

    /// Puts them into the paper's scenario.
    pub(crate) fn put(&self, study: &mut Table) -> Result<()> {
        let packet_bytes = self.0["packet_bytes"];
        let packet_bytes = packet_bytes.parse().map_or_else(|_| Value::from(packet_bytes), Value::Integer);
        set(study, "traffic.video.packet_bytes", packet_bytes)?;
        set(study, "traffic.video.offering", self.0["offering"].into())?;
        set(study, "traffic.video.sizes", self.0["sizes"].into())?;
        set(study, "traffic.video.chained", (self.0["chained"] == "yes").into())?;
        if self.0["split"] == "ample" {
            let buffer: Table = "buffer = '10 MB'".parse()?;
            set(
                study,
                "links.out.applications",
                Table::from_iter([("data".to_owned(), buffer.into())]).into(),
            )?;
        }
        set(study, "links.out.discard_unit", self.0["discard_unit"].into())?;
        Ok(set(study, "counting", self.0["counting"].into())?)
    }
}

/// All of them in words, for the lab's help.
pub(crate) fn help() -> String {
    let line = |parameter: &Parameter| {
        format!("  {:<13}{}\n{:15}{}", parameter.name, parameter.values.join(", "), "", parameter.about)
    };
    let lines: Vec<_> = PARAMETERS.iter().map(line).collect();
    format!("Parameters; the figures use the first value of each:\n{}", lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_of_every_parameter_makes_a_study() {
        for parameter in PARAMETERS {
            for value in parameter.values {
                let parameters =
                    Parameters::default().with(&format!("{}={value}", parameter.name)).expect("known");
                let mut study: Table = crate::plan::SCENARIO.parse().expect("it is shipped");
                parameters.put(&mut study).expect("it fits");
                outflow_study::Study::from_table(study).expect("it is one");
            }
        }
        assert!(Parameters::default().with("offering=often").is_err());
        assert!(Parameters::default().with("offer=paced").is_err());
    }
}
