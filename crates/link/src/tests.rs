//! A link with its buffers full: which flow loses what.

use std::collections::BTreeMap;

use outflow_media::importance::examples;
use outflow_media::{Kind, Needs, Tag};
use outflow_ts::packet::pid_of;
use outflow_ts::{DATAGRAM_BYTES, PACKET_BYTES, TsReader};
use proptest::prelude::*;

use super::*;

mod shares;

const VIDEO: ApplicationId = ApplicationId(0);
const DATA: ApplicationId = ApplicationId(1);

fn options(policy: Policy, size: usize) -> LinkOptions {
    LinkOptions {
        rate_bps: 8_000_000,
        policy,
        unit: Unit::Packet,
        scheduling: Scheduling::Wrr,
        lower_share: Share::NONE,
        size: Size::Bytes(size),
        slack: Duration::ZERO,
    }
}

/// Frame number `frame` of the paper's group, I B B P B B P B B, in which P and B need what it says.
fn frame(frame: u32) -> Tag {
    let (kind, needs) = match frame % 9 {
        0 => (Kind::Intra, Needs::NOTHING),
        // The I of the group.
        at @ (3 | 6) => (Kind::Predicted, Needs::back(at)),
        // The I or P just before.
        at => (Kind::Bidirectional, Needs::back(at % 3)),
    };
    Tag { frame, kind, needs, first: true, last: true, key: kind == Kind::Intra, ..Tag::default() }
}

/// Offers these frames of flows, one packet of 1000 bytes each, to a buffer that has room for `room` and is
/// never served; the places of those that are dropped, at once or later.
fn dropped(policy: Policy, room: usize, frames: &[(usize, u32)]) -> Vec<(usize, DropReason)> {
    let mut link = Link::new(options(policy, room * 1000));
    let flows = [0; 3].map(|_| link.add_flow(VIDEO, 0));
    for (place, (flow, number)) in frames.iter().enumerate() {
        link.offer(Time::ZERO, flows[*flow], frame(*number), 1000, place);
    }
    let mut all: Vec<_> = link.dropped().map(|dropped| (dropped.item, dropped.reason)).collect();
    all.sort_unstable();
    all
}

#[test]
fn names_lead_back_to_their_policies() {
    for &policy in Policy::ALL {
        assert_eq!(Policy::from_name(policy.as_str()), Some(policy));
    }
    assert_eq!(Policy::from_name("fifo"), None);
}

#[test]
fn what_shares_a_buffer_is_as_the_paper_says() {
    let buffers = |policy| {
        let mut link = Link::<()>::new(options(policy, 1000));
        (0..6).for_each(|flow| {
            link.add_flow(if flow < 4 { VIDEO } else { DATA }, 0);
        });
        link.queues.len()
    };
    let of = [Policy::Shb, Policy::Pfb, Policy::PfbAd, Policy::Abd].map(buffers);
    assert_eq!(of, [1, 6, 6, 2]);
}

#[test]
fn without_active_discard_a_packet_is_lost_alone() {
    use DropReason::LinkFull;
    let frames = [(0, 0), (0, 1), (0, 2)];
    assert_eq!(dropped(Policy::Shb, 1, &frames), [(1, LinkFull), (2, LinkFull)]);
}

#[test]
fn sound_that_does_not_fit_takes_nothing_from_the_picture_in_whose_midst_it_comes() {
    for policy in [Policy::Shb, Policy::Pfb, Policy::PfbAd, Policy::Abd, Policy::Marked] {
        let mut link = Link::new(LinkOptions { unit: Unit::Frame, ..options(policy, 2000) });
        let flow = link.add_flow(VIDEO, 0);
        let (picture, sound) = (Tag { last: false, ..frame(0) }, Tag { frame: 0, ..Tag::default() });
        let rest = Tag { first: false, ..frame(0) };
        for (place, (tag, bytes)) in [(picture, 1000), (sound, 1500), (rest, 1000)].into_iter().enumerate() {
            link.offer(Time::ZERO, flow, tag, bytes, place);
        }
        let lost: Vec<_> = link.dropped().map(|dropped| dropped.item).collect();
        assert_eq!(lost, [1], "{policy:?}");
    }
}

