use outflow_media::{Kind, Tag};
use proptest::prelude::*;

use super::*;
use crate::buffer::{Buffer, Sifted};

const SILENT: Verdict = Verdict::Discard(DropReason::DependsOnDropped);
const FULL: Verdict = Verdict::Discard(DropReason::LinkFull);

/// A packet of a flow, and whether there is room for it.
#[derive(Debug, Clone, Copy)]
struct Step {
    flow: usize,
    tag: Tag,
    fits: bool,
}

fn arrives(rule: &mut Application, step: Step) -> Verdict {
    let (mut buffer, mut dropped) = (Buffer::<()>::default(), Vec::new());
    let mut held = Sifted { buffer: &mut buffer, dropped: &mut dropped };
    let Step { flow, tag, fits } = step;
    let mut packet = Waiting { flow: FlowId(flow), tag, bytes: 1000, arrived: Time::ZERO, before: None };
    rule.arrives(Time::ZERO, &mut packet, if fits { 1000 } else { 0 }, &mut held)
}

/// The first packet of a frame.
fn first(kind: Kind, frame: u32, fits: bool) -> Step {
    let tag = Tag { kind, frame, first: true, key: kind == Kind::Intra, ..Tag::default() };
    Step { flow: 0, tag, fits }
}

/// What stands between the packets of a picture: sound, say.
fn between(frame: u32, fits: bool) -> Step {
    Step { flow: 0, tag: Tag { frame, ..Tag::default() }, fits }
}

#[test]
fn data_that_does_not_fit_ends_no_silence() {
    for (lost, ends) in [(Kind::Intra, Kind::Intra), (Kind::Predicted, Kind::Predicted)] {
        let mut rule = Application::new(Unit::Packet);
        assert_eq!(arrives(&mut rule, first(lost, 1, false)), FULL);
        assert_eq!(arrives(&mut rule, between(1, true)), Verdict::Wait, "it stands alone");
        assert_eq!(arrives(&mut rule, between(1, false)), FULL);
        assert_eq!(arrives(&mut rule, first(Kind::Bidirectional, 2, true)), SILENT, "behind {lost:?}");
        assert_eq!(arrives(&mut rule, first(ends, 3, true)), Verdict::Wait);
    }
}

#[test]
fn data_that_does_not_fit_leaves_the_silence_as_deep_as_it_was() {
    let mut rule = Application::new(Unit::Packet);
    assert_eq!(arrives(&mut rule, first(Kind::Intra, 1, false)), FULL);
    assert_eq!(arrives(&mut rule, between(1, false)), FULL);
    assert_eq!(arrives(&mut rule, first(Kind::Predicted, 2, true)), SILENT, "it waits for an I");
}

#[test]
fn data_that_does_not_fit_tears_no_picture_and_goes_on_through_a_torn_one() {
    let mut rule = Application::new(Unit::Frame);
    assert_eq!(arrives(&mut rule, first(Kind::Predicted, 1, true)), Verdict::Wait);
    assert_eq!(arrives(&mut rule, between(1, false)), FULL);
    let mut rest = first(Kind::Predicted, 1, true);
    rest.tag.first = false;
    assert_eq!(arrives(&mut rule, rest), Verdict::Wait, "nothing of the picture is missing");
    assert_eq!(arrives(&mut rule, Step { fits: false, ..rest }), FULL);
    assert_eq!(arrives(&mut rule, rest), SILENT);
    assert_eq!(arrives(&mut rule, between(1, true)), Verdict::Wait, "it is no part of the picture");
}

/// The kinds of frames with which a silence ends, by the paper, that begins with a lost one of this kind, if one
/// does.
fn ended_by(lost: Kind) -> Option<&'static [Kind]> {
    match lost {
        Kind::Header | Kind::Intra => Some(&[Kind::Header, Kind::Intra]),
        Kind::Predicted => Some(&[Kind::Header, Kind::Intra, Kind::Predicted]),
        Kind::Bidirectional | Kind::Enhancement | Kind::Data => None,
    }
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = (0..2_usize, prop::sample::select(Kind::ALL.as_slice()), any::<bool>(), any::<bool>());
    let step = step.prop_map(|(flow, kind, first, fits)| {
        let tag = Tag { kind, first, key: kind == Kind::Intra, ..Tag::default() };
        Step { flow, tag, fits }
    });
    prop::collection::vec(step, 1..60)
}

proptest! {
    /// No discard ends a silence, or makes one shorter: behind a picture that did not fit nothing but data passes
    /// until a frame begins that the paper says ends it.
    #[test]
    fn behind_what_did_not_fit_all_are_silent_until_what_ends_it(steps in steps()) {
        let mut rule = Application::new(Unit::Packet);
        // Of what did not fit: what ends the silence behind it.
        let mut open: Vec<&[Kind]> = Vec::new();
        for step in steps {
            let Tag { kind, first, .. } = step.tag;
            let verdict = arrives(&mut rule, step);
            if first {
                open.retain(|ended_by| !ended_by.contains(&kind));
            }
            let is_silent = !open.is_empty() && kind != Kind::Data;
            prop_assert_eq!(verdict == SILENT, is_silent);
            if verdict == FULL {
                open.extend(ended_by(kind));
            }
        }
    }
}
