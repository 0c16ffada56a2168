//! Other names for sources, in place: what a peer says of the relay's own is about those of a stream.

/// Gives sources other names in a compound packet: the ones that it is about (of report blocks, of feedback), and where
/// `sends` is set, the ones that it is from. Those stay that `name` has none for. What is not whole is left as it is.
pub fn rename(compound: &mut [u8], sends: bool, name: impl Fn(u32) -> Option<u32>) {
    let mut rest = compound;
    while let Some(length) = length(rest) {
        let (packet, behind) = core::mem::take(&mut rest).split_at_mut(length);
        let (kind, count) = (packet[1], usize::from(packet[0] & 0x1f));
        // What fills it up says how much that is in its last byte.
        let filled = if packet[0] & 0x20 != 0 { usize::from(packet[length - 1]) } else { 0 };
        let end = length.saturating_sub(filled);
        let mut give = |at: usize| {
            let Some(word) = packet[..end].get_mut(at..at + 4) else { return };
            let source = u32::from_be_bytes([word[0], word[1], word[2], word[3]]);
            if let Some(named) = name(source) {
                word.copy_from_slice(&named.to_be_bytes());
            }
        };
        if sends {
            give(4);
        }
        match kind {
            SENDER => (0..count).for_each(|block| give(28 + 24 * block)),
            RECEIVER => (0..count).for_each(|block| give(8 + 24 * block)),
            TRANSPORT | PAYLOAD => {
                give(8);
                let entries = match (kind, count) {
                    (TRANSPORT, LIMITS) | (PAYLOAD, INTRA) => (12, 8),
                    (PAYLOAD, APPLICATION) => (20, 4),
                    _ => (length, 4),
                };
                (entries.0..length).step_by(entries.1).for_each(give);
            }
            _ => {}
        }
        rest = behind;
    }
}

/// A compound packet without what receivers estimate that their way carries (REMB).
pub fn without_estimate(compound: &[u8]) -> Vec<u8> {
    let mut kept = Vec::with_capacity(compound.len());
    let mut rest = compound;
    while let Some(length) = length(rest) {
        let (packet, behind) = rest.split_at(length);
        if (packet[1], usize::from(packet[0] & 0x1f)) != (PAYLOAD, APPLICATION) {
            kept.extend_from_slice(packet);
        }
        rest = behind;
    }
    kept
}

/// Sender report (RFC 3550, section 6.4.1).
const SENDER: u8 = 200;
/// Receiver report (section 6.4.2).
const RECEIVER: u8 = 201;
/// Feedback about transport (RFC 4585, section 6.2).
const TRANSPORT: u8 = 205;
/// Feedback about payloads (section 6.3).
const PAYLOAD: u8 = 206;
/// TMMBR (RFC 5104, section 4.2.1): sources stand in entries of eight bytes.
const LIMITS: usize = 3;
/// FIR (section 4.3.1): the same.
const INTRA: usize = 4;
/// REMB (draft-alvestrand-rmcat-remb-03): sources stand behind eight bytes of its own.
const APPLICATION: usize = 15;

/// Bytes of the packet that these begin with, if it is whole.
fn length(bytes: &[u8]) -> Option<usize> {
    let [first, _, high, low] = *bytes.first_chunk()?;
    let length = 4 + 4 * usize::from(u16::from_be_bytes([high, low]));
    (first >> 6 == 2 && length <= bytes.len()).then_some(length)
}

#[cfg(test)]
mod tests {
    use super::super::{
        Limit, Report, ReportBlock, SenderReport, key_frame_request, read, receiver_report, sender_report,
    };
    use super::*;

    fn named(mut bytes: Vec<u8>, sends: bool) -> Vec<Report> {
        rename(&mut bytes, sends, |source| (source == 42).then_some(1000));
        let mut all = Vec::new();
        read(&bytes, |report| all.push(report)).expect("it is RTCP still");
        all
    }

    #[test]
    fn what_is_said_of_a_source_is_said_of_the_other() {
        let block =
            |ssrc| ReportBlock { ssrc, fraction_lost: 1, lost: 2, highest: 3, jitter: 4, lsr: 5, dlsr: 6 };
        let reported = named(receiver_report(7, &[block(41), block(42)], "x"), false);
        let expected = [41, 1000].map(|ssrc| Report::Block { from: 7, block: block(ssrc) });
        assert_eq!(reported[1..], expected);
        let wanted = Report::KeyFrame { from: 7, media: 1000 };
        assert_eq!(named(key_frame_request(7, 42, 1, "x"), false)[1..], [wanted.clone(), wanted]);
        let remb = [0x8f, 206, 0, 5, 0, 0, 0, 7, 0, 0, 0, 0, b'R', b'E', b'M', b'B', 1, 4, 0, 1, 0, 0, 0, 42];
        let limit = Limit { media: 1000, bps: 2, overhead: 0 };
        assert_eq!(named(remb.to_vec(), false), [Report::Limit { from: 7, limit, is_tmmbr: false }]);
    }

    #[test]
    fn what_a_source_sends_is_from_the_other() {
        let report = SenderReport { ssrc: 42, ntp: 1, rtp: 2, packets: 3, octets: 4 };
        let bytes = sender_report(&report, "x");
        assert_eq!(named(bytes.clone(), true), [Report::Sender(SenderReport { ssrc: 1000, ..report })]);
        assert_eq!(named(bytes, false), [Report::Sender(report)]);
    }

    #[test]
    fn an_estimate_is_left_out_and_the_rest_is_kept() {
        let report = receiver_report(7, &[], "x");
        let remb = [0x8f, 206, 0, 5, 0, 0, 0, 7, 0, 0, 0, 0, b'R', b'E', b'M', b'B', 1, 4, 0, 1, 0, 0, 0, 42];
        let request = key_frame_request(7, 42, 1, "x");
        let both = [&report[..], &remb, &request].concat();
        assert_eq!(without_estimate(&both), [&report[..], &request].concat());
        assert_eq!(without_estimate(&remb), []);
    }

    #[test]
    fn a_packet_about_nothing_is_passed_over() {
        let goodbye = [0x80, 203, 0, 0];
        let wanted = key_frame_request(7, 42, 1, "x");
        let (report, rest) = wanted.split_at(8);
        let both = [report, &goodbye, rest].concat();
        let told = named(both, false);
        assert!(told.contains(&Report::KeyFrame { from: 7, media: 1000 }), "{told:?}");
        assert_eq!(without_estimate(&goodbye), goodbye);
        // Feedback about 42 that is filled up, by a word that looks like another source.
        let filled = [0xa1, 206, 0, 3, 0, 0, 0, 7, 0, 0, 0, 42, 0, 0, 0, 4];
        let mut bytes = filled;
        rename(&mut bytes, false, |source| Some(source + 1));
        assert_eq!((bytes[11], &bytes[12..]), (43, &filled[12..]));
    }

    #[test]
    fn what_is_cut_off_is_left_as_it_is() {
        let whole = key_frame_request(42, 42, 1, "x");
        for length in 0..whole.len() {
            let mut cut = whole[..length].to_vec();
            rename(&mut cut, true, |_| Some(0x0101_0101));
            assert_eq!(cut.len(), length);
        }
    }
}
