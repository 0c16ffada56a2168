//! What this relay says in the directory, and what of it NATS is still to be told.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use bytes::Bytes;

use crate::limits::OWN_MAX;

/// A value, or `None` for none any more.
pub(crate) type Value = Option<Bytes>;

#[derive(Debug)]
struct Announced {
    value: Value,
    at: Instant,
    is_due: bool,
}

/// The newest of each key, for as long as the bucket would keep it.
#[derive(Debug)]
pub(crate) struct Own {
    life: Duration,
    keys: BTreeMap<String, Announced>,
    /// In the order in which they are to be put; a key that is no longer due is passed over.
    due: VecDeque<String>,
}

impl Own {
    /// What is not said again within `life` is forgotten, as it is by the bucket.
    pub(crate) fn new(life: Duration) -> Self {
        Own { life, keys: BTreeMap::new(), due: VecDeque::new() }
    }

    /// Takes what is to be said; in place of what was said of the key before. Answers whether there was room.
    pub(crate) fn say(&mut self, now: Instant, key: String, value: Value) -> bool {
        if let Some(said) = self.keys.get_mut(&key) {
            (said.value, said.at) = (value, now);
            if !said.is_due {
                said.is_due = true;
                self.due.push_back(key);
            }
            return true;
        }
        if self.keys.len() >= OWN_MAX {
            return false;
        }
        self.keys.insert(key.clone(), Announced { value, at: now, is_due: true });
        self.due.push_back(key);
        true
    }

    /// Takes everything back.
    pub(crate) fn withdraw_all(&mut self, now: Instant) {
        for said in self.keys.values_mut() {
            (said.value, said.at) = (None, now);
        }
        self.put_all_again();
    }

    /// NATS may have forgotten everything.
    pub(crate) fn put_all_again(&mut self) {
        for said in self.keys.values_mut() {
            said.is_due = true;
        }
        self.due = self.keys.keys().cloned().collect();
    }

    /// What is to be put next.
    pub(crate) fn next(&mut self) -> Option<(String, Value)> {
        while let Some(key) = self.due.pop_front() {
            let Some(said) = self.keys.get_mut(&key).filter(|said| said.is_due) else { continue };
            said.is_due = false;
            return Some((key, said.value.clone()));
        }
        None
    }

    pub(crate) fn has_due(&self) -> bool {
        self.due.iter().any(|key| self.keys.get(key).is_some_and(|said| said.is_due))
    }

    /// Forgets what the bucket has forgotten, too.
    pub(crate) fn sweep(&mut self, now: Instant) {
        let before = self.keys.len();
        self.keys.retain(|_, said| now.duration_since(said.at) < self.life);
        if self.keys.len() < before {
            self.due.retain(|key| self.keys.get(key).is_some_and(|said| said.is_due));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIFE: Duration = Duration::from_secs(30);

    fn value(text: &'static str) -> Value {
        Some(Bytes::from_static(text.as_bytes()))
    }

    fn all(own: &mut Own) -> Vec<(String, Value)> {
        std::iter::from_fn(|| own.next()).collect()
    }

    #[test]
    fn the_newest_of_each_key_is_put_once() {
        let (mut own, now) = (Own::new(LIFE), Instant::now());
        for (key, text) in [("b", "1"), ("a", "1"), ("b", "2")] {
            assert!(own.say(now, key.to_owned(), value(text)));
        }
        assert_eq!(all(&mut own), [("b".to_owned(), value("2")), ("a".to_owned(), value("1"))]);
        assert!(!own.has_due() && own.next().is_none());
        own.say(now, "b".to_owned(), None);
        assert_eq!(all(&mut own), [("b".to_owned(), None)]);
    }

    #[test]
    fn after_nats_was_away_everything_that_is_fresh_is_put() {
        let (mut own, now) = (Own::new(LIFE), Instant::now());
        own.say(now, "old".to_owned(), value("1"));
        own.say(now + LIFE / 2, "kept".to_owned(), value("1"));
        own.say(now + LIFE / 2, "gone".to_owned(), None);
        assert_eq!(all(&mut own).len(), 3);
        own.sweep(now + LIFE);
        own.put_all_again();
        assert!(own.has_due());
        assert_eq!(all(&mut own), [("gone".to_owned(), None), ("kept".to_owned(), value("1"))]);
        own.sweep(now + 2 * LIFE);
        own.put_all_again();
        assert_eq!(all(&mut own), []);
    }

    #[test]
    fn keys_are_bounded_and_those_that_are_there_still_change() {
        let (mut own, now) = (Own::new(LIFE), Instant::now());
        for key in 0..OWN_MAX {
            assert!(own.say(now, key.to_string(), value("1")));
        }
        assert!(!own.say(now, "more".to_owned(), value("1")));
        assert!(own.say(now, "7".to_owned(), None));
        own.sweep(now + LIFE);
        assert!(!own.has_due() && own.say(now + LIFE, "more".to_owned(), value("1")));
        assert_eq!(all(&mut own), [("more".to_owned(), value("1"))]);
    }
}
