//! What ffmpeg has coded (`fixtures`), coded again, and decoded by libopus: is it the same sound, at the same time?
//!
//! Tones are 0.6 seconds of 1 kHz at 0.4 of full scale, and in the right channel 2.5 kHz at 0.2. In `aac-48-five` each
//! channel has its own tone. Clicks are one sample, a quarter of a second behind the beginning. `he-48-stereo` is made
//! by the crate `syom`.

use bytes::Bytes;
use opusic_c::{Channels, Decoder, SampleRate};
use outflow_media::AccessUnit;
use outflow_media::codec::aac::{AdtsHeader, AudioSpecificConfig};
use outflow_media::codec::mpeg_audio::frame_length;
use proptest::prelude::*;

use crate::limits::{DRIFT_TICKS_MAX, LEAP_TICKS_MAX};
use crate::{Coding, Counts, ToOpus, Unsupported};

/// Where tests have their sound on the timeline, in ticks.
const START: i64 = 1_000_000;
const PACKET_TICKS: i64 = 1_800;
/// The delay of libopus: 312 samples.
const CODER_TICKS: i64 = 585;
/// What ffmpeg's encoders put in front of the sound, in samples.
const AAC_PRIMING: i64 = 1024;
const MP2_PRIMING: i64 = 481;
const MP3_PRIMING: i64 = 1105;

/// A coded track.
#[derive(Clone, Copy)]
struct Track {
    coding: Coding,
    frequency_hz: i64,
    frame_samples: i64,
    priming: i64,
    data: &'static [u8],
}

fn aac(frequency_hz: u32, channels: u8, data: &'static [u8]) -> Track {
    let config = AudioSpecificConfig { object_type: 2, frequency_hz, channels, frame_samples: 1024 };
    Track {
        coding: Coding::Aac(config),
        frequency_hz: frequency_hz.into(),
        frame_samples: 1024,
        priming: AAC_PRIMING,
        data,
    }
}

fn mpeg(frequency_hz: i64, frame_samples: i64, priming: i64, data: &'static [u8]) -> Track {
    Track { coding: Coding::MpegAudio, frequency_hz, frame_samples, priming, data }
}

fn aac_stereo() -> Track {
    aac(48_000, 2, include_bytes!("fixtures/aac-48-stereo.adts"))
}

fn mp2_stereo() -> Track {
    mpeg(48_000, 1152, MP2_PRIMING, include_bytes!("fixtures/mp2-48-stereo.mp2"))
}

fn mp3_stereo() -> Track {
    mpeg(44_100, 1152, MP3_PRIMING, include_bytes!("fixtures/mp3-44-stereo.mp3"))
}

impl Track {
    /// Its frames; those of AAC without ADTS headers.
    fn frames(&self) -> Vec<&'static [u8]> {
        let mut left = self.data;
        let mut frames = Vec::new();
        while !left.is_empty() {
            let (length, header) = match self.coding {
                Coding::Aac(_) => {
                    AdtsHeader::parse(left).map(|header| (header.length, header.header)).unwrap()
                }
                Coding::Adts => (AdtsHeader::parse(left).unwrap().length, 0),
                Coding::MpegAudio => (frame_length(left).unwrap(), 0),
            };
            let (frame, behind) = left.split_at(length);
            frames.push(&frame[header..]);
            left = behind;
        }
        frames
    }

    /// Its frames with their times; the sound itself begins at `START`.
    fn units(&self) -> Vec<AccessUnit> {
        let frames = self.frames().into_iter().zip(0..);
        let unit = |(frame, index): (&'static [u8], i64)| {
            let pts = START + (index * self.frame_samples - self.priming) * 90_000 / self.frequency_hz;
            AccessUnit { track: 3, pts, dts: pts, key: true, data: Bytes::from_static(frame) }
        };
        frames.map(unit).collect()
    }
}

/// What came out.
struct Sound {
    packets: Vec<AccessUnit>,
    counts: Counts,
}

