//! Streams that were looked up lately: what is said of them is kept, and followed.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use outflow_routing::tree::RelayId;
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout};
use tracing::debug;

use crate::counters::Counts;
use crate::directory::Shared;
use crate::entry::{Entry, Malformed, RelayRecord};
use crate::key::{ALL_RELAYS, Key, all_of};
use crate::limits::{
    LOOKUP_WAIT, PART_LIFE, READ_MAX, READS_MAX, RELAYS_MAX, RELAYS_WAIT, WATCH_LIFE, WATCHES_MAX,
};
use crate::session::{Found, Session};

/// How far the reading of a stream's entries is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Phase {
    Reading,
    /// Those that were there at first are there.
    Read,
    Failed(String),
}

/// A stream that was looked up.
#[derive(Debug)]
struct Watched {
    /// Which watch of the stream it is: what an earlier one finds is not taken.
    id: u64,
    /// By relay, and until when they hold.
    entries: BTreeMap<RelayId, (Entry, Instant)>,
    phase: watch::Sender<Phase>,
    used: Instant,
    /// Whether what is said later is wanted, too.
    is_followed: bool,
    /// Until when it answers, once it is read and not followed.
    until: Option<Instant>,
    task: Option<AbortHandle>,
}

impl Drop for Watched {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

/// All of them.
#[derive(Debug, Default)]
pub(crate) struct Watches {
    streams: BTreeMap<String, Watched>,
    last_id: u64,
}

impl Watches {
    /// The phase of a stream's watch, if there is one.
    pub(crate) fn used(&mut self, now: Instant, stream: &str) -> Option<watch::Receiver<Phase>> {
        let watched = self.streams.get_mut(stream)?;
        watched.used = now;
        Some(watched.phase.subscribe())
    }

    /// Makes room for a stream, and answers the id of its watch. `None` if there is no room.
    fn add(&mut self, now: Instant, stream: &str) -> Option<(u64, watch::Receiver<Phase>)> {
        let mut is_followed = true;
        if self.streams.values().filter(|watched| watched.is_followed).count() >= WATCHES_MAX {
            let is_idle = |watched: &Watched| watched.is_followed && now >= watched.used + PART_LIFE;
            let idle = self.streams.iter().filter(|(_, watched)| is_idle(watched));
            match idle.min_by_key(|(_, watched)| watched.used).map(|(name, _)| name.clone()) {
                Some(oldest) => _ = self.streams.remove(&oldest),
                None => is_followed = false,
            }
        }
        if self.streams.len() >= READS_MAX {
            return None;
        }
        self.last_id += 1;
        let (phase, receiver) = watch::channel(Phase::Reading);
        let (id, entries) = (self.last_id, BTreeMap::new());
        let watched = Watched { id, entries, phase, used: now, is_followed, until: None, task: None };
        self.streams.insert(stream.to_owned(), watched);
        Some((id, receiver))
    }

    fn get(&mut self, stream: &str, id: u64) -> Option<&mut Watched> {
        self.streams.get_mut(stream).filter(|watched| watched.id == id)
    }

    /// What is known of a stream.
    pub(crate) fn entries(&self, now: Instant, stream: &str) -> Vec<Entry> {
        let entries = self.streams.get(stream).into_iter().flat_map(|watched| watched.entries.values());
        entries.filter(|(_, until)| *until > now).map(|(entry, _)| entry.clone()).collect()
    }

    /// Takes what a relay says. Answers whether more is wanted.
    fn take(&mut self, stream: &str, id: u64, relay: RelayId, entry: Option<(Entry, Instant)>) -> bool {
        let Some(watched) = self.get(stream, id) else { return false };
        match entry {
            Some(entry) => _ = watched.entries.insert(relay, entry),
            None => _ = watched.entries.remove(&relay),
        }
        watched.entries.len() < READ_MAX
    }

    fn set_phase(&mut self, stream: &str, id: u64, phase: Phase) {
        if let Some(watched) = self.get(stream, id) {
            watched.phase.send_if_modified(|before| {
                let is_new = *before == Phase::Reading;
                if is_new {
                    *before = phase;
                }
                is_new
            });
        }
    }

