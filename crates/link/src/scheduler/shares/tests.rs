use proptest::prelude::*;

use super::*;

/// A buffer: its part, the size of its packets, and how many wait.
#[derive(Debug, Clone, Copy)]
struct Waits {
    part: Part,
    bytes: usize,
    packets: usize,
}

const FOREVER: usize = usize::MAX / 2;

fn waits((medium, medium_weight): (Medium, u64), (stream, weight): (usize, u64), bytes: usize) -> Waits {
    let party = Party::Stream(stream);
    let part = Part { medium, medium_weight, party, party_weight: weight, buffer_weight: 1 };
    Waits { part, bytes, packets: FOREVER }
}

/// Buffers, their scheduler, and the bytes that each has sent.
#[derive(Debug)]
struct Bench {
    buffers: Vec<Waits>,
    shares: Shares,
    sent: Vec<usize>,
}

impl Bench {
    fn new(buffers: &[Waits]) -> Self {
        let mut shares = Shares::default();
        (0..buffers.len()).for_each(|buffer| shares.wakes(buffer));
        Bench { buffers: buffers.to_vec(), shares, sent: vec![0; buffers.len()] }
    }

    fn next(&mut self) -> Option<usize> {
        let look = |at: usize| {
            let Waits { part, bytes, .. } = *self.buffers.get(at).filter(|buffer| buffer.packets > 0)?;
            Some(Candidate { bytes, weight: 1, mean_weight: 1, class: 0, part })
        };
        let next = self.shares.next(&look)?;
        self.buffers[next].packets -= 1;
        Some(next)
    }

    fn send(&mut self, packets: usize) {
        for _ in 0..packets {
            let next = self.next().expect("something waits");
            self.sent[next] += self.buffers[next].bytes;
        }
    }

    /// More packets come for a buffer.
    fn come(&mut self, buffer: usize, packets: usize) {
        self.buffers[buffer].packets += packets;
        self.shares.wakes(buffer);
    }

    /// What each has sent since this was asked last, in parts of all of it.
    fn parts(&mut self) -> Vec<f64> {
        let sent = core::mem::replace(&mut self.sent, vec![0; self.buffers.len()]);
        let all: usize = sent.iter().sum();
        sent.iter().map(|bytes| *bytes as f64 / all as f64).collect()
    }
}

/// Whether parts are as they are to be, within 1 %.
#[track_caller]
fn assert_parts(parts: &[f64], wanted: &[f64]) {
    let is_near = |(part, wanted): (&f64, &f64)| (part - wanted).abs() <= 0.01 * wanted;
    assert!(parts.len() == wanted.len() && parts.iter().zip(wanted).all(is_near), "{parts:?} not {wanted:?}");
}

#[test]
fn bytes_are_shared_by_weight_whatever_the_sizes_of_packets() {
    let mut bench = Bench::new(&[
        waits((Medium::Video, 5), (0, 1), 1500),
        waits((Medium::Audio, 2), (0, 1), 120),
        waits((Medium::Data, 3), (0, 1), 576),
    ]);
    bench.send(50_000);
    assert_parts(&bench.parts(), &[0.5, 0.2, 0.3]);
}

#[test]
fn an_application_with_more_streams_does_not_get_more_and_divides_its_part_by_their_weights() {
    let mut bench = Bench::new(&[
        waits((Medium::Video, 1), (0, 1), 1500),
        waits((Medium::Video, 1), (1, 2), 700),
        waits((Medium::Video, 1), (2, 5), 1100),
        waits((Medium::Data, 1), (3, 1000), 300),
    ]);
    bench.send(100_000);
    assert_parts(&bench.parts(), &[0.0625, 0.125, 0.3125, 0.5]);
}