#[test]
fn with_it_all_that_needs_it_is_lost_and_no_other_flow() {
    use DropReason::{DependsOnDropped, LinkFull};
    let mut link = Link::new(options(Policy::PfbAd, 1000));
    let flows = [link.add_flow(VIDEO, 0), link.add_flow(VIDEO, 0)];
    link.offer(Time::ZERO, flows[0], frame(0), 1000, 0);
    // The P does not fit.
    link.offer(Time::ZERO, flows[0], frame(3), 1000, 1);
    assert!(matches!(link.depart(Time::ZERO), Next::Departs(_)));
    for (place, number) in [(2, 4), (3, 5), (4, 6)] {
        link.offer(Time::ZERO, flows[0], frame(number), 1000, place);
    }
    link.offer(Time::ZERO, flows[1], frame(4), 1000, 5);
    let lost: Vec<_> = link.dropped().map(|dropped| (dropped.item, dropped.reason)).collect();
    assert_eq!(lost, [(1, LinkFull), (2, DependsOnDropped), (3, DependsOnDropped)], "the next P needs the I");
}

/// ABD, section 2.3: "if an I frame is discarded, all data from all Video flows which is received is discarded
/// until another I frame is received; equivalently, if a P frame is discarded, all packets from all Video flows
/// which are received are discarded until either an I or a P are received".
#[test]
fn abd_silences_all_flows_of_the_application() {
    use DropReason::{DependsOnDropped, LinkFull};
    let mut link = Link::new(options(Policy::Abd, 1000));
    let [one, other] = [0; 2].map(|_| link.add_flow(VIDEO, 0));
    let data = link.add_flow(DATA, 0);
    let offer = |link: &mut Link<u32>, flow, number| {
        link.offer(Time::ZERO, flow, frame(number), 1000, number);
        link.dropped().map(|dropped| dropped.reason).collect::<Vec<_>>()
    };
    assert_eq!(offer(&mut link, one, 1), []);
    assert_eq!(offer(&mut link, one, 9), [LinkFull], "an I");
    assert!(matches!(link.depart(Time::ZERO), Next::Departs(_)));
    assert_eq!(offer(&mut link, other, 3), [DependsOnDropped], "a P of another flow");
    assert_eq!(offer(&mut link, other, 4), [DependsOnDropped]);
    assert_eq!(offer(&mut link, other, 9), [], "an I of any");
    assert_eq!(offer(&mut link, one, 12), [LinkFull], "a P");
    assert!(matches!(link.depart(Time::from_millis(1)), Next::Departs(_)));
    assert_eq!(offer(&mut link, other, 10), [DependsOnDropped], "a B");
    assert_eq!(offer(&mut link, other, 12), [], "a P of any");
    assert_eq!(offer(&mut link, one, 13), [LinkFull], "a B alone");
    assert_eq!(offer(&mut link, data, 0), [], "another application");
}

#[test]
fn the_least_valuable_make_room_for_what_is_worth_more() {
    use DropReason::{LessValuable, LinkFull};
    // I B B P: the last B goes for the P, the other one for the next P, the later P for the I of another flow.
    let frames = [(0, 0), (0, 1), (0, 2), (0, 3), (0, 6), (1, 0)];
    let lost = dropped(Policy::LeastValue, 3, &frames);
    assert_eq!(lost, [(1, LessValuable), (2, LessValuable), (4, LessValuable)], "{lost:?}");
    // Nothing is worth less than what arrives.
    assert_eq!(dropped(Policy::LeastValue, 1, &[(0, 0), (1, 0)]), [(1, LinkFull)]);
}

#[test]
fn what_matters_more_makes_what_matters_less_go_whichever_comes_first() {
    for policy in [Policy::LeastValue, Policy::Elastic] {
        let gone = |first: Tag, second: Tag| {
            let mut link = Link::new(options(policy, 1000));
            for (place, tag) in [first, second].into_iter().enumerate() {
                let flow = link.add_flow(VIDEO, 0);
                link.offer(Time::ZERO, flow, Tag { first: true, last: true, ..tag }, 1000, place);
            }
            link.dropped().map(|dropped| dropped.item).collect::<Vec<_>>()
        };
        for pair in examples().windows(2) {
            let [(more, a), (less, b)] = pair else { unreachable!("windows of two") };
            assert_eq!(gone(*b, *a), [0], "{policy:?}: {less} waits, {more} comes");
            assert_eq!(gone(*a, *b), [1], "{policy:?}: {more} waits, {less} comes");
        }
    }
}

