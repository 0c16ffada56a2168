//! The element that a plug-in is in the graph.

use core::any::Any;

use std::sync::Arc;

use outflow_graph::{Element, Item, Message, Tally, Unfit};
use outflow_media::{Format, Time};
use outflow_packet::DropReason;

use super::batch;
use super::batch::{Carries, Scratch};
use super::code::Code;
use super::contract::{Answer, Payload};
use super::live::Live;
use super::options::{OnFault, Options};
use super::parts::Parts;
use super::rest::Rest;
use crate::limits::{CALL_MEMORY_PARTS, CALL_MEMORY_REST, CALL_PACKETS_MAX, FAULTS_PER_BATCH_MAX};

/// A plug-in in the graph.
#[derive(Debug)]
pub(crate) struct WasmElement {
    code: Arc<Code>,
    options: Options,
    input: Option<Format>,
    carries: Carries,
    live: Option<Live>,
    /// It went wrong, and was not to be started again.
    is_given_up: bool,
    rest: Rest,
    scratch: Scratch,
    /// A part of a batch that is worked on.
    part: Vec<Item>,
    /// What went wrong while it could not be told.
    untold: Option<String>,
}

/// What goes from an element to the one that takes its place.
struct Left {
    code: Arc<Code>,
    options: Options,
    input: Option<Format>,
    live: Live,
    rest: Rest,
}

impl WasmElement {
    pub(crate) fn new(code: Arc<Code>, options: Options) -> Self {
        WasmElement {
            code,
            options,
            input: None,
            carries: Carries::Ts,
            live: None,
            is_given_up: false,
            rest: Rest::default(),
            scratch: Scratch::default(),
            part: Vec::new(),
            untold: None,
        }
    }

    /// Brings it to life, and tells it what comes in.
    fn start(&self, input: &Format, now: Time) -> Result<Live, Unfit> {
        let mut live = Live::born(&self.code, &self.options, now)?;
        live.init(&self.options.config, input, now)?;
        if self.options.whole_frames && matches!(live.payload, Payload::Parts(_)) {
            let help = "take `unit = \"frames\"` out, or let it ask for the whole payload";
            return Err(Unfit::new("it asks for packets in parts, and is to be given frames", help));
        }
        Ok(live)
    }

    /// One that lives, if it may.
    fn revive(&mut self, now: Time, tally: &mut Tally) -> Option<&mut Live> {
        if self.live.is_none()
            && !self.is_given_up
            && self.rest.is_over(now)
            && let Some(input) = &self.input
        {
            match self.start(input, now) {
                Ok(live) => self.live = Some(live),
                Err(unfit) => {
                    tally.fail(unfit.to_string());
                    self.rest.fault(now);
                }
            }
        }
        self.live.as_mut()
    }

    /// How many of these packets, beginning with the first, go into a call.
    fn fitting(&self, items: &[Item]) -> usize {
        let payload = self.live.as_ref().map_or(Payload::None, |live| live.payload);
        let most = if matches!(payload, Payload::Parts(_)) { 1 } else { CALL_PACKETS_MAX };
        let mut room = self.options.memory_bytes / CALL_MEMORY_PARTS;
        let mut count = 0;
        while count < items.len() {
            let group = &items[count..][..self.together(&items[count..])];
            let seen = |item: &Item| batch::seen(payload, batch::size(item, self.carries)) as u64;
            let bytes = group.iter().map(seen).sum();
            // What does not go in at all is found out when it is tried.
            if count > 0 && (count + group.len() > most || bytes > room) {
                break;
            }
            room = room.saturating_sub(bytes);
            count += group.len();
        }
        count
    }

    /// How many of these packets, from the first on, go into the same call in any case.
    fn together(&self, items: &[Item]) -> usize {
        let frame = |item: &Item| (item.packet.tag.track, item.packet.tag.frame);
        let is_of_it = |item: &&Item| self.options.whole_frames && frame(item) == frame(&items[0]);
        items.iter().skip(1).take_while(is_of_it).count() + 1
    }

    /// Lets it work on packets that go into a call; `faults` counts what went wrong with the batch.
    fn part(&mut self, now: Time, items: &mut Vec<Item>, tally: &mut Tally, faults: &mut u32) {
        let Err(words) = self.call(now, items, tally) else { return };
        *faults += 1;
        tally.fail(words);
        self.went_wrong(now);
        match self.options.on_fault {
            OnFault::Bypass => {}
            OnFault::Drop => drop_all(items, tally),
            OnFault::Restart => self.one_by_one(now, items, tally, faults),
        }
    }

    /// It is dead; whether it begins again is up to the policy.
    fn went_wrong(&mut self, now: Time) {
        self.live = None;
        match self.options.on_fault {
            OnFault::Bypass | OnFault::Drop => self.is_given_up = true,
            OnFault::Restart => self.rest.fault(now),
        }
    }

    /// Only the packets at which it goes wrong are lost, or the frames if it is given frames.
    fn one_by_one(&mut self, now: Time, items: &mut Vec<Item>, tally: &mut Tally, faults: &mut u32) {
        if self.together(items) == items.len() {
            return drop_all(items, tally);
        }
        let mut all = core::mem::take(items);
        let mut one = Vec::with_capacity(1);
        while !all.is_empty() {
            one.extend(all.drain(..self.together(&all)));
            if *faults >= FAULTS_PER_BATCH_MAX {
                drop_all(&mut one, tally);
            } else if let Err(words) = self.call(now, &mut one, tally) {
                *faults += 1;
                tally.fail(words);
                self.went_wrong(now);
                drop_all(&mut one, tally);
            }
            items.append(&mut one);
        }
    }

