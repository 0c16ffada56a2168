//! RTCP (RFC 3550 section 6): the reports, and what ends a source.

mod compound;
mod estimate;
mod key_frame;
mod level;
mod lost;
mod rename;
pub mod transport_cc;

use core::time::Duration;

pub use estimate::{Limit, estimated, limit_noted};
pub use key_frame::key_frame_request;
pub use level::{LevelAnswer, LevelMessage, LevelRequest};
pub use lost::lost;
pub use rename::{rename, without_estimate};
use rtcp_types::prelude::{RtcpPacket as _, RtcpPacketParserExt as _};
use rtcp_types::{
    App, Bye, Compound, Packet, ReceiverReport as WireReceiverReport, ReportBlock as WireBlock,
    ReportBlockBuilder, RtcpParseError, SenderReport as WireSenderReport,
};

use compound::{empty, named, written};
use estimate::{Remb, Tmmb};
use outflow_media::Malformed;

/// Report blocks that fit one report.
pub const MAX_BLOCKS: usize = 31;
/// Seconds from the NTP era (1900) to the Unix one (1970).
const NTP_TO_UNIX: u64 = 2_208_988_800;

/// What a source says of itself (section 6.4.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SenderReport {
    /// The source.
    pub ssrc: u32,
    /// Wall-clock time, in 2⁻³² seconds since 1900.
    pub ntp: u64,
    /// The same moment as RTP timestamp.
    pub rtp: u32,
    /// Packets sent.
    pub packets: u32,
    /// Payload bytes sent.
    pub octets: u32,
}

/// What a receiver says of a source (section 6.4.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReportBlock {
    /// The source.
    pub ssrc: u32,
    /// Share of packets lost since the last report, in 256ths.
    pub fraction_lost: u8,
    /// Packets lost in all, 24 bits with sign.
    pub lost: i32,
    /// Extended highest sequence number received.
    pub highest: u32,
    /// Interarrival jitter in ticks.
    pub jitter: u32,
    /// Middle 32 bits of the NTP time of the last sender report, 0 if there was none.
    pub lsr: u32,
    /// Time since that report, in 2⁻¹⁶ seconds.
    pub dlsr: u32,
}

impl ReportBlock {
    /// The round trip that the report shows, if it came at `ntp` (section 6.4.1).
    pub fn round_trip(&self, ntp: u64) -> Option<Duration> {
        if self.lsr == 0 {
            return None;
        }
        let units = ((ntp >> 16) as u32).wrapping_sub(self.lsr).wrapping_sub(self.dlsr);
        // Clocks that disagree would make it negative, or hours long.
        let sane = units.cast_signed() >= 0;
        sane.then(|| Duration::from_nanos(u64::from(units) * 1_000_000_000 / 65_536))
    }
}

/// One thing told by an RTCP packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Report {
    /// A sender report.
    Sender(SenderReport),
    /// A receiver report, perhaps without blocks: a sign of life.
    Receiver {
        /// The SSRC that reports.
        ssrc: u32,
    },
    /// One block of a sender or receiver report.
    Block {
        /// The SSRC that reports.
        from: u32,
        /// What it reports.
        block: ReportBlock,
    },
    /// A source leaves.
    Bye {
        /// The source.
        ssrc: u32,
    },
    /// Application-defined.
    App {
        /// The sender's SSRC.
        ssrc: u32,
        /// Its four-letter name.
        name: [u8; 4],
        /// Its subtype.
        subtype: u8,
    },
    /// About the quality that a receiver gets.
    Level {
        /// The SSRC that says it.
        from: u32,
        /// What is said.
        message: LevelMessage,
    },
    /// A receiver says what its way carries.
    Limit {
        /// The SSRC that says so.
        from: u32,
        /// What it says.
        limit: Limit,
        /// It is a request that is to be answered (RFC 5104), and no estimate (REMB).
        is_tmmbr: bool,
    },
    /// A receiver asks for a key frame.
    KeyFrame {
        /// The SSRC that asks.
        from: u32,
        /// The source that it is asked of.
        media: u32,
    },
    /// A receiver lacks packets.
    Lost {
        /// The SSRC that says so.
        from: u32,
        /// Their source.
        media: u32,
        /// Their sequence numbers, [`NACKS_MAX`](crate::limits::NACKS_MAX) at most.
        numbers: Vec<u16>,
    },
}

