//! Plug-ins that mean no good, and some that do, in the text form of WebAssembly.

use std::time::Duration;

use bytes::Bytes;
use outflow_graph::{Element, Item, Message, Setting, Settings, Tally, TrackTime, Unfit};
use outflow_media::{Codec, Format, Time, Track};
use outflow_packet::DropReason;
use outflow_rtp::PlainHeader;

/// A plug-in that sees everything and does `work` with the packets $p, $n and the bytes $b, $l; the
/// answer lies at 4096, actions at 8192.
fn plugin(work: &str) -> String {
    plugin_of("1.0.0", work, "")
}

fn plugin_of(version: &str, work: &str, more: &str) -> String {
    format!(
        r#"(module
        (memory (export "memory") 4)
        (global $top (mut i32) (i32.const 65536))
        (global $count (mut i32) (i32.const 0))
        (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32)
            (local $at i32)
            (local.set $at (i32.and (i32.add (global.get $top) (i32.const 15)) (i32.const -16)))
            (global.set $top (i32.add (local.get $at) (local.get 3)))
            (local.get $at))
        (func (export "outflow:plugin/element@{version}#init")
            (param $text i32) (param $length i32) (param i32 i32 i32) (result i32)
            ;; With a configuration, it refuses, and says that.
            (i32.store8 (i32.const 1024) (i32.ne (local.get $length) (i32.const 0)))
            (i32.store (i32.const 1028) (i32.const 2))
            (if (local.get $length) (then
                (i32.store (i32.const 1028) (local.get $text))
                (i32.store (i32.const 1032) (local.get $length))))
            (i32.const 1024))
        (func (export "cabi_post_outflow:plugin/element@{version}#work") (param i32)
            (global.set $top (i32.const 65536)))
        (func $act (param $index i32) (param $packet i32) (param $port i32) (param $edit i32)
            (param $offset i32) (param $length i32) (param $after i32)
            (local $at i32)
            (local.set $at (i32.add (i32.const 8192) (i32.mul (local.get $index) (i32.const 24))))
            (i32.store (local.get $at) (local.get $packet))
            (i32.store8 offset=4 (local.get $at) (local.get $port))
            (i32.store8 offset=8 (local.get $at) (local.get $edit))
            (i32.store offset=12 (local.get $at) (local.get $offset))
            (i32.store offset=16 (local.get $at) (local.get $length))
            (i32.store offset=20 (local.get $at) (local.get $after)))
        (func $only (param $count i32) (param $bytes i32) (param $length i32)
            (i32.store8 (i32.const 4096) (i32.const 1))
            (i32.store (i32.const 4100) (i32.const 8192))
            (i32.store (i32.const 4104) (local.get $count))
            (i32.store (i32.const 4108) (local.get $bytes))
            (i32.store (i32.const 4112) (local.get $length)))
        ;; The body of the packet of this index begins with this.
        (func $begins (param $p i32) (param $b i32) (param $index i32) (result i32)
            (i32.load8_u offset=12 (i32.add (local.get $b)
                (i32.load offset=8 (i32.add (local.get $p) (i32.mul (local.get $index) (i32.const 32)))))))
        (func $deep (call $deep) (call $deep))
        {more}
        (func (export "outflow:plugin/element@{version}#work")
            (param $p i32) (param $n i32) (param $b i32) (param $l i32) (result i32)
            (local $i i32)
            (i32.store8 (i32.const 4096) (i32.const 0))
            {work}
            (i32.const 4096)))"#
    )
}

/// An action in the text form, at `index`: packet, output, whether it is edited, offset, length, after.
fn act(index: u32, [packet, port, edit, offset, length, after]: [&str; 6]) -> String {
    let constant = |value: &str| match value.parse::<i32>() {
        Ok(number) => format!("(i32.const {number})"),
        Err(_) => format!("(local.get ${value})"),
    };
    let rest = [packet, port, edit, offset, length, after].map(constant).concat();
    format!("(call $act (i32.const {index}) {rest})")
}

/// The answer: the first `actions`, and bytes.
fn only(actions: i32, bytes: &str, length: u32) -> String {
    format!("(call $only (i32.const {actions}) {bytes} (i32.const {length}))")
}

