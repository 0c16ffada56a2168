//! YUV4MPEG2 ("Y4M"): raw video with a header line, which ffmpeg, GStreamer and most encoders read and
//! write (yuv4mpeg(5) of mjpegtools).

mod header;

pub use header::{Header, Rate};

use std::io;
use std::io::{BufRead, Read, Write};

use outflow_media::Malformed;

use crate::limits::Y4M_LINE_BYTES_MAX;
use crate::picture::Picture;

/// What a frame's line begins with.
const FRAME: &[u8] = b"FRAME";

/// Why Y4M cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// What was read is something else.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// It cannot be read at all.
    #[error("cannot be read: {0}")]
    Io(#[from] io::Error),
}

/// Reads pictures one by one.
#[derive(Debug)]
pub struct Reader<R> {
    from: R,
    header: Header,
    /// Bytes read so far.
    at: usize,
}

impl<R: BufRead> Reader<R> {
    /// Reads the header.
    ///
    /// # Errors
    /// It cannot be read, or is none of those that can be worked on.
    pub fn new(mut from: R) -> Result<Self, ReadError> {
        let line = line(&mut from, 0)?;
        let header = Header::parse(&line)?;
        Ok(Reader { from, header, at: line.len() })
    }

    /// The header.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The next picture; `None` at the end.
    ///
    /// # Errors
    /// It cannot be read, is no frame, or ends within one.
    pub fn picture(&mut self) -> Result<Option<Picture>, ReadError> {
        if self.from.fill_buf()?.is_empty() {
            return Ok(None);
        }
        let line = line(&mut self.from, self.at)?;
        // A frame may have parameters of its own; none that change how it is read are in use.
        if line.get(..FRAME.len()) != Some(FRAME) || !matches!(line[FRAME.len()], b' ' | b'\n') {
            return Err(malformed(self.at, "no FRAME line where one should be").into());
        }
        self.at += line.len();
        let bytes = self.header.shape.bytes();
        let mut samples = Vec::new();
        self.from.by_ref().take(bytes as u64).read_to_end(&mut samples)?;
        self.at += samples.len();
        let picture = Picture::new(self.header.shape, samples);
        picture.map(Some).ok_or(malformed(self.at, "it ends within a frame").into())
    }
}

impl<R: BufRead> Iterator for Reader<R> {
    type Item = Result<Picture, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.picture().transpose()
    }
}

/// A line, its end included.
fn line(from: &mut impl BufRead, at: usize) -> Result<Vec<u8>, ReadError> {
    let mut line = Vec::new();
    from.take(Y4M_LINE_BYTES_MAX as u64).read_until(b'\n', &mut line)?;
    if line.ends_with(b"\n") {
        Ok(line)
    } else {
        Err(malformed(at + line.len(), "a line that does not end, or not in time").into())
    }
}

/// Writes a picture behind the header and those before it.
///
/// # Errors
/// Those of `out`.
pub fn write_picture(out: &mut impl Write, picture: &Picture) -> io::Result<()> {
    out.write_all(b"FRAME\n")?;
    out.write_all(picture.samples())
}

const fn malformed(offset: usize, reason: &'static str) -> Malformed {
    Malformed { format: "YUV4MPEG2", offset, reason }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: &[u8] = b"YUV4MPEG2 W2 H2 F25:1 C420jpeg\nFRAME\nabcdefFRAME Ixyz\nABCDEF";

    #[test]
    fn pictures_are_read_as_they_are_written() {
        let reader = Reader::new(TWO).expect("valid");
        let mut again = reader.header().to_string().into_bytes();
        again.push(b'\n');
        for picture in reader {
            write_picture(&mut again, &picture.expect("valid")).expect("memory");
        }
        let expected = TWO.strip_suffix(b" Ixyz\nABCDEF").expect("so it ends");
        assert_eq!(again, [expected, b"\nABCDEF"].concat());
    }

    #[test]
    fn what_is_cut_off_is_an_error_and_its_place_is_told() {
        for length in 0..TWO.len() {
            let whole = match length {
                31 => Some(0),
                43 => Some(1),
                _ => None,
            };
            let read = Reader::new(&TWO[..length]).and_then(Iterator::collect::<Result<Vec<_>, _>>);
            match (read, whole) {
                (Ok(pictures), Some(count)) => assert_eq!(pictures.len(), count),
                (Err(ReadError::Malformed(error)), None) => assert_eq!(error.offset, length, "{error}"),
                (other, _) => panic!("{length}: {other:?}"),
            }
        }
    }

    #[test]
    fn what_is_no_frame_is_refused() {
        let mut bytes = TWO.to_vec();
        bytes[43] = b'f';
        let read: Result<Vec<_>, _> = Reader::new(&bytes[..]).expect("its header is right").collect();
        let Err(ReadError::Malformed(error)) = read else { panic!("{read:?}") };
        assert_eq!((error.offset, error.reason), (43, "no FRAME line where one should be"));
    }
}
