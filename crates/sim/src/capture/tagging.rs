//! The packets of a flow with their tags, as the relay's own readers give them.

use outflow_media::{Kind, Tag, Time};
use outflow_packet::Parser;

use super::classify::Class;
use super::flow::{CapturedFlow, CapturedPacket};
use super::gather::Gathered;

/// Tags packets one after the other.
#[derive(Debug)]
pub(super) struct Tagger {
    readers: Option<Parser>,
    alone: Alone,
    /// Packets that were not what they should have been.
    pub(super) not_understood: u64,
}

impl Tagger {
    pub(super) fn new(class: &Class) -> Self {
        let format = class.format();
        let tracks = format.as_ref().map_or(0, |format| format.tracks());
        Tagger {
            readers: format.as_ref().map(Parser::new),
            alone: Alone { track: u8::try_from(tracks).unwrap_or(u8::MAX), next: 0 },
            not_understood: 0,
        }
    }

    /// The tag of a datagram.
    pub(super) fn tag(&mut self, class: &Class, payload: &[u8]) -> Tag {
        let read = class.track(payload).zip(self.readers.as_mut());
        let tag = read.map(|((track, bytes), readers)| readers.tag(track, bytes));
        match tag {
            Some(Ok(tag)) => tag,
            Some(Err(_)) => {
                self.not_understood += 1;
                self.alone.tag()
            }
            None => self.alone.tag(),
        }
    }

    /// What the packets carry, in words.
    pub(super) fn describe(&self, class: &Class) -> String {
        match (&self.readers, class.format()) {
            (Some(readers), Some(format)) => readers.describe(&format),
            _ => "data".to_owned(),
        }
    }
}

/// The tags of packets that nothing is known of: each is a frame of its own.
#[derive(Debug)]
struct Alone {
    track: u8,
    next: u32,
}

impl Alone {
    fn tag(&mut self) -> Tag {
        let (frame, track) = (self.next, self.track);
        self.next = self.next.wrapping_add(1);
        let whole = Tag { first: true, last: true, key: true, opens: true, ..Tag::default() };
        Tag { frame, track, kind: Kind::Data, ..whole }
    }
}

/// A flow with its tags. Its times count from `first` on.
pub(super) fn flow(gathered: &Gathered<'_>, class: Class, first: i128) -> CapturedFlow {
    let mut tagger = Tagger::new(&class);
    let packets = gathered.packets.iter().map(|packet| CapturedPacket {
        at: Time::from_nanos(u64::try_from(packet.nanos - first).unwrap_or(u64::MAX)),
        bytes: packet.bytes,
        tag: tagger.tag(&class, packet.payload),
    });
    let packets = packets.collect();
    CapturedFlow {
        name: format!("{} > {}", gathered.source, gathered.destination),
        kind: class.kind(),
        carries: tagger.describe(&class),
        format: class.format(),
        packets,
        not_understood: tagger.not_understood,
        cut_off: gathered.packets.iter().filter(|packet| packet.is_cut_off).count() as u64,
    }
}
