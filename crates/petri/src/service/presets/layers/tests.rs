//! Layers behind those below, parts behind their text.

use super::super::play::Play;
use super::*;

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

#[test]
fn a_layer_comes_behind_those_below_it_and_is_waited_for_no_longer() {
    let mut play = Play::new(&j2k_layers(4, ms(40), ms(200)).expect("a flow"));
    play.receive(0, [3, 2, 1]);
    assert_eq!(play.units(), [], "nothing can be made of them");
    play.receive(100, [0]);
    assert_eq!(play.units(), [0, 1, 2, 3]);
    // Layer 1 of the next image is lost: those above wait as long as it is worth it, 150 ms.
    play.receive(140, [4, 6]);
    play.wait(1000);
    assert_eq!(play.delivered, [(140, 4), (290, 6)]);
    assert_eq!(play.lost, [5]);
}

#[test]
fn the_lowest_layers_do_not_wait_for_higher_ones() {
    let mut play = Play::new(&j2k_layers(3, ms(40), ms(600)).expect("a flow"));
    (0..4).for_each(|image| play.receive(40 * image, [3 * image]));
    assert_eq!(play.units(), [0, 3, 6, 9]);
    play.receive(160, [12]);
    assert_eq!(play.units(), [], "four images are begun");
    play.receive(180, [1, 2]);
    assert_eq!(play.units(), [1, 2, 12]);
}

#[test]
fn the_lower_a_layer_the_more_is_done_for_it() {
    let flow = j2k_layers(4, ms(40), ms(200)).expect("a flow");
    let classes: Vec<_> = (0..4).map(|layer| flow.class(layer)).collect();
    assert!(classes.windows(2).all(|pair| pair[0].validity > pair[1].validity));
    let repair: Vec<_> = classes.iter().map(|class| class.repair).collect();
    assert_eq!(repair, [Class::Reliable, Class::Partial, Class::Partial, Class::Unreliable]);
    for (layers, latency) in [(0, Duration::ZERO), (1, ms(40)), (u32::MAX, Duration::MAX)] {
        Play::new(&j2k_layers(layers, Duration::ZERO, latency).expect("a flow"));
    }
}

#[test]
fn a_text_comes_first_its_parts_in_any_order_and_then_the_next_page() {
    let mut play = Play::new(&parts(3).expect("a flow"));
    play.receive(0, [4, 3, 1]);
    assert_eq!(play.units(), []);
    play.receive(10, [0]);
    let mut units = play.units();
    assert_eq!(units.remove(0), 0, "the text");
    units.sort_unstable();
    assert_eq!(units, [1, 3]);
    play.wait(60_000);
    assert_eq!(play.units(), [], "nothing is gone without");
    play.receive(60_000, [2]);
    assert_eq!(play.units(), [2, 4], "the next text");
}

#[test]
fn a_page_may_be_a_text_alone() {
    let mut play = Play::new(&parts(0).expect("a flow"));
    play.receive(0, [1, 0]);
    assert_eq!(play.units(), [0, 1]);
    assert!(parts(u32::MAX).is_err(), "too large");
}
