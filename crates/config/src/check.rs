//! What the tables of a configuration say together.

mod links;

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::ops::{Range, RangeInclusive};
use std::time::Duration;

use outflow_graph::{Contents, Plan};
use toml::de::{DeTable, DeValue};

use crate::error::Collector;
use crate::invalid::{nearest, out_of};
use crate::limits::{
    CLASS_SHARE, COUNT, DRAIN, HOPELESS_AFTER, LATENCY_BUDGET, MEMORY, PACE, POLL, PUBLISH_TIMEOUT,
    RENDITIONS, RESERVE, RESERVE_RATE, RING, RTP_PORTS_MIN, SOURCE_TIMEOUT, WORKERS,
};
use crate::memory::Memory;
use crate::units::Written;
use crate::{BitRate, Config, Invalid, SourceUrl, StreamConfig, UdpSource, parse_duration, text_or_none};

/// A configuration whose tables are right each for itself, and the mistakes in what they say together.
#[derive(Debug)]
pub struct Check<'c, 'e, 't> {
    config: &'c Config,
    root: &'c DeTable<'c>,
    errors: &'e mut Collector<'t>,
}

/// One step into a configuration.
#[derive(Debug, Clone, Copy)]
pub enum Step<'a> {
    /// To what stands behind a key.
    Key(&'a str),
    /// To one of a list, counted from 0.
    Index(usize),
}
use Step::{Index, Key};

impl<'c, 'e, 't> Check<'c, 'e, 't> {
    /// Of `config`; `root` knows where it stands.
    pub(crate) fn new(config: &'c Config, root: &'c DeTable<'c>, errors: &'e mut Collector<'t>) -> Self {
        Check { config, root, errors }
    }
}

impl<'c> Check<'c, '_, '_> {
    /// Writes down everything that contradicts itself, whatever protocols there are.
    pub(crate) fn all_of_core(&mut self) {
        self.limits();
        self.listeners();
        self.streams();
        self.ports();
        self.sinks();
        self.links();
    }

