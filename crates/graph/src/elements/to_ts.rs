//! RTP tracks into one transport stream.

use core::any::Any;

use bytes::Bytes;
use minicbor::{Decode, Encode};
use outflow_media::{Format, Time, Track};
use outflow_packet::Packet;
use outflow_packet::receive::{RtpWrap, SavedWrap};
use outflow_ts::{FindingsPool, Found, TsReader, UnsupportedCodec};
use outflow_units::{FromRtp, SavedToTs};

use super::counted::Counted;
use crate::{
    Content, Contents, Contract, Control, Element, Gives, Item, Kind, Make, Message, OUT, Replay, Signals,
    Tally, Unfit,
};

/// What can be put into a transport stream.
const TAKES: Contents = Contents::of(&[Content::H264, Content::H265, Content::MpegVideo, Content::Audio]);

/// The element.
pub const KIND: Kind = Kind {
    name: "to-ts",
    doc: "Puts RTP tracks into one transport stream. Tracks that it cannot carry are left out.",
    contract: |_| {
        // Its clocks are inside of the transport stream.
        let control = Control { ends: Signals::CLOCK, ..Control::NONE };
        Contract::new(TAKES, Gives::Only(Content::Ts)).with(control)
    },
    outputs: OUT,
    options: &[],
    make: Make::Core(|_| Ok(Box::new(ToTs::default()))),
};

#[derive(Debug, Default)]
struct ToTs {
    works: Option<Box<Works>>,
    out: Vec<Item>,
}

/// What certain tracks are converted by: their packets into units, these into a transport stream.
#[derive(Debug)]
struct Works {
    tracks: Vec<Track>,
    /// Those that the transport stream has no place for, by name.
    left_out: Vec<String>,
    from_rtp: FromRtp,
    to_ts: outflow_units::ToTs,
    reader: TsReader,
    /// What that found in the datagram that is made. Kept so that no memory is asked for it.
    found: Vec<Found>,
    findings: FindingsPool,
    /// RTP headers, for sinks that get the transport stream by RTP; of the source's SSRC.
    wrap: Option<RtpWrap>,
    counted: Counted,
}

impl Works {
    fn new(tracks: &[Track]) -> Result<Self, UnsupportedCodec> {
        let to_ts = outflow_units::ToTs::new(tracks)?;
        let left_out = tracks.iter().enumerate().filter(|(index, _)| !to_ts.carries(*index));
        Ok(Works {
            tracks: tracks.to_vec(),
            left_out: left_out.map(|(_, track)| track.name()).collect(),
            from_rtp: FromRtp::new(tracks, |index| to_ts.carries(index)),
            to_ts,
            reader: TsReader::default(),
            found: Vec::new(),
            findings: FindingsPool::default(),
            wrap: None,
            counted: Counted::default(),
        })
    }

    /// Takes one RTP packet, and hands on the packets that are complete by it.
    fn push(&mut self, mut item: Item, out: &mut Vec<Item>) {
        let Works { from_rtp, to_ts, reader, found, findings, wrap, .. } = self;
        if item.rtp_header[0] != 0 {
            item.packet.bytes = item.own(true).freeze();
        }
        let Some([.., s0, s1, s2, s3]) = item.header().copied() else { return };
        let wrap = wrap.get_or_insert_with(|| RtpWrap::new(u32::from_be_bytes([s0, s1, s2, s3])));
        let Packet { bytes, tag, arrived } = &item.packet;
        let mut made = |bytes: Bytes| {
            // What the multiplexer makes is well-formed; were it not, it would not be sent.
            found.clear();
            let Ok(tag) = reader.read_into(&bytes, found) else { return };
            let mut made = item.made(Packet { bytes, tag, arrived: *arrived });
            made.found = Some(findings.lend(found));
            made.rtp_header = wrap.next(*arrived);
            made.preamble = if tag.key { reader.preamble() } else { None };
            out.push(made);
        };
        from_rtp.push(tag.track, bytes, *arrived, &mut |unit| to_ts.push(&unit, &mut made));
    }

    /// Counts what was dropped since the last time. Units that the transport stream cannot carry are malformed.
    fn count(&mut self, tally: &mut Tally) {
        let mut now = self.from_rtp.dropped();
        now.malformed += self.to_ts.refused();
        self.counted.count(now, tally);
    }
}

