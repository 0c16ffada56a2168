//! Levels of transport streams, for receivers that come, go, change and are slow.

mod receiver;
mod source;

use core::time::Duration;

use outflow_media::{Format, Time};
use outflow_packet::{Incoming, Level};
use outflow_ts::packet::pid_of;
use proptest::prelude::*;

use receiver::Receiver;
use source::{Choices, Codec, Mux, Sent, Source, VIDEO};

use crate::control::{Handed, LevelBounds, Output, Stream, StreamOptions};
use crate::schedule::{Encapsulation, SinkKey, SinkSpec, Transport};
use crate::send::Report;

/// What happens to receivers.
#[derive(Debug, Clone)]
enum Step {
    Join(u8, bool),
    Request(usize, u8),
    /// No receiver gets more than this.
    Bound(u8),
    /// It takes this many packets of its next order and no more, for this many groups of pictures.
    Block(usize, u64, u32),
    Leave(usize),
    /// The stream goes on in another process.
    Move,
    /// This many groups of pictures; of this many datagrams one is lost on the way here.
    Groups(u32, Option<usize>),
}

struct Bench {
    stream: Stream,
    source: Source,
    sizes: Choices,
    now: Time,
    bounds: LevelBounds,
    /// All packets that came in.
    came: Vec<Sent>,
    /// Packets that got lost since one of the video came.
    lost: usize,
    receivers: Vec<Receiver>,
    /// What replicas are to be handed.
    handed: Vec<Handed>,
}

impl Bench {
    fn new(mux: Mux, list: &[u8]) -> Self {
        let mut stream = Stream::new(StreamOptions { ssrc: 0x7fff_ff00, ..StreamOptions::default() });
        stream.handle_source(Time::ZERO, Format::Ts);
        let choices = Choices::new(list.to_vec());
        Bench {
            stream,
            source: Source::new(mux, choices.clone()),
            sizes: choices,
            now: Time::ZERO,
            bounds: LevelBounds::default(),
            came: Vec::new(),
            lost: 0,
            receivers: Vec::new(),
            handed: Vec::new(),
        }
    }

    fn join(&mut self, level: u8, by_rtp: bool) {
        let encapsulation = if by_rtp { Encapsulation::Rtp } else { Encapsulation::Ts };
        let level = Level::new(level).expect("a level");
        let spec = SinkSpec { level, ..SinkSpec::new(encapsulation, Transport::Stream) };
        let key = self.stream.handle_join(self.now, self.receivers.len() as u64, spec);
        self.receivers.push(Receiver::new(key, by_rtp));
    }

    fn bound(&mut self, level: u8) {
        let mut bounds = LevelBounds::default();
        bounds.lower(None, Level::new(level).expect("a level"));
        self.stream.set_bounds(bounds.clone());
        self.bounds = bounds;
    }

    fn go_on_elsewhere(&mut self) {
        let saved = minicbor::to_vec(self.stream.save()).expect("memory does not fail");
        self.stream = Stream::new(StreamOptions::default());
        self.stream.set_bounds(self.bounds.clone());
        let saved = minicbor::decode(&saved).expect("what was written");
        for (id, key) in self.stream.restore(self.now, saved).expect("it fits") {
            self.receivers[id as usize].key = key;
        }
    }

    /// The number of a receiver that is there, of those that were ever.
    fn receiver(&self, number: usize) -> Option<usize> {
        let there: Vec<_> = (0..self.receivers.len()).filter(|at| self.receivers[*at].is_there).collect();
        there.get(number % there.len().max(1)).copied()
    }

    fn step(&mut self, step: &Step) {
        match *step {
            Step::Join(level, by_rtp) => self.join(level, by_rtp),
            Step::Request(number, level) => {
                if let Some(at) = self.receiver(number) {
                    let level = Level::new(level).expect("a level");
                    // There may be no such level.
                    let _ = self.stream.set_level(self.receivers[at].key, level);
                }
            }
            Step::Bound(level) => self.bound(level),
            Step::Block(number, packets, groups) => {
                if let Some(at) = self.receiver(number) {
                    self.receivers[at].block = Some((packets, groups));
                }
            }
            Step::Leave(number) => {
                if let Some(at) = self.receiver(number) {
                    self.stream.handle_leave(self.now, self.receivers[at].key);
                    self.receivers[at].is_there = false;
                }
            }
            Step::Move => self.go_on_elsewhere(),
            Step::Groups(count, loss) => (0..count).for_each(|_| self.group(loss)),
        }
        self.serve();
    }

