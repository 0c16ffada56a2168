//! Datagrams of any kind, in order as far as is wanted.

use core::time::Duration;

use super::draft::{Draft, ROUNDS};
use super::{BUFFER_BYTES, uniform, whole};
use crate::net::{Name, Net, NetError, TransitionId};
use crate::service::{Class, Flow, ServiceClass};

/// Units of a period, and rounds: 32,768 units are in the window, 150 ms of 2 Gbit/s, whatever the shape.
const IN_ORDER: (u32, u32) = (1024, ROUNDS);

/// The same where units overtake others: never one 4096 before, because that is the same transition.
const SWAPPING: (u32, u32) = (4096, 8);

/// The same where they are few.
const FEW: (u32, u32) = (64, 8);

/// In which order units are delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// As they were sent.
    Total,
    /// No unit before one that was sent more than this many earlier; at most 4095, a wish for more is lowered
    /// to that. 0 is the same as [`Order::Total`].
    Partial(u32),
    /// As they come, but none before one that was sent 4096 earlier or a multiple of that: a place delivers
    /// its objects one after the other.
    None,
}

/// Units one after the other. `latency` after a later unit came, at most, a missing one is gone without;
/// without a latency it is waited for, until it comes or the sender gives it up.
///
/// The net is a chain: each unit is an object of a transition of its own, which is over after the one before;
/// a unit may be delivered after the transition of the unit that it must not come before. Waits do not add up:
/// however many are lost in a row, none holds up the others for longer than `latency`. Without an order,
/// units know nothing of each other.
pub fn datagrams(order: Order, latency: Option<Duration>, repair: Class) -> Result<Flow, NetError> {
    let latency = latency.map(whole);
    let (swap, (units, rounds)) = match order {
        Order::Total | Order::Partial(0) => (Some(0), IN_ORDER),
        Order::Partial(most) => (Some(most.min(SWAPPING.0 - 1)), SWAPPING),
        Order::None => (None, SWAPPING),
    };
    let net = chain((units, rounds), swap, latency, Duration::ZERO)?;
    Ok(uniform(net, ServiceClass { repair, validity: latency }, rounds, BUFFER_BYTES))
}

/// Units that are few, reports say, as they come, but none before one that was sent 64 earlier or a multiple of that.
/// A receiver keeps 512 of them; the net costs an end a sixtieth of what that of [`datagrams`] does.
pub fn few(latency: Option<Duration>, repair: Class) -> Result<Flow, NetError> {
    let latency = latency.map(whole);
    let (net, rounds) = (chain(FEW, None, latency, Duration::ZERO)?, FEW.1);
    Ok(uniform(net, ServiceClass { repair, validity: latency }, rounds, BUFFER_BYTES))
}

/// A period of `units` units, for `rounds` rounds: none before one that was sent more than `swap` earlier.
pub(super) fn chain(
    (units, rounds): (u32, u32),
    swap: Option<u32>,
    wait: Option<Duration>,
    nominal: Duration,
) -> Result<Net, NetError> {
    let mut draft = Draft::new(nominal, rounds);
    let (unit, order) = (Name::new("unit"), Name::new("order"));
    let ids: Vec<_> = (0..units).map(|i| draft.transition(unit.numbered(i), wait)).collect();
    // The unit `back` units before, at most a period.
    let before = |i: u32, back: u32| -> (TransitionId, u32) {
        let periods = u32::from(back > i);
        (ids[(i + periods * units - back) as usize], periods)
    };
    for (i, id) in (0..).zip(&ids) {
        let (from, tokens) = before(i, swap.map_or(units, |swap| swap + 1));
        draft.object(unit.numbered(i), from, *id, tokens);
    }
    // If units may swap, what is over is still over one after the other: else a unit would wait for the one
    // so far before it alone, and not for those before that.
    for (i, id) in (0..).zip(&ids).filter(|_| swap.is_some_and(|swap| swap > 0)) {
        let (from, tokens) = before(i, 1);
        draft.order(order.numbered(i), from, *id, tokens);
    }
    draft.build()
}

#[cfg(test)]
mod tests;
