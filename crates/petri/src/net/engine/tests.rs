//! Each rule by itself, and the paper's MPEG service under losses and reorderings.

use super::super::{Builder, Carries, Interval, Place, Rule, samples};
use super::*;

fn ms(millis: u64) -> Time {
    Time::from_millis(millis)
}

fn drained(engine: &mut Engine) -> Vec<Event> {
    core::iter::from_fn(|| engine.poll()).collect()
}

/// When `t` fires if `a` (`[10, 50]`) and `b` (`[20, 30]`) come at these times, in milliseconds; `a` is the
/// master. What is left out does not come. At 0 the sender says that it has sent both.
fn fires(rule: Rule, a: Option<u64>, b: Option<u64>) -> u64 {
    let mut engine = Engine::new(samples::pair(rule, (10, 50), (20, 30)), 2, Time::ZERO);
    engine.handle_announced(Time::ZERO, 1);
    for now in 0..1000 {
        engine.handle_timeout(ms(now));
        for (unit, _) in (0..).zip([a, b]).filter(|(_, at)| *at == Some(now)) {
            engine.handle_received(ms(now), unit);
        }
        if drained(&mut engine).iter().any(|event| matches!(event, Event::Fired { .. })) {
            return now;
        }
    }
    u64::MAX
}

#[test]
fn rules_that_begin_with_any_object_wait_for_the_first_that_can_be_delivered() {
    for (rule, until) in [(Rule::StrongOr, 30), (Rule::Or, 50), (Rule::OrMaster, 50)] {
        assert_eq!(fires(rule, Some(0), Some(0)), 10, "{rule}: from min d+a");
        assert_eq!(fires(rule, None, Some(0)), 20, "{rule}: b's own time");
        assert_eq!(fires(rule, Some(25), None), 25, "{rule}: when it comes");
        assert_eq!(fires(rule, None, None), until, "{rule}: not longer");
    }
}

#[test]
fn rules_that_begin_with_all_objects_wait_for_the_last() {
    for (rule, until) in [(Rule::And, 30), (Rule::WeakAnd, 50), (Rule::AndMaster, 50)] {
        assert_eq!(fires(rule, Some(0), Some(0)), 20, "{rule}: from max d+a");
        assert_eq!(fires(rule, Some(25), Some(0)), 25, "{rule}: when the last comes");
        assert_eq!(fires(rule, Some(0), None), until, "{rule}: not longer");
        assert_eq!(fires(rule, None, Some(0)), until, "{rule}: not longer");
    }
}

#[test]
fn rules_that_begin_with_the_master_do_not_look_at_others() {
    for (rule, until) in [(Rule::StrongMaster, 30), (Rule::WeakMaster, 50), (Rule::Master, 50)] {
        assert_eq!(fires(rule, Some(0), None), 10, "{rule}: from the master's d+a");
        assert_eq!(fires(rule, Some(25), Some(0)), 25, "{rule}: when the master comes");
        assert_eq!(fires(rule, None, Some(0)), until, "{rule}: not longer");
    }
}

#[test]
fn until_goes_before_from() {
    // b's time has not begun when a's is over.
    let mut engine = Engine::new(samples::pair(Rule::And, (0, 10), (20, 30)), 2, Time::ZERO);
    assert_eq!(engine.handle_received(ms(0), 0), Verdict::Deliver);
    assert_eq!(engine.handle_received(ms(0), 1), Verdict::Memorise);
    assert_eq!(engine.next_timeout(), Some(ms(10)));
    engine.handle_timeout(ms(10));
    let fired = Event::Fired { transition: TransitionId(0), round: 0 };
    assert_eq!(drained(&mut engine), [Event::Deliver(0), Event::Delete(1), fired]);
}

