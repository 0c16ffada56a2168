//! What is sent: frames that are coded already, or raw video that is coded on the way.

use std::io::BufRead;
use std::path::{Path, PathBuf};

use outflow_wavelet::y4m::{self, ReadError};
use outflow_wavelet::{Codestream, Coding, Picture, Shape, codestream, openjpeg};

use super::files::{input, name};

type Bytes = Box<dyn BufRead + Send>;

/// Frames of a file, or of standard input, told apart by how it begins.
pub(super) struct Source {
    path: PathBuf,
    again: bool,
    video: Video,
    /// The first frame, if it was read to see what the video is like.
    first: Option<Codestream>,
    /// Frames since the file was opened.
    frames: u64,
}

enum Video {
    Raw(y4m::Reader<Bytes>),
    Coded(codestream::Reader<Bytes>),
}

/// A frame.
pub(super) enum Frame {
    Raw(Picture),
    Coded(Codestream),
}

impl Source {
    /// Opens it. `again`: at its end, it begins again.
    pub(super) fn open(path: &Path, again: bool) -> Result<Self, String> {
        let mut source =
            Source { path: path.to_owned(), again, video: Self::video(path)?, first: None, frames: 0 };
        if let Video::Coded(reader) = &mut source.video {
            let first = reader.codestream().map_err(|error| format!("{}: {error}", name(path)))?;
            source.first = Some(first.ok_or_else(|| format!("{}: there is nothing in it", name(path)))?);
        }
        Ok(source)
    }

    fn video(path: &Path) -> Result<Video, String> {
        let wrong = |error: ReadError| format!("{}: {error}", name(path));
        let mut bytes = input(path)?;
        let begins = bytes.fill_buf().map_err(|error| wrong(error.into()))?;
        Ok(if begins.first() == Some(&0xff) {
            Video::Coded(codestream::Reader::new(bytes))
        } else {
            Video::Raw(y4m::Reader::new(bytes).map_err(wrong)?)
        })
    }

    /// What is told in front of raw video: also of that which was coded, if it tells.
    pub(super) fn header(&self) -> Option<y4m::Header> {
        match &self.video {
            Video::Raw(reader) => Some(reader.header().clone()),
            Video::Coded(_) => self.first.as_ref().and_then(Codestream::y4m),
        }
    }

    /// What its pictures are like.
    pub(super) fn shape(&self) -> Result<Shape, String> {
        match (&self.video, &self.first) {
            (Video::Raw(reader), _) => Ok(reader.header().shape),
            (_, Some(first)) => openjpeg::shape(first.header()).map_err(|error| error.to_string()),
            (_, None) => Err(format!("{}: there is nothing in it", name(&self.path))),
        }
    }

    fn frame(&mut self) -> Result<Option<Frame>, String> {
        let wrong = |error: ReadError| format!("{}: {error}", name(&self.path));
        if let Some(first) = self.first.take() {
            return Ok(Some(Frame::Coded(first)));
        }
        Ok(match &mut self.video {
            Video::Raw(reader) => reader.picture().map_err(wrong)?.map(Frame::Raw),
            Video::Coded(reader) => reader.codestream().map_err(wrong)?.map(Frame::Coded),
        })
    }

    fn next_frame(&mut self) -> Result<Option<Frame>, String> {
        let mut frame = self.frame()?;
        // An empty file does not begin again: nothing would come of it.
        if frame.is_none() && self.again && self.frames > 0 {
            (self.video, self.frames) = (Self::video(&self.path)?, 0);
            frame = self.frame()?;
        }
        self.frames += u64::from(frame.is_some());
        Ok(frame)
    }
}

impl Iterator for Source {
    type Item = Result<Frame, String>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_frame().transpose()
    }
}

impl Frame {
    /// The frame as it is sent.
    pub(super) fn coded(self, coding: &Coding, comment: &str) -> Result<Codestream, String> {
        match self {
            Frame::Coded(codestream) => Ok(codestream),
            Frame::Raw(picture) => {
                let coded = openjpeg::encode(&picture, coding, comment).map_err(|error| error.to_string())?;
                Codestream::new(coded).map_err(|error| error.to_string())
            }
        }
    }
}