#[test]
fn a_stream_with_more_receivers_does_not_get_more() {
    let video = (Medium::Video, 1);
    let mut bench = Bench::new(&[
        waits(video, (0, 1), 1200),
        waits(video, (0, 1), 400),
        waits(video, (0, 1), 1200),
        waits(video, (1, 1), 1200),
    ]);
    bench.send(60_000);
    assert_parts(&bench.parts(), &[1.0 / 6.0, 1.0 / 6.0, 1.0 / 6.0, 0.5]);
}

#[test]
fn what_one_does_not_use_the_others_get_by_their_weights() {
    let mut bench = Bench::new(&[
        waits((Medium::Video, 8), (0, 1), 1000),
        waits((Medium::Audio, 1), (1, 3), 200),
        waits((Medium::Audio, 1), (2, 1), 500),
        waits((Medium::Data, 1), (3, 1), 900),
    ]);
    bench.buffers[0].packets = 100;
    bench.buffers[2].packets = 0;
    bench.send(100_000);
    assert_eq!(bench.sent[0], 100_000, "all that it had");
    bench.parts();
    bench.send(50_000);
    assert_parts(&bench.parts(), &[0.0, 0.5, 0.0, 0.5]);
    bench.buffers[3].packets = 0;
    bench.send(1000);
    assert_parts(&bench.parts()[1..2], &[1.0]);
    bench.buffers[1].packets = 0;
    assert_eq!(bench.next(), None);
    bench.come(2, 1);
    assert_eq!((bench.next(), bench.next()), (Some(2), None));
}

#[test]
fn one_that_wakes_late_does_not_get_what_it_missed() {
    let mut bench = Bench::new(&[
        waits((Medium::Video, 1), (0, 1), 1000),
        waits((Medium::Video, 1), (1, 1), 1000),
        waits((Medium::Data, 1), (2, 1), 1000),
    ]);
    (bench.buffers[1].packets, bench.buffers[2].packets) = (0, 0);
    bench.send(10_000);
    bench.come(1, FOREVER);
    bench.send(10_000);
    bench.come(2, FOREVER);
    bench.parts();
    bench.send(8);
    assert_eq!(bench.parts(), [0.25, 0.25, 0.5], "at once as later");
    bench.send(40_000);
    assert_parts(&bench.parts(), &[0.25, 0.25, 0.5]);
}

#[test]
fn one_that_has_little_at_a_time_owes_what_it_has_had() {
    let mut bench = Bench::new(&[
        waits((Medium::Video, 1), (0, 1), 1500),
        waits((Medium::Data, 1), (1, 1), 1500),
        waits((Medium::Data, 1), (2, 1), 1500),
    ]);
    bench.buffers[1].packets = 1;
    for _ in 0..30_000 {
        let next = bench.next().expect("something waits");
        bench.sent[next] += 1500;
        // It has nothing left, and wakes again at once.
        if next == 1 {
            bench.come(1, 1);
        }
    }
    assert_parts(&bench.parts(), &[0.5, 0.25, 0.25]);
}

#[test]
fn other_weights_hold_from_the_next_packet_on() {
    let mut bench = Bench::new(&[
        waits((Medium::Video, 1), (0, 1), 900),
        waits((Medium::Video, 1), (1, 1), 1400),
        waits((Medium::Data, 1), (2, 1), 600),
    ]);
    bench.send(20_000);
    assert_parts(&bench.parts(), &[0.25, 0.25, 0.5]);
    bench.buffers[0].part.party_weight = 3;
    bench.buffers.iter_mut().take(2).for_each(|buffer| buffer.part.medium_weight = 4);
    bench.send(20_000);
    assert_parts(&bench.parts(), &[0.6, 0.2, 0.2]);
}

#[test]
fn a_buffer_that_changes_its_stream_has_its_turns_there() {
    let mut bench = Bench::new(&[
        waits((Medium::Video, 1), (0, 1), 1000),
        waits((Medium::Video, 1), (1, 1), 1000),
        waits((Medium::Video, 1), (2, 2), 1000),
    ]);
    bench.send(4000);
    bench.parts();
    bench.buffers[1].part.party = Party::Stream(0);
    bench.send(30_000);
    assert_parts(&bench.parts(), &[1.0 / 6.0, 1.0 / 6.0, 2.0 / 3.0]);
}