#[test]
fn a_unit_goes_through_what_a_verdict_says() {
    let mut engine = Engine::new(samples::pair(Rule::WeakAnd, (0, 0), (5, 40)), 2, ms(100));
    assert_eq!(engine.need(1), Need::Unknown, "the sender pauses");
    assert_eq!(engine.handle_received(ms(200), 1), Verdict::Memorise);
    assert_eq!(engine.handle_received(ms(201), 1), Verdict::Duplicate);
    assert_eq!(engine.need(0), Need::Always);
    assert!(!engine.is_settled(1) && engine.need(1) == Need::No);
    assert_eq!(engine.handle_received(ms(202), 2), Verdict::Memorise, "the next round's");
    assert_eq!(engine.handle_received(ms(202), 4), Verdict::BeyondWindow);
    assert_eq!(engine.next_timeout(), Some(ms(205)));
    assert_eq!(engine.handle_received(ms(206), 0), Verdict::Deliver);
    let fired = Event::Fired { transition: TransitionId(0), round: 0 };
    let events = [Event::Deliver(1), Event::Deliver(0), fired, Event::Deliver(2)];
    assert_eq!(drained(&mut engine), events);
    assert_eq!(engine.handle_received(ms(207), 0), Verdict::Late);
    assert_eq!((engine.settled_below(), engine.window_end()), (3, 6));
}

#[test]
fn what_is_absent_is_not_waited_for_and_still_delivered_if_it_comes() {
    let mut engine = Engine::new(samples::pair(Rule::And, (0, 50), (0, 50)), 2, Time::ZERO);
    assert_eq!(engine.handle_absent(ms(0), 0), Verdict::Memorise);
    assert_eq!(engine.handle_absent(ms(0), 0), Verdict::Duplicate);
    assert!(engine.is_settled(0));
    assert_eq!(engine.handle_received(ms(1), 0), Verdict::Deliver);
    assert_eq!(engine.handle_absent(ms(2), 0), Verdict::Duplicate);
    assert_eq!(engine.handle_absent(ms(3), 1), Verdict::Memorise);
    let fired = Event::Fired { transition: TransitionId(0), round: 0 };
    assert_eq!(drained(&mut engine), [Event::Deliver(0), fired]);
    assert_eq!(engine.handle_absent(ms(4), 1), Verdict::Late);
    assert_eq!(engine.handle_absent(ms(4), 7), Verdict::BeyondWindow);
}

#[test]
fn nothing_runs_while_the_source_pauses() {
    let mut engine = Engine::new(samples::pair(Rule::And, (0, 10), (0, 10)), 2, Time::ZERO);
    engine.handle_timeout(ms(10_000));
    assert_eq!((engine.poll(), engine.next_timeout()), (None, None));
    assert_eq!(engine.handle_received(ms(20_000), 0), Verdict::Deliver);
    assert_eq!(engine.need(1), Need::Until(ms(20_010)));
    engine.handle_timeout(ms(20_010));
    assert_eq!(drained(&mut engine)[1], Event::Lost(1));
    assert_eq!(engine.next_timeout(), None, "round 1 has not begun");
    // What is far beyond is evidence for the rounds of the window, and no more.
    assert_eq!(engine.handle_received(ms(30_000), u64::MAX), Verdict::BeyondWindow);
    engine.handle_timeout(ms(90_000));
    assert_eq!(engine.round_of(TransitionId(0)), 3);
    assert_eq!(engine.next_timeout(), None);
}

#[test]
fn what_was_noticed_late_has_the_date_at_which_it_was_due() {
    let mut builder = Builder::new();
    let ids = ["first", "second"].map(|name| builder.transition(name, Rule::And));
    for (name, from, to, initial) in [("a", ids[1], ids[0], 1), ("b", ids[0], ids[1], 0)] {
        builder.place(Place {
            name: name.into(),
            carries: Carries::Object,
            producer: from,
            consumer: to,
            interval: Interval::until_ms(0, 10),
            initial,
        });
    }
    let mut engine = Engine::new(Arc::new(builder.build().expect("a net")), 2, Time::ZERO);
    engine.handle_announced(ms(0), 1);
    engine.handle_timeout(ms(15));
    assert_eq!(engine.next_timeout(), Some(ms(20)), "b is waited for from 10 to 20");
}

/// The units of a round of the MPEG service, by the name of the frame.
fn slices(net: &Net, round: u64, name: &str) -> Vec<u64> {
    let of = |object: &usize| net.places()[net.place_of(*object).index()].name.word() == name;
    (0..net.objects()).filter(of).map(|object| net.unit(round, object)).collect()
}

