//! Whether objects are sent in an order in which they can be delivered.

use super::Net;

impl Net {
    /// Whether each object can be delivered as soon as all before it are over: none waits for one that is sent
    /// behind it. Of other nets a receiver may have to keep all of a window, and a source is to end its last
    /// round.
    pub fn is_sent_in_order(&self) -> bool {
        is_sent_in_order(self)
    }
}

/// Goes through what has to fire in the same round: along places without tokens, which are on no circuit by
/// themselves, so that this ends.
fn is_sent_in_order(net: &Net) -> bool {
    // The last object that a transition needs, and that all before it in the round do.
    let mut needs = vec![None; net.transitions.len()];
    for object in 0..net.objects() {
        let place = &net.places[net.place_of(object).index()];
        needs[place.consumer.index()] = Some(object);
    }
    for _ in 0..net.transitions.len() {
        let mut has_grown = false;
        for place in net.places.iter().filter(|place| place.initial == 0) {
            let before = needs[place.producer.index()];
            let need = &mut needs[place.consumer.index()];
            has_grown |= before > *need;
            *need = before.max(*need);
        }
        if !has_grown {
            break;
        }
    }
    (0..net.objects()).all(|object| {
        let place = &net.places[net.place_of(object).index()];
        place.initial > 0 || needs[place.producer.index()] < Some(object)
    })
}

#[cfg(test)]
mod tests {
    use super::super::{Builder, Carries, Interval, Place, Rule, samples};

    #[test]
    fn what_waits_for_what_is_behind_it_is_noticed() {
        let circuit = |initials: [u32; 2]| {
            let mut builder = Builder::new();
            let ids = [builder.transition("a", Rule::And), builder.transition("b", Rule::And)];
            for (name, from, initial) in [("first", 0, initials[0]), ("second", 1, initials[1])] {
                builder.place(Place {
                    name: name.into(),
                    carries: Carries::Object,
                    producer: ids[from],
                    consumer: ids[1 - from],
                    interval: Interval::ALWAYS,
                    initial,
                });
            }
            builder.build().expect("a net").is_sent_in_order()
        };
        assert!(circuit([1, 0]) && !circuit([0, 1]) && circuit([1, 1]));
        assert!(samples::mpeg().is_sent_in_order() && samples::lip_sync().is_sent_in_order());
    }
}
