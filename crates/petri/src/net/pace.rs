//! How fast a net runs if nothing is received.

use core::time::Duration;

use super::{Net, Upper};

impl Net {
    /// The longest that a round takes on average if nothing is received, however much is lost: what is
    /// waited for adds up along circuits. `None` if something is waited for without end. A receiver keeps up
    /// with a live source if this is not longer than the period; else it falls behind as long as there are
    /// losses, until its window ends. The time that this takes may grow with the square of the net: it is
    /// meant for authors of nets.
    pub fn slowest_round(&self) -> Option<Duration> {
        slowest_round(self)
    }
}

/// The most time a token of a circuit, of all circuits (Lawler's search by halves, 1976): with `guess` taken
/// off for each token, some circuit takes time as long as the guess is too low. Rounded up to microseconds.
fn slowest_round(net: &Net) -> Option<Duration> {
    let waits: Option<Vec<_>> = (0..net.places.len()).map(|place| waits_us(net, place)).collect();
    let waits = waits?;
    let (mut low, mut high) = (0, waits.iter().sum::<i64>());
    while low < high {
        let guess = (low + high) / 2;
        if is_exceeded(net, &waits, guess) { low = guess + 1 } else { high = guess }
    }
    Some(Duration::from_micros(low.unsigned_abs()))
}

/// How long, at most, after a token was put in a place its consumer fires, if all others are there: by a
/// strong rule as soon as the first place runs out, by a master's only for the master.
fn waits_us(net: &Net, place: usize) -> Option<i64> {
    let consumer = net.places[place].consumer;
    let latest = |place: usize| net.places[place].interval.latest.map(|latest| latest.as_micros() as i64);
    let transition = net.transition(consumer);
    match transition.rule.upper() {
        Upper::Weak => latest(place),
        Upper::Strong => net.inputs(consumer).filter_map(|place| latest(place.index())).min(),
        Upper::Master if transition.master.is_some_and(|master| master.index() == place) => latest(place),
        Upper::Master => Some(0),
    }
}

/// Whether some circuit takes more than `guess` for each of its tokens (Bellman, 1958; Ford, 1956): then
/// times go on growing after as many passes as there are transitions.
fn is_exceeded(net: &Net, waits: &[i64], guess: i64) -> bool {
    let mut times = vec![0_i64; net.transitions.len()];
    for _ in 0..=net.transitions.len() {
        let mut has_grown = false;
        for (place, wait) in net.places.iter().zip(waits) {
            let time = times[place.producer.index()] + wait - guess * i64::from(place.initial);
            let latest = &mut times[place.consumer.index()];
            has_grown |= time > *latest;
            *latest = time.max(*latest);
        }
        if !has_grown {
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::{Rule, Shape, mpeg_gop, mpeg_shape, of_gop, samples};

    fn slowest_ms(net: &Net) -> Option<u128> {
        net.slowest_round().map(|round| round.as_millis())
    }

    #[test]
    fn the_papers_service_keeps_up_with_its_source() {
        assert_eq!(slowest_ms(&samples::mpeg()), Some((320 + 160 + 160 + 80) / 2));
        let shape = Shape { validity: |_| crate::net::Interval::until_ms(40, 250), ..mpeg_shape() };
        let net = of_gop(&mpeg_gop(), &shape).expect("a net");
        assert_eq!(slowest_ms(&net), Some(500), "slower than its 480 ms");
    }

    #[test]
    fn rules_say_which_of_two_places_holds_up_a_round() {
        let slowest = |rule, a, b| slowest_ms(&samples::pair(rule, (0, a), (0, b)));
        assert_eq!(slowest(Rule::WeakAnd, 30, 50), Some(50));
        assert_eq!(slowest(Rule::And, 30, 50), Some(30));
        assert_eq!(slowest(Rule::And, 0, 50), Some(50), "0 is no end here");
        assert_eq!(slowest(Rule::WeakAnd, 0, 50), None);
        assert_eq!(slowest(Rule::AndMaster, 40, 0), Some(40));
        assert_eq!(slowest(Rule::AndMaster, 0, 40), None);
    }

    #[test]
    fn what_is_reliable_is_waited_for_without_end() {
        assert_eq!(slowest_ms(&samples::lip_sync()), None);
    }
}