/// What goes on in another process.
#[derive(Debug, Clone, Encode, Decode)]
#[cbor(map)]
struct Saved {
    #[n(0)]
    to_ts: SavedToTs,
    /// Of sinks that get the transport stream by RTP.
    #[n(1)]
    wrap: Option<SavedWrap>,
}

impl Saved {
    /// The numbers, where nothing of the timeline was sent yet.
    fn begun(&self) -> Saved {
        Saved { to_ts: SavedToTs { mux: self.to_ts.mux.begun(), ..self.to_ts.clone() }, wrap: self.wrap }
    }

    /// Where an element has to begin to stand here behind what brings one that begins here to `there`.
    fn ahead_of(&self, there: &Saved) -> Saved {
        let mux = self.to_ts.mux.ahead_of(&there.to_ts.mux);
        let back = |here: SavedWrap| {
            let made = there.wrap.map_or(0, |there| there.sequence.wrapping_sub(here.sequence));
            SavedWrap { sequence: here.sequence.wrapping_sub(made), ..here }
        };
        Saved { to_ts: SavedToTs { mux, ..self.to_ts.clone() }, wrap: self.wrap.map(back) }
    }
}

impl Element for ToTs {
    fn bind(&mut self, input: &Format) -> Result<Format, Unfit> {
        let refused = |what: &str| Unfit::new(what, format!("give it {TAKES}"));
        let Format::Rtp(tracks) = input else {
            self.works = None;
            return Err(refused("only RTP is put into a transport stream"));
        };
        if self.works.as_ref().is_none_or(|works| works.tracks != *tracks) {
            self.works = None;
            let works = Works::new(tracks).map_err(|unsupported| refused(&unsupported.to_string()))?;
            self.works = Some(Box::new(works));
        }
        Ok(Format::Ts)
    }

    fn left_out(&self) -> &[String] {
        self.works.as_ref().map_or(&[], |works| &works.left_out)
    }

    fn work(&mut self, _: Time, batch: &mut Vec<Item>, tally: &mut Tally) {
        let ToTs { works: Some(works), out } = self else { return batch.clear() };
        batch.drain(..).for_each(|item| works.push(item, out));
        core::mem::swap(batch, out);
        works.count(tally);
    }

    fn message(&mut self, _: Time, message: Message) -> Option<Message> {
        if let (Some(works), Message::Clock(time)) = (&mut self.works, message)
            && time.told
        {
            works.from_rtp.sender_report(time.track, time.ntp, time.rtp, time.at);
        }
        None
    }

    /// All of it: the transport stream goes on, with its counters and clocks.
    fn state(&mut self) -> Option<Box<dyn Any + Send>> {
        Some(self.works.take()?)
    }

    fn save(&self) -> Option<Vec<u8>> {
        let works = self.works.as_ref()?;
        let to_ts = SavedToTs { clocks: works.from_rtp.save(), mux: works.to_ts.save() };
        minicbor::to_vec(Saved { to_ts, wrap: works.wrap.as_ref().map(RtpWrap::save) }).ok()
    }

    fn restore(&mut self, saved: &[u8], at: Replay<'_>) {
        let Some(works) = &mut self.works else { return };
        let read = |bytes| minicbor::decode::<Saved>(bytes).ok();
        let Some(saved) = read(saved) else { return };
        let begins = match at {
            Replay::Before(None) => saved.begun(),
            Replay::Before(Some(trial)) => {
                read(trial).map_or_else(|| saved.begun(), |trial| saved.ahead_of(&trial))
            }
            Replay::After => saved.clone(),
        };
        if at != Replay::After {
            saved.to_ts.clocks.iter().for_each(|clocks| works.from_rtp.restore(clocks));
        }
        works.to_ts.restore(&begins.to_ts.mux);
        works.wrap = begins.wrap.map(RtpWrap::restore);
    }

    fn resume(&mut self, state: Box<dyn Any + Send>) {
        if let Ok(works) = state.downcast::<Works>()
            && self.works.as_ref().is_none_or(|mine| mine.tracks == works.tracks)
        {
            self.works = Some(works);
        }
    }
}

