//! How relays and players carry streams over the transport.
//!
//! The resource says which stream, and what of it, as the path and the query of an RTSP address do. Its query may
//! say in which form it goes:
//!
//! | `as=` | units |
//! |---|---|
//! | `ts`, or nothing | packets of MPEG-TS, some in each |
//! | `rtp` | the first is a session description (SDP, RFC 8866); each behind it is a packet of RTP or RTCP, with its channel in front: twice the track's number, for RTCP and one (as RTSP interleaves them, RFC 2326 section 10.12) |
//!
//! Values of a query are percent-encoded, and a `+` is a blank, as in addresses of HTTP ([`with_query`],
//! [`query_value`]).
//!
//! A receiver of RTP may send RTCP the other way, in the same form: reports, and wishes for another level.

use core::time::Duration;
use std::sync::{Arc, LazyLock};

use arc_swap::ArcSwapOption;
use bytes::{BufMut, Bytes, BytesMut};
use outflow_petri::service::presets::{Order, datagrams, few};
use outflow_petri::service::{Bounds, Class, Flow, Request, Want, presets};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// All but what no query needs encoded (RFC 3986 section 2.3).
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The way back: reports are few, and late ones of no use.
const REPORTS_LATENCY: Duration = Duration::from_millis(500);

/// Bytes of reports that are kept.
const REPORTS_BYTES: u32 = 64 << 10;

/// In which form a stream goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Packets of MPEG-TS.
    Ts,
    /// A description, then packets of RTP and RTCP.
    Rtp,
}

/// A packet, and whose it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packet {
    /// Number of the track.
    pub track: u8,
    /// Whether it is RTCP.
    pub is_rtcp: bool,
    /// The packet itself.
    pub bytes: Bytes,
}

impl Form {
    /// What the query of a resource asks for; `None` for a form that there is not.
    pub fn of(query: &str) -> Option<Form> {
        match query.split('&').find_map(|pair| pair.strip_prefix("as=")) {
            None | Some("ts") => Some(Form::Ts),
            Some("rtp") => Some(Form::Rtp),
            Some(_) => None,
        }
    }

    /// The resource in this form, if it does not say another one.
    pub fn asked(self, resource: &str) -> String {
        let says = resource.split_once('?').is_some_and(|(_, query)| query.split('&').any(is_form));
        let joint = if resource.contains('?') { '&' } else { '?' };
        match self {
            Form::Rtp if !says => format!("{resource}{joint}as=rtp"),
            _ => resource.to_owned(),
        }
    }
}

/// The resource with another key in its query, and whatever value.
pub fn with_query(resource: &str, key: &str, value: &str) -> String {
    let joint = if resource.contains('?') { '&' } else { '?' };
    format!("{resource}{joint}{key}={}", utf8_percent_encode(value, ENCODED))
}

/// The first value of a key in the query of a resource.
pub fn query_value(resource: &str, key: &str) -> Option<String> {
    let (_, query) = resource.split_once('?')?;
    let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    let (_, value) = pairs.find(|(found, _)| *found == key)?;
    let value = value.replace('+', " ");
    Some(percent_decode_str(&value).decode_utf8_lossy().into_owned())
}

fn is_form(pair: &str) -> bool {
    pair.starts_with("as=")
}

impl Packet {
    /// Reads a unit; `None` if it has no channel.
    pub fn read(mut unit: Bytes) -> Option<Packet> {
        let channel = unit.first().copied()?;
        let bytes = unit.split_off(1);
        Some(Packet { track: channel / 2, is_rtcp: channel % 2 == 1, bytes })
    }

    /// What stands in front of a packet.
    pub fn channel(track: u8, is_rtcp: bool) -> u8 {
        track.wrapping_mul(2) | u8::from(is_rtcp)
    }

    /// The unit of an RTCP packet of a track.
    pub fn rtcp(track: u8, bytes: &[u8]) -> Bytes {
        let mut unit = BytesMut::with_capacity(1 + bytes.len());
        unit.put_u8(Packet::channel(track, true));
        unit.put_slice(bytes);
        unit.freeze()
    }
}

