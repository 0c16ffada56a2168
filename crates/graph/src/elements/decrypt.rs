//! SRTP (RFC 3711) into RTP.

use core::any::Any;

use libsrtp::{RecvSession, SrtpError, StreamConfig};
use outflow_media::{Codec, Format, Time, Track};
use outflow_packet::{DropReason, TrackMask};
use outflow_rtp::payload::RtpReader;
use outflow_rtp::{RtpHeader, sdp};

use super::select::mask;
use super::srtp::{KEY, SUITE, Secret, TRACKS, owned, refused, replace};
use crate::limits::{FLOWS_MAX, ROLLOVERS_AT_ONCE, ROLLOVERS_MAX};
use crate::{
    Content, Contents, Contract, Control, Element, Gives, Item, Kind, Make, Message, OUT, Places, Settings,
    Signals, Tally, Unfit,
};

/// The element.
///
/// How often the sequence numbers of a source have begun again is part of what is signed, and not in the
/// packet. A receiver that joins late is not told; so it is tried, from zero on, until a packet turns out to
/// be authentic ([`ROLLOVERS_AT_ONCE`]).
pub const KIND: Kind = Kind {
    name: "decrypt",
    doc: "Checks and decrypts SRTP (RFC 3711); what comes out is what the description says of it.",
    contract: |_| {
        let takes = Contents::RTP.with(Contents::of(&[Content::Srtp]));
        Contract::new(takes, Gives::OneOf(Contents::RTP)).with(Control::hears(Signals::BREAK))
    },
    outputs: OUT,
    options: &[SUITE, KEY, TRACKS],
    make: Make::Core(|settings| Ok(Box::new(Decrypt::new(settings)?))),
};

struct Decrypt {
    secret: Secret,
    asked: Option<TrackMask>,
    tracks: Vec<Option<Clear>>,
    inner: Inner,
}

/// What becomes of a track: its packets are parsed only now.
#[derive(Debug)]
struct Clear {
    reader: RtpReader,
    places: Places,
}

/// What another element with the same key goes on from.
struct Inner {
    session: RecvSession,
    config: StreamConfig,
    flows: Vec<Flow>,
}

/// One source.
#[derive(Debug)]
struct Flow {
    ssrc: u32,
    /// The rollover to be tried next; `None` once it is known.
    search: Option<u32>,
}

impl core::fmt::Debug for Decrypt {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Decrypt").field("secret", &self.secret).finish_non_exhaustive()
    }
}

impl Decrypt {
    fn new(settings: &Settings) -> Result<Self, Unfit> {
        let secret = Secret::new(settings)?;
        let inner = Inner::new(secret.config());
        let asked = settings.numbers("tracks").map(|tracks| mask(&tracks));
        Ok(Decrypt { secret, asked, tracks: Vec::new(), inner })
    }

    /// Whether a packet goes on; counts it if not.
    fn take(&mut self, item: &mut Item, tally: &mut Tally) -> bool {
        let track = usize::from(item.packet.tag.track);
        let Some(Some(clear)) = self.tracks.get_mut(track) else { return true };
        let whole = owned(item, 0);
        let Ok(header) = RtpHeader::new_encrypted(&whole) else {
            tally.drop(DropReason::Malformed);
            return false;
        };
        let ssrc = header.ssrc();
        let whole = match self.inner.unprotect(ssrc, whole) {
            Ok(whole) => whole,
            Err(error) => {
                refused(tally, &error);
                return false;
            }
        };
        let Ok(tag) = clear.reader.read(&whole) else {
            tally.drop(DropReason::Malformed);
            return false;
        };
        item.packet.tag = tag;
        replace(item, whole);
        clear.places.place(item);
        true
    }
}

impl Inner {
    fn new(config: StreamConfig) -> Self {
        Inner { session: RecvSession::new(), config, flows: Vec::with_capacity(FLOWS_MAX) }
    }

