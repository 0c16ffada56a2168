//! A plug-in that lives: calls into it, and what went wrong in them.

use core::fmt::Write as _;

use bytes::Bytes;
use outflow_graph::{Message, Unfit};
use outflow_media::{Format, Time};
use wasmtime::component::{ComponentExportIndex, ComponentNamedList, Lift, Lower, TypedFunc};
use wasmtime::{Store, Trap};

use super::code::Code;
use super::contract::{Answer, Input, Notice, Packets, Payload, Setup};
use super::guest::{Guest, cut};
use super::options::{Budget, Options};
use super::parts::Parts;
use crate::limits::{BIRTH_INSTRUCTIONS, ERROR_BYTES_MAX, PART_INSTRUCTIONS, SAVED_BYTES_MAX};

/// A plug-in that lives. After an error it is dead, and to be let go.
pub(crate) struct Live {
    store: Store<Guest>,
    init: TypedFunc<(String, Input), (Result<Setup, String>,)>,
    work: TypedFunc<(Packets, Bytes), (Answer,)>,
    state: Option<State>,
    hear: Option<TypedFunc<(Notice,), (Option<Notice>,)>>,
    budget: Budget,
    pub(crate) payload: Payload,
}

/// Functions of a plug-in that keeps something in mind.
struct State {
    save: TypedFunc<(), (Vec<u8>,)>,
    restore: TypedFunc<(Bytes,), ()>,
}

impl core::fmt::Debug for Live {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Live({:?}, {} bytes)", self.payload, self.memory_bytes())
    }
}

impl Live {
    /// Brings one to life, which then is to be told what comes in.
    ///
    /// # Errors
    /// Why it does not live, and what to do.
    pub(crate) fn born(code: &Code, options: &Options, now: Time) -> Result<Self, Unfit> {
        let memory_bytes_max = usize::try_from(options.memory_bytes).unwrap_or(usize::MAX);
        let guest = Guest::new(now, memory_bytes_max);
        let mut store = Store::new(code.pre.engine(), guest);
        store.limiter(|guest| guest);
        let born = store.set_fuel(BIRTH_INSTRUCTIONS).and_then(|()| code.pre.instantiate(&mut store));
        let instance = born.map_err(|error| {
            let help = "see the element's `memory`, or mend the plug-in";
            Unfit::new(format!("it does not start: {}", words(&error, &store, BIRTH_INSTRUCTIONS)), help)
        })?;
        let state = match &code.state {
            None => None,
            Some((save, restore)) => Some(State {
                save: typed(&instance, &mut store, save, "save")?,
                restore: typed(&instance, &mut store, restore, "restore")?,
            }),
        };
        let hear = code.hear.as_ref().map(|hear| typed(&instance, &mut store, hear, "hear")).transpose()?;
        Ok(Live {
            hear,
            init: typed(&instance, &mut store, &code.init, "init")?,
            work: typed(&instance, &mut store, &code.work, "work")?,
            state,
            store,
            budget: options.budget,
            payload: Payload::None,
        })
    }

    /// Tells it what comes in.
    ///
    /// # Errors
    /// It refuses, or went wrong; in both cases why.
    pub(crate) fn init(&mut self, config: &str, input: &Format, now: Time) -> Result<(), Unfit> {
        self.begin(now);
        let told = self
            .store
            .set_fuel(BIRTH_INSTRUCTIONS)
            .and_then(|()| self.init.call(&mut self.store, (config.to_owned(), Input::from(input))));
        match told {
            Ok((Ok(setup),)) => {
                self.payload = setup.payload;
                Ok(())
            }
            Ok((Err(why),)) => Err(Unfit::new(
                format!("the plug-in refuses: {}", cut(&why, ERROR_BYTES_MAX)),
                "see `config`",
            )),
            Err(error) => {
                let why = words(&error, &self.store, BIRTH_INSTRUCTIONS);
                Err(Unfit::new(format!("`init` went wrong: {why}"), "mend the plug-in"))
            }
        }
    }

    fn begin(&mut self, now: Time) {
        self.store.data_mut().begin(now);
    }

    /// Lets it work on a batch.
    ///
    /// # Errors
    /// What went wrong, in words.
    pub(crate) fn work(&mut self, now: Time, packets: Packets, bytes: Bytes) -> Result<Answer, String> {
        self.begin(now);
        let fuel = self.budget.instructions(bytes.len());
        let done = self.store.set_fuel(fuel).and_then(|()| self.work.call(&mut self.store, (packets, bytes)));
        done.map(|(answer,)| answer).map_err(|error| words(&error, &self.store, fuel))
    }

