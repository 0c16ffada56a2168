//! Metrics for Prometheus, in the OpenMetrics text format: made from the newest snapshot at every
//! request, so that what is gone is not shown.

use std::collections::BTreeMap;
use std::fmt;

use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;
use outflow_control::{Control, OverloadState, recovered};
use outflow_engine::message::{
    ElementState, LinkApplicationState, LinkState, ReceiverReport, ReceiverState, RelayState, StreamState,
};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::{Registry, Unit};

use crate::{HttpError, Pages};

/// A number of each stream or receiver: name, unit, help, and where it stands.
pub type Count<T> = (&'static str, Option<Unit>, &'static str, fn(&T) -> u64);
/// The same, of what goes up and down.
pub type Level<T> = (&'static str, Option<Unit>, &'static str, fn(&T) -> f64);

const STREAM_COUNTS: &[Count<StreamState>] = &[
    ("source_starts", None, "Times that the source came", |s| s.source.starts),
    ("source_received", Some(Unit::Bytes), "Bytes received from the source", |s| s.source.bytes),
    ("source_received_packets", None, "Packets received from the source", |s| s.source.packets),
    ("source_lost_packets", None, "Packets lost before they came here", |s| s.source.lost),
    ("stream_sent", Some(Unit::Bytes), "Bytes sent to receivers", |s| s.out_bytes),
    ("stream_sent_packets", None, "Packets sent to receivers", |s| s.out_packets),
    ("stream_worker_microseconds", None, "Time that workers have worked for the stream", |s| s.worker_us),
    ("stream_joins", None, "Receivers that ever joined", |s| s.joins),
];

const STREAM_LEVELS: &[Level<StreamState>] = &[
    ("source_up", None, "Whether packets come in", |s| f64::from(u8::from(s.source.up))),
    ("source_jitter", Some(Unit::Seconds), "Interarrival jitter (RFC 3550)", |s| s.source.jitter_ms / 1e3),
    ("source_key_frame_interval", Some(Unit::Seconds), "Time between the last two key frames", |s| {
        s.source.key_interval_ms as f64 / 1e3
    }),
    ("ring", Some(Unit::Bytes), "Bytes kept for receivers", |s| s.ring_bytes as f64),
    ("ring_limit", Some(Unit::Bytes), "Bytes that may be kept", |s| s.ring_bytes_max as f64),
    ("ring_packets", None, "Packets kept for receivers", |s| s.ring_packets as f64),
    ("stream_receivers", None, "Receivers now", |s| s.receivers.len() as f64),
    ("stream_reported_loss", Some(Unit::Ratios), "Share of packets lost on average, as receivers say", |s| {
        s.reported.map_or(0.0, |reported| reported.fraction_lost_mean)
    }),
];

const RECEIVER_COUNTS: &[Count<ReceiverState>] = &[
    ("receiver_sent", Some(Unit::Bytes), "Bytes sent to the receiver", |r| r.bytes),
    ("receiver_sent_packets", None, "Packets sent to the receiver", |r| r.packets),
    ("receiver_key_frame_requests", None, "Key frames that the receiver asked for", |r| r.key_frame_requests),
];

const RECEIVER_LEVELS: &[Level<ReceiverState>] = &[
    ("receiver_queue_packets", None, "Packets that wait for the receiver", |r| r.queue_packets as f64),
    ("receiver_queue_delay", Some(Unit::Seconds), "Age of the oldest packet that waits", |r| {
        r.queue_delay_ms as f64 / 1e3
    }),
    ("receiver_level", None, "Quality that the receiver is to get, 1 is the best", |r| r.level.into()),
    ("receiver_age", Some(Unit::Seconds), "Time since the receiver joined", |r| r.age_ms as f64 / 1e3),
];

/// Of receivers that say it.
const RECEIVER_SAID: &[Level<ReceiverState>] = &[(
    "receiver_way",
    Some(Unit::Bytes),
    "Bytes a second that the way to the receiver carries, as reports say",
    |r| r.carries_bps.map_or(f64::NAN, |bps| bps as f64 / 8.0),
)];