    fn unprotect(&mut self, ssrc: u32, whole: Vec<u8>) -> Result<Vec<u8>, SrtpError> {
        let at = match self.flows.iter().position(|flow| flow.ssrc == ssrc) {
            Some(at) => at,
            None => self.begin(ssrc)?,
        };
        let flow = &mut self.flows[at];
        let Some(mut rollover) = flow.search else { return self.session.rtp_unprotect(whole) };
        for _ in 0..ROLLOVERS_AT_ONCE {
            self.session.set_roc(ssrc, rollover)?;
            match self.session.rtp_unprotect(whole.clone()) {
                Err(SrtpError::Authentication | SrtpError::Encryption) => {
                    rollover = (rollover + 1) % ROLLOVERS_MAX;
                }
                other => {
                    flow.search = other.is_err().then_some(rollover);
                    return other;
                }
            }
        }
        flow.search = Some(rollover);
        Err(SrtpError::Authentication)
    }

    /// Gets to know a source. One that was never heard authentic makes room before others do.
    fn begin(&mut self, ssrc: u32) -> Result<usize, SrtpError> {
        if self.flows.len() == FLOWS_MAX {
            let at = self.flows.iter().position(|flow| flow.search.is_some()).unwrap_or(0);
            let gone = self.flows.remove(at);
            self.session.remove_stream(gone.ssrc)?;
        }
        self.session.add_stream(Some(ssrc), &self.config)?;
        self.flows.push(Flow { ssrc, search: Some(0) });
        Ok(self.flows.len() - 1)
    }
}

/// What a track is once it is decrypted.
fn clear(track: &Track) -> Track {
    let video = track.codec.is_video();
    let codec = match &track.codec {
        Codec::Srtp { .. } => match sdp::codec(&track.encoding, &track.fmtp, video) {
            // It would have to leave its RTP here.
            Codec::Mp2t => Codec::Other { video: true },
            codec => codec,
        },
        known => known.clone(),
    };
    Track { codec, ..track.clone() }
}

impl Element for Decrypt {
    fn bind(&mut self, input: &Format) -> Result<Format, Unfit> {
        let Format::Rtp(tracks) = input else {
            return Err(Unfit::new("what comes in is no RTP", "let it take from where there is SRTP"));
        };
        // Where the description says which tracks are encrypted, those; else all.
        let is_said = tracks.iter().any(|track| track.codec.is_srtp());
        let is_meant = |index: usize, track: &Track| match self.asked {
            Some(asked) => asked.has(index as u8),
            None => !is_said || track.codec.is_srtp(),
        };
        let mut out = tracks.clone();
        self.tracks.clear();
        for (index, track) in out.iter_mut().enumerate() {
            let becomes = is_meant(index, track).then(|| clear(track));
            self.tracks.push(becomes.as_ref().map(|becomes| Clear {
                reader: RtpReader::new(index as u8, becomes),
                places: Places::default(),
            }));
            *track = becomes.unwrap_or_else(|| track.clone());
        }
        if self.tracks.iter().all(Option::is_none) {
            let help = "write the number of one that is there in `tracks`; the first is 0";
            return Err(Unfit::new("no track to decrypt", help));
        }
        Ok(Format::Rtp(out))
    }

    fn work(&mut self, _: Time, batch: &mut Vec<Item>, tally: &mut Tally) {
        batch.retain_mut(|item| self.take(item, tally));
    }

    fn message(&mut self, _: Time, message: Message) -> Option<Message> {
        // A source that was restarted may count from zero again.
        if message == Message::Break {
            self.inner = Inner::new(self.secret.config());
        }
        Some(message)
    }

    fn state(&mut self) -> Option<Box<dyn Any + Send>> {
        let inner = core::mem::replace(&mut self.inner, Inner::new(self.secret.config()));
        Some(Box::new((self.secret.clone(), core::mem::take(&mut self.tracks), inner)))
    }

    fn resume(&mut self, state: Box<dyn Any + Send>) {
        let Ok(state) = state.downcast::<(Secret, Vec<Option<Clear>>, Inner)>() else { return };
        let (secret, tracks, inner) = *state;
        if secret == self.secret {
            self.inner = inner;
        }
        // Frames go on being counted where the same tracks are decrypted; see the documentation of
        // `Graph::resume`: both were bound to the same format.
        if tracks.iter().map(Option::is_some).eq(self.tracks.iter().map(Option::is_some)) {
            self.tracks = tracks;
        }
    }
}

#[cfg(test)]
mod tests;
