//! The way out.

use outflow_rtp::RtpHeader;

use crate::cipher::{Cipher, Place};
use crate::limits::CONTROL_PACKETS_MAX;
use crate::{CONTROL_HEADER, ENCRYPTED, Master, Profile, Refused};

/// Seals what one end sends, whatever sources it has.
#[derive(Debug)]
pub struct Sealer {
    media: Cipher,
    control: Cipher,
    /// The number of the next packet of RTCP.
    next: u32,
}

impl Sealer {
    /// One that has sealed nothing yet.
    pub fn new(profile: Profile, master: &Master) -> Self {
        let (media, control) = (Cipher::new(profile, master, false), Cipher::new(profile, master, true));
        Sealer { media, control, next: 0 }
    }

    /// One that goes on where another with the same keys was: the next packet of RTCP has this number
    /// ([`Sealer::next_control`]).
    pub fn resume(self, next: u32) -> Self {
        Sealer { next, ..self }
    }

    /// The number of the next packet of RTCP.
    pub fn next_control(&self) -> u32 {
        self.next
    }

    /// Seals a packet of RTP, which is what stands in `out` from `start` on; it gets longer by [`Profile::overhead`].
    /// `rollovers`: how often the sequence numbers of its source have come round. Other bytes with the same source and
    /// number must never be sealed.
    ///
    /// # Errors
    /// It is no packet of RTP, and is left as it is.
    pub fn seal(&self, out: &mut Vec<u8>, start: usize, rollovers: u32) -> Result<(), Refused> {
        let packet = out.get(start..).ok_or(Refused::Malformed)?;
        let header = RtpHeader::new_encrypted(packet).map_err(|_| Refused::Malformed)?;
        let index = u64::from(rollovers) << 16 | u64::from(header.sequence());
        let (place, header) = (Place { ssrc: header.ssrc(), index }, header.payload_offset());
        self.media.seal(out, (start, start + header), place);
        Ok(())
    }

    /// Reads what [`seal`](Self::seal) is about to need, so that it is at hand. What is answered says nothing.
    pub fn warm(&self) -> usize {
        self.media.warm()
    }

    /// Seals a packet of RTCP, compound or not; it gets longer by [`Profile::control_overhead`].
    ///
    /// # Errors
    /// It is no packet of RTCP, or the key is used up. It is left as it is.
    pub fn seal_control(&mut self, packet: &mut Vec<u8>) -> Result<(), Refused> {
        let ssrc = control_source(packet).ok_or(Refused::Malformed)?;
        if self.next >= CONTROL_PACKETS_MAX {
            return Err(Refused::KeyUsedUp);
        }
        let word = (self.next | ENCRYPTED).to_be_bytes();
        self.control.seal_control(packet, word, Place { ssrc, index: self.next.into() });
        self.next += 1;
        Ok(())
    }
}

#[cfg(test)]
impl Sealer {
    /// It has sealed all packets of RTCP that it may but one.
    pub(crate) fn use_up(&mut self) {
        self.next = CONTROL_PACKETS_MAX - 1;
    }
}

/// The source that a packet of RTCP begins with, if it is one.
pub(crate) fn control_source(packet: &[u8]) -> Option<u32> {
    let (header, _) = packet.split_first_chunk::<CONTROL_HEADER>()?;
    (header[0] >> 6 == 2).then(|| u32::from_be_bytes([header[4], header[5], header[6], header[7]]))
}
