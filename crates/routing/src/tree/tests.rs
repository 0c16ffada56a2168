use core::cmp::Reverse;
use core::time::Duration;

use outflow_media::Time;

use super::limits::{CANDIDATES_MAX, CHILD_LIFE, DRY, PATIENCE};
use super::*;

const STREAM: StreamId = StreamId(7);
const ME: u64 = 1;

fn contact(relay: u64) -> Contact {
    let location = Location { x_km: relay as i32 * 10, y_km: 0 };
    Contact { relay: RelayId(relay), address: ([10, 0, 0, relay as u8], 4433).into(), location }
}

const fn at(millis: u64) -> Time {
    Time::from_millis(millis)
}

fn level(number: u8) -> Level {
    Level::new(number).expect("a level")
}

fn path(beat: u64, depth: u16) -> Path {
    let root = Root { preference: 1, relay: RelayId(99), incarnation: Reverse(1) };
    Path { root, beat: Reverse(beat), depth }
}

fn offer(relay: u64, depth: u16) -> Offer {
    Offer { contact: contact(relay), path: path(0, depth), load: 0 }
}

struct Lab {
    node: Node,
    now: Time,
}

impl Lab {
    fn new() -> Self {
        let demand = crate::demand::Settings::default();
        let settings = Settings { me: contact(ME), incarnation: 1, seed: 5, children_max: 3, demand };
        Lab { node: Node::new(settings), now: at(0) }
    }

    fn after(&mut self, wait: Duration) {
        let end = self.now + wait;
        while let Some(next) = self.node.next_timeout().filter(|next| *next <= end) {
            assert!(next >= self.now);
            self.now = next;
            self.node.handle_timeout(next);
        }
        self.now = end;
    }

    fn hears(&mut self, from: u64, message: Message) {
        self.node.handle_message(self.now, contact(from), STREAM, message);
    }

    fn actions(&mut self) -> Vec<Action> {
        core::iter::from_fn(|| self.node.poll()).collect()
    }

    /// Which relay was told what.
    fn said(&mut self) -> Vec<(u64, Message)> {
        let said = |action| match action {
            Action::Send { to, message, .. } => Some((to.relay.0, message)),
            _ => None,
        };
        self.actions().into_iter().filter_map(said).collect()
    }

    /// The relay that is asked now, and by which number.
    fn asked(&mut self) -> Option<(u64, u32)> {
        self.said().into_iter().find_map(|(to, message)| match message {
            Message::Ask { ask, .. } => Some((to, ask)),
            _ => None,
        })
    }

    fn grants(&mut self, from: u64, ask: u32, path: Path) {
        self.hears(from, Message::Grant { ask, path, age: Duration::ZERO, others: Vec::new() });
    }

    fn parent(&self) -> Option<u64> {
        self.node.parent(STREAM).map(|(parent, _)| parent.0)
    }

    /// With a parent, 2, at this depth.
    fn below(depth: u16) -> (Self, u32) {
        let mut lab = Lab::new();
        lab.node.handle_receivers(lab.now, STREAM, level(3), 10).expect("room");
        lab.node.handle_offers(lab.now, STREAM, &[offer(2, depth)]);
        let (to, ask) = lab.asked().expect("the only one is asked");
        assert_eq!(to, 2);
        lab.grants(2, ask, path(100, depth));
        assert_eq!(lab.parent(), Some(2));
        lab.actions();
        (lab, ask)
    }

    fn serves(&mut self, child: u64) {
        self.hears(child, Message::Ask { ask: child as u32, level: level(5) });
        assert!(self.node.children(STREAM).any(|(relay, ..)| relay.0 == child));
        self.actions();
    }
}

