//! From one format into another, by way of access units.
//!
//! [`AccessUnit`](outflow_media::AccessUnit) is the pivot: a format has at most two converters, one of what comes in that
//! format into units ([`FromRtp`], [`FromTs`]), one of units into that format ([`ToTs`], [`ToRtp`]). Any two of them stand in
//! a row, so that N formats have N converters, and not one for each pair.
//!
//! What a new format brings is one of these, or both, in a file here:
//!
//! - **From** it: puts units together, and gives them times that do not wrap, of one timeline for all
//!   tracks; decoding times grow within a track, and are not after those of presentation. `push` takes a
//!   packet and gives units to a closure.
//! - **To** it: says which tracks it carries, adds what the format wants beside a unit's data, and counts
//!   the units that it has to refuse. `push` takes a unit and gives packets to a closure.
//!
//! The formats themselves, with what is read and written byte by byte, are those of their own crates.
//!
//! ```
//! use outflow_units::{FromRtp, ToTs};
//! # use outflow_media::{Codec, Time, Track};
//! # let tracks = [Track { codec: Codec::Opus, ..Track::mp2t() }];
//! # let packet = bytes::Bytes::from_static(&[0x80, 96, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 7]);
//! # let (now, mut datagrams) = (Time::ZERO, Vec::new());
//! let mut to = ToTs::new(&tracks)?;
//! let mut from = FromRtp::new(&tracks, |track| to.carries(track));
//! from.push(0, &packet, now, &mut |unit| to.push(&unit, &mut |datagram| datagrams.push(datagram)));
//! assert_eq!(datagrams.len(), 1);
//! # Ok::<(), outflow_ts::UnsupportedCodec>(())
//! ```

mod clock;
mod framing;
mod from_rtp;
mod from_ts;
pub mod limits;
mod order;
mod save;
#[cfg(test)]
mod tests;
mod times;
mod to_rtp;
mod to_ts;

pub use from_rtp::FromRtp;
pub use from_ts::FromTs;
pub use save::{SavedClock, SavedClocks, SavedToTs};
pub use to_rtp::ToRtp;
pub use to_ts::ToTs;
