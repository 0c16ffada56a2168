//! RTP packets of several tracks into access units.

use bytes::Bytes;
use outflow_media::{AccessUnit, Format, Time, Track};
use outflow_rtp::RtpHeader;
use outflow_rtp::payload::depacketize::{Depacketizer, Dropped};

use crate::clock::Clocks;
use crate::save::SavedClocks;
use crate::times::Times;

/// Puts the access units of RTP tracks together, and gives them times of one timeline.
///
/// The tracks' clocks are brought together by their sender reports, and until those come by the arrival
/// of their first packets. Decoding times are worked out from the depth of reordering that the parameter
/// sets tell, or else from what is seen.
#[derive(Debug)]
pub struct FromRtp {
    /// By track; `None` for what is passed over.
    tracks: Vec<Option<Input>>,
    clocks: Clocks,
}

/// One track whose units are told.
#[derive(Debug)]
struct Input {
    depacketizer: Depacketizer,
    times: Times,
}

impl FromRtp {
    /// Of these tracks, without those that are not wanted, and those whose access units cannot be told.
    pub fn new(tracks: &[Track], is_wanted: impl Fn(usize) -> bool) -> Self {
        let main = usize::from(Format::Rtp(tracks.to_vec()).main_track());
        let input = |(index, track): (usize, &Track)| {
            let depacketizer = Depacketizer::new(track).filter(|_| is_wanted(index))?;
            Some(Input { depacketizer, times: Times::of(&track.codec) })
        };
        FromRtp {
            tracks: tracks.iter().enumerate().map(input).collect(),
            clocks: Clocks::new(tracks.iter().map(|track| track.clock_rate), main),
        }
    }

    /// Its timeline, for another process.
    pub fn save(&self) -> Option<SavedClocks> {
        self.clocks.save()
    }

    /// Goes on with the timeline of another process.
    pub fn restore(&mut self, saved: &SavedClocks) {
        self.clocks.restore(saved);
    }

    /// Takes one RTP packet, header included, and gives the units that it completes.
    pub fn push(&mut self, track: u8, packet: &Bytes, arrived: Time, out: &mut impl FnMut(AccessUnit)) {
        let track = usize::from(track);
        let FromRtp { tracks, clocks } = self;
        let Some(Some(Input { depacketizer, times })) = tracks.get_mut(track) else { return };
        if !clocks.has_begun(track)
            && let Ok(header) = RtpHeader::new_checked(packet)
        {
            clocks.stamp(track, header.timestamp(), arrived);
        }
        depacketizer.handle(packet.clone(), |unit| {
            let stamp = clocks.stamp(track, unit.timestamp, arrived);
            let (pts, dts) = times.next(&unit, stamp);
            out(AccessUnit { track, pts, dts, key: unit.key, data: unit.data });
        });
    }

    /// A sender report of a track came: the same moment as NTP time and as RTP timestamp. It is
    /// not believed if its timestamp is far from what arrives.
    pub fn sender_report(&mut self, track: u8, ntp: u64, rtp: u32, now: Time) {
        self.clocks.sender_report(usize::from(track), ntp, rtp, now);
    }

    /// What was dropped, of all tracks.
    pub fn dropped(&self) -> Dropped {
        self.tracks.iter().flatten().fold(Dropped::default(), |sum, input| {
            let dropped = input.depacketizer.dropped();
            Dropped {
                incomplete: sum.incomplete + dropped.incomplete,
                too_large: sum.too_large + dropped.too_large,
                late: sum.late + dropped.late,
                malformed: sum.malformed + dropped.malformed,
            }
        })
    }
}
