//! What ffmpeg makes of what has come.

use std::fs::File;
use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use outflow_labs::programs::ffmpeg;

/// How long decoding may take.
const PATIENCE: Duration = Duration::from_secs(300);
/// A picture with an error is none, and no share of them is too large. One thread, so that there is one order.
const DECODING: &str = "-threads 1 -err_detect explode -max_error_rate 1 -copyts";

/// Pictures that were decoded without an error, as ffmpeg counts.
pub(crate) struct Decoded {
    /// Their times, in pictures where the file counts so, and hashes of their luma.
    pub(crate) pictures: Vec<(usize, String)>,
    /// Their luma, one behind the other.
    pub(crate) luma: File,
}

/// Decodes a file; what comes of it is beside it meanwhile.
pub(crate) fn decode(file: &Path) -> Result<Decoded> {
    let (luma, list) = (file.with_extension("decoded"), file.with_extension("md5"));
    let plane = "-map 0:v -fps_mode passthrough -vf extractplanes=y";
    ffmpeg(&format!(
        "{DECODING} -i {} {plane} -f rawvideo -y {} {plane} -f framemd5 -y {}",
        file.display(),
        luma.display(),
        list.display()
    ))
    .finish(PATIENCE)?;
    let list = std::fs::read_to_string(&list)?;
    let pictures = list.lines().filter(|line| !line.starts_with('#')).filter_map(|line| {
        // Stream, dts, pts, duration, size, hash.
        let mut fields = line.split(',').map(str::trim);
        let time = fields.nth(2)?.parse().ok()?;
        Some((time, fields.nth(2)?.to_owned()))
    });
    let decoded = Decoded { pictures: pictures.collect(), luma: File::open(&luma)? };
    std::fs::remove_file(&luma)?;
    Ok(decoded)
}

/// Does the same for each of some, side by side.
pub(crate) fn each<T: Sync, U: Send>(
    all: &[T],
    work: impl Fn(usize, &T) -> Result<U> + Sync,
) -> Result<Vec<U>> {
    std::thread::scope(|scope| {
        let work = &work;
        let threads: Vec<_> =
            all.iter().enumerate().map(|(at, one)| scope.spawn(move || work(at, one))).collect();
        let join = |thread: std::thread::ScopedJoinHandle<'_, Result<U>>| {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        threads.into_iter().map(join).collect()
    })
}

/// A picture as it came: its number, and NAL units with start codes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unit {
    pub(crate) number: usize,
    pub(crate) data: Vec<u8>,
}

impl Unit {
    /// Takes the payload of a packet as ffmpeg's own receiver does: fragments as they come, whether one is missing
    /// or not (RFC 6184, sections 5.6 to 5.8).
    pub(crate) fn take(&mut self, payload: &[u8]) {
        const START: [u8; 4] = [0, 0, 0, 1];
        match payload {
            [header, ..] if (1..24).contains(&(header & 0x1f)) => {
                self.data.extend_from_slice(&START);
                self.data.extend_from_slice(payload);
            }
            [header, rest @ ..] if header & 0x1f == 24 => {
                let mut rest = rest;
                while let Some((length, behind)) = rest.split_first_chunk() {
                    let length = usize::from(u16::from_be_bytes(*length)).min(behind.len());
                    let (unit, behind) = behind.split_at(length);
                    self.data.extend_from_slice(&START);
                    self.data.extend_from_slice(unit);
                    rest = behind;
                }
            }
            [indicator, header, rest @ ..] if indicator & 0x1f == 28 => {
                if header & 0x80 != 0 {
                    self.data.extend_from_slice(&START);
                    self.data.push(indicator & 0xe0 | header & 0x1f);
                }
                self.data.extend_from_slice(rest);
            }
            _ => {}
        }
    }
}

/// The units in a file that ffmpeg reads, with their numbers as times (IVF, a header and the bytes of each).
pub(crate) fn ivf(units: &[Unit], fps: u32) -> Vec<u8> {
    let mut file = b"DKIF\0\0\x20\0H264".to_vec();
    file.extend([0; 4]);
    for field in [fps, 1, units.len() as u32, 0] {
        file.extend(field.to_le_bytes());
    }
    for unit in units {
        file.extend((unit.data.len() as u32).to_le_bytes());
        file.extend((unit.number as u64).to_le_bytes());
        file.extend(&unit.data);
    }
    file
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_put_together_as_they_come() {
        let mut unit = Unit { number: 0, data: Vec::new() };
        unit.take(&[0x67, 1, 2]);
        unit.take(&[0x18, 0, 2, 0x68, 3, 0, 1, 0x06]);
        unit.take(&[0x7c, 0x85, 4]);
        // The one between is missing.
        unit.take(&[0x7c, 0x45, 6]);
        let expected = [
            &[0, 0, 0, 1, 0x67, 1, 2][..],
            &[0, 0, 0, 1, 0x68, 3],
            &[0, 0, 0, 1, 0x06],
            &[0, 0, 0, 1, 0x65, 4, 6],
        ];
        assert_eq!(unit.data, expected.concat());
        assert_eq!(ivf(&[unit], 25).len(), 32 + 12 + 25);
    }
}