fn coded(coding: Coding, bitrate_bps: u32, units: &[AccessUnit]) -> Sound {
    let mut to_opus = ToOpus::new(coding, bitrate_bps).unwrap();
    let mut packets = Vec::new();
    for unit in units {
        to_opus.push(unit, &mut |packet| packets.push(packet));
    }
    for packet in &packets {
        assert_eq!((packet.track, packet.dts, packet.key), (3, packet.pts, true));
    }
    Sound { packets, counts: to_opus.counts() }
}

impl Sound {
    /// Of a track as it is.
    fn of(track: Track) -> Self {
        let sound = coded(track.coding, 128_000, &track.units());
        assert_eq!((sound.counts.begun, sound.counts.undecodable, sound.counts.drifted), (1, 0, 0));
        assert_eq!((sound.counts.missing, sound.counts.late), (0, 0));
        sound
    }

    /// Whether each packet is where the one before it ends.
    fn is_whole(&self) -> bool {
        self.packets.windows(2).all(|pair| pair[1].pts == pair[0].pts + PACKET_TICKS)
    }

    /// Both channels, decoded.
    fn decoded(&self) -> Vec<[f32; 2]> {
        let mut decoder = Decoder::new(Channels::Stereo, SampleRate::Hz48000).unwrap();
        let mut samples = Vec::new();
        for packet in &self.packets {
            let mut decoded = [0.0; 960 * 2];
            assert_eq!(decoder.decode_float_to_slice(&packet.data, &mut decoded, false), Ok(960));
            samples.extend(decoded.chunks_exact(2).map(|both| [both[0], both[1]]));
        }
        samples
    }

    /// The index of the sample of this time.
    fn at(&self, pts: i64) -> usize {
        usize::try_from((pts - self.packets[0].pts) * 8 / 15).unwrap()
    }

    /// How loud this frequency is in a channel, of a third of a second in the midst of the sound.
    fn level(&self, channel: usize, tone_hz: f64) -> f64 {
        let from = self.at(START + 9_000);
        let samples: Vec<f64> =
            self.decoded()[from..from + 16_000].iter().map(|both| both[channel].into()).collect();
        level(&samples, tone_hz)
    }

    /// How far behind its time the loudest sample is.
    fn click_delay(&self) -> i64 {
        let samples = self.decoded();
        let loudest = (0..samples.len()).max_by(|a, b| samples[*a][0].abs().total_cmp(&samples[*b][0].abs()));
        let wanted = self.at(START + 90_000 / 4);
        i64::try_from(loudest.unwrap()).unwrap() - i64::try_from(wanted).unwrap()
    }
}

/// The amplitude of a tone in samples of 48 kHz.
fn level(samples: &[f64], tone_hz: f64) -> f64 {
    let step = std::f64::consts::TAU * tone_hz / 48_000.0;
    let (mut real, mut imaginary) = (0.0, 0.0);
    for (index, sample) in samples.iter().enumerate() {
        let angle = step * index as f64;
        real += sample * angle.cos();
        imaginary += sample * angle.sin();
    }
    2.0 * f64::hypot(real, imaginary) / samples.len() as f64
}

fn assert_near(level: f64, wanted: f64, what: &str) {
    assert!((level - wanted).abs() < 0.03, "{what}: {level}, not {wanted}");
}

fn assert_is_stereo_tone(track: Track) {
    let sound = Sound::of(track);
    assert!(sound.is_whole());
    assert_near(sound.level(0, 1_000.0), 0.4, "left");
    assert_near(sound.level(1, 2_500.0), 0.2, "right");
    assert_near(sound.level(0, 2_500.0), 0.0, "right in left");
    assert_near(sound.level(1, 1_000.0), 0.0, "left in right");
}

#[test]
fn aac_at_48_khz_stays_what_it_is() {
    assert_is_stereo_tone(aac_stereo());
}

