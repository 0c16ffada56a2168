//! The sender's half of a flow is handed over.

use std::collections::VecDeque;

use outflow_petri::net::Engine;
use outflow_petri::service::{Class, Flow};

use super::super::contents::Piece;
use super::super::spanset::SpanSet;
use super::again::Again;
use super::shed::Shedder;
use super::unit::{Fate, Unit};
use super::{Outgoing, OutgoingCounts};
use crate::limits::UNITS_OUTSTANDING_MAX;
use crate::recovery::{RepairSettings, Repairs};
use crate::save::{NUMBER_MOST, SavedBytes, SavedOutgoing, SavedSpan, SavedUnit, Unfit, check, nanos, time};

const WHAT: &str = "units to be sent";

/// Units that the peer may be ahead or behind by, beyond those that are kept: more is no state that there is.
const APART_MAX: u64 = 1 << 20;

/// As they are numbered.
pub(super) const CLASSES: [Class; 3] = [Class::Reliable, Class::Partial, Class::Unreliable];

pub(super) fn number_of(class: Class) -> u8 {
    CLASSES.iter().position(|other| *other == class).unwrap_or_default() as u8
}

pub(super) fn class_of(number: u8) -> Result<Class, Unfit> {
    CLASSES.get(usize::from(number)).copied().ok_or(Unfit { what: WHAT, why: "a class that is not known" })
}

impl Outgoing {
    /// What another one needs to go on.
    pub(in crate::connection) fn save(&self) -> SavedOutgoing {
        let (groups, newest, orphans) = self.shedder.save();
        let (again, copies) = self.again.save();
        SavedOutgoing {
            engine: self.engine.save(),
            base: self.base,
            next: self.next,
            told: self.told,
            window_end: self.window_end,
            units: self.units.iter().map(Unit::save).collect(),
            again,
            copies,
            news: SavedSpan::all(self.news.spans()),
            groups,
            newest,
            orphans,
            budget: self.repairs.budget(),
            counts: self.counts.into(),
            repairs: self.repairs.counts().into(),
        }
    }

    /// One that goes on with this flow.
    pub(in crate::connection) fn restore(
        flow: Flow,
        repairs: RepairSettings,
        saved: &SavedOutgoing,
    ) -> Result<Self, Unfit> {
        let mut engine = Engine::restore(flow.net.clone(), flow.rounds as usize, &saved.engine)?;
        while engine.poll().is_some() {}
        check_numbers(saved)?;
        let mut news = SpanSet::default();
        for span in &saved.news {
            let span = span.checked(WHAT)?;
            check(span.last < saved.next, WHAT, "what was not given was given up")?;
            news.insert(span);
        }
        let units = saved.units.iter().map(|unit| Unit::restore(unit, flow.buffer_bytes));
        let units: VecDeque<Unit> = units.collect::<Result<_, _>>()?;
        let mut outgoing = Outgoing {
            engine,
            queued_bytes: units.iter().map(|unit| u64::from(unit.queued())).sum(),
            outstanding: units.iter().filter(|unit| unit.is_begun).map(|unit| u64::from(unit.bytes)).sum(),
            units,
            base: saved.base,
            next: saved.next,
            cursor: saved.base,
            told: saved.told,
            window_end: saved.window_end,
            repairs: Repairs::new(repairs).go_on(saved.budget, saved.repairs.into()),
            again: Again::default(),
            shedder: Shedder::restore(&flow, saved)?,
            news,
            spans: Vec::new(),
            counts: OutgoingCounts::from(saved.counts),
            flow,
        };
        let most = u64::from(outgoing.flow.buffer_bytes);
        check(outgoing.queued_bytes <= most && outgoing.outstanding <= most, WHAT, "more than is kept")?;
        outgoing.again = Again::restore(saved, |piece| outgoing.knows(piece))?;
        outgoing.pass_closed();
        Ok(outgoing)
    }

    /// Whether a piece is of a unit that was given.
    pub(in crate::connection) fn knows(&self, piece: &Piece) -> bool {
        let bytes = self.unit(piece.unit).map_or(u32::MAX, |unit| unit.bytes);
        let is_within = piece.offset.checked_add(piece.bytes).is_some_and(|end| end <= bytes);
        is_within && piece.unit < self.next && piece.attempts < u32::MAX / 2
    }
}

fn check_numbers(saved: &SavedOutgoing) -> Result<(), Unfit> {
    let SavedOutgoing { base, next, told, .. } = *saved;
    let count = saved.units.len() as u64;
    check(count <= UNITS_OUTSTANDING_MAX as u64, WHAT, "too many")?;
    check(base < NUMBER_MOST && next < NUMBER_MOST && told <= next, WHAT, "too high a number")?;
    let is_right = base + count == next || (base > next && count == 0);
    check(is_right, WHAT, "more or fewer than there are numbers")?;
    let is_near = base.saturating_sub(next) <= APART_MAX && base.saturating_sub(told) <= APART_MAX;
    check(is_near, WHAT, "a peer that is too far ahead")
}

impl Unit {
    fn save(&self) -> SavedUnit {
        SavedUnit {
            bytes: self.bytes,
            data: self.is_open().then(|| SavedBytes(self.data.clone())),
            sent: self.sent,
            is_begun: self.is_begun,
            acked: self.acked.all(),
            until: nanos(self.until),
            class: number_of(self.class),
            is_given_up: self.fate == Fate::GivenUp,
        }
    }

    fn restore(saved: &SavedUnit, most: u32) -> Result<Self, Unfit> {
        check(saved.bytes <= most, WHAT, "one that is longer than what is kept")?;
        check(
            saved.sent <= saved.bytes && (saved.is_begun || saved.sent == 0),
            WHAT,
            "more sent than there is",
        )?;
        let fate = match (&saved.data, saved.is_given_up) {
            (Some(_), false) => Fate::Open,
            (None, false) => Fate::Acked,
            (None, true) => Fate::GivenUp,
            (Some(_), true) => return Err(Unfit { what: WHAT, why: "data of one that is not sent" }),
        };
        let data = saved.data.as_ref().map(|data| data.0.clone()).unwrap_or_default();
        check(fate != Fate::Open || data.len() == saved.bytes as usize, WHAT, "another length than it has")?;
        let mut unit = Unit::new(data, time(saved.until), class_of(saved.class)?);
        for (from, to) in &saved.acked {
            check(from <= to && *to <= saved.bytes, WHAT, "more acknowledged than there is")?;
            unit.acked.insert(*from, *to);
        }
        Ok(Unit { bytes: saved.bytes, sent: saved.sent, is_begun: saved.is_begun, fate, ..unit })
    }
}