fn delivered(engine: &mut Engine) -> Vec<u64> {
    let unit = |event| if let Event::Deliver(unit) = event { Some(unit) } else { None };
    drained(engine).into_iter().filter_map(unit).collect()
}

#[test]
fn mpeg_pictures_wait_for_those_they_need_and_for_no_others() {
    let net = Arc::new(samples::mpeg());
    let mut engine = Engine::new(net.clone(), 3, Time::ZERO);
    let slices = |name| slices(&net, 0, name);
    // Slices of one picture in any order; the pictures behind it wait for the one that is missing.
    for unit in slices("I0").into_iter().rev().chain(slices("P4")).chain(slices("B5")) {
        if unit != 7 {
            engine.handle_received(ms(1), unit);
        }
    }
    assert_eq!(delivered(&mut engine), (0..15).rev().filter(|unit| *unit != 7).collect::<Vec<_>>());
    assert_eq!(engine.need(7), Need::Until(ms(321)));
    assert_eq!(engine.need(slices("B1")[0]), Need::Unknown);
    // It comes again: all go, in their order.
    assert_eq!(engine.handle_received(ms(50), 7), Verdict::Deliver);
    let after: Vec<_> = [7].into_iter().chain(slices("P4")).chain(slices("B5")).collect();
    let mut events = delivered(&mut engine);
    assert_eq!(events[..16], after[..16]);
    events.sort_unstable();
    assert_eq!(events, after);
    // The leading B pictures have not come: nothing but the end of the group waits for them.
    slices("P8").into_iter().for_each(|unit| _ = engine.handle_received(ms(60), unit));
    assert_eq!(delivered(&mut engine), slices("P8"));
    assert_eq!(engine.handle_received(ms(61), net.unit(1, 0)), Verdict::Deliver, "the next group begins");
}

#[test]
fn mpeg_losses_cost_what_is_lost_and_no_more() {
    let net = Arc::new(samples::mpeg());
    let mut engine = Engine::new(net.clone(), 3, Time::ZERO);
    let (mut got, mut lost, mut late) = (Vec::new(), 0, 0);
    // Every 20th slice is lost, and comes again 50 ms later; 2 ms a slice, as in the paper.
    let count = 20 * net.objects() as u64;
    for unit in 0..count + 25 {
        let now = ms(unit * 8 / 3);
        let again = unit.checked_sub(19).filter(|unit| unit % 20 == 0);
        for unit in again.into_iter().chain((unit % 20 != 0).then_some(unit)).filter(|unit| *unit < count) {
            late += u64::from(engine.handle_received(now, unit) == Verdict::Late);
        }
        for event in drained(&mut engine) {
            match event {
                Event::Deliver(unit) => got.push(unit),
                Event::Lost(_) => lost += 1,
                _ => {}
            }
        }
    }
    assert_eq!((lost, late), (0, 0));
    got.sort_unstable();
    assert_eq!(got, (0..count).collect::<Vec<_>>());
}

#[test]
fn an_engine_that_lacks_the_date_of_a_token_is_refused() {
    let net = Arc::new(samples::mpeg());
    let mut engine = Engine::new(net.clone(), 2, Time::ZERO);
    // The first picture is there; others need it, and are known to have been sent.
    for unit in slices(&net, 0, "I0") {
        engine.handle_received(ms(1), unit);
    }
    engine.handle_announced(ms(2), net.objects() as u64 - 1);
    drained(&mut engine);
    let saved = engine.save();
    let cut = |length: usize| {
        let mut transitions = saved.transitions[..length].to_vec();
        transitions.push(0);
        Engine::restore(net.clone(), 2, &crate::save::SavedEngine { transitions, ..saved.clone() })
    };
    let why = |length: usize| cut(length).err().map(|unfit| unfit.why);
    let without: Vec<_> =
        (0..saved.transitions.len()).filter(|at| why(*at) == Some("a token has no date")).collect();
    // No transition is said to have dates; or the one that has is said to have none. Behind that, its time is cut.
    assert!(matches!(without[..], [none, of_none] if of_none == none + 2), "{without:?}");
}
