//! Sequence numbers of a viewer's own.

use outflow_rtp::sequence_distance;

/// Numbers begin between these, so that a packet that comes before the first one has a number, too, and so that those of
/// both ends come round at the same time (RFC 3550, section 5.1; RFC 3711, section 3.3.1).
const FIRST: core::ops::Range<u32> = 256..1 << 15;

/// Maps the numbers of a stream's packets to those of a viewer. What is missing in between stays missing. No number is
/// given twice: what is sealed with it would be betrayed (RFC 7714, section 8.2).
#[derive(Debug)]
pub(super) struct Numbers {
    first: u32,
    /// The number of the newest packet of the stream, and its own here, counted on beyond 16 bits.
    newest: Option<(u16, u32)>,
    /// Which numbers up to the newest have been given: that is the lowest bit.
    given: u64,
}

impl Numbers {
    /// It begins where `random` says.
    pub(super) fn new(random: u32) -> Self {
        Numbers { first: FIRST.start + random % (FIRST.end - FIRST.start), newest: None, given: 0 }
    }

    /// As it is, for another process: the first number, the newest of the stream with its own, and which were given.
    pub(super) fn save(&self) -> (u32, Option<(u16, u32)>, u64) {
        (self.first, self.newest, self.given)
    }

    /// It goes on there.
    pub(super) fn resume((first, newest, given): (u32, Option<(u16, u32)>, u64)) -> Self {
        Numbers { first, newest, given }
    }

    /// The number of a packet; none of one that is too old, or has been there.
    pub(super) fn of(&mut self, sequence: u16) -> Option<u32> {
        let Some((newest, own)) = self.newest else { return self.go_on(sequence, self.first, 64) };
        let step = i32::from(sequence_distance(newest, sequence));
        let number = own.checked_add_signed(step)?;
        if step > 0 {
            return self.go_on(sequence, number, step.unsigned_abs());
        }
        let bit = 1_u64.checked_shl(step.unsigned_abs()).filter(|bit| self.given & bit == 0)?;
        self.given |= bit;
        Some(number)
    }

    /// Whether this is the newest packet of the stream that has a number.
    pub(super) fn is_newest(&self, sequence: u16) -> bool {
        self.newest.is_some_and(|(newest, _)| newest == sequence)
    }

    /// One more number for the newest packet, which goes as two: those behind it are higher by one from then on. None of
    /// another packet.
    pub(super) fn another(&mut self, sequence: u16) -> Option<u32> {
        let (newest, own) = self.newest?;
        if newest == sequence { self.go_on(sequence, own.checked_add(1)?, 1) } else { None }
    }

    /// A packet gets no number: those behind it are lower by one from then on. One that is late leaves its number free.
    pub(super) fn leave_out(&mut self, sequence: u16) {
        let Some((newest, own)) = self.newest else { return };
        let step = sequence_distance(newest, sequence);
        if let (1.., Some(number)) = (step, own.checked_add_signed(i32::from(step) - 1)) {
            // What is missing before it stays missing.
            self.given = self.given.checked_shl(u32::from(step.unsigned_abs()) - 1).unwrap_or(0);
            self.newest = Some((sequence, number));
        }
    }

    fn go_on(&mut self, sequence: u16, number: u32, step: u32) -> Option<u32> {
        self.newest = Some((sequence, number));
        self.given = self.given.checked_shl(step).unwrap_or(0) | 1;
        Some(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_run_on_and_keep_what_is_missing() {
        let mut numbers = Numbers::new(44);
        assert_eq!(
            [65_530, 65_531, 65_533, 65_532, 2, 65_529].map(|at| numbers.of(at)),
            [Some(300), Some(301), Some(303), Some(302), Some(308), Some(299),]
        );
        assert_eq!(Numbers::new(u32::MAX).of(7).map(|first| FIRST.contains(&first)), Some(true));
    }

    #[test]
    fn no_number_is_given_twice() {
        let mut numbers = Numbers::new(0);
        let given = [10, 11, 11, 13].map(|at| numbers.of(at));
        assert_eq!(given, [Some(256), Some(257), None, Some(259)]);
        assert_eq!((numbers.another(13), numbers.another(12)), (Some(260), None));
        assert_eq!(numbers.of(12), None, "its number has gone to the second half of the next");
        assert_eq!([14, 13, 11, 9].map(|at| numbers.of(at)), [Some(261), None, Some(258), None]);
        assert_eq!((numbers.of(200), numbers.of(136), numbers.of(137)), (Some(447), None, Some(384)));
    }

    #[test]
    fn what_is_left_out_has_none() {
        let mut numbers = Numbers::new(0);
        assert_eq!(numbers.of(10), Some(256));
        [11, 12].into_iter().for_each(|at| numbers.leave_out(at));
        assert_eq!(numbers.of(13), Some(257));
        // One is missing before what is left out.
        numbers.leave_out(15);
        assert_eq!([16, 16].map(|at| numbers.of(at)), [Some(259), None]);
        numbers.leave_out(9);
        assert_eq!(numbers.of(17), Some(260));
        let mut numbers = Numbers::new(0);
        numbers.leave_out(5);
        assert_eq!(numbers.of(6), Some(256), "it begins with the first that goes");
    }

    #[test]
    fn they_count_on_when_they_come_round() {
        let mut numbers = Numbers::new(0);
        let last = (0..200_000_u32).map(|at| numbers.of(at as u16)).last().flatten();
        assert_eq!(last, Some(256 + 199_999));
    }
}
