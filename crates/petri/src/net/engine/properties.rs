//! Random nets under random losses, reorderings and clocks, against the model and against what is promised.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::super::samples;
use super::model::{Model, Step, tell};
use super::*;

fn choice() -> impl Strategy<Value = samples::Choice> {
    (0..8_usize, 0..8_usize, 0..3_u32, 0..4_u64, 0..6_u64, prop::bool::weighted(0.8))
}

fn nets() -> impl Strategy<Value = Arc<Net>> {
    let rules = prop::collection::vec(0..9_usize, 1..6);
    (rules, prop::collection::vec(choice(), 6..14))
        .prop_map(|(rules, choices)| samples::live(&rules, &choices, 10))
}

/// What happens, how far from the newest unit, and milliseconds since the last step.
type Packet = (u8, u64, u64);

fn packets() -> impl Strategy<Value = Vec<Packet>> {
    let gap = prop_oneof![8 => 0..6_u64, 2 => 6..60_u64, 1 => Just(2000)];
    prop::collection::vec((0..40_u8, 0..6_u64, gap), 1..120)
}

/// Units come about in order: some are left out, some come late or again, some are said to be absent.
fn steps(packets: &[Packet]) -> Vec<(Time, Step)> {
    let (mut next, mut now) = (0_u64, Time::ZERO);
    let step = |(what, distance, gap): &Packet| {
        now = now + core::time::Duration::from_millis(*gap);
        let back = next.saturating_sub(distance + 1);
        let step = match what {
            0..=1 => Step::Timeout,
            2..=3 => Step::Absent(back),
            4..=5 => Step::Received(back),
            6 => Step::Announced(next + distance),
            7 => Step::Received(next + 10 * distance),
            8 => Step::Absent(next + distance),
            _ => {
                next += if *distance == 5 { 2 } else { 1 };
                Step::Received(next - 1)
            }
        };
        (now, step)
    };
    packets.iter().map(step).collect()
}

fn drained(engine: &mut Engine) -> Vec<Event> {
    core::iter::from_fn(|| engine.poll()).collect()
}

/// What became of each unit, and what an engine must keep to.
struct Watch {
    net: Arc<Net>,
    fate: BTreeMap<u64, &'static str>,
    absent: BTreeSet<u64>,
    fired: Vec<u64>,
    /// Until when each transition waits, as it was told.
    until: BTreeMap<usize, Time>,
}

impl Watch {
    fn new(net: Arc<Net>) -> Self {
        let fired = vec![0; net.transitions().len()];
        Watch { net, fate: BTreeMap::new(), absent: BTreeSet::new(), fired, until: BTreeMap::new() }
    }

    fn ended(&mut self, unit: u64, fate: &'static str) {
        let before = self.fate.insert(unit, fate);
        assert!(before.is_none_or(|before| before == "absent"), "unit {unit}: {before:?}, and {fate}");
    }

    fn see(&mut self, event: Event) {
        match event {
            Event::Deliver(unit) => {
                self.ended(unit, "delivered");
                let (round, object) = self.net.split(unit);
                let place = &self.net.places()[self.net.place_of(object).index()];
                assert_eq!(round, self.fired[place.consumer.index()], "{unit} is of its transition's round");
                let before = self.fired[place.producer.index()] + u64::from(place.initial);
                assert!(round < before, "{unit} comes after its predecessors");
            }
            Event::Delete(unit) => self.ended(unit, "deleted"),
            Event::Lost(unit) => {
                assert!(!self.absent.contains(&unit), "{unit} was absent");
                self.ended(unit, "lost");
            }
            Event::Fired { transition, round } => {
                assert_eq!(self.fired[transition.index()], round, "rounds are fired one by one");
                self.fired[transition.index()] += 1;
                self.until.remove(&transition.index());
            }
        }
    }