const ELEMENT_COUNTS: &[Count<ElementState>] = &[
    ("element_in_packets", None, "Packets that came into the element", |e| e.packets_in),
    ("element_in", Some(Unit::Bytes), "Bytes that came into the element", |e| e.bytes_in),
    ("element_out_packets", None, "Packets that the element let out", |e| e.packets_out),
    ("element_out", Some(Unit::Bytes), "Bytes that the element let out", |e| e.bytes_out),
    ("element_long_turns", None, "Times that the element held its thread for more than 20 ms", |e| {
        e.long_turns
    }),
    ("element_faults", None, "How often something went wrong in the element", |e| e.faults),
];

const ELEMENT_LEVELS: &[Level<ElementState>] = &[
    ("element_packet_time", Some(Unit::Seconds), "Time a packet took, of those that were timed", |e| {
        e.packet_ns as f64 / 1e9
    }),
    ("element_turn", Some(Unit::Seconds), "Time that the element held its thread at a time", |e| {
        e.turn_us as f64 / 1e6
    }),
    ("element_cpu", Some(Unit::Ratios), "CPU used; 1 is a whole core", |e| e.cpu_percent / 1e2),
    ("element_memory", Some(Unit::Bytes), "Memory held, where known", |e| e.memory_bytes as f64),
];

const LINK_COUNTS: &[Count<LinkApplicationState>] = &[
    ("link_offered", Some(Unit::Bytes), "Bytes offered to the link", |a| a.offered_bytes),
    ("link_offered_packets", None, "Packets offered to the link", |a| a.offered_packets),
    ("link_sent", Some(Unit::Bytes), "Bytes that the link let go", |a| a.sent_bytes),
    ("link_sent_packets", None, "Packets that the link let go", |a| a.sent_packets),
];

const LINK_LEVELS: &[Level<LinkState>] = &[
    ("link_rate", Some(Unit::Bytes), "Bytes a second that the link carries", |l| l.rate_bps as f64 / 8.0),
    ("link_reserved", Some(Unit::Bytes), "Bytes a second that receivers have reserved of it", |l| {
        l.reserved_bps.unwrap_or(0) as f64 / 8.0
    }),
    ("link_flows", None, "Tracks of receivers behind the link", |l| l.flows as f64),
    ("link_waiting", Some(Unit::Bytes), "Bytes that wait at the link", |l| l.waiting_bytes as f64),
    ("link_waiting_packets", None, "Packets that wait at the link", |l| l.waiting_packets as f64),
];

const REPORT_LEVELS: &[Level<ReceiverReport>] = &[
    ("receiver_reported_loss", Some(Unit::Ratios), "Share of packets lost, as the receiver says", |r| {
        r.fraction_lost
    }),
    ("receiver_reported_jitter", Some(Unit::Seconds), "Jitter, as the receiver says", |r| r.jitter_ms / 1e3),
    ("receiver_round_trip", Some(Unit::Seconds), "Time there and back, as RTCP has measured it", |r| {
        r.rtt_ms.unwrap_or(f64::NAN) / 1e3
    }),
];

/// Serves the metrics.
pub(crate) async fn metrics(State(control): State<Control>) -> Result<impl IntoResponse, HttpError> {
    let mut registry = Registry::with_prefix("outflow");
    for measure in control.shared::<Pages>().measures() {
        registry.register_collector(measure(control.clone()).await?);
    }
    registry.register_collector(Box::new(Snapshot(control)));
    let mut text = String::new();
    encode(&mut text, &registry).map_err(|_| HttpError::unavailable("the metrics could not be written"))?;
    let format = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    Ok(([(header::CONTENT_TYPE, format)], text))
}

/// The newest state, as a collector.
#[derive(Debug)]
struct Snapshot(Control);

impl Collector for Snapshot {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let state = self.0.state();
        let mut families = Families(encoder);
        self.relay(&state, &mut families)?;
        streams(&state, &mut families)?;
        elements(&state, &mut families)?;
        links(&state, &mut families)?;
        receivers(&state, &mut families)
    }
}

