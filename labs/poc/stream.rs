//! The media: an MPEG-2 video with M = 4, N = 12 and 15 slices a picture, as the paper has it, cut into units.
//!
//! A unit is a slice, or what stands in front of a picture's first slice: the picture's header, and at the
//! beginning of a group those of the sequence and of the group. So every picture has 16 units, of which the first is
//! a header. The first group of an encoder has no B pictures in front of its I picture; it is left out, so that all
//! groups are alike: I BBB P BBB P BBB as sent.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use outflow_labs::process::Program;
use outflow_labs::programs::ffmpeg;

use crate::wire::seal;

/// Width and height: 15 rows of macroblocks, of which each is a slice.
pub(crate) const SIZE: (usize, usize) = (352, 240);
/// From a picture to the next.
pub(crate) const PICTURE: Duration = Duration::from_millis(40);
/// Pictures of a group.
pub(crate) const GOP: usize = 12;
/// Units of a picture: its header and its slices.
pub(crate) const UNITS: usize = 1 + SLICES;
const SLICES: usize = 15;
/// How long coding may take.
const PATIENCE: Duration = Duration::from_secs(300);

/// What a unit is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Header,
    I,
    P,
    B,
}

impl Kind {
    pub(crate) const ALL: [Kind; 4] = [Kind::Header, Kind::I, Kind::P, Kind::B];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Header => "header",
            Kind::I => "i",
            Kind::P => "p",
            Kind::B => "b",
        }
    }
}

/// A picture as it is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Picture {
    /// I, P or B.
    pub(crate) kind: Kind,
    /// Its place among the pictures as they are shown.
    pub(crate) shown: usize,
    /// Its header and its slices, each as it goes through a transport (`wire.rs`).
    pub(crate) units: Vec<Vec<u8>>,
}

/// The media.
#[derive(Debug, Clone)]
pub(crate) struct Stream {
    pub(crate) pictures: Vec<Picture>,
}

impl Stream {
    /// Codes `pictures` pictures, or takes kept ones. At its end an encoder makes another group.
    pub(crate) fn make(pictures: usize, kbps: u32) -> Result<Self> {
        let coded = std::fs::read(coded(pictures + 2 * GOP, kbps)?)?;
        let mut stream = Stream::parse(&coded)?;
        stream.pictures.truncate(pictures);
        ensure!(stream.pictures.len() == pictures, "only {} pictures were coded", stream.pictures.len());
        stream.check()?;
        Ok(stream)
    }

    /// Cuts an elementary stream, without its first group.
    fn parse(bytes: &[u8]) -> Result<Self> {
        let mut pictures: Vec<Picture> = Vec::new();
        let (mut groups, mut header) = (0, Vec::new());
        for part in parts(bytes) {
            groups += usize::from(part[3] == 0xb8);
            if !(1..=0xaf).contains(&part[3]) {
                header.extend_from_slice(part);
                continue;
            }
            if groups < 2 {
                header.clear();
                continue;
            }
            if !header.is_empty() {
                let taken = std::mem::take(&mut header);
                pictures.push(picture(&taken, pictures.len(), groups - 2)?);
            }
            let (number, picture) =
                (pictures.len(), pictures.last_mut().context("a slice without a picture")?);
            let unit = (number - 1) * UNITS + picture.units.len();
            picture.units.push(seal(unit, part));
        }
        Ok(Stream { pictures })
    }

    /// Whether it is what the paper has.
    fn check(&self) -> Result<()> {
        for (number, picture) in self.pictures.iter().enumerate() {
            ensure!(picture.units.len() == UNITS, "picture {number} has {} slices", picture.units.len() - 1);
            // As sent: each I or P picture, and the B pictures that are shown before it.
            let (kind, before) = match number % GOP {
                0 => (Kind::I, 3),
                at if at % 4 == 0 => (Kind::P, 3),
                _ => (Kind::B, 0),
            };
            ensure!(picture.kind == kind, "picture {number} is {:?}, not {kind:?}", picture.kind);
            let shown = if before > 0 { number + before } else { number - 1 };
            ensure!(picture.shown == shown, "picture {number} is shown as {}", picture.shown);
        }
        Ok(())
    }

    /// Units of all pictures.
    pub(crate) fn units(&self) -> impl Iterator<Item = &Vec<u8>> {
        self.pictures.iter().flat_map(|picture| &picture.units)
    }

    pub(crate) fn unit(&self, unit: usize) -> &[u8] {
        &self.pictures[unit / UNITS].units[unit % UNITS]
    }

    /// What a unit is.
    pub(crate) fn kind(&self, unit: usize) -> Kind {
        if unit.is_multiple_of(UNITS) { Kind::Header } else { self.pictures[unit / UNITS].kind }
    }

    /// When a unit is due, from the beginning: a picture's units are spread over its time.
    pub(crate) fn due(unit: usize) -> Duration {
        PICTURE * unit as u32 / UNITS as u32
    }

