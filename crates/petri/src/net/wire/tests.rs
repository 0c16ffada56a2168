//! Sizes, round trips, and what is malformed.

use outflow_media::{Kind, Needs};
use proptest::prelude::*;

use super::*;
use crate::net::{Frame, Shape, mpeg_shape, of_gop, samples};

fn emitted(net: &Net) -> Vec<u8> {
    let mut bytes = Vec::new();
    emit(net, &mut bytes);
    bytes
}

#[test]
fn the_mpeg_net_takes_few_bytes() {
    let bytes = emitted(&samples::mpeg());
    assert_eq!(bytes.len(), 172);
    assert!(parse(&bytes).expect("a net") == samples::mpeg().without_names());
}

#[test]
fn masters_and_orders_arrive() {
    let net = samples::lip_sync();
    assert!(parse(&emitted(&net)).expect("a net") == net.without_names());
}

#[test]
fn what_is_cut_off_or_goes_on_is_malformed() {
    let bytes = emitted(&samples::lip_sync());
    for end in 0..bytes.len() {
        assert!(parse(&bytes[..end]).is_err());
    }
    let long = [&bytes[..], &[0]].concat();
    let error = Malformed { format: "TSPN", offset: bytes.len(), reason: "bytes behind the end" };
    assert_eq!(parse(&long), Err(error));
}

#[test]
fn chains_and_masters_that_follow_each_other_are_runs() {
    let mut builder = Builder::new();
    let ids: Vec<_> =
        (0..1000).map(|i| builder.transition(Name::new("t").numbered(i), Rule::Master)).collect();
    for (i, consumer) in (0..).zip(ids.iter().copied()) {
        let producer = ids[(consumer.index() + 999) % 1000];
        let (name, initial) = (Name::new("p").numbered(i), u32::from(i == 0));
        let (carries, interval) = (Carries::Object, Interval::ALWAYS);
        let place = builder.place(Place { name, carries, producer, consumer, interval, initial });
        builder.master(place);
    }
    let net = builder.build().expect("a net");
    let bytes = emitted(&net);
    assert!(bytes.len() < 25, "{} bytes", bytes.len());
    assert!(parse(&bytes).expect("a net") == net.without_names());
}

#[test]
fn what_is_wrong_is_told() {
    let reason = |bytes: &[u8]| parse(bytes).map_err(|error| error.reason);
    // One transition by `and`, one interval without end, one place with a token from it to it.
    assert!(reason(&[2, 1, 19, 1, 0, 0, 0, 1, 4, 0, 0, 0, 1]).is_ok());
    for (bytes, expected) in [
        (&[1][..], "a version that is not known"),
        (&[2, 1, 25], "a rule that is not known"),
        (&[2, 1, 3], "no transitions in a run, or too many"),
        (&[2, 1, 0xf3, 0xff, 0xff, 0x7f], "no transitions in a run, or too many"),
        (&[2, 1, 24, 0x80, 0x80, 1], "no place of this number"),
        (&[2, 1, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 1], "a number of more than 63 bits"),
        (&[2, 1, 19, 1, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 0], "an interval too long"),
        (&[2, 1, 19, 1, 0, 0, 0, 1, 4, 1], "no interval of this number"),
        (&[2, 1, 19, 1, 0, 0, 0, 1, 4, 0, 1], "no transition of this number"),
        (&[2, 1, 19, 1, 0, 0, 0, 1, 4, 0, 0, 0, 0], "no places in a run, or too many"),
        (
            &[2, 1, 19, 1, 0, 0, 0, 1, 4, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0x7f],
            "no places in a run, or too many",
        ),
        (&[2, 1, 19, 1, 0, 0, 0, 1, 5, 0, 0, 0, 2], "a run beyond the last transition"),
        (&[2, 1, 19, 1, 0, 0, 0, 1, 0xfe, 0xff, 0xff, 0xff, 0x7f], "too many tokens in a place"),
        (&[2, 1, 24, 1, 1, 0, 0, 0, 1, 4, 0, 0, 0, 1], "a master of another transition"),
        (&[2, 1, 40, 0, 1, 0, 0, 0, 1, 4, 0, 0, 0, 2], "a master of another transition"),
        (&[2, 1, 19, 1, 0, 0, 0, 1, 0, 0, 0, 0, 1], "a circuit without a token"),
        (&[2, 1, 35, 1, 0, 0, 0, 2, 4, 0, 0, 0, 1, 0, 0, 0, 1, 1], "a place on no circuit"),
    ] {
        assert_eq!(reason(bytes).map(|_| ()), Err(expected), "{bytes:?}");
    }
}

fn choice() -> impl Strategy<Value = samples::Choice> {
    (0..8_usize, 0..8_usize, 0..3_u32, 0..4_u64, 0..6_u64, any::<bool>())
}

proptest! {
    #[test]
    fn nets_of_any_group_arrive(
        kinds in prop::collection::vec((0..4_u32, 1..40_u32, 1..60_u32), 1..40),
        objects in 1..20_u32,
    ) {
        let frame = |(kind, a, b): &(u32, u32, u32)| match kind {
            0 => Frame { kind: Kind::Intra, needs: Needs::NOTHING },
            1 => Frame { kind: Kind::Predicted, needs: Needs::reaching(*a) },
            _ => Frame { kind: Kind::Bidirectional, needs: Needs::reaching(*a).and(Needs::reaching(*b)) },
        };
        let frames: Vec<_> = kinds.iter().map(frame).collect();
        let net = of_gop(&frames, &Shape { objects_per_frame: objects, ..mpeg_shape() }).expect("a net");
        prop_assert_eq!(net.objects(), frames.len() * objects as usize);
        prop_assert!(parse(&emitted(&net)).expect("a net") == net.without_names());
        prop_assert!(net.to_string().parse::<Net>().expect("a net") == net);
    }

    #[test]
    fn any_live_net_arrives(
        rules in prop::collection::vec(0..9_usize, 1..6),
        choices in prop::collection::vec(choice(), 6..14),
    ) {
        let net = samples::live(&rules, &choices, 10);
        prop_assert!(parse(&emitted(&net)).expect("a net") == net.without_names());
    }

    #[test]
    fn any_bytes_are_a_net_or_malformed(bytes in prop::collection::vec(0..40_u8, 0..60)) {
        if let Ok(net) = parse(&[&[VERSION], &bytes[..]].concat()) {
            prop_assert!(parse(&emitted(&net)).expect("a net") == net);
        }
    }
}
