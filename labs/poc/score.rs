//! What became of the units.
//!
//! A unit is on time if it is whole at the receiver by when it was due at the sender, and the delay of the path, and
//! the latency bound, and [`TOLERANCE`]: SRT and RIST give everything back just when the bound is over. A picture
//! counts as decodable on time if its header and all its slices are on time, and so are all pictures that it needs,
//! and those that these need.
//!
//! A unit counts as lost if the path lost a packet with a part of it, and as recovered if it was on time even so.
//! Which units were in a packet is seen in what was lost, as nothing is encrypted.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::{Duration, Instant};

use outflow_labs::figures::quantile;

use crate::path::{Count, Way};
use crate::run::{Arrivals, Conditions, Outcome};
use crate::stream::{GOP, Kind, PICTURE, Stream, UNITS};
use crate::transport::{Form, Transport};
use crate::wire::{HEADER, cut, headers_in};

/// Pictures at the beginning that do not count.
pub(crate) const WARM_UP: usize = 2 * GOP;
/// How much later than the bound is on time still: a picture. SRT and RIST are 1 to 6 ms behind it, and more where
/// something else has the processor.
pub(crate) const TOLERANCE: Duration = PICTURE;
/// Bytes by which a slice is known, and how far apart in it.
const KNOWN_BY: usize = 12;
const KNOWN_EVERY: usize = 32;

/// Units of a kind.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Fate {
    pub(crate) sent: usize,
    pub(crate) on_time: usize,
    /// The path lost a packet with a part of it.
    pub(crate) lost: usize,
    /// It was on time even so.
    pub(crate) recovered: usize,
    /// It came, but too late.
    pub(crate) late: usize,
}

/// What is found of a transport in a run.
#[derive(Debug)]
pub(crate) struct Score {
    pub(crate) transport: Transport,
    pub(crate) fates: BTreeMap<Kind, Fate>,
    /// Of each unit.
    pub(crate) is_on_time: Vec<bool>,
    /// Pictures that can be decoded on time, of those that count.
    pub(crate) frames_pct: f64,
    /// From when a unit was due to when it was there.
    pub(crate) p50_ms: f64,
    pub(crate) p99_ms: f64,
    /// From one delivery to the next: when that was, from the beginning, and how long, in seconds.
    pub(crate) gaps: Vec<(f64, f64)>,
    /// Gaps of more than a round trip, and what they come to.
    pub(crate) blocking_times: usize,
    pub(crate) blocked_s: f64,
    /// When the path lost packets of it, from the beginning, in seconds.
    pub(crate) losses: Vec<f64>,
    pub(crate) path_loss_pct: f64,
    pub(crate) overhead_pct: f64,
    pub(crate) cpu_ns_per_packet: f64,
    pub(crate) behind_ms: f64,
}

/// Judges what arrived by a transport.
pub(crate) fn judge(conditions: &Conditions, outcome: &Outcome, arrivals: &Arrivals) -> Score {
    let stream = conditions.stream.as_ref();
    let (there, back) = counts(outcome, arrivals.transport);
    let units = stream.units().count();
    let mut delays: Vec<Option<Duration>> = vec![None; units];
    for (at, unit) in &arrivals.delivered {
        if let Some(delay @ None) = delays.get_mut(*unit) {
            *delay = Some(at.saturating_duration_since(outcome.began + Stream::due(*unit)));
        }
    }
    let bound = conditions.delay + conditions.terms.latency + TOLERANCE;
    let is_on_time: Vec<bool> =
        delays.iter().map(|delay| delay.is_some_and(|delay| delay <= bound)).collect();
    let lost = lost_units(stream, arrivals.transport, &there);
    let fates = fates(stream, &delays, &is_on_time, &lost);
    let ms: Vec<f64> =
        delays.iter().skip(WARM_UP * UNITS).flatten().map(|delay| delay.as_secs_f64() * 1e3).collect();
    let gaps = gaps(outcome.began, &arrivals.delivered);
    let blocks =
        || gaps.iter().map(|(_, gap)| *gap).filter(|gap| *gap > 2.0 * conditions.delay.as_secs_f64());
    let datagrams: usize = stream.units().map(|unit| cut(unit).len()).sum();
    let since = |at: &Instant| at.saturating_duration_since(outcome.began).as_secs_f64();
    Score {
        transport: arrivals.transport,
        fates,
        frames_pct: frames_pct(stream, &is_on_time),
        is_on_time,
        p50_ms: quantile(&ms, 0.5),
        p99_ms: quantile(&ms, 0.99),
        blocking_times: blocks().count(),
        blocked_s: blocks().fold(0.0, |sum, gap| sum + gap),
        gaps,
        losses: there.lost_packets.iter().map(|(at, _)| since(at)).collect(),
        path_loss_pct: 100.0 * there.lost as f64 / there.packets.max(1) as f64,
        overhead_pct: overhead_pct(stream, arrivals, there.bytes + back.bytes),
        cpu_ns_per_packet: arrivals.cpu.as_nanos() as f64 / datagrams as f64,
        behind_ms: arrivals.behind.as_secs_f64() * 1e3,
    }
}

