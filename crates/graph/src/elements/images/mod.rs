//! Work on images, whatever carries them: whole images, raw video in RTP, JPEG 2000 in RTP.
//!
//! What is done is a [`Recipe`]; each track has a *carrier* that does it where its pixels, or its
//! codestreams, lie. Elements are names for recipes.
//!
//! Raw video can be worked on in three ways, see [`Memory`]. A frame is gathered by its timestamp; one
//! that is given up by the next one.

mod carrier;
mod codestream;
mod fragments;
mod gather;
mod packets;
mod ppm;
mod recipe;
#[cfg(test)]
mod tests;

use core::any::Any;

use outflow_media::image::{Cpu, Pixels, Shape};
use outflow_media::{Codec, Format, Time, Track};
use outflow_packet::limits::TRACKS_MAX;
use outflow_rtp::fmtp;
use outflow_rtp::payload::jpeg2000::Priorities;

pub use recipe::{Recipe, Size};

use crate::limits::FRAME_BYTES_MAX;
use crate::{
    Content, Contents, Contract, Control, Element, Form, Gives, Item, Message, Opt, Settings, Signals, Tally,
    Unfit,
};
use carrier::Carrier;
use packets::{Numbers, Out, Pool};

/// What can be worked on.
pub(super) const TAKES: Contents = Contents::IMAGES.with(Contents::of(&[Content::Jpeg2000]));

/// The contract of elements that do something to images. Packets of RTP are numbered one after the other.
pub(super) const fn contract(takes: Contents, turned: &'static [(Content, Content)]) -> Contract {
    let contract = Contract::new(takes, Gives::Turned(turned)).parallel(Contents::PNM);
    contract.with(Control::hears(Signals::BREAK))
}

/// PPM without its colour.
pub(super) const GRAY: &[(Content, Content)] = &[(Content::Ppm, Content::Pgm)];

/// The option that chooses how raw video is worked on.
pub(super) const MEMORY: Opt = Opt::new(
    "memory",
    Form::Word(&["auto", "fragments", "lines", "gather"]),
    Some("auto"),
    "Of raw video: packets one by one where pixels need no others, else the lines that become one; \
     packets one by one; lines when they are complete; whole frames.",
);

/// How raw video is worked on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Memory {
    /// [`Fragments`](Memory::Fragments) where each group of pixels becomes what it becomes by itself;
    /// else [`Lines`](Memory::Lines).
    #[default]
    Auto,
    /// Each packet where it lies: nothing is copied together, and nothing waits. A lost packet takes
    /// nothing else along.
    Fragments,
    /// The lines that become one are gathered, and go as soon as they are complete. A lost packet takes
    /// those lines along.
    Lines,
    /// The frame is gathered, and goes when it is complete. A lost packet takes it along.
    Gather,
}

impl Memory {
    pub(super) fn of(settings: &Settings) -> Self {
        match settings.text("memory") {
            Some("fragments") => Memory::Fragments,
            Some("lines") => Memory::Lines,
            Some("gather") => Memory::Gather,
            _ => Memory::Auto,
        }
    }
}

/// The element.
#[derive(Debug)]
pub struct Images {
    recipe: Recipe,
    memory: Memory,
    cpu: Cpu,
    /// By track; none for those that pass as they are.
    carriers: Vec<Option<Box<dyn Carrier>>>,
    numbers: [Numbers; TRACKS_MAX],
    pool: Pool,
    out: Vec<Item>,
    /// What was given up while there was no tally at hand.
    missed: Tally,
}

impl Images {
    /// An element that does what the recipe says.
    pub fn new(recipe: Recipe, memory: Memory) -> Self {
        Images {
            recipe,
            memory,
            cpu: Cpu::detect(),
            carriers: Vec::new(),
            numbers: [Numbers::default(); TRACKS_MAX],
            pool: Pool::default(),
            out: Vec::new(),
            missed: Tally::default(),
        }
    }

    /// How a track is worked on, and what comes out of it.
    fn track(&self, track: &Track) -> Result<(Box<dyn Carrier>, Track), Unfit> {
        match &track.codec {
            Codec::RawVideo(Some(shape)) => self.raw_video(track, *shape),
            Codec::RawVideo(None) => Err(Unfit::new(
                "raw video that cannot be worked on",
                "send RGB or YCbCr-4:2:2 of 8 bits that is not interlaced, and say its width and height",
            )),
            Codec::Jpeg2000 => self.jpeg2000(track),
            _ => {
                let what = format!("{} is no image that can be worked on", track.encoding);
                Err(Unfit::new(what, format!("give it {TAKES}")))
            }
        }
    }

