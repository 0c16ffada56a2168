//! The rules one by one, in virtual time. Each names the section it is from.

use core::time::Duration;
use std::collections::BTreeMap;
use std::net::IpAddr;

use outflow_media::Time;

use super::*;
use crate::membership::packet::{
    Addresses, Message, RecordKind, ReportWriter, emit_leave, emit_old_report, parse,
};
use crate::membership::{Family, Link, Mode};

mod compatibility;
mod election;
mod floods;
mod levels;
mod tables;

fn address(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

fn sources(numbers: &[u8]) -> Vec<IpAddr> {
    numbers.iter().map(|number| IpAddr::from([192, 0, 2, *number])).collect()
}

/// A query that was sent, in short: its group, the S flag and the sources' last bytes.
type Asked = (Option<IpAddr>, bool, Vec<u8>);

const GROUP: &str = "225.1.2.3";

/// A router at 10.0.0.100 with what it says.
struct Lab {
    router: Router,
    now: Time,
    events: Vec<Event>,
    asked: Vec<Asked>,
    /// What was told of each group.
    told: BTreeMap<IpAddr, (Mode, Level, Vec<IpAddr>)>,
}

impl Lab {
    fn with(change: impl FnOnce(&mut RouterSettings)) -> Self {
        let mut settings = RouterSettings::new(Link::new(address("10.0.0.100"), 24));
        change(&mut settings);
        let now = Time::from_millis(1000);
        let router = Router::new(now, settings);
        let mut lab = Lab { router, now, events: Vec::new(), asked: Vec::new(), told: BTreeMap::new() };
        lab.after(Duration::ZERO);
        lab.clear();
        lab
    }

    fn new() -> Self {
        Self::with(|_| ())
    }

    fn clear(&mut self) {
        self.events.clear();
        self.asked.clear();
    }

    /// Takes what the router has to say.
    fn drain(&mut self) {
        let mut out = Vec::new();
        let listener = Link::new(address("10.0.0.1"), 24);
        while let Some(destination) = self.router.poll_transmit(&mut out) {
            let packet = parse(&out, &listener).expect("what is sent is well formed");
            let Message::Query(query) = packet.message else { panic!("routers send queries") };
            assert_eq!(destination, query.head.group.unwrap_or(Family::V4.all_nodes()));
            let list = query.sources.map(last_byte).collect();
            self.asked.push((query.head.group, query.head.suppress, list));
        }
        let state = |wanted: Wanted<'_>| (wanted.mode, wanted.level, wanted.sources().collect());
        while let Some(event) = self.router.poll() {
            self.events.push(event);
            match event {
                Event::GroupWanted { group, level } => {
                    let wanted = self.router.wanted(group).expect("as was said");
                    assert_eq!(wanted.level, level);
                    self.told.insert(group, state(wanted));
                }
                Event::GroupGone { group } => {
                    assert!(self.told.remove(&group).is_some(), "it was told before")
                }
                Event::QuerierChanged { querier } => assert_eq!(querier, self.router.querier()),
            }
        }
        let now: BTreeMap<_, _> =
            self.router.groups().map(|(group, wanted)| (group, state(wanted))).collect();
        assert_eq!(self.told, now, "every change is told");
    }

    /// Lets time pass, with all timeouts at their times.
    fn after(&mut self, wait: Duration) {
        let end = self.now + wait;
        while self.router.next_timeout() <= end {
            self.now = self.now.max(self.router.next_timeout());
            self.router.handle_timeout(self.now);
            self.drain();
            assert!(self.router.next_timeout() > self.now, "nothing is due forever");
        }
        self.now = end;
    }

    fn after_ms(&mut self, ms: u64) {
        self.after(Duration::from_millis(ms));
    }

    fn packet(&mut self, bytes: &[u8]) {
        self.router.handle_packet(self.now, bytes);
        self.drain();
    }

    /// A host says a level by other means.
    fn tells(&mut self, host: &str, group: &str, level: u8) -> Result<(), Reason> {
        let level = Level::new(level).expect("not zero");
        let said = self.router.say_level(self.now, address(host), address(group), level);
        self.drain();
        said
    }

    /// A report of one record.
    fn says(&mut self, host: &str, kind: RecordKind, group: &str, list: &[u8], level: Option<(u8, u32)>) {
        let (mut entries, mut out) = (Vec::new(), Vec::new());
        let sequence = level.map_or(0, |(_, sequence)| sequence);
        let mut writer = ReportWriter::new(address(host), Some(sequence), &mut entries, &mut out);
        assert!(writer.push(kind, address(group), sources(list), level.map(|(level, _)| level)));
        writer.finish();
        self.packet(&out);
    }

    fn record(&mut self, kind: RecordKind, list: &[u8]) {
        self.says("10.0.0.2", kind, GROUP, list, None);
    }

    fn old_report(&mut self, version: Version, host: &str) {
        let mut out = Vec::new();
        emit_old_report(version, address(host), address(GROUP), &mut out);
        self.packet(&out);
    }

    fn leave(&mut self, host: &str) {
        let mut out = Vec::new();
        emit_leave(address(host), address(GROUP), &mut out);
        self.packet(&out);
    }

    fn query(&mut self, from: &str, head: QueryHead, list: &[u8]) {
        let mut out = Vec::new();
        emit_query(&head, address(from), sources(list), &mut out);
        self.packet(&out);
    }

    /// What is wanted of the group: the mode, and the last bytes of the sources.
    fn state(&self) -> Option<(Mode, Vec<u8>)> {
        let wanted = self.router.wanted(address(GROUP))?;
        Some((wanted.mode, wanted.sources().map(last_byte).collect()))
    }

    fn level(&self) -> Option<u8> {
        self.router.wanted(address(GROUP)).map(|wanted| wanted.level.number())
    }

    fn count(&self, reason: Reason) -> u64 {
        self.router.counters().get(reason)
    }
}

fn last_byte(address: IpAddr) -> u8 {
    match address {
        IpAddr::V4(address) => address.octets()[3],
        IpAddr::V6(address) => address.octets()[15],
    }
}

fn query_head(group: Option<&str>) -> QueryHead {
    QueryHead {
        version: Version::V3,
        group: group.map(address),
        max_response: Duration::from_secs(10),
        suppress: false,
        robustness: 2,
        interval: Duration::from_secs(125),
    }
}

#[test]
fn a_leave_is_answered_with_two_queries_and_ends_the_group() {
    let mut lab = Lab::new();
    lab.old_report(Version::V2, "10.0.0.2");
    let group = address(GROUP);
    assert_eq!(lab.events, [Event::GroupWanted { group, level: Level::BEST }]);
    lab.clear();
    lab.leave("10.0.0.2");
    assert_eq!(lab.asked, [(Some(group), false, vec![])], "at once");
    lab.after_ms(1000);
    assert_eq!(lab.asked.len(), 2);
    lab.after_ms(999);
    assert_eq!(lab.state(), Some((Mode::Exclude, vec![])));
    lab.after_ms(1);
    assert_eq!(lab.state(), None);
    assert_eq!(lab.events, [Event::GroupGone { group }]);
    assert_eq!(lab.asked.len(), 2);
    lab.leave("10.0.0.2");
    assert_eq!((lab.asked.len(), lab.count(Reason::UnknownGroup)), (2, 1), "there is none to ask for");
}

#[test]
fn one_that_answers_keeps_the_group_and_the_next_query_says_so() {
    let mut lab = Lab::new();
    lab.old_report(Version::V2, "10.0.0.2");
    lab.leave("10.0.0.2");
    lab.leave("10.0.0.2");
    assert_eq!(lab.asked.len(), 1, "RFC 2236 section 7: a leave while members are asked for is ignored");
    lab.after_ms(500);
    lab.old_report(Version::V2, "10.0.0.3");
    lab.after_ms(500);
    assert_eq!(lab.asked[1], (Some(address(GROUP)), true, vec![]), "RFC 3376 section 6.6.3.1: the S flag");
    lab.after_ms(5000);
    assert_eq!(lab.state(), Some((Mode::Exclude, vec![])));
}

#[test]
fn a_leave_after_an_answer_begins_to_ask_again() {
    let mut lab = Lab::new();
    lab.old_report(Version::V2, "10.0.0.2");
    lab.leave("10.0.0.2");
    lab.after_ms(500);
    lab.old_report(Version::V2, "10.0.0.2");
    lab.after_ms(100);
    lab.leave("10.0.0.2");
    assert_eq!(lab.asked.len(), 2, "RFC 3376 section 6.6.3.1: at once, though a query was left to send");
    lab.after_ms(1999);
    assert!(lab.state().is_some());
    lab.after_ms(1);
    assert_eq!((lab.state(), lab.asked.iter().all(|(_, suppress, _)| !suppress)), (None, true));
}

#[test]
fn a_member_that_falls_silent_is_forgotten_after_the_membership_interval() {
    let mut lab = Lab::new();
    lab.old_report(Version::V2, "10.0.0.2");
    lab.after_ms(259_999);
    assert!(lab.state().is_some());
    lab.after_ms(1);
    assert_eq!((lab.state(), lab.router.usage()), (None, [0, 0, 0]), "RFC 3376 section 8.4: 260 s");
}

#[test]
fn fast_leave_ends_a_group_with_its_last_known_host() {
    let mut lab = Lab::with(|settings| settings.fast_leave = true);
    for host in ["10.0.0.2", "10.0.0.3"] {
        lab.says(host, RecordKind::ToEx, GROUP, &[], None);
    }
    lab.says("10.0.0.2", RecordKind::ToIn, GROUP, &[], None);
    assert_eq!(lab.asked.len(), 1, "another host is there, but it may have left");
    lab.says("10.0.0.3", RecordKind::ToIn, GROUP, &[], None);
    assert_eq!((lab.state(), lab.router.usage()[0]), (None, 0));
    lab.clear();

    lab.record(RecordKind::Allow, &[1, 2]);
    lab.record(RecordKind::Block, &[1]);
    assert_eq!(lab.state(), Some((Mode::Include, vec![2])));
    lab.record(RecordKind::ToEx, &[2, 3]);
    assert_eq!(lab.state(), Some((Mode::Exclude, vec![2, 3])));
    lab.record(RecordKind::ToIn, &[3]);
    assert_eq!(lab.state(), Some((Mode::Include, vec![3])));
    assert_eq!(lab.asked, []);
}

#[test]
fn fast_leave_asks_where_there_may_be_unknown_hosts() {
    let mut lab = Lab::with(|settings| settings.fast_leave = true);
    lab.old_report(Version::V2, "10.0.0.2");
    lab.leave("10.0.0.2");
    assert_eq!(lab.asked.len(), 1, "another host may have been silent because of this one's report");
    assert!(lab.state().is_some());
}

#[test]
fn mld_runs_on_the_same_machine() {
    let settings = RouterSettings::new(Link::new(address("fe80::100"), 64));
    let mut router = Router::new(Time::ZERO, settings);
    let (host, group, mut out) = (address("fe80::2"), address("ff0e::1:2"), Vec::new());
    router.handle_timeout(Time::ZERO);
    assert_eq!(router.poll_transmit(&mut out), Some(address("ff02::1")));
    emit_old_report(Version::V2, host, group, &mut out);
    router.handle_packet(Time::ZERO, &out);
    assert_eq!(router.poll(), Some(Event::QuerierChanged { querier: address("fe80::100") }));
    assert_eq!(router.poll(), Some(Event::GroupWanted { group, level: Level::BEST }));
    emit_leave(host, group, &mut out);
    router.handle_packet(Time::ZERO, &out);
    assert_eq!(router.poll_transmit(&mut out), Some(group));
    router.handle_timeout(Time::from_millis(1000));
    assert_eq!(router.poll_transmit(&mut out), Some(group));
    router.handle_timeout(Time::from_millis(2000));
    assert_eq!(router.poll(), Some(Event::GroupGone { group }));
    assert_eq!(router.poll_transmit(&mut out), None);
}

#[test]
fn groups_of_the_link_and_of_the_source_specific_range_are_not_taken_as_they_are() {
    let mut lab = Lab::new();
    lab.says("10.0.0.2", RecordKind::ToEx, "224.0.0.251", &[], None);
    assert_eq!(lab.count(Reason::LocalGroup), 1);
    lab.says("10.0.0.2", RecordKind::ToEx, "232.1.2.3", &[], None);
    assert_eq!(lab.count(Reason::NotSourceSpecific), 1, "RFC 4604 section 2.2");
    lab.says("10.0.0.2", RecordKind::ToEx, "10.1.2.3", &[], None);
    assert_eq!(lab.count(Reason::NotMulticast), 1);
    assert_eq!(lab.router.groups().count(), 0);
    lab.says("10.0.0.2", RecordKind::Allow, "232.1.2.3", &[1], None);
    assert!(lab.router.wanted(address("232.1.2.3")).expect("it is").receives(address("192.0.2.1")));
}

#[test]
fn a_group_that_came_and_went_before_anybody_asked_is_not_told() {
    let mut lab = Lab::with(|settings| settings.fast_leave = true);
    let (mut entries, mut out) = (Vec::new(), Vec::new());
    for kind in [RecordKind::ToEx, RecordKind::ToIn] {
        let mut writer = ReportWriter::new(address("10.0.0.2"), None, &mut entries, &mut out);
        assert!(writer.push(kind, address(GROUP), [], None));
        writer.finish();
        lab.router.handle_packet(lab.now, &out);
    }
    assert_eq!((lab.router.poll(), lab.router.usage()[0]), (None, 0));
}

#[test]
fn none_is_written_to_a_reader_that_does_not_come() {
    let mut lab = Lab::new();
    let (mut entries, mut out) = (Vec::new(), Vec::new());
    for kind in [RecordKind::ToEx, RecordKind::ToIn].repeat(1000) {
        let mut writer = ReportWriter::new(address("10.0.0.2"), None, &mut entries, &mut out);
        assert!(writer.push(kind, address(GROUP), Addresses::none(Family::V4), None));
        writer.finish();
        lab.now = lab.now + Duration::from_secs(1);
        lab.router.handle_packet(lab.now, &out);
    }
    assert!(lab.router.dirty.len() <= 1 && lab.router.sends.len() <= 1);
}
