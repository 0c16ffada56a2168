//! The thread that forwards: packets in from taps, copies out to interfaces, in batches.
//!
//! It has a thread of its own, so that no flood of data delays an answer to hosts.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::mpsc::Receiver;

use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::eventfd::EventFd;
use outflow_kernel::thin::Filter;
use outflow_media::Time;
use outflow_routing::forwarding::{Head, Output, Pair, Unfit, thin};
use tokio::sync::mpsc;

use super::arrival::Arrival;
use super::counts::{Count, Counters};
use super::filtered::{flow_id, take_over};
use super::packet::{Unmade, finish, fragment, may_fragment};
use super::table::{Entry, Table, Verdict};
use crate::clock::Clock;
use crate::sys::{Batch, Frame, READ_AT_ONCE, Sender, Tap};

/// What the driver says.
#[derive(Debug)]
pub(super) enum Command {
    /// Packets of an interface are to be read; `is_ours` if the kernel does not tell of them.
    Watch {
        interface: u32,
        tap: Arc<Tap>,
        is_ours: bool,
    },
    Unwatch {
        interface: u32,
    },
    Set(Pair, Entry),
    Remove(Pair),
    Stop,
}

/// What wakes the thread as the driver has said something; else it is the index of an interface.
const COMMAND: u64 = u64::MAX;
/// Taps that are seen to at once.
const READY_AT_ONCE: usize = 64;
/// How often the engine looks whether packets have waited for too long, if any wait.
const EXPIRE_EVERY_MS: u16 = 1000;

#[derive(Debug)]
struct Watched {
    tap: Arc<Tap>,
    is_ours: bool,
    /// Whether so much came that some may have found no room.
    is_busy: bool,
}

/// A copy that is to be sent: of what was read, or of what was made of it.
#[derive(Debug, Clone, Copy)]
struct Outgoing {
    is_made: bool,
    start: usize,
    end: usize,
    to: u32,
}

/// What is to be done with a packet.
#[derive(Debug)]
enum Next {
    Out(Arc<[u32]>),
    /// Until it is known where it goes.
    Wait,
}

/// All state of the thread.
#[derive(Debug)]
pub(super) struct Engine {
    clock: Clock,
    commands: Receiver<Command>,
    wake: Arc<EventFd>,
    arrivals: mpsc::Sender<Arrival>,
    counters: Arc<Counters>,
    epoll: Epoll,
    sender: Sender,
    taps: BTreeMap<u32, Watched>,
    table: Table,
    filter: Option<Arc<Filter>>,
    batch: Batch,
    made: Vec<u8>,
    outgoing: Vec<Outgoing>,
}

