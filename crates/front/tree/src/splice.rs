//! Where the packets of another parent go on from those of the one before. A parent begins with its newest key
//! frame, much of which was published already.
//!
//! Relays hand RTP on with the timestamps and the SSRC of its source, and renumber packets by what they leave
//! out. Datagrams of a transport stream they hand on as they are, but for continuity counters of lower
//! levels. So most packets are known again, whichever relay sends them: what was published is left out, and
//! what comes next gets the next sequence number. Where a new parent begins behind what was published last,
//! one number is left out, so that every receiver sees that something is missing.

#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};
use minicbor::{Decode, Encode};
use outflow_client::Packet;
use outflow_media::{Format, Time};
use outflow_packet::limits::SAME_CLOCK;

use super::limits::{JOINT_WAIT, JOINT_WAIT_RTP, KNOWN_MAX, PENDING_MAX};
use super::mark::{Chain, Mark};

/// What was published of a stream, and how another parent's packets go on from that.
#[derive(Debug)]
pub(super) struct Splice {
    format: Format,
    tracks: Vec<Track>,
    left_out: LeftOut,
}

/// Packets that were not published since the last call that asked for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct LeftOut {
    /// They were before.
    pub(super) repeated: u64,
    /// They were not, and later ones were.
    pub(super) late: u64,
}

#[derive(Debug)]
struct Track {
    clock_rate: Option<u32>,
    known: VecDeque<Mark>,
    /// How many packets were published.
    count: u64,
    chain: Chain,
    last: Option<Last>,
    /// What is added to sequence numbers.
    shift: u16,
    seam: Option<Seam>,
}

/// What RTP says of what was published.
#[derive(Debug, Clone, Copy, Encode, Decode)]
#[cbor(map)]
struct Last {
    #[n(0)]
    ssrc: u32,
    /// Of the last packet.
    #[n(1)]
    sequence: u16,
    /// The newest of all.
    #[n(2)]
    timestamp: u32,
}

/// What was published, as another process goes on from it.
#[derive(Debug, Encode, Decode)]
#[cbor(map)]
pub(super) struct SavedSplice {
    #[n(0)]
    tracks: Vec<SavedTrack>,
}

#[derive(Debug, Encode, Decode)]
#[cbor(map)]
struct SavedTrack {
    #[n(0)]
    known: Vec<Mark>,
    #[n(1)]
    count: u64,
    #[n(2)]
    chain: Chain,
    #[n(3)]
    last: Option<Last>,
    #[n(4)]
    shift: u16,
}

/// A new parent's packets, until they have come to what was published last.
#[derive(Debug)]
struct Seam {
    /// When the first of them came.
    since: Option<Time>,
    chain: Chain,
    /// Whether anything was known again.
    has_met: bool,
    /// Those that were not known, since the last one that was.
    pending: VecDeque<Packet>,
}

/// How far a new parent's packets have come, while the one before still sends.
#[derive(Debug, Default)]
pub(super) struct Approach {
    /// So much was published when it began.
    from: Option<u64>,
    chain: Chain,
    /// The first of them that was newer than all that was published, and when it came.
    beyond: Option<(Mark, Time)>,
}

/// A new parent's packets are not those of the same stream. What came of them.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Strange(pub(super) Vec<Packet>);

impl Splice {
    /// Nothing was published yet.
    pub(super) fn new(format: &Format) -> Self {
        let track = |clock_rate| Track {
            clock_rate,
            known: VecDeque::new(),
            count: 0,
            chain: Chain::default(),
            last: None,
            shift: 0,
            seam: None,
        };
        let tracks = match format {
            Format::Rtp(tracks) => tracks.iter().map(|of| track(Some(of.clock_rate))).collect(),
            Format::Ts | Format::Images | Format::Data => vec![track(None)],
        };
        Splice { format: format.clone(), tracks, left_out: LeftOut::default() }
    }

