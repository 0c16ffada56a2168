//! Repair packets (FlexFEC) for the picture of a viewer that is too far away for packets to be sent once more in time.
//!
//! A packet that is sent once more comes a round trip, and a little, after its turn. A browser's picture waits for that, but
//! not for ever ([`FEC_ROUND_TRIP`]): beyond, each loss is a picture that stands still. A repair packet comes with what it
//! repairs. It costs its bytes whether something is lost or not; so there are none where nothing is lost, or where there is
//! time, or where the way carries less than the stream has.
//!
//! How many there are follows what is lost: a repair packet brings one packet of its group back, so it takes about as many
//! as packets are lost, and as many again, as losses are not spread evenly ([`FEC_TIMES_LOST`]). Each packet of the picture
//! adds its share of bytes to what may be spent; a repair packet goes when its bytes are there, where a picture ends or the
//! group has as many packets as the share is for. So small pictures share one, and large ones have several. A key frame, on
//! which all others depend, has groups half as large, on credit, which the pictures behind it pay back: in all it is the
//! same share.

use core::time::Duration;
use std::sync::Arc;

use outflow_congestion::{Lowest, Outcome};
use outflow_media::Time;
use outflow_rtp::flexfec::Parity;
use outflow_rtp::{HEADER, PlainHeader};

use crate::limits::{
    FEC_CREDIT_BYTES, FEC_KEY_DEBT_BYTES, FEC_LITTLE_PERMILLE, FEC_LOSES_PERMILLE, FEC_LOST_OF,
    FEC_PERMILLE_MAX, FEC_ROUND_TRIP, FEC_ROUND_TRIP_OVER_MS, FEC_STAYS_PERCENT, FEC_TIMES_LOST,
    FEC_TOLD_LEAST,
};
use crate::repairs::Repairs;

/// By what repair packets go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Protection {
    pub(crate) payload_type: u8,
    pub(crate) ssrc: u32,
    /// The source that they are for.
    pub(crate) media: u32,
}

/// Those of a viewer.
#[derive(Debug)]
pub(crate) struct Fec {
    protection: Protection,
    /// The number of the next one, counted on beyond 16 bits.
    next: u32,
    is_on: bool,
    /// Of the newest packets, how many the viewer has told of, and a thousand times how many of these are lost.
    told: u32,
    lost: u32,
    /// In microseconds: from when a packet is sent to when the viewer is heard to have it.
    round_trip: Lowest<FEC_ROUND_TRIP_OVER_MS>,
    /// Bytes of repair packets for a thousand of the picture.
    permille: u32,
    /// A thousand times the bytes that repair packets may have.
    credit: i64,
    /// What the next one covers, and since when; it is to go.
    group: Parity,
    began: Time,
    is_due: bool,
    /// When the newest packet of it is shown.
    timestamp: u32,
    sent: Arc<Repairs>,
}

impl Fec {
    /// One whose numbers begin where `random` says.
    pub(crate) fn new(protection: Protection, random: u32, sent: Arc<Repairs>) -> Self {
        Fec::from((protection, 256 + (random >> 8 & 0x3fff)), sent)
    }

    /// It goes on with what another process has [saved](Self::save). What is lost is found out again.
    pub(crate) fn resume((payload_type, ssrc, media, next): (u8, u32, u32, u32), sent: Arc<Repairs>) -> Self {
        Fec::from((Protection { payload_type, ssrc, media }, next), sent)
    }

    fn from((protection, next): (Protection, u32), sent: Arc<Repairs>) -> Self {
        Fec {
            protection,
            next,
            is_on: false,
            told: 0,
            lost: 0,
            round_trip: Lowest::default(),
            permille: 0,
            credit: 0,
            group: Parity::default(),
            began: Time::ZERO,
            is_due: false,
            timestamp: 0,
            sent,
        }
    }

    /// By what they go, and the next number.
    pub(super) fn save(&self) -> (u8, u32, u32, u32) {
        let Protection { payload_type, ssrc, media } = self.protection;
        (payload_type, ssrc, media, self.next)
    }

    /// The source that is protected.
    pub(super) fn media(&self) -> u32 {
        self.protection.media
    }

    /// The viewer says what became of a packet.
    pub(super) fn hear(&mut self, now: Time, outcome: &Outcome) {
        let has_come = outcome.received_us.is_some();
        if outcome.was_lost {
            // It has only been late.
            self.lost = self.lost.saturating_sub(if has_come { 1000 } else { 0 });
            return;
        }
        (self.told, self.lost) = (self.told + 1, self.lost + if has_come { 0 } else { 1000 });
        if has_come {
            self.round_trip.note(now, now.since(outcome.sent).as_micros() as i64);
        }
        if self.told >= FEC_LOST_OF {
            (self.told, self.lost) = (self.told / 2, self.lost / 2);
        }
    }

