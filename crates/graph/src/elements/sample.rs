//! Keeps one in n frames or packets.

use outflow_media::Time;
use outflow_packet::DropReason;
use outflow_packet::limits::TRACKS_MAX;

use super::by_frame::{BY_FRAME, ByFrame, Judge};
use super::verdict::{DEPENDENTS, Kept, OUT_AND_REST};
use crate::{Element, Form, Item, Kind, Make, Opt, Settings, Tally, Unfit};

const FRAMES: &str = "frames";
const PACKETS: &str = "packets";
const SEED: u64 = 1;

/// The element.
pub const KIND: Kind = Kind {
    name: "sample",
    doc: "Keeps every n-th frame or packet of each track, or a part of them by chance.",
    contract: |_| BY_FRAME,
    outputs: OUT_AND_REST,
    options: &[
        Opt::new("of", Form::Word(&[FRAMES, PACKETS]), Some(FRAMES), "What is counted."),
        Opt::new(
            "every",
            Form::Whole(1, 1_000_000),
            Some("2"),
            "One in this many is kept, the first included.",
        ),
        Opt::new("percent", Form::Whole(0, 100), None, "Of 100, this many are kept, by chance, instead."),
        Opt::new("seed", Form::Whole(0, u64::MAX), Some("1"), "The same seed makes the same choice."),
        DEPENDENTS,
    ],
    make: Make::Core(make),
};

fn make(settings: &Settings) -> Result<Box<dyn Element>, Unfit> {
    let percent = settings.whole("percent");
    if percent.is_some() && settings.has("every") {
        return Err(Unfit::new("both `every` and `percent`", "write one of them"));
    }
    let chance = percent.map(|percent| percent as u8);
    let choice = Choice {
        every: settings.whole("every").unwrap_or(2),
        chance,
        counts: [0; TRACKS_MAX],
        random: fastrand::Rng::with_seed(settings.whole("seed").unwrap_or(SEED)),
    };
    if settings.text("of") == Some(PACKETS) {
        return Ok(Box::new(Packets(choice)));
    }
    let dependents = settings.flag("dependents").unwrap_or(true);
    Ok(Box::new(ByFrame::new(Frames { choice, dependents })))
}

/// What is next.
#[derive(Debug, Clone)]
struct Choice {
    every: u64,
    chance: Option<u8>,
    /// Of each track, how many came since one was kept.
    counts: [u64; TRACKS_MAX],
    random: fastrand::Rng,
}

impl Choice {
    fn next(&mut self, track: u8) -> Kept {
        let keep = match self.chance {
            Some(percent) => self.random.u8(0..100) < percent,
            None => {
                let count = &mut self.counts[usize::from(track) % TRACKS_MAX];
                let keep = *count == 0;
                *count = (*count + 1) % self.every;
                keep
            }
        };
        Kept::if_so(keep, DropReason::Filtered)
    }

    fn resume(&mut self, before: Choice) {
        let count = |count: u64| count % self.every;
        self.counts = before.counts.map(count);
        self.random = before.random;
    }
}

#[derive(Debug)]
struct Frames {
    choice: Choice,
    dependents: bool,
}

impl Judge for Frames {
    type Verdict = Kept;
    type State = Choice;

    fn judge(&mut self, _: Time, item: &Item, orphan: bool) -> Kept {
        // A frame counts even where it could not be kept: the choice does not depend on the frames.
        let kept = self.choice.next(item.packet.tag.track);
        if kept == Kept::Yes && orphan && self.dependents {
            return Kept::No(DropReason::DependsOnDropped);
        }
        kept
    }

    fn carry_out(&mut self, item: &mut Item, verdict: Kept, _: &mut Tally) -> bool {
        verdict.part(item);
        true
    }

    fn state(&mut self) -> Choice {
        self.choice.clone()
    }

    fn resume(&mut self, state: Choice) {
        self.choice.resume(state);
    }
}

#[derive(Debug)]
struct Packets(Choice);

impl Element for Packets {
    fn bind(&mut self, input: &outflow_media::Format) -> Result<outflow_media::Format, Unfit> {
        Ok(input.clone())
    }

    fn work(&mut self, _: Time, batch: &mut Vec<Item>, _: &mut Tally) {
        for item in batch {
            self.0.next(item.packet.tag.track).part(item);
        }
    }

    fn state(&mut self) -> Option<Box<dyn core::any::Any + Send>> {
        Some(Box::new(self.0.clone()))
    }

    fn resume(&mut self, state: Box<dyn core::any::Any + Send>) {
        if let Ok(choice) = state.downcast::<Choice>() {
            self.0.resume(*choice);
        }
    }
}

#[cfg(test)]
mod tests;