/// Runs `each` for every packet, whose index is $i.
fn for_each(each: &str) -> String {
    format!(
        "(loop $next {each}
            (local.set $i (i32.add (local.get $i) (i32.const 1)))
            (br_if $next (i32.lt_u (local.get $i) (local.get $n))))"
    )
}

/// Runs `then` at a packet whose body begins with 'x'.
fn at_x(then: &str) -> String {
    for_each(&format!(
        "(if (i32.eq (call $begins (local.get $p) (local.get $b) (local.get $i)) (i32.const 120)) (then {then}))"
    ))
}

fn video() -> Format {
    Format::Rtp(vec![Track { codec: Codec::Other { video: true }, ..Track::mp2t() }])
}

fn rtp(body: &str) -> Item {
    let header = PlainHeader { marker: true, payload_type: 96, sequence: 1, timestamp: 0, ssrc: 7 };
    let mut item = Item::empty();
    item.packet.bytes = Bytes::from([&header.emit()[..], body.as_bytes()].concat());
    item
}

fn load(settings: Settings, text: &str) -> Result<Box<dyn Element>, Unfit> {
    crate::load(&settings, &wat::parse_str(text).expect("the text is right"))
}

fn bound(settings: Settings, text: &str) -> Box<dyn Element> {
    let mut element = load(settings, text).expect("it fits");
    assert_eq!(element.bind(&video()), Ok(video()));
    element
}

fn word(option: &str, word: &str) -> Settings {
    Settings::default().with(option, Setting::Text(word.to_owned()))
}

/// What comes out of `bodies`, with its output.
fn work(element: &mut dyn Element, now: u64, bodies: &[&str], tally: &mut Tally) -> Vec<(u8, String)> {
    let mut batch = bodies.iter().map(|body| rtp(body)).collect();
    element.work(Time::from_millis(now), &mut batch, tally);
    let text = |item: &Item| String::from_utf8_lossy(&item.packet.bytes[12..]).into_owned();
    batch.iter().map(|item| (item.port, text(item))).collect()
}

fn out(bodies: &[&str]) -> Vec<(u8, String)> {
    bodies.iter().map(|body| (0, (*body).to_owned())).collect()
}

/// Of a batch with one packet 'x' at which the plug-in does `then`, all others come out.
fn loses_only_x(then: &str, words: &str) {
    let budget = Setting::Duration(Duration::from_millis(2));
    let mut element = bound(Settings::default().with("budget", budget), &plugin(&at_x(then)));
    let mut tally = Tally::default();
    for now in 0..2 {
        let came = work(&mut *element, now, &["a", "b", "x", "c"], &mut tally);
        assert_eq!(came, out(&["a", "b", "c"]), "{:?}", tally.fault);
    }
    assert_eq!((tally.drops.get(DropReason::ElementFault), tally.drops.total()), (2, 2));
    let fault = tally.fault.expect("something went wrong");
    assert!(fault.contains(words), "{fault}");
}

#[test]
fn an_endless_loop_ends() {
    loses_only_x("(loop $ever (br $ever))", "`budget`");
}

#[test]
fn one_that_fills_memory_again_and_again_is_stopped_too() {
    loses_only_x(
        "(loop $ever (memory.fill (i32.const 65536) (i32.const 0) (i32.const 100000)) (br $ever))",
        "`budget`",
    );
}

#[test]
fn one_that_wants_all_memory_does_not_get_it() {
    loses_only_x("(loop $ever (drop (memory.grow (i32.const 16))) (br $ever))", "`memory` allows for 16 MB");
}

#[test]
fn one_that_stops_costs_the_packet_at_which_it_stops() {
    loses_only_x("unreachable", "unreachable");
    loses_only_x("(drop (i32.load (i32.const -4)))", "out of bounds");
    loses_only_x("(call $deep)", "stack");
}

