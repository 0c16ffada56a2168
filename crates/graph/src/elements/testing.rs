//! Packets in, packets out: what the tests of elements share.

use core::time::Duration;

use bytes::Bytes;
use outflow_media::{Codec, Format, Kind, Needs, Tag, Time, Track};
use outflow_packet::{DropReason, Packet};
use outflow_rtp::PlainHeader;

use crate::{Element, Item, Make, Places, Setting, Settings, Tally, Unfit};

/// Bytes of a packet behind its header.
pub(super) const BODY: usize = 88;

/// The source of [`Source`].
pub(super) const SSRC: u32 = 0xcafe_babe;

/// `tracks` tracks of video.
pub(super) fn video(tracks: usize) -> Format {
    let track = |index: usize| Track {
        codec: Codec::Other { video: true },
        payload_type: 96 + index as u8,
        ..Track::mp2t()
    };
    Format::Rtp((0..tracks).map(track).collect())
}

/// Options, as they would be written.
pub(super) fn settings<const N: usize>(options: [(&str, Setting); N]) -> Settings {
    options.into_iter().fold(Settings::default(), |settings, (name, value)| settings.with(name, value))
}

/// A word or a text.
pub(super) fn word(text: &str) -> Setting {
    Setting::Text(text.to_owned())
}

/// A list of words.
pub(super) fn words(list: &[&str]) -> Setting {
    Setting::Texts(list.iter().map(|word| (*word).to_owned()).collect())
}

/// What makes a packet of a source after the other.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) sequence: u16,
    pub(super) track: u8,
    ordinal: u32,
    frame: u32,
    /// The last reference.
    reference: u32,
    places: Places,
}

impl Source {
    pub(super) fn new(track: u8) -> Self {
        let places = Places::default();
        Source { sequence: 100, track, ordinal: 0, frame: 0, reference: 0, places }
    }

    /// A packet of what is said.
    pub(super) fn packet(&mut self, tag: Tag) -> Item {
        let header = PlainHeader {
            marker: tag.last,
            payload_type: 96 + self.track,
            sequence: self.sequence,
            timestamp: tag.frame.wrapping_mul(3_000),
            ssrc: SSRC,
        };
        let bytes = Bytes::from([&header.emit()[..], &[self.sequence as u8; BODY]].concat());
        let tag = Tag { track: self.track, ..tag };
        let mut item = Item::empty();
        item.packet = Packet { bytes, tag, arrived: Time::ZERO };
        item.ordinal = self.ordinal;
        self.places.place(&mut item);
        (self.sequence, self.ordinal) = (self.sequence.wrapping_add(1), self.ordinal.wrapping_add(1));
        item
    }

    /// The next frame, of two packets: `I`, `P`, `B`, or `D` for data. With a parameter set in front of
    /// it, a packet that does not show its kind yet, as `i` or `p`.
    pub(super) fn frame(&mut self, letter: char) -> Vec<Item> {
        self.frame += 1;
        let needs = Needs::back(self.frame.wrapping_sub(self.reference));
        let (kind, needs) = match letter.to_ascii_uppercase() {
            'I' => (Kind::Intra, Needs::NOTHING),
            'P' => (Kind::Predicted, needs),
            'B' => (Kind::Bidirectional, needs),
            _ => (Kind::Data, Needs::NOTHING),
        };
        if matches!(kind, Kind::Intra | Kind::Predicted) {
            self.reference = self.frame;
        }
        let tag = Tag { frame: self.frame, kind, needs, key: kind == Kind::Intra, ..Tag::default() };
        let mut items = Vec::new();
        if letter.is_ascii_lowercase() {
            let header = Tag { kind: Kind::Header, key: false, needs: Needs::NOTHING, first: true, ..tag };
            items.push(self.packet(header));
        }
        items.push(self.packet(Tag { first: items.is_empty(), ..tag }));
        items.push(self.packet(Tag { last: true, ..tag }));
        items
    }

    /// Frames, a letter each.
    pub(super) fn frames(&mut self, letters: &str) -> Vec<Item> {
        letters.chars().flat_map(|letter| self.frame(letter)).collect()
    }
}

/// An element alone.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) element: Box<dyn Element>,
    pub(super) format: Format,
    pub(super) tally: Tally,
    pub(super) now: Time,
}

impl Run {
    pub(super) fn try_new(kind: &crate::Kind, settings: &Settings, format: &Format) -> Result<Self, Unfit> {
        for (option, _) in settings.iter() {
            assert!(kind.option(option).is_some(), "\"{}\" has no {option}", kind.name);
        }
        let Make::Core(make) = kind.make else { panic!("made by the core") };
        let mut element = make(settings)?;
        let format = element.bind(format)?;
        Ok(Run { element, format, tally: Tally::default(), now: Time::ZERO })
    }

    pub(super) fn new(kind: &crate::Kind, settings: &Settings, format: &Format) -> Self {
        Self::try_new(kind, settings, format).expect("it fits")
    }

    /// Why it cannot be.
    pub(super) fn refusal(kind: &crate::Kind, settings: &Settings, format: &Format) -> String {
        Self::try_new(kind, settings, format).expect_err("it does not fit").to_string()
    }

    pub(super) fn wait(&mut self, time: Duration) {
        self.now = self.now + time;
    }

    /// A batch.
    pub(super) fn give(&mut self, mut items: Vec<Item>) -> Vec<Item> {
        self.element.work(self.now, &mut items, &mut self.tally);
        items
    }

    /// What leaves by the first output, of a batch.
    pub(super) fn kept(&mut self, items: Vec<Item>) -> Vec<Item> {
        self.give(items).into_iter().filter(|item| item.port == 0).collect()
    }

    /// Another element, that goes on from this one.
    pub(super) fn replace(mut self, kind: &crate::Kind, settings: &Settings, format: &Format) -> Self {
        let mut next = Run::new(kind, settings, format);
        next.element.resume(self.element.state().expect("it has a state"));
        next.now = self.now;
        next
    }

    pub(super) fn dropped(&self, reason: DropReason) -> u64 {
        self.tally.drops.get(reason)
    }
}

/// Sequence numbers.
pub(super) fn numbers<'a>(items: impl IntoIterator<Item = &'a Item>) -> Vec<u16> {
    let number = |item: &Item| item.header().map(|header| u16::from_be_bytes([header[2], header[3]]));
    items.into_iter().map(|item| number(item).expect("it has a header")).collect()
}

/// Frames and how many packets of each, in order.
pub(super) fn frames<'a>(items: impl IntoIterator<Item = &'a Item>) -> Vec<(u32, usize)> {
    let mut frames: Vec<(u32, usize)> = Vec::new();
    for item in items {
        match frames.last_mut() {
            Some((frame, count)) if *frame == item.packet.tag.frame => *count += 1,
            _ => frames.push((item.packet.tag.frame, 1)),
        }
    }
    frames
}