#[test]
fn a_stream_that_is_wanted_is_looked_up_asked_for_and_let_go() {
    let mut lab = Lab::new();
    lab.node.handle_receivers(lab.now, STREAM, level(3), 10).expect("room");
    assert_eq!(lab.actions(), [Action::Lookup { stream: STREAM }]);
    lab.node.handle_offers(lab.now, STREAM, &[offer(9, 1), offer(2, 1)]);
    let (to, ask) = lab.asked().expect("the nearest is asked");
    assert_eq!(to, 2);
    lab.grants(2, ask, path(100, 1));
    assert!(lab.actions().contains(&Action::Take { stream: STREAM, parent: RelayId(2) }));
    assert_eq!(lab.node.path(lab.now, STREAM), Some(path(100, 2)));
    lab.node.handle_receivers(lab.now, STREAM, level(2), 1).expect("room");
    let better = Action::Level { stream: STREAM, level: level(2) };
    let want = Message::Want { ask, level: level(2) };
    assert_eq!(lab.actions(), [better, Action::Send { to: contact(2), stream: STREAM, message: want }]);
    lab.node.handle_receivers(lab.now, STREAM, level(2), 0).expect("room");
    lab.node.handle_receivers(lab.now, STREAM, level(3), 0).expect("room");
    lab.after(Duration::from_secs(3));
    let actions = lab.actions();
    let left = Message::Leave { ask };
    assert!(actions.contains(&Action::Send { to: contact(2), stream: STREAM, message: left }));
    assert_eq!(actions.last(), Some(&Action::Withdraw { stream: STREAM }));
    assert_eq!((lab.node.state(), lab.node.next_timeout()), (0, None));
}

#[test]
fn with_children_only_a_smaller_path_is_taken_until_patience_ends() {
    let (mut lab, _) = Lab::below(2);
    lab.serves(5);
    lab.node.handle_offers(lab.now, STREAM, &[offer(8, 3)]);
    lab.node.handle_lost(lab.now, RelayId(2));
    let (to, ask) = lab.asked().expect("the other is asked");
    assert_eq!(to, 8);
    lab.grants(8, ask, path(100, 3));
    assert_eq!(lab.parent(), None, "8 may be below 5");
    lab.after(PATIENCE);
    assert_eq!(lab.parent(), Some(8));
    let dropped = lab.said().contains(&(5, Message::Drop { ask: 5 }));
    assert!(dropped && lab.node.children(STREAM).next().is_none());
}

#[test]
fn a_newer_beat_shows_that_a_relay_is_not_below() {
    let (mut lab, _) = Lab::below(2);
    lab.serves(5);
    lab.node.handle_offers(lab.now, STREAM, &[offer(8, 3)]);
    lab.node.handle_lost(lab.now, RelayId(2));
    let (_, ask) = lab.asked().expect("the other is asked");
    lab.grants(8, ask, path(100, 3));
    lab.hears(8, Message::Beat { ask, path: path(101, 3), others: Vec::new() });
    assert_eq!((lab.parent(), lab.node.children(STREAM).count()), (Some(8), 1));
    let told = lab.said().into_iter().find(|(to, _)| *to == 5);
    assert!(matches!(told, Some((_, Message::Beat { path: own, .. })) if own == path(101, 4)));
}

#[test]
fn a_parent_is_replaced_by_one_that_was_known_before_and_others_are_asked_if_it_is_silent() {
    let (mut lab, _) = Lab::below(2);
    lab.node.handle_offers(lab.now, STREAM, &[offer(3, 2), offer(4, 2)]);
    lab.node.handle_lost(lab.now, RelayId(2));
    let (first, _) = lab.asked().expect("one is asked at once");
    lab.after(Duration::from_millis(200));
    let (second, ask) = lab.asked().expect("then another");
    assert_ne!(first, second);
    lab.grants(second, ask, path(100, 2));
    assert_eq!(lab.parent(), Some(second));
    assert!(lab.said().iter().any(|(to, message)| *to == first && matches!(message, Message::Leave { .. })));
}