#[test]
fn an_answer_that_makes_no_sense_costs_its_packet() {
    let edited = |action: [&str; 6]| {
        format!("{} {} (return (i32.const 4096))", act(0, action), only(1, "(local.get $b)", 8))
    };
    loses_only_x(&edited(["n", "0", "0", "0", "0", "0"]), "named packet");
    loses_only_x(&edited(["0", "4", "0", "0", "0", "0"]), "output 4");
    loses_only_x(&edited(["0", "0", "1", "-1", "9", "0"]), "9 bytes from");
    loses_only_x(&edited(["0", "0", "1", "0", "4", "-1"]), "no RTP packet");
    // Lists that lie outside of memory, a variant that there is not, far too many actions.
    let answered = |answer: &str| format!("{answer} (return (i32.const 4096))");
    loses_only_x(&answered(&only(1, "(i32.const -8)", 64)), "out of bounds");
    loses_only_x(&answered("(i32.store8 (i32.const 4096) (i32.const 7))"), "discriminant");
    loses_only_x(&answered(&only(2000, "(i32.const 0)", 0)), "2000 packets");
    loses_only_x("(return (i32.const -3))", "pointer");
}

#[test]
fn a_contract_of_another_version_is_named() {
    let unfit = load(Settings::default(), &plugin_of("2.1.0", "", "")).expect_err("another version");
    let text = unfit.to_string();
    assert!(text.contains("2.1.0") && text.contains("1.0.0") && text.contains("build it again"), "{text}");
    let unfit = load(Settings::default(), "(module)").expect_err("no element");
    assert!(unfit.to_string().contains("no element"), "{unfit}");
    let typed =
        plugin("").replace("(param $text i32) (param $length i32)", "(param $text i64) (param $length i32)");
    let unfit = load(Settings::default(), &typed).expect_err("other types");
    assert!(unfit.to_string().contains("does not fit the contract"), "{unfit}");
}

#[test]
fn what_passes_is_not_touched_and_what_is_not_named_is_filtered() {
    let mut tally = Tally::default();
    let mut passing = bound(Settings::default(), &plugin(""));
    assert_eq!(work(&mut *passing, 0, &["a", "b"], &mut tally), out(&["a", "b"]));
    assert!(tally.memory_bytes > 0);
    let last_first = [
        act(0, ["1", "2", "0", "0", "0", "0"]),
        act(1, ["0", "0", "0", "0", "0", "0"]),
        act(2, ["0", "3", "0", "0", "0", "0"]),
        only(3, "(i32.const 0)", 0),
    ];
    let mut element = bound(Settings::default(), &plugin(&last_first.concat()));
    let came = work(&mut *element, 0, &["a", "b", "c"], &mut tally);
    assert_eq!(came, [(2, "b".to_owned()), (0, "a".to_owned()), (3, "a".to_owned())]);
    assert_eq!((tally.drops.get(DropReason::Filtered), tally.drops.total()), (1, 1));
}

#[test]
fn new_bytes_stand_before_what_stays() {
    // The header, its last byte made 'H', then the packet from its second byte of body on.
    let header = "(i32.store8 offset=11 (local.get $b) (i32.const 72))";
    let action = act(0, ["0", "0", "1", "0", "12", "13"]);
    let text = plugin(&[header, &action, &only(1, "(local.get $b)", 12)].concat());
    let mut element = bound(Settings::default(), &text);
    let mut tally = Tally::default();
    for stands_apart in [false, true] {
        let mut batch = vec![rtp("abc")];
        if stands_apart {
            batch[0].header_mut();
        }
        element.work(Time::ZERO, &mut batch, &mut tally);
        assert_eq!(
            (&batch[0].packet.bytes[11..], batch[0].rtp_header[0]),
            (&b"Hbc"[..], 0),
            "{:?}",
            tally.fault
        );
    }
}

#[test]
fn what_always_goes_wrong_rests() {
    let mut element = bound(Settings::default(), &plugin("unreachable"));
    let mut tally = Tally::default();
    for _ in 0..100 {
        assert_eq!(work(&mut *element, 5, &["a", "b", "c", "d"], &mut tally), []);
    }
    assert_eq!(tally.drops.get(DropReason::ElementFault), 400);
    assert!(tally.faults < 20, "it is not tried at each of them: {}", tally.faults);
    let faults = tally.faults;
    work(&mut *element, 60_000, &["a"], &mut tally);
    assert_eq!(tally.faults, faults + 1, "later it is");
}

