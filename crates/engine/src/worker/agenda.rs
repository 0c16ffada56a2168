//! Which streams are to be looked at, and when: what happens costs, not what exists.

use outflow_media::Time;
use outflow_relay::Priority;

use super::timers::Timers;

/// What is known of the streams of a worker, by their places.
#[derive(Debug, Default)]
pub(super) struct Agenda {
    places: Vec<Place>,
    /// Those that may have changed since they were looked at.
    changed: Vec<usize>,
    /// The others whose time comes.
    wakes: Timers<usize>,
    /// How many streams there are of each class.
    classes: [usize; Priority::ALL.len()],
}

/// What is so of a stream.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seen {
    pub(super) class: Priority,
    /// When it is to be looked at at the latest.
    pub(super) wake: Option<Time>,
    /// It has something to do now.
    pub(super) is_touched: bool,
}

#[derive(Debug, Default, Clone, Copy)]
struct Place {
    is_changed: bool,
    wake: Option<Time>,
    class: Option<Priority>,
}

impl Agenda {
    /// The stream in this place may change now.
    pub(super) fn change(&mut self, index: usize) {
        if self.places.len() <= index {
            self.places.resize(index + 1, Place::default());
        }
        let place = &mut self.places[index];
        if !core::mem::replace(&mut place.is_changed, true) {
            self.changed.push(index);
        }
    }

    /// The streams that may have changed.
    pub(super) fn changed(&self) -> &[usize] {
        &self.changed
    }

    /// Looks at the streams that may have changed: what is so of each, or that there is none any more. Those that
    /// have something to do stay among them; returns whether there are any.
    pub(super) fn look(&mut self, mut at: impl FnMut(usize) -> Option<Seen>) -> bool {
        let mut changed = core::mem::take(&mut self.changed);
        changed.retain(|&index| {
            let seen = at(index);
            self.note(index, seen);
            let stays = seen.is_some_and(|seen| seen.is_touched);
            self.places[index].is_changed = stays;
            stays
        });
        self.changed = changed;
        !self.changed.is_empty()
    }

    fn note(&mut self, index: usize, seen: Option<Seen>) {
        let (class, wake) = seen.map_or((None, None), |seen| (Some(seen.class), seen.wake));
        let place = &mut self.places[index];
        self.wakes.change(index, place.wake, wake);
        place.wake = wake;
        if place.class != class {
            place.class.into_iter().for_each(|class| self.classes[class as usize] -= 1);
            class.into_iter().for_each(|class| self.classes[class as usize] += 1);
            place.class = class;
        }
    }

    /// When the first is to be looked at that has not changed.
    pub(super) fn due(&self) -> Option<Time> {
        self.wakes.first()
    }

    /// Counts those whose time has come among the changed.
    pub(super) fn wake(&mut self, now: Time) {
        while let Some(index) = self.wakes.pop(now) {
            self.places[index].wake = None;
            self.change(index);
        }
    }

    /// The highest class of any stream.
    pub(super) fn highest(&self) -> Priority {
        Priority::ALL.into_iter().find(|class| self.classes[*class as usize] > 0).unwrap_or(Priority::Low)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(class: Priority, wake: Option<Time>) -> Option<Seen> {
        Some(Seen { class, wake, is_touched: false })
    }

    #[test]
    fn only_those_that_change_or_whose_time_comes_are_looked_at() {
        let mut agenda = Agenda::default();
        let at = Time::from_millis;
        for (index, wake) in [(0, None), (1, Some(at(5))), (7, Some(at(3)))] {
            agenda.change(index);
            agenda.change(index);
            assert_eq!(agenda.changed(), [index]);
            assert!(!agenda.look(|_| seen(Priority::Normal, wake)));
        }
        assert_eq!(agenda.due(), Some(at(3)));
        agenda.wake(at(2));
        assert!(agenda.changed().is_empty());
        agenda.wake(at(4));
        assert_eq!(agenda.changed(), [7]);
        agenda.look(|_| seen(Priority::High, Some(at(9))));
        assert_eq!((agenda.due(), agenda.highest()), (Some(at(5)), Priority::High));
        agenda.change(7);
        agenda.look(|_| None);
        assert_eq!((agenda.due(), agenda.highest()), (Some(at(5)), Priority::Normal));
    }

    #[test]
    fn one_that_has_something_to_do_is_looked_at_until_it_is_done() {
        let mut agenda = Agenda::default();
        agenda.change(2);
        let touched = Seen { class: Priority::Low, wake: None, is_touched: true };
        assert!(agenda.look(|_| Some(touched)));
        agenda.change(2);
        assert_eq!(agenda.changed(), [2]);
        assert!(!agenda.look(|_| seen(Priority::Low, None)));
    }
}
