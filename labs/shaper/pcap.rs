//! Datagrams of a capture, with their bytes.

use std::path::Path;

use anyhow::{Context, Result, ensure};

/// A datagram.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Datagram {
    /// Nanoseconds since 1970.
    pub(crate) at: u64,
    /// Where it goes to.
    pub(crate) port: u16,
    pub(crate) payload: Vec<u8>,
}

/// Reads what tcpdump wrote of Ethernet, with times in nanoseconds, by time.
pub(crate) fn read(file: &Path) -> Result<Vec<Datagram>> {
    const MAGIC: [u8; 4] = 0xa1b2_3c4d_u32.to_le_bytes();
    let bytes = std::fs::read(file)?;
    let (header, mut rest) = bytes.split_at_checked(24).context("a capture has a header")?;
    ensure!(header.starts_with(&MAGIC), "{} is no capture with nanoseconds", file.display());
    let mut datagrams = Vec::new();
    while let Some((record, behind)) = rest.split_at_checked(16) {
        let field =
            |at: usize| record[at..at + 4].iter().rev().fold(0, |all, byte| all << 8 | u64::from(*byte));
        let (frame, behind) = behind.split_at_checked(field(8) as usize).context("a record is cut off")?;
        rest = behind;
        if let Some((port, payload)) = udp(frame) {
            let at = field(0) * 1_000_000_000 + field(4);
            datagrams.push(Datagram { at, port, payload: payload.to_vec() });
        }
    }
    datagrams.sort_by_key(|datagram| datagram.at);
    Ok(datagrams)
}

/// The port and payload of a datagram in IPv4 in Ethernet.
fn udp(frame: &[u8]) -> Option<(u16, &[u8])> {
    const ETHERNET: usize = 14;
    let ip = frame.get(ETHERNET..)?;
    let udp = ip.get(usize::from(ip.first()? & 0x0f) * 4..)?;
    let length = usize::from(u16::from_be_bytes([*udp.get(4)?, *udp.get(5)?]));
    Some((u16::from_be_bytes([udp[2], udp[3]]), udp.get(8..length)?))
}
