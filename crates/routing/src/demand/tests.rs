use core::time::Duration;
use std::collections::BTreeMap;

use outflow_media::Time;
use proptest::prelude::*;

use super::*;

const fn at(millis: u64) -> Time {
    Time::from_millis(millis)
}

fn level(number: u8) -> Level {
    Level::new(number).expect("a level")
}

fn table() -> Table<u8, u8> {
    Table::new(Settings { hold: Duration::from_secs(2), linger: Duration::from_secs(3) })
}

fn polled(table: &mut Table<u8, u8>) -> Option<Option<u8>> {
    table.poll().map(|change| change.demand.map(Level::number))
}

#[test]
fn what_is_better_is_asked_for_at_once() {
    let mut table = table();
    for (child, wanted, asked) in [(1, 9, Some(Some(9))), (2, 12, None), (3, 4, Some(Some(4)))] {
        table.handle_want(at(0), 7, child, level(wanted), None).expect("room");
        assert_eq!(polled(&mut table), asked);
    }
    assert_eq!(table.children(&7).map(|(child, _)| *child).collect::<Vec<_>>(), [1, 2, 3]);
}

#[test]
fn what_is_worse_is_asked_for_after_the_hold_unless_it_is_taken_back() {
    let mut table = table();
    table.handle_want(at(0), 7, 1, level(3), None).expect("room");
    assert_eq!(polled(&mut table), Some(Some(3)));
    table.handle_want(at(1000), 7, 1, level(8), None).expect("room");
    assert_eq!((polled(&mut table), table.next_timeout()), (None, Some(at(3000))));
    table.handle_want(at(2999), 7, 1, level(3), None).expect("room");
    assert_eq!((polled(&mut table), table.next_timeout()), (None, None));
    table.handle_want(at(4000), 7, 1, level(8), None).expect("room");
    table.handle_want(at(5000), 7, 1, level(9), None).expect("room");
    table.handle_timeout(at(5999));
    assert_eq!(polled(&mut table), None, "the hold runs from the first change for worse");
    table.handle_timeout(at(6000));
    assert_eq!(polled(&mut table), Some(Some(9)));
    assert_eq!(*table.counters(), Counters { better: 1, worse: 1, taken_back: 1, expired: 0, refused: 0 });
}

#[test]
fn the_last_leave_has_its_own_linger_and_leaves_nothing_behind() {
    let mut table = table();
    table.handle_want(at(0), 7, 1, level(3), None).expect("room");
    assert_eq!(polled(&mut table), Some(Some(3)));
    table.handle_leave(at(0), 7, &1);
    assert_eq!((table.next_timeout(), table.wanted(&7)), (Some(at(3000)), None));
    assert_eq!(table.demand(&7), Some(level(3)), "it is still asked for");
    table.handle_timeout(at(3000));
    assert_eq!(polled(&mut table), Some(None));
    assert!(table.is_empty() && table.entries.is_empty() && table.timers.is_empty());
}

#[test]
fn one_that_does_not_say_again_what_it_wants_is_forgotten() {
    let mut table = table();
    table.handle_want(at(0), 7, 1, level(3), Some(at(500))).expect("room");
    table.handle_want(at(0), 7, 2, level(5), None).expect("room");
    table.handle_want(at(400), 7, 1, level(3), Some(at(900))).expect("room");
    table.handle_timeout(at(500));
    assert_eq!(table.len(), 2);
    table.handle_timeout(at(900));
    assert_eq!((table.len(), table.counters().expired), (1, 1));
}

#[test]
fn what_goes_and_comes_before_anybody_asks_is_not_told() {
    let mut table = table();
    table.handle_want(at(0), 7, 1, level(3), None).expect("room");
    table.handle_leave(at(0), 7, &1);
    table.handle_timeout(at(9000));
    assert_eq!(table.poll(), None);
    assert!(table.entries.is_empty());
}

#[test]
fn what_is_forgotten_is_not_told_of() {
    let mut table = table();
    table.handle_want(at(0), 7, 1, level(3), Some(at(9))).expect("room");
    table.forget(&7);
    assert_eq!((table.poll(), table.next_timeout(), table.len()), (None, None, 0));
}

#[test]
fn a_flood_of_keys_is_refused_and_counted() {
    let mut table: Table<u32, u8> = Table::new(Settings::default());
    let keys = KEYS_MAX as u32 + 5;
    let refused = (0..keys).filter(|key| table.handle_want(at(0), *key, 1, level(3), None).is_err()).count();
    assert_eq!((refused, table.counters().refused, table.len()), (5, 5, KEYS_MAX));
    assert_eq!(table.handle_want(at(0), 1, 1, level(2), None), Ok(()), "one that is there may want another");
}

/// The same in the plainest way: each millisecond, all is looked at.
#[derive(Default)]
struct Model {
    wants: BTreeMap<(u8, u8), (Level, Option<Time>)>,
    demand: BTreeMap<u8, Level>,
    worse_since: BTreeMap<u8, Time>,
}

impl Model {
    fn look(&mut self, now: Time, settings: &Settings) {
        self.wants.retain(|_, (_, until)| until.is_none_or(|until| until > now));
        for key in 0..3 {
            let of_key = self.wants.iter().filter(|((wanted, _), _)| *wanted == key);
            let best = of_key.map(|(_, (level, _))| *level).min();
            let worth = |level: Option<Level>| level.map_or(0, |level| 200 - level.number());
            let asked = self.demand.get(&key).copied();
            if worth(best) >= worth(asked) {
                self.worse_since.remove(&key);
            } else {
                let since = *self.worse_since.entry(key).or_insert(now);
                let wait = if best.is_none() { settings.linger } else { settings.hold };
                if now < since + wait {
                    continue;
                }
                self.worse_since.remove(&key);
            }
            match best {
                Some(best) => self.demand.insert(key, best),
                None => self.demand.remove(&key),
            };
        }
    }
}

proptest! {
    #[test]
    fn the_table_does_what_looking_at_all_each_millisecond_does(
        ops in prop::collection::vec(
            (0_u64..6, 0_u8..3, 0_u8..4, 0_u8..6, prop::option::of(1_u64..20)),
            1..200,
        ),
        hold in 0_u64..9,
        linger in 0_u64..9,
    ) {
        let (hold, linger) = (Duration::from_millis(hold), Duration::from_millis(linger));
        let settings = Settings { hold, linger };
        let (mut table, mut model) = (Table::<u8, u8>::new(settings), Model::default());
        let (mut millis, mut told) = (0, BTreeMap::new());
        for (wait, key, child, wanted, lifetime) in ops {
            for _ in 0..wait {
                millis += 1;
                table.handle_timeout(at(millis));
                model.look(at(millis), &settings);
                prop_assert!(table.next_timeout().is_none_or(|next| next > at(millis)));
            }
            let (now, until) = (at(millis), lifetime.map(|lifetime| at(millis + lifetime)));
            match Level::new(wanted) {
                Some(level) => {
                    table.handle_want(now, key, child, level, until).expect("room");
                    model.wants.insert((key, child), (level, until));
                }
                None => {
                    table.handle_leave(now, key, &child);
                    model.wants.remove(&(key, child));
                }
            }
            model.look(now, &settings);
            while let Some(Change { key, demand }) = table.poll() {
                prop_assert_ne!(told.insert(key, demand).flatten(), demand, "a change changes something");
            }
            for key in 0..3 {
                prop_assert_eq!(table.demand(&key), model.demand.get(&key).copied());
                prop_assert_eq!(told.get(&key).copied().flatten(), table.demand(&key));
            }
            prop_assert_eq!(table.len(), model.wants.len());
        }
    }
}
