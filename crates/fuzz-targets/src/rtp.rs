//! RTP and RTCP packets.

use outflow_media::{Malformed, Time};
use outflow_rtp::rtcp::{Report, ReportBlock};
use outflow_rtp::{Reception, RtpHeader, rtcp};

use crate::packets::packets;

/// Headers, extensions, changes in place, and what is counted of the packets.
pub(crate) fn rtp(data: &[u8]) {
    let mut reception = Reception::new(1, 90_000);
    for (index, packet) in packets(data).enumerate() {
        let now = Time::from_millis(index as u64);
        let Ok(header) = RtpHeader::new_checked(packet) else { continue };
        assert_eq!(header.payload(), &packet[header.payload_offset()..][..header.payload().len()]);
        header.extensions().for_each(|extension| assert!(extension.data.len() <= 255));
        reception.packet(header.sequence(), header.timestamp(), now);
        let block = reception.report(now);
        let bytes = rtcp::receiver_report(9, &[block], "fuzz");
        assert_eq!(told(&bytes).expect("its own report"), [block]);
        let mut changed = packet.to_vec();
        outflow_rtp::set_sequence(&mut changed, 7);
        outflow_rtp::set_timestamp(&mut changed, 8);
        outflow_rtp::set_ssrc(&mut changed, 9);
        outflow_rtp::set_payload_type(&mut changed, 33);
        let read = RtpHeader::new_checked(&changed).expect("no length was changed");
        assert_eq!((read.sequence(), read.timestamp(), read.ssrc()), (7, 8, 9));
        assert_eq!((read.payload_type(), read.marker()), (33, header.marker()));
    }
}

/// Compound packets; the blocks that are read must be written as they were, and told of others when they are renamed.
pub(crate) fn rtcp(data: &[u8]) {
    let mut renamed = data.to_vec();
    rtcp::rename(&mut renamed, true, |source| Some(source ^ 1));
    let _shorter = rtcp::without_estimate(data);
    let Ok(blocks) = told(data) else { return };
    let others = blocks.iter().map(|block| ReportBlock { ssrc: block.ssrc ^ 1, ..*block });
    assert_eq!(told(&renamed).expect("no length was changed"), others.collect::<Vec<_>>());
    let read = told(&rtcp::receiver_report(1, &blocks, "fuzz"));
    assert_eq!(read.expect("its own report"), blocks[..blocks.len().min(rtcp::MAX_BLOCKS)]);
}

fn told(data: &[u8]) -> Result<Vec<ReportBlock>, Malformed> {
    let mut blocks = Vec::new();
    rtcp::read(data, |report| {
        if let Report::Block { block, .. } = report {
            block.round_trip(1 << 40);
            blocks.push(block);
        }
    })?;
    Ok(blocks)
}