/// The datagrams of the demo clip, what they mean, and whether there is nothing but sound in them.
fn clip() -> Vec<(Tag, bool)> {
    const CLIP: &[u8] = include_bytes!("../../../assets/demo.ts");
    let mut reader = TsReader::default();
    let tags: Vec<_> = CLIP.chunks(DATAGRAM_BYTES).map(|datagram| reader.read(datagram)).collect();
    let programme = reader.programme().expect("it has one");
    let audio = programme.streams.iter().find(|stream| stream.coding.is_audio()).expect("it has sound").pid;
    let is_sound = |packet| pid_of(packet) == Some(audio);
    let datagrams = CLIP.chunks(DATAGRAM_BYTES).map(|datagram| datagram.chunks(PACKET_BYTES).all(is_sound));
    tags.into_iter().map(|tag| tag.expect("a datagram")).zip(datagrams).collect()
}

#[test]
fn of_a_transport_stream_pictures_go_before_what_is_nothing_but_sound() {
    for policy in [Policy::LeastValue, Policy::Elastic] {
        // Half of what comes goes.
        let mut link = Link::new(options(policy, 40 * DATAGRAM_BYTES));
        let flow = link.add_flow(VIDEO, 0);
        let (mut now, mut lost) = (Time::ZERO, [0; 2]);
        let datagrams = clip();
        for (tag, is_sound) in &datagrams {
            link.offer(now, flow, *tag, DATAGRAM_BYTES, *is_sound);
            now = now + link.takes(DATAGRAM_BYTES) / 2;
            while let Next::Departs(_) = link.depart(now) {}
            link.dropped().for_each(|dropped| lost[usize::from(dropped.item)] += 1);
        }
        let sound = datagrams.iter().filter(|(_, is_sound)| *is_sound).count();
        let [pictures, sound_lost] = lost;
        assert!(sound > 10 && pictures > 100, "{policy:?}: {sound} of sound, lost {lost:?}");
        assert_eq!(sound_lost, 0, "{policy:?}");
    }
}

#[test]
fn a_link_takes_as_long_as_its_rate_says_and_makes_up_for_a_little_delay() {
    let mut link = Link::new(LinkOptions { slack: Duration::from_millis(2), ..options(Policy::Shb, 9000) });
    let flow = link.add_flow(DATA, 0);
    (0..4).for_each(|item| link.offer(Time::from_millis(5), flow, Tag::default(), 1000, item));
    let mut until = |at: u64| match link.depart(Time::from_micros(at)) {
        Next::Departs(departed) => Ok(departed.until),
        Next::Later(then) => Err(then),
        Next::Nothing => panic!("something waits"),
    };
    assert_eq!(until(5_000), Ok(Time::from_millis(6)), "it was idle");
    assert_eq!(until(5_500), Err(Time::from_millis(6)));
    assert_eq!(until(6_900), Ok(Time::from_millis(7)), "asked late");
    assert_eq!(until(7_000), Ok(Time::from_millis(8)));
    assert_eq!(until(10_500), Ok(Time::from_micros(11_500)), "too late");
    assert!(matches!(link.depart(Time::from_millis(20)), Next::Nothing));
}

#[test]
fn buffers_grow_and_shrink_with_their_flows_and_go_with_the_last() {
    let mut link = Link::new(LinkOptions { size: Size::PerFlow(1000), ..options(Policy::Abd, 0) });
    let flows = [0; 2].map(|_| link.add_flow(VIDEO, 0));
    let fits = |link: &mut Link<u32>, flow| {
        link.offer(Time::ZERO, flow, Tag::default(), 1000, 0);
        link.dropped().count() == 0
    };
    assert!(fits(&mut link, flows[0]) && fits(&mut link, flows[0]) && !fits(&mut link, flows[1]));
    link.remove_flow(flows[0]);
    assert!(!fits(&mut link, flows[1]), "one flow's room is taken");
    assert!(!fits(&mut link, flows[0]), "it is gone");
    link.remove_flow(flows[1]);
    assert_eq!(link.waiting(), (2000, 2));
    while !matches!(link.depart(Time::from_millis(100)), Next::Nothing) {
        link.busy_until = Time::ZERO;
    }
    assert!(link.queues.is_empty() && link.by_key.is_empty());
}

