//! Nets as bytes, to agree on a service when a connection begins.
//!
//! | part | content |
//! |---|---|
//! | version | one byte, 1 |
//! | transitions | how many runs; each: how many alike × 16 + the rule's number. A rule that needs a master is in a run of one, with the number of the master place behind it |
//! | intervals | how many; each: earliest, nominal − earliest, and 0 for no end or 1 + latest − nominal, in µs |
//! | places | how many runs; each: tokens × 2 + 1 if it only orders; number of the interval, of the producer, of the consumer; how many alike |
//!
//! All numbers are LEB128: 7 bits a byte, the lowest first, the highest bit set where more follow. Names
//! stay at home.

pub(crate) mod stride;

use core::time::Duration;

use outflow_media::Malformed;

use super::{Builder, Carries, Interval, Name, Net, Place, PlaceId, Rule, Transition, TransitionId};
use crate::leb128::{Reader, put};
use crate::limits::{PLACES_MAX, TRANSITIONS_MAX};

const VERSION: u8 = 1;

/// Reads a net, which gets names by position. Errors say where it is wrong; of a net that cannot be run
/// ([`NetError`](super::NetError)) the offset is the end.
///
/// A few bytes can say many places: at most [`PLACES_MAX`] are made.
pub fn parse(bytes: &[u8]) -> Result<Net, Malformed> {
    let mut reader = Reader::new("TSPN", bytes);
    if reader.byte()? != VERSION {
        return Err(Malformed { offset: 0, ..reader.error("a version that is not known") });
    }
    let mut builder = Builder::new();
    let masters = transitions(&mut reader, &mut builder)?;
    let intervals = intervals(&mut reader)?;
    places(&mut reader, &mut builder, &intervals)?;
    if !reader.is_at_end() {
        return Err(reader.error("bytes behind the end"));
    }
    for (transition, master) in masters {
        let consumer = builder.places().get(master.index()).map(|place| place.consumer);
        if consumer != Some(transition) {
            return Err(reader.error("a master of another transition"));
        }
        builder.master(master);
    }
    builder.build().map_err(|error| reader.error(error.reason()))
}

fn transitions(
    reader: &mut Reader<'_>,
    builder: &mut Builder,
) -> Result<Vec<(TransitionId, PlaceId)>, Malformed> {
    let (name, mut masters, mut number) = (Name::new("t"), Vec::new(), 0_u32);
    for _ in 0..reader.number()? {
        let head = reader.number()?;
        let Some(rule) = Rule::ALL.get((head % 16) as usize).copied() else {
            return Err(reader.error("a rule that is not known"));
        };
        let count = head / 16;
        if count == 0 || (rule.needs_master() && count != 1) {
            return Err(reader.error("a run of transitions of a wrong length"));
        }
        if count > TRANSITIONS_MAX as u64 - u64::from(number) {
            return Err(reader.error("too many transitions"));
        }
        for _ in 0..count {
            let id = builder.transition(name.numbered(number), rule);
            number += 1;
            if rule.needs_master() {
                masters.push((id, PlaceId(reader.below(PLACES_MAX, "no place of this number")?)));
            }
        }
    }
    Ok(masters)
}

fn intervals(reader: &mut Reader<'_>) -> Result<Vec<Interval>, Malformed> {
    let mut intervals = Vec::new();
    for _ in 0..reader.number()? {
        intervals.push(interval(reader)?);
    }
    Ok(intervals)
}

fn interval(reader: &mut Reader<'_>) -> Result<Interval, Malformed> {
    let (earliest, more, latest) = (reader.number()?, reader.number()?, reader.number()?);
    let nominal = earliest.saturating_add(more);
    let latest = latest.checked_sub(1).map(|more| nominal.saturating_add(more));
    let us = Duration::from_micros;
    let interval = Interval { earliest: us(earliest), nominal: us(nominal), latest: latest.map(us) };
    if interval.problem().is_some() { Err(reader.error("an interval too long")) } else { Ok(interval) }
}

fn places(reader: &mut Reader<'_>, builder: &mut Builder, intervals: &[Interval]) -> Result<(), Malformed> {
    let (name, mut number) = (Name::new("p"), 0_u32);
    for _ in 0..reader.number()? {
        let head = reader.number()?;
        let Ok(initial) = u32::try_from(head / 2) else {
            return Err(reader.error("too many tokens in a place"));
        };
        let carries = if head % 2 == 1 { Carries::Order } else { Carries::Object };
        let interval = reader.below(intervals.len(), "no interval of this number")?;
        let interval = intervals[interval as usize];
        let mut transition = || {
            let id = reader.below(builder.transitions().len(), "no transition of this number")?;
            Ok::<_, Malformed>(TransitionId(id))
        };
        let (producer, consumer) = (transition()?, transition()?);
        let count = reader.number()?;
        if count > PLACES_MAX as u64 - u64::from(number) {
            return Err(reader.error("too many places"));
        }
        for _ in 0..count {
            let name = name.numbered(number);
            builder.place(Place { name, carries, producer, consumer, interval, initial });
            number += 1;
        }
    }
    Ok(())
}

/// Writes a net behind what is in `out`.
pub fn emit(net: &Net, out: &mut Vec<u8>) {
    out.push(VERSION);
    let alike = |a: &Transition, b: &Transition| a.rule == b.rule && !a.rule.needs_master();
    put(out, net.transitions.chunk_by(alike).count() as u64);
    for run in net.transitions.chunk_by(alike) {
        let rule = Rule::ALL.iter().position(|rule| *rule == run[0].rule).unwrap_or_default();
        put(out, (run.len() * 16 + rule) as u64);
        if let Some(master) = run[0].master {
            put(out, u64::from(master.0));
        }
    }
    let mut intervals: Vec<_> = net.places.iter().map(|place| place.interval).collect();
    intervals.sort_unstable();
    intervals.dedup();
    put(out, intervals.len() as u64);
    intervals.iter().for_each(|interval| put_interval(interval, out));
    put(out, net.places.chunk_by(Place::is_alike).count() as u64);
    for run in net.places.chunk_by(Place::is_alike) {
        let place = &run[0];
        put(out, u64::from(place.initial) * 2 + u64::from(place.carries == Carries::Order));
        put(out, intervals.partition_point(|interval| *interval < place.interval) as u64);
        put(out, u64::from(place.producer.0));
        put(out, u64::from(place.consumer.0));
        put(out, run.len() as u64);
    }
}

fn put_interval(interval: &Interval, out: &mut Vec<u8>) {
    let us = |duration: Duration| duration.as_micros() as u64;
    let (earliest, nominal) = (us(interval.earliest), us(interval.nominal));
    put(out, earliest);
    put(out, nominal - earliest);
    put(out, interval.latest.map_or(0, |latest| us(latest) - nominal + 1));
}

#[cfg(test)]
mod tests;
