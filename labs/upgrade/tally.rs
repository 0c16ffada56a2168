//! Sums: what viewers noticed, all together and by their kind.

use std::collections::BTreeSet;
use std::time::Duration;

use outflow_labs::figures::{quantile, rounded};
use outflow_labs::receive::Meter;
use serde_json::{Map, Value, json};

use crate::viewers::{Kind, Viewer};

/// What a viewer got in some time.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Got {
    /// Packets missing.
    pub(crate) lost: u64,
    /// Places where RTP did not run on.
    pub(crate) breaks: u64,
    /// Packets twice, or after a later one; transport packets that do not follow the one before, or are none.
    pub(crate) disorder: u64,
    /// The longest time for which nothing came; one that began before is whole.
    pub(crate) gap: Duration,
    /// How many of the source's packets have come, with those that were lost or came before the viewer.
    pub(crate) up_to: u32,
    /// Nothing more comes.
    pub(crate) is_gone: bool,
}

impl Got {
    pub(crate) fn of(meter: &Meter, now: u64) -> Self {
        let (rtp, ts) = (meter.rtp_reordered + meter.rtp_repeated, &meter.continuity);
        Got {
            lost: meter.lost.max(meter.rtp_lost),
            breaks: meter.rtp_breaks,
            disorder: meter.reordered.max(rtp) + ts.gaps + ts.malformed,
            gap: meter.longest_gap(now),
            up_to: meter.newest().map_or(0, |newest| newest + 1),
            is_gone: meter.ended.is_some(),
        }
    }

    /// It is there, and some of this many that were sent have not come yet.
    pub(crate) fn has_less_than(&self, sent: u32) -> bool {
        !self.is_gone && self.up_to < sent
    }
}

/// What happened while it came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum During {
    /// Nothing.
    Calm,
    /// An upgrade.
    Upgrade,
    /// What no gaps are told of.
    Else,
}

/// Of one viewer so far.
#[derive(Debug)]
struct Sum {
    viewer: Viewer,
    lost: u64,
    breaks: u64,
    disorder: u64,
    up_to: u32,
    is_gone: bool,
    /// Its longest gap in each window of an upgrade, and in each without one, in milliseconds.
    gaps: Vec<f64>,
    calm_gaps: Vec<f64>,
}

/// Of all viewers.
#[derive(Debug)]
pub(crate) struct Tally(Vec<Sum>);

impl Tally {
    pub(crate) fn new(viewers: &[Viewer]) -> Self {
        let sum = |viewer: &Viewer| Sum {
            viewer: *viewer,
            lost: 0,
            breaks: 0,
            disorder: 0,
            up_to: 0,
            is_gone: false,
            gaps: Vec::new(),
            calm_gaps: Vec::new(),
        };
        Self(viewers.iter().map(sum).collect())
    }

    /// Takes what each viewer has got, in their order. A viewer that is gone has no gaps: it is told as lost.
    pub(crate) fn add(&mut self, during: During, got: &[Got]) {
        for (sum, got) in self.0.iter_mut().zip(got) {
            sum.lost += got.lost;
            sum.breaks += got.breaks;
            sum.disorder += got.disorder;
            sum.up_to = got.up_to;
            sum.is_gone |= got.is_gone;
            let gap_ms = got.gap.as_secs_f64() * 1e3;
            match during {
                _ if sum.is_gone => {}
                During::Calm => sum.calm_gaps.push(gap_ms),
                During::Upgrade => sum.gaps.push(gap_ms),
                During::Else => {}
            }
        }
    }

    /// All has come that will: viewers that have not what was sent of their streams are lost.
    pub(crate) fn end(&mut self, sent: [u32; 3]) {
        for sum in &mut self.0 {
            sum.is_gone |= sum.up_to < sent[sum.viewer.stream];
        }
    }

    /// As they are told. Packets that a lost viewer has not got since then are not counted.
    pub(crate) fn figures(&self) -> Value {
        let kinds: BTreeSet<Kind> = self.0.iter().map(|sum| sum.viewer.kind).collect();
        let by_kind: Map<String, Value> = kinds
            .into_iter()
            .map(|kind| (kind.name(), figures(self.0.iter().filter(|sum| sum.viewer.kind == kind))))
            .collect();
        let mut all = figures(self.0.iter());
        all["by_kind"] = by_kind.into();
        all
    }
}