    /// How far away the viewer is, as far as that is known.
    fn round_trip(&self) -> Duration {
        Duration::from_micros(self.round_trip.lowest().unwrap_or(0).max(0).cast_unsigned())
    }

    /// Whether packets are to be covered from now on; `may` says whether there is room for that.
    pub(super) fn judge(&mut self, may: bool) -> bool {
        // What has begun does not end at once.
        let eased = |value: u32| if self.is_on { value * FEC_STAYS_PERCENT / 100 } else { value };
        let lost_permille = if self.told < FEC_TOLD_LEAST { 0 } else { self.lost / self.told };
        let loses = lost_permille >= eased(FEC_LOSES_PERMILLE);
        let is_late = self.round_trip() >= FEC_ROUND_TRIP * eased(100) / 100;
        let is_on = may && loses && is_late;
        if is_on && !self.is_on {
            self.drop_group();
            self.credit = 0;
        }
        self.is_on = is_on;
        self.permille = (FEC_TIMES_LOST * lost_permille + FEC_LITTLE_PERMILLE).min(FEC_PERMILLE_MAX);
        is_on
    }

    /// A packet goes, as it is before it is sealed, but for the element `changes` of its header extension: of a key frame or
    /// not, the last of its picture or not. Answers the bytes of the repair packet that is wanted behind it, if one is.
    pub(super) fn cover(
        &mut self,
        now: Time,
        (packet, changes): (&[u8], Option<u8>),
        (is_key, ends): (bool, bool),
    ) -> Option<usize> {
        // The oldest one that is covered would come sooner if it was sent once more. One that is due has not gone.
        if self.is_due || now.since(self.began) > self.round_trip() {
            self.drop_group();
        }
        if !self.group.cover(packet, changes) {
            self.drop_group();
            self.group.cover(packet, changes).then_some(())?;
        }
        if self.group.packets() == 1 {
            self.began = now;
        }
        self.timestamp = packet.get(4..8).and_then(|at| at.try_into().ok()).map_or(0, u32::from_be_bytes);
        let earned = i64::try_from(packet.len()).ok()? * i64::from(self.permille);
        self.credit = (self.credit + earned).min(1000 * FEC_CREDIT_BYTES);
        let (debt, times) = if is_key { (FEC_KEY_DEBT_BYTES, 2) } else { (0, 1) };
        let is_enough = self.group.packets() * self.permille * times >= 1000;
        let is_wanted = (ends || is_enough) && self.credit + 1000 * debt >= self.cost();
        is_wanted.then(|| self.bytes())
    }

    /// The repair packet that is wanted is to go, as there is room for it; or it is not.
    pub(super) fn settle(&mut self, goes: bool) {
        self.is_due = goes;
        if !goes {
            self.drop_group();
        }
    }

    /// Whether one is to go.
    pub(super) fn is_due(&self) -> bool {
        self.is_due
    }

    /// Bytes of it, before it is sealed.
    pub(super) fn bytes(&self) -> usize {
        HEADER + size_of_val(&elements(0, 0)) + self.group.bytes()
    }

    /// Writes it behind what is in `out`, with its number of the transport in the element of this identifier. Answers how
    /// often its own numbers have come round.
    pub(super) fn write(&mut self, (id, number): (u8, u16), out: &mut Vec<u8>) -> u32 {
        let Protection { payload_type, ssrc, .. } = self.protection;
        let (sequence, timestamp) = (self.next as u16, self.timestamp);
        let header = PlainHeader { marker: false, payload_type, sequence, timestamp, ssrc };
        let mut header = header.emit();
        header[0] |= EXTENDED;
        out.extend_from_slice(&header);
        out.extend_from_slice(&elements(id, number));
        self.group.write(out);
        self.credit -= self.cost();
        self.sent.count();
        self.drop_group();
        self.next += 1;
        (self.next - 1) >> 16
    }

    fn cost(&self) -> i64 {
        1000 * self.bytes() as i64
    }

    fn drop_group(&mut self) {
        self.is_due = false;
        self.group.clear();
    }
}

/// A header extension stands behind the header (RFC 3550, section 5.1).
const EXTENDED: u8 = 0x10;

/// A header extension with a number of the transport (RFC 8285, section 4.2).
fn elements(id: u8, number: u16) -> [u8; 8] {
    let [high, low] = number.to_be_bytes();
    [0xbe, 0xde, 0, 1, id << 4 | 1, high, low, 0]
}

#[cfg(test)]
mod tests;
