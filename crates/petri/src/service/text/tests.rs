//! Flows written by hand, what is said of mistakes, and round trips.

use super::*;
use crate::service::Preset;

const LIP_SYNC: &str = include_str!("../../../nets/lip-sync.tspn");

const USED: &str = "period 40 ms # 25 pictures a second\nrounds 8\nbuffer 1 MiB\n\
    class unreliable within 400 ms\nclass partial within 120 ms of sound\nclass reliable of caption\n";

fn ms(millis: u64) -> Option<Duration> {
    Some(Duration::from_millis(millis))
}

#[test]
fn a_net_is_a_flow_as_it_stands() {
    for text in [LIP_SYNC, include_str!("../../../nets/mpeg.tspn")] {
        let flow: Flow = text.parse().expect("a flow");
        assert!(*flow.net == text.parse().expect("a net"));
        assert_eq!(flow.class(0), ServiceClass { repair: Class::Reliable, validity: None });
        assert_eq!((flow.rounds, flow.buffer_bytes, flow.period), (4, 32 << 20, None));
    }
}

#[test]
fn lines_before_or_behind_a_net_say_how_it_is_used() {
    let flow: Flow = [USED, LIP_SYNC].concat().parse().expect("a flow");
    assert!(flow == [LIP_SYNC, USED].concat().parse().expect("a flow"));
    assert_eq!((flow.rounds, flow.buffer_bytes, flow.period), (8, 1 << 20, ms(40)));
    let of = |object| (flow.class(object).repair, flow.class(object).validity);
    assert_eq!((of(0), of(2)), ((Class::Unreliable, ms(400)), (Class::Unreliable, ms(400))));
    assert_eq!((of(3), of(4)), ((Class::Partial, ms(120)), (Class::Reliable, None)));
}

#[test]
fn objects_are_named_one_by_one_in_ranges_or_by_their_word() {
    let with = |used: &str| [used, LIP_SYNC].concat().parse::<Flow>().map(|flow| flow.class_of);
    assert_eq!(with("class partial of picture, caption\nclass reliable\n"), Ok(vec![0, 0, 0, 1, 0]));
    assert_eq!(with("class partial of picture[1..2]\nclass reliable\n"), Ok(vec![1, 0, 0, 1, 1]));
    assert_eq!(
        with("class reliable\nclass partial within inf of sound picture[0]\n"),
        Ok(vec![1, 0, 0, 1, 0])
    );
}

#[test]
fn printing_and_reading_is_the_same_flow() {
    for preset in Preset::ALL {
        let flow = preset.flow(&[]).expect("a flow");
        let text = flow.to_string();
        assert!(text.parse() == Ok(flow), "{}: {}", preset.name, &text[..text.len().min(2000)]);
    }
    let flow: Flow = [USED, LIP_SYNC].concat().parse().expect("a flow");
    let text = "rounds 8\nbuffer 1 MiB\nperiod 40 ms\nclass unreliable within 400 ms of picture[0..2]\n\
        class partial within 120 ms of sound\nclass reliable of caption\n\ntransition instant";
    assert!(flow.to_string().starts_with(text), "{flow}");
    assert!(flow.to_string().parse() == Ok(flow));
}

#[test]
fn mistakes_are_named_by_line_and_column_with_what_to_write() {
    for (line, said) in [
        (
            "classes 4",
            "line 2, column 1: \"classes\" is not known: a line begins with transition, object, order, class,",
        ),
        ("rounds many", "line 2, column 8: \"many\" is not a number of rounds"),
        ("rounds", "line 2, column 7: \"\" is not a number"),
        ("  buffer 8 MB", "line 2, column 10: \"8 MB\" is not a size, as in 8 MiB"),
        ("period inf", "line 2, column 8: \"inf\" is not a time"),
        ("class", "line 2, column 6: a class is reliable, partial or unreliable"),
        ("class good of sound", "line 2, column 7: a class is reliable"),
        ("class partial for 3 ms", "line 2, column 15: \"within\" and a time"),
        ("class partial within of sound", "line 2, column 22: a time belongs here"),
        ("class partial within 3", "line 2, column 22: a time belongs here"),
        ("class partial of", "line 2, column 17: the names of objects are missing"),
        ("class partial of sound[1]", "line 2, column 18: no objects are called sound[1]"),
        ("class partial of picture[0..3]", "no objects are called picture[0..3]"),
        ("class partial of picture[2..1]", "no objects are called"),
        ("class partial of clock", "no objects are called clock"),
        ("class partial of é sound ö", "line 2, column 18: no objects"),
        ("class partial of sound sound", "line 2, column 24: object sound is of a class already"),
        ("class partial of sound", "object picture[0] has no class: add it behind an \"of\""),
        ("class partial\nclass reliable", "line 3, column 1: another class is that of all others already"),
        ("rounds 65", "the receiver is to keep 65 rounds"),
        ("buffer 0 B", "0 bytes"),
        ("period 0 ms", "period is zero"),
        ("class reliable within 100000 s", "longer than a day"),
        ("transition t nand", "line 2: \"nand\" is no rule"),
    ] {
        let text = format!("# {line}\n{line}\n{LIP_SYNC}");
        let error = text.parse::<Flow>().expect_err(line).to_string();
        assert!(error.contains(said), "{line}: {error}");
    }
    let text = format!("{}{LIP_SYNC}", "class partial of sound\n".repeat(17));
    let error = text.parse::<Flow>().expect_err("many").to_string();
    assert!(error.contains("line 17, column 1: more than 16 classes"), "{error}");
    let long = "#".repeat(TEXT_BYTES_MAX + 1).parse::<Flow>().expect_err("long");
    assert!(long.to_string().contains("bytes"));
}
