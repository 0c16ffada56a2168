//! Waiting for something to do: asleep, or for a while awake.

use core::time::Duration;
use std::io;

use outflow_media::Time;
use outflow_relay::Priority;
use rustix::event::epoll::Event;
use rustix::event::{Timespec, epoll};

use super::Worker;
use crate::limits::{POLL_GAP, POLL_REST};
use crate::system::preemptions;

/// How long a worker that has nothing to do looks for more before it sleeps.
#[derive(Debug)]
pub(super) struct Poll {
    time: Duration,
    /// Nothing has come for too long then.
    until: Time,
    /// Others want the core until then.
    rests_until: Time,
}

impl Poll {
    /// Looks for so long: not at all, if that is no time.
    pub(super) fn new(time: Duration) -> Self {
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

impl Worker {
    /// Until when nothing has to be done unless something comes in. What is found out on the way is
    /// not looked for when it has come.
    pub(super) fn due(&mut self) -> Time {
        let mut due = self.snapshot.due().min(self.next_refresh);
        due = due.min(self.links.due().unwrap_or(due)).min(self.peers.due().unwrap_or(due));
        self.highest = Priority::Low;
        for (_, stream) in &self.streams {
            self.highest = self.highest.min(stream.class());
            let wake = if stream.touched { Some(Time::ZERO) } else { stream.wake };
            due = due.min(wake.unwrap_or(due));
        }
        if self.tasks.is_empty() { due } else { Time::ZERO }
    }

    /// Waits until something comes in, or until then.
    pub(super) fn wait(&mut self, due: Time, events: &mut Vec<Event>) -> io::Result<()> {
        let now = self.clock.now();
        if now < self.poll.until.min(due) && self.look(due, events)? {
            return Ok(());
        }
        self.take_events(due.since(self.clock.now()), events)
    }

    /// Looks for events again and again, for a while. Returns whether it is over: there are some, or
    /// there is something to do.
    fn look(&mut self, due: Time, events: &mut Vec<Event>) -> io::Result<bool> {
        let (mut before, preempted) = (self.clock.now(), preemptions());
        loop {
            self.take_events(Duration::ZERO, events)?;
            let now = self.clock.now();
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

    fn take_events(&mut self, within: Duration, events: &mut Vec<Event>) -> io::Result<()> {
        events.clear();
        let timeout = Timespec { tv_sec: within.as_secs() as i64, tv_nsec: i64::from(within.subsec_nanos()) };
        match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(events), Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        if !events.is_empty() {
            self.poll.came(self.clock.now());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_to_look_looks_for_a_while_after_something_came() {
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