    fn raw_video(&self, track: &Track, shape: Shape) -> Result<(Box<dyn Carrier>, Track), Unfit> {
        let resolved = self.recipe.resolve(shape)?;
        let sampling = match resolved.output.pixels {
            Pixels::Rgb => "RGB",
            Pixels::Uyvy => "YCbCr-4:2:2",
            Pixels::Gray => {
                let help = "use 'gray', which takes the colour out and leaves the sampling as it is";
                return Err(Unfit::new("raw video in RTP has no gray sampling", help));
            }
        };
        let by_itself = resolved.stands_alone();
        let carrier: Box<dyn Carrier> = match (self.memory, by_itself) {
            (Memory::Fragments, false) => {
                let help = "leave 'memory' out, or say \"lines\" or \"gather\"";
                return Err(Unfit::new("pixels need others to be worked on", help));
            }
            (Memory::Fragments | Memory::Auto, true) => {
                Box::new(fragments::Fragments::new(resolved, self.cpu))
            }
            _ if shape.bytes() > FRAME_BYTES_MAX => {
                let what = format!("a frame of {} bytes is too large to be gathered", shape.bytes());
                return Err(Unfit::new(what, format!("{FRAME_BYTES_MAX} bytes can be")));
            }
            (memory, _) => Box::new(gather::Gather::new(resolved, memory != Memory::Gather, self.cpu)),
        };
        let mut out = track.clone();
        let Shape { width, height, .. } = resolved.output;
        let values = [("sampling", sampling), ("width", &width.to_string()), ("height", &height.to_string())];
        for (name, value) in values {
            out.fmtp = fmtp::with(&out.fmtp, name, value);
        }
        out.codec = Codec::RawVideo(Some(resolved.output));
        Ok((carrier, out))
    }

    fn jpeg2000(&self, track: &Track) -> Result<(Box<dyn Carrier>, Track), Unfit> {
        if self.recipe.pixels.is_some() {
            let help = "use 'gray', 'crop' or 'shrink', which need no decoder";
            return Err(Unfit::new("pixels of JPEG 2000 are laid out by its decoder", help));
        }
        let priorities = fmtp::get(&track.fmtp, "pt").map_or(Priorities::None, Priorities::of);
        let mut out = track.clone();
        // Main headers have no numbers any more, by which one could be used again.
        out.fmtp = fmtp::without(&out.fmtp, "mhc");
        if priorities == Priorities::None {
            out.fmtp = fmtp::without(&out.fmtp, "pt");
        }
        if self.recipe.gray {
            out.fmtp = fmtp::with(&out.fmtp, "sampling", "GRAYSCALE");
        }
        if self.recipe.part.is_some() || self.recipe.size.is_some() {
            // It depends on tiles and resolutions. Each codestream says it.
            out.fmtp = fmtp::without(&fmtp::without(&out.fmtp, "width"), "height");
        }
        Ok((Box::new(codestream::Codestreams::new(self.recipe, priorities)), out))
    }

    fn tracks(&mut self, tracks: &[Track]) -> Result<Format, Unfit> {
        let (mut given, mut why) = (Vec::with_capacity(tracks.len()), None);
        for track in tracks {
            let (carrier, out) = match self.track(track) {
                Ok((carrier, out)) => (Some(carrier), out),
                Err(unfit) => {
                    // What is nearest to an image says best what to do.
                    let near = matches!(track.codec, Codec::RawVideo(_) | Codec::Jpeg2000);
                    if near || why.is_none() {
                        why = Some(unfit);
                    }
                    (None, track.clone())
                }
            };
            self.carriers.push(carrier);
            given.push(out);
        }
        match why {
            Some(unfit) if self.carriers.iter().all(Option::is_none) => Err(unfit),
            _ => Ok(Format::Rtp(given)),
        }
    }
}

impl Element for Images {
    fn bind(&mut self, input: &Format) -> Result<Format, Unfit> {
        for carrier in self.carriers.iter_mut().flatten() {
            carrier.clear(&mut self.missed);
        }
        self.carriers.clear();
        if self.recipe.is_nothing() {
            return Ok(input.clone());
        }
        match input {
            Format::Ts | Format::Data => {
                Err(Unfit::new("there are no images in it", format!("give it {TAKES}")))
            }
            Format::Images if self.recipe.pixels == Some(Pixels::Uyvy) => {
                Err(Unfit::new("PPM images have no such pixels", "convert them to \"rgb\" or \"gray\""))
            }
            Format::Images => {
                self.carriers.push(Some(Box::new(ppm::Images::new(self.recipe, self.cpu))));
                Ok(Format::Images)
            }
            Format::Rtp(tracks) => self.tracks(tracks),
        }
    }

    fn work(&mut self, _: Time, batch: &mut Vec<Item>, tally: &mut Tally) {
        tally.drops.merge(&core::mem::take(&mut self.missed).drops);
        let Images { carriers, numbers, pool, out: items, .. } = self;
        for item in batch.drain(..) {
            let track = usize::from(item.packet.tag.track);
            let numbers = &mut numbers[track % TRACKS_MAX];
            match carriers.get_mut(track) {
                Some(Some(carrier)) => carrier.take(item, &mut Out { pool, numbers, items }, tally),
                _ => items.push(item),
            }
        }
        core::mem::swap(batch, items);
        tally.memory_bytes = carriers.iter().flatten().map(|carrier| carrier.memory_bytes() as u64).sum();
    }

    fn message(&mut self, _: Time, message: Message) -> Option<Message> {
        if message == Message::Break {
            for carrier in self.carriers.iter_mut().flatten() {
                carrier.clear(&mut self.missed);
            }
        }
        Some(message)
    }

    /// The numbers of its packets: frames that are not complete do not go along.
    fn state(&mut self) -> Option<Box<dyn Any + Send>> {
        Some(Box::new(self.numbers))
    }

    fn resume(&mut self, state: Box<dyn Any + Send>) {
        if let Ok(numbers) = state.downcast::<[Numbers; TRACKS_MAX]>() {
            self.numbers = *numbers;
        }
    }
}