#[cfg(test)]
mod tests {
    use outflow_media::{Codec, Tag};
    use outflow_rtp::PlainHeader;
    use outflow_ts::packet;

    use super::*;

    fn format() -> Format {
        let codec = Codec::H264 { sps: None, pps: None };
        Format::Rtp(vec![Track { codec, payload_type: 96, ..Track::mp2t() }])
    }

    fn item(number: u16) -> Item {
        let timestamp = 3600 * u32::from(number);
        let header = PlainHeader { marker: true, payload_type: 96, sequence: number, timestamp, ssrc: 77 };
        let unit: &[u8] = if number == 0 { &[0x65, 0xb0] } else { &[0x41, 0xc0] };
        let mut bytes = [&header.emit()[..], unit].concat();
        bytes.resize(1000, 0);
        let bytes = Bytes::from(bytes);
        let arrived = Time::from_millis(40 * u64::from(number));
        let mut item = Item::empty();
        item.packet = Packet { bytes, tag: Tag::default(), arrived };
        item
    }

    fn worked(element: &mut ToTs, items: impl IntoIterator<Item = Item>) -> Vec<Item> {
        let mut batch = items.into_iter().collect();
        element.work(Time::ZERO, &mut batch, &mut Tally::default());
        batch
    }

    #[test]
    fn key_frames_come_with_the_tables_and_headers_count_on() {
        let mut element = ToTs::default();
        assert_eq!(element.bind(&format()), Ok(Format::Ts));
        let mut first = item(0);
        first.header_mut();
        let out = worked(&mut element, [first, item(1), item(2)]);
        assert!(out.len() >= 2, "{out:?}");
        for (before, after) in out.iter().zip(&out[1..]) {
            let number = |item: &Item| u16::from_be_bytes([item.rtp_header[2], item.rtp_header[3]]);
            assert_eq!(number(after), number(before).wrapping_add(1));
            assert_eq!((after.rtp_header[1] & 0x7f, after.rtp_header[11]), (33, 77));
        }
        for item in &out {
            assert_eq!(item.preamble.is_some(), item.packet.tag.key, "{item:?}");
            assert!(item.packet.bytes.chunks(188).all(|packet| packet::Packet::new_checked(packet).is_ok()));
        }
        assert!(out.iter().any(|item| item.packet.tag.key));
    }

    #[test]
    fn what_was_found_in_a_datagram_goes_along_with_it() {
        let mut element = ToTs::default();
        element.bind(&format()).expect("it can be carried");
        let out = worked(&mut element, (0..4).map(item));
        let found = out.iter().flat_map(|item| item.found.iter()).flat_map(|found| found.iter());
        assert_eq!(found.map(|found| found.begun).sum::<u32>(), 4, "frames");
        for item in &out {
            assert_eq!(item.found.as_ref().map(|found| found.len()), Some(item.len() / 188));
        }
    }

    #[test]
    fn another_element_goes_on_with_the_same_stream() {
        let (mut before, mut after) = (ToTs::default(), ToTs::default());
        let mut alone = ToTs::default();
        for element in [&mut before, &mut after, &mut alone] {
            element.bind(&format()).expect("it can be carried");
        }
        let expected = worked(&mut alone, (0..4).map(item));
        let mut out = worked(&mut before, (0..2).map(item));
        after.resume(before.state().expect("there is some"));
        out.extend(worked(&mut after, (2..4).map(item)));
        let bytes =
            |items: &[Item]| items.iter().flat_map(|item| item.packet.bytes.to_vec()).collect::<Vec<_>>();
        assert!(bytes(&out) == bytes(&expected));
    }

    #[test]
    fn what_cannot_be_carried_is_refused() {
        let tracks = [Codec::RawVideo(None), Codec::Av1, Codec::Vp9, Codec::Vp8]
            .map(|codec| Format::Rtp(vec![Track { codec, ..Track::mp2t() }]));
        for format in [Format::Ts, Format::Images].into_iter().chain(tracks) {
            let refused = ToTs::default().bind(&format).expect_err("refused");
            assert!(refused.help.contains("H.264"), "{refused}");
        }
    }
}
