//! Frames: how datagrams go through a connection of TCP (RFC 4571, section 2; RFC 6544, section 3). Each has its length
//! in front, in 16 bits.

use outflow_media::Malformed;

/// Bytes of the length.
pub const LENGTH_BYTES: usize = 2;

/// Finds datagrams in what comes by a connection, in pieces of any length.
#[derive(Debug)]
pub struct Unframer {
    bytes_max: usize,
    /// The beginning of a frame that is not whole yet. It has as many bytes as have come, whatever its length says.
    part: Vec<u8>,
}

impl Unframer {
    /// One for a connection that has just begun. No datagram is to have more than `bytes_max` bytes.
    pub fn new(bytes_max: usize) -> Self {
        Unframer { bytes_max, part: Vec::new() }
    }

    /// Takes what has come, and hands over each datagram that is whole. One without a byte says nothing, and is passed
    /// over.
    ///
    /// # Errors
    /// A datagram is too long. Where the next one begins is not known then, now and later.
    pub fn take(&mut self, mut bytes: &[u8], mut datagram: impl FnMut(&[u8])) -> Result<(), Malformed> {
        loop {
            let missing = self.frame_bytes()? - self.part.len();
            let (more, rest) = bytes.split_at(missing.min(bytes.len()));
            self.part.extend_from_slice(more);
            bytes = rest;
            if more.len() < missing {
                return Ok(());
            }
            // What was missing may have been the length alone.
            if self.part.len() < self.frame_bytes()? {
                continue;
            }
            match &self.part[LENGTH_BYTES..] {
                [] => {}
                whole => datagram(whole),
            }
            self.part.clear();
        }
    }

    /// How many bytes the frame has that has begun, as far as that is known.
    fn frame_bytes(&self) -> Result<usize, Malformed> {
        let Some(length) = self.part.first_chunk() else { return Ok(LENGTH_BYTES) };
        let length = usize::from(u16::from_be_bytes(*length));
        if length > self.bytes_max {
            return Err(Malformed {
                format: "RFC 4571",
                offset: 0,
                reason: "a frame is longer than a datagram may be",
            });
        }
        Ok(LENGTH_BYTES + length)
    }
}

/// What becomes of whole frames of which a connection took the first `written` bytes and has no room for more: the rest of
/// the one that was cut, which has to go on, and how many others are behind it, which need not go at all.
pub fn cut(mut frames: &[u8], written: usize) -> (&[u8], usize) {
    let (mut gone, mut rest, mut others) = (written, &frames[..0], 0);
    while let Some(length) = frames.first_chunk() {
        let end = frames.len().min(LENGTH_BYTES + usize::from(u16::from_be_bytes(*length)));
        let (frame, behind) = frames.split_at(end);
        match gone {
            0 => others += 1,
            gone if gone < end => rest = &frame[gone..],
            _ => {}
        }
        gone = gone.saturating_sub(end);
        frames = behind;
    }
    (rest, others)
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn framed(datagrams: &[Vec<u8>]) -> Vec<u8> {
        let frame = |one: &Vec<u8>| [&(one.len() as u16).to_be_bytes()[..], one].concat();
        datagrams.iter().flat_map(frame).collect()
    }

    fn unframed(unframer: &mut Unframer, bytes: &[u8]) -> Result<Vec<Vec<u8>>, Malformed> {
        let mut all = Vec::new();
        unframer.take(bytes, |datagram| all.push(datagram.to_vec()))?;
        Ok(all)
    }

    #[test]
    fn a_length_beyond_the_bound_ends_the_connection_and_takes_no_memory() {
        let mut unframer = Unframer::new(100);
        assert_eq!(unframed(&mut unframer, &[0, 100, 7]), Ok(Vec::new()));
        assert!(unframer.part.capacity() < 100, "{} bytes", unframer.part.capacity());
        let mut unframer = Unframer::new(100);
        assert_eq!(unframed(&mut unframer, &[0, 1, 7, 0]), Ok(vec![vec![7]]));
        assert!(unframed(&mut unframer, &[101, 7, 0, 1, 7]).is_err());
        assert!(unframed(&mut unframer, &[0, 1, 7]).is_err(), "it stays so");
    }

    proptest! {
        #[test]
        fn datagrams_come_out_however_the_connection_was_read(
            datagrams in vec(vec(any::<u8>(), 0..300), 0..20),
            pieces in vec(1_usize..200, 1..20),
        ) {
            let bytes = framed(&datagrams);
            let (mut unframer, mut got) = (Unframer::new(300), Vec::new());
            let (mut rest, mut lengths) = (&bytes[..], pieces.into_iter().cycle());
            while !rest.is_empty() {
                let length = lengths.next().expect("they come again").min(rest.len());
                got.extend(unframed(&mut unframer, &rest[..length]).expect("none is too long"));
                rest = &rest[length..];
            }
            let said: Vec<_> = datagrams.into_iter().filter(|one| !one.is_empty()).collect();
            prop_assert_eq!(got, said);
        }

        #[test]
        fn what_a_full_connection_gets_are_whole_frames(
            datagrams in vec(vec(any::<u8>(), 1..300), 0..20),
            part in 0.0..=1.0,
        ) {
            let bytes = framed(&datagrams);
            let written = (bytes.len() as f64 * part) as usize;
            let (rest, others) = cut(&bytes, written);
            let gone = [&bytes[..written], rest].concat();
            let mut unframer = Unframer::new(300);
            let got = unframed(&mut unframer, &gone).expect("none is too long");
            prop_assert_eq!(&got[..], &datagrams[..datagrams.len() - others]);
            prop_assert!(unframer.part.is_empty());
        }
    }
}
