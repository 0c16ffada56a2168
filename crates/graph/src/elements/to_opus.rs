//! The sound of RTP tracks as Opus.

use outflow_media::codec::aac::AudioSpecificConfig;
use outflow_media::{AccessUnit, Codec, Format, Time, Track};
use outflow_packet::{Packet, Parser};
use outflow_rtp::payload::Packetizer;
use outflow_rtp::payload::depacketize::{Depacketizer, Dropped};
use outflow_sound::{Coding, ToOpus};

use super::counted::Counted;
use crate::limits::OPUS_BPS;
use crate::{
    Content, Contents, Contract, Control, Element, Gives, Item, Kind, Make, Message, OUT, Signals, Tally,
    TrackTime, Unfit,
};

/// The element.
pub const KIND: Kind = Kind {
    name: "to-opus",
    doc: "Codes the first track of AAC or MPEG audio again, as Opus. Other tracks stay as they are.",
    contract: |_| {
        let control = Control { changes: Signals::CLOCK, ..Control::hears(Signals::BREAK) };
        Contract::new(Contents::of(&[Content::Audio]), Gives::Same).with(control)
    },
    outputs: OUT,
    options: &[],
    make: Make::Core(|_| Ok(Box::new(Sound::default()))),
};

/// Samples a second of Opus by RTP (RFC 7587, section 4.1).
const OPUS_HZ: i64 = 48_000;
/// Ticks a second of access units.
const TICKS: i64 = 90_000;

/// Whether these tracks have sound that is not Opus, and can be.
pub fn needs_opus(tracks: &[Track]) -> bool {
    !tracks.iter().any(|track| track.codec == Codec::Opus)
        && tracks.iter().any(|track| coding(track).is_some())
}

/// How a track is coded, if it can be decoded.
fn coding(track: &Track) -> Option<Coding> {
    match &track.codec {
        Codec::Aac { config, .. } => AudioSpecificConfig::parse(config).ok().map(Coding::Aac),
        Codec::MpegAudio => Some(Coding::MpegAudio),
        _ => None,
    }
}

/// The track as it goes out.
fn as_opus(track: &Track) -> Track {
    Track {
        codec: Codec::Opus,
        clock_rate: OPUS_HZ as u32,
        channels: 2,
        encoding: "opus".to_owned(),
        fmtp: String::new(),
        ..track.clone()
    }
}

#[derive(Debug, Default)]
struct Sound {
    works: Option<Box<Works>>,
    out: Vec<Item>,
}

/// What codes a track again.
#[derive(Debug)]
struct Works {
    /// What comes in, and what goes out.
    input: Vec<Track>,
    output: Vec<Track>,
    track: u8,
    depacketizer: Depacketizer,
    to_opus: ToOpus,
    /// Once the first packet has shown the source's SSRC.
    packetizer: Option<Packetizer>,
    parser: Parser,
    clock: Unwrapped,
    counted: Counted,
}

/// Timestamps of a source, counted on where they wrap.
#[derive(Debug)]
struct Unwrapped {
    clock_rate: i64,
    newest: Option<i64>,
}

impl Unwrapped {
    /// The time of a timestamp near the newest one, in ticks of access units.
    fn near(&self, timestamp: u32) -> i64 {
        let ticks = i128::from(self.unwrap(timestamp)) * i128::from(TICKS) / i128::from(self.clock_rate);
        i64::try_from(ticks).unwrap_or(i64::MAX / 4)
    }

    fn note(&mut self, timestamp: u32) {
        self.newest = self.newest.max(Some(self.unwrap(timestamp)));
    }

    fn unwrap(&self, timestamp: u32) -> i64 {
        let newest = self.newest.unwrap_or(timestamp.into());
        newest + i64::from(timestamp.wrapping_sub(newest as u32).cast_signed())
    }
}

/// The timestamp of Opus at a time, its lower bits.
fn timestamp(ticks: i64) -> u32 {
    (i128::from(ticks) * i128::from(OPUS_HZ) / i128::from(TICKS)) as u32
}

impl Works {
    fn new(tracks: &[Track]) -> Result<Self, Unfit> {
        let help = "give it AAC or MPEG audio by RTP";
        let known =
            || tracks.iter().zip(0..).find_map(|(track, number)| Some((track, number, coding(track)?)));
        let (track, number, coding) =
            known().ok_or_else(|| Unfit::new("there is no sound that can be coded again", help))?;
        let to_opus = ToOpus::new(coding, OPUS_BPS).map_err(|why| Unfit::new(why.to_string(), help))?;
        let depacketizer =
            Depacketizer::new(track).ok_or_else(|| Unfit::new("its frames cannot be told", help))?;
        let mut output = tracks.to_vec();
        output[usize::from(number)] = as_opus(track);
        Ok(Works {
            parser: Parser::new(&Format::Rtp(output.clone())),
            input: tracks.to_vec(),
            output,
            track: number,
            depacketizer,
            to_opus,
            packetizer: None,
            clock: Unwrapped { clock_rate: i64::from(track.clock_rate.max(1)), newest: None },
            counted: Counted::default(),
        })
    }