    /// All units below the settled mark have a fate.
    fn check(&mut self, engine: &Engine) {
        let settled = engine.settled_below();
        let absent = self.absent.iter().filter(|unit| !self.fate.contains_key(unit)).copied();
        let absent: Vec<_> = absent.collect();
        self.fate.extend(absent.into_iter().map(|unit| (unit, "absent")));
        assert_eq!(self.fate.range(..settled).count() as u64, settled, "below {settled}: {:?}", self.fate);
        assert!(!engine.is_settled(settled));
        let oldest = self.fired.iter().min().copied().unwrap_or(0);
        assert_eq!(engine.window_end(), (oldest + engine.window) * self.net.objects() as u64);
        assert!(engine.slots.used() as u64 <= engine.window * self.net.objects() as u64);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn the_engine_does_what_is_defined(net in nets(), window in 1..5_usize, packets in packets()) {
        let mut engine = Engine::new(net.clone(), window, Time::ZERO);
        let mut model = Model::new(net, window as u64, Time::ZERO);
        for (now, step) in steps(&packets) {
            let (verdict, expected) = (tell(&mut engine, now, step), model.handle(now, step));
            let mut events = drained(&mut engine);
            events.sort_unstable();
            prop_assert_eq!(&events, &model.events(), "{:?} at {}", step, now);
            prop_assert_eq!(verdict, expected, "{:?} at {}", step, now);
            // The engine looks at what is absent when its time comes, too.
            if let Some(next) = model.next() {
                prop_assert!(engine.next_timeout().is_some_and(|due| now < due && due <= next));
            }
        }
    }

    #[test]
    fn promises_are_kept(net in nets(), window in 1..5_usize, packets in packets()) {
        let mut engine = Engine::new(net.clone(), window, Time::ZERO);
        let mut watch = Watch::new(net.clone());
        for (now, step) in steps(&packets) {
            let due: Vec<_> = (0..net.objects()).map(|object| {
                let consumer = net.places()[net.place_of(object).index()].consumer;
                let unit = net.unit(engine.round_of(consumer), object);
                (unit, engine.need(unit))
            }).collect();
            let verdict = tell(&mut engine, now, step);
            for (unit, need) in due {
                let is_told = matches!(step, Step::Received(told) if told == unit);
                if is_told && matches!(need, Need::Until(until) if until <= now) {
                    prop_assert_eq!(verdict, Some(Verdict::Late), "{} at {}", unit, now);
                }
            }
            if let (Step::Absent(unit), Some(Verdict::Memorise)) = (step, verdict) {
                watch.absent.insert(unit);
            }
            drained(&mut engine).into_iter().for_each(|event| watch.see(event));
            watch.check(&engine);
        }
    }

    #[test]
    fn what_was_saved_goes_on_as_if_nothing_had_been(
        net in nets(),
        window in 1..5_usize,
        packets in packets(),
        at in 0..120_usize,
    ) {
        let mut engine = Engine::new(net.clone(), window, Time::ZERO);
        let mut other = None;
        for (count, (now, step)) in steps(&packets).into_iter().enumerate() {
            if count == at % packets.len() {
                let bytes = minicbor::to_vec(engine.save()).expect("it is written to memory");
                let saved = minicbor::decode(&bytes).expect("it was just written");
                let restored = Engine::restore(net.clone(), window, &saved).expect("it is of this net");
                prop_assert_eq!(restored.save(), saved);
                other = Some(restored);
            }
            let verdict = tell(&mut engine, now, step);
            let events = drained(&mut engine);
            let Some(other) = &mut other else { continue };
            prop_assert_eq!(tell(other, now, step), verdict, "{:?} at {}", step, now);
            prop_assert_eq!(drained(other), events);
            prop_assert_eq!(other.next_timeout(), engine.next_timeout());
            let ends = |engine: &Engine| (engine.settled_below(), engine.window_end());
            prop_assert_eq!(ends(other), ends(&engine));
            for unit in engine.settled_below()..engine.window_end() {
                prop_assert_eq!(other.need(unit), engine.need(unit));
            }
        }
    }

    #[test]
    fn looking_more_often_changes_nothing(net in nets(), packets in packets()) {
        let mut engines = [0, 1].map(|_| Engine::new(net.clone(), 3, Time::ZERO));
        let mut seen = [Vec::new(), Vec::new()];
        for (now, step) in steps(&packets) {
            while let Some(due) = engines[1].next_timeout().filter(|due| *due <= now) {
                engines[1].handle_timeout(due);
            }
            for (engine, seen) in engines.iter_mut().zip(&mut seen) {
                tell(engine, now, step);
                seen.extend(drained(engine));
            }
            prop_assert_eq!(&seen[0], &seen[1]);
        }
    }

    #[test]
    fn what_is_received_or_absent_is_enough_to_go_on(
        net in nets(),
        window in 1..5_usize,
        packets in packets(),
        order in prop::collection::vec(any::<(u16, bool)>(), 14),
    ) {
        let mut engine = Engine::new(net.clone(), window, Time::ZERO);
        let mut now = Time::ZERO;
        for (time, step) in steps(&packets) {
            tell(&mut engine, time, step);
            now = time;
        }
        // Everything that is still needed comes, in any order, a window at a time; time passes for intervals.
        for _ in 0..3 {
            let end = engine.window_end();
            let is_needed = |unit: &u64| engine.need(*unit) != Need::No;
            let mut left: Vec<_> = (engine.settled_below()..end).filter(is_needed).collect();
            left.sort_by_key(|unit| order[*unit as usize % order.len()]);
            for unit in left {
                let is_absent = order[unit as usize % order.len()].1;
                tell(&mut engine, now, if is_absent { Step::Absent(unit) } else { Step::Received(unit) });
            }
            now = now + core::time::Duration::from_secs(60);
            engine.handle_timeout(now);
            prop_assert!(engine.settled_below() >= end, "{} of {}", engine.settled_below(), end);
            prop_assert_eq!(engine.next_timeout(), None);
        }
    }

    #[test]
    fn a_source_that_pauses_loses_nothing(net in nets(), rounds in 1..4_u64, pause in 0..40_u64) {
        let mut engine = Engine::new(net.clone(), 4, Time::ZERO);
        let waits = |unit: u64| {
            let consumer = net.places()[net.place_of(net.split(unit).1).index()].consumer;
            net.transition(consumer).rule.driver() == super::super::Driver::All
        };
        let (mut now, count) = (Time::ZERO, net.objects() as u64);
        for unit in 0..rounds * count {
            if unit % count == 0 {
                now = now + core::time::Duration::from_secs(pause * 100);
                engine.handle_timeout(now);
            }
            engine.handle_received(now, unit);
            for event in drained(&mut engine) {
                let Event::Lost(lost) = event else { continue };
                // Of transitions that begin without all of their objects, what had not come yet may be lost.
                prop_assert!(lost / count <= unit / count && !waits(lost), "{} was not sent yet", lost);
            }
        }
    }
    #[test]
    fn what_is_lost_holds_up_a_net_no_longer_than_it_says(net in nets()) {
        let Some(slowest) = net.slowest_round() else { return Ok(()) };
        let mut engine = Engine::new(net.clone(), 16, Time::ZERO);
        let (mut now, rounds) = (Time::ZERO, 40);
        while (0..net.transitions().len() as u32).any(|i| engine.round_of(TransitionId(i)) < rounds) {
            engine.handle_announced(now, u64::MAX);
            // Of rounds that take no time, the last one of the window ends at once.
            now = engine.next_timeout().unwrap_or(now);
        }
        let latest = net.places().iter().filter_map(|place| place.interval.latest);
        let end = Time::ZERO + slowest * rounds as u32 + latest.sum();
        prop_assert!(now <= end, "{} for {:?} a round", now, slowest);
    }
}
