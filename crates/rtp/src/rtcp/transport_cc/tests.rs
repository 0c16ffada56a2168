use proptest::prelude::*;

use super::*;

/// What is told: first number, count, reference time, number of the message, packets.
type Told = (u16, u16, u32, u8, Vec<(u16, Option<i64>)>);

fn told(bytes: &[u8]) -> Result<Vec<Told>, Malformed> {
    let mut all = Vec::new();
    read(bytes, |f| all.push((f.first(), f.count(), f.reference(), f.number(), f.statuses().collect())))?;
    Ok(all)
}

/// A message alone: its part about transport, behind a header for as many words.
fn message(part: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0x8f, 205, 0, 0, 0, 0, 0, 7, 0, 0, 0, 42];
    bytes.extend_from_slice(part);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes[3] = (bytes.len() / 4 - 1) as u8;
    bytes
}

/// A part about `count` packets from 0xffff on, reference time 1, number 2, with these chunks and arrivals.
fn about(count: u16, chunks: &[u16], arrivals: &[u8]) -> Vec<u8> {
    let mut part = vec![0xff, 0xff, 0, 0, 0, 0, 1, 2];
    part[2..4].copy_from_slice(&count.to_be_bytes());
    part.extend(chunks.iter().flat_map(|chunk| chunk.to_be_bytes()));
    part.extend_from_slice(arrivals);
    message(&part)
}

fn refused(bytes: &[u8]) -> &'static str {
    told(bytes).expect_err("malformed").reason
}

/// The messages that are written of these packets.
fn written_of(first: u16, arrivals: &[Option<Time>]) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    Writer::new(7, 42).write(first, arrivals, "x", |bytes| all.push(bytes));
    all
}

/// Bytes of what is about transport in a compound packet, with its header.
fn length(compound: &[u8]) -> usize {
    let at = compound.windows(2).position(|pair| pair == [0x8f, 205]).expect("feedback");
    compound.len() - at
}

#[test]
fn messages_of_browsers_are_read() {
    // Those that pion's tests have: one packet, and padding; two arrivals of two bytes, and four of one.
    let one = [
        0xaf, 0xcd, 0x00, 0x05, 0xfa, 0x17, 0xfa, 0x17, 0x43, 0x03, 0x2f, 0xa0, 0x00, 0x99, 0x00, 0x01, 0x3d,
        0xe8, 0x02, 0x17, 0x20, 0x01, 0x94, 0x01,
    ];
    assert_eq!(told(&one).expect("RTCP"), [(153, 1, 4_057_090, 23, vec![(153, Some(37_000))])]);
    let six = [
        0x8f, 0xcd, 0x00, 0x07, 0xfa, 0x17, 0xfa, 0x17, 0x19, 0x3d, 0xd8, 0xbb, 0x01, 0x74, 0x00, 0x06, 0x45,
        0xb1, 0x5a, 0x40, 0x40, 0x02, 0x20, 0x04, 0x1f, 0xfe, 0x1f, 0x9a, 0xd0, 0x00, 0xd0, 0x00,
    ];
    let times = [2_047_500, 4_070_000, 4_122_000, 4_122_000, 4_174_000, 4_174_000];
    let packets = (372..).zip(times.map(Some)).collect();
    assert_eq!(told(&six).expect("RTCP"), [(372, 6, 4_567_386, 64, packets)]);
    read(&six, |f| assert_eq!((f.from(), f.media()), (0xfa17_fa17, 0x193d_d8bb))).expect("RTCP");
}

#[test]
fn statuses_are_read_as_the_draft_has_them() {
    // Section 3.1.4, the first example: one lost, five that arrived, three lost, three, two lost; numbers wrap.
    let bytes = about(14, &[0x9f1c], &[1, 1, 1, 1, 1, 1, 1, 1]);
    let (_, _, _, _, packets) = told(&bytes).expect("RTCP").remove(0);
    let arrived: Vec<u16> =
        packets.iter().filter(|(_, at)| at.is_some()).map(|(number, _)| *number).collect();
    assert_eq!((packets.len(), packets[0]), (14, (0xffff, None)));
    assert_eq!(arrived, [0, 1, 2, 3, 4, 8, 9, 10]);
    assert_eq!(packets[10], (9, Some(7 * 250)));
    // Section 3.1.3, the first example: 221 are lost. Then two bits each, of which some are too many: arrivals that
    // lie a second before, and at the longest time of one byte.
    let bytes = about(224, &[0x00dd, 0xe400], &[0xf0, 0x60, 0xff]);
    let (_, _, _, _, packets) = told(&bytes).expect("RTCP").remove(0);
    assert_eq!(packets[220..], [(219, None), (220, Some(-1_000_000)), (221, Some(-936_250)), (222, None)]);
}