#[test]
fn what_went_wrong_may_be_passed_by_or_closed() {
    let mut tally = Tally::default();
    let mut bypassed = bound(word("on_fault", "bypass"), &plugin("unreachable"));
    let mut closed = bound(word("on_fault", "drop"), &plugin("unreachable"));
    for _ in 0..3 {
        assert_eq!(work(&mut *bypassed, 0, &["a", "b"], &mut tally), out(&["a", "b"]));
        assert_eq!(work(&mut *closed, 0, &["a", "b"], &mut tally), []);
    }
    assert_eq!((tally.faults, tally.drops.get(DropReason::ElementFault)), (2, 6));
}

#[test]
fn one_that_is_slow_sometimes_is_stopped_always_at_the_same_place() {
    // Each packet takes 1000 turns more than the one before it.
    let slow = "(global.set $count (i32.add (global.get $count) (i32.const 1000)))
        (local.set $i (global.get $count))
        (loop $turn (local.set $i (i32.sub (local.get $i) (i32.const 1))) (br_if $turn (local.get $i)))";
    let settings = Settings::default().with("budget", Setting::Duration(Duration::from_micros(200)));
    let run = || {
        let (mut element, mut tally) = (bound(settings.clone(), &plugin(slow)), Tally::default());
        let came = (0..100).map(|_| work(&mut *element, 0, &["a"], &mut tally).len());
        (came.collect::<Vec<_>>(), tally.faults)
    };
    let first = run();
    assert!(first.1 > 0 && first.0.contains(&1), "{first:?}");
    assert_eq!(run(), first);
}

#[test]
fn a_call_that_is_given_more_may_take_longer() {
    // Eight millions of instructions.
    let long = "(local.set $i (i32.const 1333333))
        (loop $turn (local.set $i (i32.sub (local.get $i) (i32.const 1))) (br_if $turn (local.get $i)))";
    let (mut element, mut tally) = (bound(Settings::default(), &plugin(long)), Tally::default());
    let image = "y".repeat(60_000);
    assert_eq!(work(&mut *element, 0, &["a"], &mut tally), []);
    assert_eq!(work(&mut *element, 0, &[&image], &mut tally).len(), 1);
    let settings = Settings::default().with("budget", Setting::Duration(Duration::from_millis(9)));
    let mut element = bound(settings, &plugin(long));
    assert_eq!(work(&mut *element, 0, &["a"], &mut tally).len(), 1, "it was chosen");
    assert_eq!(tally.faults, 1);
}

#[test]
fn one_that_refuses_says_why() {
    let mut element = load(word("config", "no such thing"), &plugin("")).expect("it fits");
    let unfit = element.bind(&video()).expect_err("it refuses");
    assert!(unfit.what.contains("refuses: no such thing"), "{unfit}");
}

/// Drops the first packet that it sees, and counts on.
const FIRST_DROPPED: &str = "
    (global.set $count (i32.add (global.get $count) (local.get $n)))
    (if (i32.eq (global.get $count) (local.get $n))
        (then (call $only (i32.const 0) (i32.const 0) (i32.const 0))))";

#[test]
fn the_same_plug_in_lives_on_in_the_next_graph() {
    let mut tally = Tally::default();
    let text = plugin(FIRST_DROPPED);
    let mut before = bound(Settings::default(), &text);
    assert_eq!(work(&mut *before, 0, &["a"], &mut tally), []);
    let mut after = bound(Settings::default(), &text);
    after.resume(before.state().expect("it lives"));
    assert_eq!(work(&mut *after, 0, &["b"], &mut tally), out(&["b"]));
    // Another file without state begins again.
    let mut other = bound(Settings::default(), &plugin(&format!("nop {FIRST_DROPPED}")));
    other.resume(after.state().expect("it lives"));
    assert_eq!(work(&mut *other, 0, &["c"], &mut tally), []);
}

#[test]
fn another_plug_in_goes_on_from_what_was_saved() {
    let state = r#"
        (func (export "outflow:plugin/state@1.0.0#save") (result i32)
            (i32.store (i32.const 2056) (global.get $count))
            (i32.store (i32.const 2048) (i32.const 2056))
            (i32.store (i32.const 2052) (i32.const 4))
            (i32.const 2048))
        (func (export "outflow:plugin/state@1.0.0#restore") (param $at i32) (param $length i32)
            (if (i32.ne (local.get $length) (i32.const 4)) (then unreachable))
            (global.set $count (i32.load (local.get $at))))"#;
    let mut tally = Tally::default();
    let mut before = bound(Settings::default(), &plugin_of("1.0.0", FIRST_DROPPED, state));
    assert_eq!(work(&mut *before, 0, &["a"], &mut tally), []);
    let next = plugin_of("1.0.0", &format!("nop {FIRST_DROPPED}"), state);
    let mut after = bound(Settings::default(), &next);
    after.resume(before.state().expect("it lives"));
    assert_eq!(work(&mut *after, 0, &["b"], &mut tally), out(&["b"]));
}