    /// What the tables say.
    pub fn config(&self) -> &'c Config {
        self.config
    }

    /// Whether a key stands in a table of the file: what is inherited does not.
    pub fn is_written(&self, table: &[Step<'_>], key: &str) -> bool {
        let below = |table: Option<&'c DeTable<'c>>, step: &Step<'_>| match *step {
            Key(key) => table?.get(key)?.get_ref().as_table(),
            Index(_) => None,
        };
        written(table.iter().fold(Some(self.root), below), key)
    }

    /// Writes down a mistake in what stands at the end of `path`, and what to do.
    pub fn add(&mut self, path: &[Step<'_>], what: String, help: impl Into<String>) {
        let span = locate(self.root, path);
        self.errors.add(span, Invalid::new(what, help));
    }

    fn limits(&mut self) {
        let limits = &self.config.limits;
        for (key, value, allowed) in [
            ("receivers", limits.receivers, COUNT),
            ("connections", limits.connections, COUNT),
            ("connections_per_address", limits.connections_per_address, COUNT),
            ("workers", limits.workers, WORKERS),
            ("split", limits.split, COUNT),
        ] {
            if let Some(invalid) = out_of(value, &allowed, |n| n.to_string()) {
                self.add(&[Key("limits"), Key(key)], invalid.what, invalid.help);
            }
        }
        for (key, time, allowed) in [("poll", limits.poll, POLL), ("drain", limits.drain, DRAIN)] {
            if let Some(invalid) = out_of(time, &allowed, |time| Written(*time).to_string()) {
                self.add(&[Key("limits"), Key(key)], invalid.what, invalid.help);
            }
        }
        for (key, share) in [("normal_share", limits.normal_share), ("low_share", limits.low_share)] {
            if let Some(invalid) = share.and_then(|share| out_of(share, &CLASS_SHARE, ToString::to_string)) {
                self.add(&[Key("limits"), Key(key)], invalid.what, invalid.help);
            }
        }
        self.memory();
        let ports = &self.config.listen.rtp_ports;
        if ports.len() < RTP_PORTS_MIN {
            let what = format!("{} ports are too few", ports.len());
            let help = format!("give {RTP_PORTS_MIN} at least: every session takes two");
            self.add(&[Key("listen"), Key("rtp_ports")], what, help);
        }
        if self.config.tls.is_none() {
            let all = self.config.listen.listeners().map(|(listener, _)| listener);
            let encrypted = all.filter(|listener| listener.needs_tls);
            let written = encrypted.filter(|listener| self.is_written(&[Key("listen")], listener.key));
            for key in written.map(|listener| listener.key).collect::<Vec<_>>() {
                let help = "add [tls] with certificate and key, or leave it out";
                self.add(&[Key("listen"), Key(key)], format!("{key} needs a certificate"), help);
            }
        }
    }

    /// How much memory there is, if that is written down: else the machine says it that is to run it.
    fn memory(&mut self) {
        let Memory::Bytes(memory) = self.config.limits.memory else { return };
        let too_little = || self.config.check_rings(memory).err();
        if let Some(invalid) = out_of(memory, &MEMORY, ToString::to_string).or_else(too_little) {
            self.add(&[Key("limits"), Key("memory")], invalid.what, invalid.help);
        }
    }

    fn listeners(&mut self) {
        let tcp = self.config.listen.listeners().filter(|(listener, _)| listener.is_tcp);
        let all: Vec<_> = tcp.filter_map(|(listener, at)| Some((listener.key, at?))).collect();
        for (index, (key, at)) in all.iter().enumerate() {
            if let Some((other, _)) = all[..index].iter().find(|(_, other)| overlap(*at, *other)) {
                let what = format!("{key} and {other} both want TCP port {}", at.port());
                self.add(&[Key("listen"), Key(key)], what, "give one of them another port, or \"off\"");
            }
        }
    }

    fn streams(&mut self) {
        let root = self.root;
        let defaults = root.get("defaults").and_then(|given| given.get_ref().as_table());
        self.options(&[Key("defaults")], defaults, &self.config.defaults);
        let Some(tables) = root.get("streams").and_then(|given| given.get_ref().as_table()) else {
            return;
        };
        for (name, given) in tables {
            let name = name.get_ref().as_ref();
            let table = given.get_ref().as_table();
            let Some(stream) = self.config.streams.get(name) else {
                continue;
            };
            self.options(&[Key("streams"), Key(name)], table, stream);
            self.services(name, stream);
            self.rules(name, stream);
            self.renditions(name, stream, table);
            if written(table, "sdp") && !matches!(stream.source, SourceUrl::Rtp(_)) {
                let what = "a source other than rtp:// describes itself".to_owned();
                self.add(&[Key("streams"), Key(name), Key("sdp")], what, "leave sdp out");
            }
        }
    }

    /// Renditions: whether they are streams with sources, and nothing else is made of the stream.
    fn renditions(&mut self, name: &str, stream: &StreamConfig, table: Option<&DeTable<'_>>) {
        let SourceUrl::Renditions(names) = &stream.source else { return };
        let path = [Key("streams"), Key(name), Key("source")];
        if !RENDITIONS.contains(&names.len()) {
            let help = format!("name {} to {} streams, the best first", RENDITIONS.start(), RENDITIONS.end());
            self.add(&path, format!("there is nothing to choose from {} renditions", names.len()), help);
        }
        for (index, rendition) in names.iter().enumerate() {
            let path = [&path[..], &[Index(index)]].concat();
            let Some(of) = self.config.streams.get(rendition) else {
                let what = format!("no stream is named '{rendition}'");
                self.add(&path, what, self.known_streams(rendition));
                continue;
            };
            if !of.source.renditions().is_empty() {
                let what = format!("'{rendition}' has no source of its own, but renditions");
                self.add(&path, what, "name those, or a stream with a source");
            }
            if names[..index].contains(rendition) {
                self.add(&path, format!("'{rendition}' stands here twice"), "leave one of them out");
            }
        }
        for key in ["elements", "branches"] {
            if written(table, key) {
                let what = format!("a stream that has renditions has no {key}");
                self.add(&[path[0], path[1], Key(key)], what, "write them with the renditions");
            }
        }
    }

    /// Elements and branches: whether all is there, and what fits what.
    fn services(&mut self, name: &str, stream: &StreamConfig) {
        check_plan(&stream.plan(), stream.contents(), &["streams", name], self.root, self.errors);
    }

    /// Rules: whether what they name is there, and whether their changes fit.
    fn rules(&mut self, name: &str, stream: &StreamConfig) {
        let plan = stream.plan();
        for (rule_name, rule) in &stream.rules.0 {
            let path = [Key("streams"), Key(name), Key("rules"), Key(rule_name), Key("then")];
            let mut changed = plan.clone();
            rule.then.iter().for_each(|action| action.apply(&mut changed));
            let missing = rule.then.iter().filter_map(|action| action.check(&plan));
            let unfit = changed.check(stream.contents()).err().unwrap_or_default();
            let unfit = unfit.into_iter().map(|error| Invalid::new(error.what, error.help));
            for Invalid { what, help } in missing.chain(unfit) {
                self.add(&path, what, help);
            }
            let of = [Some(&rule.when), rule.until.as_ref()].into_iter().flatten();
            for Invalid { what, help } in of.filter_map(|condition| condition.check(&plan)) {
                self.add(&path[..4], what, help);
            }
        }
    }

    /// The options that a table of a stream, or of all streams, writes down; inherited ones are
    /// checked where they stand.
    fn options(&mut self, path: &[Step<'_>], table: Option<&DeTable<'_>>, options: &StreamConfig) {
        for (key, invalid) in options.out_of_range() {
            if written(table, key) {
                let path = [path, &[Key(key)]].concat();
                self.errors.add(locate(self.root, &path), invalid);
            }
        }
    }

    /// UDP ports that two would want.
    fn ports(&mut self) {
        let mut taken: Vec<(&str, &UdpSource, RangeInclusive<u16>)> = Vec::new();
        for (name, stream) in &self.config.streams {
            let Some(source) = stream.source.udp() else {
                continue;
            };
            let port = source.at.port();
            let rtcp = u16::from(matches!(stream.source, SourceUrl::Rtp(_)));
            let ports = port..=port.saturating_add(rtcp);
            let path = [Key("streams"), Key(name), Key("source")];
            if let Some((other, ..)) = taken.iter().find(|(_, s, p)| crossing(p, &ports) && clash(source, s))
            {
                let what = format!("stream '{other}' receives at UDP port {port} already");
                self.add(&path, what, "give one of them another port");
            }
            if crossing(&self.config.listen.rtp_ports, &ports) {
                let (first, last) = self.config.listen.rtp_ports.clone().into_inner();
                let what = format!("UDP port {port} lies within listen.rtp_ports ({first}-{last})");
                self.add(&path, what, "choose a port outside of it, or move rtp_ports");
            }
            taken.push((name, source, ports));
        }
    }

    fn sinks(&mut self) {
        let mut names: BTreeMap<&str, ()> = BTreeMap::new();
        let mut targets: BTreeMap<(String, Option<&str>), &str> = BTreeMap::new();
        for (index, sink) in self.config.sinks.iter().enumerate() {
            let at = |key| [Key("sinks"), Index(index), Key(key)];
            let Some(stream) = self.config.streams.get(&sink.stream) else {
                let what = format!("no stream is named '{}'", sink.stream);
                self.add(&at("stream"), what, self.known_streams(&sink.stream));
                continue;
            };
            if let Some(branch) = sink.branch.as_deref().filter(|b| !stream.branches.0.contains_key(*b)) {
                let what = format!("stream '{}' has no branch '{branch}'", sink.stream);
                let help = format!("add [streams.{}.branches.{branch}], or leave it out", sink.stream);
                self.add(&at("branch"), what, help);
            }
            let budget = out_of(sink.latency_budget, &LATENCY_BUDGET, |d| Written(*d).to_string());
            let pace = sink.pace.and_then(pace_out_of_range);
            let reserve_rate = sink.reserve_rate.and_then(reserve_rate_out_of_range);
            for (key, invalid) in [("latency_budget", budget), ("pace", pace), ("reserve_rate", reserve_rate)]
            {
                let span = locate(self.root, &at(key));
                invalid.into_iter().for_each(|invalid| self.errors.add(span.clone(), invalid));
            }
            let interface = sink.to.datagrams().and_then(|sink| sink.interface.as_deref());
            if let Some(other) = targets.insert((sink.to.place(), interface), &sink.stream) {
                let what = format!("stream '{other}' is sent to {} already", sink.to.place());
                self.add(&at("to"), what, "remove one of the two, or choose another address");
            } else if names.insert(&sink.name, ()).is_some() {
                let what = format!("another sink is named '{}'", sink.name);
                self.add(&at("name"), what, "give each a name of its own");
            }
            if stream.source.circles_to(&sink.to) {
                let what = format!("stream '{}' would be sent to where it comes from", sink.stream);
                self.add(&at("to"), what, "choose another address: it would circle forever");
            }
        }
    }

    fn known_streams(&self, meant: &str) -> String {
        let mut names = self.config.streams.keys().map(String::as_str);
        match nearest(meant, names.clone()) {
            Some(near) => format!("did you mean '{near}'? else add [streams.{meant}]"),
            None if names.next().is_none() => format!("add [streams.{meant}]"),
            None => {
                let names: Vec<_> = self.config.streams.keys().take(10).map(String::as_str).collect();
                format!("add [streams.{meant}], or name one of these: {}", names.join(", "))
            }
        }
    }
}

/// Writes down what is wrong with services that stand in the table `at`, of a stream that may carry
/// `worlds`.
pub(crate) fn check_plan(
    plan: &Plan,
    worlds: Contents,
    at: &[&str],
    root: &DeTable<'_>,
    errors: &mut Collector<'_>,
) {
    for error in plan.check(worlds).err().unwrap_or_default() {
        let (keys, index) = crate::services::place(&error.at);
        let keys = at.iter().copied().chain(keys.iter().map(String::as_str)).map(Key);
        let path: Vec<_> = keys.chain(index.map(Index)).collect();
        errors.add(locate(root, &path), Invalid::new(error.what, error.help));
    }
}

impl StreamConfig {
    /// The options that lie outside of what is possible, by key.
    pub fn out_of_range(&self) -> Vec<(&'static str, Invalid)> {
        let duration = |value, allowed| out_of(value, &allowed, |d| Written(*d).to_string());
        let found = [
            ("ring", out_of(self.ring, &RING, ToString::to_string)),
            ("hopeless_after", duration(self.hopeless_after, HOPELESS_AFTER)),
            ("source_timeout", duration(self.source_timeout, SOURCE_TIMEOUT)),
            ("publish_timeout", duration(self.publish_timeout, PUBLISH_TIMEOUT)),
            ("max_receivers", out_of(self.max_receivers, &COUNT, |n| n.to_string())),
            ("reserve", self.reserve.and_then(|share| out_of(share, &RESERVE, ToString::to_string))),
            ("reserve_rate", self.reserve_rate.and_then(reserve_rate_out_of_range)),
            ("latency_budget", duration(self.latency_budget, LATENCY_BUDGET)),
            ("pace", self.pace.and_then(pace_out_of_range)),
        ];
        found.into_iter().filter_map(|(key, invalid)| Some((key, invalid?))).collect()
    }
}

/// Reads a latency budget such as "50 ms".
///
/// # Errors
/// No duration, or more than is possible.
pub fn latency_budget(text: &str) -> Result<Duration, Invalid> {
    let budget = parse_duration(text)?;
    out_of(budget, &LATENCY_BUDGET, |d| Written(*d).to_string()).map_or(Ok(budget), Err)
}

/// Reads a pace: a rate such as "50 Mbit/s", or "off".
///
/// # Errors
/// No rate, or more or less than is possible.
pub fn pace(text: &str) -> Result<Option<BitRate>, Invalid> {
    let pace = text_or_none(text)?;
    pace.and_then(pace_out_of_range).map_or(Ok(pace), Err)
}

/// Reads what a receiver reserves of its link: a rate such as "4 Mbit/s", or "off".
///
/// # Errors
/// No rate, or more or less than is possible.
pub fn reserve_rate(text: &str) -> Result<Option<BitRate>, Invalid> {
    let rate = text_or_none(text)?;
    rate.and_then(reserve_rate_out_of_range).map_or(Ok(rate), Err)
}

fn reserve_rate_out_of_range(rate: BitRate) -> Option<Invalid> {
    out_of(rate, &RESERVE_RATE, ToString::to_string)
}

fn pace_out_of_range(pace: BitRate) -> Option<Invalid> {
    out_of(pace, &PACE, ToString::to_string)
}

fn written(table: Option<&DeTable<'_>>, key: &str) -> bool {
    table.is_some_and(|table| table.contains_key(key))
}

/// Whether two listeners would want the same port of the same address.
fn overlap(a: SocketAddr, b: SocketAddr) -> bool {
    a.port() == b.port() && meet(a.ip(), b.ip())
}

/// Whether there is something that comes to both addresses. What comes to [::] may be of IPv4, too.
fn meet(a: IpAddr, b: IpAddr) -> bool {
    let everywhere = |a: IpAddr, b: IpAddr| a.is_unspecified() && (a.is_ipv6() || b.is_ipv4());
    a == b || everywhere(a, b) || everywhere(b, a)
}

fn crossing(a: &RangeInclusive<u16>, b: &RangeInclusive<u16>) -> bool {
    a.start() <= b.end() && b.start() <= a.end()
}

/// Whether two sources with a port in common cannot both be received.
fn clash(a: &UdpSource, b: &UdpSource) -> bool {
    let (x, y) = (a.at.ip(), b.at.ip());
    if x.is_multicast() && y.is_multicast() {
        // The same group may be received twice if something tells its packets apart.
        return x == y && a.source == b.source && a.interface == b.interface;
    }
    meet(x, y)
}

/// Where something stands: its value, or else the innermost of what is around it.
fn locate(root: &DeTable<'_>, path: &[Step<'_>]) -> Range<usize> {
    let mut span = 0..0;
    let mut table = Some(root);
    let mut list: Option<&[toml::Spanned<DeValue<'_>>]> = None;
    for step in path {
        let value = match *step {
            Key(key) => table.and_then(|table| table.get_key_value(key)).map(|(key, value)| {
                span = key.span();
                value
            }),
            Index(index) => list.and_then(|list| list.get(index)),
        };
        let Some(value) = value else {
            return span;
        };
        table = value.get_ref().as_table();
        list = value.get_ref().as_array().map(|array| &array[..]);
        if table.is_none() || matches!(step, Index(_)) {
            span = value.span();
        }
    }
    span
}