#[test]
fn room_that_is_lent_is_given_back_when_it_is_needed() {
    let mut link = Link::new(options(Policy::Elastic, 4000));
    let (video, data) = (link.add_flow(VIDEO, 0), link.add_flow(DATA, 0));
    let mut offer = |flow, number: u32| {
        let tag = if flow == video { frame(number) } else { Tag { frame: number, ..Tag::default() } };
        link.offer(Time::ZERO, flow, tag, 1000, number);
        link.dropped().map(|dropped| (dropped.packet.flow, dropped.item)).collect::<Vec<_>>()
    };
    // I B B P B B P B: twice as much as is its own.
    assert!((0..8).all(|number| offer(video, number).is_empty()));
    // Data has a right to four; the B frames go for them, the last one first.
    let gone: Vec<_> = (0..4).flat_map(|number| offer(data, number)).collect();
    assert_eq!(gone, [7, 5, 4, 2].map(|number| (video, number)));
    assert_eq!(offer(data, 4), [(data, 4)], "no more than its own while others need theirs");
}

#[test]
fn what_has_waited_for_too_long_does_not_go_and_takes_with_it_what_needs_it() {
    let mut link = Link::new(options(Policy::LeastValue, 9000));
    link.set_useful_for(Some(Duration::from_micros(2_500)));
    let flow = link.add_flow(VIDEO, 0);
    // I, its P, and the B that needs that; then the I of the next group.
    [0, 3, 4, 9].iter().for_each(|number| link.offer(Time::ZERO, flow, frame(*number), 1000, *number));
    let mut gone = Vec::new();
    let mut now = Time::ZERO;
    loop {
        match link.depart(now) {
            Next::Departs(departed) => gone.push(departed.item),
            Next::Later(at) => now = at + Duration::from_millis(1),
            Next::Nothing => break,
        }
    }
    let lost: Vec<_> = link.dropped().map(|dropped| (dropped.item, dropped.reason)).collect();
    assert_eq!(gone, [0, 3]);
    assert_eq!(lost, [(4, DropReason::Late), (9, DropReason::Late)]);
}

/// A frame as encoders send it: a delimiter in a packet of its own, then the slice.
fn with_delimiter(number: u32) -> [Tag; 2] {
    let slice = frame(number);
    let nothing = Needs::NOTHING;
    let delimiter = Tag { kind: Kind::Header, needs: nothing, key: false, last: false, ..slice };
    [delimiter, Tag { first: false, ..slice }]
}

#[test]
fn what_comes_before_a_slice_is_worth_what_the_slice_is() {
    for &policy in Policy::ALL {
        let mut link = Link::new(options(policy, 6000));
        let flow = link.add_flow(VIDEO, 0);
        // I B B P: the room is full behind the second B. Then a P that needs what was dropped, if anything was.
        for number in [0, 1, 2, 3, 6, 9] {
            let tags = with_delimiter(number);
            assert!(!link.shows(flow, &tags[0]));
            link.offer(Time::ZERO, flow, tags[0], 1000, (number, 0));
            assert!(link.shows(flow, &tags[1]), "{policy:?}");
            link.offer(Time::ZERO, flow, tags[1], 1000, (number, 1));
        }
        let mut lost: Vec<_> = link.dropped().map(|dropped| dropped.item).collect();
        lost.sort_unstable();
        let frames =
            |all: &[u32]| -> Vec<_> { all.iter().flat_map(|frame| [(*frame, 0), (*frame, 1)]).collect() };
        let expected: &[u32] = match policy {
            // Both B go for the first P and the second, and that for the I.
            Policy::LeastValue | Policy::Elastic => &[1, 2, 6],
            _ => &[3, 6, 9],
        };
        assert_eq!(lost, frames(expected), "{policy:?}");
        let mut gone = Vec::new();
        while let Next::Departs(departed) = link.depart(link.busy_until) {
            gone.push(departed.item);
        }
        assert!(gone.is_sorted() && gone.len() == 6, "{policy:?}: in their order: {gone:?}");
    }
}

#[test]
fn abd_stays_silent_until_a_slice_ends_it() {
    let mut link = Link::new(options(Policy::Abd, 2000));
    let flow = link.add_flow(VIDEO, 0);
    let offer = |link: &mut Link<u32>, number| {
        with_delimiter(number).iter().for_each(|tag| link.offer(Time::ZERO, flow, *tag, 1000, number));
        link.dropped().count()
    };
    assert_eq!((offer(&mut link, 1), offer(&mut link, 9)), (0, 2), "an I does not fit");
    while let Next::Departs(_) = link.depart(link.busy_until) {}
    assert_eq!((offer(&mut link, 12), offer(&mut link, 13)), (2, 2), "there is room, but no I");
    assert_eq!(offer(&mut link, 18), 0);
}

