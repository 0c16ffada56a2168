//! A live source as relays know it: H.264 in RTP, byte for byte, read by the relay's own reader.

use core::time::Duration;
use std::collections::VecDeque;

use bytes::Bytes;
use outflow_media::Time;
use outflow_packet::Parser;

use super::source::{Emission, Source};
use crate::scenario::SourceModel;
use crate::source;

/// Bytes of IP and UDP headers (RFC 791, RFC 768).
pub(in crate::network) const HEADERS: usize = 20 + 8;

pub(super) struct Live {
    source: source::Source,
    parser: Parser,
    start: Time,
    /// The packets of the frame that are to be sent.
    packets: VecDeque<Bytes>,
    at: Time,
    rng: fastrand::Rng,
}

impl Live {
    pub(super) fn new(model: &SourceModel, start: Time, rng: fastrand::Rng) -> Self {
        let source = source::Source::new(model.clone());
        let parser = Parser::new(&source::Source::format());
        Live { source, parser, start, packets: VecDeque::new(), at: start, rng }
    }
}

impl Source for Live {
    fn due(&self) -> Option<Time> {
        let next = || self.start + Duration::from_nanos(self.source.due().as_nanos());
        Some(if self.packets.is_empty() { next() } else { self.at })
    }

    fn next(&mut self) -> Option<Emission> {
        if self.packets.is_empty() {
            self.at = self.due()?;
            self.packets = self.source.frame(&mut self.rng).into();
        }
        let payload = self.packets.pop_front()?;
        // What it makes can be read.
        let tag = self.parser.tag(0, &payload).unwrap_or_default();
        Some(Emission { tag, bytes: payload.len() + HEADERS, payload: Some(payload) })
    }
}