    fn group(&mut self, loss: Option<usize>) {
        let packets = self.source.group();
        let mut rest = &packets[..];
        while !rest.is_empty() {
            let size = [7, 7, 7, 3, 1, 20][self.sizes.below(6)].min(rest.len());
            let (datagram, behind) = rest.split_at(size);
            rest = behind;
            self.now = self.now + Duration::from_millis(30);
            if loss.is_some_and(|every| self.sizes.below(every) == 0) && self.may_lose(datagram) {
                continue;
            }
            if datagram.iter().any(|sent| pid_of(&sent.bytes) == Some(VIDEO)) {
                self.lost = 0;
            }
            self.came.extend_from_slice(datagram);
            let bytes: Vec<u8> = datagram.iter().flat_map(|sent| sent.bytes.to_vec()).collect();
            assert!(self.stream.handle_media(self.now, 0, Incoming::Shared(bytes.into())));
            // Packets may come several at a time.
            if self.sizes.below(4) > 0 {
                self.serve();
            }
        }
        for at in 0..self.receivers.len() {
            let receiver = &mut self.receivers[at];
            match &mut receiver.block {
                Some((0, groups)) if *groups > 0 => *groups -= 1,
                Some((0, _)) => {
                    receiver.block = None;
                    self.stream.handle_report(receiver.key, Report::Writable);
                }
                _ => {}
            }
        }
        self.serve();
    }

    /// Counters have four bits: from 15 packets of a PID on, they do not show how many are lost, and whether
    /// the next one is the last once more.
    fn may_lose(&mut self, datagram: &[Sent]) -> bool {
        let may = self.lost + datagram.len() < 15;
        self.lost += if may { datagram.len() } else { 0 };
        may
    }

    fn serve(&mut self) {
        loop {
            let order = match self.stream.poll(self.now) {
                Output::Order(order) => order,
                Output::Wait { .. } => return,
                Output::HandOver(handed) => {
                    self.handed.extend(handed);
                    continue;
                }
                _ => continue,
            };
            let members = self.stream.members(&order).to_vec();
            members.into_iter().for_each(|key| self.deliver(&order, key));
        }
    }

    fn deliver(&mut self, order: &crate::Order, key: SinkKey) {
        let is = |receiver: &&mut Receiver| receiver.key == key && receiver.is_there;
        let receiver = self.receivers.iter_mut().find(is).expect("one that left is sent nothing");
        let share = self.stream.share(order, key);
        if let Some((bytes, header)) = self.stream.preamble(order) {
            receiver.spliced(bytes, header, share.sequence_offset, order.from < order.to);
        }
        let mut blocked = None;
        for (seq, entry, sequence_offset) in self.stream.packets(order, share) {
            match &mut receiver.block {
                Some((0, _)) => {
                    blocked = Some(seq);
                    break;
                }
                Some((left, _)) => *left -= 1,
                None => {}
            }
            receiver.datagram(&entry.packet.bytes, entry.rtp_header, sequence_offset);
        }
        if let Some(next) = blocked {
            self.stream.handle_report(key, Report::Blocked { next });
        }
    }

    fn check(&self, is_lossy: bool) {
        for receiver in &self.receivers {
            let got = receiver.check(&self.came, is_lossy);
            if !is_lossy {
                receiver.check_pictures(&got, &self.came, &self.source.pictures);
            }
        }
    }
}

fn mux() -> impl Strategy<Value = Mux> {
    let codec = prop_oneof![Just(Codec::H264), Just(Codec::H265), Just(Codec::Mpeg2)];
    (codec, any::<[bool; 4]>()).prop_map(|(codec, [clock_apart, bounded, doubles, open])| Mux {
        codec,
        clock_apart,
        bounded,
        doubles,
        open,
    })
}

fn steps(loss: impl Strategy<Value = Option<usize>> + Clone + 'static) -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        2 => (1..6_u8, any::<bool>()).prop_map(|(level, by_rtp)| Step::Join(level, by_rtp)),
        4 => (0..8_usize, 1..6_u8).prop_map(|(number, level)| Step::Request(number, level)),
        1 => (1..6_u8).prop_map(Step::Bound),
        1 => (0..8_usize, 0..20_u64, 0..4_u32).prop_map(|(number, packets, groups)| {
            Step::Block(number, packets, groups)
        }),
        1 => (0..8_usize).prop_map(Step::Leave),
        6 => (1..4_u32, loss).prop_map(|(groups, loss)| Step::Groups(groups, loss)),
    ];
    prop::collection::vec(step, 1..40)
}

fn list() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 1..80)
}

proptest! {
    #[test]
    fn whatever_levels_are_taken_what_arrives_is_a_whole_stream(
        mux in mux(),
        list in list(),
        steps in steps(Just(None)),
    ) {
        let mut bench = Bench::new(mux, &list);
        steps.iter().for_each(|step| bench.step(step));
        bench.step(&Step::Groups(2, None));
        bench.check(false);
    }

    #[test]
    fn what_was_lost_before_shows_and_nothing_else(
        mux in mux(),
        list in list(),
        steps in steps((4..40_usize).prop_map(Some)),
    ) {
        let mut bench = Bench::new(mux, &list);
        steps.iter().for_each(|step| bench.step(step));
        bench.check(true);
    }
}