#[test]
fn what_is_not_there_is_not_told() {
    assert_eq!(refused(&message(&[0, 1, 0, 1])), "shorter than feedback about a transport");
    assert_eq!(refused(&about(1, &[], &[])), "packets that no chunk is about");
    assert_eq!(refused(&about(65_535, &[0x1fff; 8], &[])), "packets that no chunk is about");
    assert_eq!(refused(&about(7, &[0x2007], &[1, 1, 1, 1, 1, 1])), "arrivals that are not there");
    assert_eq!(refused(&about(4, &[0x4004], &[1, 1, 1, 1, 1, 1])), "arrivals that are not there");
    assert_eq!(refused(&about(1, &[0x6001], &[1, 1])), "a status that means nothing");
    assert_eq!(refused(&about(7, &[0xc003], &[])), "a status that means nothing");
    // What fills it up is no arrival, and there is no more of it than there is.
    let mut filled = about(1, &[0x2001], &[1, 1]);
    filled[0] |= 0x20;
    assert_eq!(told(&filled).expect("RTCP")[0].4, [(0xffff, Some(250))]);
    (filled[22], filled[23]) = (2, 2);
    assert_eq!(refused(&filled), "arrivals that are not there");
    filled[23] = 13;
    assert_eq!(refused(&filled), "padding of no bytes, or before the last packet");
    // A status behind the last packet counts for nothing, nor does a run of none.
    assert_eq!(told(&about(6, &[0x6000, 0xc003], &[])).expect("RTCP")[0].4.len(), 6);
    assert_eq!(told(&about(0, &[], &[])).expect("RTCP")[0].4, []);
}

#[test]
fn messages_about_other_things_are_passed_over() {
    let lost = super::super::lost(7, 42, &[1, 2, 3], "x");
    assert_eq!(told(&lost).expect("RTCP"), []);
    let both = [lost, about(1, &[0x2001], &[4])].concat();
    assert_eq!(told(&both).expect("RTCP"), [(0xffff, 1, 1, 2, vec![(0xffff, Some(1000))])]);
}

#[test]
fn of_more_lost_packets_than_are_told_the_newest_are() {
    let runs = [0x1fff, 0x1fff, 0x1fff, 0x1fff, 0x1fff, 0x1fff, 0x1fff, 0x1fff, 0x2001];
    let bytes = about(8 * 0x1fff + 1, &runs, &[4]);
    let (_, _, _, _, packets) = told(&bytes).expect("RTCP").remove(0);
    assert_eq!(packets.len(), usize::from(TRANSPORT_STATUSES_MAX));
    let last = 0xffff_u16.wrapping_add(8 * 0x1fff);
    assert_eq!(packets.last(), Some(&(last, Some(1000))));
    assert_eq!(packets[0], (last.wrapping_sub(TRANSPORT_STATUSES_MAX - 1), None));
    // What arrived is told, however long ago.
    let bytes = about(8 * 0x1fff + 1, &[&[0x2001], &runs[..8]].concat(), &[4]);
    let (_, _, _, _, packets) = told(&bytes).expect("RTCP").remove(0);
    assert_eq!(packets[..2], [(0xffff, Some(1000)), (last.wrapping_sub(TRANSPORT_STATUSES_MAX - 1), None)]);
    assert_eq!(packets.len(), usize::from(TRANSPORT_STATUSES_MAX) + 1);
}

/// Arrivals at these milliseconds, of packets of these numbers from 0 on.
fn arrivals(packets: &[(usize, u64)]) -> Vec<Option<Time>> {
    let mut all = vec![None; packets.iter().map(|(number, _)| number + 1).max().unwrap_or(0)];
    packets.iter().for_each(|(number, ms)| all[*number] = Some(Time::from_millis(*ms)));
    all
}

#[test]
fn messages_are_as_short_as_those_of_browsers() {
    // The cases of libwebrtc's tests: chunks of two bytes and bytes of arrivals, in whole words.
    let of = |packets: &[(usize, u64)]| {
        let all = written_of(1, &arrivals(packets));
        assert_eq!(all.len(), 1);
        length(&all[0])
    };
    assert_eq!(of(&[0, 1, 6, 7, 8, 9, 12].map(|n| (n, n as u64))), 32);
    assert_eq!(of(&[(0, 1), (8191 + 14, 2)]), 28);
    assert_eq!(of(&[(0, 1), (29, 2)]), 28);
    let split: Vec<_> = (0..22).map(|n| (n, if n < 8 { n as u64 } else { n as u64 + 64 })).collect();
    assert_eq!(of(&split), 52);
    assert_eq!(of(&(0..100).map(|n| (n, n as u64)).collect::<Vec<_>>()), 20 + 104);
}

