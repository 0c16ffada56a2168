//! The sender reports of a stream's branches.

use outflow_media::{Format, Time};
use outflow_relay::Stream;
use outflow_rtp::rtcp::{self, SenderReport};

/// The name under which the relay reports (RFC 3550, section 6.5.1).
pub(super) const CNAME: &str = "outflow";

/// The sender reports of a branch, by track, as they go on the wire.
pub(super) fn reports_of(core: &Stream, now: Time, branch: usize) -> Vec<(u8, Vec<u8>)> {
    let wire = |(track, report)| (track, rtcp::sender_report(&report, CNAME));
    senders_of(core, now, branch).map(wire).collect()
}

/// What there is to report of a branch, by track.
pub(super) fn senders_of(
    core: &Stream,
    now: Time,
    branch: usize,
) -> impl Iterator<Item = (u8, SenderReport)> {
    let format = core.branch_format(branch);
    let tracks = format.map_or(0, Format::tracks).min(usize::from(u8::MAX)) as u8;
    // A receiver that gets a track encrypted takes no report that is not (RFC 3711, section 3.4).
    let is_plain = move |track: &u8| {
        format.and_then(|format| format.track(*track)).is_none_or(|track| !track.codec.is_srtp())
    };
    let report = move |track| Some((track, core.sender_report(now, branch, track)?));
    (0..tracks).filter(is_plain).filter_map(report)
}

/// The track of a branch that goes out with this SSRC.
pub(super) fn track_of(core: &Stream, now: Time, branch: usize, ssrc: u32) -> Option<u8> {
    let tracks = core.branch_format(branch).map_or(0, Format::tracks);
    let report = |track| core.sender_report(now, branch, track);
    let is_it = |track: &u8| report(*track).is_some_and(|report| report.ssrc == ssrc);
    (0..tracks.min(255) as u8).find(is_it)
}
