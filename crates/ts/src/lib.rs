//! MPEG transport streams (ISO/IEC 13818-1).
//!
//! [`TsReader`] tells what a stream's datagrams mean, and [`TsFrames`] where between their packets
//! frames begin; [`TsFramer`] makes such datagrams of a byte stream, [`TsMux`] of access units, and [`TsLoop`] of a clip in
//! memory; [`TsDemux`] takes out what [`TsMux`] puts in. The other modules are the formats: packets, PES headers, tables, and
//! clocks that wrap.

pub mod clock;
mod continuity;
mod demux;
mod discontinuity;
mod fill;
mod framer;
mod frames;
pub mod limits;
mod looper;
mod mux;
mod opus;
pub mod packet;
pub mod pes;
mod programme;
pub mod psi;
mod reader;
mod tables;
mod units;

pub use demux::{Pes, PesDropped, TsDemux};
pub use discontinuity::announce_discontinuity;
pub use framer::{TsFramer, resync};
pub use frames::{FrameTag, Part, TsFrames};
pub use looper::TsLoop;
pub use mux::{CLOCK_DELAY, SavedMux, TsMux, TsOut, UnsupportedCodec};
pub use opus::OpusPackets;
pub use packet::PACKET_BYTES;
pub use programme::{Coding, ElementaryStream, Programme};
pub use reader::{Findings, FindingsPool, Found, TsReader};
pub use tables::programme_in;

/// Packets of a full datagram: as many as an Ethernet frame has room for.
pub const DATAGRAM_PACKETS: usize = 7;

/// Bytes of a full datagram.
pub const DATAGRAM_BYTES: usize = DATAGRAM_PACKETS * PACKET_BYTES;
