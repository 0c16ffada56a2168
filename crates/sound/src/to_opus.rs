//! The state machine: frames in, packets out.

use std::fmt;

use outflow_media::AccessUnit;

use crate::coding::{Coding, Unsupported};
use crate::decode::{Decoded, Decoder, Shape};
use crate::encode::{Coder, PACKET_SAMPLES};
use crate::limits::BITRATE_BPS;
use crate::resample::{FREQUENCY_HZ, Resampler};
use crate::timeline::{Place, TICKS, Timeline};

/// Silence that is fed at once, in samples of all channels.
static SILENCE: [f32; 4096] = [0.0; 4096];

/// What became of frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Frames that came.
    pub frames: u64,
    /// Those of them that could not be decoded. Silence is in their place.
    pub undecodable: u64,
    /// Samples of silence, of each channel and at the frequency of what came in, where frames were missing.
    pub missing: u64,
    /// Samples that were left out, as what was there before them reached beyond their time.
    pub late: u64,
    /// Samples that were added or left out one by one, as the source's clock does not go as its samples do.
    pub drifted: u64,
    /// How often the sound began, and began again: at the first frame, when its format changed, when time leapt.
    pub begun: u64,
    /// Packets of Opus.
    pub packets: u64,
    /// Packets that libopus refused to code: nothing is in their place.
    pub uncoded: u64,
}

/// Frames of AAC or MPEG audio into packets of Opus of 20 ms.
///
/// What is missing by the times of frames is filled with silence, and what overlaps is left out, up to a second.
/// Beyond that, and where the sampling frequency or the number of channels changes, the sound begins again at the time
/// of the frame: what was held back of less than a packet is gone then, and times go where the frame's goes.
///
/// Another process that goes on with a stream begins it again.
pub struct ToOpus {
    decoder: Decoder,
    bitrate_bps: u32,
    run: Option<Run>,
    /// The samples of one frame.
    pcm: Vec<f32>,
    counts: Counts,
}

/// What is set up for frames of one shape.
struct Run {
    frequency_hz: u32,
    channels: usize,
    timeline: Timeline,
    resampler: Resampler,
    coder: Coder,
    /// Packets since the timeline began, those that were not coded included.
    packets: i64,
}

impl ToOpus {
    /// For frames of this coding, into this number of bits a second, whatever the channels.
    ///
    /// # Errors
    /// It is not a profile that is decoded, it has more channels than can be mixed down, or a frequency that sound
    /// does not have, or Opus does not have this bitrate.
    pub fn new(coding: Coding, bitrate_bps: u32) -> Result<Self, Unsupported> {
        if !BITRATE_BPS.contains(&bitrate_bps) {
            return Err(Unsupported::Bitrate(bitrate_bps));
        }
        let decoder = Decoder::new(coding)?;
        Ok(ToOpus { decoder, bitrate_bps, run: None, pcm: Vec::new(), counts: Counts::default() })
    }

    /// What became of the frames so far.
    pub const fn counts(&self) -> Counts {
        self.counts
    }

    /// Takes one frame, and gives the packets that it completes, of the same track. Each has 20 ms of one or two
    /// channels; its time is that of the first sample that is decoded from it.
    pub fn push(&mut self, unit: &AccessUnit, out: &mut impl FnMut(AccessUnit)) {
        self.counts.frames += 1;
        let place = self.run.as_ref().map_or(Place::Elsewhere, |run| run.timeline.place(unit.pts));
        if place == Place::Elsewhere && self.run.is_some() {
            self.decoder.reset();
        }
        let decoded = self.decoder.decode(&unit.data, &mut self.pcm);
        self.counts.undecodable += u64::from(!matches!(decoded, Decoded::Sound(_)));
        let (Decoded::Sound(shape) | Decoded::Silence(shape)) = decoded else { return };
        let place = self.set_up(shape, place, unit.pts);
        let ToOpus { run, pcm, counts, .. } = self;
        let Some(run) = run else { return };
        let mut told = |data, pts| out(AccessUnit { track: unit.track, pts, dts: pts, key: true, data });
        run.push(place, pcm, counts, &mut told);
    }

