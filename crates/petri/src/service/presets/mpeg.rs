//! Groups of pictures.

use core::time::Duration;
use std::sync::Arc;

use outflow_media::{Kind, Needs};

use super::{BUFFER_BYTES, US, whole};
use crate::limits::{INTERVAL_MAX, PLACES_MAX};
use crate::net::{
    Builder, Carries, Frame, Interval, Name, Net, NetError, Place, Rule, Shape, TransitionId, mpeg_gop,
    of_gop,
};
use crate::service::{Class, Flow, ServiceClass};

/// Rounds that the receiver keeps: the net lets a group begin before the end of the last but one.
const ROUNDS: u32 = 4;

/// A service for pictures that need each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mpeg {
    /// The pictures of a group, in the order in which they are sent.
    pub frames: Vec<Frame>,
    /// Units of a picture, without its header; at least one.
    pub slices: u32,
    /// Whether a unit of headers stands in front of the slices of each picture: those of the sequence, the
    /// group and the picture.
    pub has_headers: bool,
    /// How long a picture lasts.
    pub frame: Duration,
    /// How reliable pictures are that no other needs.
    pub bidirectional: Class,
}

impl Default for Mpeg {
    /// The paper's: M = 4, N = 12, 15 slices, 25 pictures a second, B pictures sent once.
    fn default() -> Self {
        Mpeg {
            frames: mpeg_gop(),
            slices: 15,
            has_headers: false,
            frame: Duration::from_millis(40),
            bidirectional: Class::Unreliable,
        }
    }
}

/// A group of `pictures`, of which the first is an I picture and each `distance`th from there a P picture, with
/// B pictures between that are shown before and sent after it; in the order in which they are sent. The group
/// is open, as [`mpeg_gop`] is. Pictures beyond the last whole distance are left out.
pub fn gop(pictures: u32, distance: u32) -> Vec<Frame> {
    let distance = distance.max(1);
    let mut frames = Vec::new();
    for anchor in 0..(pictures / distance).max(1) {
        let (kind, needs) = match anchor {
            0 => (Kind::Intra, Needs::NOTHING),
            _ => (Kind::Predicted, Needs::back(distance)),
        };
        frames.push(Frame { kind, needs });
        let between = |i| Needs::back(i).and(Needs::back(i + distance));
        frames.extend((1..distance).map(|i| Frame { kind: Kind::Bidirectional, needs: between(i) }));
    }
    frames
}

/// The service of the paper (see [`mpeg_gop`]) for any group: slices of a picture in any order, behind the
/// pictures that theirs needs, and behind its header, if there are headers. I pictures are waited for up to
/// 8 pictures, P up to 4, B up to 2; where that adds up to more than the source takes for a group, all of it
/// is shortened in proportion, so that a receiver that gets nothing again still keeps up.
///
/// Headers and I pictures are reliable, since all of the group needs them; P pictures, which the rest of it
/// needs, partially; what it costs to repeat a B picture is better spent on others. Headers are sent again for
/// two groups, I pictures for one, P for half of one: a receiver whose net is behind may still wait for them.
/// These classes are the paper's; they agree with [`Importance`](outflow_media::Importance).
pub fn mpeg(service: &Mpeg) -> Result<Flow, NetError> {
    let frames = &service.frames;
    let count = u32::try_from(frames.len()).unwrap_or(u32::MAX).max(1);
    let frame = whole(service.frame.min(INTERVAL_MAX / count / 2)).max(US);
    let period = frame * count;
    let objects = frames.len().saturating_mul(service.slices as usize);
    if objects > PLACES_MAX {
        return Err(NetError::TooMany { what: "places", count: objects, max: PLACES_MAX });
    }
    let shape = Shape { objects_per_frame: service.slices, rule: Rule::WeakAnd, validity: in_frames };
    let base = if service.has_headers {
        behind_headers(frames, &of_gop(frames, &Shape { objects_per_frame: 1, ..shape })?, service.slices)?
    } else {
        of_gop(frames, &shape)?
    };
    let waits = base.slowest_round().unwrap_or_default().max(US);
    // What `in_frames` counts in milliseconds are frames.
    let available = period.as_micros().min(waits.as_micros() * frame.as_micros() / 1000);
    let scaled = |time: Duration| {
        let us = time.as_micros() * available / waits.as_micros();
        Duration::from_micros(us.try_into().unwrap_or(u64::MAX))
    };
    let net = with_intervals(&base, |interval| {
        let latest = interval.latest.map(scaled);
        Interval { earliest: Duration::ZERO, nominal: latest.unwrap_or(frame).min(frame), latest }
    })?;
    let validity = [period * 2, period, period.max(frame * 8) / 2, frame * 4].map(|time| Some(whole(time)));
    let repair = [Class::Reliable, Class::Reliable, Class::Partial, service.bidirectional];
    let classes = repair.into_iter().zip(validity);
    let classes: Vec<_> = classes.map(|(repair, validity)| ServiceClass { repair, validity }).collect();
    let classes_of = |frame: &Frame| {
        let class = match frame.kind {
            Kind::Intra | Kind::Header => 1,
            Kind::Predicted => 2,
            _ => 3,
        };
        let slices = core::iter::repeat_n(class, service.slices.max(1) as usize);
        service.has_headers.then_some(0).into_iter().chain(slices)
    };
    let (classes, class_of) = used(&classes, frames.iter().flat_map(classes_of).collect());
    let (net, buffer_bytes) = (Arc::new(net), BUFFER_BYTES);
    Ok(Flow {
        net,
        classes,
        class_of,
        rounds: ROUNDS,
        buffer_bytes,
        period: Some(period),
        is_dependent: true,
    })
}

