//! Datagrams of the partial-order transport, and what they do to their reader.

use outflow_media::Time;
use outflow_poc::packet::{Data, Datagram, Frame, Mark, Writer, emit_reset, parse};
use outflow_poc::recovery::{Arrived, Outcome, Received, ReceivedSettings, Sent, SentSettings};

/// Packets that are in flight when acknowledgements come.
const PACKETS: u64 = 500;

/// What is read can be written and read again. Behind a byte of zero come packets instead, each with its
/// length in a byte in front, for a sender and a receiver.
pub(crate) fn poc_packet(data: &[u8]) {
    match data.split_first() {
        Some((0, packets)) => connection(packets),
        _ => datagram(data),
    }
}

fn datagram(bytes: &[u8]) {
    let mut out = Vec::new();
    match parse(bytes) {
        Ok(Datagram::Hello(hello)) => hello.emit(&mut out).expect("it was short enough"),
        Ok(Datagram::Retry(retry)) => retry.emit(&mut out).expect("it was short enough"),
        Ok(Datagram::Accept(accept)) => accept.emit(&mut out).expect("it was short enough"),
        Ok(Datagram::Refuse(refuse)) => refuse.emit(&mut out),
        Ok(Datagram::Reset(id)) => emit_reset(id, &mut out),
        Ok(Datagram::Data(data)) => return frames(data, bytes.len()),
        Ok(Datagram::OtherVersion { .. }) => return,
        Err(error) => return assert!(error.offset <= bytes.len() && !error.reason.is_empty()),
    }
    assert_eq!(parse(&out), parse(bytes), "written and read");
}

/// The same frames in a packet of their own; lengths may be written that were left out.
fn frames(data: Data<'_>, bytes: usize) {
    let read: Vec<_> = data.frames.map_while(Result::ok).collect();
    let mut out = Vec::new();
    let mut writer = Writer::new(&mut out, data.receiver, data.number, bytes + 64);
    assert!(read.iter().all(|frame| writer.push(frame)), "it fits again");
    let Ok(Datagram::Data(again)) = parse(&out) else { panic!("it was a packet") };
    assert!(again.frames.map(|frame| frame.expect("well formed")).eq(read), "written and read");
}

fn connection(mut packets: &[u8]) {
    let (mut now, mut outcome) = (Time::ZERO, Outcome::new());
    let mut received = Received::new(ReceivedSettings::default(), now);
    let mut sent = Sent::new(SentSettings::default());
    (0..PACKETS).for_each(|number| _ = sent.handle_sent(now, 1000, number));
    let mut fates = [0_u8; PACKETS as usize];
    while let Some((length, rest)) = packets.split_first() {
        let (packet, rest) = rest.split_at(rest.len().min(usize::from(*length)));
        packets = rest;
        now = now + core::time::Duration::from_millis(u64::from(*length));
        sent.handle_timeout(now, &mut outcome);
        tell(&outcome, &mut fates);
        let Ok(Datagram::Data(data)) = parse(packet) else { continue };
        if received.handle_received(now, data.number, true, Mark::Ect1) == Arrived::Duplicate {
            continue;
        }
        let again = received.handle_received(now, data.number, true, Mark::None);
        assert_eq!(again, Arrived::Duplicate, "it was received");
        for frame in data.frames {
            let Ok(Frame::Ack(ack)) = frame else { continue };
            match sent.handle_ack(now, &ack, &mut outcome) {
                Ok(()) => tell(&outcome, &mut fates),
                Err(error) => assert!(!error.to_string().is_empty()),
            }
        }
        let ack = received.ack(now).expect("something was received");
        let mut out = Vec::new();
        assert!(Writer::new(&mut out, data.receiver, 0, 64).ack(&ack), "some of it always fits");
        received.handle_ack_received(data.number / 2);
    }
    let in_flight = fates.iter().filter(|fate| **fate == 0).count();
    assert_eq!(sent.in_flight(), in_flight, "what has no fate is in flight");
}

/// Counts what became of packets: nothing twice, but that one that was lost is acknowledged after all.
fn tell(outcome: &Outcome<u64>, fates: &mut [u8]) {
    let acked = outcome.acked.iter().map(|acked| (acked.content, 0, 1));
    let lost = outcome.lost.iter().map(|lost| (lost.content, 0, 2));
    let spurious = outcome.spurious.iter().map(|spurious| (spurious.number, 2, 3));
    for (number, before, after) in acked.chain(lost).chain(spurious) {
        let fate = &mut fates[number as usize];
        assert_eq!(*fate, before, "packet {number} has one fate");
        *fate = after;
    }
}
