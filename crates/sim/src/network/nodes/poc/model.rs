//! What scenarios say of both ends.

use core::time::Duration;

use outflow_config::{BitRate, Written, out_of};
use outflow_petri::service::{Flow, Preset, Request, Terms};
use outflow_poc::endpoint::Settings;
use serde::Deserialize;

use crate::limits::POC_LATENCY;
use crate::network::units::{maybe, maybe_duration};

/// An end that sends traffic by the partial-order transport.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PocSenderModel {
    /// The node that receives, on one of its segments.
    pub to: String,
    /// How it is sent: a preset as `outflow poc` takes it. Packets are its units in turn. If not given, as
    /// relays send media: in order, each for 500 ms, what decoding needs above all.
    #[serde(default = "service")]
    pub service: String,
    /// For how long a packet is of use. If not given, for as long as the service says.
    #[serde(default, deserialize_with = "maybe_duration")]
    pub latency: Option<Duration>,
    /// No less is sent, whatever congestion control says. If not given, that decides.
    #[serde(default, deserialize_with = "maybe")]
    pub min_rate: Option<BitRate>,
    /// No more is sent. If not given, as much as congestion control says.
    #[serde(default, deserialize_with = "maybe")]
    pub max_rate: Option<BitRate>,
}

/// An end that receives by the partial-order transport whatever nodes send to it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PocReceiverModel {
    /// How long anything may be sent again, at most. If not given, as long as the sender wants to, up to 30 s
    /// of what is not reliable.
    #[serde(default, deserialize_with = "maybe_duration")]
    pub latency: Option<Duration>,
}

fn service() -> String {
    "datagrams:order=total,latency=500ms,repair=reliable".to_owned()
}

impl PocSenderModel {
    /// What it asks the other end for.
    pub(super) fn request(&self) -> Result<Request, String> {
        check_latency(self.latency)?;
        let wrong = |why: &dyn core::fmt::Display| format!("service = \"{}\": {why}", self.service);
        let flow = Preset::parse(&self.service).map_err(|error| wrong(&error))?;
        let request = Request { resource: "/".to_owned(), to_server: Some(flow), to_client: None };
        // What every receiver refuses would never be sent.
        Terms::default().answer(&request, None).map_err(|error| wrong(&error))?;
        request.emit(&mut Vec::new()).map_err(|error| wrong(&error))?;
        Ok(request)
    }

    /// For how long packets are of use. A relay has one time for both what is agreed on and what it gives.
    pub(super) fn useful_for(&self, flow: &Flow) -> Option<Duration> {
        self.latency.or_else(|| flow.classes.iter().filter_map(|class| class.validity).max())
    }

    pub(super) fn settings(&self) -> Settings {
        let mut settings = Settings::default();
        let congestion = &mut settings.connection.congestion;
        self.min_rate.iter().for_each(|rate| congestion.min_bps = rate.0);
        self.max_rate.iter().for_each(|rate| congestion.max_bps = rate.0);
        settings
    }
}

impl PocReceiverModel {
    /// Whether it can be.
    ///
    /// # Errors
    /// What cannot be, and what to write.
    pub(super) fn check(&self) -> Result<(), String> {
        check_latency(self.latency)
    }

    /// What it agrees to.
    pub(super) fn terms(&self) -> Terms {
        match self.latency {
            None => Terms::default(),
            latency => {
                Terms { validity_max: latency, allows_reliable_without_end: false, ..Terms::default() }
            }
        }
    }
}

fn check_latency(latency: Option<Duration>) -> Result<(), String> {
    let invalid = latency.and_then(|time| out_of(time, &POC_LATENCY, |time| Written(*time).to_string()));
    invalid.map_or(Ok(()), |invalid| Err(format!("latency: {}; {}", invalid.what, invalid.help)))
}