fn figures<'s>(sums: impl Iterator<Item = &'s Sum> + Clone) -> Value {
    let count = |of: fn(&Sum) -> u64| sums.clone().map(of).sum::<u64>();
    let gaps: Vec<f64> = sums.clone().flat_map(|sum| &sum.gaps).copied().collect();
    let calm: Vec<f64> = sums.clone().flat_map(|sum| &sum.calm_gaps).copied().collect();
    let at = |gaps: &[f64], place| rounded(quantile(gaps, place));
    json!({
        "viewers": sums.clone().count(),
        "receivers_lost": count(|sum| u64::from(sum.is_gone)),
        "packets_lost": count(|sum| sum.lost),
        "sequence_breaks": count(|sum| sum.breaks),
        "disorder": count(|sum| sum.disorder),
        "gap_ms_p50": at(&gaps, 0.5),
        "gap_ms_p99": at(&gaps, 0.99),
        "gap_ms_max": at(&gaps, 1.0),
        "calm_gap_ms_p50": at(&calm, 0.5),
        "calm_gap_ms_p99": at(&calm, 0.99),
        "calm_gap_ms_max": at(&calm, 1.0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn got(gap_ms: u64, up_to: u32) -> Got {
        Got { gap: Duration::from_millis(gap_ms), up_to, ..Got::default() }
    }

    #[test]
    fn gaps_are_those_of_their_windows_and_losses_those_of_all_the_time() {
        let viewers = Viewer::all(6, &[Kind::Http, Kind::RtspUdp]);
        let mut tally = Tally::new(&viewers);
        tally.add(During::Calm, &[got(20, 10); 6]);
        let mut noticed = [got(50, 20); 6];
        let last = viewers.iter().rposition(|viewer| viewer.kind == Kind::RtspUdp).expect("there are three");
        noticed[last] = Got { lost: 2, breaks: 1, disorder: 4, ..got(70, 20) };
        tally.add(During::Upgrade, &noticed);
        tally.add(During::Else, &[Got { lost: 1, ..got(900, 30) }; 6]);
        tally.end([30; 3]);
        let figures = tally.figures();
        assert_eq!((&figures["receivers_lost"], &figures["packets_lost"]), (&json!(0), &json!(8)));
        assert_eq!((&figures["sequence_breaks"], &figures["disorder"]), (&json!(1), &json!(4)));
        assert_eq!([&figures["gap_ms_p50"], &figures["gap_ms_max"]], [&json!(50.0), &json!(70.0)]);
        assert_eq!(figures["calm_gap_ms_p99"], json!(20.0));
        let [udp, http] = ["rtsp_udp", "http"].map(|kind| &figures["by_kind"][kind]);
        assert_eq!([&udp["viewers"], &udp["packets_lost"]], [&json!(3), &json!(5)]);
        assert_eq!([&http["gap_ms_p99"], &http["packets_lost"]], [&json!(50.0), &json!(3)]);
    }

    #[test]
    fn a_viewer_that_ended_or_gets_nothing_more_is_lost_and_has_no_gaps() {
        let mut tally = Tally::new(&Viewer::all(3, &[Kind::Poc]));
        let ended = Got { is_gone: true, ..got(9_000, 10) };
        tally.add(During::Upgrade, &[got(30, 20), ended, got(31, 20)]);
        tally.add(During::Upgrade, &[got(30, 40), Got { is_gone: false, ..ended }, got(31, 20)]);
        tally.end([40, 40, 40]);
        let figures = tally.figures();
        assert_eq!((&figures["receivers_lost"], &figures["gap_ms_max"]), (&json!(2), &json!(31.0)));
        assert_eq!(figures["calm_gap_ms_p99"], Value::Null, "there was no such time");
    }

    #[test]
    fn a_viewer_lags_while_it_has_less_than_was_sent() {
        assert!(got(0, 9).has_less_than(10) && !got(0, 10).has_less_than(10));
        assert!(!Got { is_gone: true, ..got(0, 9) }.has_less_than(10), "nothing is waited for");
    }
}