#[test]
fn frames_with_adts_headers_tell_their_configuration() {
    let with_headers = |track: Track| Track { coding: Coding::Adts, ..track };
    let stereo = aac_stereo();
    let sound = Sound::of(with_headers(stereo));
    assert!(sound.packets == Sound::of(stereo).packets, "the same as without");
    let mono = with_headers(aac(44_100, 1, include_bytes!("fixtures/aac-44-mono.adts")));
    let mut units = with_headers(stereo).units();
    let behind = units.last().unwrap().pts + 1_920 - mono.units()[0].pts;
    units.extend(mono.units().into_iter().map(|unit| AccessUnit { pts: unit.pts + behind, ..unit }));
    let counts = coded(Coding::Adts, 128_000, &units).counts;
    assert_eq!((counts.begun, counts.undecodable), (2, 0));
    // Main profile, and several blocks in a frame.
    for (at, bits) in [(2, 0xc0), (6, 3)] {
        let mut frame = stereo.data[..200].to_vec();
        frame[at] ^= bits;
        let unit = AccessUnit { data: frame.into(), ..units[0].clone() };
        assert_eq!(coded(Coding::Adts, 128_000, &[unit]).counts.undecodable, 1);
    }
}

#[test]
fn layer_ii_stays_what_it_is() {
    assert_is_stereo_tone(mp2_stereo());
}

#[test]
fn layer_iii_at_44_1_khz_stays_what_it_is() {
    assert_is_stereo_tone(mp3_stereo());
}

#[test]
fn band_replication_is_decoded_at_the_full_frequency() {
    let core = aac(24_000, 2, include_bytes!("fixtures/he-48-stereo.adts"));
    assert_is_stereo_tone(Track { priming: 3018 / 2, ..core });
}

#[test]
fn one_channel_stays_one() {
    let aac = aac(44_100, 1, include_bytes!("fixtures/aac-44-mono.adts"));
    let mp3 = mpeg(24_000, 576, MP3_PRIMING, include_bytes!("fixtures/mp3-24-mono.mp3"));
    for track in [aac, mp3] {
        let sound = Sound::of(track);
        // The bit of a packet's first byte that says two channels (RFC 6716, section 3.1).
        assert!(sound.packets.iter().all(|packet| packet.data[0] & 4 == 0));
        assert_near(sound.level(0, 1_000.0), 0.4, "left");
        assert_near(sound.level(1, 1_000.0), 0.4, "right");
    }
}

#[test]
fn five_channels_are_mixed_to_two() {
    let sound = Sound::of(aac(48_000, 6, include_bytes!("fixtures/aac-48-five.adts")));
    let side = 0.3 * std::f64::consts::FRAC_1_SQRT_2;
    for (tone_hz, left, right) in [
        (500.0, side, 0.0),
        (1_000.0, 0.0, side),
        (1_500.0, 0.15, 0.15),
        (60.0, 0.0, 0.0),
        (2_500.0, 0.15, 0.0),
        (3_500.0, 0.0, 0.15),
    ] {
        assert_near(sound.level(0, tone_hz), left, &format!("{tone_hz} left"));
        assert_near(sound.level(1, tone_hz), right, &format!("{tone_hz} right"));
    }
}

#[test]
fn a_click_is_heard_at_its_time() {
    let clicks = [
        ("AAC, 48 kHz", aac(48_000, 1, include_bytes!("fixtures/click-aac-48.adts"))),
        ("AAC, 44.1 kHz", aac(44_100, 1, include_bytes!("fixtures/click-aac-44.adts"))),
        ("layer II", mpeg(48_000, 1152, MP2_PRIMING, include_bytes!("fixtures/click-mp2-48.mp2"))),
        ("layer III", mpeg(44_100, 1152, MP3_PRIMING, include_bytes!("fixtures/click-mp3-44.mp3"))),
    ];
    for (what, track) in clicks {
        let delay = Sound::of(track).click_delay();
        assert!(delay.abs() <= 4, "{what}: {delay} samples");
    }
}