#[test]
fn frames_are_never_parted() {
    // Frame 2 is to come alone, with its three packets.
    let stops = r#"
        (local.set $l (local.get $n))
        (loop $next
            (local.set $i (i32.add (local.get $i) (i32.eq (i32.load offset=20 (local.get $p)) (i32.const 2))))
            (local.set $p (i32.add (local.get $p) (i32.const 32)))
            (local.set $n (i32.sub (local.get $n) (i32.const 1)))
            (br_if $next (local.get $n)))
        (if (i32.and (i32.ne (local.get $i) (i32.const 0))
                (i32.or (i32.ne (local.get $i) (i32.const 3)) (i32.ne (local.get $l) (i32.const 3))))
            (then unreachable))"#;
    // One by one, too many go wrong for the rest of the batch to be tried.
    for (unit, left) in [("frames", 6), ("packets", 2)] {
        let mut element = bound(word("unit", unit), &plugin(stops));
        let mut batch: Vec<Item> = [1, 1, 2, 2, 2, 3].map(|_| rtp("a")).into();
        for (item, frame) in batch.iter_mut().zip([1, 1, 2, 2, 2, 3]) {
            item.packet.tag.frame = frame;
        }
        element.work(Time::ZERO, &mut batch, &mut Tally::default());
        assert_eq!(batch.len(), left, "{unit}");
    }
}

/// Moves clocks on by five ticks; restarts end with it. With the track 9, it stops.
const HEAR: &str = r#"
        (func (export "outflow:plugin/control@1.0.0#hear")
            (param $kind i32) (param $track i32) (param $ntp i64) (param $rtp i32) (param $at i64)
            (param $told i32) (result i32)
            (if (i32.eq (local.get $track) (i32.const 9)) (then unreachable))
            (i64.store (i32.const 2048) (i64.const 0))
            (if (i32.eqz (local.get $kind)) (then (i32.store8 (i32.const 2048) (i32.const 1))))
            (i32.store8 (i32.const 2056) (i32.const 0))
            (i32.store8 (i32.const 2064) (local.get $track))
            (i64.store (i32.const 2072) (local.get $ntp))
            (i32.store (i32.const 2080) (i32.add (local.get $rtp) (i32.const 5)))
            (i64.store (i32.const 2088) (local.get $at))
            (i32.store8 (i32.const 2096) (local.get $told))
            (i32.const 2048))"#;

#[test]
fn messages_are_heard_changed_and_ended() {
    let clock = |track, rtp| {
        Message::Clock(TrackTime { track, ntp: 1 << 40, rtp, at: Time::from_millis(3), told: true })
    };
    let mut tally = Tally::default();
    let mut element = bound(Settings::default(), &plugin_of("1.0.0", "", HEAR));
    assert_eq!(element.message(Time::ZERO, clock(1, 7)), Some(clock(1, 12)));
    assert_eq!(element.message(Time::ZERO, Message::Break), None);
    // What goes wrong is counted with the next packets, and ends nothing.
    assert_eq!(element.message(Time::ZERO, clock(9, 7)), Some(clock(9, 7)));
    let later = Time::from_millis(60_000);
    assert_eq!(element.message(later, clock(1, 7)), Some(clock(1, 7)), "it is dead");
    element.work(later, &mut Vec::new(), &mut tally);
    assert_eq!(tally.faults, 1, "{:?}", tally.fault);
    // A plug-in that does not listen lets all pass.
    let mut deaf = bound(Settings::default(), &plugin(""));
    assert_eq!(deaf.message(Time::ZERO, clock(1, 7)), Some(clock(1, 7)));
}

