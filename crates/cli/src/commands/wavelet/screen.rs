//! What is seen of a video: a picture for every frame, the last one again where there is none.

use std::io::Write;

use outflow_wavelet::rtp::{Assembled, Timeline};
use outflow_wavelet::y4m::{self, Rate};
use outflow_wavelet::{Codestream, Picture, openjpeg};
use serde::Serialize;

use super::coding::y4m_header;
use super::files::cannot_write;

/// A frame, and what could be decoded of it.
pub(super) struct Seen {
    pub(super) timestamp: u32,
    /// Its layers and their picture.
    pub(super) decoded: Option<(Codestream, Picture)>,
    /// It has layers, but cannot be decoded.
    pub(super) undecodable: bool,
}

impl Seen {
    pub(super) fn of(frame: Assembled) -> Self {
        let Assembled { timestamp, codestream, .. } = frame;
        let had = codestream.is_some();
        let decoded = codestream.and_then(|codestream| {
            let picture = openjpeg::decode(&codestream.to_bytes()).ok()?;
            Some((codestream, picture))
        });
        Seen { timestamp, undecodable: had && decoded.is_none(), decoded }
    }
}

/// What was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub(super) struct Tally {
    /// Pictures that were decoded.
    pub(super) shown: u64,
    /// Times that the last picture was shown again.
    pub(super) repeated: u64,
    /// Frames of which nothing came, told by the time between the others.
    pub(super) missing: u64,
    /// Frames with layers that cannot be decoded.
    pub(super) undecodable: u64,
}

/// Writes raw video.
pub(super) struct Screen {
    out: Option<Box<dyn Write>>,
    /// Where the video does not tell.
    rate: Rate,
    begun: Option<(y4m::Header, Timeline)>,
    last: Option<Picture>,
    pub(super) tally: Tally,
}

impl Screen {
    pub(super) fn new(out: Option<Box<dyn Write>>, rate: Rate) -> Self {
        Screen { out, rate, begun: None, last: None, tally: Tally::default() }
    }

    pub(super) fn show(&mut self, seen: Seen) -> Result<(), String> {
        if self.begun.is_none()
            && let Some((codestream, _)) = &seen.decoded
        {
            let header = y4m_header(codestream, self.rate)?;
            if let Some(out) = &mut self.out {
                writeln!(out, "{header}").map_err(cannot_write)?;
            }
            let timeline = Timeline::new(header.rate.unwrap_or(self.rate));
            self.begun = Some((header, timeline));
        }
        self.tally.undecodable += u64::from(seen.undecodable);
        // Until there is a picture there is nothing to see.
        let Some((header, timeline)) = &mut self.begun else { return Ok(()) };
        let (shape, missing) = (header.shape, timeline.frame(seen.timestamp));
        self.tally.missing += u64::from(missing);
        for _ in 0..missing {
            self.repeat()?;
        }
        match seen.decoded.filter(|(_, picture)| picture.shape() == shape) {
            Some((_, picture)) => {
                self.tally.shown += 1;
                self.last = Some(picture);
                self.write()
            }
            None => self.repeat(),
        }
    }

    fn repeat(&mut self) -> Result<(), String> {
        self.tally.repeated += 1;
        self.write()
    }

    fn write(&mut self) -> Result<(), String> {
        match (&mut self.out, &self.last) {
            (Some(out), Some(picture)) => y4m::write_picture(out, picture).map_err(cannot_write),
            _ => Ok(()),
        }
    }

    /// Nothing follows.
    pub(super) fn finish(&mut self) -> Result<(), String> {
        self.out.as_mut().map_or(Ok(()), Write::flush).map_err(cannot_write)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use outflow_wavelet::{Coding, Sampling, Shape};

    use super::*;

    #[derive(Clone, Default)]
    struct Shared(Rc<RefCell<Vec<u8>>>);

    impl Write for Shared {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.borrow_mut().write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    /// A gray frame of this level of gray, or nothing of it.
    fn seen(number: u32, gray: Option<u8>) -> Seen {
        let codestream = gray.map(|gray| {
            let shape = Shape::new(32, 32, Sampling::Mono).expect("small");
            let picture = Picture::new(shape, vec![gray; shape.bytes()]).expect("as many");
            let coding = Coding::of_layers(2).expect("a number that can be");
            Codestream::new(openjpeg::encode(&picture, &coding, "").expect("coded")).expect("valid")
        });
        Seen::of(Assembled { timestamp: number * 9_000, codestream, packets: 1, bytes: 1, gap: false })
    }

    #[test]
    fn every_frame_has_a_picture_once_there_is_one() {
        let out = Shared::default();
        let mut screen = Screen::new(Some(Box::new(out.clone())), Rate::parse("10").expect("valid"));
        for (number, gray) in [(0, None), (1, Some(50)), (2, None), (5, Some(90)), (6, Some(130))] {
            screen.show(seen(number, gray)).expect("memory");
        }
        screen.finish().expect("memory");
        assert_eq!(screen.tally, Tally { shown: 3, repeated: 3, missing: 2, undecodable: 0 });
        let bytes = out.0.borrow().clone();
        let video = y4m::Reader::new(&bytes[..]).expect("valid");
        assert_eq!(video.header().to_string(), "YUV4MPEG2 W32 H32 F10:1 Cmono");
        let grays: Vec<u8> = video.map(|picture| picture.expect("valid").samples()[500]).collect();
        let near = |(gray, expected): (&u8, &u8)| gray.abs_diff(*expected) < 3;
        let expected = [50, 50, 50, 50, 90, 130];
        assert!(grays.len() == 6 && grays.iter().zip(&expected).all(near), "{grays:?}");
    }
}
