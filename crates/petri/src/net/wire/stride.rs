//! Nets whose places lead on step by step, as bytes: chains of a thousand units, say.
//!
//! In the form of [`emit`](super::emit) places are alike if they lead from and to the same
//! transitions; of a chain each would stand there by itself. Here a run may also go on to the next transition
//! at both ends with each place, and masters are numbered one after the other.
//!
//! | part | content |
//! |---|---|
//! | transitions | how many runs; each: how many alike × 16 + the rule's number; the number of the first one's master place, if the rule needs one: those of the next are the next places |
//! | places | how many runs; each: tokens × 4 + 2 if it only orders + 1 if both ends go on; earliest, nominal − earliest, and 0 for no end or 1 + latest − nominal, in µs; number of the first producer, of the first consumer; how many |

use outflow_media::Malformed;

use super::super::{Builder, Carries, Name, Net, Place, PlaceId, Rule, Transition, TransitionId};
use super::{interval, put_interval};
use crate::leb128::{Reader, put};
use crate::limits::{PLACES_MAX, TRANSITIONS_MAX};

/// Reads a net, which gets names by position. At most [`PLACES_MAX`] places are made.
pub(crate) fn parse(bytes: &[u8]) -> Result<Net, Malformed> {
    let mut reader = Reader::new("TSPN in steps", bytes);
    let mut builder = Builder::new();
    let (transitions, masters) = transitions(&mut reader, &mut builder)?;
    let places = places(&mut reader, &mut builder, transitions)?;
    if !reader.is_at_end() {
        return Err(reader.error("bytes behind the end"));
    }
    let foreign = |_| reader.error("a master of another transition");
    if let Some((_, master)) = masters.iter().find(|(_, master)| master.0 >= places) {
        return Err(foreign(master));
    }
    masters.iter().for_each(|(_, master)| builder.master(*master));
    let net = builder.build().map_err(|error| reader.error(error.reason()))?;
    match masters.iter().find(|(transition, master)| net.transition(*transition).master != Some(*master)) {
        Some((_, master)) => Err(foreign(master)),
        None => Ok(net),
    }
}

/// How many there are, and which have which master.
type Transitions = (u32, Vec<(TransitionId, PlaceId)>);

fn transitions(reader: &mut Reader<'_>, builder: &mut Builder) -> Result<Transitions, Malformed> {
    let (name, mut number, mut masters) = (Name::new("t"), 0_u32, Vec::new());
    for _ in 0..reader.number()? {
        let head = reader.number()?;
        let Some(rule) = Rule::ALL.get((head % 16) as usize).copied() else {
            return Err(reader.error("a rule that is not known"));
        };
        let count = head / 16;
        if count == 0 {
            return Err(reader.error("a run of no transitions"));
        }
        if count > TRANSITIONS_MAX as u64 - u64::from(number) {
            return Err(reader.error("too many transitions"));
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
    Ok((number, masters))
}

/// Answers how many there are.
fn places(reader: &mut Reader<'_>, builder: &mut Builder, transitions: u32) -> Result<u32, Malformed> {
    let (name, mut number) = (Name::new("p"), 0_u32);
    for _ in 0..reader.number()? {
        let head = reader.number()?;
        let Ok(initial) = u32::try_from(head / 4) else {
            return Err(reader.error("too many tokens in a place"));
        };
        let carries = if head & 2 == 0 { Carries::Object } else { Carries::Order };
        let interval = interval(reader)?;
        let mut transition = || reader.below(transitions as usize, "no transition of this number");
        let (producer, consumer) = (transition()?, transition()?);
        let count = reader.number()?;
        if count == 0 || count > PLACES_MAX as u64 - u64::from(number) {
            return Err(reader.error("no places in a run, or too many"));
        }
        let goes_on = head & 1 == 1;
        if goes_on && count > u64::from(transitions - producer.max(consumer)) {
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
    Ok(number)
}

/// Writes a net behind what is in `out`.
pub(crate) fn emit(net: &Net, out: &mut Vec<u8>) {
    let goes_on = |a: &Transition, b: &Transition| {
        a.rule == b.rule && a.master.map(|master| master.0 + 1) == b.master.map(|master| master.0)
    };
    put(out, net.transitions().chunk_by(goes_on).count() as u64);
    for run in net.transitions().chunk_by(goes_on) {
        let rule = Rule::ALL.iter().position(|rule| *rule == run[0].rule).unwrap_or_default();
        put(out, (run.len() * 16 + rule) as u64);
        if let Some(master) = run[0].master {
            put(out, u64::from(master.0));
        }
    }
    let runs = runs(net.places());
    put(out, runs.len() as u64);
    for (goes_on, run) in runs {
        let place = &run[0];
        let is_order = u64::from(place.carries == Carries::Order);
        put(out, u64::from(place.initial) * 4 + is_order * 2 + u64::from(goes_on));
        put_interval(&place.interval, out);
        put(out, u64::from(place.producer.0));
        put(out, u64::from(place.consumer.0));
        put(out, run.len() as u64);
    }
}

/// Places in runs, and whether their ends go on: at each place whichever run is longer.
fn runs(mut places: &[Place]) -> Vec<(bool, &[Place])> {
    let mut runs = Vec::new();
    while let Some(first) = places.first() {
        let length = |step: u32| {
            let belongs = |(i, place): (u32, &Place)| {
                let on = |end: TransitionId| TransitionId(end.0 + step * i);
                let (producer, consumer) = (on(first.producer), on(first.consumer));
                place.producer == producer
                    && place.consumer == consumer
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
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_is_told() {
        let reason = |bytes: &[u8]| parse(bytes).map_err(|error| error.reason);
        // One transition by `and`, one place with a token from it to it.
        assert!(reason(&[1, 19, 1, 4, 0, 0, 0, 0, 0, 1]).is_ok());
        for (bytes, expected) in [
            (&[1, 25][..], "a rule that is not known"),
            (&[1, 3], "a run of no transitions"),
            (&[1, 0xf3, 0xff, 0xff, 0x7f], "too many transitions"),
            (&[1, 24, 0x80, 0x80, 1], "no place of this number"),
            (&[1, 24, 1, 1, 4, 0, 0, 0, 0, 0, 1], "a master of another transition"),
            (&[1, 40, 0, 1, 4, 0, 0, 0, 0, 0, 2], "a rule needs a master"),
            (&[1, 19, 1, 4, 0, 0, 0, 1], "no transition of this number"),
            (&[1, 19, 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f], "too many tokens in a place"),
            (&[1, 19, 1, 4, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 0, 0], "an interval too long"),
            (&[1, 19, 1, 4, 0, 0, 0, 0, 0, 0], "no places in a run, or too many"),
            (&[1, 19, 1, 4, 0, 0, 0, 0, 0, 0xff, 0xff, 0x7f], "no places in a run, or too many"),
            (&[1, 19, 1, 5, 0, 0, 0, 0, 0, 2], "a run beyond the last transition"),
            (&[1, 19, 1, 0, 0, 0, 0, 0, 0, 1], "a circuit without a token"),
            (&[1, 19, 1, 4, 0, 0, 0, 0, 0, 1, 0], "bytes behind the end"),
        ] {
            assert_eq!(reason(bytes).map(|_| ()), Err(expected), "{bytes:?}");
        }
    }
}