/// What happens to receivers of all there is, one of which is there from the beginning.
fn steps_of_whole() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        2 => any::<bool>().prop_map(|by_rtp| Step::Join(1, by_rtp)),
        1 => (0..8_usize, 0..20_u64, 0..4_u32).prop_map(|(number, packets, groups)| {
            Step::Block(number, packets, groups)
        }),
        1 => (0..8_usize).prop_map(Step::Leave),
        2 => Just(Step::Move),
        6 => (1..4_u32).prop_map(|groups| Step::Groups(groups, None)),
    ];
    prop::collection::vec(step, 1..40)
}

proptest! {
    #[test]
    fn a_stream_that_goes_on_in_another_process_is_whole(
        mux in mux(),
        list in list(),
        steps in steps_of_whole(),
    ) {
        let mut bench = Bench::new(mux, &list);
        bench.step(&Step::Join(1, true));
        steps.iter().for_each(|step| bench.step(step));
        bench.step(&Step::Groups(2, None));
        bench.check(false);
    }
}

proptest! {
    #[test]
    fn a_level_has_the_pictures_of_its_layers_and_costs_what_it_has(mux in mux(), list in list()) {
        let mut bench = Bench::new(mux, &list);
        let levels = bench.source.layers();
        bench.group(None);
        (1..=levels).for_each(|level| bench.join(level, false));
        (0..4).for_each(|_| bench.group(None));
        bench.check(false);
        let rates = bench.stream.rate_table(bench.now);
        prop_assert_eq!(rates.len(), usize::from(levels));
        let mut better = None;
        for (level, receiver) in (1..).zip(&bench.receivers) {
            // The last one may still wait for its end.
            let last = bench.source.pictures.len() - 1;
            let mut pictures = receiver.pictures(&bench.came);
            pictures.remove(&last);
            let first = pictures.first().copied().unwrap_or_default();
            let within = |number: &usize| bench.source.pictures[*number].layer <= levels - level;
            let of_layers: Vec<_> = (first..last).filter(within).collect();
            prop_assert_eq!(pictures.iter().copied().collect::<Vec<_>>(), of_layers, "level {}", level);
            if let Some(better) = better.replace(pictures.clone()) {
                prop_assert!(pictures.is_subset(&better));
            }
            prop_assert_eq!(bench.stream.rates_of(bench.now, receiver.key), rates.clone());
        }
        prop_assert!(rates.is_sorted_by(|better, worse| better >= worse), "{:?}", rates);
    }
}

#[test]
fn one_that_changes_again_and_again_gets_nothing_twice() {
    let mut bench = h264();
    bench.join(2, false);
    (0..3).for_each(|_| bench.group(None));
    for level in [3, 1, 2, 3, 1, 1, 3] {
        bench.step(&Step::Request(0, level));
    }
    (0..2).for_each(|_| bench.group(None));
    bench.check(false);
}

fn h264() -> Bench {
    let mux = Mux { codec: Codec::H264, clock_apart: false, bounded: false, doubles: false, open: false };
    Bench::new(mux, &[7, 1, 30, 4])
}

#[test]
fn there_are_as_many_levels_as_the_video_has_layers() {
    let mut bench = h264();
    bench.join(1, false);
    let key = bench.receivers[0].key;
    assert_eq!(bench.stream.set_level(key, Level::MAX.try_into().expect("one")), Ok(()), "nothing is known");
    bench.group(None);
    let four = Level::new(4).expect("a level");
    let refused = bench.stream.set_level(key, four).expect_err("there are three");
    assert!(refused.help.contains("1 (the best) to 3"), "{refused}");
}

#[test]
fn a_stream_that_cannot_be_parted_goes_to_everyone_as_it_is() {
    let mut bench = h264();
    bench.group(None);
    bench.join(3, false);
    bench.group(None);
    assert_eq!(bench.stream.rates_of(bench.now, bench.receivers[0].key).len(), 3);
    bench.source.scrambled = true;
    bench.group(None);
    let from = bench.source.pictures.len();
    (0..2).for_each(|_| bench.group(None));
    assert_eq!(bench.stream.rates_of(bench.now, bench.receivers[0].key).len(), 1);
    let pictures = bench.receivers[0].pictures(&bench.came);
    assert!((from..bench.source.pictures.len()).all(|number| pictures.contains(&number)), "{pictures:?}");
}

