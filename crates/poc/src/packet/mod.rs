//! What travels in a datagram of UDP, or inside the packet of a carrier that encrypts.
//!
//! | first byte | datagram | direction | content |
//! |---|---|---|---|
//! | 8 | [`Hello`] | to the server | version, id of the client, cookie, service, zeros up to 1200 bytes |
//! | 9 | [`Retry`] | to the client | version, id of the client, cookie |
//! | 10 | [`Accept`] | to the client | version, ids of the client and of the server, service |
//! | 11 | [`Refuse`] | to the client | version, id of the client, code, text |
//! | 12 | [`Data`] | both | id of the receiver, packet number, frames |
//! | 13 | [`Datagram::Reset`] | both | the id that is not known |
//!
//! The upper five bits of the first byte are fixed, 00001. The range from 4 to 15 is the one that RFC 7983
//! and RFC 9443 leave free between STUN, ZRTP, DTLS, TURN, RTP and QUIC, so that all of them can share a
//! port; 4 to 7 are left for what comes later, and the sync byte of MPEG-TS is none of them ([`is_ours`]).
//!
//! The version is the second byte where a connection begins. A hello of any version begins with kind, version
//! and id, and so does a refusal (compare RFC 8999): a server can refuse what it does not understand, with
//! the version that it does. What is accepted holds for all later datagrams; they do not repeat it.
//!
//! Numbers are LEB128, ids eight bytes that only their owner understands. Packet numbers are written in
//! full: of three bytes up to two million, four up to 268 millions. Truncated ones (RFC 9000 section 17.1)
//! would save one or two bytes of 1200, but could only be read by an end that knows the connection, and would
//! be misread after a long gap.
//!
//! An answer to a hello is never longer than it. A reset is shorter than what it answers, and nothing is
//! ever answered to one. Reading does not allocate: what is read refers to the datagram.

mod ack;
mod arrivals;
mod code;
mod data;
mod fragment;
mod frame;
mod handshake;
mod id;
mod kind;
mod spans;

use outflow_media::Malformed;
use outflow_petri::leb128::Reader;

use kind::{ACCEPT, DATA, FORMAT, HELLO, REFUSE, RESET, RETRY};

pub use ack::Ack;
pub use arrivals::{Arrival, Arrivals, TICK};
pub use code::Code;
pub use data::{Data, Frames, Head, Writer};
pub use fragment::Fragment;
pub use frame::{Close, Frame, Progress};
pub use handshake::{Accept, Hello, Refuse, Retry};
pub use id::ConnectionId;
pub use kind::{VERSION, is_ours};
pub use outflow_media::ecn::{Mark, MarkCounts};
pub use spans::{Span, Spans};

/// Bytes of a reset.
pub const RESET_BYTES: usize = 9;

/// A datagram as it was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Datagram<'a> {
    /// A client asks for a service.
    Hello(Hello<'a>),
    /// The server wants to see that the client is where it says.
    Retry(Retry<'a>),
    /// The server offers a service.
    Accept(Accept<'a>),
    /// The server does not.
    Refuse(Refuse<'a>),
    /// Part of a connection.
    Data(Data<'a>),
    /// The host that was sent something for this id knows no connection of it. That id is what its sender put
    /// in front, and proves that this comes from where it went (compare RFC 9000 section 10.3).
    Reset(ConnectionId),
    /// A hello of another version: to be refused by [`Code::VERSION`].
    OtherVersion {
        /// Which one.
        version: u8,
        /// How the client calls the connection.
        client: ConnectionId,
    },
}

/// Reads a datagram. Frames are read when they are asked for ([`Frames`]).
pub fn parse(bytes: &[u8]) -> Result<Datagram<'_>, Malformed> {
    let mut reader = Reader::new(FORMAT, bytes);
    let datagram = match reader.byte()? {
        HELLO => {
            let (version, client) = handshake::hello(&mut reader, bytes.len())?;
            if version == VERSION {
                Datagram::Hello(Hello::parse(client, &mut reader)?)
            } else {
                reader.rest();
                Datagram::OtherVersion { version, client }
            }
        }
        RETRY => Datagram::Retry(Retry::parse(&mut reader)?),
        ACCEPT => Datagram::Accept(Accept::parse(&mut reader)?),
        REFUSE => Datagram::Refuse(Refuse::parse(&mut reader)?),
        DATA => return Ok(Datagram::Data(Data::parse(reader)?)),
        RESET => Datagram::Reset(ConnectionId(reader.array()?)),
        _ => return Err(Malformed { offset: 0, ..reader.error("a kind that is not known") }),
    };
    if reader.is_at_end() { Ok(datagram) } else { Err(reader.error("bytes behind the end")) }
}

/// Writes a reset behind what is in `out`: no connection of this id is known.
pub fn emit_reset(unknown: ConnectionId, out: &mut Vec<u8>) {
    out.push(RESET);
    out.extend_from_slice(&unknown.0);
}

#[cfg(test)]
mod tests;