#[test]
fn a_message_goes_on_in_another_where_arrivals_lie_far_apart() {
    let all = written_of(5, &arrivals(&[(0, 1000), (2, 9191), (3, 18_000), (4, 9000)]));
    let all: Vec<Told> = all.iter().flat_map(|bytes| told(bytes).expect("RTCP")).collect();
    let packets: Vec<_> = all.iter().map(|told| (told.0, told.2, told.3, told.4.as_slice())).collect();
    assert_eq!(packets[0], (5, 15, 0, &[(5, Some(40_000)), (6, None), (7, Some(8_231_000))][..]));
    assert_eq!(packets[1], (8, 281, 1, &[(8, Some(16_000))][..]));
    assert_eq!(packets[2], (9, 140, 2, &[(9, Some(40_000))][..]));
}

#[test]
fn what_is_lost_at_the_end_is_not_told_of() {
    assert_eq!(written_of(5, &[None, None]), Vec::<Vec<u8>>::new());
    let all = written_of(5, &[None, Some(Time::from_millis(64)), None]);
    assert_eq!(told(&all[0]).expect("RTCP"), [(5, 2, 1, 0, vec![(5, None), (6, Some(0))])]);
}

#[test]
fn the_reference_time_and_the_number_wrap() {
    let mut writer = Writer::new(7, 42);
    let mut all = Vec::new();
    let wraps = Time::from_micros((1 << 24) * REFERENCE_TICK_US + 500);
    for _ in 0..257 {
        writer.write(9, &[Some(wraps)], "x", |bytes| all.push(bytes));
    }
    assert_eq!(told(&all[255]).expect("RTCP"), [(9, 1, 0, 255, vec![(9, Some(500))])]);
    assert_eq!(told(&all[256]).expect("RTCP")[0].3, 0);
}

/// Packets: some lost, some in order, some far apart or before others; as many as a message tells all of.
fn packets() -> impl Strategy<Value = Vec<Option<Time>>> {
    let step = prop_oneof![
        6 => Just(vec![None]),
        1 => (1..600_usize).prop_map(|count| vec![None; count]),
        12 => (0..20_000_i64).prop_map(|us| vec![Some(us)]),
        3 => (1..40_usize, 0..9_000_i64).prop_map(|(count, us)| vec![Some(us); count]),
        2 => (-90_000..90_000_i64).prop_map(|us| vec![Some(us)]),
        1 => (-20_000_000..20_000_000_i64).prop_map(|us| vec![Some(us)]),
    ];
    (0..2_000_000_000_000_u64, prop::collection::vec(step, 0..200)).prop_map(|(began, steps)| {
        let mut now = began;
        let mut at = |us: i64| {
            now = now.saturating_add_signed(us);
            Time::from_micros(now)
        };
        let packets = steps.into_iter().flatten().take(usize::from(TRANSPORT_STATUSES_MAX));
        packets.map(|step| step.map(&mut at)).collect()
    })
}

/// What is told of messages, with arrivals by the receiver's clock.
fn by_clock(messages: &[Vec<u8>]) -> Vec<(u16, Option<i64>)> {
    let mut all = Vec::new();
    for bytes in messages {
        read(bytes, |feedback| {
            let reference = i64::from(feedback.reference()) * REFERENCE_TICK_US.cast_signed();
            all.extend(feedback.statuses().map(|(number, at)| (number, at.map(|at| reference + at))));
        })
        .expect("its own message");
    }
    all
}

proptest! {
    #[test]
    fn what_was_written_is_read(first in any::<u16>(), packets in packets()) {
        let messages = written_of(first, &packets);
        let last = packets.iter().rposition(Option::is_some).map_or(0, |last| last + 1);
        let wraps = (REFERENCE_MASK + 1).cast_signed() * REFERENCE_TICK_US.cast_signed();
        let read = by_clock(&messages);
        prop_assert_eq!(read.len(), last);
        for (index, (number, at)) in read.into_iter().enumerate() {
            prop_assert_eq!(number, first.wrapping_add(index as u16));
            let expected = packets[index].map(|at| (at.as_micros() / TICK_US * TICK_US).cast_signed());
            prop_assert_eq!(at.map(|at| at.rem_euclid(wraps)), expected.map(|at| at.rem_euclid(wraps)));
        }
        for bytes in &messages {
            prop_assert!(length(bytes) <= HEAD + TRANSPORT_FEEDBACK_BYTES_MAX, "{}", length(bytes));
        }
    }

    #[test]
    fn what_is_read_is_what_the_library_reads(
        count in 0..40_u16,
        chunks in prop::collection::vec(any::<u16>(), 0..6),
        arrivals in prop::collection::vec(any::<u8>(), 0..60),
    ) {
        let bytes = about(count, &chunks, &arrivals);
        let Ok(all) = told(&bytes) else { return Ok(()) };
        let library = Twcc::parse(&bytes[HEAD..]).expect("long enough");
        let mut at = 0;
        let packets: Vec<_> = library.packets().map(|packet| match packet.expect("whole") {
            (number, TwccPacketStatus::NotReceived) => (number, None),
            (number, TwccPacketStatus::Received { delta }) => {
                at += i64::from(delta) * 250;
                (number, Some(at))
            }
        }).collect();
        prop_assert_eq!(&all[0].4, &packets);
    }
}