fn counts(outcome: &Outcome, transport: Transport) -> (Count, Count) {
    let of = |way| outcome.counts.get(&(transport, way)).cloned().unwrap_or_default();
    (of(Way::There), of(Way::Back))
}

/// Bytes of IP packets both ways that are not media, next to those that are. TCP gets behind: there it is what it has
/// delivered at all that counts as media, for others what they were given.
fn overhead_pct(stream: &Stream, arrivals: &Arrivals, wire: u64) -> f64 {
    let bytes = |unit: usize| stream.unit(unit).len() - HEADER;
    let media: usize = match arrivals.transport {
        Transport::Tcp => arrivals.delivered.iter().map(|(_, unit)| bytes(*unit)).sum(),
        _ => (0..stream.units().count()).map(bytes).sum(),
    };
    100.0 * (wire as f64 - media as f64) / media.max(1) as f64
}

fn fates(
    stream: &Stream,
    delays: &[Option<Duration>],
    is_on_time: &[bool],
    lost: &BTreeSet<usize>,
) -> BTreeMap<Kind, Fate> {
    let mut fates: BTreeMap<Kind, Fate> = Kind::ALL.map(|kind| (kind, Fate::default())).into();
    for unit in WARM_UP * UNITS..delays.len() {
        let fate = fates.entry(stream.kind(unit)).or_default();
        fate.sent += 1;
        fate.on_time += usize::from(is_on_time[unit]);
        fate.lost += usize::from(lost.contains(&unit));
        fate.recovered += usize::from(lost.contains(&unit) && is_on_time[unit]);
        fate.late += usize::from(delays[unit].is_some() && !is_on_time[unit]);
    }
    fates
}

/// The share of pictures that count and can be decoded on time.
fn frames_pct(stream: &Stream, is_on_time: &[bool]) -> f64 {
    let mut decodable = Vec::new();
    for number in 0..stream.pictures.len() {
        let is_whole = is_on_time[number * UNITS..][..UNITS].iter().all(|on_time| *on_time);
        let needs = stream.needs(number);
        let has_all = needs.iter().all(|needed| needed.is_some_and(|needed| decodable[needed]));
        decodable.push(is_whole && has_all);
    }
    let counted = decodable.iter().skip(WARM_UP);
    100.0 * counted.clone().filter(|decodable| **decodable).count() as f64 / counted.count().max(1) as f64
}

/// Times between deliveries that count.
fn gaps(began: Instant, delivered: &[(Instant, usize)]) -> Vec<(f64, f64)> {
    let from = began + Stream::due(WARM_UP * UNITS);
    let counted = delivered.windows(2).filter(|pair| pair[1].0 >= from);
    counted
        .map(|pair| {
            let gap = pair[1].0.saturating_duration_since(pair[0].0.max(from));
            (pair[1].0.saturating_duration_since(began).as_secs_f64(), gap.as_secs_f64())
        })
        .collect()
}

/// The units of which a part was in a packet that was lost.
fn lost_units(stream: &Stream, transport: Transport, there: &Count) -> BTreeSet<usize> {
    let has_headers = transport.form() == Form::Datagrams;
    let known = if has_headers { HashMap::new() } else { known_by(stream) };
    let mut lost = BTreeSet::new();
    for (_, packet) in &there.lost_packets {
        lost.extend(headers_in(packet));
        // A packet may begin in the midst of a unit.
        lost.extend(packet.windows(KNOWN_BY).find_map(|bytes| known.get(bytes).copied().flatten()));
    }
    lost
}

/// Units by bytes in them; `None` for bytes of several.
fn known_by(stream: &Stream) -> HashMap<&[u8], Option<usize>> {
    let mut known = HashMap::new();
    for (unit, sealed) in stream.units().enumerate() {
        for bytes in sealed[HEADER..].windows(KNOWN_BY).step_by(KNOWN_EVERY) {
            known.entry(bytes).and_modify(|of| *of = None).or_insert(Some(unit));
        }
    }
    known
}

impl Score {
    /// The share of a kind's units that were on time.
    pub(crate) fn on_time_pct(&self, kinds: &[Kind]) -> f64 {
        let fates = || kinds.iter().filter_map(|kind| self.fates.get(kind));
        let (on_time, sent) = fates().fold((0, 0), |sum, fate| (sum.0 + fate.on_time, sum.1 + fate.sent));
        100.0 * on_time as f64 / sent.max(1) as f64
    }
}
