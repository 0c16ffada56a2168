//! What is a flow and what is not.

use super::*;

/// Audio and video by hand: sound reliable for 200 ms, pictures sent once, captions for ever.
fn lip_sync() -> Flow {
    let ms = Duration::from_millis;
    let class = |repair, validity| ServiceClass { repair, validity };
    Flow {
        net: Arc::new(include_str!("../../nets/lip-sync.tspn").parse().expect("a net")),
        classes: vec![
            class(Class::Unreliable, Some(ms(400))),
            class(Class::Partial, Some(ms(120))),
            class(Class::Reliable, None),
        ],
        class_of: vec![0, 0, 0, 1, 2],
        rounds: 4,
        buffer_bytes: 1 << 20,
        period: Some(ms(40)),
        is_dependent: true,
    }
}

#[test]
fn objects_are_of_the_class_that_is_said() {
    let flow = lip_sync();
    assert_eq!(flow.check(), Ok(()));
    assert_eq!(flow.class(2).repair, Class::Unreliable);
    assert_eq!(flow.class(4), ServiceClass { repair: Class::Reliable, validity: None });
}

/// What makes a flow none.
type Change = fn(&mut Flow);

#[test]
fn what_is_no_flow_is_told() {
    let broken = |change: Change| {
        let mut flow = lip_sync();
        change(&mut flow);
        flow.check().map_err(|error| (error.to_string(), error.reason()))
    };
    let cases: [(Change, &str); 11] = [
        (|flow| flow.classes.clear(), "has 0 classes"),
        (|flow| flow.classes = vec![flow.classes[0]; 17], "has 17 classes"),
        (|flow| _ = flow.class_of.pop(), "4 objects have a class, and the net has 5"),
        (|flow| flow.class_of[3] = 3, "object 3 is of class 3, and there are 3"),
        (|flow| flow.rounds = 0, "0 rounds"),
        (|flow| flow.rounds = 65, "65 rounds"),
        (|flow| flow.buffer_bytes = 0, "0 bytes"),
        (|flow| flow.period = Some(Duration::ZERO), "period is zero"),
        (|flow| flow.period = Some(2 * INTERVAL_MAX), "period is longer than a day"),
        (|flow| flow.period = Some(Duration::from_nanos(1)), "whole microseconds"),
        (|flow| flow.classes[0].validity = Some(2 * INTERVAL_MAX), "validity of a class is longer"),
    ];
    for (change, said) in cases {
        let (text, reason) = broken(change).expect_err(said);
        assert!(text.contains(said), "{text}");
        assert!(!reason.is_empty());
    }
}
