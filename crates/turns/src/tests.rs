use proptest::prelude::*;

use super::*;

const STRICT: [Part; 3] = [Part::NONE; 3];

const MS: u64 = 1_000_000;

/// Flows that always have work, each in a class and with turns of this many nanoseconds.
struct Busy {
    turns: Turns<3>,
    now: u64,
    flows: Vec<(usize, u64)>,
}

impl Busy {
    fn new(promised: [Part; 3], flows: &[(usize, u64)]) -> Self {
        let mut turns = Turns::new(promised);
        flows.iter().enumerate().for_each(|(flow, (class, _))| turns.wakes(*class, flow));
        Busy { turns, now: 0, flows: flows.to_vec() }
    }

    fn weighing(mut self, weights: &[u32]) -> Self {
        for (flow, weight) in weights.iter().enumerate() {
            self.turns.claim(flow, Claim { weight: *weight, ..Claim::default() });
        }
        self
    }

    /// Goes on for this long. Returns which part of it each flow had, in parts of a thousand.
    fn go_on(&mut self, time: u64) -> Vec<u64> {
        let had: Vec<u64> = (0..self.flows.len()).map(|flow| self.turns.worked(flow)).collect();
        let (began, end) = (self.now, self.now + time);
        while self.now < end {
            let turn = self.turns.next(self.now).expect("there is always work");
            assert_eq!(self.flows[turn.flow].0, turn.class);
            self.now += self.flows[turn.flow].1;
            self.turns.wakes(turn.class, turn.flow);
        }
        self.turns.rest(self.now);
        let part = |(flow, had): (usize, u64)| (self.turns.worked(flow) - had) * 1000 / (self.now - began);
        had.into_iter().enumerate().map(part).collect()
    }
}

#[test]
fn without_a_promise_classes_are_strict() {
    let mut busy = Busy::new(STRICT, &[(2, 10_000), (1, 10_000), (0, 10_000)]);
    assert_eq!(busy.go_on(100 * MS), [0, 0, 1000]);
}

#[test]
fn a_lower_class_has_what_it_was_promised_and_no_more() {
    let promised = [Part::NONE, Part::percent(40), Part::percent(5)];
    let mut busy = Busy::new(promised, &[(0, 25_000), (1, 30_000), (2, 70_000)]);
    let had = busy.go_on(1_000 * MS);
    assert!(had[0].abs_diff(550) < 5 && had[1].abs_diff(400) < 5 && had[2].abs_diff(50) < 5, "{had:?}");
}

#[test]
fn what_a_class_gets_by_chance_counts_toward_its_promise() {
    let mut turns = Turns::<3>::new([Part::NONE, Part::percent(40), Part::NONE]);
    let (mut now, mut had) = (0, [0, 0]);
    for _ in 0..10_000 {
        // The high class has its next work only after someone else's turn.
        turns.wakes(0, 0);
        for _ in 0..2 {
            turns.wakes(1, 1);
            let turn = turns.next(now).expect("work");
            now += 20_000;
            had[turn.class] += 20_000;
        }
    }
    assert_eq!(had[0], had[1], "it had half, and was not given 40 % of the rest");
}

#[test]
fn within_a_class_time_goes_by_weight_however_long_turns_are() {
    let mut busy = Busy::new(STRICT, &[(1, 90_000), (1, 40_000), (1, 11_000)]).weighing(&[1, 2, 4]);
    let had = busy.go_on(7_000 * MS);
    assert!((0..3).all(|flow| had[flow].abs_diff([143, 286, 571][flow]) < 6), "{had:?}");
}

#[test]
fn a_flow_that_has_reserved_time_goes_first_within_that() {
    let mut busy = Busy::new(STRICT, &[(0, 25_000), (2, 25_000), (2, 25_000)]);
    busy.turns.claim(1, Claim { weight: 1, reserved: Part::percent(20) });
    busy.go_on(WINDOW);
    let had = busy.go_on(1_000 * MS);
    assert!(had[0].abs_diff(800) < 5 && had[1].abs_diff(200) < 5 && had[2] == 0, "{had:?}");
    // What was not used for long is not made up for.
    busy.turns.claim(1, Claim::default());
    let had = busy.go_on(100 * MS);
    assert_eq!(had[0], 1000, "{had:?}");
}

#[test]
fn a_reserve_is_beside_the_promise_of_its_class() {
    let promised = [Part::NONE, Part::NONE, Part::percent(10)];
    let mut busy = Busy::new(promised, &[(0, 25_000), (2, 25_000), (2, 25_000)]);
    busy.turns.claim(1, Claim { weight: 1, reserved: Part::percent(20) });
    busy.go_on(WINDOW);
    let had = busy.go_on(1_000 * MS);
    assert!(had[0].abs_diff(700) < 10 && had[1].abs_diff(200) < 10 && had[2].abs_diff(100) < 10, "{had:?}");
}

#[test]
fn what_one_does_not_use_the_others_have_and_idling_saves_nothing() {
    let mut busy = Busy::new(STRICT, &[(1, 10_000), (1, 10_000)]).weighing(&[1, 9]);
    // The second one is away.
    let place = busy.turns.next(0).expect("work");
    assert_eq!(place.flow, 0);
    while busy.now < 500 * MS {
        busy.now += 10_000;
        busy.turns.wakes(1, 0);
        let turn = busy.turns.next(busy.now).expect("work");
        if turn.flow == 1 {
            // Its work is done, and no more comes.
            continue;
        }
    }
    busy.turns.wakes(1, 0);
    busy.turns.wakes(1, 1);
    let had = busy.go_on(100 * MS);
    assert!(had[0].abs_diff(100) < 5 && had[1].abs_diff(900) < 5, "{had:?}");
}

#[test]
fn a_place_that_is_used_again_begins_without_what_was_there() {
    let mut turns = Turns::<3>::new(STRICT);
    turns.claim(3, Claim { weight: 7, reserved: Part::percent(50) });
    turns.wakes(0, 3);
    assert_eq!(turns.next(0), Some(Turn { class: 0, flow: 3, is_reserved: false }));
    turns.rest(1_000);
    assert_eq!((turns.worked(3), turns.has_reserves()), (1_000, true));
    turns.forget(3);
    assert_eq!((turns.worked(3), turns.has_reserves()), (0, false));
}

proptest! {
    #[test]
    fn each_that_wakes_has_one_turn(
        steps in prop::collection::vec((0..3usize, 0..5usize, 0..90_000u64, any::<bool>()), 0..300),
        reserved in 0..5usize,
    ) {
        let mut turns = Turns::<3>::new([Part::NONE, Part::percent(10), Part::percent(5)]);
        turns.claim(reserved, Claim { weight: 3, reserved: Part::percent(30) });
        let (mut waits, mut now) = (std::collections::BTreeSet::new(), 0);
        for (class, flow, passes, takes) in steps {
            turns.wakes(class, flow);
            waits.insert((class, flow));
            now += passes;
            if takes {
                let turn = turns.next(now).expect("one waits");
                prop_assert!(waits.remove(&(turn.class, turn.flow)));
            }
        }
        while let Some(turn) = turns.next(now) {
            prop_assert!(waits.remove(&(turn.class, turn.flow)));
        }
        prop_assert!(waits.is_empty());
    }
}
