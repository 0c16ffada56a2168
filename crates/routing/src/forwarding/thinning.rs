//! Packets that say what they are go only where they are wanted, with the numbers that they have there.

use core::ops::Range;

use outflow_packet::gmc::{Sent, Ways};

use super::{datagram, renumber};

/// A copy of a packet, for one of the [`Ways`] by its number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Output {
    /// The packet as it is.
    AsItIs(u32),
    /// What was made of it, at these bytes.
    Made(u32, Range<usize>),
}

/// Says where a packet goes, whose TTL is lowered and that ends where its header says. What has another number there,
/// or another end, is made behind what is in `made`, once for all that have the same. Returns how many ways it does not
/// go.
pub fn thin(ways: &mut Ways, packet: &[u8], made: &mut Vec<u8>, mut each: impl FnMut(Output)) -> usize {
    let (mut left_out, mut last) = (ways.len(), None::<(Sent, Range<usize>)>);
    let Some((port, rtp)) = datagram(packet) else {
        // What is in fragments, or is none of UDP, says nothing.
        ways.all().for_each(|to| each(Output::AsItIs(to)));
        return 0;
    };
    ways.judge(port, &packet[rtp.clone()], |to, sent| {
        left_out -= 1;
        let Some(sent) = sent.filter(|sent| sent.changes(&packet[rtp.clone()])) else {
            return each(Output::AsItIs(to));
        };
        let range = match &last {
            Some((same, range)) if *same == sent => range.clone(),
            _ => {
                let start = made.len();
                made.extend(packet);
                renumber(&mut made[start..], rtp.start, sent);
                start..made.len()
            }
        };
        last = Some((sent, range.clone()));
        each(Output::Made(to, range));
    });
    left_out
}

#[cfg(test)]
mod tests {
    use outflow_packet::Level;
    use outflow_packet::gmc::Mark;
    use outflow_rtp::{PlainHeader, RtpHeader};

    use super::super::testing::{datagram_to, is_good};
    use super::*;

    fn level(number: u8) -> Level {
        Level::new(number).expect("it is one")
    }

    fn packet(sequence: u16, layer: u8, flags: u16) -> Vec<u8> {
        let (layers, opens_all, ends) = (2, layer == 0, (layer == 0).then_some(0));
        let mark =
            Mark { layer, layers, grown: 0, first: true, opens: opens_all, adds: false, opens_all, ends };
        let header = PlainHeader { marker: false, payload_type: 96, sequence, timestamp: 0, ssrc: 5 };
        datagram_to(&mark.write(&header.emit(), b"odd").expect("it has a place"), flags)
    }

    /// The copies of a packet as they are sent, and how often it was left out.
    fn thinned(ways: &mut Ways, packet: &[u8]) -> (Vec<(u32, Vec<u8>)>, usize) {
        let (mut copies, mut made) = (Vec::new(), b"before".to_vec());
        let left_out = thin(ways, packet, &mut made, |copy| copies.push(copy));
        let bytes = copies.into_iter().map(|copy| match copy {
            Output::AsItIs(to) => (to, packet.to_vec()),
            Output::Made(to, range) => (to, made[range].to_vec()),
        });
        (bytes.collect(), left_out)
    }

    #[test]
    fn a_copy_has_its_number_and_marker_and_checksums_that_are_right() {
        let mut ways = Ways::default();
        ways.set([(1, level(1)), (2, level(2)), (3, level(2))], |_| false);
        let (copies, left_out) = thinned(&mut ways, &packet(9, 1, 0));
        assert_eq!((copies.len(), left_out), (0, 3), "none has the base");
        let (copies, left_out) = thinned(&mut ways, &packet(10, 0, 0));
        assert_eq!(left_out, 0);
        let seen = copies.iter().map(|(to, bytes)| {
            assert!(is_good(bytes), "{to}");
            let rtp = RtpHeader::new_checked(&bytes[28..]).expect("RTP");
            assert_eq!(rtp.payload(), b"odd");
            (*to, rtp.sequence(), rtp.marker())
        });
        assert_eq!(seen.collect::<Vec<_>>(), [(1, 9, false), (2, 9, true), (3, 9, true)]);
        let (copies, left_out) = thinned(&mut ways, &packet(11, 1, 0));
        assert_eq!((copies.iter().map(|(to, _)| *to).collect::<Vec<_>>(), left_out), (vec![1], 2));
    }

    #[test]
    fn what_says_nothing_stays_as_it_is() {
        let mut ways = Ways::default();
        ways.set([(1, level(2)), (2, level(1))], |_| false);
        let fragment = packet(9, 1, 0x2000);
        let plain = datagram_to(b"data", 0);
        for packet in [fragment, plain] {
            assert_eq!(thinned(&mut ways, &packet), (vec![(1, packet.clone()), (2, packet.clone())], 0));
        }
    }
}
