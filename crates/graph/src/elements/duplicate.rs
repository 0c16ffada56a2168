//! Everything twice, or some of it again.

use core::any::Any;
use std::collections::VecDeque;

use outflow_media::{Format, Time};
use outflow_packet::DropReason;

use crate::limits::COPY_AFTER_MAX;
use crate::{Contents, Contract, Element, Form, Gives, Item, Kind, Make, Opt, Settings, Tally, Unfit};

const COPY: u8 = 1;
const EVERYTHING: &str = "everything";
const KEYS: &str = "key-frames";

/// The element.
///
/// A repeat has the sequence number of its original, so that receivers take whichever comes first and
/// drop the other. Copies are references to the same bytes.
pub const KIND: Kind = Kind {
    name: "duplicate",
    doc: "A copy of everything leaves by `copy`; or packets are repeated behind themselves, by `out`.",
    contract: |_| Contract::new(Contents::ANY, Gives::Same),
    outputs: &["out", "copy"],
    options: &[
        Opt::new(
            "repeats",
            Form::Whole(0, 4),
            Some("0"),
            "Copies of a packet that leave by `out`; then none leave by `copy`.",
        ),
        Opt::new(
            "after",
            Form::Whole(0, COPY_AFTER_MAX),
            Some("0"),
            "A repeat comes after this many more packets, so that one loss does not take both.",
        ),
        Opt::new("of", Form::Word(&[EVERYTHING, KEYS]), Some(EVERYTHING), "What is repeated."),
    ],
    make: Make::Core(make),
};

fn make(settings: &Settings) -> Result<Box<dyn Element>, Unfit> {
    let repeats = settings.whole("repeats").unwrap_or(0) as u32;
    if repeats == 0 && (settings.has("after") || settings.has("of")) {
        let help = "write `repeats`, or leave `after` and `of` out";
        return Err(Unfit::new("nothing is repeated", help));
    }
    Ok(Box::new(Duplicate {
        repeats,
        after: settings.whole("after").unwrap_or(0) as u32,
        keys_only: settings.text("of") == Some(KEYS),
        waiting: VecDeque::new(),
        out: Vec::new(),
    }))
}

#[derive(Debug)]
struct Duplicate {
    repeats: u32,
    after: u32,
    keys_only: bool,
    /// Repeats that are due when the ordinals have come to these.
    waiting: VecDeque<(u32, Item)>,
    out: Vec<Item>,
}

impl Duplicate {
    fn repeat(&mut self, item: &Item) {
        if self.keys_only && !item.packet.tag.key {
            return;
        }
        for repeat in 1..=self.repeats {
            let due = item.ordinal.wrapping_add(self.after * repeat);
            let at = self.waiting.partition_point(|(other, _)| is_due(*other, due));
            self.waiting.insert(at, (due, item.once_more()));
        }
    }

    /// Those that come before what has come in now.
    fn release(&mut self, ordinal: u32) {
        while self.waiting.front().is_some_and(|(due, _)| is_due(*due, ordinal)) {
            let Some((_, mut item)) = self.waiting.pop_front() else { break };
            // It stands here among all packets.
            item.ordinal = ordinal;
            self.out.push(item);
        }
    }
}

/// Whether `due` is not behind `now`, on ordinals, which wrap.
fn is_due(due: u32, now: u32) -> bool {
    now.wrapping_sub(due).cast_signed() >= 0
}

impl Element for Duplicate {
    fn bind(&mut self, input: &Format) -> Result<Format, Unfit> {
        Ok(input.clone())
    }

    fn work(&mut self, _: Time, batch: &mut Vec<Item>, _: &mut Tally) {
        for item in batch.drain(..) {
            let ordinal = item.ordinal;
            if self.repeats == 0 {
                let mut copy = item.clone();
                copy.leave_by(COPY, DropReason::Filtered);
                self.out.extend([item, copy]);
                continue;
            }
            if self.after > 0 {
                self.release(ordinal);
            }
            self.repeat(&item);
            self.out.push(item);
            if self.after == 0 {
                self.release(ordinal);
            }
        }
        core::mem::swap(batch, &mut self.out);
    }

    fn state(&mut self) -> Option<Box<dyn Any + Send>> {
        Some(Box::new(core::mem::take(&mut self.waiting)))
    }

    fn resume(&mut self, state: Box<dyn Any + Send>) {
        if let Ok(waiting) = state.downcast::<VecDeque<(u32, Item)>>() {
            self.waiting = *waiting;
        }
    }
}

#[cfg(test)]
mod tests;
