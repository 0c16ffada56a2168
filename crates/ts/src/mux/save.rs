//! A multiplexer goes on in another process: with its counters, by which decoders tell whether something is missing.

use minicbor::{Decode, Encode};

use super::TsMux;
use super::stream::Stream;
use crate::clock::PTS_MODULUS;

/// Where a multiplexer stands. Counters are those of the next packet, of four bits.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct SavedMux {
    /// Of the PID of each track that is carried, in order.
    #[n(0)]
    pub counters: Vec<u8>,
    /// Of the PAT.
    #[n(1)]
    pub pat: u8,
    /// Of the PMT.
    #[n(2)]
    pub pmt: u8,
    /// The version of the PMT.
    #[n(3)]
    pub version: u8,
    /// Decoding time, in ticks of 90 kHz, with which the tables were sent last.
    #[n(4)]
    pub tables_at: Option<u64>,
    /// That with which the clock was.
    #[n(5)]
    pub clock_at: Option<u64>,
}

impl SavedMux {
    /// The same counters, where neither tables nor the clock were sent yet.
    #[must_use]
    pub fn begun(&self) -> SavedMux {
        SavedMux { tables_at: None, clock_at: None, ..self.clone() }
    }

    /// Where a multiplexer has to begin to stand here after what brings one that begins here to `there`.
    #[must_use]
    pub fn ahead_of(&self, there: &SavedMux) -> SavedMux {
        // Backwards by what the other went ahead.
        let back = |here: u8, there: u8| here.wrapping_sub(there.wrapping_sub(here));
        let counters = self.counters.iter().zip(&there.counters);
        SavedMux {
            counters: counters.map(|(here, there)| back(*here, *there) & 0x0f).collect(),
            pat: back(self.pat, there.pat) & 0x0f,
            pmt: back(self.pmt, there.pmt) & 0x0f,
            version: back(self.version, there.version) & 0x1f,
            ..self.begun()
        }
    }
}

impl TsMux {
    /// What goes on in another process.
    pub fn save(&self) -> SavedMux {
        SavedMux {
            counters: self.streams.iter().flatten().map(Stream::continuity).collect(),
            pat: self.pat_continuity,
            pmt: self.pmt_continuity,
            version: self.version,
            tables_at: self.tables_at,
            clock_at: self.clock_at,
        }
    }

    /// Goes on from what another process has saved, with the same tracks.
    pub fn restore(&mut self, saved: &SavedMux) {
        for (stream, counter) in self.streams.iter_mut().flatten().zip(&saved.counters) {
            stream.set_continuity(*counter);
        }
        (self.pat_continuity, self.pmt_continuity) = (saved.pat & 0x0f, saved.pmt & 0x0f);
        self.version = saved.version & 0x1f;
        let time = |ticks| ticks % PTS_MODULUS;
        (self.tables_at, self.clock_at) = (saved.tables_at.map(time), saved.clock_at.map(time));
        self.describe();
    }
}