/// Without the classes that nothing is of.
fn used(classes: &[ServiceClass], mut class_of: Vec<u8>) -> (Vec<ServiceClass>, Vec<u8>) {
    let numbers: Vec<_> = (0_u8..).take(classes.len()).filter(|number| class_of.contains(number)).collect();
    for class in &mut class_of {
        *class = numbers.partition_point(|number| number < class) as u8;
    }
    (numbers.iter().map(|number| classes[usize::from(*number)]).collect(), class_of)
}

/// How long pictures are waited for, a millisecond for a frame.
fn in_frames(kind: Kind) -> Interval {
    match kind {
        Kind::Bidirectional => Interval::until_ms(1, 2),
        Kind::Predicted => Interval::until_ms(1, 4),
        _ => Interval::until_ms(1, 8),
    }
}

/// The net in which what was a picture is its header, and the slices of the picture come behind it: in front of
/// headers are the pictures that are needed.
fn behind_headers(frames: &[Frame], net: &Net, slices: u32) -> Result<Net, NetError> {
    let mut builder = Builder::new();
    let named = |transition: &crate::net::Transition, end| Name::new(&format!("{}{end}", transition.name));
    let both: Vec<_> = net
        .transitions()
        .iter()
        .map(|transition| {
            let header = builder.transition(named(transition, "-header"), transition.rule);
            (header, builder.transition(transition.name.clone(), transition.rule))
        })
        .collect();
    for place in net.places() {
        let picture = place.consumer.index();
        let (header, slice) = both[picture];
        let is_header = place.carries == Carries::Object;
        let end = if is_header { "-header" } else { "-order" };
        let mut name = named(&net.transitions()[picture], end);
        if let Some(number) = place.name.number().filter(|_| !is_header) {
            name = name.numbered(number);
        }
        let (producer, consumer) = (both[place.producer.index()].1, header);
        builder.place(Place { name, producer, consumer, ..place.clone() });
        if is_header {
            put_slices(&mut builder, frames[picture].kind, place, (header, slice), slices);
        }
    }
    builder.build()
}

fn put_slices(
    builder: &mut Builder,
    kind: Kind,
    header: &Place,
    (from, to): (TransitionId, TransitionId),
    slices: u32,
) {
    let word = Name::new(header.name.word());
    for number in 0..slices.max(1) {
        builder.place(Place {
            name: word.numbered(number),
            carries: Carries::Object,
            producer: from,
            consumer: to,
            interval: in_frames(kind),
            initial: 0,
        });
    }
}

/// The same with other intervals.
fn with_intervals(net: &Net, change: impl Fn(Interval) -> Interval) -> Result<Net, NetError> {
    let mut builder = Builder::new();
    for transition in net.transitions() {
        builder.transition(transition.name.clone(), transition.rule);
    }
    for place in net.places() {
        builder.place(Place { interval: change(place.interval), ..place.clone() });
    }
    builder.build()
}

#[cfg(test)]
mod tests;
