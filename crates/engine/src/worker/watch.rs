//! What a worker waits for, and the waiting: asleep, or for a while awake.

use core::time::Duration;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use outflow_media::Time;
use outflow_relay::SinkKey;
use rustix::event::epoll::{Event, EventFlags};
use rustix::event::{Timespec, epoll};
use slab::{Slab, VacantEntry};

use super::sender::Sender;
use crate::clock::Clock;
use crate::limits::{POLL_GAP, POLL_REST};
use crate::message::SourceSocket;
use crate::receive::Arena;
use crate::system::preemptions;

/// What a file descriptor that the worker waits for belongs to.
#[derive(Debug)]
pub(super) enum Watched {
    /// The worker's own bell: there are commands, or packets in a queue.
    Bell,
    /// A source's socket.
    Source { stream: usize, socket: SourceSocket, arena: Box<Arena>, sender: Sender },
    /// A socket that serves sinks.
    Port { port: usize },
    /// What tells of changed routes and neighbours.
    Routes,
    /// The RTCP side of the worker's own port pair.
    Rtcp { socket: std::net::UdpSocket },
    /// A socket that peers send through.
    PeerPort { port: usize },
    /// A receiver's connection.
    Connection { stream: usize, sink: SinkKey },
}

/// The descriptors that a worker waits for.
#[derive(Debug)]
pub(super) struct Watch {
    epoll: OwnedFd,
    watched: Slab<Watched>,
    poll: Poll,
}

/// How long a worker that has nothing to do looks for more before it sleeps.
#[derive(Debug)]
struct Poll {
    time: Duration,
    /// Nothing has come for too long then.
    until: Time,
    /// Others want the core until then.
    rests_until: Time,
}

impl Poll {
    /// Looks for so long: not at all, if that is no time.
    fn new(time: Duration) -> Self {
        Poll { time, until: Time::ZERO, rests_until: Time::ZERO }
    }

    /// Something came.
    fn came(&mut self, now: Time) {
        if !self.time.is_zero() && now >= self.rests_until {
            self.until = now + self.time;
        }
    }

    /// Others had the core meanwhile: a thread that does not sleep has no claim to it when packets come.
    fn give_way(&mut self, now: Time) {
        (self.until, self.rests_until) = (Time::ZERO, now + POLL_REST);
    }
}

impl Watch {
    /// Waits for nothing yet; with nothing to do it looks for so long before it sleeps.
    ///
    /// # Errors
    /// There are no more descriptors.
    pub(super) fn new(look: Duration) -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        Ok(Watch { epoll, watched: Slab::new(), poll: Poll::new(look) })
    }

    /// Waits for a descriptor from now on. The caller puts down, right away, what it belongs to.
    pub(super) fn add(&mut self, fd: impl AsFd, flags: EventFlags) -> io::Result<VacantEntry<'_, Watched>> {
        let entry = self.watched.vacant_entry();
        epoll::add(&self.epoll, fd, epoll::EventData::new_u64(entry.key() as u64), flags)?;
        Ok(entry)
    }

    /// Waits for other events of a descriptor, or once more.
    pub(super) fn change(&self, token: usize, fd: impl AsFd, flags: EventFlags) -> io::Result<()> {
        Ok(epoll::modify(&self.epoll, fd, epoll::EventData::new_u64(token as u64), flags)?)
    }

    /// Waits no longer for a descriptor that has other owners, too: that it is dropped here does not take
    /// it out of the epoll set.
    pub(super) fn take_out(&mut self, token: usize, fd: impl AsFd) {
        let _ = epoll::delete(&self.epoll, fd);
        self.watched.try_remove(token);
    }

    /// Forgets a descriptor. Where it is owned here, that closes it, which also ends the waiting for it.
    pub(super) fn forget(&mut self, token: usize) {
        self.watched.try_remove(token);
    }

    /// What a token stands for.
    pub(super) fn get(&self, token: usize) -> Option<&Watched> {
        self.watched.get(token)
    }

    pub(super) fn get_mut(&mut self, token: usize) -> Option<&mut Watched> {
        self.watched.get_mut(token)
    }

    /// Waits until something comes in, or until then.
    pub(super) fn wait(&mut self, clock: &Clock, due: Time, events: &mut Vec<Event>) -> io::Result<()> {
        let now = clock.now();
        if now < self.poll.until.min(due) && self.look(clock, due, events)? {
            return Ok(());
        }
        self.take_events(clock, due.since(clock.now()), events)
    }

    /// Looks for events again and again, for a while. Returns whether it is over: there are some, or
    /// there is something to do.
    fn look(&mut self, clock: &Clock, due: Time, events: &mut Vec<Event>) -> io::Result<bool> {
        let (mut before, preempted) = (clock.now(), preemptions());
        loop {
            self.take_events(clock, Duration::ZERO, events)?;
            let now = clock.now();
            if now.since(before) > POLL_GAP && preemptions() > preempted {
                self.poll.give_way(now);
            }
            if !events.is_empty() || now >= due {
                return Ok(true);
            }
            if now >= self.poll.until {
                return Ok(false);
            }
            before = now;
        }
    }

    fn take_events(&mut self, clock: &Clock, within: Duration, events: &mut Vec<Event>) -> io::Result<()> {
        events.clear();
        let timeout = Timespec { tv_sec: within.as_secs() as i64, tv_nsec: i64::from(within.subsec_nanos()) };
        match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(events), Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        if !events.is_empty() {
            self.poll.came(clock.now());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_is_to_look_looks_for_a_while_after_something_came() {
        let mut poll = Poll::new(Duration::from_micros(200));
        assert_eq!(poll.until, Time::ZERO);
        let now = Time::from_millis(1);
        poll.came(now);
        assert_eq!(poll.until, now + Duration::from_micros(200));

        poll.give_way(now);
        poll.came(now + POLL_REST / 2);
        assert_eq!(poll.until, Time::ZERO, "others want the core");
        poll.came(now + POLL_REST);
        assert!(poll.until > now + POLL_REST);

        let mut asleep = Poll::new(Duration::ZERO);
        asleep.came(now);
        assert_eq!(asleep.until, Time::ZERO);
    }
}