    /// Lets it work on packets. Nothing has happened to them after an error.
    fn call(&mut self, now: Time, items: &mut Vec<Item>, tally: &mut Tally) -> Result<(), String> {
        let (carries, room) = (self.carries, self.options.memory_bytes.saturating_sub(CALL_MEMORY_REST));
        let Some(live) = self.revive(now, tally) else {
            drop_all(items, tally);
            return Ok(());
        };
        let payload = live.payload;
        if let [item] = &items[..]
            && batch::seen(payload, batch::size(item, carries)) as u64 > room
        {
            let bytes = batch::size(item, carries);
            tally.fail(format!("a packet of {bytes} bytes does not go into its memory: raise `memory`"));
            drop_all(items, tally);
            return Ok(());
        }
        if let Payload::Parts(bytes) = payload {
            return self.by_parts(now, bytes as usize, items, tally);
        }
        let (packets, bytes) = self.scratch.gather(items, carries, payload);
        let live = self.live.as_mut().expect("it lives");
        let answer = live.work(now, packets, bytes.clone());
        tally.memory_bytes = live.memory_bytes() as u64;
        if items.len() > 1 {
            self.scratch.reclaim(bytes);
        }
        match answer? {
            Answer::Pass => {}
            Answer::Only(chosen) => {
                let bytes_max = usize::try_from(self.options.memory_bytes).unwrap_or(usize::MAX);
                let made = batch::check(&chosen, items, carries, bytes_max)?;
                self.scratch.apply(chosen, made, carries, items, tally);
            }
        }
        Ok(())
    }

    /// Lets it work on a packet part by part. Nothing has happened to it after an error.
    fn by_parts(
        &mut self,
        now: Time,
        size: usize,
        items: &mut Vec<Item>,
        tally: &mut Tally,
    ) -> Result<(), String> {
        let [item] = &mut items[..] else { unreachable!("parts are of one packet; see `fitting`") };
        let whole = batch::whole(item, self.carries);
        let bytes = whole.len();
        let mut parts = Parts::new(whole, size);
        let live = self.live.as_mut().expect("it lives");
        let mut fuel = live.budget().instructions(bytes);
        let answer = loop {
            let (begin, part) = parts.part();
            let packets = self.scratch.part(item, begin, part.len(), bytes);
            let (answer, left) = live.work_on(now, packets, &mut parts, fuel)?;
            fuel = left;
            if !parts.next() {
                break answer;
            }
        };
        tally.memory_bytes = live.memory_bytes() as u64;
        let made = parts.made();
        if let Answer::Only(chosen) = answer {
            if chosen.actions.iter().any(|action| action.edit.is_some()) {
                return Err("it edits a packet that it is given in parts".to_owned());
            }
            batch::check(&chosen, items, self.carries, 0)?;
            self.scratch.apply(chosen, 0, self.carries, items, tally);
        }
        for item in items {
            made.iter().try_for_each(|made| batch::replace(item, self.carries, made.clone()))?;
        }
        Ok(())
    }
}

/// They go no further.
fn drop_all(items: &mut Vec<Item>, tally: &mut Tally) {
    tally.drops.add(DropReason::ElementFault, items.len() as u64);
    items.clear();
}

impl Element for WasmElement {
    fn bind(&mut self, input: &Format) -> Result<Format, Unfit> {
        self.carries = Carries::from(input);
        self.input = Some(input.clone());
        self.is_given_up = false;
        // One that lives is told; if it does not survive that, another begins.
        let told = self.live.as_mut().map(|live| live.init(&self.options.config, input, Time::ZERO));
        if !matches!(told, Some(Ok(()))) {
            self.live = None;
            self.live = Some(self.start(input, Time::ZERO)?);
        }
        Ok(input.clone())
    }

    fn work(&mut self, now: Time, batch: &mut Vec<Item>, tally: &mut Tally) {
        if let Some(words) = self.untold.take() {
            tally.fail(words);
        }
        let passes = |element: &Self| element.is_given_up && element.options.on_fault == OnFault::Bypass;
        if passes(self) {
            return;
        }
        let mut faults = 0;
        if self.fitting(batch) == batch.len() {
            return self.part(now, batch, tally, &mut faults);
        }
        let mut rest = core::mem::take(batch);
        while !rest.is_empty() {
            let mut part = core::mem::take(&mut self.part);
            part.extend(rest.drain(..self.fitting(&rest)));
            if !passes(self) {
                self.part(now, &mut part, tally, &mut faults);
            }
            batch.append(&mut part);
            self.part = part;
        }
    }

    fn message(&mut self, now: Time, message: Message) -> Option<Message> {
        let Some(live) = &mut self.live else { return Some(message) };
        live.hear(now, message).unwrap_or_else(|words| {
            self.untold = Some(words);
            self.went_wrong(now);
            Some(message)
        })
    }

    fn state(&mut self) -> Option<Box<dyn Any + Send>> {
        let live = self.live.take()?;
        Some(Box::new(Left {
            code: Arc::clone(&self.code),
            options: self.options.clone(),
            input: self.input.clone(),
            live,
            rest: self.rest,
        }))
    }

    fn resume(&mut self, state: Box<dyn Any + Send>) {
        let Ok(left) = state.downcast::<Left>() else { return };
        let Left { code, options, input, mut live, rest } = *left;
        let is_same = code.hash == self.code.hash
            && input == self.input
            && options.config == self.options.config
            && options.memory_bytes == self.options.memory_bytes;
        if is_same {
            live.set_budget(self.options.budget);
            (self.live, self.rest) = (Some(live), rest);
            return;
        }
        let (Some(next), Some(saved)) = (&mut self.live, live.save()) else { return };
        if let Err(words) = next.restore(saved) {
            // What it was given has killed it: it begins with nothing.
            self.live = None;
            self.untold = Some(format!("it could not go on from what was saved: {words}"));
        }
    }
}