    /// What another process goes on from. None while the packets of two parents are put together.
    pub(super) fn save(&self) -> Option<SavedSplice> {
        let track = |track: &Track| {
            let &Track { count, chain, last, shift, .. } = track;
            let known = track.known.iter().copied().collect();
            track.seam.is_none().then_some(SavedTrack { known, count, chain, last, shift })
        };
        Some(SavedSplice { tracks: self.tracks.iter().map(track).collect::<Option<_>>()? })
    }

    /// Goes on from what another process has published. None if that was something else.
    pub(super) fn restore(format: &Format, saved: SavedSplice) -> Option<Self> {
        let mut splice = Splice::new(format);
        if splice.tracks.len() != saved.tracks.len() {
            return None;
        }
        for (track, saved) in splice.tracks.iter_mut().zip(saved.tracks) {
            let SavedTrack { known, count, chain, last, shift } = saved;
            if known.len() > KNOWN_MAX || (known.len() as u64) > count {
                return None;
            }
            let clock_rate = track.clock_rate;
            *track = Track { clock_rate, known: known.into(), count, chain, last, shift, seam: None };
        }
        Some(splice)
    }

    /// Whether a parent that begins with this packet may send the same stream, as far as that shows.
    pub(super) fn may_go_on(&self, format: &Format, first: &Packet) -> bool {
        // The numbers of encrypted packets cannot be changed (RFC 3711 section 3.1).
        let is_fixed = matches!(format, Format::Rtp(tracks) if tracks.iter().any(|t| t.codec.is_srtp()));
        if is_fixed || *format != self.format {
            return false;
        }
        match self.tracks.get(usize::from(first.track)) {
            Some(Track { last: Some(last), clock_rate: Some(rate), .. }) => first.rtp.is_some_and(|stamp| {
                let ticks =
                    u64::from(stamp.timestamp.wrapping_sub(last.timestamp).cast_signed().unsigned_abs());
                stamp.ssrc == last.ssrc && ticks <= SAME_CLOCK.as_secs() * u64::from(*rate)
            }),
            Some(_) => true,
            None => false,
        }
    }

    /// Whether the packets of a new parent have come to what is published just now.
    pub(super) fn is_reached(&self, approach: &mut Approach, packet: &Packet) -> bool {
        let main = self.format.main_track();
        let Some(track) = self.tracks.get(usize::from(main)).filter(|_| packet.track == main) else {
            return false;
        };
        let from = *approach.from.get_or_insert(track.count);
        let mark = approach.chain.mark(packet, track.clock_rate.is_some());
        let first = track.count - track.known.len() as u64;
        let place = track.known.iter().rposition(|known| *known == mark);
        let is_near = place.is_some_and(|place| first + place as u64 + 1 >= from);
        if is_near || track.count == 0 {
            return true;
        }
        if approach.beyond.is_none() && track.is_beyond(packet) {
            approach.beyond = Some((mark, packet.arrived));
        }
        // What lies between is still on its way from the parent before.
        approach.beyond.is_some_and(|(begins, since)| {
            track.known.contains(&begins) || packet.arrived.since(since) > JOINT_WAIT
        })
    }

    /// Another parent's packets come from now on.
    pub(super) fn change(&mut self) {
        for track in self.tracks.iter_mut().filter(|track| track.count > 0) {
            let (chain, pending) = (Chain::default(), VecDeque::new());
            track.seam = Some(Seam { since: None, chain, has_met: false, pending });
        }
    }

    /// What is to be published now that this packet has come goes to `out`.
    ///
    /// # Errors
    /// It shows that this is not the same stream.
    pub(super) fn take(&mut self, packet: Packet, mut out: impl FnMut(Packet)) -> Result<(), Strange> {
        let Some(track) = self.tracks.get_mut(usize::from(packet.track)) else { return Ok(()) };
        if track.seam.is_none() {
            out(track.publish(packet));
            return Ok(());
        }
        let ready = track.join(packet, &mut self.left_out)?;
        ready.into_iter().for_each(|packet| out(track.publish(packet)));
        Ok(())
    }

    /// What was left out since this was asked last.
    pub(super) fn take_left_out(&mut self) -> LeftOut {
        core::mem::take(&mut self.left_out)
    }
}

