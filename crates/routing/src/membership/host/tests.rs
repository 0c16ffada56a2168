//! The rules one by one, in virtual time. Each names the section it is from.

use super::*;
use crate::membership::Reason;
use crate::membership::packet::{Entry, QueryHead, RecordKind, emit_query, parse};

const GROUP: &str = "225.1.2.3";

/// What a host said, with the last bytes of sources.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Sent {
    Record(RecordKind, IpAddr, Vec<u8>),
    Old(Version, IpAddr),
    Leave(IpAddr),
}

struct Lab {
    host: Host,
    now: Time,
    /// What was said, and when: milliseconds.
    said: Vec<(u64, Sent)>,
    packets: usize,
    levels: Vec<(u32, IpAddr, u8)>,
}

fn address(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

fn sources(numbers: &[u8]) -> Vec<IpAddr> {
    numbers.iter().map(|number| IpAddr::from([192, 0, 2, *number])).collect()
}

fn record(kind: RecordKind, list: &[u8]) -> Sent {
    Sent::Record(kind, address(GROUP), list.to_vec())
}

fn level(number: u8) -> Level {
    Level::new(number).expect("it is not 0")
}

impl Lab {
    fn new(own: &str) -> Self {
        let host = Host::new(Time::ZERO, HostSettings::new(Link::new(address(own), 24), 5));
        Lab { host, now: Time::ZERO, said: Vec::new(), packets: 0, levels: Vec::new() }
    }

    fn drain(&mut self) {
        let mut out = Vec::new();
        let own = self.host.settings.link.address;
        let (listener, bits) = match Family::of(own) {
            Family::V4 => (address("10.0.0.1"), 24),
            Family::V6 => (address("fe80::1"), 64),
        };
        let link = Link { prefixes: Link::new(own, bits).prefixes, ..Link::new(listener, bits) };
        while let Some(destination) = self.host.poll_transmit(&mut out) {
            self.packets += 1;
            let now = self.now.as_millis();
            let message = parse(&out, &link).expect("what is sent is well formed").message;
            let mut say = |said| self.said.push((now, said));
            match message {
                Message::OldReport { version, group } => {
                    assert_eq!(destination, group);
                    say(Sent::Old(version, group));
                }
                Message::Leave { group } => say(Sent::Leave(group)),
                Message::Report(report) => {
                    for one in report.records {
                        let list = one.sources.map(|source| match source {
                            IpAddr::V4(source) => source.octets()[3],
                            IpAddr::V6(source) => source.octets()[15],
                        });
                        say(Sent::Record(one.kind, one.group, list.collect()));
                    }
                    for Entry { sequence, group, level } in report.extension.levels() {
                        self.levels.push((sequence, group, level));
                    }
                }
                Message::Query(_) => panic!("hosts ask nothing"),
            }
        }
    }

    fn after_ms(&mut self, ms: u64) {
        let end = self.now + Duration::from_millis(ms);
        while let Some(next) = self.host.next_timeout().filter(|next| *next <= end) {
            self.now = self.now.max(next);
            self.host.handle_timeout(self.now);
            self.drain();
            assert!(self.host.next_timeout().is_none_or(|next| next > self.now), "nothing is due forever");
        }
        self.now = end;
    }

    fn set(&mut self, mode: Mode, list: &[u8], level: Level) {
        let wish = Interest { mode, sources: &sources(list), level };
        self.host.set(self.now, address(GROUP), wish).expect("it may be wished");
        self.drain();
    }

    fn query(&mut self, version: Version, group: Option<&str>, list: &[u8]) {
        let head = QueryHead {
            version,
            group: group.map(address),
            max_response: Duration::from_secs(10),
            suppress: false,
            robustness: 2,
            interval: Duration::from_secs(125),
        };
        let mut out = Vec::new();
        emit_query(&head, address("10.0.0.1"), sources(list), &mut out);
        self.host.handle_packet(self.now, &out);
        self.drain();
    }

    /// What was said since the last call.
    fn said(&mut self) -> Vec<Sent> {
        self.said.drain(..).map(|(_, said)| said).collect()
    }
}

#[test]
fn a_change_is_said_at_once_and_once_again_within_a_second() {
    let mut lab = Lab::new("10.0.0.2");
    lab.set(Mode::Exclude, &[], Level::BEST);
    assert_eq!(lab.said, [(0, record(RecordKind::ToEx, &[]))]);
    lab.after_ms(1000);
    assert_eq!(lab.said(), [record(RecordKind::ToEx, &[]), record(RecordKind::ToEx, &[])]);
    lab.after_ms(100_000);
    assert_eq!(lab.said(), [], "section 5.1: so often as robustness says");
    lab.set(Mode::Include, &[], Level::BEST);
    lab.after_ms(1000);
    assert_eq!(lab.said(), [record(RecordKind::ToIn, &[]), record(RecordKind::ToIn, &[])]);
    assert_eq!((lab.host.groups.len(), lab.host.next_timeout()), (0, None));
}

#[test]
fn changes_of_sources_are_said_source_by_source() {
    use RecordKind::{Allow, Block};
    let mut lab = Lab::new("10.0.0.2");
    lab.set(Mode::Include, &[2, 1, 2], Level::BEST);
    lab.after_ms(1000);
    assert_eq!(lab.said(), [record(Allow, &[1, 2]), record(Allow, &[1, 2])]);
    lab.set(Mode::Include, &[2, 3], Level::BEST);
    assert_eq!(lab.said(), [record(Allow, &[3]), record(Block, &[1])]);
    lab.set(Mode::Include, &[2, 3, 4], Level::BEST);
    assert_eq!(lab.said(), [record(Allow, &[3, 4]), record(Block, &[1])], "section 5.1: merged");
    lab.after_ms(1000);
    assert_eq!(lab.said(), [record(Allow, &[4])]);
    lab.set(Mode::Exclude, &[4], Level::BEST);
    lab.after_ms(1000);
    assert_eq!(lab.said(), [record(RecordKind::ToEx, &[4]), record(RecordKind::ToEx, &[4])]);
    lab.set(Mode::Exclude, &[5], Level::BEST);
    assert_eq!(lab.said(), [record(Allow, &[4]), record(Block, &[5])]);
    lab.set(Mode::Include, &[6], Level::BEST);
    lab.after_ms(1000);
    assert_eq!(lab.said(), [record(RecordKind::ToIn, &[6]), record(RecordKind::ToIn, &[6])]);
}

#[test]
fn a_general_query_is_answered_once_within_its_time_for_all_groups() {
    let mut lab = Lab::new("10.0.0.2");
    lab.set(Mode::Exclude, &[7], level(4));
    lab.host.set(lab.now, address("225.0.0.9"), Interest::all(Level::BEST)).expect("it may be wished");
    lab.after_ms(5000);
    lab.said();
    lab.levels.clear();
    lab.packets = 0;
    lab.query(Version::V3, None, &[]);
    lab.query(Version::V3, None, &[]);
    assert_eq!(lab.said, []);
    lab.after_ms(10_000);
    let groups = [address("225.0.0.9"), address(GROUP)];
    let first = Sent::Record(RecordKind::IsEx, groups[0], vec![]);
    assert_eq!(lab.said(), [first, record(RecordKind::IsEx, &[7])]);
    let levels: Vec<_> = lab.levels.iter().map(|(_, group, level)| (*group, *level)).collect();
    assert_eq!(levels, [(groups[0], 1), (groups[1], 4)]);
    assert_eq!(lab.packets, 1);
}

#[test]
fn many_groups_take_several_reports() {
    let mut lab = Lab::new("10.0.0.2");
    for number in 0..JOINED_MAX as u32 {
        let group = IpAddr::from((0xe200_0000 + number).to_be_bytes());
        lab.host.set(lab.now, group, Interest::all(level(2))).expect("it may be wished");
    }
    lab.drain();
    assert_eq!((lab.said().len(), lab.levels.len()), (JOINED_MAX, JOINED_MAX));
    assert_eq!(lab.packets, JOINED_MAX.div_ceil(76));
    let refused = lab.host.set(lab.now, address(GROUP), Interest::all(level(2)));
    assert_eq!(refused, Err(Refused::TooManyGroups));
}

#[test]
fn a_query_of_a_group_or_of_sources_is_answered_with_what_is_wanted_of_it() {
    let mut lab = Lab::new("10.0.0.2");
    lab.set(Mode::Include, &[1, 2], Level::BEST);
    lab.after_ms(5000);
    lab.said();
    lab.query(Version::V3, Some(GROUP), &[2, 3]);
    lab.query(Version::V3, Some(GROUP), &[1]);
    lab.after_ms(10_000);
    let mut said = lab.said();
    if let Some(Sent::Record(_, _, list)) = said.first_mut() {
        list.sort_unstable();
    }
    assert_eq!(said, [record(RecordKind::IsIn, &[1, 2])], "section 5.2: one answer of both");
    lab.query(Version::V3, Some(GROUP), &[3]);
    lab.query(Version::V3, Some("225.9.9.9"), &[]);
    lab.after_ms(10_000);
    assert_eq!(lab.said(), []);
    lab.query(Version::V3, Some(GROUP), &[3]);
    lab.query(Version::V3, Some(GROUP), &[]);
    lab.after_ms(10_000);
    assert_eq!(lab.said(), [record(RecordKind::IsIn, &[1, 2])]);
    lab.set(Mode::Exclude, &[1], Level::BEST);
    lab.after_ms(5000);
    lab.said();
    lab.query(Version::V3, Some(GROUP), &[1, 3]);
    lab.after_ms(10_000);
    assert_eq!(lab.said(), [record(RecordKind::IsIn, &[3])]);
}

#[test]
fn an_answer_to_all_that_is_due_earlier_serves_for_a_group() {
    let mut lab = Lab::new("10.0.0.2");
    lab.set(Mode::Exclude, &[], Level::BEST);
    lab.after_ms(5000);
    lab.said();
    let mut general = lab.now + Duration::from_secs(10);
    for _ in 0..20 {
        lab.query(Version::V3, None, &[]);
        let before = core::mem::replace(&mut general, lab.host.answer_at.expect("it is answered"));
        assert!(general <= before, "section 5.2, rule 1");
    }
    for _ in 0..20 {
        lab.query(Version::V3, Some(GROUP), &[]);
    }
    assert!(lab.host.groups[&address(GROUP)].answer_at.is_none_or(|due| due < general));
    assert!(lab.host.next_timeout().is_some_and(|next| next <= general));
}

#[test]
fn levels_are_said_when_they_change_and_that_there_is_none_at_the_end() {
    let mut lab = Lab::new("10.0.0.2");
    lab.set(Mode::Exclude, &[], level(9));
    lab.after_ms(1000);
    lab.set(Mode::Exclude, &[], Level::BEST);
    lab.after_ms(1000);
    lab.set(Mode::Include, &[], Level::BEST);
    lab.after_ms(1000);
    let kinds = [RecordKind::ToEx, RecordKind::IsEx, RecordKind::ToIn];
    let twice = |kind| [record(kind, &[]), record(kind, &[])];
    assert_eq!(lab.said(), kinds.map(twice).as_flattened());
    let first = lab.levels[0].0;
    let levels: Vec<_> =
        lab.levels.iter().map(|(sequence, _, level)| (sequence.wrapping_sub(first), *level)).collect();
    assert_eq!(levels, [(0, 9), (0, 9), (1, 1), (1, 1), (1, 0), (1, 0)]);
}

#[test]
fn a_plain_host_says_no_level() {
    let mut lab = Lab::new("10.0.0.2");
    lab.host.settings.says_levels = false;
    lab.set(Mode::Exclude, &[], level(9));
    assert_eq!((lab.said(), lab.levels.len()), (vec![record(RecordKind::ToEx, &[])], 0));
}

#[test]
fn with_a_version_2_querier_reports_are_of_version_2_until_it_is_gone() {
    let mut lab = Lab::new("10.0.0.2");
    lab.set(Mode::Include, &[1], Level::BEST);
    lab.after_ms(1000);
    lab.said();
    lab.query(Version::V2, None, &[]);
    lab.query(Version::V3, None, &[]);
    lab.after_ms(10_000);
    let group = address(GROUP);
    assert_eq!(lab.said(), [Sent::Old(Version::V2, group)]);
    lab.set(Mode::Include, &[], Level::BEST);
    assert_eq!(lab.said(), [Sent::Leave(group)]);
    lab.set(Mode::Exclude, &[], Level::BEST);
    lab.after_ms(10_000);
    assert_eq!(lab.said(), [Sent::Old(Version::V2, group), Sent::Old(Version::V2, group)]);
    assert_eq!(lab.host.version(), Version::V2);
    lab.after_ms(240_000);
    lab.host.handle_timeout(lab.now);
    assert_eq!(lab.host.version(), Version::V3, "section 8.12: 2 * 125 s + 10 s");
}

#[test]
fn with_a_version_1_querier_no_host_says_that_it_leaves() {
    let mut lab = Lab::new("10.0.0.2");
    lab.query(Version::V1, None, &[]);
    lab.set(Mode::Exclude, &[], Level::BEST);
    lab.after_ms(20_000);
    assert_eq!(lab.said(), vec![Sent::Old(Version::V1, address(GROUP)); 2]);
    lab.set(Mode::Include, &[], Level::BEST);
    assert_eq!((lab.said(), lab.host.groups.len()), (vec![], 0));
}

#[test]
fn what_is_pending_is_dropped_when_the_version_changes() {
    let mut lab = Lab::new("10.0.0.2");
    lab.set(Mode::Exclude, &[], Level::BEST);
    lab.said();
    lab.query(Version::V2, Some("225.9.9.9"), &[]);
    lab.after_ms(5000);
    assert_eq!(lab.said(), [], "section 7.2.1");
}

#[test]
fn anothers_report_serves_for_this_host_unless_its_level_differs() {
    for (wanted, answers) in [(Level::BEST, 0), (level(3), 1)] {
        let mut lab = Lab::new("10.0.0.2");
        lab.query(Version::V2, None, &[]);
        lab.set(Mode::Exclude, &[], wanted);
        lab.after_ms(20_000);
        lab.said();
        lab.query(Version::V2, None, &[]);
        let mut out = Vec::new();
        emit_old_report(Version::V2, address("10.0.0.3"), address(GROUP), &mut out);
        lab.host.handle_packet(lab.now, &out);
        lab.after_ms(10_000);
        assert_eq!(lab.said().len(), answers, "RFC 2236 section 3");
    }
}

#[test]
fn a_version_3_host_answers_whatever_others_report() {
    let mut lab = Lab::new("10.0.0.2");
    lab.set(Mode::Exclude, &[], Level::BEST);
    lab.after_ms(1000);
    lab.said();
    lab.query(Version::V3, None, &[]);
    let mut out = Vec::new();
    emit_old_report(Version::V2, address("10.0.0.3"), address(GROUP), &mut out);
    lab.host.handle_packet(lab.now, &out);
    lab.after_ms(10_000);
    assert_eq!(lab.said().len(), 1);
}

#[test]
fn mld_runs_on_the_same_machine() {
    let mut lab = Lab::new("fe80::2");
    let group = address("ff0e::1:2");
    lab.host.set(lab.now, group, Interest::all(level(3))).expect("it may be wished");
    lab.drain();
    assert_eq!(lab.said(), [Sent::Record(RecordKind::ToEx, group, vec![])]);
    assert_eq!(lab.levels.iter().map(|(_, of, level)| (*of, *level)).collect::<Vec<_>>(), [(group, 3)]);
    lab.after_ms(1000);
    lab.said();
    let head = QueryHead {
        version: Version::V2,
        group: None,
        max_response: Duration::from_secs(10),
        suppress: false,
        robustness: 0,
        interval: Duration::ZERO,
    };
    let mut out = Vec::new();
    emit_query(&head, address("fe80::1"), [], &mut out);
    lab.host.handle_packet(lab.now, &out);
    lab.after_ms(10_000);
    assert_eq!(lab.said(), [Sent::Old(Version::V2, group)], "RFC 3810 section 8.2");
    lab.host.set(lab.now, group, Interest::nothing()).expect("it may be wished");
    lab.drain();
    assert_eq!(lab.said(), [Sent::Leave(group)]);
}

#[test]
fn wishes_that_cannot_be_said_are_refused() {
    let mut lab = Lab::new("10.0.0.2");
    let mut set = |group: &str, list: &[IpAddr]| {
        let wish = Interest { mode: Mode::Exclude, sources: list, level: Level::BEST };
        lab.host.set(Time::ZERO, address(group), wish)
    };
    assert_eq!(set("10.1.2.3", &[]), Err(Refused::NotMulticast(address("10.1.2.3"))));
    assert_eq!(set("ff0e::1", &[]), Err(Refused::NotMulticast(address("ff0e::1"))));
    assert_eq!(set("224.0.0.1", &[]), Err(Refused::NeverReported(address("224.0.0.1"))));
    assert_eq!(set(GROUP, &[address("::1")]), Err(Refused::NotSource(address("::1"))));
    assert_eq!(set(GROUP, &vec![address("192.0.2.1"); 65]), Err(Refused::TooManySources(65)));
    assert_eq!((lab.host.groups.len(), lab.host.next_timeout()), (0, None));
    lab.host.handle_packet(Time::ZERO, &[0x45; 10]);
    assert_eq!(lab.host.counters().get(Reason::Truncated), 1);
}
