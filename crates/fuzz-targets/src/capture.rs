//! Captures of networks, and transport streams in files.

use bytes::Bytes;
use outflow_sim::capture::Capture;

const SDP: &str = "s=-\r\nm=video 0 RTP/AVP 96\r\na=rtpmap:96 H264/90000\r\n";

/// Flows have packets, in the order of their times, which begin with zero; and it is read alike both times, with a
/// description and without.
pub(crate) fn capture(data: &[u8]) {
    let bytes = Bytes::copy_from_slice(data);
    let described = Capture::parse_with(&bytes, "fuzz", Some(SDP));
    match Capture::parse(&bytes, "fuzz") {
        Ok(capture) => {
            let packets = || capture.flows.iter().map(|flow| &flow.packets);
            assert!(packets().all(|packets| packets.is_sorted_by_key(|packet| packet.at)));
            let first = packets().filter_map(|packets| packets.first()).map(|packet| packet.at).min();
            assert_eq!(first.expect("a packet").as_nanos(), 0);
            assert!(packets().all(|packets| !packets.is_empty()));
            assert_eq!(Capture::parse(&bytes, "fuzz").expect("as before"), capture);
        }
        Err(error) => {
            assert!(!error.to_string().is_empty());
            assert!(described.is_err(), "it was no capture");
        }
    }
}