impl Engine {
    pub(super) fn new(
        clock: Clock,
        (commands, wake): (Receiver<Command>, Arc<EventFd>),
        arrivals: mpsc::Sender<Arrival>,
        (counters, filter): (Arc<Counters>, Option<Arc<Filter>>),
    ) -> io::Result<Self> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        epoll.add(&wake, EpollEvent::new(EpollFlags::EPOLLIN, COMMAND))?;
        Ok(Engine {
            clock,
            commands,
            wake,
            arrivals,
            counters,
            epoll,
            sender: Sender::open()?,
            taps: BTreeMap::new(),
            table: Table::default(),
            filter,
            batch: Batch::new(),
            made: Vec::new(),
            outgoing: Vec::new(),
        })
    }

    /// Forwards until it is told to stop.
    pub(super) fn run(mut self) {
        let mut ready = [EpollEvent::empty(); READY_AT_ONCE];
        loop {
            let has_waiting = self.table.has_waiting();
            let timeout = if has_waiting { EpollTimeout::from(EXPIRE_EVERY_MS) } else { EpollTimeout::NONE };
            // Only a signal ends it early.
            let count = self.epoll.wait(&mut ready, timeout).unwrap_or(0);
            for event in &ready[..count] {
                if event.data() != COMMAND {
                    self.read(event.data() as u32);
                } else if !self.obey() {
                    return;
                }
            }
            if has_waiting {
                let expired = self.table.expire(self.clock.now());
                self.counters.add(Count::Unresolved, expired);
            }
        }
    }

    /// Does what the driver has said. False if that is to stop.
    fn obey(&mut self) -> bool {
        // It may have been read with the commands before.
        let _how_often = self.wake.read();
        while let Ok(command) = self.commands.try_recv() {
            match command {
                Command::Watch { interface, tap, is_ours } => {
                    self.unwatch(interface);
                    let event = EpollEvent::new(EpollFlags::EPOLLIN, interface.into());
                    let added = self.epoll.add(tap.as_fd(), event);
                    debug_assert!(added.is_ok(), "{added:?}");
                    self.taps.insert(interface, Watched { tap, is_ours, is_busy: false });
                }
                Command::Unwatch { interface } => self.unwatch(interface),
                Command::Set(pair, entry) => self.set(pair, entry),
                Command::Remove(pair) => self.table.remove(pair),
                Command::Stop => return false,
            }
        }
        true
    }

    fn unwatch(&mut self, interface: u32) {
        if let Some(watched) = self.taps.remove(&interface) {
            // The driver has it, too: closing alone would leave it.
            let _gone_already = self.epoll.delete(watched.tap.as_fd());
        }
    }

    fn set(&mut self, pair: Pair, mut entry: Entry) {
        let whole = Arc::clone(&entry.whole);
        match (self.table.is_filtered(pair), &entry.places) {
            // The driver has said so, and not known yet that the kernel has left it to user space.
            (Some(false), Some(_)) => self.keep(pair, &mut entry),
            (Some(true), None) => self.take_over(pair),
            _ => (),
        }
        let (waited, in_vain) = self.table.set(pair, entry);
        self.counters.add(Count::Unresolved, in_vain);
        for packet in waited {
            let start = self.made.len();
            self.made.extend(packet);
            self.plan(pair, &whole, true, start..self.made.len());
        }
        self.flush();
    }

    /// User space goes on with what it has taken over.
    fn keep(&self, pair: Pair, entry: &mut Entry) {
        if entry.places.take().is_some()
            && let Some(filter) = &self.filter
        {
            filter.give(&flow_id(pair, entry.parent));
        }
    }

    /// The kernel's filter leaves a pair to user space, if it had it up to now.
    fn take_over(&mut self, pair: Pair) {
        if let Some(filter) = &self.filter
            && let Some((parent, places, ways)) = self.table.take_over(pair)
        {
            take_over(filter, &flow_id(pair, parent), &places, ways);
        }
    }

    /// Reads from a tap what is there, but not for ever, and forwards it.
    fn read(&mut self, interface: u32) {
        let Some(watched) = self.taps.get_mut(&interface) else { return };
        if let Err(error) = watched.tap.receive(&mut self.batch) {
            // Of an interface that has gone, the driver hears otherwise.
            let is_none = matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::ENETDOWN | libc::ENODEV));
            self.counters.add(Count::Lost, usize::from(!is_none));
        }
        let was_busy = std::mem::replace(&mut watched.is_busy, self.batch.frames.len() >= READ_AT_ONCE);
        if was_busy || watched.is_busy {
            self.counters.add(Count::Lost, watched.tap.lost() as usize);
        }
        let (is_ours, now) = (watched.is_ours, self.clock.now());
        let frames = std::mem::take(&mut self.batch.frames);
        for frame in &frames {
            if let Err(why) = self.forward(now, (interface, is_ours), frame) {
                self.counters.add(why, 1);
            }
        }
        self.batch.frames = frames;
        self.flush();
    }

    fn forward(&mut self, now: Time, from: (u32, bool), frame: &Frame) -> Result<(), Count> {
        let head = Head::parse(&self.batch.bytes[frame.start..frame.end])?;
        if !from.1 {
            self.take_over(head.pair());
        }
        let Some(way) = self.decide(now, from, &head) else { return Ok(()) };
        let packet = &mut self.batch.bytes[frame.start..frame.end];
        Head::lower_ttl(packet);
        let parts = finish(&head, packet, frame.offload, &mut self.made)?;
        match way {
            Next::Out(whole) if parts.is_empty() => {
                self.plan(head.pair(), &whole, false, frame.start..frame.start + head.total_bytes());
            }
            Next::Out(whole) => {
                parts.into_iter().for_each(|part| self.plan(head.pair(), &whole, true, part));
            }
            Next::Wait if parts.is_empty() => {
                let is_held = self.table.hold(head.pair(), &packet[..head.total_bytes()]);
                self.counters.add(Count::Unresolved, usize::from(!is_held));
            }
            Next::Wait => {
                let is_held = |part| self.table.hold(head.pair(), &self.made[part]);
                let held = parts.iter().cloned().map(is_held).filter(|is_held| *is_held).count();
                self.counters.add(Count::Unresolved, parts.len() - held);
            }
        }
        Ok(())
    }

    /// Where a packet goes, if it goes anywhere.
    fn decide(&mut self, now: Time, from: (u32, bool), head: &Head) -> Option<Next> {
        let verdict = self.table.judge(now, from, head.pair(), head.total_bytes());
        if verdict == Verdict::Leave {
            return None;
        }
        self.counters.add(Count::Packets, 1);
        self.counters.add(Count::Bytes, head.total_bytes());
        match verdict {
            Verdict::Forward(whole) => Some(Next::Out(whole)),
            Verdict::Wait { is_news } if !is_news || self.tell(from.0, head.pair()) => Some(Next::Wait),
            Verdict::Wait { .. } | Verdict::Refuse => {
                self.counters.add(Count::Unresolved, 1);
                None
            }
            Verdict::Elsewhere { is_news } => {
                self.counters.add(Count::Elsewhere, 1);
                let _told_again_later = is_news && self.tell(from.0, head.pair());
                None
            }
            Verdict::Drop | Verdict::Leave => None,
        }
    }

    /// Tells the driver of packets that it has to decide about. False if it has too much to do.
    fn tell(&mut self, interface: u32, pair: Pair) -> bool {
        let is_told = self.arrivals.try_send(Arrival { interface, pair }).is_ok();
        if !is_told {
            let dropped = self.table.forget(pair);
            self.counters.add(Count::Unresolved, dropped);
        }
        is_told
    }

    /// A packet goes to these interfaces, and to those where its level is wanted.
    fn plan(&mut self, pair: Pair, whole: &[u32], is_made: bool, at: Range<usize>) {
        let as_it_is = |to: u32| Outgoing { is_made, start: at.start, end: at.end, to };
        self.outgoing.extend(whole.iter().map(|to| as_it_is(*to)));
        let Some(ways) = self.table.ways(pair).filter(|ways| !ways.is_empty()) else { return };
        let packet = if is_made { self.made[at.clone()].to_vec() } else { Vec::new() };
        let packet = if is_made { &packet } else { &self.batch.bytes[at.clone()] };
        let outgoing = &mut self.outgoing;
        let left_out = thin(ways, packet, &mut self.made, |copy| {
            outgoing.push(match copy {
                Output::AsItIs(to) => as_it_is(to),
                Output::Made(to, Range { start, end }) => Outgoing { is_made: true, start, end, to },
            });
        });
        self.counters.add(Count::Thinned, left_out);
    }

    /// Sends what was planned.
    fn flush(&mut self) {
        let mut first = 0;
        while let Some(next) = self.outgoing.get(first) {
            let bytes = |one: &Outgoing| {
                let from = if one.is_made { &self.made } else { &self.batch.bytes };
                (&from[one.start..one.end], one.to)
            };
            let copies = self.outgoing[first..].iter().map(bytes);
            match self.sender.send(copies) {
                Ok(sent) => {
                    self.counters.add(Count::Copies, sent);
                    first += sent;
                }
                Err(error) => {
                    let (packet, to) = bytes(next);
                    let why = self.send_otherwise(packet, to, &error).err();
                    self.counters.add(why.unwrap_or(Count::Copies), 1);
                    first += 1;
                }
            }
        }
        self.outgoing.clear();
        self.made.clear();
    }

    /// Sends fragments of what was too long, if that was the error.
    fn send_otherwise(&self, packet: &[u8], to: u32, error: &io::Error) -> Result<(), Count> {
        let reason = |error: &io::Error| match error.raw_os_error() {
            Some(libc::EMSGSIZE) => Count::TooLong,
            Some(libc::EAGAIN | libc::ENOBUFS) => Count::NoRoom,
            _ => Count::SendErrors,
        };
        if reason(error) != Count::TooLong || !may_fragment(packet) {
            return Err(reason(error));
        }
        let mtu = self.sender.mtu(to).map_err(|error| reason(&error))?;
        let mut made = Vec::new();
        let parts = fragment(packet, mtu, &mut made).map_err(Count::from)?;
        let mut left = &parts[..];
        while !left.is_empty() {
            let copies = left.iter().map(|part| (&made[part.clone()], to));
            let sent = self.sender.send(copies).map_err(|error| reason(&error))?;
            left = &left[sent..];
        }
        Ok(())
    }
}

impl From<Unfit> for Count {
    fn from(why: Unfit) -> Self {
        match why {
            Unfit::Malformed => Count::Malformed,
            Unfit::Ttl => Count::Ttl,
        }
    }
}

impl From<Unmade> for Count {
    fn from(why: Unmade) -> Self {
        match why {
            Unmade::Malformed => Count::Malformed,
            Unmade::TooLong => Count::TooLong,
            Unmade::Merged => Count::Merged,
        }
    }
}