/// What a stream is sent by: in order, each unit for so long. How it is sent again, and what is left out first,
/// its sender says of each.
pub fn stream(latency: Duration) -> Flow {
    // Its net is large, and the same for all of one latency: a caller with another one mostly keeps it.
    static LAST: ArcSwapOption<(Duration, Flow)> = ArcSwapOption::const_empty();
    if let Some(last) = LAST.load().as_deref().filter(|(known, _)| *known == latency) {
        return last.1.clone();
    }
    let flow = datagrams(Order::Total, Some(latency), Class::Reliable).expect("it is a preset");
    LAST.store(Some(Arc::new((latency, flow.clone()))));
    flow
}

/// What reports are sent by.
pub fn reports() -> Flow {
    static ALL: LazyLock<Flow> = LazyLock::new(|| {
        let flow = few(Some(REPORTS_LATENCY), Class::Partial).expect("it is a preset");
        Flow { buffer_bytes: REPORTS_BYTES, ..flow }
    });
    ALL.clone()
}

/// Asks to be sent a stream, in whatever way the server does, and each unit for so long at most.
pub fn to_receive(resource: &str, form: Form, latency: Option<Duration>) -> Request {
    Request {
        resource: form.asked(resource),
        to_server: (form == Form::Rtp).then(reports),
        to_client: Some(whatever(latency)),
    }
}

/// Whatever the server has, each unit for so long at most; as long as it says, if that is not given.
pub fn whatever(validity: Option<Duration>) -> Want {
    let rounds = outflow_petri::limits::WINDOW_ROUNDS_MAX as u32;
    Want::Theirs(Bounds { rounds, buffer_bytes: presets::BUFFER_BYTES, validity })
}

/// Asks to send a stream.
pub fn to_send(resource: &str, form: Form, latency: Duration) -> Request {
    Request { resource: form.asked(resource), to_server: Some(stream(latency)), to_client: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_form_is_said_in_the_query() {
        assert_eq!(Form::of(""), Some(Form::Ts));
        assert_eq!(Form::of("level=2&as=rtp"), Some(Form::Rtp));
        assert_eq!(Form::of("as=x"), None);
        assert_eq!(Form::Rtp.asked("/cam?level=2"), "/cam?level=2&as=rtp");
        assert_eq!(Form::Rtp.asked("/cam"), "/cam?as=rtp");
        assert_eq!(Form::Rtp.asked("/cam?as=ts"), "/cam?as=ts");
        assert_eq!(Form::Ts.asked("/cam"), "/cam");
    }

    #[test]
    fn values_of_a_query_are_read_as_they_were_written() {
        for token in ["s3cret", "a&b=c", "100%", "1+1 = 2", "%20", "?#/\u{fc}", ""] {
            let resource = with_query(&with_query("/cam?level=2", "token", token), "x", "&");
            assert!(!resource.contains(['#', ' ', '+']), "{resource}");
            assert_eq!(query_value(&resource, "token").as_deref(), Some(token), "{resource}");
            assert_eq!(query_value(&resource, "level").as_deref(), Some("2"));
            assert_eq!(query_value(&resource, "x").as_deref(), Some("&"));
        }
        assert_eq!(with_query("/cam", "token", "a-b.c_d~e"), "/cam?token=a-b.c_d~e", "as people write it");
        assert_eq!(query_value("/cam?token=a+b", "token").as_deref(), Some("a b"), "as browsers write it");
        assert_eq!(query_value("/cam?tokens=1&token", "token"), None);
        assert_eq!(query_value("/token=1", "token"), None);
    }

    #[test]
    fn packets_are_read_as_they_are_written() {
        let unit = Packet::rtcp(3, b"report");
        let read = Packet::read(unit).expect("a packet");
        assert_eq!(read, Packet { track: 3, is_rtcp: true, bytes: Bytes::from_static(b"report") });
        assert_eq!(Packet::read(Bytes::new()), None);
    }

    #[test]
    fn flows_are_flows() {
        let [short, long] = [200, 500].map(Duration::from_millis);
        for flow in [stream(short), reports()] {
            assert_eq!(flow.check(), Ok(()));
        }
        let validity = |latency| stream(latency).classes[0].validity;
        assert_eq!([short, long, short].map(validity), [Some(short), Some(long), Some(short)]);
        assert!(Arc::ptr_eq(&stream(short).net, &stream(short).net), "they share a net");
    }
}
