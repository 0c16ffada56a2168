//! Sinks behind links, as far as the core knows of them; and opaque datagrams.

use outflow_packet::DropReason;

use super::*;
use crate::schedule::LinkId;
use crate::{Encapsulation, Report, Transport};

#[test]
fn those_behind_different_links_are_no_cohort() {
    let mut bench = Bench::new();
    bench.frame(true);
    for link in [None, Some(LinkId(0)), Some(LinkId(0)), Some(LinkId(1))] {
        let spec = SinkSpec { link, ..SinkSpec::new(Encapsulation::Rtp, Transport::Datagram) };
        bench.stream.handle_join(bench.now, 1, spec);
    }
    bench.poll();
    bench.wait(1_000);
    let before = bench.orders;
    bench.frame(false);
    assert_eq!(bench.orders - before, 3, "one for each link, and one for those behind none");
}

#[test]
fn what_a_link_gave_up_was_not_sent() {
    let mut bench = Bench::new();
    bench.frame(true);
    let (key, other) = (bench.join(false), bench.join(false));
    bench.frame(false);
    bench.stream.handle_report(key, Report::GivenUp { reason: DropReason::LinkFull, bytes: 1_000 });
    let (counters, others) = (bench.stream.sink_counters(key), bench.stream.sink_counters(other));
    assert_eq!((counters.packets + 1, counters.bytes + 1_000), (others.packets, others.bytes));
    assert_eq!(bench.stream.sink_drops(key).get(DropReason::LinkFull), 1);
    bench.stream.handle_leave(bench.now, key);
    let (past, drops, _) = bench.stream.past();
    assert_eq!((past.packets, drops.get(DropReason::LinkFull)), (counters.packets, 1));
}

#[test]
fn opaque_datagrams_stand_for_themselves_and_go_by_udp_alone() {
    let mut stream = Stream::new(options());
    let now = Time::ZERO;
    stream.handle_source(now, Format::Data);
    let udp = SinkSpec::new(Encapsulation::Ts, Transport::Datagram);
    assert_eq!(stream.offer(&udp), Ok(Some(Format::Data)));
    let refused = stream.offer(&SinkSpec::new(Encapsulation::Rtp, Transport::Datagram)).expect_err("no RTP");
    assert!(refused.to_string().contains("udp:// address"), "{refused}");
    let refused =
        stream.offer(&SinkSpec::new(Encapsulation::Ts, Transport::Stream)).expect_err("no connection");
    assert!(refused.to_string().contains("run together"), "{refused}");

    stream.handle_media(now, 0, BytesMut::from(&b"one"[..]).into());
    let key = stream.handle_join(now, 1, udp);
    for datagram in [&b"two"[..], b""] {
        stream.handle_media(now, 0, BytesMut::from(datagram).into());
    }
    let mut sent = Vec::new();
    loop {
        match stream.poll(now) {
            Output::Order(order) => {
                let packets = stream.packets(&order, crate::Share::WHOLE);
                sent.extend(packets.map(|(_, entry, _)| (entry.packet.bytes.to_vec(), entry.packet.tag)));
            }
            Output::Wait { .. } => break,
            _ => {}
        }
    }
    let words: Vec<&[u8]> = sent.iter().map(|(bytes, _)| &bytes[..]).collect();
    assert_eq!(words[..2], [&b"one"[..], b"two"], "it joined at the newest");
    assert!(sent.iter().all(|(_, tag)| tag.kind == outflow_media::Kind::Data && tag.needs.is_nothing()));
    assert_eq!(stream.describe(), "opaque datagrams");
    assert_eq!(stream.sink_drops(key).total(), 0);
}
