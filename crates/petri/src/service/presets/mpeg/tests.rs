//! The paper's net, other groups, and headers.

use outflow_media::Tag;

use super::super::play::Play;
use super::*;
use crate::net::mpeg_shape;

#[test]
fn the_papers_net_stays_as_it_is() {
    let flow = mpeg(&Mpeg::default()).expect("a flow");
    assert!(*flow.net == of_gop(&mpeg_gop(), &mpeg_shape()).expect("a net"));
    assert_eq!((flow.net.places().len(), flow.period), (180, Some(Duration::from_millis(480))));
    assert_eq!(gop(12, 4), mpeg_gop());
}

#[test]
fn what_others_need_is_sent_again_for_longer() {
    let flow = mpeg(&Mpeg { has_headers: true, ..Mpeg::default() }).expect("a flow");
    assert_eq!(flow.net.objects(), 12 * 16);
    // Of each picture the header and a slice: I, B, P.
    let classes = [0, 1, 16, 17, 64, 65].map(|object| flow.class(object));
    let [header, i, b_header, b, p_header, p] = classes;
    assert!(header == b_header && header == p_header);
    assert!(header.validity > i.validity && i.validity > p.validity && p.validity > b.validity);
    assert_eq!([header, i, p, b].map(|class| class.repair), {
        [Class::Reliable, Class::Reliable, Class::Partial, Class::Unreliable]
    });
}

#[test]
fn classes_agree_with_importance() {
    let flow = mpeg(&Mpeg { has_headers: true, ..Mpeg::default() }).expect("a flow");
    let objects = [(Kind::Header, 0), (Kind::Intra, 1), (Kind::Predicted, 65), (Kind::Bidirectional, 17)];
    let importance = |kind| Tag { kind, ..Tag::default() }.importance();
    assert!(objects.is_sorted_by(|(more, a), (less, b)| {
        importance(*more) > importance(*less) && flow.class_of[*a] < flow.class_of[*b]
    }));
}

#[test]
fn receivers_of_any_group_keep_up() {
    for (pictures, distance) in [(1, 1), (2, 1), (12, 1), (12, 3), (15, 3), (50, 1), (4, 4), (60, 2)] {
        for has_headers in [false, true] {
            for frame in [Duration::from_millis(40), Duration::from_secs_f64(1001.0 / 60_000.0)] {
                let frames = gop(pictures, distance);
                let service = Mpeg { frames, slices: 3, has_headers, frame, ..Mpeg::default() };
                Play::new(&mpeg(&service).expect("a flow"));
            }
        }
    }
}

#[test]
fn slices_come_behind_their_header_and_it_behind_the_pictures_that_are_needed() {
    let service = Mpeg { slices: 2, has_headers: true, ..Mpeg::default() };
    let mut play = Play::new(&mpeg(&service).expect("a flow"));
    // I: 0, 1, 2. The B pictures: 3 to 11. P: 12, 13, 14.
    play.receive(0, [1, 2, 12, 13, 14]);
    assert_eq!(play.units(), []);
    play.receive(10, [0]);
    assert_eq!(play.units(), [0, 1, 2, 12, 13, 14]);
    play.receive(20, [4, 5, 6]);
    assert_eq!(play.units(), [6], "the header of another picture");
    play.receive(30, [3]);
    assert_eq!(play.units(), [3, 4, 5]);
}

#[test]
fn what_makes_no_net_is_told() {
    assert_eq!(mpeg(&Mpeg { frames: Vec::new(), ..Mpeg::default() }), Err(NetError::Empty));
    let large = mpeg(&Mpeg { slices: 10_000, ..Mpeg::default() }).expect_err("too large");
    assert!(large.to_string().contains("16384 are allowed"), "{large}");
    let larger = mpeg(&Mpeg { slices: u32::MAX, ..Mpeg::default() }).expect_err("too large");
    assert!(larger.to_string().contains("16384 are allowed"), "{larger}");
    for frame in [Duration::ZERO, Duration::MAX] {
        Play::new(&mpeg(&Mpeg { frame, ..Mpeg::default() }).expect("lowered to what can be"));
    }
}
