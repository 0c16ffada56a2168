//! The paper's net, and groups of other shapes.

use super::*;
use crate::net::samples;

fn frames(list: &[(Kind, &[u32])]) -> Vec<Frame> {
    let needs = |back: &[u32]| back.iter().fold(Needs::NOTHING, |needs, back| needs.and(Needs::back(*back)));
    list.iter().map(|(kind, back)| Frame { kind: *kind, needs: needs(back) }).collect()
}

/// What leads to a frame: the name of the frame before, how many objects and orders, and tokens.
fn before(net: &Net, frame: usize) -> Vec<(String, usize, usize, u32)> {
    let mut found: Vec<(String, usize, usize, u32)> = Vec::new();
    for place in net.places().iter().filter(|place| place.consumer.index() == frame) {
        let name = net.transition(place.producer).name.to_string();
        let is_object = usize::from(place.carries == Carries::Object);
        match found.iter_mut().find(|(known, .., tokens)| *known == name && *tokens == place.initial) {
            Some((_, objects, orders, _)) => {
                (*objects, *orders) = (*objects + is_object, *orders + 1 - is_object)
            }
            None => found.push((name, is_object, 1 - is_object, place.initial)),
        }
    }
    found
}

#[test]
fn the_papers_service_has_180_places_and_12_transitions() {
    let net = samples::mpeg();
    assert_eq!((net.transitions().len(), net.places().len(), net.objects()), (12, 180, 180));
    let names: Vec<_> = net.transitions().iter().map(|transition| transition.name.to_string()).collect();
    assert_eq!(names.join(" "), "I0 B1 B2 B3 P4 B5 B6 B7 P8 B9 B10 B11");
    let of = |list: &[(&str, usize, u32)]| -> Vec<_> {
        list.iter().map(|(name, objects, tokens)| (name.to_string(), *objects, 0, *tokens)).collect()
    };
    assert_eq!(before(&net, 4), of(&[("I0", 15, 0)]));
    assert_eq!(before(&net, 8), of(&[("P4", 15, 0)]));
    assert_eq!(before(&net, 6), of(&[("P4", 8, 0), ("I0", 7, 0)]));
    assert_eq!(before(&net, 2), of(&[("I0", 8, 0), ("P8", 7, 1)]), "of the group before");
    let ends = ["B1", "B2", "B3", "B5", "B6", "B7", "B9", "B10", "B11"];
    let intra = before(&net, 0);
    assert!(intra.iter().all(|(_, objects, _, tokens)| *objects > 0 && *tokens == 2));
    assert_eq!(intra.iter().map(|(name, ..)| name.as_str()).collect::<Vec<_>>(), ends);
}

#[test]
fn a_group_of_key_frames_alone_follows_itself() {
    let net = of_gop(&frames(&[(Kind::Intra, &[])]), &mpeg_shape()).expect("a net");
    assert_eq!(before(&net, 0), [("I0".to_owned(), 15, 0, 2)]);
}

#[test]
fn more_predecessors_than_objects_are_kept_by_places_that_only_order() {
    let shape = Shape { objects_per_frame: 1, ..mpeg_shape() };
    let net = of_gop(&mpeg_gop(), &shape).expect("a net");
    assert_eq!(before(&net, 5), [("P4".to_owned(), 1, 0, 0), ("I0".to_owned(), 0, 1, 0)]);
    assert_eq!((net.objects(), before(&net, 0).len()), (12, 9));
}

#[test]
fn needs_may_reach_back_several_groups_and_to_the_frame_itself() {
    let list: [(Kind, &[u32]); 2] = [(Kind::Intra, &[]), (Kind::Predicted, &[1, 2, 5])];
    let net = of_gop(&frames(&list), &mpeg_shape()).expect("a net");
    let of = |name: &str, tokens| (name.to_owned(), 5, 0, tokens);
    assert_eq!(before(&net, 1), [of("I0", 0), of("P1", 1), of("I0", 2)]);
}

#[test]
fn groups_in_which_all_is_needed_are_closed_too() {
    // Two chains that know nothing of each other, each going on from one group to the next.
    let list: [(Kind, &[u32]); 4] =
        [(Kind::Predicted, &[2]), (Kind::Predicted, &[2]), (Kind::Predicted, &[2]), (Kind::Predicted, &[2])];
    let net = of_gop(&frames(&list), &mpeg_shape()).expect("a net");
    assert_eq!(before(&net, 0).len(), 3, "its own chain, and the ends of both");
    assert_eq!(before(&net, 2).len(), 1);
}

#[test]
fn a_frames_first_object_is_its_master_if_one_is_needed() {
    let net = of_gop(&mpeg_gop(), &Shape { rule: Rule::Master, ..mpeg_shape() }).expect("a net");
    let master = net.transitions()[4].master.expect("a master");
    assert_eq!(net.places()[master.index()].name.to_string(), "P4[0]");
}

#[test]
fn no_frames_are_no_net() {
    assert_eq!(of_gop(&[], &mpeg_shape()), Err(NetError::Empty));
}

#[test]
fn a_tag_says_what_is_to_be_known_of_a_frame() {
    let tag = Tag { kind: Kind::Predicted, needs: Needs::back(3), ..Tag::default() };
    assert_eq!(Frame::from(&tag), Frame { kind: Kind::Predicted, needs: Needs::back(3) });
}
