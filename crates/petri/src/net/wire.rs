//! Nets as bytes, to agree on a service when a connection begins.
//!
//! | part | content |
//! |---|---|
//! | version | one byte, 2 |
//! | transitions | how many runs; each: how many of one rule × 16 + the rule's number; if the rule needs a master, the number of the first one's master place: those of the next ones are the next places |
//! | intervals | how many; each: earliest, nominal − earliest, and 0 for no end or 1 + latest − nominal, in µs |
//! | places | how many runs; each: tokens × 4 + 2 if it only orders + 1 if both ends go on; number of the interval, of the first producer, of the first consumer; how many alike |
//!
//! In a run whose ends go on, each place leads from the next transition to the next one: a chain of thousands of
//! units is a run. The others lead from one transition to one. A place that is like no other is a run of one.
//!
//! All numbers are LEB128: 7 bits a byte, the lowest first, the highest bit set where more follow. Names
//! stay at home.

use core::time::Duration;

use outflow_media::Malformed;

use super::{Builder, Carries, Interval, Name, Net, Place, PlaceId, Rule, Transition, TransitionId};
use crate::leb128::{Reader, put};
use crate::limits::{PLACES_MAX, TRANSITIONS_MAX};

const VERSION: u8 = 2;

/// Of a run of places: it goes on at both ends.
const GOES_ON: u64 = 1;

/// Of a run of places: they only order.
const ORDERS: u64 = 2;

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
        if count == 0 || count > TRANSITIONS_MAX as u64 - u64::from(number) {
            return Err(reader.error("no transitions in a run, or too many"));
        }
        let needs_master = rule.needs_master();
        let first = if needs_master { reader.below(PLACES_MAX, "no place of this number")? } else { 0 };
        for step in 0..count as u32 {
            let id = builder.transition(name.numbered(number), rule);
            number += 1;
            if needs_master {
                masters.push((id, PlaceId(first + step)));
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
    let transitions = builder.transitions().len();
    let (name, mut number) = (Name::new("p"), 0_u32);
    for _ in 0..reader.number()? {
        let head = reader.number()?;
        let Ok(initial) = u32::try_from(head / 4) else {
            return Err(reader.error("too many tokens in a place"));
        };
        let carries = if head & ORDERS == 0 { Carries::Object } else { Carries::Order };
        let interval = reader.below(intervals.len(), "no interval of this number")?;
        let interval = intervals[interval as usize];
        let mut transition = || reader.below(transitions, "no transition of this number");
        let (producer, consumer) = (transition()?, transition()?);
        let count = reader.number()?;
        if count == 0 || count > PLACES_MAX as u64 - u64::from(number) {
            return Err(reader.error("no places in a run, or too many"));
        }
        let goes_on = head & GOES_ON != 0;
        if goes_on && count > transitions as u64 - u64::from(producer.max(consumer)) {
            return Err(reader.error("a run beyond the last transition"));
        }
        for step in 0..count as u32 {
            let on = |first: u32| TransitionId(if goes_on { first + step } else { first });
            let (producer, consumer) = (on(producer), on(consumer));
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
    put_transitions(&net.transitions, out);
    let mut intervals: Vec<_> = net.places.iter().map(|place| place.interval).collect();
    intervals.sort_unstable();
    intervals.dedup();
    put(out, intervals.len() as u64);
    intervals.iter().for_each(|interval| put_interval(interval, out));
    let runs = runs(&net.places);
    put(out, runs.len() as u64);
    for (goes_on, run) in runs {
        let place = &run[0];
        let orders = if place.carries == Carries::Order { ORDERS } else { 0 };
        put(out, u64::from(place.initial) * 4 + orders + if goes_on { GOES_ON } else { 0 });
        put(out, intervals.partition_point(|interval| *interval < place.interval) as u64);
        put(out, u64::from(place.producer.0));
        put(out, u64::from(place.consumer.0));
        put(out, run.len() as u64);
    }
}

fn put_transitions(transitions: &[Transition], out: &mut Vec<u8>) {
    let goes_on = |a: &Transition, b: &Transition| {
        a.rule == b.rule && a.master.map(|master| master.0 + 1) == b.master.map(|master| master.0)
    };
    put(out, transitions.chunk_by(goes_on).count() as u64);
    for run in transitions.chunk_by(goes_on) {
        let rule = Rule::ALL.iter().position(|rule| *rule == run[0].rule).unwrap_or_default();
        put(out, (run.len() * 16 + rule) as u64);
        if let Some(master) = run[0].master {
            put(out, u64::from(master.0));
        }
    }
}

fn put_interval(interval: &Interval, out: &mut Vec<u8>) {
    let us = |duration: Duration| duration.as_micros() as u64;
    let (earliest, nominal) = (us(interval.earliest), us(interval.nominal));
    put(out, earliest);
    put(out, nominal - earliest);
    put(out, interval.latest.map_or(0, |latest| us(latest) - nominal + 1));
}

/// Places in runs, and whether their ends go on: at each place the longer run. A part of a run is one, so that
/// there are not fewer otherwise.
fn runs(mut places: &[Place]) -> Vec<(bool, &[Place])> {
    let mut runs = Vec::new();
    while let Some(first) = places.first() {
        let length = |step: u32| {
            let belongs = |(i, place): (u32, &Place)| {
                let on = |end: TransitionId| TransitionId(end.0 + step * i);
                (place.producer, place.consumer) == (on(first.producer), on(first.consumer))
                    && (place.carries, place.interval, place.initial)
                        == (first.carries, first.interval, first.initial)
            };
            (0..).zip(places).take_while(|place| belongs(*place)).count()
        };
        let (still, on) = (length(0), length(1));
        let (run, rest) = places.split_at(still.max(on));
        runs.push((on > still, run));
        places = rest;
    }
    runs
}

#[cfg(test)]
mod tests;
