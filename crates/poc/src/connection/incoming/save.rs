//! The receiver's half of a flow is handed over.

use std::collections::BTreeMap;

use outflow_petri::net::{Engine, Need};
use outflow_petri::save::{SavedEngine, SavedKnown};
use outflow_petri::service::Flow;

use super::super::spanset::SpanSet;
use super::assembly::Assembly;
use super::unread::Unread;
use super::{Incoming, IncomingCounts};
use crate::limits::{GAPS_MAX, UNIT_BYTES_MAX};
use crate::save::{
    NUMBER_MOST, SavedAssembly, SavedBytes, SavedIncoming, SavedSpan, SavedWhole, Unfit, check,
};

const WHAT: &str = "received units";

impl Incoming {
    /// What another one needs to go on.
    pub(in crate::connection) fn save(&self) -> SavedIncoming {
        let whole = |(unit, data): (&u64, &bytes::Bytes)| SavedWhole {
            unit: *unit,
            data: Some(SavedBytes(data.clone())),
        };
        SavedIncoming {
            engine: self.engine.save(),
            assembling: self.assembling.iter().map(|(unit, assembly)| assembly.save(*unit)).collect(),
            held: self.held.iter().map(whole).collect(),
            unread: self.unread.save(),
            lost: SavedSpan::all(self.lost.spans()),
            known_below: self.known_below,
            window_end: self.window_end,
            told: self.told.map(|(first, last)| SavedSpan { first, last }),
            counts: self.counts.into(),
        }
    }

    /// One that goes on with this flow.
    pub(in crate::connection) fn restore(flow: Flow, saved: &SavedIncoming) -> Result<Self, Unfit> {
        let window = u64::from(flow.rounds) * flow.net.objects() as u64;
        check_counts(saved, window)?;
        let engine = Engine::restore(flow.net.clone(), flow.rounds as usize, &saved.engine)?;
        check(saved.window_end <= engine.window_end(), WHAT, "room beyond the window")?;
        check(is_all_held(&saved.engine, &saved.held), WHAT, "others than the net has")?;
        let mut lost = SpanSet::default();
        for span in &saved.lost {
            lost.insert(span.checked(WHAT)?);
        }
        let units = saved.assembling.iter().map(|assembly| Ok((assembly.unit, Assembly::restore(assembly)?)));
        let assembling: BTreeMap<_, _> = units.collect::<Result<_, _>>()?;
        check(assembling.len() == saved.assembling.len(), WHAT, "two of one number")?;
        let is_open = |unit: &u64| *unit < saved.window_end && engine.need(*unit) != Need::No;
        check(assembling.keys().all(is_open), WHAT, "a part of one that is over")?;
        let whole = |whole: &SavedWhole| Some((whole.unit, whole.data.as_ref()?.0.clone()));
        let held: BTreeMap<_, _> = saved.held.iter().filter_map(whole).collect();
        let mut unread = Unread::default();
        for whole in &saved.unread {
            unread.push(whole.unit, whole.data.as_ref().map(|data| data.0.clone()));
        }
        let bytes = assembling.values().map(|assembly| u64::from(assembly.bytes()));
        let wholes = saved.held.iter().chain(&saved.unread).filter_map(|whole| whole.data.as_ref());
        let mut incoming = Incoming {
            engine,
            buffered: bytes.chain(wholes.map(|data| data.0.len() as u64)).sum(),
            assembling,
            held,
            unread,
            lost,
            known_below: saved.known_below,
            window_end: saved.window_end,
            told: saved.told.map(|told| (told.first, told.last)),
            counts: IncomingCounts::from(saved.counts),
            flow,
        };
        check(incoming.buffered <= u64::from(incoming.flow.buffer_bytes), WHAT, "more bytes than are kept")?;
        incoming.follow(None);
        Ok(incoming)
    }
}

fn check_counts(saved: &SavedIncoming, window: u64) -> Result<(), Unfit> {
    let kept = (saved.assembling.len() + saved.held.len()) as u64;
    check(kept <= window && saved.unread.len() as u64 <= window, WHAT, "too many")?;
    check(saved.lost.len() as u64 <= 2 * window, WHAT, "too many that were lost")?;
    let numbers = saved.unread.iter().map(|whole| whole.unit).chain([saved.known_below]);
    check(numbers.max().is_none_or(|number| number < NUMBER_MOST), WHAT, "too high a number")
}

/// Whether the units that the net holds are those that are there.
fn is_all_held(engine: &SavedEngine, held: &[SavedWhole]) -> bool {
    let runs = engine.units.iter().filter(|run| run.known == SavedKnown::Held);
    let units = runs.flat_map(|run| run.first..=run.last);
    held.iter().all(|whole| whole.data.is_some()) && units.eq(held.iter().map(|whole| whole.unit))
}

impl Assembly {
    fn save(&self, unit: u64) -> SavedAssembly {
        let (data, there) = self.parts();
        SavedAssembly { unit, data: SavedBytes(bytes::Bytes::copy_from_slice(data)), there }
    }

    fn restore(saved: &SavedAssembly) -> Result<Self, Unfit> {
        let data = &saved.data.0;
        check(data.len() <= UNIT_BYTES_MAX, WHAT, "one that is too long")?;
        check(saved.there.len() <= GAPS_MAX, WHAT, "too many pieces of one")?;
        let is_right = saved.there.iter().all(|(from, to)| from < to && *to as usize <= data.len());
        check(is_right, WHAT, "a piece that is not within its unit")?;
        Ok(Assembly::of(data, &saved.there))
    }
}
