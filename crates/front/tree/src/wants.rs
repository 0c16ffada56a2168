//! What is wanted of each stream here, and by what: the best of it is asked for of other relays.

use std::collections::BTreeMap;

use outflow_engine::message::StreamId;
use outflow_media::Time;
use outflow_routing::Level;

/// What wants a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Wanter {
    /// Receivers with a worker, by the stream's number there.
    Receivers(StreamId),
    /// Another stream, of which it is a rendition, by that one's number.
    Rendition(StreamId),
    /// A receiver that will be there soon, or not at all.
    Soon(u64),
}

#[derive(Debug, Default)]
struct Stream {
    by: BTreeMap<Wanter, (Level, Option<Time>)>,
    /// The best of it that was told last.
    told: Option<Level>,
}

/// All that is wanted.
#[derive(Debug, Default)]
pub(super) struct Wants {
    streams: BTreeMap<String, Stream>,
}

/// The best level of a stream is another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Change {
    pub(super) stream: String,
    pub(super) before: Option<Level>,
    pub(super) after: Option<Level>,
}

impl Wants {
    /// `wanter` wants a level, until `until` if it is given; or nothing any more.
    pub(super) fn set(
        &mut self,
        stream: &str,
        wanter: Wanter,
        level: Option<Level>,
        until: Option<Time>,
    ) -> Option<Change> {
        if level.is_some() && !self.streams.contains_key(stream) {
            self.streams.insert(stream.to_owned(), Stream::default());
        }
        let wanted = self.streams.get_mut(stream)?;
        match level {
            Some(level) => _ = wanted.by.insert(wanter, (level, until)),
            None => _ = wanted.by.remove(&wanter),
        }
        self.settle(stream)
    }

    /// A receiver that wants this level has come: one that was to come for that, or for less, is here or gets
    /// it.
    pub(super) fn come(&mut self, stream: &str, level: Level) {
        if let Some(wanted) = self.streams.get_mut(stream) {
            let stays = |wanter: &Wanter, wish: Level| !matches!(wanter, Wanter::Soon(_)) || wish < level;
            wanted.by.retain(|wanter, (wish, _)| stays(wanter, *wish));
        }
    }

    /// A receiver that did not come in time wants nothing any more.
    pub(super) fn expire(&mut self, now: Time) -> Vec<Change> {
        let mut late = Vec::new();
        for (name, stream) in &mut self.streams {
            let before = stream.by.len();
            stream.by.retain(|_, (_, until)| until.is_none_or(|until| now < until));
            if stream.by.len() != before {
                late.push(name.clone());
            }
        }
        late.iter().filter_map(|name| self.settle(name)).collect()
    }

    /// The best level of a stream that is wanted.
    pub(super) fn best(&self, stream: &str) -> Option<Level> {
        self.streams.get(stream)?.told
    }

    fn settle(&mut self, name: &str) -> Option<Change> {
        let stream = self.streams.get_mut(name)?;
        let after = stream.by.values().map(|(level, _)| *level).min();
        let before = std::mem::replace(&mut stream.told, after);
        if after.is_none() {
            self.streams.remove(name);
        }
        (before != after).then(|| Change { stream: name.to_owned(), before, after })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_of_all_is_wanted_until_the_last_has_gone() {
        let mut wants = Wants::default();
        let [one, two] = [1, 2].map(Level::new);
        let change = |before, after| Some(Change { stream: "a".to_owned(), before, after });
        assert_eq!(wants.set("a", Wanter::Receivers(1), None, None), None);
        assert_eq!(wants.set("a", Wanter::Receivers(1), two, None), change(None, two));
        let until = Some(Time::from_millis(100));
        assert_eq!(wants.set("a", Wanter::Soon(1), one, until), change(two, one));
        assert_eq!(wants.set("a", Wanter::Receivers(2), one, None), None);
        assert_eq!(wants.expire(Time::from_millis(99)), []);
        assert_eq!(wants.expire(Time::from_millis(100)), [], "others want it as well");
        assert_eq!(wants.set("a", Wanter::Receivers(2), None, None), change(one, two));
        assert_eq!(wants.set("a", Wanter::Receivers(1), None, None), change(two, None));
        assert_eq!(wants.best("a"), None);
        wants.set("a", Wanter::Soon(2), one, until);
        assert_eq!(wants.expire(Time::from_millis(100)), change(one, None).into_iter().collect::<Vec<_>>());
    }

    #[test]
    fn one_that_has_come_is_not_waited_for_any_longer() {
        let mut wants = Wants::default();
        let [one, two, three] = [1, 2, 3].map(Level::new);
        let until = Some(Time::from_millis(100));
        for (wanter, level) in [(Wanter::Soon(1), two), (Wanter::Soon(2), one), (Wanter::Soon(3), three)] {
            wants.set("a", wanter, level, until);
        }
        wants.set("a", Wanter::Receivers(1), two, None);
        wants.come("a", two.expect("a level"));
        assert_eq!(wants.best("a"), one, "somebody is still to come for more");
        wants.set("a", Wanter::Receivers(1), one, None);
        wants.come("a", one.expect("a level"));
        let gone = Change { stream: "a".to_owned(), before: one, after: None };
        assert_eq!(wants.set("a", Wanter::Receivers(1), None, None), Some(gone));
    }
}
