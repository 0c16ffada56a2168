//! A branch of a stream in its place: what makes it, and what it carries.

use outflow_graph::{Graph, View};
use outflow_media::{Format, Time};
use outflow_packet::Parsed;

use super::senders::Senders;
use crate::control::levels::{TsLevelBranch, TsLevels};
use crate::schedule::{Branch, BranchId};

/// A branch in its place. Its index in the stream is that of its orders.
#[derive(Debug)]
pub(in crate::control) struct Slot {
    pub(in crate::control) branch: Branch,
    /// What it carries; `None` for the stream's own format.
    pub(super) format: Option<Format>,
    pub(in crate::control) made: Made,
    /// Where its frames begin, and what its levels are, if it is a whole transport stream.
    pub(in crate::control) levels: Option<Box<TsLevels>>,
    /// What its packets say of each track, where they are not the stream's own.
    pub(super) senders: Senders,
    /// How it is numbered, where another process has made it up to now and this one begins it afresh.
    pub(super) goes_on: Option<GoesOn>,
    /// Since when nothing wants it.
    pub(in crate::control) idle_since: Option<Time>,
}

/// Sequence numbers of the main track that go on where another process has stopped, whatever those are that come.
#[derive(Debug, Clone, Copy)]
pub(super) struct GoesOn {
    /// The last number that receivers had.
    after: u16,
    /// What is added to those that come, once the first has.
    apart: Option<u16>,
}

impl GoesOn {
    pub(super) fn number(&mut self, parsed: &mut Parsed) {
        let Parsed { packet, rtp_header, .. } = parsed;
        let Some(header) = packet.rtp_header(rtp_header) else { return };
        let (sequence, next) = (outflow_rtp::sequence(header), self.after.wrapping_add(1));
        let apart = *self.apart.get_or_insert(next.wrapping_sub(sequence));
        if apart != 0
            && let Some(header) = packet.own_rtp_header(rtp_header)
        {
            outflow_rtp::set_sequence(header, sequence.wrapping_add(apart));
        }
    }
}

/// What makes a branch.
#[derive(Debug)]
pub(in crate::control) enum Made {
    /// The source; or the first of the stream's renditions.
    Original,
    /// Another of its renditions.
    Rendition,
    /// The stream's services, under this name.
    Declared(BranchId),
    /// A chain of its own, from the packets of another branch.
    Derived { base: usize, what: What, chain: Box<Graph> },
    /// The filter, from the packets of another branch that is a transport stream.
    Level { base: usize, level: Box<TsLevelBranch> },
}

/// What is made of another branch because receivers want it like that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::control) enum What {
    /// A transport stream.
    Ts,
    /// What some of them want to see.
    View(View),
}

impl Slot {
    /// Its next packet follows this number, which was the last that another process gave. Numbers that are signed stay as
    /// they are.
    pub(in crate::control) fn go_on_after(&mut self, number: u16) {
        let format = self.format.as_ref();
        let is_signed = format.is_some_and(|format| match format {
            Format::Rtp(tracks) => tracks.iter().any(|track| track.codec.is_srtp()),
            _ => false,
        });
        if !is_signed {
            self.goes_on = Some(GoesOn { after: number, apart: None });
        }
    }

    pub(super) fn new(branch: Branch, made: Made, format: Option<Format>) -> Self {
        let levels = format.as_ref().and_then(TsLevels::of);
        Slot { branch, format, made, levels, senders: Senders::default(), goes_on: None, idle_since: None }
    }

    /// A level of another branch, which no sink reads yet.
    pub(in crate::control) fn of_level(
        now: Time,
        branch: Branch,
        (base, level): (usize, Box<TsLevelBranch>),
    ) -> Self {
        let slot = Slot::new(branch, Made::Level { base, level }, Some(Format::Ts));
        Slot { levels: None, idle_since: Some(now), ..slot }
    }

    /// The branch that it is a level of, and how it is made.
    pub(in crate::control) fn level(&self) -> Option<(usize, &TsLevelBranch)> {
        match &self.made {
            Made::Level { base, level } => Some((*base, level)),
            _ => None,
        }
    }

    pub(super) fn chain(&self) -> Option<&Graph> {
        match &self.made {
            Made::Derived { chain, .. } => Some(chain),
            Made::Original | Made::Rendition | Made::Declared(_) | Made::Level { .. } => None,
        }
    }

    pub(super) fn base(&self) -> Option<usize> {
        match self.made {
            Made::Derived { base, .. } | Made::Level { base, .. } => Some(base),
            Made::Original | Made::Rendition | Made::Declared(_) => None,
        }
    }

    pub(super) fn is_derived(&self, of: usize, wanted: What) -> bool {
        matches!(self.made, Made::Derived { base, what, .. } if (base, what) == (of, wanted))
    }
}

#[cfg(test)]
mod tests {
    use outflow_media::Tag;
    use outflow_packet::Packet;
    use outflow_rtp::PlainHeader;

    use super::*;

    /// The number that a packet gets which comes with this one, wherever its header stands.
    fn numbered(goes_on: &mut GoesOn, sequence: u16, is_apart: bool) -> u16 {
        let header = PlainHeader { marker: false, payload_type: 96, sequence, timestamp: 0, ssrc: 1 }.emit();
        let whole = [&header[..], b"payload"].concat();
        let (rtp_header, bytes) = if is_apart { (header, &whole[12..]) } else { ([0; 12], &whole[..]) };
        let bytes = bytes::Bytes::copy_from_slice(bytes);
        let packet = Packet { bytes, tag: Tag::default(), arrived: Time::ZERO };
        let mut parsed = Parsed { packet, rtp_header, preamble: None, found: None };
        goes_on.number(&mut parsed);
        assert_eq!(&parsed.packet.bytes[..], b"payload");
        outflow_rtp::sequence(&parsed.rtp_header)
    }

    #[test]
    fn numbers_go_on_and_gaps_stay() {
        let mut goes_on = GoesOn { after: 65_534, apart: None };
        let numbers = [(7, true), (8, false), (10, false), (9, true)];
        let numbers = numbers.map(|(sequence, is_apart)| numbered(&mut goes_on, sequence, is_apart));
        assert_eq!(numbers, [65_535, 0, 2, 1]);
    }

    #[test]
    fn what_has_no_numbers_stays_as_it_is() {
        let packet = Packet { bytes: b"Grayscale"[..].into(), tag: Tag::default(), arrived: Time::ZERO };
        let mut parsed = Parsed { packet, rtp_header: [0; 12], preamble: None, found: None };
        GoesOn { after: 1, apart: None }.number(&mut parsed);
        assert_eq!((&parsed.packet.bytes[..], parsed.rtp_header), (&b"Grayscale"[..], [0; 12]));
    }
}
