//! What was received is handed over.

use core::time::Duration;

use outflow_media::Time;

use super::{Received, Settings};
use crate::limits::{ARRIVALS_MAX, RECEIVED_SPANS_MAX};
use crate::packet::Arrival;
use crate::save::{NUMBER_MOST, SavedArrival, SavedReceived, SavedSpan, Unfit, check, nanos, time};

const WHAT: &str = "list of received packets";

impl Received {
    /// What another one needs to go on.
    pub(crate) fn save(&self) -> SavedReceived {
        let arrival = |arrival: &Arrival| SavedArrival { number: arrival.number, ticks: arrival.ticks };
        SavedReceived {
            start: self.start.as_nanos(),
            spans: SavedSpan::all(&self.spans),
            floor: self.floor,
            told_below: self.told_below,
            largest_at: self.largest_at.as_nanos(),
            arrivals: self.arrivals.iter().map(arrival).collect(),
            is_told: self.is_told,
            marks: self.ecn.into(),
            waiting: self.waiting,
            due: nanos(self.due),
            behind_oldest: self.behind_oldest,
            behind_newest: self.behind_newest,
            delay: self.delay.as_nanos() as u64,
            duplicates: self.duplicates,
        }
    }

    /// One that goes on.
    pub(crate) fn restore(settings: Settings, saved: &SavedReceived) -> Result<Self, Unfit> {
        check(saved.spans.len() <= RECEIVED_SPANS_MAX, WHAT, "too many ranges")?;
        check(saved.arrivals.len() <= ARRIVALS_MAX, WHAT, "too many times of arrival")?;
        let mut received = Received::new(settings, Time::from_nanos(saved.start));
        for span in &saved.spans {
            let span = span.checked(WHAT)?;
            let is_apart = received.spans.last().is_none_or(|before| before.last + 1 < span.first);
            check(is_apart, WHAT, "ranges in another order")?;
            received.spans.push(span);
        }
        let first = received.spans.first().map_or(NUMBER_MOST, |span| span.first);
        check(saved.floor <= first, WHAT, "packets that are too old to be known")?;
        let is_known = |arrival: &SavedArrival| arrival.number < NUMBER_MOST && arrival.ticks < NUMBER_MOST;
        let is_sorted = saved.arrivals.is_sorted_by_key(|arrival| arrival.ticks);
        check(is_sorted && saved.arrivals.iter().all(is_known), WHAT, "times of arrival that cannot be")?;
        let arrival = |saved: &SavedArrival| Arrival { number: saved.number, ticks: saved.ticks };
        received.arrivals.extend(saved.arrivals.iter().map(arrival));
        let behind = |count: Option<u64>| count.map(|count| count.min(NUMBER_MOST));
        let most = settings.ack_delay_max;
        Ok(Received {
            delay: Duration::from_nanos(saved.delay).min(most),
            floor: saved.floor,
            told_below: saved.told_below,
            largest_at: Time::from_nanos(saved.largest_at),
            is_told: saved.is_told,
            ecn: saved.marks.into(),
            waiting: saved.waiting.min(settings.packets),
            due: time(saved.due),
            behind_oldest: behind(saved.behind_oldest),
            behind_newest: behind(saved.behind_newest),
            duplicates: saved.duplicates.min(NUMBER_MOST),
            ..received
        })
    }
}