impl Snapshot {
    fn relay(&self, state: &RelayState, families: &mut Families<'_>) -> fmt::Result {
        let counts = self.0.door().counts();
        let outcomes = [
            ("accepted", counts.accepted),
            ("refused", counts.refused),
            ("slow", counts.slow),
            ("malformed", counts.malformed),
            ("hurried", counts.hurried),
        ];
        let outcomes = outcomes.map(|(outcome, count)| ([("outcome", outcome)], count));
        families.counter("connections", None, "Connections, by what became of them", outcomes)?;
        let failures = [("wrong", counts.wrong_tokens), ("too-often", counts.too_often)];
        let failures = failures.map(|(outcome, count)| ([("outcome", outcome)], count));
        let help = "Wrong tokens, and requests refused because of too many from their address";
        families.counter("token_failures", None, help, failures)?;
        let help = "Sessions ended because what had let them in holds no longer";
        let none: [(&str, &str); 0] = [];
        families.counter("sessions_revoked", None, help, [(none, counts.revoked)])?;
        let help = "Questions to the hook of [access.hook] that it has not answered well";
        families.counter("access_hook_failures", None, help, [(none, counts.hook_failed)])?;
        let ended = self.0.ended_turns();
        let ended = [("taken-over", ended.taken_over), ("no-media", ended.no_media)];
        let ended = ended.map(|(reason, count)| ([("reason", reason)], count));
        families.counter(
            "publishers_ended",
            None,
            "Publishers that the relay has sent away, by reason",
            ended,
        )?;
        let help = "RTCP packets that came by UDP from addresses of no receiver";
        families.counter("rtcp_strangers", None, help, [(none, state.rtcp_strangers)])?;
        let help = "Times that another process went on because something of the relay had ended";
        families.counter("recoveries", None, help, [(none, recovered(&self.0))])?;
        let health = self.0.health();
        let log = health.log();
        let lines = [("written", log.written), ("lost", log.lost), ("left-out", log.left_out)];
        let lines = lines.map(|(outcome, count)| ([("outcome", outcome)], count));
        families.counter("log_lines", None, "Lines of the log, by what became of them", lines)?;
        let help = "Writes of the log that failed";
        families.counter("log_write_errors", None, help, [(none, log.write_errors)])?;
        overload(&health.overload().state(), families)?;
        let ages = health.heartbeats().map(|beat| ([("of", beat.name)], beat.age_ms as f64 / 1e3));
        let help = "Time since a worker, or the control plane, said that it goes on";
        families.gauge("heartbeat_age", Some(Unit::Seconds), help, ages)?;
        for (name, unit, help, value) in [
            ("connections_open", None, "Connections now", counts.open as f64),
            ("uptime", Some(Unit::Seconds), "Time since the start", state.uptime_ms as f64 / 1e3),
            ("resident_memory", Some(Unit::Bytes), "Resident memory", state.rss_bytes as f64),
            ("cpu", Some(Unit::Ratios), "CPU used; 1 is a whole core", state.cpu_percent / 1e2),
        ] {
            families.gauge(name, unit, help, [(none, value)])?;
        }
        Ok(())
    }
}

fn overload(state: &OverloadState, families: &mut Families<'_>) -> fmt::Result {
    let none: [(&str, &str); 0] = [];
    let shed = [
        ("joins-refused", state.joins_refused),
        ("events-refused", state.events_refused),
        ("publishers-refused", state.publishers_refused),
        ("receivers-ended", state.receivers_shed),
        ("memory-given-back", state.memory_given_back),
    ];
    let shed = shed.map(|(action, count)| ([("action", action)], count));
    families.counter("overload_actions", None, "What was done because the relay had too much to do", shed)?;
    for (name, unit, help, value) in [
        ("overload_level", None, "How much the relay sheds, 0 (nothing) to 3", f64::from(state.level)),
        (
            "memory_limit",
            Some(Unit::Bytes),
            "Resident memory that there may be",
            state.memory_max_bytes as f64,
        ),
        ("descriptors", None, "Open descriptors", state.descriptors as f64),
        ("descriptors_limit", None, "Descriptors that may be open", state.descriptors_max as f64),
        (
            "worker_lag",
            Some(Unit::Seconds),
            "How long the busiest worker has been at work without a pause",
            state.worker_lag_ms as f64 / 1e3,
        ),
        (
            "control_lag",
            Some(Unit::Seconds),
            "How late the control plane is",
            state.control_lag_ms as f64 / 1e3,
        ),
    ] {
        families.gauge(name, unit, help, [(none, value)])?;
    }
    Ok(())
}