#[test]
fn a_packet_that_was_too_late_is_not_charged() {
    let mut bench =
        Bench::new(&[waits((Medium::Video, 1), (0, 1), 1000), waits((Medium::Data, 1), (1, 1), 1000)]);
    for number in 0..60_000_usize {
        match bench.next().expect("something waits") {
            // Of the first, two of three packets are too late.
            0 if number % 3 != 0 => bench.shares.spared(),
            next => bench.sent[next] += 1000,
        }
    }
    assert_parts(&bench.parts(), &[0.5, 0.5]);
}

/// What a run does: packets come for a buffer, or some are sent.
#[derive(Debug, Clone, Copy)]
enum Step {
    Come(usize, usize),
    Send(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        (0..6_usize, 1..40_usize).prop_map(|(buffer, packets)| Step::Come(buffer, packets)),
        (1..60_usize).prop_map(Step::Send),
    ];
    prop::collection::vec(step, 1..60)
}

/// Children of one parent that have something to send: since when, what each has sent.
#[derive(Debug, Default)]
struct Together {
    sent: [usize; 2],
}

impl Together {
    /// The theorem of start-time fair queueing: while both have something to send, what they send, over their
    /// weights, differs by a packet of each at most.
    fn check(&self, weights: [u64; 2], bytes_max: [usize; 2]) -> Result<(), TestCaseError> {
        let over = |at: usize| self.sent[at] as f64 / weights[at] as f64;
        let packet = |at: usize| bytes_max[at] as f64 / weights[at] as f64;
        prop_assert!((over(0) - over(1)).abs() <= packet(0) + packet(1) + 1e-6, "{self:?} {weights:?}");
        Ok(())
    }
}

proptest! {
    /// Four streams of one medium, two of another; the theorem holds among streams and among media.
    #[test]
    fn those_that_have_something_to_send_never_differ_by_more_than_a_packet_of_each(
        steps in steps(),
        sizes in prop::array::uniform6(40..1500_usize),
        weights in prop::array::uniform6(1..=1000_u64),
        media in prop::array::uniform2(1..=1000_u64),
    ) {
        let medium = |at: usize| if at < 4 { (Medium::Video, media[0]) } else { (Medium::Data, media[1]) };
        let buffers = [0, 1, 2, 3, 4, 5].map(|at| waits(medium(at), (at, weights[at]), sizes[at]));
        let mut bench = Bench::new(&buffers.map(|buffer| Waits { packets: 0, ..buffer }));
        let (mut streams, mut of_media) = (Together::default(), Together::default());
        for step in steps {
            match step {
                Step::Come(buffer, packets) => bench.come(buffer, packets),
                Step::Send(packets) => for _ in 0..packets {
                    let waiting = bench.buffers.iter().map(|buffer| buffer.packets).sum::<usize>();
                    let Some(next) = bench.next() else {
                        prop_assert_eq!(waiting, 0, "work-conserving");
                        break;
                    };
                    if next < 2 {
                        streams.sent[next] += sizes[next];
                    }
                    of_media.sent[usize::from(next >= 4)] += sizes[next];
                    streams.check([weights[0], weights[1]], [sizes[0], sizes[1]])?;
                    let largest = |of: &[usize]| of.iter().copied().max().unwrap_or(0);
                    of_media.check(media, [largest(&sizes[..4]), largest(&sizes[4..])])?;
                    let is_empty = |of: &[Waits]| of.iter().all(|buffer| buffer.packets == 0);
                    if is_empty(&bench.buffers[..1]) || is_empty(&bench.buffers[1..2]) {
                        streams = Together::default();
                    }
                    if is_empty(&bench.buffers[..4]) || is_empty(&bench.buffers[4..]) {
                        of_media = Together::default();
                    }
                }
            }
        }
    }
}