    /// Takes a packet, and hands on what comes of it.
    fn push(&mut self, item: Item, out: &mut Vec<Item>) {
        if item.packet.tag.track != self.track {
            return out.push(item);
        }
        let Some([.., s0, s1, s2, s3]) = item.header().copied() else { return };
        let ssrc = u32::from_be_bytes([s0, s1, s2, s3]);
        let Works { output, track, depacketizer, to_opus, packetizer, parser, clock, .. } = self;
        // RFC 3550, section 5.1: the first number should not be guessable.
        let new = || Packetizer::new(&output[usize::from(*track)], ssrc, (ssrc >> 7) as u16);
        if packetizer.is_none() {
            *packetizer = new();
        }
        let Some(packetizer) = packetizer else { return };
        let arrived = item.packet.arrived;
        depacketizer.handle(item.whole(), |unit| {
            let pts = clock.near(unit.timestamp);
            clock.note(unit.timestamp);
            let unit = AccessUnit { track: usize::from(*track), pts, dts: pts, key: true, data: unit.data };
            to_opus.push(&unit, &mut |packet| {
                packetizer.push(&packet.data, timestamp(packet.pts), &mut |bytes| {
                    // What is made is well-formed; were it not, it would not be sent.
                    let Ok(tag) = parser.tag(*track, &bytes) else { return };
                    out.push(item.made(Packet { bytes, tag, arrived }));
                });
            });
        });
    }

    /// What was dropped; what could not be decoded is malformed.
    fn dropped(&self) -> Dropped {
        let dropped = self.depacketizer.dropped();
        Dropped { malformed: dropped.malformed + self.to_opus.counts().undecodable, ..dropped }
    }
}

impl Element for Sound {
    fn bind(&mut self, input: &Format) -> Result<Format, Unfit> {
        let Format::Rtp(tracks) = input else {
            self.works = None;
            return Err(Unfit::new("only tracks of RTP are coded again", "give it AAC or MPEG audio by RTP"));
        };
        if self.works.as_ref().is_none_or(|works| works.input != *tracks) {
            self.works = None;
            self.works = Some(Box::new(Works::new(tracks)?));
        }
        let output = self.works.as_ref().map_or_else(Vec::new, |works| works.output.clone());
        Ok(Format::Rtp(output))
    }

    fn work(&mut self, _: Time, batch: &mut Vec<Item>, tally: &mut Tally) {
        let Sound { works: Some(works), out } = self else { return batch.clear() };
        batch.drain(..).for_each(|item| works.push(item, out));
        core::mem::swap(batch, out);
        works.counted.count(works.dropped(), tally);
    }

    fn message(&mut self, _: Time, message: Message) -> Option<Message> {
        match (&self.works, message) {
            (Some(works), Message::Clock(time)) if time.track == works.track => {
                Some(Message::Clock(TrackTime { rtp: timestamp(works.clock.near(time.rtp)), ..time }))
            }
            _ => Some(message),
        }
    }

    fn state(&mut self) -> Option<Box<dyn core::any::Any + Send>> {
        Some(self.works.take()?)
    }

