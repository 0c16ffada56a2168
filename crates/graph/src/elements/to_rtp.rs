//! Elementary streams of a transport stream as RTP, a track each.

use outflow_media::{AccessUnit, Codec, Format, Time, Track};
use outflow_packet::{Packet, Parser};
use outflow_rtp::payload::depacketize::Dropped;
use outflow_sound::ToOpus;
use outflow_ts::{Coding, programme_in};
use outflow_units::FromTs;

use super::counted::Counted;
use crate::limits::OPUS_BPS;
use crate::{
    Content, Contents, Contract, Control, Element, Form, Gives, Item, Kind, Make, Message, OUT, Opt, Setting,
    Settings, Signals, Tally, Unfit,
};

const GIVES: Contents = Contents::of(&[Content::H264, Content::H265, Content::Audio]);

/// The element.
pub const KIND: Kind = Kind {
    name: "to-rtp",
    doc: "Takes a picture and a sound out of a transport stream, as RTP with a track each.",
    contract: |_| {
        // The clocks of its tracks are inside of the transport stream.
        let control = Control { ends: Signals::CLOCK, ..Control::hears(Signals::BREAK) };
        Contract::new(Contents::of(&[Content::Ts]), Gives::OneOf(GIVES)).with(control)
    },
    outputs: OUT,
    options: &[
        Opt::new(
            "video",
            Form::Word(&["H264", "H265"]),
            None,
            "The first stream of this codec; none if left out.",
        ),
        Opt::new(
            "audio",
            Form::Word(&["opus", "aac", "mpeg"]),
            None,
            "The first stream of this codec, all as Opus: AAC and MPEG audio are coded again. None if left out.",
        ),
    ],
    make: Make::Core(|settings| match Tracks::of_settings(settings) {
        Tracks { video: None, audio: None } => {
            Err(Unfit::new("it is to take nothing out", "give it \"video\", \"audio\", or both"))
        }
        tracks => Ok(Box::new(ToRtp { tracks, works: None, out: Vec::new() })),
    }),
};

/// Which elementary streams of a programme become tracks: the first of each of these codings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tracks {
    /// The picture.
    pub video: Option<Coding>,
    /// The sound.
    pub audio: Option<Coding>,
}

/// The words of codecs, and what a programme calls them.
const CODINGS: [(&str, Coding); 5] = [
    ("H264", Coding::H264),
    ("H265", Coding::H265),
    ("opus", Coding::Audio("Opus")),
    ("aac", Coding::Audio("AAC")),
    ("mpeg", Coding::Audio("MPEG audio")),
];

impl Tracks {
    /// Those of the programme that the tables say with which a receiver begins.
    ///
    /// # Errors
    /// They say none, or one that has nothing that can become a track.
    pub fn said_by(preamble: &[u8]) -> Result<Self, Unfit> {
        let not_yet = || Unfit::new("the stream has not said yet what it carries", "try again in a moment");
        let programme = programme_in(preamble).ok_or_else(not_yet)?;
        let first = |is_one: fn(Coding) -> bool| {
            let known = |coding: &Coding| CODINGS.iter().any(|(_, one)| one == coding) && is_one(*coding);
            programme.streams.iter().map(|stream| stream.coding).find(known)
        };
        let tracks = Tracks { video: first(Coding::is_video), audio: first(Coding::is_audio) };
        if tracks.codings().next().is_none() {
            let names = programme.codec_names().join(", ");
            let what = format!("the stream has {names}: none of that goes as RTP by itself");
            return Err(Unfit::new(what, "play it as a transport stream"));
        }
        Ok(tracks)
    }

    /// What of the streams that these tables say is in none of the tracks, by their names.
    pub fn left_out(self, preamble: &[u8]) -> Vec<String> {
        let mut taken: Vec<Coding> = self.codings().collect();
        let streams = programme_in(preamble).into_iter().flat_map(|programme| programme.streams);
        let others =
            streams.filter(|stream| match taken.iter().position(|coding| *coding == stream.coding) {
                Some(at) => {
                    taken.swap_remove(at);
                    false
                }
                None => true,
            });
        let named = others.map(|stream| match stream.coding.is_video() {
            true => format!("video {}", stream.coding.name()),
            false => stream.coding.name().to_owned(),
        });
        named.collect()
    }

    fn of_settings(settings: &Settings) -> Self {
        let of = |option| {
            let word = settings.text(option)?;
            CODINGS.iter().find(|(known, _)| *known == word).map(|(_, coding)| *coding)
        };
        Tracks { video: of("video"), audio: of("audio") }
    }

    fn codings(self) -> impl Iterator<Item = Coding> {
        self.video.into_iter().chain(self.audio)
    }

