//! A packet that a plug-in is given part by part, and what it writes in its place.

use bytes::{BufMut as _, Bytes, BytesMut};

/// A packet on its way through a plug-in.
#[derive(Debug)]
pub(crate) struct Parts {
    whole: Bytes,
    /// Bytes of a part.
    size: usize,
    /// Where the part begins that is worked on.
    begin: usize,
    /// How many of its bytes others have taken the place of.
    written: usize,
    /// What takes the place of the packet; empty as long as that is the packet itself.
    made: BytesMut,
}

impl Parts {
    /// At its first part.
    pub(crate) fn new(whole: Bytes, size: usize) -> Self {
        Parts { whole, size: size.max(1), begin: 0, written: 0, made: BytesMut::new() }
    }

    /// Bytes of the whole packet.
    pub(crate) fn bytes(&self) -> usize {
        self.whole.len()
    }

    /// Where the part begins that is worked on, and the part.
    pub(crate) fn part(&self) -> (usize, Bytes) {
        let end = self.begin.saturating_add(self.size).min(self.whole.len());
        (self.begin, self.whole.slice(self.begin..end))
    }

    /// Puts other bytes in the place of the part's first.
    ///
    /// # Errors
    /// They are too many, or not the first of the call.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), String> {
        let room = self.part().1.len();
        if self.written > 0 {
            return Err("it wrote twice in a call".to_owned());
        }
        if bytes.len() > room {
            return Err(format!("it wrote {} bytes over a part of {room}", bytes.len()));
        }
        if self.made.is_empty() && !bytes.is_empty() {
            self.made.reserve(self.whole.len());
            self.made.put_slice(&self.whole[..self.begin]);
        }
        self.made.put_slice(bytes);
        self.written = bytes.len();
        Ok(())
    }

    /// Goes on to the next part. Returns whether there is one.
    pub(crate) fn next(&mut self) -> bool {
        let (_, part) = self.part();
        let written = core::mem::take(&mut self.written);
        if written == 0 && !self.made.is_empty() {
            self.made.put_slice(&part);
        }
        self.begin += if written == 0 { part.len() } else { written };
        self.begin < self.whole.len()
    }

    /// The packet that came of it; `None` if that is the one that it was.
    pub(crate) fn made(self) -> Option<Bytes> {
        (!self.made.is_empty()).then(|| self.made.freeze())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_takes_its_place_and_the_rest_stays() {
        let mut parts = Parts::new(Bytes::from_static(b"abcdefghij"), 4);
        let mut seen = Vec::new();
        for written in ["", "EF", "GHI", ""] {
            let (begin, part) = parts.part();
            seen.push((begin, String::from_utf8_lossy(&part).into_owned()));
            parts.write(written.as_bytes()).expect("it fits");
            assert_eq!(parts.next(), begin + part.len() < 10 || written == "GHI");
        }
        let expected = [(0, "abcd"), (4, "efgh"), (6, "ghij"), (9, "j")];
        assert_eq!(seen, expected.map(|(begin, part)| (begin, part.to_owned())));
        assert_eq!(parts.made().as_deref(), Some(&b"abcdEFGHIj"[..]));
    }

    #[test]
    fn what_does_not_fit_is_refused_and_what_is_not_touched_stays_the_same() {
        let mut parts = Parts::new(Bytes::from_static(b"abc"), 2);
        assert!(parts.write(b"ABC").is_err());
        assert!(parts.next() && !parts.next());
        assert_eq!(parts.made(), None);
        let mut parts = Parts::new(Bytes::from_static(b"abc"), 2);
        parts.write(b"A").expect("it fits");
        assert!(parts.write(b"B").is_err());
    }
}