#[test]
fn one_that_is_full_names_others_to_ask_and_one_that_has_nothing_refuses() {
    let (mut lab, _) = Lab::below(1);
    (4..7).for_each(|child| lab.serves(child));
    lab.hears(7, Message::Ask { ask: 1, level: level(5) });
    let said = lab.said();
    let [(7, Message::Refuse { why: Refusal::Full, others, .. })] = &said[..] else { panic!("{said:?}") };
    let named: Vec<_> = others.iter().map(|offer| offer.contact.relay.0).collect();
    assert!((4..7).all(|child| named.contains(&child)), "{named:?}");
    lab.hears(2, Message::Ask { ask: 1, level: level(5) });
    let said = lab.said();
    assert!(matches!(said[..], [(2, Message::Refuse { why: Refusal::NoPath, .. })]), "not to the parent");
    let mut other = Lab::new();
    other.hears(7, Message::Ask { ask: 1, level: level(5) });
    assert!(matches!(other.said()[..], [(7, Message::Refuse { why: Refusal::NoPath, .. })]));
    assert_eq!(other.node.state(), 0, "and nothing is remembered of it");
}

#[test]
fn one_that_closes_keeps_its_children_and_takes_no_more() {
    let (mut lab, _) = Lab::below(1);
    lab.serves(4);
    lab.node.handle_closing();
    lab.hears(5, Message::Ask { ask: 1, level: level(5) });
    assert!(matches!(lab.said()[..], [(5, Message::Refuse { why: Refusal::Full, .. })]));
    lab.hears(4, Message::Want { ask: 4, level: level(2) });
    assert!(lab.node.children(STREAM).any(|(relay, ..)| relay.0 == 4));
}

#[test]
fn one_that_cannot_send_a_stream_is_passed_over_for_that_one_only() {
    const OTHER: StreamId = StreamId(8);
    let (mut lab, first) = Lab::below(1);
    lab.node.handle_receivers(lab.now, OTHER, level(1), 1).expect("room");
    lab.node.handle_offers(lab.now, OTHER, &[offer(2, 1)]);
    let (_, other) = lab.asked().expect("it is asked for the other stream, too");
    let grant = Message::Grant { ask: other, path: path(100, 1), age: Duration::ZERO, others: Vec::new() };
    lab.node.handle_message(lab.now, contact(2), OTHER, grant);
    lab.node.handle_offers(lab.now, STREAM, &[offer(9, 3)]);
    lab.node.handle_failed(lab.now, STREAM, RelayId(9));
    assert_eq!(lab.parent(), Some(2), "9 is not the parent");
    lab.actions();
    lab.node.handle_failed(lab.now, STREAM, RelayId(2));
    let said = lab.said();
    let [(2, Message::Leave { ask: left }), (9, Message::Ask { ask, .. })] = said[..] else {
        panic!("{said:?}")
    };
    assert_eq!(left, first);
    lab.grants(9, ask, path(100, 3));
    assert_eq!((lab.parent(), lab.node.counters().failed), (Some(9), 1));
    assert_eq!(lab.node.parent(OTHER).map(|(relay, _)| relay.0), Some(2), "of others it is the parent still");
}

#[test]
fn one_that_has_failed_is_asked_again_only_where_there_is_no_other_and_more_and_more_rarely() {
    let (mut lab, _) = Lab::below(1);
    let mut waits = Vec::new();
    for beat in 1..5 {
        lab.node.handle_failed(lab.now, STREAM, RelayId(2));
        lab.actions();
        let failed = lab.now;
        let ask = loop {
            lab.after(Duration::from_millis(100));
            if let Some((2, ask)) = lab.asked() {
                break ask;
            }
        };
        waits.push(lab.now.since(failed));
        lab.grants(2, ask, path(100 + beat, 1));
        assert_eq!(lab.parent(), Some(2));
    }
    assert!(waits.windows(2).all(|pair| pair[0] < pair[1]), "{waits:?}");
    lab.node.handle_offers(lab.now, STREAM, &[offer(9, 9)]);
    lab.node.handle_failed(lab.now, STREAM, RelayId(2));
    let (to, ask) = lab.asked().expect("there is another one");
    assert_eq!(to, 9);
    lab.grants(9, ask, path(200, 9));
    for beat in 1..100 {
        lab.hears(9, Message::Beat { ask, path: path(200 + beat, 9), others: Vec::new() });
        lab.node.handle_offers(lab.now, STREAM, &[offer(2, 1)]);
        lab.after(Duration::from_secs(1));
    }
    assert_eq!(lab.parent(), Some(9), "it is not left for one that has failed, though that is nearer");
    assert_eq!(lab.asked(), None);
}

