//! What was sent, until its receiver says what became of it: the sender's side of feedback about a transport
//! (draft-holmer-rmcat-transport-wide-cc-extensions-01).

use outflow_media::Time;

use crate::limits::{LEDGER_KEPT, LEDGER_PACKETS, LEDGER_PACKETS_MAX};

/// Microseconds of a tick of the receiver's reference time (section 3.1 of the draft).
const REFERENCE_TICK_US: i64 = 64_000;

/// What became of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outcome {
    /// Its number.
    pub number: u64,
    /// Its bytes: as it was sent.
    pub bytes: u64,
    /// When it was sent.
    pub sent: Time,
    /// When it arrived, in microseconds of the receiver's clock, which has any offset; none if it is lost.
    pub received_us: Option<i64>,
    /// It was told to be lost before.
    pub was_lost: bool,
}

/// What is known of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// There is none.
    None,
    Flying,
    Lost,
    Arrived,
}

/// Eight bytes of a packet.
#[derive(Debug, Clone, Copy)]
struct Slot {
    /// The lower bits of the microseconds when it was sent: what is asked for is less than an hour old.
    sent_us: u32,
    bytes: u16,
    fate: Fate,
}

/// The newest packets of one receiver. It allocates with the first packet, [`LEDGER_PACKETS`] times eight bytes, and
/// where more are on the way twice that, up to [`LEDGER_PACKETS_MAX`]; nothing else does.
#[derive(Debug, Clone)]
pub struct Ledger {
    /// By the lower bits of their numbers: a power of two, or none.
    slots: Box<[Slot]>,
    next: u64,
    clock: Clock,
}

impl Ledger {
    /// Of a transport whose next packet has this number on the way. What goes on with a transport of another process
    /// goes on with its numbers.
    pub fn new(next: u16) -> Self {
        // So far from nothing that earlier ones have numbers, too.
        Ledger { slots: Box::default(), next: 1 << 32 | u64::from(next), clock: Clock::default() }
    }

    /// The number of the next packet; its lower 16 bits go along with it (section 2 of the draft).
    pub fn next_number(&self) -> u64 {
        self.next
    }

    /// The next packet, of `bytes`, is sent. Answers its number.
    pub fn handle_sent(&mut self, now: Time, bytes: u64) -> u64 {
        self.make_room(now);
        let number = self.next;
        let (sent_us, bytes) = (now.as_micros() as u32, u16::try_from(bytes).unwrap_or(u16::MAX));
        let place = self.place(number);
        self.slots[place] = Slot { sent_us, bytes, fate: Fate::Flying };
        self.next += 1;
        number
    }

    /// The receiver says of packets, by the numbers that went along, when they arrived: in microseconds since its
    /// `reference` time, which has 24 bits and ticks of 64 ms. Answers what is new of those that are still known, in
    /// this order; what is not taken from it is not noted. A packet that arrives after it was lost is told twice.
    pub fn handle_feedback(
        &mut self,
        now: Time,
        reference: u32,
        statuses: impl IntoIterator<Item = (u16, Option<i64>)>,
    ) -> impl Iterator<Item = Outcome> {
        let reference_us = self.clock.handle(reference);
        statuses.into_iter().filter_map(move |(sequence, offset)| {
            let received_us = offset.map(|offset| reference_us.wrapping_add(offset));
            self.settle(now, sequence, received_us)
        })
    }

    fn place(&self, number: u64) -> usize {
        number as usize & (self.slots.len() - 1)
    }

    /// Makes room where the place of the next packet is that of one that is probably still on the way.
    fn make_room(&mut self, now: Time) {
        let count = self.slots.len();
        if count == 0 {
            self.slots = vec![Slot { sent_us: 0, bytes: 0, fate: Fate::None }; LEDGER_PACKETS].into();
            return;
        }
        let oldest = self.slots[self.place(self.next)];
        let is_young = u128::from(age_us(now, oldest.sent_us)) < LEDGER_KEPT.as_micros();
        if count >= LEDGER_PACKETS_MAX || oldest.fate != Fate::Flying || !is_young {
            return;
        }
        // Each goes where one more bit of its number says.
        let mut slots = vec![Slot { sent_us: 0, bytes: 0, fate: Fate::None }; count * 2];
        for number in self.next - count as u64..self.next {
            slots[number as usize & (count * 2 - 1)] = self.slots[self.place(number)];
        }
        self.slots = slots.into();
    }

    /// Notes what became of a packet, if that is new.
    fn settle(&mut self, now: Time, sequence: u16, received_us: Option<i64>) -> Option<Outcome> {
        let behind = (self.next as u16).wrapping_sub(sequence).wrapping_sub(1);
        if usize::from(behind) >= self.slots.len() {
            return None;
        }
        let number = self.next - 1 - u64::from(behind);
        let place = self.place(number);
        let slot = &mut self.slots[place];
        let was_lost = slot.fate == Fate::Lost;
        slot.fate = match (slot.fate, received_us) {
            (Fate::Flying, None) => Fate::Lost,
            (Fate::Flying | Fate::Lost, Some(_)) => Fate::Arrived,
            _ => return None,
        };
        let sent = Time::from_micros(now.as_micros().saturating_sub(age_us(now, slot.sent_us).into()));
        Some(Outcome { number, bytes: slot.bytes.into(), sent, received_us, was_lost })
    }
}

/// Microseconds since then, up to an hour.
fn age_us(now: Time, sent_us: u32) -> u32 {
    (now.as_micros() as u32).wrapping_sub(sent_us)
}

