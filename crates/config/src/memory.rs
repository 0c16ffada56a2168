//! How much memory the relay may take, and the rings of its streams of it.

use crate::limits::RINGS_ONE_IN;
use crate::{ByteSize, Config, Invalid, Text};

/// How much memory the relay may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Memory {
    /// As much as fits the machine, or the control group, that it runs in.
    Auto,
    /// So much.
    Bytes(ByteSize),
}

impl Text for Memory {
    const KIND: &'static str = "a size";
    const EXAMPLE: &'static str = "2 GB";

    fn from_text(text: &str) -> Result<Self, Invalid> {
        if text == "auto" { Ok(Memory::Auto) } else { text.parse().map(Memory::Bytes) }
    }
}

impl Config {
    /// Whether the rings of all streams, those that are renditions too, may be full at once with this much memory.
    ///
    /// # Errors
    /// Together they would take more than half of it.
    pub fn check_rings(&self, memory: ByteSize) -> Result<(), Invalid> {
        let sum = self.streams.values().fold(0, |sum: u64, stream| sum.saturating_add(stream.ring.0));
        if sum <= memory.0 / RINGS_ONE_IN {
            return Ok(());
        }
        let (count, sum) = (self.streams.len(), ByteSize(sum));
        let what = format!(
            "the rings of {count} streams take {sum} together, more than half of the memory ({memory})"
        );
        Err(Invalid::new(what, "give streams a smaller ring, or the relay more memory ([limits] memory)"))
    }
}