#[test]
fn without_beats_a_relay_is_no_parent_and_looks_for_another() {
    let (mut lab, ask) = Lab::below(1);
    lab.after(DRY);
    lab.actions();
    lab.hears(7, Message::Ask { ask: 1, level: level(5) });
    assert!(matches!(lab.said()[..], [(7, Message::Refuse { why: Refusal::NoPath, .. })]));
    lab.after(DRY / 4);
    assert_eq!((lab.parent(), lab.node.counters().dry), (None, 1));
    assert!(lab.said().contains(&(2, Message::Leave { ask })));
}

#[test]
fn old_beats_change_nothing_and_unknown_ones_are_answered() {
    let (mut lab, ask) = Lab::below(2);
    lab.serves(5);
    lab.hears(2, Message::Beat { ask, path: path(99, 0), others: Vec::new() });
    assert_eq!((lab.said().len(), lab.node.path(lab.now, STREAM)), (0, Some(path(100, 3))));
    lab.hears(3, Message::Beat { ask: ask ^ 1, path: path(200, 0), others: Vec::new() });
    assert_eq!(lab.said(), [(3, Message::Leave { ask: ask ^ 1 })]);
    lab.hears(6, Message::Want { ask: 1, level: level(1) });
    assert_eq!(lab.said(), [(6, Message::Drop { ask: 1 })], "as after a restart");
}

#[test]
fn a_child_that_says_nothing_is_forgotten() {
    let mut lab = Lab::new();
    lab.node.handle_source(lab.now, STREAM, Some(0));
    lab.serves(5);
    lab.after(CHILD_LIFE);
    assert_eq!((lab.node.children(STREAM).count(), lab.node.counters().expired), (0, 1));
}

#[test]
fn a_source_that_comes_here_ends_the_search_and_outranks_by_preference() {
    let (mut lab, ask) = Lab::below(1);
    lab.serves(5);
    lab.node.handle_source(lab.now, STREAM, Some(0));
    let said = lab.said();
    assert!(said.contains(&(2, Message::Leave { ask })));
    assert!(said.iter().any(|(to, message)| *to == 5 && matches!(message, Message::Beat { .. })));
    assert_eq!(lab.node.path(lab.now, STREAM).map(|path| path.depth), Some(0));
    let (mut lab, _) = Lab::below(1);
    lab.serves(5);
    lab.node.handle_source(lab.now, STREAM, Some(2));
    assert!(lab.said().contains(&(5, Message::Drop { ask: 5 })), "a worse one is another tree");
}

#[test]
fn of_many_candidates_the_best_are_remembered() {
    let (mut lab, _) = Lab::below(1);
    for relay in (3..250).rev() {
        lab.node.handle_offers(lab.now, STREAM, &[offer(relay, 1)]);
    }
    assert!(lab.node.state() <= CANDIDATES_MAX + 2);
    lab.node.handle_lost(lab.now, RelayId(2));
    let (to, _) = lab.asked().expect("one is asked");
    assert!(to < 20, "{to} is not near");
}

#[test]
fn those_that_refuse_are_not_asked_again_at_once_though_others_go_on_naming_them() {
    let mut lab = Lab::new();
    let many: Vec<_> = (3..43).map(|relay| offer(relay, 1)).collect();
    lab.node.handle_receivers(lab.now, STREAM, level(3), 10).expect("room");
    lab.node.handle_offers(lab.now, STREAM, &many);
    let mut asked = Vec::new();
    for _ in 0..400 {
        lab.after(Duration::from_millis(1));
        while let Some((to, ask)) = lab.asked().filter(|_| asked.len() < 100) {
            asked.push(to);
            let others = many.iter().copied().cycle().skip(asked.len() * 6).take(6).collect();
            lab.hears(to, Message::Refuse { ask, why: Refusal::NoPath, others });
        }
    }
    asked.sort_unstable();
    let count = asked.len();
    asked.dedup();
    assert_eq!((count, asked.len()), (40, 40), "each is asked once");
}

