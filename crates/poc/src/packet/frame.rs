//! What data packets are made of.
//!
//! | type | frame | content |
//! |---|---|---|
//! | 0 | padding | |
//! | 1 | ping | |
//! | 2, 3 | ack | ranges of packets, delay in µs, times of arrival; of 3, counts of ECT(0), ECT(1), CE |
//! | 4 | given up | ranges of units |
//! | 5 | progress | units below are settled, units of credit from there on, ranges of lost units |
//! | 7, 8 | path challenge, path response | 8 bytes |
//! | 9 | close | code, length and text |
//! | 16 to 23 | fragment | offset (of 18, 19, 22, 23), bytes behind it (20 to 23), unit, length (odd ones), bytes |

use outflow_media::Malformed;
use outflow_petri::leb128::{Reader, put};
use outflow_petri::limits::NUMBER_MAX;

use super::code::{Code, put_text, text};
use super::{Ack, Fragment, Spans, fragment};

const PING: u8 = 1;
const ACK: u8 = 2;
const ACK_ECN: u8 = 3;
const GIVEN_UP: u8 = 4;
const PROGRESS: u8 = 5;
const PATH_CHALLENGE: u8 = 7;
const PATH_RESPONSE: u8 = 8;
const CLOSE: u8 = 9;

/// A part of a data packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Frame<'a> {
    /// Are you there?
    Ping,
    /// What the sender of this received.
    Ack(Ack<'a>),
    /// A piece of an object.
    Fragment(Fragment<'a>),
    /// Units that the sender of this will not send, or not send again.
    GivenUp(Spans<'a>),
    /// How far the engine of the receiver is.
    Progress(Progress<'a>),
    /// To be sent back from where it is received (RFC 9000 section 8.2).
    PathChallenge([u8; 8]),
    /// What was received so.
    PathResponse([u8; 8]),
    /// The connection is over.
    Close(Close<'a>),
}

/// How far the engine of a receiver is, so that the sender knows what is of no use any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress<'a> {
    /// The receiver does not wait for units below this one.
    pub settled_below: u64,
    /// The first unit that nothing would be kept of, not lower: credit for the sender.
    pub window_end: u64,
    /// Units that the receiver went on without; those that the sender may not know of.
    pub lost: Spans<'a>,
}

/// The end of a connection, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Close<'a> {
    /// Why.
    pub code: Code,
    /// The same for people; cut to 128 bytes when it is sent.
    pub text: &'a str,
}

impl<'a> Frame<'a> {
    /// Whether the receiver has to acknowledge it (RFC 9002 section 2).
    pub const fn elicits(&self) -> bool {
        !matches!(self, Frame::Ack(_) | Frame::Close(_))
    }

    /// Reads a frame of a type that is not padding.
    pub(super) fn parse(reader: &mut Reader<'a>) -> Result<Self, Malformed> {
        let unknown = reader.error("a frame that is not known");
        Ok(match reader.byte()? {
            PING => Frame::Ping,
            ACK => Frame::Ack(Ack::parse(reader, false)?),
            ACK_ECN => Frame::Ack(Ack::parse(reader, true)?),
            GIVEN_UP => Frame::GivenUp(Spans::parse(reader)?),
            PROGRESS => Frame::Progress(Progress::parse(reader)?),
            PATH_CHALLENGE => Frame::PathChallenge(reader.array()?),
            PATH_RESPONSE => Frame::PathResponse(reader.array()?),
            CLOSE => Frame::Close(Close { code: Code(reader.number()?), text: text(reader)? }),
            kind @ fragment::FIRST_TYPE..=fragment::LAST_TYPE => {
                Frame::Fragment(Fragment::parse(reader, kind)?)
            }
            _ => return Err(unknown),
        })
    }

    /// Writes it, so that others may come behind it.
    pub(super) fn emit(&self, out: &mut Vec<u8>) {
        match self {
            Frame::Ping => out.push(PING),
            Frame::Ack(ack) => {
                out.push(if ack.ecn.is_some() { ACK_ECN } else { ACK });
                ack.emit(out);
            }
            Frame::Fragment(fragment) => fragment.emit(true, out),
            Frame::GivenUp(units) => {
                out.push(GIVEN_UP);
                units.emit(out);
            }
            Frame::Progress(progress) => {
                out.push(PROGRESS);
                progress.emit(out);
            }
            Frame::PathChallenge(bytes) => {
                out.push(PATH_CHALLENGE);
                out.extend_from_slice(bytes);
            }
            Frame::PathResponse(bytes) => {
                out.push(PATH_RESPONSE);
                out.extend_from_slice(bytes);
            }
            Frame::Close(close) => {
                out.push(CLOSE);
                put(out, close.code.0);
                put_text(out, close.text);
            }
        }
    }
}

impl<'a> Progress<'a> {
    fn parse(reader: &mut Reader<'a>) -> Result<Self, Malformed> {
        let (settled_below, credit) = (reader.number()?, reader.number()?);
        let Some(window_end) = settled_below.checked_add(credit).filter(|end| *end <= NUMBER_MAX) else {
            return Err(reader.error("a window that ends too high"));
        };
        Ok(Progress { settled_below, window_end, lost: Spans::parse(reader)? })
    }

    fn emit(&self, out: &mut Vec<u8>) {
        let end = |unit: u64| unit.min(NUMBER_MAX);
        put(out, self.settled_below);
        put(out, end(self.window_end).saturating_sub(end(self.settled_below)));
        self.lost.emit(out);
    }
}
