//! How large packets are.

use serde::{Deserialize, Deserializer};

use crate::network::units::bytes_or;

/// How large packets are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PacketSize {
    /// At most this many bytes.
    Bytes(usize),
    /// Whole frames.
    Frame,
}

impl<'de> Deserialize<'de> for PacketSize {
    fn deserialize<D: Deserializer<'de>>(given: D) -> Result<Self, D::Error> {
        Ok(bytes_or(given, "frame")?.map_or(PacketSize::Frame, PacketSize::Bytes))
    }
}
