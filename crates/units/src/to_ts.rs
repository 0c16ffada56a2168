//! Access units into the datagrams of a transport stream.

use bytes::Bytes;
use outflow_media::{AccessUnit, Track};
use outflow_ts::{SavedMux, TsMux, TsOut, UnsupportedCodec};

/// Puts access units into transport stream packets. Tracks that it cannot carry are passed over.
#[derive(Debug)]
pub struct ToTs {
    mux: TsMux,
    made: TsOut,
    refused: u64,
}

impl ToTs {
    /// A transport stream of these tracks.
    ///
    /// # Errors
    /// It can carry none of them.
    pub fn new(tracks: &[Track]) -> Result<Self, UnsupportedCodec> {
        Ok(ToTs { mux: TsMux::new(tracks)?, made: TsOut::default(), refused: 0 })
    }

    /// Where it stands, for another process.
    pub fn save(&self) -> SavedMux {
        self.mux.save()
    }

    /// Goes on from where another process stood.
    pub fn restore(&mut self, saved: &SavedMux) {
        self.mux.restore(saved);
    }

    /// Whether the track at this index is carried.
    pub fn carries(&self, track: usize) -> bool {
        self.mux.carries(track)
    }

    /// Takes one access unit, and gives its datagrams, each of one to seven transport stream packets.
    pub fn push(&mut self, unit: &AccessUnit, out: &mut impl FnMut(Bytes)) {
        let ToTs { mux, made, refused } = self;
        if mux.push(unit, made).is_err() {
            *refused += 1;
        }
        while let Some(datagram) = made.next_datagram() {
            out(datagram);
        }
    }

    /// Units that cannot be carried: they are empty, too large, or not what their codec says.
    pub fn refused(&self) -> u64 {
        self.refused
    }
}
