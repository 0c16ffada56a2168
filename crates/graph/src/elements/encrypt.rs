//! RTP into SRTP (RFC 3711).

use core::any::Any;

use libsrtp::SendSession;
use minicbor::{Decode, Encode};
use outflow_media::{Codec, Format, Time};
use outflow_packet::{DropReason, TrackMask};
use outflow_rtp::{PlainHeader, RtpHeader, sequence_distance};

use super::select::{can_be_changed, mask};
use super::srtp::{KEY, LONGER, SUITE, Secret, TRACKS, WINDOW, owned, refused, replace};
use crate::limits::{FLOWS_MAX, LATE_IN_A_ROW_MAX, ROLLOVERS_MAX};
use crate::{
    Content, Contents, Contract, Element, Gives, Item, Kind, Make, Numbering, OUT, Replay, Settings, Tally,
    Unfit,
};

/// The element.
///
/// The header stays readable, and so does the tag: later elements still choose by frame. But sequence
/// numbers are final behind it, because they are signed: what is left out there looks lost to receivers.
///
/// A key is for one such element of one stream, and for one run of the relay: the same numbers of the
/// same source encrypted twice with one key can be read by comparing them. A reload, and an upgrade, go on
/// where the element before it stopped, as long as it keeps its name and its key.
pub const KIND: Kind = Kind {
    name: "encrypt",
    doc: "Encrypts and signs RTP (SRTP, RFC 3711); headers stay readable. One key for each such element.",
    contract: |settings| {
        let srtp = Contents::of(&[Content::Srtp]);
        // Tracks that are not asked for stay as they are.
        let gives = if settings.has(TRACKS.name) { Contents::RTP.with(srtp) } else { srtp };
        Contract::new(Contents::RTP, Gives::OneOf(gives))
    },
    outputs: OUT,
    options: &[SUITE, KEY, TRACKS],
    make: Make::Core(|settings| Ok(Box::new(Encrypt::new(settings)?))),
};

struct Encrypt {
    secret: Secret,
    asked: TrackMask,
    tracks: TrackMask,
    inner: Inner,
}

/// What another element with the same key goes on from.
struct Inner {
    session: SendSession,
    numbering: Numbering,
    flows: Vec<Flow>,
}

/// One source, whose numbers must go on: a number that the key was used with is not used again.
#[derive(Debug)]
struct Flow {
    ssrc: u32,
    highest: u16,
    /// What is added, since the source began again.
    offset: u16,
    late_in_a_row: u8,
}

/// A flow that goes on in another process.
#[derive(Debug, Clone, Copy, Encode, Decode)]
#[cbor(map)]
struct SavedFlow {
    #[n(0)]
    ssrc: u32,
    #[n(1)]
    highest: u16,
    #[n(2)]
    offset: u16,
    /// How often the numbers have begun again (RFC 3711, section 3.3.1).
    #[n(3)]
    rollover: u32,
}

/// How far the numbers of packets are apart by which a session counts: less than half of them.
const STRIDE: u16 = 1 << 14;

impl core::fmt::Debug for Encrypt {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Encrypt").field("secret", &self.secret).finish_non_exhaustive()
    }
}

impl Encrypt {
    fn new(settings: &Settings) -> Result<Self, Unfit> {
        let secret = Secret::new(settings)?;
        let mut session = SendSession::new();
        let refused = |error| Unfit::new(format!("the key cannot be used ({error})"), "write another one");
        session.add_stream(None, &secret.config()).map_err(refused)?;
        Ok(Encrypt {
            secret,
            asked: settings.numbers("tracks").map_or(TrackMask::ALL, |tracks| mask(&tracks)),
            tracks: TrackMask::NONE,
            inner: Inner { session, numbering: Numbering::default(), flows: Vec::new() },
        })
    }
}

impl Inner {
    /// Whether a packet goes on; counts it if not.
    fn take(&mut self, item: &mut Item, tally: &mut Tally) -> bool {
        self.numbering.number(item);
        let mut whole = owned(item, LONGER);
        let Ok(header) = RtpHeader::new_checked(&whole) else {
            tally.drop(DropReason::Malformed);
            return false;
        };
        let (ssrc, sequence) = (header.ssrc(), header.sequence());
        let sequence = match self.number(ssrc, sequence) {
            Ok(sequence) => sequence,
            Err(DropReason::ElementFault) => {
                tally.fail(format!("more than {FLOWS_MAX} sources with one key: give it another one"));
                tally.drop(DropReason::ElementFault);
                return false;
            }
            Err(reason) => {
                tally.drop(reason);
                return false;
            }
        };
        outflow_rtp::set_sequence(&mut whole, sequence);
        match self.session.rtp_protect(whole) {
            Ok(whole) => {
                replace(item, whole);
                item.keep_number();
                true
            }
            Err(error) => {
                refused(tally, &error);
                false
            }
        }
    }

