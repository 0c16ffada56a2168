//! Links are found by their numbers, and asked when they are due.

use std::net::{Ipv4Addr, SocketAddr};

use outflow_config::{BitRate, LinkRate};
use outflow_media::{Format, Growth};
use outflow_packet::Level;
use outflow_relay::{
    Encapsulation, LinkClaim, Order, Output, Share, SinkSpec, Stream, StreamOptions, Transport,
};
use tokio::sync::oneshot;

use super::*;
use crate::send::udp::UdpRoute;
use crate::send::{Headers, pieces};

const SLOW: LinkId = LinkId(3);
const FAST: LinkId = LinkId(1);

fn config(bps: u64) -> LinkConfig {
    LinkConfig { rate: Some(LinkRate::Fixed(BitRate(bps))), ..LinkConfig::default() }
}

/// A stream that is to send a packet of a kilobyte to its receivers of these weights, and that order.
fn stream(weight: u32, receivers: &[u32]) -> (Stream, Order) {
    let mut stream = Stream::new(StreamOptions { weight, ..StreamOptions::default() });
    stream.handle_source(Time::ZERO, Format::Data);
    for weight in receivers {
        let claim = LinkClaim { weight: *weight, ..LinkClaim::default() };
        let spec = SinkSpec { claim, ..SinkSpec::new(Encapsulation::Ts, Transport::Datagram) };
        stream.handle_join(Time::ZERO, 7, spec);
    }
    stream.handle_media(Time::ZERO, 0, bytes::Bytes::from_static(&[1; 1000]).into());
    loop {
        match stream.poll(Time::ZERO) {
            Output::Order(order) => return (stream, order),
            Output::Wait { .. } => panic!("there is a packet to be sent"),
            _ => {}
        }
    }
}

fn sink(links: &Links, link: LinkId) -> LiveSink {
    let to = SocketAddr::from((Ipv4Addr::LOCALHOST, 9));
    let route = UdpRoute::new(7, 0, vec![(0, to.into())]);
    let out = Out::Udp { route, rtcp: Vec::new(), own_socket: false };
    LiveSink {
        id: 7,
        kind: "udp",
        to: to.to_string(),
        name: None,
        token: None,
        closed: oneshot::channel().0,
        behind: links.behind(link, &out, &to.to_string()),
        out,
        reports: Vec::new(),
        carries_bps: None,
        key_frame_requests: 0,
        rtcp: Default::default(),
        sent_bytes: Growth::default(),
        wants: Some(Level::BEST),
    }
}

#[test]
fn a_link_is_due_when_its_next_packet_is_and_not_because_another_one_is() {
    let (now, later) = (Time::from_millis(5), Time::from_millis(5000));
    let mut links = Links::default();
    links.put(now, SLOW, "slow".to_owned(), &config(8_000));
    links.put(now, FAST, "fast".to_owned(), &config(1_000_000_000));
    assert!(links.has(SLOW) && !links.has(LinkId(2)));
    assert_eq!(links.due(), None, "nothing waits");
    let (stream, order) = stream(1, &[1]);
    let mut headers = Headers::new();
    let pieces = pieces(&stream, &order, Share::WHOLE, Encapsulation::Ts, &mut headers);
    let members = stream.members(&order);
    let offered =
        Offered { stream: (&stream, 0), order: &order, share: Share::WHOLE, pieces: &pieces, members };
    let (mut batch, mut sinks) = (Vec::new(), [SLOW, FAST].map(|link| [Some(sink(&links, link))]));
    assert!(links.offer((now, SLOW), &offered, &mut sinks[0]), "it is to be asked now");
    assert!(!links.offer((now, SLOW), &offered, &mut sinks[0]), "it is asked already");
    assert!(!links.offer((now, LinkId(2)), &offered, &mut sinks[0]), "there is no such link");
    assert_eq!((links.due(), links.are_due(now).collect::<Vec<_>>()), (Some(now), vec![SLOW]));
    assert!(!links.depart(now, SLOW, &mut batch), "a second passes until the next packet goes");
    assert!(links.are_due(now).next().is_none() && links.due().is_some_and(|due| due > now));
    assert!(links.offer((now, FAST), &offered, &mut sinks[1]));
    assert_eq!(links.are_due(now).collect::<Vec<_>>(), [FAST]);
    assert_eq!(links.are_due(later).collect::<Vec<_>>(), [FAST, SLOW]);
    links.depart(now, FAST, &mut batch);
    assert_eq!((batch.len(), links.are_due(later).collect::<Vec<_>>()), (2, vec![SLOW]));
    let name = |links: &Links| {
        let behind = sinks[0][0].as_ref().and_then(|sink| sink.behind.as_ref()).expect("behind it");
        links.name(behind).map(str::to_owned)
    };
    assert_eq!(name(&links).as_deref(), Some("slow"));
    assert!(links.remove(now, SLOW).is_some() && links.remove(now, SLOW).is_none());
    assert_eq!((links.due(), name(&links)), (None, None));
}

#[test]
fn streams_and_in_them_receivers_have_their_shares_of_a_link_by_their_weights() {
    let text = "[link.a]\nrate = \"8 Mbit/s\"\npolicy = \"pfb\"\nscheduler = \"shares\"";
    let config = outflow_config::Config::parse(text, "o.toml", &outflow_config::Protocols::default());
    let (mut links, mut batch) = (Links::default(), Vec::new());
    links.put(Time::ZERO, SLOW, "a".to_owned(), &config.expect("valid").links["a"]);
    for (index, weight, receivers) in [(0, 3, &[1][..]), (1, 1, &[3, 1])] {
        let (stream, order) = stream(weight, receivers);
        let mut headers = Headers::new();
        let pieces = pieces(&stream, &order, Share::WHOLE, Encapsulation::Ts, &mut headers);
        let members: Vec<_> = (0..receivers.len()).map(SinkKey).collect();
        let offered = Offered {
            stream: (&stream, index),
            order: &order,
            share: Share::WHOLE,
            pieces: &pieces,
            members: &members,
        };
        let mut sinks: Vec<_> = receivers.iter().map(|_| Some(sink(&links, SLOW))).collect();
        (0..80).for_each(|_| _ = links.offer((Time::ZERO, SLOW), &offered, &mut sinks));
    }
    (0..80).for_each(|ms| _ = links.depart(Time::from_millis(ms), SLOW, &mut batch));
    let of = |whose| batch.iter().take(64).filter(|parcel| (parcel.stream, parcel.sink.0) == whose).count();
    assert_eq!([(0, 0), (1, 0), (1, 1)].map(of), [48, 12, 4]);
}