#[test]
fn the_first_packet_begins_before_the_first_frame_by_the_coders_delay() {
    let sound = Sound::of(aac_stereo());
    assert_eq!(sound.packets[0].pts, aac_stereo().units()[0].pts - CODER_TICKS);
}

#[test]
fn times_that_tremble_change_nothing() {
    let mut units = mp3_stereo().units();
    for (unit, index) in units.iter_mut().zip(0..) {
        unit.pts += [0, DRIFT_TICKS_MAX - 1, 1 - DRIFT_TICKS_MAX][index % 3];
    }
    units[0].pts = mp3_stereo().units()[0].pts;
    let sound = coded(Coding::MpegAudio, 128_000, &units);
    assert_eq!(sound.counts, Sound::of(mp3_stereo()).counts);
    assert!(sound.is_whole());
}

#[test]
fn a_clock_that_drifts_is_followed() {
    for sign in [1, -1] {
        let mut to_opus = ToOpus::new(Coding::MpegAudio, 64_000).unwrap();
        let frame = Bytes::from_static(mp2_stereo().frames()[3]);
        let (mut last, mut packets) = (0, 0);
        // 24 ms a frame, and two ticks more or less: 926 ppm.
        for index in 0..2_000 {
            let pts = START + index * (2_160 + 2 * sign);
            let unit = AccessUnit { track: 3, pts, dts: pts, key: true, data: frame.clone() };
            to_opus.push(&unit, &mut |packet| {
                assert!(packets == 0 || packet.pts == last + PACKET_TICKS);
                (last, packets) = (packet.pts, packets + 1);
            });
        }
        let end = START + 2_000 * (2_160 + 2 * sign);
        let behind = end - (last + PACKET_TICKS);
        assert!((0..PACKET_TICKS + 1_200).contains(&behind), "{behind} ticks");
        let counts = to_opus.counts();
        assert_eq!((counts.begun, counts.missing, counts.late), (1, 0, 0));
        // 4,000 ticks are 2,133 samples of 48 kHz, of which 240 are let be.
        assert!((1_700..2_200).contains(&counts.drifted), "{}", counts.drifted);
    }
}

#[test]
fn frames_that_are_missing_are_silence() {
    let mut units = aac_stereo().units();
    units.drain(8..14);
    let sound = coded(aac_stereo().coding, 128_000, &units);
    assert!(sound.is_whole());
    assert_eq!((sound.counts.begun, sound.counts.missing), (1, 6 * 1024));
    let samples = sound.decoded();
    let loudest = |from: i64, until: i64| {
        let between = &samples[sound.at(from)..sound.at(until)];
        between.iter().fold(0f32, |loudest, both| loudest.max(both[0].abs()))
    };
    let (gap, behind) = (units[7].pts + 1_920, units[8].pts);
    assert!(loudest(gap + 900, behind - 900) < 0.02);
    assert!(loudest(behind + 3_600, behind + 9_000) > 0.35, "what is behind is where it was");
}

#[test]
fn frames_that_overlap_are_left_out() {
    let mut units = aac_stereo().units();
    let again: Vec<_> = units[6..10].to_vec();
    units.splice(10..10, again);
    let sound = coded(aac_stereo().coding, 128_000, &units);
    assert!(sound.is_whole());
    assert_eq!((sound.counts.begun, sound.counts.late), (1, 4 * 1024));
}

#[test]
fn time_that_leaps_begins_the_sound_again() {
    for leap in [LEAP_TICKS_MAX + 3_000, -LEAP_TICKS_MAX - 100_000] {
        let mut units = mp3_stereo().units();
        units[10..].iter_mut().for_each(|unit| unit.pts += leap);
        let sound = coded(Coding::MpegAudio, 128_000, &units);
        assert_eq!((sound.counts.begun, sound.counts.missing, sound.counts.late), (2, 0, 0));
        let again = sound.packets.windows(2).find(|pair| pair[1].pts != pair[0].pts + PACKET_TICKS).unwrap();
        assert_eq!(again[1].pts, units[10].pts - CODER_TICKS);
    }
}