impl Track {
    /// Whether it is newer than all that was published, by its timestamp.
    fn is_beyond(&self, packet: &Packet) -> bool {
        let stamps = self.last.filter(|_| self.clock_rate.is_some()).zip(packet.rtp);
        stamps.is_some_and(|(last, stamp)| {
            stamp.ssrc == last.ssrc && stamp.timestamp.wrapping_sub(last.timestamp).cast_signed() > 0
        })
    }

    /// Takes a packet of a new parent. Returns what goes on from what was published last.
    fn join(&mut self, packet: Packet, left_out: &mut LeftOut) -> Result<VecDeque<Packet>, Strange> {
        let is_beyond = self.is_beyond(&packet);
        let is_rtp = self.clock_rate.is_some();
        let Some(seam) = &mut self.seam else { return Ok(VecDeque::from([packet])) };
        let mark = seam.chain.mark(&packet, is_rtp);
        if let Some(place) = self.known.iter().rposition(|known| *known == mark) {
            seam.has_met = true;
            // They are older than this one, and were forgotten, or lost on the way of the parent before.
            left_out.late += seam.pending.drain(..).count() as u64;
            left_out.repeated += 1;
            if place + 1 == self.known.len() {
                self.seam = None;
                self.number_from(packet.rtp.map(|stamp| stamp.sequence), 0);
            }
            return Ok(VecDeque::new());
        }
        let waited = packet.arrived.since(*seam.since.get_or_insert(packet.arrived));
        let has_met = seam.has_met;
        seam.pending.push_back(packet);
        let is_full = seam.pending.len() > PENDING_MAX;
        if is_rtp && is_full {
            // By its timestamp it is older than what was published.
            left_out.late += u64::from(seam.pending.pop_front().is_some());
        }
        let is_late = if is_rtp { waited > JOINT_WAIT_RTP } else { waited > JOINT_WAIT || is_full };
        if !is_beyond && !is_late {
            return Ok(VecDeque::new());
        }
        let pending = core::mem::take(&mut seam.pending);
        if !is_beyond && !has_met {
            return Err(Strange(pending.into()));
        }
        self.seam = None;
        let missing = if has_met { 1 } else { 2 };
        self.number_from(pending.front().and_then(|first| Some(first.rtp?.sequence)), missing);
        Ok(pending)
    }

    /// Has the packet of this number be so much behind the last one.
    fn number_from(&mut self, sequence: Option<u16>, behind: u16) {
        if let (Some(last), Some(sequence)) = (self.last, sequence) {
            self.shift = last.sequence.wrapping_add(behind).wrapping_sub(sequence);
        }
    }

    /// Notes a packet that is published, and numbers it.
    fn publish(&mut self, mut packet: Packet) -> Packet {
        let is_rtp = self.clock_rate.is_some();
        if self.known.len() >= KNOWN_MAX {
            self.known.pop_front();
        }
        self.known.push_back(self.chain.mark(&packet, is_rtp));
        self.count += 1;
        let Some(stamp) = packet.rtp.as_mut().filter(|_| is_rtp) else { return packet };
        if self.shift != 0 {
            stamp.sequence = stamp.sequence.wrapping_add(self.shift);
            packet.bytes = numbered(packet.bytes, stamp.sequence);
        }
        let before = self.last.filter(|last| last.ssrc == stamp.ssrc).map(|last| last.timestamp);
        let is_newer = before.is_none_or(|before| stamp.timestamp.wrapping_sub(before).cast_signed() > 0);
        let timestamp = before.filter(|_| !is_newer).unwrap_or(stamp.timestamp);
        self.last = Some(Last { ssrc: stamp.ssrc, sequence: stamp.sequence, timestamp });
        packet
    }
}

/// The packet with another sequence number; copied only if another holder shares it.
pub(super) fn numbered(bytes: Bytes, sequence: u16) -> Bytes {
    let mut own = bytes.try_into_mut().unwrap_or_else(|shared| BytesMut::from(&shared[..]));
    outflow_rtp::set_sequence(&mut own, sequence);
    own.freeze()
}