    /// Has a run for this shape. Where it begins with this frame, that is where it is expected.
    fn set_up(&mut self, shape: Shape, place: Place, pts: i64) -> Place {
        let run = self.run.as_mut().filter(|run| run.fits(shape));
        let begins = match run {
            Some(_) if place != Place::Elsewhere => return place,
            Some(run) => run.begin(pts),
            None => false,
        };
        if !begins {
            self.run = Run::new(shape, self.bitrate_bps, pts);
        }
        self.counts.begun += 1;
        Place::Here
    }
}

impl Run {
    /// `None` if a library refuses what was checked before, which it does not.
    fn new(shape: Shape, bitrate_bps: u32, pts: i64) -> Option<Self> {
        let Shape { frequency_hz, channels, .. } = shape;
        let resampler = Resampler::new(frequency_hz, channels)?;
        let coder = Coder::new(channels, bitrate_bps)?;
        let timeline = Timeline::new(pts, frequency_hz);
        Some(Run { frequency_hz, channels, timeline, resampler, coder, packets: 0 })
    }

    fn fits(&self, shape: Shape) -> bool {
        (self.frequency_hz, self.channels) == (shape.frequency_hz, shape.channels)
    }

    /// Begins again at this time. False if libopus refuses.
    fn begin(&mut self, pts: i64) -> bool {
        self.timeline = Timeline::new(pts, self.frequency_hz);
        self.packets = 0;
        self.resampler.reset();
        self.coder.reset()
    }

    /// Takes the samples of a frame.
    fn push(
        &mut self,
        place: Place,
        pcm: &mut Vec<f32>,
        counts: &mut Counts,
        out: &mut impl FnMut(bytes::Bytes, i64),
    ) {
        match place {
            Place::Here | Place::Elsewhere => {}
            Place::Longer => {
                counts.drifted += 1;
                pcm.extend_from_within(pcm.len() - self.channels..);
            }
            Place::Shorter => {
                counts.drifted += 1;
                pcm.truncate(pcm.len() - self.channels);
            }
            Place::Behind(samples) => {
                counts.missing += samples as u64;
                self.feed_silence(samples, counts, out);
            }
            Place::Late(samples) => {
                let over = (samples * self.channels).min(pcm.len());
                counts.late += (over / self.channels) as u64;
                pcm.drain(..over);
            }
        }
        self.feed(pcm, counts, out);
    }

    fn feed_silence(&mut self, samples: usize, counts: &mut Counts, out: &mut impl FnMut(bytes::Bytes, i64)) {
        let mut left = samples * self.channels;
        while left > 0 {
            let now = left.min(SILENCE.len());
            self.feed(&SILENCE[..now], counts, out);
            left -= now;
        }
    }

    fn feed(&mut self, samples: &[f32], counts: &mut Counts, out: &mut impl FnMut(bytes::Bytes, i64)) {
        self.timeline.feed(samples.len() / self.channels);
        let first = self.timeline.began() - ticks(self.coder.delay());
        let Run { resampler, coder, packets, .. } = self;
        resampler.push(samples, &mut |resampled| {
            coder.push(resampled, &mut |packet| {
                let pts = first + *packets * ticks(PACKET_SAMPLES);
                *packets += 1;
                match packet {
                    Some(packet) => {
                        counts.packets += 1;
                        out(packet, pts);
                    }
                    None => counts.uncoded += 1,
                }
            });
        });
    }
}

/// How long this number of samples of 48 kHz is.
fn ticks(samples: usize) -> i64 {
    let frequency_hz = i64::from(FREQUENCY_HZ);
    (i64::try_from(samples).unwrap_or(0) * TICKS + frequency_hz / 2) / frequency_hz
}

impl fmt::Debug for ToOpus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut told = f.debug_struct("ToOpus");
        told.field("bitrate_bps", &self.bitrate_bps).field("counts", &self.counts).finish_non_exhaustive()
    }
}