fn streams(state: &RelayState, families: &mut Families<'_>) -> fmt::Result {
    let label = |stream: &StreamState| [("stream", stream.name.clone())];
    for (name, unit, help, value) in STREAM_COUNTS {
        families.counter(name, unit.clone(), help, state.streams.iter().map(|s| (label(s), value(s))))?;
    }
    for (name, unit, help, value) in STREAM_LEVELS {
        families.gauge(name, unit.clone(), help, state.streams.iter().map(|s| (label(s), value(s))))?;
    }
    let costs = |stream: &StreamState| {
        let name = stream.name.clone();
        let level = move |(number, bps): (usize, u64)| {
            ([("stream", name.clone()), ("level", number.to_string())], bps)
        };
        (1..).zip(stream.levels.clone()).map(level)
    };
    let bytes = state.streams.iter().flat_map(costs).map(|(label, bps)| (label, bps as f64 / 8.0));
    families.gauge("stream_level", Some(Unit::Bytes), "Bytes a second that a level costs", bytes)?;
    let by_reason = |drops: fn(&StreamState) -> &BTreeMap<&'static str, u64>| {
        let each = move |stream| reasons(drops(stream)).map(move |(reason, n)| (stream, reason, n));
        let all = state.streams.iter().flat_map(each);
        all.map(|(stream, reason, n)| ([("stream", stream.name.clone()), ("reason", reason.to_owned())], n))
    };
    let help = "Packets from the source that went no further";
    families.counter("source_dropped_packets", None, help, by_reason(|s| &s.source.drops))?;
    let help = "Packets that receivers did not get";
    families.counter("stream_dropped_packets", None, help, by_reason(|s| &s.out_drops))
}

fn elements(state: &RelayState, families: &mut Families<'_>) -> fmt::Result {
    let all = || state.streams.iter().flat_map(|stream| stream.elements.iter().map(move |e| (stream, e)));
    let label = |(stream, element): (&StreamState, &ElementState)| {
        [
            ("stream", stream.name.clone()),
            ("element", element.name.clone()),
            ("kind", element.element.to_owned()),
            ("context", element.context.clone()),
        ]
    };
    for (name, unit, help, value) in ELEMENT_COUNTS {
        families.counter(name, unit.clone(), help, all().map(|of| (label(of), value(of.1))))?;
    }
    for (name, unit, help, value) in ELEMENT_LEVELS {
        families.gauge(name, unit.clone(), help, all().map(|of| (label(of), value(of.1))))?;
    }
    let dropped = all().flat_map(|of| reasons(&of.1.drops).map(move |(reason, n)| (of, reason, n)));
    let dropped = dropped.map(|(of, reason, n)| (with(label(of), ("reason", reason.to_owned())), n));
    families.counter("element_dropped_packets", None, "Packets that the element left out", dropped)
}

fn links(state: &RelayState, families: &mut Families<'_>) -> fmt::Result {
    let label = |link: &LinkState| [("link", link.name.clone())];
    let all = || state.links.iter().flat_map(|link| link.applications.iter().map(move |of| (link, of)));
    let of_application = |(link, of): (&LinkState, &LinkApplicationState)| {
        [("link", link.name.clone()), ("application", of.name.clone())]
    };
    for (name, unit, help, value) in LINK_COUNTS {
        families.counter(name, unit.clone(), help, all().map(|of| (of_application(of), value(of.1))))?;
    }
    let dropped = all().flat_map(|of| reasons(&of.1.drops).map(move |(reason, n)| (of, reason, n)));
    let dropped = dropped.map(|(of, reason, n)| {
        let [link, application] = of_application(of);
        ([link, application, ("reason", reason.to_owned())], n)
    });
    families.counter("link_dropped_packets", None, "Packets that the link gave up", dropped)?;
    for (name, unit, help, value) in LINK_LEVELS {
        families.gauge(name, unit.clone(), help, state.links.iter().map(|l| (label(l), value(l))))?;
    }
    let delays = state.links.iter().flat_map(|link| {
        let quantiles = [("0.5", link.delay_p50_ms), ("0.99", link.delay_p99_ms), ("1", link.delay_max_ms)];
        let name = link.name.clone();
        quantiles.map(move |(q, ms)| ([("link", name.clone()), ("quantile", q.to_owned())], ms / 1e3))
    });
    families.gauge("link_delay", Some(Unit::Seconds), "How long packets waited at the link lately", delays)
}