    /// What codes the sound again, if it is not Opus, with the number of its track.
    fn sound(self) -> Option<(usize, ToOpus)> {
        let coding = match self.audio? {
            Coding::Audio("AAC") => outflow_sound::Coding::Adts,
            Coding::Audio("MPEG audio") => outflow_sound::Coding::MpegAudio,
            _ => return None,
        };
        Some((usize::from(self.video.is_some()), ToOpus::new(coding, OPUS_BPS).ok()?))
    }

    /// The tracks: payload types from 96 on; parameter sets come in the packets.
    fn format(self) -> Vec<Track> {
        let track = |(payload_type, coding): (u8, Coding)| match coding {
            Coding::H265 => {
                let codec = Codec::H265 { vps: None, sps: None, pps: None };
                Track { codec, payload_type, encoding: "H265".to_owned(), ..Track::h264() }
            }
            Coding::Audio(_) => Track {
                codec: Codec::Opus,
                payload_type,
                clock_rate: 48_000,
                channels: 2,
                encoding: "opus".to_owned(),
                ..Track::h264()
            },
            _ => Track { payload_type, ..Track::h264() },
        };
        (96..).zip(self.codings()).map(track).collect()
    }
}

impl From<Tracks> for Settings {
    fn from(tracks: Tracks) -> Self {
        let options = [("video", tracks.video), ("audio", tracks.audio)];
        let said = options.into_iter().filter_map(|(option, coding)| {
            let (word, _) = CODINGS.iter().find(|(_, known)| Some(*known) == coding)?;
            Some((option, Setting::Text((*word).to_owned())))
        });
        said.fold(Settings::default(), |settings, (option, word)| settings.with(option, word))
    }
}

#[derive(Debug)]
struct ToRtp {
    tracks: Tracks,
    works: Option<Box<Works>>,
    out: Vec<Item>,
}

/// What takes the streams out.
#[derive(Debug)]
struct Works {
    tracks: Vec<Track>,
    from_ts: FromTs,
    sound: Option<(usize, ToOpus)>,
    /// Once the first datagram has shown the stream's SSRC.
    to_rtp: Option<outflow_units::ToRtp>,
    parser: Parser,
    counted: Counted,
}

impl Works {
    fn new(tracks: Tracks) -> Self {
        let format = tracks.format();
        Works {
            from_ts: FromTs::new(tracks.codings()),
            sound: tracks.sound(),
            to_rtp: None,
            parser: Parser::new(&Format::Rtp(format.clone())),
            tracks: format,
            counted: Counted::default(),
        }
    }

    /// Takes a datagram, and hands on the packets that are complete by it.
    fn push(&mut self, item: &Item, out: &mut Vec<Item>) {
        let Works { tracks, from_ts, sound, to_rtp, parser, .. } = self;
        let [.., s0, s1, s2, s3] = item.rtp_header;
        let new = || outflow_units::ToRtp::new(tracks, u32::from_be_bytes([s0, s1, s2, s3]));
        let to_rtp = to_rtp.get_or_insert_with(new);
        if let Some(preamble) = &item.preamble {
            from_ts.begin(preamble);
        }
        let arrived = item.packet.arrived;
        let mut send = |unit: &AccessUnit, to_rtp: &mut outflow_units::ToRtp| {
            let track = unit.track as u8;
            to_rtp.push(unit, &mut |bytes| {
                // What is made is well-formed; were it not, it would not be sent.
                let Ok(tag) = parser.tag(track, &bytes) else { return };
                out.push(item.made(Packet { bytes, tag, arrived }));
            });
        };
        from_ts.push(&item.packet.bytes, arrived, &mut |unit, is_behind_gap| match sound {
            // What is missing is silence.
            Some((track, to_opus)) if *track == unit.track => {
                to_opus.push(&unit, &mut |packet| send(&packet, to_rtp));
            }
            _ => {
                if is_behind_gap {
                    to_rtp.skip(unit.track);
                }
                send(&unit, to_rtp);
            }
        });
    }

    /// What was dropped; what could not be decoded is malformed.
    fn dropped(&self) -> Dropped {
        let dropped = self.from_ts.dropped();
        let undecodable = self.sound.as_ref().map_or(0, |(_, to_opus)| to_opus.counts().undecodable);
        Dropped { malformed: dropped.malformed + undecodable, ..dropped }
    }
}

impl Element for ToRtp {
    fn bind(&mut self, input: &Format) -> Result<Format, Unfit> {
        if *input != Format::Ts {
            self.works = None;
            return Err(Unfit::new("only a transport stream has streams to take out", "give it one"));
        }
        let works = self.works.get_or_insert_with(|| Box::new(Works::new(self.tracks)));
        Ok(Format::Rtp(works.tracks.clone()))
    }

