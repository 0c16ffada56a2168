use super::*;

const OF: Protection = Protection { payload_type: 49, ssrc: 4000, media: 2000 };

/// What goes, and how.
const PICTURE: (bool, bool) = (false, false);
const ENDS: (bool, bool) = (false, true);
const KEY: (bool, bool) = (true, false);

struct Scene {
    now: Time,
    fec: Fec,
    sequence: u16,
}

impl Scene {
    /// A viewer that far away, which has told of a thousand packets of which this many are lost.
    fn new(round_trip_ms: u64, permille: u32) -> Self {
        let now = Time::from_millis(50_000);
        let mut scene = Scene { now, fec: Fec::new(OF, 0, Arc::default()), sequence: 65_500 };
        scene.hear(round_trip_ms, permille);
        scene
    }

    fn hear(&mut self, round_trip_ms: u64, permille: u32) {
        for number in 0..1_000 {
            let is_lost = number % 1_000 < permille;
            self.outcome(round_trip_ms, is_lost, false);
        }
    }

    fn outcome(&mut self, round_trip_ms: u64, is_lost: bool, was_lost: bool) {
        self.now = self.now + Duration::from_millis(5);
        let sent = Time::from_nanos(self.now.as_nanos() - round_trip_ms * 1_000_000);
        let received_us = (!is_lost).then_some(7);
        self.fec.hear(self.now, &Outcome { number: 1, bytes: 1000, sent, received_us, was_lost });
    }

    /// A packet of 1,000 bytes goes. Answers the bytes of the repair packet that goes with it, if one does.
    fn goes(&mut self, of: (bool, bool)) -> Option<usize> {
        self.sequence = self.sequence.wrapping_add(1);
        let header = PlainHeader {
            marker: of.1,
            payload_type: 100,
            sequence: self.sequence,
            timestamp: 9,
            ssrc: OF.media,
        };
        let packet = [&header.emit()[..], &[7; 988]].concat();
        let bytes = self.fec.cover(self.now, (&packet, Some(3)), of)?;
        self.fec.settle(true);
        assert!(self.fec.is_due());
        let mut out = Vec::new();
        self.fec.write((3, 5), &mut out);
        assert_eq!(out.len(), bytes);
        Some(bytes)
    }

    /// How many repair packets go with this number of packets.
    fn repairs(&mut self, packets: usize, of: (bool, bool)) -> usize {
        (0..packets).filter_map(|_| self.goes(of)).count()
    }
}

#[test]
fn it_begins_where_something_is_lost_and_there_is_no_time_for_it_to_be_sent_once_more() {
    for (round_trip_ms, permille, expected) in [
        (180, 5, true),
        (400, 50, true),
        (170, 50, false),
        (20, 300, false),
        (400, 4, false),
        (400, 0, false),
    ] {
        let mut scene = Scene::new(round_trip_ms, permille);
        assert_eq!(scene.fec.judge(true), expected, "{round_trip_ms} ms, {permille} of a thousand");
        assert!(!scene.fec.judge(false), "the way carries less than the stream has");
    }
    let mut scene =
        Scene { now: Time::from_millis(1_000), fec: Fec::new(OF, 0, Arc::default()), sequence: 0 };
    (1..FEC_TOLD_LEAST).for_each(|number| scene.outcome(400, number % 2 == 0, false));
    assert!(!scene.fec.judge(true), "too little is known");
    scene.outcome(400, true, false);
    assert!(scene.fec.judge(true));
}

#[test]
fn what_has_begun_goes_on_where_it_is_a_little_less_and_ends_where_it_is_much_less() {
    let mut scene = Scene::new(400, 50);
    assert!(scene.fec.judge(true));
    (0..4).for_each(|_| scene.hear(150, 50));
    assert!(scene.fec.judge(true));
    (0..4).for_each(|_| scene.hear(140, 50));
    assert!(!scene.fec.judge(true), "it is near");
    (0..4).for_each(|_| scene.hear(150, 50));
    assert!(!scene.fec.judge(true), "it does not begin again");
}

#[test]
fn packets_that_were_late_are_not_lost() {
    let mut scene = Scene::new(400, 0);
    (0..100).for_each(|_| scene.outcome(400, true, false));
    assert!(scene.fec.judge(true));
    (0..100).for_each(|_| scene.outcome(900, false, true));
    assert!(!scene.fec.judge(true));
}

#[test]
fn there_are_as_many_as_what_is_lost_takes() {
    for (permille, per_thousand) in [(10, 40), (50, 120), (100, 220), (200, 334), (600, 334)] {
        let mut scene = Scene::new(400, permille);
        assert!(scene.fec.judge(true));
        let sent = scene.repairs(2_000, PICTURE) / 2;
        // They are a little longer than what they repair.
        let expected = per_thousand * 90 / 100..=per_thousand;
        assert!(expected.contains(&sent), "{permille}: {sent}, not {expected:?}");
    }
}

#[test]
fn a_group_ends_with_a_picture_where_it_has_its_share() {
    let mut scene = Scene::new(400, 50);
    assert!(scene.fec.judge(true));
    // Three packets each.
    let ends = |scene: &mut Scene| [PICTURE, PICTURE, ENDS].map(|of| scene.goes(of).is_some());
    let all: Vec<_> = (0..60).map(|_| ends(&mut scene)).collect();
    assert!(all.iter().all(|[one, two, _]| !one && !two), "{all:?}");
    let repairs = all.iter().filter(|[.., end]| *end).count();
    assert!((18..=22).contains(&repairs), "{repairs} of 180");
}

#[test]
fn a_key_frame_has_twice_as_many_which_the_pictures_behind_it_pay_back() {
    let mut scene = Scene::new(400, 50);
    assert!(scene.fec.judge(true));
    scene.repairs(100, PICTURE);
    let key = scene.repairs(30, KEY);
    assert!((5..=7).contains(&key), "{key} of 30");
    let behind = scene.repairs(30, PICTURE);
    assert!(behind <= 2, "{behind}");
    let all = key + behind + scene.repairs(240, PICTURE);
    assert!((32..=37).contains(&all), "{all} of 300");
}

#[test]
fn what_would_come_sooner_by_itself_is_not_waited_for() {
    let mut scene = Scene::new(400, 10);
    assert!(scene.fec.judge(true));
    scene.repairs(200, PICTURE);
    scene.now = scene.now + Duration::from_secs(1);
    // A group of 25 is not full within the round trip.
    let mut covered = 0;
    for _ in 0..200 {
        scene.now = scene.now + Duration::from_millis(40);
        scene.goes(ENDS);
        covered = covered.max(scene.fec.group.packets());
    }
    assert!(covered <= 11, "{covered}");
}

#[test]
fn what_finds_no_room_is_given_up() {
    let mut scene = Scene::new(400, 300);
    assert!(scene.fec.judge(true));
    let header = PlainHeader { marker: true, payload_type: 100, sequence: 1, timestamp: 9, ssrc: OF.media };
    let packet = header.emit();
    let mut wanted = 0;
    for sequence in 0..100 {
        let mut packet = [&packet[..], &[7; 988]].concat();
        outflow_rtp::set_sequence(&mut packet, sequence);
        if scene.fec.cover(scene.now, (&packet, None), ENDS).is_some() {
            wanted += 1;
            scene.fec.settle(false);
        }
        assert!(!scene.fec.is_due());
    }
    assert!(wanted > 10, "{wanted}: there might be room later");
    assert_eq!((scene.fec.next, scene.fec.sent.sent()), (256, 0));
}