/// Below 2, whose first answer took so long, with 3 known, which seems to be as near as 2 is; until a review.
fn reviewed(took: Duration) -> (Lab, u32, u32) {
    let mut lab = Lab::new();
    lab.node.handle_receivers(lab.now, STREAM, level(3), 10).expect("room");
    lab.node.handle_offers(lab.now, STREAM, &[offer(2, 1)]);
    let (_, first) = lab.asked().expect("the only one is asked");
    lab.after(took);
    lab.grants(2, first, path(100, 1));
    lab.node.handle_offers(lab.now, STREAM, &[offer(3, 1)]);
    lab.actions();
    for beat in 1.. {
        lab.hears(2, Message::Beat { ask: first, path: path(100 + beat, 1), others: Vec::new() });
        let asked = lab.said().into_iter().filter(|(_, message)| !matches!(message, Message::Want { .. }));
        if let [(2, Message::Echo { ask }), (3, Message::Ask { ask: other, .. })] =
            asked.collect::<Vec<_>>()[..]
        {
            assert_eq!(ask, first, "the parent is the parent still");
            return (lab, first, other);
        }
        assert!(lab.now < at(60_000), "none is asked");
        lab.after(Duration::from_secs(1));
    }
    unreachable!("there are more beats than that")
}

#[test]
fn an_answer_that_was_late_once_is_no_reason_to_leave_a_parent() {
    let (near, far) = (Duration::from_millis(5), Duration::from_millis(140));
    let (mut lab, first, other) = reviewed(far);
    lab.after(near);
    lab.grants(3, other, path(200, 1));
    assert_eq!(lab.parent(), Some(2), "it has not answered again");
    lab.hears(2, Message::EchoReply { ask: first });
    assert_eq!(lab.parent(), Some(2), "it is as near");
    assert!(lab.said().contains(&(3, Message::Leave { ask: other })));
    let (mut lab, first, other) = reviewed(far);
    lab.after(near);
    lab.hears(2, Message::EchoReply { ask: first });
    lab.after(far);
    lab.grants(3, other, path(200, 1));
    assert_eq!(lab.parent(), Some(2), "the other one is farther than it seemed");
}

#[test]
fn a_parent_that_is_far_is_left_for_one_that_is_near() {
    let (near, far) = (Duration::from_millis(5), Duration::from_millis(140));
    let (mut lab, first, other) = reviewed(far);
    lab.after(near);
    lab.grants(3, other, path(200, 1));
    lab.after(far);
    lab.hears(2, Message::EchoReply { ask: first });
    assert_eq!(lab.parent(), Some(3));
    assert!(lab.said().contains(&(2, Message::Leave { ask: first })));
}

#[test]
fn one_that_measures_a_relay_does_not_become_its_child() {
    let (mut lab, _) = Lab::below(1);
    lab.hears(9, Message::Echo { ask: 77 });
    assert_eq!(lab.said(), [(9, Message::EchoReply { ask: 77 })]);
    assert_eq!(lab.node.children(STREAM).count(), 0);
    let other = StreamId(STREAM.0 + 1);
    lab.node.handle_message(lab.now, contact(9), other, Message::Echo { ask: 78 });
    assert_eq!(lab.said(), [(9, Message::EchoReply { ask: 78 })], "it knows nothing of that stream");
}

#[test]
fn the_directory_is_told_again_when_it_is_back() {
    let (mut lab, ask) = Lab::below(1);
    lab.after(Duration::from_millis(1100));
    let registers = |actions: Vec<Action>| {
        actions.into_iter().filter(|action| matches!(action, Action::Register { .. })).count()
    };
    assert_eq!(registers(lab.actions()), 1);
    lab.hears(2, Message::Beat { ask, path: path(101, 1), others: Vec::new() });
    lab.node.handle_directory_back(lab.now);
    lab.after(Duration::from_secs(1));
    assert_eq!(registers(lab.actions()), 1);
}