    fn resume(&mut self, state: Box<dyn core::any::Any + Send>) {
        if let Ok(works) = state.downcast::<Works>()
            && self.works.as_ref().is_none_or(|mine| mine.input == works.input)
        {
            self.works = Some(works);
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use outflow_media::Tag;
    use outflow_media::codec::{aac, opus};
    use outflow_rtp::{HEADER, PlainHeader};
    use outflow_ts::DATAGRAM_BYTES;
    use outflow_units::FromTs;

    use super::*;
    use crate::Settings;
    use crate::elements::testing::{Run, SSRC};

    /// Eight seconds of H.264 and AAC of 48 kHz.
    const CLIP: &[u8] = include_bytes!("../../../../assets/live.ts");

    fn tracks(clock_rate: u32) -> Vec<Track> {
        let config = Bytes::from_static(&[0x11, 0x90]);
        let codec = Codec::Aac { config, size_length: 13, index_length: 3, index_delta_length: 3 };
        let encoding = "MPEG4-GENERIC".to_owned();
        vec![
            Track::h264(),
            Track { codec, payload_type: 97, clock_rate, channels: 2, encoding, ..Track::h264() },
        ]
    }

    fn run(clock_rate: u32) -> Run {
        Run::new(&KIND, &Settings::default(), &Format::Rtp(tracks(clock_rate)))
    }

    fn item(track: u8, sequence: u16, timestamp: u32, payload: &[u8]) -> Item {
        let payload_type = 96 + track;
        let header = PlainHeader { marker: true, payload_type, sequence, timestamp, ssrc: SSRC };
        let bytes = Bytes::from([&header.emit()[..], payload].concat());
        let mut item = Item::empty();
        item.packet = Packet { bytes, tag: Tag { track, ..Tag::default() }, arrived: Time::ZERO };
        item
    }

    /// The sound of the clip by RTP (RFC 3640, section 3.3.6), from this timestamp on, and pictures beside it.
    fn source(begins: u32) -> Vec<Item> {
        let mut from = FromTs::new([outflow_ts::Coding::Audio("AAC")]);
        let (mut items, mut number) = (Vec::new(), 0_u16);
        for datagram in CLIP.chunks(DATAGRAM_BYTES) {
            from.push(datagram, Time::ZERO, &mut |unit, _| {
                let frame = &unit.data[aac::ADTS_HEADER..];
                let size = (frame.len() as u16) << 3;
                let payload = [&[0, 16][..], &size.to_be_bytes(), frame].concat();
                let timestamp = begins.wrapping_add(1024 * u32::from(number));
                items.push(item(1, number, timestamp, &payload));
                items.push(item(0, number, 0, &[0x41, 7]));
                number += 1;
            });
        }
        items
    }

    #[test]
    fn sound_is_coded_again_and_pictures_stay_as_they_are() {
        // Timestamps wrap on the way.
        let begins = u32::MAX - 48_000;
        let mut run = run(48_000);
        let Format::Rtp(said) = run.format.clone() else { panic!("{:?}", run.format) };
        let named: Vec<_> = said.iter().map(|track| (track.encoding.as_str(), track.payload_type)).collect();
        assert_eq!(named, [("H264", 96), ("opus", 97)]);
        let given = source(begins);
        let out = run.give(given.clone());
        let of = |items: &[Item], track| -> Vec<Bytes> {
            let own = items.iter().filter(|item| item.packet.tag.track == track);
            own.map(|item| item.packet.bytes.clone()).collect()
        };
        assert_eq!(of(&out, 0), of(&given, 0));
        let heard = of(&out, 1);
        let expected = of(&given, 1).len() * 1024 / 960;
        assert!((expected - 2..=expected).contains(&heard.len()), "{} of {expected}", heard.len());
        assert!(heard.iter().all(|packet| opus::samples(&packet[HEADER..]) == Some(960)));
        let header = |packet: &Bytes| {
            let header = outflow_rtp::RtpHeader::new_checked(packet).expect("RTP");
            assert_eq!((header.ssrc(), header.payload_type()), (SSRC, 97));
            (header.sequence(), header.timestamp())
        };
        let numbers: Vec<_> = heard.iter().map(header).collect();
        let follows = |pair: &[(u16, u32)]| {
            (pair[1].0.wrapping_sub(pair[0].0), pair[1].1.wrapping_sub(pair[0].1)) == (1, 960)
        };
        assert!(numbers.windows(2).all(follows));
        // What is heard first is what came first, but for the delay of the coder.
        let behind = begins.wrapping_sub(numbers[0].1);
        assert!(behind < 960, "{behind}");
        assert_eq!(run.tally.drops.total(), 0, "{:?}", run.tally);
    }

    #[test]
    fn its_clock_is_told_in_ticks_of_opus() {
        let mut run = run(44_100);
        let time = |track, rtp| TrackTime { track, ntp: 7 << 32, rtp, at: Time::ZERO, told: true };
        for (track, rtp, expected) in [(0, 90_000, 90_000), (1, 44_100, 48_000), (1, 22_050, 24_000)] {
            let told = run.element.message(Time::ZERO, Message::Clock(time(track, rtp)));
            assert_eq!(told, Some(Message::Clock(time(track, expected))));
        }
        assert_eq!(run.element.message(Time::ZERO, Message::Break), Some(Message::Break));
    }

    #[test]
    fn what_cannot_be_decoded_is_refused_and_left_alone() {
        assert!(needs_opus(&tracks(48_000)));
        let mut with_opus = tracks(48_000);
        with_opus.push(Track { codec: Codec::Opus, ..Track::h264() });
        assert!(!needs_opus(&with_opus) && !needs_opus(&[Track::h264()]));
        let mut main = tracks(48_000);
        if let Codec::Aac { config, .. } = &mut main[1].codec {
            // AAC Main.
            *config = Bytes::from_static(&[0x09, 0x90]);
        }
        let refused = Run::refusal(&KIND, &Settings::default(), &Format::Rtp(main));
        assert!(refused.contains("object type 1"), "{refused}");
        let refused = Run::refusal(&KIND, &Settings::default(), &Format::Rtp(vec![Track::h264()]));
        assert!(refused.contains("AAC"), "{refused}");
    }
}