/// Reads a compound packet and tells each thing in it, in its order. Packets of other types are
/// passed over. What was told before the first malformed packet holds.
pub fn read(data: &[u8], mut tell: impl FnMut(Report)) -> Result<(), Malformed> {
    let compound = Compound::parse(data).map_err(|e| malformed(&e))?;
    for packet in compound {
        match packet.map_err(|e| malformed(&e))? {
            Packet::Sr(report) => {
                tell(Report::Sender(SenderReport {
                    ssrc: report.ssrc(),
                    ntp: report.ntp_timestamp(),
                    rtp: report.rtp_timestamp(),
                    packets: report.packet_count(),
                    octets: report.octet_count(),
                }));
                report.report_blocks().for_each(|b| tell(block(report.ssrc(), &b)));
            }
            Packet::Rr(report) => {
                tell(Report::Receiver { ssrc: report.ssrc() });
                report.report_blocks().for_each(|b| tell(block(report.ssrc(), &b)));
            }
            Packet::Bye(bye) => bye.ssrcs().for_each(|ssrc| tell(Report::Bye { ssrc })),
            Packet::App(app) => {
                // The library takes the padding off without looking whether there is so much.
                if App::MIN_PACKET_LEN + usize::from(app.padding().unwrap_or(0)) > app.length() {
                    return Err(malformed(&RtcpParseError::InvalidPadding));
                }
                let (ssrc, name, subtype) = (app.ssrc(), app.name(), app.count());
                tell(match LevelMessage::parse(name, subtype, app.data())? {
                    Some(message) => Report::Level { from: ssrc, message },
                    None => Report::App { ssrc, name, subtype },
                });
            }
            Packet::PayloadFeedback(feedback) => {
                let from = feedback.sender_ssrc();
                key_frame::asked_of(&feedback)
                    .into_iter()
                    .for_each(|media| tell(Report::KeyFrame { from, media }));
                let Ok(Remb(limits)) = feedback.parse_fci() else { continue };
                limits.into_iter().for_each(|limit| tell(Report::Limit { from, limit, is_tmmbr: false }));
            }
            Packet::TransportFeedback(feedback) => {
                if let Some(numbers) = lost::numbers(&feedback) {
                    let (from, media) = (feedback.sender_ssrc(), feedback.media_ssrc());
                    tell(Report::Lost { from, media, numbers });
                }
                let Ok(Tmmb(limits)) = feedback.parse_fci() else { continue };
                let from = feedback.sender_ssrc();
                limits.into_iter().for_each(|limit| tell(Report::Limit { from, limit, is_tmmbr: true }));
            }
            _ => {}
        }
    }
    Ok(())
}

fn block(from: u32, block: &WireBlock<'_>) -> Report {
    // 24 bits with sign.
    let lost = (block.cumulative_lost() << 8).cast_signed() >> 8;
    Report::Block {
        from,
        block: ReportBlock {
            ssrc: block.ssrc(),
            fraction_lost: block.fraction_lost(),
            lost,
            highest: block.extended_sequence_number(),
            jitter: block.interarrival_jitter(),
            lsr: block.last_sender_report_timestamp(),
            dlsr: block.delay_since_last_sender_report_timestamp(),
        },
    }
}

fn malformed(error: &RtcpParseError) -> Malformed {
    let (offset, reason) = match error {
        RtcpParseError::UnsupportedVersion(_) => (0, "version is not 2"),
        RtcpParseError::Truncated { actual, .. } => (*actual, "shorter than its header announces"),
        RtcpParseError::TooLarge { expected, .. } => (*expected, "longer than its header announces"),
        RtcpParseError::InvalidPadding => (0, "padding of no bytes, or before the last packet"),
        _ => (0, "contents that do not fit its type"),
    };
    Malformed { format: "RTCP", offset, reason }
}

/// A compound packet of a sender: its report and its canonical name (section 6.5.1), of which up
/// to 255 bytes are used.
pub fn sender_report(report: &SenderReport, cname: &str) -> Vec<u8> {
    let sender = WireSenderReport::builder(report.ssrc)
        .ntp_timestamp(report.ntp)
        .rtp_timestamp(report.rtp)
        .packet_count(report.packets)
        .octet_count(report.octets);
    written(named(Compound::builder().add_packet(sender), report.ssrc, cname))
}

/// A compound packet of a receiver: its blocks, of which the first 31 are used, and its
/// canonical name.
pub fn receiver_report(ssrc: u32, blocks: &[ReportBlock], cname: &str) -> Vec<u8> {
    let report = blocks
        .iter()
        .take(MAX_BLOCKS)
        .fold(WireReceiverReport::builder(ssrc), |report, block| report.add_report_block(wire(block)));
    written(named(Compound::builder().add_packet(report), ssrc, cname))
}

/// A compound packet that says goodbye (section 6.6): an empty report, the name, BYE.
pub fn bye(ssrc: u32, cname: &str) -> Vec<u8> {
    written(empty(ssrc, cname).add_packet(Bye::builder().add_source(ssrc)))
}

