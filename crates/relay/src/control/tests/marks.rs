//! Receivers behind routers: what they are sent says what it is.

use outflow_packet::{Level, MaxLayer};

use super::*;

fn join(bench: &mut Bench, marks: bool) -> SinkKey {
    let spec = SinkSpec { marks, ..SinkSpec::new(Encapsulation::Rtp, Transport::Datagram) };
    bench.stream.handle_join(bench.now, 1, spec)
}

#[test]
fn packets_for_routers_say_what_they_are_and_those_of_others_do_not() {
    let mut bench = Bench::new();
    bench.frame(true);
    bench.frame(false);
    let (routed, plain) = (join(&mut bench, true), join(&mut bench, false));
    bench.frame(false);
    bench.frame(true);
    assert_eq!([&bench.sent[routed.0], &bench.sent[plain.0]], [&[0, 1, 2, 3], &[0, 1, 2, 3]]);
    assert_eq!(bench.said[plain.0], [None; 4]);
    let said = &bench.said[routed.0];
    let layers = said.iter().map(|mark| mark.map(|mark| (mark.layer, mark.opens_all)));
    let (key, other) = (Some((0, true)), Some((1, false)));
    assert_eq!(layers.collect::<Vec<_>>(), [key, other, other, key]);
    assert!(said.iter().flatten().all(|mark| (mark.layers, mark.first) == (3, true)));
}

#[test]
fn a_receiver_behind_routers_has_its_level() {
    let mut bench = Bench::new();
    bench.frame(true);
    let key = join(&mut bench, true);
    bench.stream.set_level(key, Level::new(3).expect("a level")).expect("there are three");
    for frame in 1..8 {
        bench.frame(frame % 4 == 0);
    }
    let sink = bench.stream.sink(key).expect("it is there");
    assert_eq!((sink.max_layer, bench.stream.sink_counters(key).packets), (MaxLayer::up_to(0), 2));
}

#[test]
fn the_branch_goes_when_the_last_of_them_has_left() {
    let mut bench = Bench::new();
    bench.frame(true);
    let keys = [join(&mut bench, true), join(&mut bench, true)];
    bench.poll();
    let branches = |bench: &Bench| bench.stream.state.out.branches.slots().count();
    assert_eq!(branches(&bench), 2, "they share one");
    keys.into_iter().for_each(|key| bench.stream.handle_leave(bench.now, key));
    bench.wait(60_000);
    assert_eq!(branches(&bench), 1);
}