fn receivers(state: &RelayState, families: &mut Families<'_>) -> fmt::Result {
    let all = || state.streams.iter().flat_map(|stream| &stream.receivers);
    for (name, unit, help, value) in RECEIVER_COUNTS {
        families.counter(name, unit.clone(), help, all().map(|r| (receiver(r), value(r))))?;
    }
    for (name, unit, help, value) in RECEIVER_LEVELS {
        families.gauge(name, unit.clone(), help, all().map(|r| (receiver(r), value(r))))?;
    }
    for (name, unit, help, value) in RECEIVER_SAID {
        let known = all().map(|r| (receiver(r), value(r))).filter(|(_, value)| value.is_finite());
        families.gauge(name, unit.clone(), help, known)?;
    }
    let dropped = all().flat_map(|r| reasons(&r.drops).map(move |(reason, n)| (r, reason, n)));
    let dropped = dropped.map(|(r, reason, n)| (with(receiver(r), ("reason", reason.to_owned())), n));
    families.counter("receiver_dropped_packets", None, "Packets that the receiver did not get", dropped)?;
    let refused = all().flat_map(|r| reasons(&r.level_refusals).map(move |(reason, n)| (r, reason, n)));
    let refused = refused.map(|(r, reason, n)| (with(receiver(r), ("reason", reason.to_owned())), n));
    let help = "Requests for a level that were refused";
    families.counter("receiver_level_refusals", None, help, refused)?;
    let unread = all().flat_map(|r| reasons(&r.rtcp_drops).map(move |(reason, n)| (r, reason, n)));
    let unread = unread.map(|(r, reason, n)| (with(receiver(r), ("reason", reason.to_owned())), n));
    let help = "RTCP of the receiver that was not read";
    families.counter("receiver_dropped_rtcp", None, help, unread)?;
    for (name, unit, help, value) in REPORT_LEVELS {
        let reports = all().flat_map(|r| r.reports.iter().map(move |report| (r, report, value(report))));
        let known = reports.filter(|(_, _, value)| value.is_finite());
        let labelled =
            known.map(|(r, report, value)| (with(receiver(r), ("track", report.track.to_string())), value));
        families.gauge(name, unit.clone(), help, labelled)?;
    }
    Ok(())
}

type Label = (&'static str, String);

fn receiver(receiver: &ReceiverState) -> [Label; 4] {
    [
        ("stream", receiver.stream.clone()),
        ("receiver", receiver.id.to_string()),
        ("kind", receiver.kind.to_owned()),
        ("to", receiver.name.clone().unwrap_or_else(|| receiver.to.clone())),
    ]
}

fn with([a, b, c, d]: [Label; 4], more: Label) -> [Label; 5] {
    [a, b, c, d, more]
}

/// What was counted, by reason.
pub fn reasons(drops: &BTreeMap<&'static str, u64>) -> impl Iterator<Item = (&'static str, u64)> {
    drops.iter().map(|(reason, count)| (*reason, *count))
}

/// Writes families of metrics: one name, many labels.
pub struct Families<'a>(pub DescriptorEncoder<'a>);

impl Families<'_> {
    /// What only grows.
    ///
    /// # Errors
    /// The text cannot be written.
    pub fn counter<L: EncodeLabelSet>(
        &mut self,
        name: &str,
        unit: Option<Unit>,
        help: &str,
        values: impl IntoIterator<Item = (L, u64)>,
    ) -> fmt::Result {
        let mut family = self.0.encode_descriptor(name, help, unit.as_ref(), MetricType::Counter)?;
        for (labels, value) in values {
            ConstCounter::new(value).encode(family.encode_family(&labels)?)?;
        }
        Ok(())
    }

    /// What goes up and down.
    ///
    /// # Errors
    /// The text cannot be written.
    pub fn gauge<L: EncodeLabelSet>(
        &mut self,
        name: &str,
        unit: Option<Unit>,
        help: &str,
        values: impl IntoIterator<Item = (L, f64)>,
    ) -> fmt::Result {
        let mut family = self.0.encode_descriptor(name, help, unit.as_ref(), MetricType::Gauge)?;
        for (labels, value) in values {
            ConstGauge::new(value).encode(family.encode_family(&labels)?)?;
        }
        Ok(())
    }
}
