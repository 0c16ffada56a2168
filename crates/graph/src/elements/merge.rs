//! Several flows into one.

use core::any::Any;

use outflow_media::{Format, Time};
use outflow_packet::DropReason;
use outflow_packet::limits::TRACKS_MAX;
use outflow_rtp::payload::RtpReader;

use super::copies::{Came, Copies};
use crate::{
    Contents, Contract, Control, Element, Form, Gives, Item, Kind, Make, Message, OUT, Opt, Places, Settings,
    Signals, Tally, TrackTime, Unfit,
};

/// Packets of each flow that are remembered where nothing is said.
const WINDOW: u64 = 512;

/// The element.
///
/// Packets go on as soon as they come. One that was lost on one way and comes by another goes on late,
/// and a receiver's buffer puts it in order, as it does where a network reorders.
pub const KIND: Kind = Kind {
    name: "merge",
    doc: "Flows come together, in the order in which they came in; copies go no further if so asked.",
    contract: |_| {
        // Tracks that become one have other numbers.
        let control = Control { changes: Signals::CLOCK, ..Control::NONE };
        Contract::new(Contents::ANY, Gives::Same).with(control)
    },
    outputs: OUT,
    options: &[
        Opt::new(
            "dedupe",
            Form::Flag,
            Some("false"),
            "Of packets with the same RTP source and sequence number, only the first goes on.",
        ),
        Opt::new(
            "window",
            Form::Whole(64, 16_384),
            Some("512"),
            "Packets of each flow that are remembered, rounded up to a power of two.",
        ),
        Opt::new(
            "flows",
            Form::Numbers(0, 31),
            None,
            "These tracks are one flow that comes by several ways (SMPTE ST 2022-7): they become the first \
             of them, without copies.",
        ),
    ],
    make: Make::Core(|settings| Ok(Box::new(Merge::new(settings)?))),
};

#[derive(Debug)]
struct Merge {
    copies: Option<Copies>,
    /// Tracks that become the first of them.
    flows: Vec<usize>,
    /// The number of each track when it leaves.
    becomes: [u8; TRACKS_MAX],
    one: Option<One>,
}

/// What has to be found again for what was several tracks: each of them counted its own frames.
#[derive(Debug)]
struct One {
    track: u8,
    reader: RtpReader,
    places: Places,
}

impl Merge {
    fn new(settings: &Settings) -> Result<Self, Unfit> {
        let flows: Vec<usize> =
            settings.numbers("flows").unwrap_or_default().iter().map(|track| *track as usize).collect();
        if settings.has("flows") && flows.len() < 2 {
            return Err(Unfit::new("`flows` has less than two tracks", "write two or more, as [0, 1]"));
        }
        let window = settings.whole("window").unwrap_or(WINDOW).clamp(64, 16_384).next_power_of_two();
        let dedupe = settings.flag("dedupe").unwrap_or(false) || !flows.is_empty();
        if settings.has("window") && !dedupe {
            return Err(Unfit::new("a `window` for nothing", "write `dedupe = true`, or leave `window` out"));
        }
        Ok(Merge {
            copies: dedupe.then(|| Copies::new(window as u16)),
            flows,
            becomes: core::array::from_fn(|track| track as u8),
            one: None,
        })
    }

    /// Makes one track of several.
    fn join(&mut self, input: &Format) -> Result<Format, Unfit> {
        let Format::Rtp(tracks) = input else {
            return Err(Unfit::new("`flows` of what has no tracks", "leave `flows` out"));
        };
        let first = self.flows[0];
        let describe = |at: usize| tracks.get(at).map(|t| (t.payload_type, &t.encoding, t.clock_rate));
        if self.flows.iter().any(|at| describe(*at).is_none() || describe(*at) != describe(first)) {
            let help = "name tracks that are there and described alike; the first is 0";
            return Err(Unfit::new("`flows` are not the same flow", help));
        }
        let goes = |at: usize| at != first && self.flows.contains(&at);
        let mut left = Vec::new();
        for (at, track) in tracks.iter().enumerate().take(TRACKS_MAX) {
            self.becomes[at] = left.len() as u8;
            if !goes(at) {
                left.push(track.clone());
            }
        }
        let track = self.becomes[first];
        self.flows.iter().for_each(|at| self.becomes[*at % TRACKS_MAX] = track);
        let reader = RtpReader::new(track, &tracks[first]);
        self.one = Some(One { track, reader, places: Places::default() });
        Ok(Format::Rtp(left))
    }

    /// Whether a packet goes on; counts it if not.
    fn take(&mut self, item: &mut Item, tally: &mut Tally) -> bool {
        if let (Some(copies), Some(header)) = (&mut self.copies, item.header()) {
            let [_, _, s0, s1, .., a, b, c, d] = *header;
            let reason = match copies.note(u32::from_be_bytes([a, b, c, d]), u16::from_be_bytes([s0, s1])) {
                Came::First => None,
                Came::Before => Some(DropReason::Duplicate),
                Came::Late => Some(DropReason::Late),
            };
            if let Some(reason) = reason {
                tally.drop(reason);
                return false;
            }
        }
        let track = &mut item.packet.tag.track;
        let was = usize::from(*track);
        *track = self.becomes[was % TRACKS_MAX];
        match &mut self.one {
            Some(one) if self.flows.contains(&was) => one.read(item, tally),
            _ => true,
        }
    }
}

impl One {
    fn read(&mut self, item: &mut Item, tally: &mut Tally) -> bool {
        let whole = item.whole();
        let Ok(tag) = self.reader.read(&whole) else {
            tally.drop(DropReason::Malformed);
            return false;
        };
        item.packet.tag = tag;
        self.places.place(item);
        true
    }
}

impl Element for Merge {
    fn bind(&mut self, input: &Format) -> Result<Format, Unfit> {
        self.becomes = core::array::from_fn(|track| track as u8);
        if self.flows.is_empty() { Ok(input.clone()) } else { self.join(input) }
    }

    fn work(&mut self, _: Time, batch: &mut Vec<Item>, tally: &mut Tally) {
        batch.retain_mut(|item| self.take(item, tally));
    }

    fn message(&mut self, _: Time, message: Message) -> Option<Message> {
        Some(match message {
            Message::Clock(time) => {
                let track = self.becomes[usize::from(time.track) % TRACKS_MAX];
                Message::Clock(TrackTime { track, ..time })
            }
            Message::Break => message,
        })
    }

    fn state(&mut self) -> Option<Box<dyn Any + Send>> {
        Some(Box::new((self.copies.take(), self.one.take())))
    }

    fn resume(&mut self, state: Box<dyn Any + Send>) {
        let Ok(state) = state.downcast::<(Option<Copies>, Option<One>)>() else { return };
        let (copies, one) = *state;
        if let (Some(mine), Some(before)) = (&mut self.copies, copies) {
            mine.resume(before);
        }
        if let (Some(mine), Some(before)) = (&mut self.one, one)
            && mine.track == before.track
        {
            *mine = before;
        }
    }
}

#[cfg(test)]
mod tests;