    fn work(&mut self, _: Time, batch: &mut Vec<Item>, tally: &mut Tally) {
        let ToRtp { works: Some(works), out, .. } = self else { return batch.clear() };
        batch.drain(..).for_each(|item| works.push(&item, out));
        core::mem::swap(batch, out);
        works.counted.count(works.dropped(), tally);
    }

    fn message(&mut self, _: Time, message: Message) -> Option<Message> {
        if let (Some(works), Message::Break) = (&mut self.works, message) {
            works.from_ts.break_off();
        }
        Some(message)
    }

    fn clock(&self, track: u8) -> Option<(Time, u32)> {
        let works = self.works.as_ref()?;
        let (at, ticks) = works.from_ts.clock()?;
        Some((at, works.to_rtp.as_ref()?.timestamp(usize::from(track), ticks)?))
    }

    fn state(&mut self) -> Option<Box<dyn core::any::Any + Send>> {
        Some(self.works.take()?)
    }

    fn resume(&mut self, state: Box<dyn core::any::Any + Send>) {
        if let Ok(works) = state.downcast::<Works>()
            && self.works.as_ref().is_none_or(|mine| mine.tracks == works.tracks)
        {
            self.works = Some(works);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use bytes::Bytes;
    use outflow_media::Tag;
    use outflow_media::codec::opus;
    use outflow_packet::DropReason;
    use outflow_packet::receive::RtpWrap;
    use outflow_rtp::HEADER;
    use outflow_ts::DATAGRAM_BYTES;
    use outflow_units::ToTs;

    use super::*;
    use crate::elements::testing::{Run, settings, word};

    const OPUS: Coding = Coding::Audio("Opus");

    /// Eight seconds of H.264 and AAC.
    const CLIP: &[u8] = include_bytes!("../../../../assets/live.ts");

    /// A transport stream of H.264 and Opus, a picture and two packets of sound each 40 ms.
    fn stream(pictures: i64) -> Vec<Item> {
        let tracks = Tracks { video: Some(Coding::H264), audio: Some(OPUS) }.format();
        let (mut to, mut wrap) = (ToTs::new(&tracks).expect("both fit"), RtpWrap::new(77));
        let mut items = Vec::new();
        for number in 0..pictures {
            let slice: &[u8] =
                if number % 5 == 0 { &[0x67, 66, 0, 30, 0, 0, 1, 0x65, 0x88] } else { &[0x41, 0x9a] };
            let picture = [&[0, 0, 1][..], slice, &[7; 2_000]].concat();
            let unit = |track, at: i64, key, data: Vec<u8>| {
                let (pts, data) = (90_000 + at, data.into());
                AccessUnit { track, pts, dts: pts, key, data }
            };
            let units = [
                unit(0, 3_600 * number, number % 5 == 0, picture),
                unit(1, 3_600 * number, true, vec![0x78; 60]),
                unit(1, 3_600 * number + 1_800, true, vec![0x78; 60]),
            ];
            let arrived = Time::from_millis(40 * number.unsigned_abs());
            for unit in units {
                to.push(&unit, &mut |bytes| {
                    items.push(item(bytes, arrived, &mut wrap));
                });
            }
        }
        items
    }

    fn item(bytes: Bytes, arrived: Time, wrap: &mut RtpWrap) -> Item {
        let mut item = Item::empty();
        item.packet = Packet { bytes, tag: Tag::default(), arrived };
        item.rtp_header = wrap.next(arrived);
        item
    }

    fn run() -> Run {
        let tracks = Tracks { video: Some(Coding::H264), audio: Some(OPUS) };
        Run::new(&KIND, &tracks.into(), &Format::Ts)
    }

    #[test]
    fn tracks_have_packets_that_say_what_they_are() {
        let mut run = run();
        let Format::Rtp(tracks) = run.format.clone() else { panic!("{:?}", run.format) };
        let said: Vec<_> = tracks.iter().map(|track| (track.encoding.as_str(), track.payload_type)).collect();
        assert_eq!(said, [("H264", 96), ("opus", 97)]);
        let out = run.give(stream(10));
        let of = |track: u8| out.iter().filter(move |item| item.packet.tag.track == track);
        assert_eq!(of(1).count(), 20);
        let keys: BTreeSet<_> =
            of(0).filter(|item| item.packet.tag.key).map(|item| item.packet.tag.frame).collect();
        assert_eq!(keys.len(), 2);
        assert_eq!(of(0).filter(|item| item.packet.tag.last).count(), 10);
        let ssrc = |item: &Item| item.header().map(|header| header[11]);
        assert_eq!((of(0).next().and_then(ssrc), of(1).next().and_then(ssrc)), (Some(77), Some(78)));
        assert_eq!(run.tally.drops.total(), 0, "{:?}", run.tally);
    }

    #[test]
    fn aac_is_coded_again_and_stays_with_the_pictures() {
        let (mut wrap, datagrams) = (RtpWrap::new(77), CLIP.chunks(DATAGRAM_BYTES));
        let tracks = Tracks::said_by(CLIP).expect("it has some");
        assert_eq!(tracks, Tracks { video: Some(Coding::H264), audio: Some(Coding::Audio("AAC")) });
        let mut run = Run::new(&KIND, &tracks.into(), &Format::Ts);
        let Format::Rtp(said) = run.format.clone() else { panic!("{:?}", run.format) };
        assert_eq!((said[1].encoding.as_str(), said[1].clock_rate, said[1].channels), ("opus", 48_000, 2));
        let all = datagrams.len() as u64;
        let arrived = |number: u64| Time::from_millis(8_000 * number / all);
        let items = (0..).zip(datagrams);
        let items = items.map(|(number, bytes)| item(Bytes::from_static(bytes), arrived(number), &mut wrap));
        let out = run.give(items.collect());
        let of = |track| out.iter().filter(move |item| item.packet.tag.track == track);
        let stamp = |item: &Item| item.header().map(outflow_rtp::timestamp).expect("RTP");
        let heard: Vec<_> = of(1).map(stamp).collect();
        assert!((398..=400).contains(&heard.len()), "{} packets", heard.len());
        assert!(heard.windows(2).all(|pair| pair[1].wrapping_sub(pair[0]) == 960));
        assert!(of(1).all(|item| opus::samples(&item.packet.bytes[HEADER..]) == Some(960)));
        // Both begin within a frame of each other, on one clock.
        let since = |track: u8, timestamp: u32| {
            let (_, begins) = run.element.clock(track).expect("it has begun");
            f64::from(timestamp.wrapping_sub(begins).cast_signed())
                / f64::from(said[usize::from(track)].clock_rate)
        };
        let first = of(0).map(stamp).next().expect("a picture");
        let apart = since(1, heard[0]) - since(0, first);
        assert!(apart.abs() < 0.05, "{apart} s");
        assert_eq!(run.tally.drops.total(), 0, "{:?}", run.tally);
    }

    #[test]
    fn its_tracks_have_one_clock_from_the_first_packet_on() {
        let mut run = run();
        assert_eq!(run.element.clock(0), None);
        let out = run.give(stream(2));
        for track in [0, 1] {
            let first = out.iter().find(|item| item.packet.tag.track == track).expect("it is there");
            let timestamp =
                first.header().map(|header| u32::from_be_bytes([header[4], header[5], header[6], header[7]]));
            let (at, rtp) = run.element.clock(track).expect("it has begun");
            assert_eq!((at, Some(rtp)), (Time::ZERO, timestamp), "track {track}");
        }
        assert_eq!(run.element.clock(2), None);
    }

    #[test]
    fn one_that_begins_within_takes_the_tables_from_what_a_receiver_needs_first() {
        let mut items = stream(6);
        let tables = items[0].packet.bytes.slice(..2 * 188);
        assert_eq!(
            Tracks::said_by(&tables).ok().map(Settings::from),
            Some(settings([("video", word("H264")), ("audio", word("opus")),]))
        );
        let mut late = items.split_off(1);
        late.retain(|item| programme_in(&item.packet.bytes).is_none());
        assert_eq!(run().give(late.clone()).len(), 0);
        late[0].preamble = Some(tables);
        assert!(run().give(late).len() > 4);
    }

    #[test]
    fn what_follows_a_break_is_behind_a_gap_and_what_is_missing_is_counted() {
        let mut run = run();
        let items = stream(3);
        let numbers = |out: &[Item]| {
            let video = out.iter().filter(|item| item.packet.tag.track == 0).cloned().collect::<Vec<_>>();
            crate::elements::testing::numbers(&video)
        };
        let before = numbers(&run.give(items.clone()));
        run.element.message(Time::ZERO, Message::Break);
        let after = numbers(&run.give(items.clone()));
        assert_eq!(after[0], before[before.len() - 1].wrapping_add(2));
        let mut gap = items;
        gap.remove(1);
        run.element.message(Time::ZERO, Message::Break);
        run.give(gap);
        assert_eq!(run.dropped(DropReason::Incomplete), 1);
    }

    #[test]
    fn what_has_no_such_streams_is_refused() {
        let refused = Run::refusal(&KIND, &Settings::default(), &Format::Ts);
        assert!(refused.contains("\"video\""), "{refused}");
        let tracks = settings([("video", word("H265"))]);
        let refused = Run::refusal(&KIND, &tracks, &Format::Images);
        assert!(refused.contains("transport stream"), "{refused}");
    }
}