    /// The pictures that one needs, in the order of sending: those two I or P pictures before a B picture, the one
    /// before a P picture. `None` is one before the beginning.
    pub(crate) fn needs(&self, number: usize) -> Vec<Option<usize>> {
        let references = |count: usize| {
            let before = (0..number).rev().filter(|before| self.pictures[*before].kind != Kind::B);
            before.map(Some).chain(std::iter::repeat(None)).take(count).collect()
        };
        match self.pictures[number].kind {
            Kind::I | Kind::Header => Vec::new(),
            Kind::P => references(1),
            Kind::B => references(2),
        }
    }
}

/// A picture of which only the header is there.
fn picture(header: &[u8], number: usize, group: usize) -> Result<Picture> {
    let picture = parts(header).find(|part| part[3] == 0).context("no picture header")?;
    let fields = picture.get(4..6).context("a picture header is cut off")?;
    let temporal_reference = usize::from(fields[0]) << 2 | usize::from(fields[1] >> 6);
    let kind = match fields[1] >> 3 & 7 {
        1 => Kind::I,
        2 => Kind::P,
        _ => Kind::B,
    };
    let units = vec![seal(number * UNITS, header)];
    Ok(Picture { kind, shown: group * GOP + temporal_reference, units })
}

/// From a start code to the next.
fn parts(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let starts: Vec<usize> =
        bytes.windows(4).enumerate().filter(|(_, at)| at.starts_with(&[0, 0, 1])).map(|(at, _)| at).collect();
    let ends = starts.iter().skip(1).copied().chain([bytes.len()]).collect::<Vec<_>>();
    starts.into_iter().zip(ends).map(|(from, to)| &bytes[from..to])
}

/// The file of an elementary stream, made now if it is not there: something that moves, and noise, so that no
/// slice is empty.
fn coded(pictures: usize, kbps: u32) -> Result<PathBuf> {
    let name = format!("poc-{pictures}-{kbps}.m2v");
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/tmp").join(&name);
    if !file.exists() {
        std::fs::create_dir_all(file.parent().unwrap_or(&file))?;
        let fresh = file.with_file_name(format!("new-{}-{name}", std::process::id()));
        let (width, height) = SIZE;
        encoder(&format!(
            "testsrc2=size={width}x{height}:rate=25,noise=alls=6:allf=t:all_seed=1,format=yuv420p"
        ))
        .args(format!("-frames:v {pictures} -b:v {kbps}k -maxrate {kbps}k").split_whitespace())
        .args(format!("-bufsize {}k -f mpeg2video -y", kbps / 2).split_whitespace())
        .arg(fresh.display().to_string())
        .finish(PATIENCE)?;
        std::fs::rename(fresh, &file)?;
    }
    Ok(file)
}

/// M = 4, N = 12, and no other group because of a scene.
fn encoder(scene: &str) -> Program {
    ffmpeg(&format!(
        "-f lavfi -i {scene} -c:v mpeg2video -threads 1 -g {GOP} -bf 3 -b_strategy 0 -sc_threshold 1000000000"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn coded_group(first: bool) -> Vec<u8> {
        let mut bytes = vec![0, 0, 1, 0xb3, 9, 9, 0, 0, 1, 0xb8, 9];
        // Kind and temporal reference, as sent.
        let order: &[(u8, u8)] = match first {
            true => &[(1, 0), (2, 4), (3, 1)],
            false => &[
                (1, 3),
                (3, 0),
                (3, 1),
                (3, 2),
                (2, 7),
                (3, 4),
                (3, 5),
                (3, 6),
                (2, 11),
                (3, 8),
                (3, 9),
                (3, 10),
            ],
        };
        for (kind, reference) in order {
            bytes.extend([0, 0, 1, 0, reference >> 2, reference << 6 | kind << 3, 0, 0, 1, 0xb5, 7]);
            for slice in 1..=15 {
                bytes.extend([0, 0, 1, slice, 0xff]);
            }
        }
        bytes
    }

    #[test]
    fn groups_behind_the_first_are_cut_into_headers_and_slices() {
        let bytes = [coded_group(true), coded_group(false), coded_group(false)].concat();
        let stream = Stream::parse(&bytes).expect("it is as it should be");
        stream.check().expect("it is as the paper has it");
        assert_eq!((stream.pictures.len(), stream.units().count()), (24, 24 * 16));
        let kinds: Vec<Kind> = [0, 1, 16, 17, 64, 65].map(|unit| stream.kind(unit)).into();
        assert_eq!(kinds, [Kind::Header, Kind::I, Kind::Header, Kind::B, Kind::Header, Kind::P]);
        assert_eq!(stream.needs(0), []);
        assert_eq!(stream.needs(1), [Some(0), None]);
        assert_eq!(stream.needs(13), [Some(12), Some(8)]);
        assert_eq!(stream.needs(16), [Some(12)]);
        let header = stream.unit(12 * UNITS);
        assert!(
            header.windows(4).any(|at| at == [0, 0, 1, 0xb3]),
            "the group's header comes with its first picture"
        );
        assert_eq!(Stream::due(UNITS + 8), Duration::from_millis(60));
    }

    #[test]
    fn another_number_of_slices_is_told() {
        let bytes = [coded_group(true), coded_group(false)].concat();
        let stream = Stream::parse(&bytes[..bytes.len() - 5]).expect("it can be cut");
        let error = stream.check().expect_err("a slice is missing");
        assert!(error.to_string().contains("picture 11 has 14 slices"), "{error}");
    }
}