#[test]
fn what_shows_nothing_waits_for_no_longer_than_until_the_next_frame() {
    let mut link = Link::new(options(Policy::LeastValue, 9000));
    let flow = link.add_flow(VIDEO, 0);
    let lone = with_delimiter(0)[0];
    link.offer(Time::ZERO, flow, lone, 1000, 0);
    assert_eq!(link.waiting(), (1000, 1));
    assert!(matches!(link.depart(Time::ZERO), Next::Nothing));
    link.offer(Time::ZERO, flow, with_delimiter(1)[0], 1000, 1);
    assert!(matches!(link.depart(Time::ZERO), Next::Departs(Departed { item: 0, .. })));
    // One that ends its frame shows no more than that, and that nothing comes behind it.
    link.offer(Time::ZERO, flow, Tag { first: false, last: true, ..with_delimiter(1)[0] }, 1000, 2);
    assert_eq!((link.buffered(), link.waiting().0), (2000, 2000));
    link.offer(Time::ZERO, flow, with_delimiter(2)[0], 1000, 3);
    link.release_all(Time::ZERO);
    assert_eq!((link.buffered(), link.waiting().0), (3000, 3000));
    link.offer(Time::ZERO, flow, with_delimiter(3)[0], 1000, 4);
    link.cut_flow(flow, DropReason::ReceiverLeft);
    assert_eq!((link.waiting(), link.dropped().count()), ((0, 0), 4));
}

#[derive(Debug, Clone)]
enum Step {
    Offer(usize, usize, bool, bool),
    Wait(u64),
    Come,
    Go(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        12 => (0..4_usize, 1..2000_usize, any::<bool>(), any::<bool>())
            .prop_map(|(f, b, next, shows)| Step::Offer(f, b, next, shows)),
        4 => (0..4_u64).prop_map(Step::Wait),
        1 => Just(Step::Come),
        1 => (0..4_usize).prop_map(Step::Go),
    ];
    prop::collection::vec(step, 1..200)
}

proptest! {
    #[test]
    fn every_byte_is_through_or_waits_or_has_a_reason_and_no_buffer_is_above_its_limit(
        steps in steps(),
        policy in prop::sample::select(Policy::ALL),
        scheduling in prop::sample::select(Scheduling::ALL),
        by_frame in any::<bool>(),
        size in 0..6000_usize,
    ) {
        let unit = if by_frame { Unit::Frame } else { Unit::Packet };
        let lower_share = Share::percent(5);
        let mut link = Link::new(LinkOptions { unit, scheduling, lower_share, ..options(policy, size) });
        let mut flows = vec![(link.add_flow(VIDEO, 0), 0), (link.add_flow(DATA, 1), 0)];
        let (mut now, mut next) = (Time::ZERO, 0_u32);
        let mut missing: BTreeMap<u32, usize> = BTreeMap::new();
        for step in steps {
            match step {
                Step::Offer(flow, bytes, goes_on, shows) => {
                    let place = flow % flows.len();
                    let (flow, number) = &mut flows[place];
                    *number += u32::from(!goes_on);
                    let tag = if shows { frame(*number) } else { with_delimiter(*number)[0] };
                    let tag = Tag { first: !goes_on, ..tag };
                    link.offer(now, *flow, tag, bytes, next);
                    missing.insert(next, bytes);
                    next += 1;
                }
                Step::Wait(ms) => now = now + Duration::from_millis(ms),
                Step::Come => flows.push((link.add_flow(VIDEO, 0), 0)),
                Step::Go(flow) if flows.len() > 1 => link.remove_flow(flows.remove(flow % flows.len()).0),
                Step::Go(_) => {}
            }
            while let Next::Departs(departed) = link.depart(now) {
                prop_assert_eq!(missing.remove(&departed.item), Some(departed.packet.bytes));
            }
            for dropped in link.dropped() {
                prop_assert_eq!(missing.remove(&dropped.item), Some(dropped.packet.bytes));
            }
            prop_assert_eq!(link.waiting(), (missing.values().sum(), missing.len()));
            // There are two applications. One that has gone may have lent its room.
            let room = if policy.lends() { 2 * size } else { size };
            prop_assert!(link.queues.iter().all(|(_, queue)| queue.buffer.bytes() <= room));
            prop_assert!(!policy.lends() || link.buffered() <= 2 * size);
        }
    }
}