    /// Lets it work on a part of a packet, of `fuel` that is left of what is for all of them; what it wrote
    /// stands in `parts` then. Returns also how much is left.
    ///
    /// # Errors
    /// What went wrong, in words.
    pub(crate) fn work_on(
        &mut self,
        now: Time,
        packets: Packets,
        parts: &mut Parts,
        fuel: u64,
    ) -> Result<(Answer, u64), String> {
        self.begin(now);
        let (_, part) = parts.part();
        let lent = core::mem::replace(parts, Parts::new(Bytes::new(), 0));
        *self.store.data_mut().parts() = Some(lent);
        let done = self.store.set_fuel(fuel).and_then(|()| self.work.call(&mut self.store, (packets, part)));
        if let Some(lent) = self.store.data_mut().parts().take() {
            *parts = lent;
        }
        let left = self.store.get_fuel().unwrap_or(0).saturating_sub(PART_INSTRUCTIONS);
        let budget = self.budget.instructions(parts.bytes());
        done.map(|(answer,)| (answer, left)).map_err(|error| words(&error, &self.store, budget))
    }

    /// What a call may take.
    pub(crate) const fn budget(&self) -> Budget {
        self.budget
    }

    /// Lets it hear a message; what goes on.
    ///
    /// # Errors
    /// What went wrong, in words.
    pub(crate) fn hear(&mut self, now: Time, message: Message) -> Result<Option<Message>, String> {
        self.begin(now);
        let Some(hear) = &self.hear else { return Ok(Some(message)) };
        let fuel = self.budget.instructions(0);
        let done = self.store.set_fuel(fuel).and_then(|()| hear.call(&mut self.store, (message.into(),)));
        done.map(|(on,)| on.map(Message::from)).map_err(|error| words(&error, &self.store, fuel))
    }

    /// What it keeps in mind, for another; `None` if it keeps nothing, or went wrong.
    pub(crate) fn save(&mut self) -> Option<Vec<u8>> {
        let state = self.state.as_ref()?;
        self.store.set_fuel(BIRTH_INSTRUCTIONS).ok()?;
        let (saved,) = state.save.call(&mut self.store, ()).ok()?;
        (saved.len() <= SAVED_BYTES_MAX).then_some(saved)
    }

    /// Lets it go on from what another kept in mind.
    ///
    /// # Errors
    /// What went wrong, in words.
    pub(crate) fn restore(&mut self, saved: Vec<u8>) -> Result<(), String> {
        let Some(state) = &self.state else { return Ok(()) };
        let done = self
            .store
            .set_fuel(BIRTH_INSTRUCTIONS)
            .and_then(|()| state.restore.call(&mut self.store, (saved.into(),)));
        done.map_err(|error| words(&error, &self.store, BIRTH_INSTRUCTIONS))
    }

    /// Bytes of its memory.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.store.data().memory_bytes()
    }

    /// Another budget, for one that goes on under another name's options.
    pub(crate) const fn set_budget(&mut self, budget: Budget) {
        self.budget = budget;
    }
}

fn typed<P, R>(
    instance: &wasmtime::component::Instance,
    store: &mut Store<Guest>,
    index: &ComponentExportIndex,
    name: &str,
) -> Result<TypedFunc<P, R>, Unfit>
where
    P: ComponentNamedList + Lower,
    R: ComponentNamedList + Lift,
{
    instance.get_typed_func(store, index).map_err(|error| {
        let what = format!("its `{name}` is not that of the contract: {error:#}");
        Unfit::new(what, "build it again with the wit folder of this version")
    })
}

/// What went wrong, for people.
fn words(error: &wasmtime::Error, store: &Store<Guest>, fuel: u64) -> String {
    let guest = store.data();
    if let Some((wanted, allowed)) = guest.wanted() {
        return format!(
            "it wants {} MB of memory; `memory` allows for {} MB",
            wanted.div_ceil(1_000_000),
            allowed / 1_000_000
        );
    }
    match error.downcast_ref::<Trap>() {
        Some(Trap::OutOfFuel) => {
            format!("it took more than {fuel} instructions for a call; `budget` allows for no more")
        }
        Some(trap) if guest.words().is_empty() => format!("it stopped: {trap}"),
        Some(trap) => format!("it stopped: {trap}; its last words: {}", guest.words()),
        None => {
            let mut text = String::new();
            let _ = write!(text, "{error:#}");
            cut(&text, ERROR_BYTES_MAX).to_owned()
        }
    }
}