    fn save(&self) -> Vec<SavedFlow> {
        let flow = |&Flow { ssrc, highest, offset, .. }: &Flow| {
            let rollover = self.session.get_roc(ssrc).ok()?;
            Some(SavedFlow { ssrc, highest, offset, rollover })
        };
        self.flows.iter().filter_map(flow).collect()
    }

    /// Goes on with a flow. What sends cannot be told how often the numbers have begun again: it counts that by packets
    /// which nothing gets.
    fn restore(&mut self, SavedFlow { ssrc, highest, offset, rollover }: SavedFlow) -> Option<()> {
        if rollover >= ROLLOVERS_MAX || self.flows.len() == FLOWS_MAX {
            return None;
        }
        let rounds = (0..rollover).flat_map(|_| (0..4).map(|quarter| quarter * STRIDE));
        let last = (0..4).map(|quarter| quarter * STRIDE).filter(|number| *number < highest);
        let mut count = |sequence| {
            let header = PlainHeader { marker: false, payload_type: 0, sequence, timestamp: 0, ssrc };
            self.session.rtp_protect(header.emit().to_vec())
        };
        for sequence in rounds.chain(last).chain([highest]) {
            count(sequence).ok()?;
        }
        for back in (1..WINDOW).filter(|back| rollover > 0 || *back <= highest) {
            // Some of them it has counted by.
            let _ = count(highest.wrapping_sub(back));
        }
        self.session.get_roc(ssrc).ok().filter(|counted| *counted == rollover)?;
        self.flows.push(Flow { ssrc, highest, offset, late_in_a_row: 0 });
        Some(())
    }

    /// The number that a packet gets: its own, as long as its source does not begin again.
    fn number(&mut self, ssrc: u32, sequence: u16) -> Result<u16, DropReason> {
        let flow = match self.flows.iter_mut().position(|flow| flow.ssrc == ssrc) {
            Some(at) => &mut self.flows[at],
            None if self.flows.len() == FLOWS_MAX => return Err(DropReason::ElementFault),
            None => {
                let before = sequence.wrapping_sub(1);
                self.flows.push(Flow { ssrc, highest: before, offset: 0, late_in_a_row: 0 });
                self.flows.last_mut().expect("it was put there")
            }
        };
        let mut step = sequence_distance(flow.highest, sequence.wrapping_add(flow.offset));
        if step <= -WINDOW.cast_signed() {
            flow.late_in_a_row += 1;
            if flow.late_in_a_row < LATE_IN_A_ROW_MAX {
                return Err(DropReason::Late);
            }
            flow.offset = flow.offset.wrapping_add(1_u16.wrapping_sub(step.cast_unsigned()));
            step = 1;
        }
        flow.late_in_a_row = 0;
        if step > 0 {
            flow.highest = flow.highest.wrapping_add(step.cast_unsigned());
        }
        Ok(sequence.wrapping_add(flow.offset))
    }
}

impl Element for Encrypt {
    fn bind(&mut self, input: &Format) -> Result<Format, Unfit> {
        let Format::Rtp(tracks) = input else {
            return Err(Unfit::new("what comes in is no RTP", "let it take from where there is RTP"));
        };
        self.tracks = TrackMask::NONE;
        let mut out = tracks.clone();
        for (index, track) in out.iter_mut().enumerate() {
            if can_be_changed(self.asked, index, track) {
                self.tracks = self.tracks.with(TrackMask::only(index as u8));
                track.codec = Codec::Srtp { video: track.codec.is_video() };
            }
        }
        if self.tracks.is_empty() {
            let help = "write the number of one that is not encrypted yet in `tracks`; the first is 0";
            return Err(Unfit::new("no track to encrypt", help));
        }
        Ok(Format::Rtp(out))
    }

    fn work(&mut self, _: Time, batch: &mut Vec<Item>, tally: &mut Tally) {
        let Encrypt { tracks, inner, .. } = self;
        batch.retain_mut(|item| !tracks.has(item.packet.tag.track) || inner.take(item, tally));
    }

    fn state(&mut self) -> Option<Box<dyn Any + Send>> {
        let none = Inner { session: SendSession::new(), numbering: Numbering::default(), flows: Vec::new() };
        Some(Box::new((self.secret.clone(), core::mem::replace(&mut self.inner, none))))
    }

    fn save(&self) -> Option<Vec<u8>> {
        minicbor::to_vec(self.inner.save()).ok()
    }

    fn restore(&mut self, saved: &[u8], at: Replay<'_>) {
        if at == Replay::After
            && let Ok(flows) = minicbor::decode::<Vec<SavedFlow>>(saved)
        {
            for flow in flows {
                // One that has gone on for longer begins again: docs/operations.md says what to do before.
                let _ = self.inner.restore(flow);
            }
        }
    }

    fn resume(&mut self, state: Box<dyn Any + Send>) {
        if let Ok(state) = state.downcast::<(Secret, Inner)>() {
            let (secret, inner) = *state;
            // With another key, numbers may begin again.
            if secret == self.secret {
                self.inner = inner;
            }
        }
    }
}

#[cfg(test)]
mod tests;
