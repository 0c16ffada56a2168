//! RTSP: messages, headers, and a client that is answered anything.

use bytes::{Bytes, BytesMut};
use outflow_media::Time;
use outflow_rtsp::auth::{Authorization, Challenge};
use outflow_rtsp::client::{Event, Output, RtspClient, TrackSetup};
use outflow_rtsp::header::{RtpInfo, Session};
use outflow_rtsp::{
    ClientOptions, DecodeError, Decoder, Item, Lower, Pair, Transport, encode_request, encode_response,
};

fn decode_all(
    decoder: &mut Decoder,
    buffer: &mut BytesMut,
    items: &mut Vec<Item>,
) -> Result<(), DecodeError> {
    while let Some(item) = decoder.decode(buffer)? {
        items.push(item);
    }
    Ok(())
}

/// However bytes come, the same items come out; and what is a message can be written.
pub(crate) fn rtsp_messages(data: &[u8]) {
    let (mut whole, mut parts) = (Vec::new(), Vec::new());
    let result = decode_all(&mut Decoder::new(), &mut BytesMut::from(data), &mut whole);
    let (mut decoder, mut buffer) = (Decoder::new(), BytesMut::new());
    let mut in_parts = Ok(());
    let size = 1 + data.first().map_or(0, |first| usize::from(*first) % 50);
    for part in data.chunks(size) {
        buffer.extend_from_slice(part);
        in_parts = decode_all(&mut decoder, &mut buffer, &mut parts);
        if in_parts.is_err() {
            break;
        }
    }
    assert_eq!((&whole, result.is_ok()), (&parts, in_parts.is_ok()));
    for item in &whole {
        let mut written = BytesMut::new();
        match item {
            Item::Request(request) => encode_request(request, &mut written),
            Item::Response(response) => encode_response(response, &mut written),
            Item::Interleaved { .. } => {}
        }
    }
}

/// Header values; what is read of a Transport header is written and read as the same.
pub(crate) fn rtsp_headers(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    for transport in Transport::parse_all(&text) {
        let written = transport.to_string();
        let in_one_part =
            |text: &Option<String>| !text.as_deref().unwrap_or_default().contains([';', '"', ' ', '=']);
        if in_one_part(&transport.destination) && in_one_part(&transport.source) {
            assert_eq!(
                Transport::parse(&written).map(|again| again.lower),
                Some(transport.lower),
                "{written}"
            );
        }
    }
    if let Some(session) = Session::parse(&text) {
        assert_eq!(Session::parse(&session.to_string()), Some(session));
    }
    RtpInfo::parse_all(&text);
    Challenge::parse_all(&text);
    Authorization::parse(&text);
}

/// A client that sets up whatever it is told of, over UDP or TCP, with the given bytes as answers.
pub(crate) fn rtsp_client(data: &[u8]) {
    let (udp, data) = data.split_first().map_or((false, data), |(first, rest)| (first % 2 == 1, rest));
    let lower = if udp { Lower::Udp } else { Lower::Tcp };
    let announce = data.first().filter(|first| **first == b'#').map(|_| Bytes::from_static(b"v=0"));
    let options = ClientOptions { lower, announce, ..ClientOptions::default() };
    let mut client = RtspClient::new("rtsp://user:password@host/path", options).expect("a URL");
    let mut now = Time::ZERO;
    let mut buffer = BytesMut::new();
    let mut parts = data.split(|byte| *byte == 0xff);
    for _ in 0..1000 {
        match client.poll(now) {
            Output::Connect(_) => client.connected(now),
            Output::Event(Event::Closed(_)) => return,
            Output::Event(Event::Described { .. } | Event::Announced) => {
                let ports = udp.then_some(Pair { rtp: 5000, rtcp: 5001 });
                let track = |control: &str| TrackSetup { control: Some(control.to_owned()), ports };
                client.setup(now, None, &[track("trackID=0"), track("rtsp://host/else")]);
            }
            Output::Send(_) | Output::Event(_) => {}
            Output::Wait(until) => match parts.next() {
                Some(part) => {
                    buffer.extend_from_slice(part);
                    client.handle(now, &mut buffer);
                }
                None => match until {
                    Some((at, _)) => now = at,
                    None => return,
                },
            },
        }
    }
}