#[test]
fn another_format_begins_the_sound_again() {
    let mut units = mp2_stereo().units();
    let end = units.last().unwrap().pts + 2_160;
    let mono = mpeg(24_000, 576, MP3_PRIMING, include_bytes!("fixtures/mp3-24-mono.mp3")).units();
    let first = mono[0].pts;
    units.extend(mono.into_iter().map(|unit| AccessUnit { pts: unit.pts - first + end, ..unit }));
    let sound = coded(Coding::MpegAudio, 64_000, &units);
    assert_eq!((sound.counts.begun, sound.counts.undecodable), (2, 0));
    // Both beginnings are rounded to ticks.
    assert!(sound.packets.windows(2).all(|pair| pair[1].pts >= pair[0].pts + PACKET_TICKS - 1));
    assert_eq!(sound.packets.last().unwrap().data[0] & 4, 0);
}

#[test]
fn what_cannot_be_decoded_is_silence() {
    for track in [aac_stereo(), mp2_stereo(), mp3_stereo()] {
        let mut units = track.units();
        for unit in &mut units[9..12] {
            unit.data.truncate(unit.data.len() / 2);
        }
        let sound = coded(track.coding, 128_000, &units);
        assert!(sound.is_whole());
        assert_eq!(sound.packets.len(), Sound::of(track).packets.len());
        // The first frame of layer III behind those needs bits of them.
        assert!((3..=4).contains(&sound.counts.undecodable), "{:?}", sound.counts);
        assert_eq!((sound.counts.begun, sound.counts.missing), (1, 0));
    }
}

#[test]
fn a_frame_that_does_not_say_how_long_it_is_is_filled_in_by_the_next() {
    let mut units = mp2_stereo().units();
    units[5].data = Bytes::from_static(b"no frame");
    units[0].data = Bytes::new();
    let sound = coded(Coding::MpegAudio, 128_000, &units);
    assert!(sound.is_whole());
    assert_eq!((sound.counts.undecodable, sound.counts.missing, sound.counts.begun), (2, 1152, 1));
}

#[test]
fn what_is_not_coded_is_refused_with_the_reason() {
    let of = |object_type, frequency_hz, channels| {
        let config = AudioSpecificConfig { object_type, frequency_hz, channels, frame_samples: 1024 };
        ToOpus::new(Coding::Aac(config), 96_000).map(|_| ()).unwrap_err()
    };
    assert_eq!(of(39, 48_000, 2), Unsupported::Profile(39));
    assert_eq!(of(2, 48_000, 13), Unsupported::Channels(13));
    assert_eq!(of(2, 47_999, 2), Unsupported::Frequency(47_999));
    for bitrate_bps in [0, 5_999, 510_001, u32::MAX] {
        let refused = ToOpus::new(Coding::MpegAudio, bitrate_bps).map(|_| ()).unwrap_err();
        assert_eq!(refused, Unsupported::Bitrate(bitrate_bps));
    }
}

#[test]
fn it_goes_to_other_threads() {
    fn is_send<T: Send>() {}
    is_send::<ToOpus>();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20))]

    #[test]
    fn packets_do_not_overlap_while_time_goes_on(steps in prop::collection::vec(0..30_000i64, 1..40)) {
        let frames = mp3_stereo().frames();
        let mut pts = START;
        let units = steps.iter().zip(frames.iter().cycle()).map(|(step, frame)| {
            pts += step;
            AccessUnit { track: 3, pts, dts: pts, key: true, data: Bytes::from_static(frame) }
        });
        let sound = coded(Coding::MpegAudio, 24_000, &units.collect::<Vec<_>>());
        prop_assert!(sound.packets.windows(2).all(|pair| pair[1].pts >= pair[0].pts + PACKET_TICKS));
    }
}