fn wire(block: &ReportBlock) -> ReportBlockBuilder {
    let lost = block.lost.clamp(-0x80_0000, 0x7f_ffff).cast_unsigned() & 0xff_ffff;
    WireBlock::builder(block.ssrc)
        .fraction_lost(block.fraction_lost)
        .cumulative_lost(lost)
        .extended_sequence_number(block.highest)
        .interarrival_jitter(block.jitter)
        .last_sender_report_timestamp(block.lsr)
        .delay_since_last_sender_report_timestamp(block.dlsr)
}

/// NTP time (RFC 3550 section 4) of a moment given as time since the Unix epoch.
pub fn ntp_time(since_unix_epoch: Duration) -> u64 {
    let seconds = since_unix_epoch.as_secs().wrapping_add(NTP_TO_UNIX);
    let fraction = (u64::from(since_unix_epoch.subsec_nanos()) << 32) / 1_000_000_000;
    seconds << 32 | fraction
}

#[cfg(test)]
mod tests {
    use super::*;

    const SENDER: SenderReport =
        SenderReport { ssrc: 1, ntp: 0x0102_0304_0506_0708, rtp: 9, packets: 10, octets: 11 };
    const BLOCK: ReportBlock =
        ReportBlock { ssrc: 2, fraction_lost: 3, lost: -4, highest: 5, jitter: 6, lsr: 7, dlsr: 8 };

    fn told(data: &[u8]) -> Vec<Report> {
        let mut told = Vec::new();
        read(data, |report| told.push(report)).unwrap();
        told
    }

    #[test]
    fn padding_larger_than_the_packet_is_malformed() {
        let mut app = vec![0xa0, 204, 0, 2, 0, 0, 0, 1];
        app.extend_from_slice(b"na\0\xff");
        assert!(read(&app, |_| {}).is_err());
        app[3] = 3;
        app.extend_from_slice(&[0, 0, 0, 4]);
        assert!(read(&app, |_| {}).is_ok());
    }

    #[test]
    fn a_sender_report_reads_as_it_was_written() {
        let bytes = sender_report(&SENDER, "relay@outflow");
        assert_eq!(bytes.len() % 4, 0);
        assert_eq!(told(&bytes), [Report::Sender(SENDER)]);
        assert!(crate::is_rtcp(&bytes));
        assert!(bytes.windows(13).any(|w| w == b"relay@outflow"));
    }

    #[test]
    fn a_receiver_report_keeps_the_sign_of_what_was_lost() {
        let bytes = receiver_report(99, &[BLOCK], "r");
        let block = Report::Block { from: 99, block: BLOCK };
        assert_eq!(told(&bytes), [Report::Receiver { ssrc: 99 }, block]);
        let huge = ReportBlock { lost: i32::MIN, ..BLOCK };
        let bytes = receiver_report(99, &[huge], "r");
        assert!(matches!(told(&bytes)[1], Report::Block { block, .. } if block.lost == -0x80_0000));
    }

    #[test]
    fn blocks_and_names_beyond_the_limits_are_left_out() {
        let bytes = receiver_report(1, &[BLOCK; 40], &"é".repeat(200));
        assert_eq!(told(&bytes).len(), 1 + MAX_BLOCKS);
    }

    #[test]
    fn goodbyes_are_told() {
        assert_eq!(told(&bye(5, "x")), [Report::Receiver { ssrc: 5 }, Report::Bye { ssrc: 5 }]);
    }

    #[test]
    fn application_packets_are_told() {
        let app = [0x83, 204, 0, 2, 0, 0, 0, 1, b'n', b'a', b'm', b'e'];
        assert_eq!(told(&app), [Report::App { ssrc: 1, name: *b"name", subtype: 3 }]);
    }

    #[test]
    fn truncated_and_foreign_packets_are_refused() {
        let bytes = sender_report(&SENDER, "name");
        // Cutting behind the sender report leaves a valid packet.
        for length in (0..bytes.len()).filter(|l| *l != 28) {
            assert!(read(&bytes[..length], |_| {}).is_err(), "{length}");
        }
        assert!(read(&[0x40, 200, 0, 0], |_| {}).is_err());
        assert!(read(&[0x81, 201, 0, 1, 0, 0, 0, 1], |_| {}).is_err(), "a block that is not there");
    }

    #[test]
    fn the_round_trip_is_what_the_report_did_not_wait() {
        // Sent at 1 s, held for 0.5 s, back at 2 s.
        let block = ReportBlock { lsr: 1 << 16, dlsr: 1 << 15, ..BLOCK };
        assert_eq!(block.round_trip(2 << 32), Some(Duration::from_millis(500)));
        assert_eq!(block.round_trip(1 << 32), None, "it cannot be negative");
        assert_eq!(ReportBlock { lsr: 0, ..BLOCK }.round_trip(2 << 32), None);
    }

    #[test]
    fn ntp_counts_from_1900() {
        assert_eq!(ntp_time(Duration::from_millis(500)), NTP_TO_UNIX << 32 | 1 << 31);
    }
}