    /// Those that were there at first are read. Answers whether it is followed.
    fn set_read(&mut self, now: Instant, stream: &str, id: u64) -> bool {
        self.set_phase(stream, id, Phase::Read);
        let Some(watched) = self.get(stream, id) else { return false };
        if !watched.is_followed && watched.until.is_none() {
            watched.until = Some(now + PART_LIFE);
        }
        watched.is_followed
    }

    /// There are more than are read: the part that is there answers for a while.
    fn set_part(&mut self, now: Instant, stream: &str, id: u64) {
        if let Some(watched) = self.get(stream, id) {
            watched.is_followed = false;
        }
        self.set_read(now, stream, id);
    }

    /// Nothing comes any more: the next lookup reads again.
    fn end(&mut self, stream: &str, id: u64, why: String) {
        self.set_phase(stream, id, Phase::Failed(why));
        if self.get(stream, id).is_some() {
            self.streams.remove(stream);
        }
    }

    /// Forgets entries that no relay has said again, and streams that no caller asks for.
    pub(crate) fn sweep(&mut self, now: Instant) {
        self.streams.retain(|_, watched| {
            watched.entries.retain(|_, (_, until)| *until > now);
            now.duration_since(watched.used) < WATCH_LIFE && watched.until.is_none_or(|until| until > now)
        });
    }