#[test]
fn branches_of_levels_come_and_go_with_those_that_want_them() {
    let mut bench = h264();
    bench.group(None);
    let branches = |bench: &Bench| bench.stream.out.branches.iter().count();
    assert_eq!(branches(&bench), 1);
    bench.join(3, false);
    bench.join(2, false);
    bench.group(None);
    assert_eq!(branches(&bench), 3);
    bench.step(&Step::Leave(0));
    bench.step(&Step::Request(0, 1));
    (0..10).for_each(|_| bench.group(None));
    bench.now = bench.now + crate::limits::BRANCH_LINGER;
    bench.serve();
    assert_eq!(branches(&bench), 1);
    bench.check(false);
}

#[test]
fn a_bound_holds_for_players_that_are_there_and_that_come_and_what_they_asked_for_comes_back() {
    let mut bench = h264();
    bench.group(None);
    [1, 3].into_iter().for_each(|level| bench.join(level, false));
    bench.group(None);
    bench.bound(2);
    bench.join(1, false);
    let levels = |bench: &Bench| -> Vec<u8> {
        bench.stream.sinks().map(|(_, sink)| sink.spec.level.number()).collect()
    };
    let wanted =
        |bench: &Bench| -> Vec<u8> { bench.stream.sinks().map(|(_, s)| s.wish.asked.number()).collect() };
    assert_eq!((levels(&bench), wanted(&bench)), (vec![2, 3, 2], vec![1, 3, 1]));
    let from = bench.source.pictures.len();
    (0..2).for_each(|_| bench.group(None));
    let is_b = |number: &usize| bench.source.pictures[*number].layer == 2;
    let got = |at: usize| bench.receivers[at].pictures(&bench.came);
    assert!((from..bench.source.pictures.len()).any(|number| is_b(&number)), "there are B pictures");
    // Less begins with the next picture.
    assert!(got(0).range(from + 1..).next().is_some() && !got(0).range(from + 1..).any(is_b));
    assert!(!got(2).iter().any(is_b));
    bench.step(&Step::Request(1, 1));
    assert_eq!((levels(&bench), wanted(&bench)), (vec![2, 2, 2], vec![1, 1, 1]));
    bench.bound(100);
    assert_eq!(levels(&bench), [100; 3], "which is the base");
    bench.step(&Step::Request(2, 2));
    bench.stream.set_bounds(LevelBounds::default());
    assert_eq!((levels(&bench), wanted(&bench)), (vec![1, 1, 2], vec![1, 1, 2]));
    let from = bench.source.pictures.len();
    (0..3).for_each(|_| bench.group(None));
    let is_b = |number: &usize| bench.source.pictures[*number].layer == 2;
    assert!(bench.receivers[0].pictures(&bench.came).range(from..).any(is_b), "all of it again");
    bench.check(false);
}

#[test]
fn levels_go_on_where_the_source_begins_again() {
    let mut bench = h264();
    bench.group(None);
    [1, 3].into_iter().for_each(|level| bench.join(level, false));
    (0..2).for_each(|_| bench.group(None));
    bench.stream.handle_source(bench.now, Format::Ts);
    assert_eq!(bench.stream.levels(), 3, "as before");
    let from = bench.source.pictures.len();
    (0..3).for_each(|_| bench.group(None));
    let above_base = |number: &usize| bench.source.pictures[*number].layer > 0;
    let got = |at: usize| bench.receivers[at].pictures(&bench.came);
    assert!(got(0).range(from..).any(above_base), "all of it");
    assert!(got(1).range(from..).next().is_some() && !got(1).range(from..).any(above_base));
    bench.check(true);
}

#[test]
fn what_its_reader_has_read_is_not_read_again() {
    let mut bench = h264();
    bench.join(3, false);
    (0..2).for_each(|_| bench.group(None));
    bench.stream.handle_source(bench.now, Format::Ts);
    bench.group(None);
    let slot = bench.stream.out.branches.slot(0).expect("the original");
    assert!(!slot.levels.as_ref().expect("a transport stream").has_reader());
}

#[test]
fn a_replica_is_handed_what_was_found_and_reads_only_what_it_is_introduced_to() {
    let mut bench = h264();
    let mut replica = Stream::new(StreamOptions::default());
    bench.group(None);
    let introduction = bench.stream.handle_replica().introduction;
    introduction.into_iter().for_each(|handed| replica.handle_handed(bench.now, handed));
    let has_reader = |replica: &Stream| {
        let slot = replica.out.branches.slot(0).expect("the original");
        slot.levels.as_ref().expect("a transport stream").has_reader()
    };
    assert!(has_reader(&replica), "what a ring held");
    (0..3).for_each(|_| bench.group(None));
    bench.stream.handle_source(bench.now, Format::Ts);
    bench.group(None);
    bench.handed.drain(..).for_each(|handed| replica.handle_handed(bench.now, handed));
    assert!(!has_reader(&replica), "it is not read again");
    assert_eq!((replica.levels(), bench.stream.levels()), (3, 3));
}