#[test]
fn large_batches_go_in_parts_and_large_packets_need_memory() {
    let mut tally = Tally::default();
    let mut element = bound(Settings::default().with("memory", Setting::Size(1 << 20)), &plugin(""));
    let body = "y".repeat(60_000);
    let bodies = vec![body.as_str(); 100];
    assert_eq!(work(&mut *element, 0, &bodies, &mut tally).len(), 100);
    assert_eq!(tally.faults, 0, "{:?}", tally.fault);
    let huge = "y".repeat(1_100_000);
    assert_eq!(work(&mut *element, 0, &["a", &huge, "b"], &mut tally), out(&["a", "b"]));
    assert!(tally.fault.is_some_and(|fault| fault.contains("raise `memory`")));
}

/// A plug-in that is given packets four bytes at a time, and does this with each part.
fn by_four(work: &str) -> String {
    let text = plugin(work).replace("(memory", WRITE);
    let asks = "(i32.store (i32.const 1028) (i32.const 3)) (i32.store (i32.const 1032) (i32.const 4))";
    text.replace("(i32.store (i32.const 1028) (i32.const 2))", asks)
}

const WRITE: &str = r#"
    (import "outflow:plugin/host@1.0.0" "write" (func $write (param i32 i32)))
    (memory"#;

#[test]
fn parts_are_written_over_one_by_one() {
    // From the body on, the first byte of each part becomes 'X', and the next part begins behind it.
    let body = "(if (i32.ge_u (i32.load offset=8 (local.get $p)) (i32.const 12)) (then
        (i32.store8 (local.get $b) (i32.const 88)) (call $write (local.get $b) (i32.const 1))))";
    let mut element = bound(Settings::default(), &by_four(body));
    let mut tally = Tally::default();
    assert_eq!(work(&mut *element, 0, &["abcdefg", "", "h"], &mut tally), out(&["XXXXXXX", "", "X"]));
    let mut apart = vec![rtp("ab")];
    apart[0].header_mut();
    element.work(Time::ZERO, &mut apart, &mut tally);
    assert_eq!((&apart[0].packet.bytes[12..], apart[0].rtp_header[0]), (&b"XX"[..], 0));
    assert_eq!(tally.faults, 0, "{:?}", tally.fault);

    let mut passing = bound(Settings::default(), &by_four(""));
    assert_eq!(work(&mut *passing, 0, &["abc"], &mut tally), out(&["abc"]));
    let mut dropping = bound(Settings::default(), &by_four(&only(0, "(i32.const 0)", 0)));
    assert_eq!(work(&mut *dropping, 0, &["abc"], &mut tally), []);
    assert_eq!((tally.faults, tally.drops.get(DropReason::Filtered)), (0, 1));
}

#[test]
fn one_that_writes_what_it_may_not_loses_the_packet() {
    for (wrong, words) in [
        ("(call $write (local.get $b) (i32.const 5))", "over a part of 4"),
        ("(call $write (local.get $b) (i32.const 1)) (call $write (local.get $b) (i32.const 1))", "twice"),
        ("(call $write (i32.const -4) (i32.const 4))", "out of bounds"),
        ("(i32.store8 (local.get $b) (i32.const 1)) (call $write (local.get $b) (i32.const 4))", "no RTP"),
        ("(loop $ever (br $ever))", "`budget`"),
    ] {
        let mut element = bound(Settings::default(), &by_four(wrong));
        let mut tally = Tally::default();
        assert_eq!(work(&mut *element, 0, &["abcd"], &mut tally), [], "{wrong}");
        let fault = tally.fault.expect("something went wrong");
        assert!(fault.contains(words), "{fault}");
    }
    let mut element = bound(
        Settings::default(),
        &plugin("(call $write (local.get $b) (i32.const 1))").replace("(memory", WRITE),
    );
    let mut tally = Tally::default();
    assert_eq!(work(&mut *element, 0, &["a"], &mut tally), []);
    assert!(tally.fault.is_some_and(|fault| fault.contains("`parts`")));
}

#[test]
fn many_small_parts_end_too() {
    // Byte by byte, each for little.
    let mut element = bound(Settings::default(), &by_four("(call $write (local.get $b) (i32.const 1))"));
    let mut tally = Tally::default();
    let body = "y".repeat(60_000);
    assert_eq!(work(&mut *element, 0, &["a", &body, "b"], &mut tally), out(&["a", "b"]));
    assert!(tally.fault.is_some_and(|fault| fault.contains("`budget`")));
}
