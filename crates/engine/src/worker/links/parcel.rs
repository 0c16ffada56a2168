//! A packet that waits at a link.

use bytes::Bytes;
use outflow_link::ApplicationId;
use outflow_packet::DropReason;
use outflow_relay::{Report, SinkKey};
use outflow_rtp::HEADER;

use crate::message::ReceiverId;
use crate::send::{Piece, Worth};

/// A packet that waits, and the sink that it is for.
#[derive(Debug)]
pub(in super::super) struct Parcel {
    pub(in super::super) stream: usize,
    pub(in super::super) sink: SinkKey,
    pub(in super::super) receiver: ReceiverId,
    /// The flows that it was alike to when it came.
    pub(super) application: ApplicationId,
    pub(super) track: u8,
    /// How many departed before it, of those that are sent together.
    pub(in super::super) place: usize,
    pub(super) is_preamble: bool,
    pub(super) worth: Worth,
    /// An RTP header that is not part of the body; `None` if there is none.
    pub(super) header: Option<[u8; HEADER]>,
    pub(super) body: Bytes,
}

impl Parcel {
    /// It as it is sent, at this place of those that are sent with it.
    pub(in super::super) fn piece(&self, place: u64) -> Piece<'_> {
        let header = self.header.as_ref().map_or(&[][..], |header| &header[..]);
        Piece {
            seq: place,
            track: self.track,
            layer: None,
            ends: None,
            header,
            body: &self.body,
            bytes: Some(&self.body),
            is_preamble: false,
            worth: self.worth,
        }
    }

    /// What to tell the core where it does not go: it counted as sent, unless it is a preamble.
    pub(in super::super) fn given_up(&self, reason: DropReason) -> Report {
        match self.is_preamble {
            true => Report::Lost { reason, packets: 1 },
            false => Report::GivenUp { reason, bytes: self.body.len() as u64 },
        }
    }
}
