//! The way in.

use arrayvec::ArrayVec;
use outflow_rtp::RtpHeader;

use crate::cipher::{Cipher, Place};
use crate::limits::SOURCES_MAX;
use crate::replay::Window;
use crate::sealer::control_source;
use crate::{ENCRYPTED, Master, Profile, Refused};

#[cfg(test)]
mod tests;

/// Opens what the other end sends.
#[derive(Debug)]
pub struct Opener {
    media: Cipher,
    control: Cipher,
    media_sources: Sources,
    control_sources: Sources,
}

/// Of each source, what came. A source is kept once a packet of it was authentic.
#[derive(Debug, Default)]
struct Sources(ArrayVec<(u32, Box<Window>), SOURCES_MAX>);

impl Opener {
    /// One that has opened nothing yet.
    pub fn new(profile: Profile, master: &Master) -> Self {
        Opener {
            media: Cipher::new(profile, master, false),
            control: Cipher::new(profile, master, true),
            media_sources: Sources::default(),
            control_sources: Sources::default(),
        }
    }

    /// Opens a packet of RTP in place. Returns how many bytes it has then.
    ///
    /// # Errors
    /// Why it is refused; its bytes are of no use then.
    pub fn open(&mut self, packet: &mut [u8]) -> Result<usize, Refused> {
        let header = RtpHeader::new_encrypted(packet).map_err(|_| Refused::Malformed)?;
        let (ssrc, start) = (header.ssrc(), header.payload_offset());
        let newest = self.media_sources.of(ssrc).and_then(Window::newest);
        let index = index(newest, header.sequence()).ok_or(Refused::Replayed)?;
        self.media_sources.check(ssrc, index)?;
        let plain = self.media.open(packet, start, Place { ssrc, index })?;
        self.media_sources.add(ssrc, index)?;
        Ok(plain)
    }

    /// Opens a packet of RTCP in place. Returns how many bytes it has then.
    ///
    /// # Errors
    /// Why it is refused; its bytes are of no use then.
    pub fn open_control(&mut self, packet: &mut [u8]) -> Result<usize, Refused> {
        let ssrc = control_source(packet).ok_or(Refused::Malformed)?;
        let word = self.control.control_word(packet).ok_or(Refused::Malformed)?;
        let number = u32::from_be_bytes(word);
        // Both ends encrypt all that they send (RFC 8827, section 6.5).
        if number & ENCRYPTED == 0 {
            return Err(Refused::Malformed);
        }
        let index = u64::from(number & !ENCRYPTED);
        self.control_sources.check(ssrc, index)?;
        let plain = self.control.open_control(packet, word, Place { ssrc, index })?;
        self.control_sources.add(ssrc, index)?;
        Ok(plain)
    }
}

impl Sources {
    fn of(&self, ssrc: u32) -> Option<&Window> {
        self.0.iter().find(|(source, _)| *source == ssrc).map(|(_, window)| &**window)
    }

    fn check(&self, ssrc: u32, index: u64) -> Result<(), Refused> {
        match self.of(ssrc) {
            Some(window) => window.check(index),
            None if self.0.is_full() => Err(Refused::TooManySources),
            None => Ok(()),
        }
    }

    fn add(&mut self, ssrc: u32, index: u64) -> Result<(), Refused> {
        if let Some((_, window)) = self.0.iter_mut().find(|(source, _)| *source == ssrc) {
            window.add(index);
            return Ok(());
        }
        let mut window = Box::<Window>::default();
        window.add(index);
        self.0.try_push((ssrc, window)).map_err(|_| Refused::TooManySources)
    }
}

/// Which one a sequence number means: the one that is nearest to the newest (RFC 3711, section 3.3.1); none if that was
/// before the first.
fn index(newest: Option<u64>, sequence: u16) -> Option<u64> {
    let Some(newest) = newest else { return Some(sequence.into()) };
    let ahead = sequence.wrapping_sub(newest as u16).cast_signed();
    let index = newest.checked_add_signed(ahead.into())?;
    // 48 bits.
    (index >> 48 == 0).then_some(index)
}