/// The receiver's reference time, counted on where it wraps.
#[derive(Debug, Clone, Default)]
struct Clock {
    ticks: Option<i64>,
}

impl Clock {
    /// Microseconds of a reference time.
    fn handle(&mut self, reference: u32) -> i64 {
        let before = self.ticks.unwrap_or_else(|| i64::from(reference & 0xff_ffff));
        // The shorter way around, of 24 bits.
        let step = (reference.wrapping_sub(before as u32) << 8).cast_signed() >> 8;
        let ticks = before.wrapping_add(step.into());
        self.ticks = Some(ticks);
        ticks.wrapping_mul(REFERENCE_TICK_US)
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use super::*;

    fn at(ms: u64) -> Time {
        Time::from_millis(ms)
    }

    /// One that has sent `count` packets, one a millisecond from the first second on, of 100 bytes and more.
    fn sent(first: u16, count: u64) -> Ledger {
        let mut ledger = Ledger::new(first);
        for n in 0..count {
            assert_eq!(ledger.handle_sent(at(1000 + n), 100 + n) as u16, first.wrapping_add(n as u16));
        }
        ledger
    }

    fn send(ledger: &mut Ledger, now: Time, count: usize) {
        for _ in 0..count {
            ledger.handle_sent(now, 1);
        }
    }

    /// What is new: the lower bits of its number, bytes, when it was sent, when it arrived, whether it was lost.
    fn told(
        ledger: &mut Ledger,
        now: Time,
        reference: u32,
        statuses: &[(u16, Option<i64>)],
    ) -> Vec<(u16, u64, u64, Option<i64>, bool)> {
        let all = ledger.handle_feedback(now, reference, statuses.iter().copied());
        all.map(|o| (o.number as u16, o.bytes, o.sent.as_millis(), o.received_us, o.was_lost)).collect()
    }

    #[test]
    fn each_packet_is_told_once_and_again_if_it_was_lost_and_arrives() {
        let mut ledger = sent(65_534, 4);
        let statuses = [(65_534, Some(500)), (65_535, None), (0, Some(750))];
        let first = [
            (65_534, 100, 1000, Some(128_500), false),
            (65_535, 101, 1001, None, false),
            (0, 102, 1002, Some(128_750), false),
        ];
        assert_eq!(told(&mut ledger, at(1100), 2, &statuses), first);
        assert_eq!(told(&mut ledger, at(1100), 2, &statuses), []);
        let late = [(65_535, Some(-250)), (0, None), (1, Some(0))];
        let second = [(65_535, 101, 1001, Some(191_750), true), (1, 103, 1003, Some(192_000), false)];
        assert_eq!(told(&mut ledger, at(1200), 3, &late), second);
        assert_eq!(told(&mut ledger, at(1200), 3, &late), []);
    }

    #[test]
    fn what_was_never_sent_is_not_told() {
        let mut ledger = sent(5, 3);
        let statuses = [4, 8, 9, 40_000].map(|number| (number, Some(0)));
        assert_eq!(told(&mut ledger, at(1100), 0, &statuses), []);
        assert_eq!(told(&mut Ledger::new(7), at(1100), 0, &[(6, Some(0)), (7, None)]), []);
    }

    #[test]
    fn it_remembers_as_many_as_are_on_the_way_and_no_more_than_its_bound() {
        let count = |ledger: &Ledger| ledger.slots.len();
        assert_eq!((count(&Ledger::new(0)), size_of::<Slot>()), (0, 8));
        assert_eq!(count(&sent(0, LEDGER_PACKETS as u64)), LEDGER_PACKETS);
        // One more is on the way, within a second.
        let mut ledger = sent(0, LEDGER_PACKETS as u64 + 1);
        assert_eq!(count(&ledger), LEDGER_PACKETS * 2);
        let all: Vec<_> = (0..=LEDGER_PACKETS as u16).map(|number| (number, Some(0))).collect();
        let outcomes = told(&mut ledger, at(2000), 0, &all);
        assert_eq!(outcomes.len(), LEDGER_PACKETS + 1);
        assert!(outcomes.iter().all(|(number, bytes, sent, ..)| {
            (*bytes, *sent) == (100 + u64::from(*number), 1000 + u64::from(*number))
        }));
        // What is known to have arrived needs no room, nor does what was sent long ago.
        send(&mut ledger, at(2001), LEDGER_PACKETS * 2);
        assert_eq!(count(&ledger), LEDGER_PACKETS * 2);
        send(&mut ledger, at(2001) + LEDGER_KEPT, 1);
        assert_eq!(count(&ledger), LEDGER_PACKETS * 2);
        send(&mut ledger, at(9000), 100_000);
        assert_eq!(count(&ledger), LEDGER_PACKETS_MAX);
    }

    #[test]
    fn times_are_right_where_clocks_wrap() {
        let late = Time::from_micros((1 << 32) - 500);
        let mut ledger = Ledger::new(0);
        for _ in 0..3 {
            ledger.handle_sent(late, 70_000);
        }
        let now = late + Duration::from_millis(1);
        let of = |ledger: &mut Ledger, reference, number| {
            let outcome = ledger.handle_feedback(now, reference, [(number, Some(0))]).next().expect("new");
            assert_eq!((outcome.sent, outcome.bytes), (late, 65_535));
            outcome.received_us.expect("arrived")
        };
        let before = of(&mut ledger, 0xff_ffff, 0);
        assert_eq!(of(&mut ledger, 1, 1) - before, 128_000);
        assert_eq!(of(&mut ledger, 0xff_fffe, 2) - before, -64_000);
    }
}