    /// What is known was of a connection that is lost.
    pub(crate) fn clear(&mut self) {
        self.streams.clear();
    }
}

/// Begins to read a stream, and to watch it if there is room. `None` if there is none for either.
pub(crate) fn begin(
    shared: &Arc<Shared>,
    watches: &mut Watches,
    session: Arc<Session>,
    stream: &str,
) -> Option<watch::Receiver<Phase>> {
    let (id, phase) = watches.add(Instant::now(), stream)?;
    let (shared, name) = (shared.clone(), stream.to_owned());
    let task = tokio::spawn(async move {
        let why = match all_of(&name) {
            Some(keys) => follow(&shared, &session, &name, id, &keys).await,
            None => Some("no stream has such a name".to_owned()),
        };
        if let Some(why) = why {
            debug!("{name} is no longer watched: {why}");
            shared.state().watches.end(&name, id, why);
        }
    });
    if let Some(watched) = watches.get(stream, id) {
        watched.task = Some(task.abort_handle());
    }
    Some(phase)
}

/// Follows what is said of a stream. Answers why no more comes, or nothing if no more is wanted.
async fn follow(shared: &Shared, session: &Session, stream: &str, id: u64, keys: &str) -> Option<String> {
    // The first lookup is answered first: a server that is asked everything at once answers all late.
    let mut turn = Some(shared.turns.acquire().await);
    let mut reading = match session.read(keys).await {
        Ok(reading) => reading,
        Err(error) => return Some(format!("its entries cannot be read: {error}")),
    };
    let mut set_read = || {
        turn = None;
        shared.state().watches.set_read(Instant::now(), stream, id)
    };
    if reading.pending == 0 && !set_read() {
        return None;
    }
    let late = sleep(LOOKUP_WAIT);
    tokio::pin!(late);
    loop {
        let message = tokio::select! {
            message = reading.messages.next() => message,
            // Entries that expire before they are read never come.
            () = &mut late, if !late.is_elapsed() => match set_read() {
                true => continue,
                false => return None,
            }
        };
        let message = match message {
            Some(Ok(message)) => message,
            Some(Err(error)) => return Some(error.to_string()),
            None => return Some("the connection is lost".to_owned()),
        };
        let Some(found) = session.found(&message, &reading) else { continue };
        let is_last = found.is_last;
        if let Some((relay, entry)) = of_stream(&shared.counts, stream, found) {
            let (mut state, now) = (shared.state(), Instant::now());
            let entry = entry.map(|(entry, age)| (entry, now + shared.max_age.saturating_sub(age)));
            if !state.watches.take(stream, id, relay, entry) {
                state.watches.set_part(now, stream, id);
                return None;
            }
        }
        if is_last && !set_read() {
            return None;
        }
    }
}

type Observed = (RelayId, Option<(Entry, Duration)>);

/// What was found, if it is what it should be.
fn of_stream(counts: &Counts, stream: &str, found: Found) -> Option<Observed> {
    let Some(Key::Stream(name, relay)) = found.key else {
        counts.malformed.add_one();
        return None;
    };
    let Some(value) = found.value else { return Some((relay, None)) };
    let entry = counted(counts, Entry::parse(&value))?;
    if name != stream || entry.stream != stream || entry.offer.contact.relay != relay {
        counts.malformed.add_one();
        return None;
    }
    Some((relay, Some((entry, found.age))))
}

fn counted<T>(counts: &Counts, read: Result<T, Malformed>) -> Option<T> {
    match read {
        Ok(value) => Some(value),
        Err(Malformed::Newer(_)) => {
            counts.newer.add_one();
            None
        }
        Err(error) => {
            debug!("a value of the directory is left out: {error}");
            counts.malformed.add_one();
            None
        }
    }
}

/// All relays that are there.
pub(crate) async fn relays(counts: &Counts, session: &Session) -> Result<Vec<RelayRecord>, String> {
    let mut relays = BTreeMap::new();
    let read = async {
        let mut reading = session.read(ALL_RELAYS).await?;
        let mut is_over = reading.pending == 0;
        while !is_over && relays.len() < RELAYS_MAX {
            let message = reading.messages.next().await.ok_or("the connection is lost")?;
            let message = message.map_err(|error| error.to_string())?;
            let Some(found) = session.found(&message, &reading) else { continue };
            is_over = found.is_last;
            if let Some(record) = of_relay(counts, found) {
                relays.insert(record.relay, record);
            }
        }
        Ok::<(), String>(())
    };
    match timeout(RELAYS_WAIT, read).await {
        Ok(Err(why)) => Err(why),
        Err(_late) if relays.is_empty() => Err(format!("no answer within {RELAYS_WAIT:?}")),
        Ok(Ok(())) | Err(_) => Ok(relays.into_values().collect()),
    }
}

/// What was found, if it is what it should be.
fn of_relay(counts: &Counts, found: Found) -> Option<RelayRecord> {
    let record = counted(counts, RelayRecord::parse(&found.value?))?;
    if found.key == Some(Key::Relay(record.relay)) {
        return Some(record);
    }
    counts.malformed.add_one();
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_beyond_those_that_are_followed_are_read_once() {
        let (mut watches, now) = (Watches::default(), Instant::now());
        let mut add = |at: Instant, stream: usize| {
            let name = stream.to_string();
            let id = watches.add(at, &name).map(|(id, _)| id);
            id.map(|id| watches.set_read(at, &name, id))
        };
        for stream in 0..WATCHES_MAX {
            assert_eq!(add(now + Duration::from_millis(stream as u64), stream), Some(true));
        }
        for stream in WATCHES_MAX..READS_MAX {
            assert_eq!(add(now, stream), Some(false), "all others were just asked for");
        }
        assert_eq!(add(now, READS_MAX), None, "there is no room");
        let later = now + PART_LIFE;
        assert_eq!(add(later, READS_MAX), Some(true), "the first is followed no more");
        assert!(watches.used(later, "0").is_none() && watches.used(later, "1").is_some());
        watches.sweep(later);
        assert_eq!(watches.streams.len(), WATCHES_MAX, "what was read once is over");
        watches.sweep(later + WATCH_LIFE);
        assert_eq!(watches.streams.len(), 0);
    }

    #[test]
    fn what_an_earlier_watch_finds_is_not_taken() {
        let (mut watches, now) = (Watches::default(), Instant::now());
        let (earlier, _) = watches.add(now, "s").expect("room");
        watches.end("s", earlier, "lost".to_owned());
        let (id, phase) = watches.add(now, "s").expect("room");
        watches.end("s", earlier, "lost again".to_owned());
        assert!(!watches.set_read(now, "s", earlier) && !watches.take("s", earlier, RelayId(1), None));
        assert_eq!(*phase.borrow(), Phase::Reading);
        assert!(watches.set_read(now, "s", id) && *phase.borrow() == Phase::Read);
    }
}
