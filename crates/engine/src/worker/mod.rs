//! A worker: a thread that owns streams, their sockets and their receivers' connections.
//!
//! It waits for packets, commands and the streams' own deadlines; nothing it owns is shared. Of a
//! stream that is too large for one, others hold replicas (see [`share`]).
//!
//! Its parts, [`Watch`], [`Streams`], [`Paths`], [`Links`], [`Tasks`] and [`Snapshot`], do not know it: what
//! one has to do with another, it is given, or answers.

mod agenda;
mod commands;
mod demand;
mod depart;
mod feedback;
mod goodbye;
mod handle;
mod ingest;
mod links;
mod negotiation;
mod paths;
mod peers;
mod reporter;
mod reports;
mod requests;
mod rtcp;
mod sender;
mod serve;
mod services;
mod share;
mod shares;
mod sink;
mod snapshot;
mod source;
mod stream;
mod streams;
mod tasks;
mod timers;
mod transmit;
mod udp_ports;
mod upgrade;
mod watch;

use std::io;
use std::sync::Arc;
use std::sync::mpsc::Receiver as CommandReceiver;

use outflow_media::Time;
use outflow_relay::Priority;
use outflow_udp::Parcels;
use outflow_vital::Beat;
use rustix::event::epoll;

pub use handle::{StartingWorker, WorkerHandle};
use links::Links;
use paths::Paths;
pub use share::{OwnerEnd, ReplicaEnd, Upward};
use shares::Shares;
use snapshot::Snapshot;
use stream::LiveStream;
use streams::Streams;
use tasks::{Task, Tasks};
use watch::{Watch, Watched};

use crate::bell::Bell;
use crate::calls::Calls;
use crate::clock::Clock;
use crate::limits::{BEAT_EVERY, EVENTS, WORK_ROUND};
use crate::message::{Command, Demanders, StreamId, WorkerState};
use crate::receive::{PortPair, Receiver};

/// Everything that one thread owns.
struct Worker {
    clock: Clock,
    beat: Arc<Beat>,
    bell: Arc<Bell>,
    commands: CommandReceiver<Command>,
    calls: Calls,
    /// Streams for which something may have been put down.
    called: Vec<StreamId>,
    watch: Watch,
    receiver: Receiver,
    streams: Streams,
    paths: Paths,
    links: Links,
    tasks: Tasks,
    snapshot: Snapshot,
    shares: Shares,
    running: bool,
    /// Whether another process has all that it had.
    has_vanished: bool,
}

impl Worker {
    /// One that has no streams yet, and serves receivers from this pair of ports.
    fn open(
        (clock, beat): (Clock, Arc<Beat>),
        bell: Arc<Bell>,
        (commands, calls, parcels): (CommandReceiver<Command>, Calls, Parcels),
        published: Arc<arc_swap::ArcSwap<WorkerState>>,
        pair: PortPair,
        (paths, limits): (outflow_config::Fanout, outflow_config::Limits),
        told: Demanders,
    ) -> io::Result<Self> {
        let mut watch = Watch::new(limits.poll)?;
        watch.add(&*bell, epoll::EventFlags::IN)?.insert(Watched::Bell);
        let paths = Paths::open(&mut watch, pair, parcels, (paths, limits.receivers))?;
        let now = clock.now();
        beat.strike(now);
        beat.is_through(now);
        Ok(Worker {
            clock,
            beat,
            bell,
            commands,
            calls,
            called: Vec::new(),
            watch,
            receiver: Receiver::new(),
            streams: Streams::new(told),
            paths,
            links: Links::default(),
            tasks: Tasks::new(&limits),
            snapshot: Snapshot::new(published),
            shares: Shares::default(),
            running: true,
            has_vanished: false,
        })
    }

    /// Serves until told to stop.
    fn run(&mut self) -> io::Result<()> {
        let mut events = Vec::with_capacity(EVENTS);
        while self.running {
            let due = self.due();
            let is_through = self.tasks.is_empty();
            self.watch.wait(&self.clock, due, &mut events)?;
            // What comes to sources is served when it has been read: nothing else is to be looked for.
            let now = self.clock.now();
            if is_through {
                self.beat.is_through(now);
            }
            self.beat.strike(now);
            let mut anything = now >= due;
            for event in &events {
                let token = event.data.u64() as usize;
                anything |= !matches!(self.watch.get(token), Some(Watched::Source { .. }));
                self.event(token, event.flags);
                // That reads the sockets, and goes on with the numbers of packets.
                if self.has_vanished {
                    return Ok(());
                }
            }
            if anything {
                self.plan();
            }
            self.work();
        }
        Ok(())
    }

    /// Until when nothing has to be done unless something comes in. What is found out on the way is
    /// not looked for when it has come.
    fn due(&mut self) -> Time {
        let mut due = self.snapshot.due().min(self.paths.due()).min(self.beat.due(BEAT_EVERY));
        due = due.min(self.links.due().unwrap_or(due));
        due = due.min(self.streams.due().unwrap_or(due));
        self.tasks.set_highest(self.streams.highest());
        if self.tasks.is_empty() { due } else { Time::ZERO }
    }

    /// Puts down what has to be done for streams to which something has happened or whose time has
    /// come, and for the snapshot.
    fn plan(&mut self) {
        let now = self.clock.now();
        let tasks = &mut self.tasks;
        self.streams.plan(now, |index, stream| plan_stream(tasks, now, index, stream));
        for link in self.links.are_due(now) {
            self.tasks.add(Priority::High, Task::Depart(link));
        }
        self.paths.plan(now, &mut self.tasks);
        if self.snapshot.is_due(now) {
            self.tasks.add(self.snapshot.class(now), Task::Snapshot);
        }
    }

    /// Works until nothing is left to do, or it is time to look for new packets.
    fn work(&mut self) {
        let began = self.clock.now();
        let mut now = began;
        while let Some((class, task)) = self.tasks.next(now) {
            match task {
                Task::Receive { token, .. } => self.receive(token, class),
                Task::Serve(stream) => self.serve(stream, class),
                Task::Depart(link) => self.depart(link),
                Task::Transmit(stream) => self.transmit(stream, class),
                Task::Report(stream) => self.go_on_with_reports(stream),
                Task::Snapshot => self.show(),
            }
            now = self.clock.now();
            if now >= began + WORK_ROUND / self.tasks.parts(class) {
                break;
            }
            // What was received is to be served before anything of a lower class.
            if let Task::Receive { stream: index, .. } = task
                && let Some(stream) = self.streams.get_mut(index)
            {
                plan_stream(&mut self.tasks, now, index, stream);
            }
        }
        self.tasks.rest(now);
    }

    /// Goes on with the snapshot.
    fn show(&mut self) {
        let now = self.clock.now();
        let of_paths = (self.paths.fanout(), self.paths.strangers());
        let worked_us = |stream| self.tasks.worked_us(stream);
        if self.snapshot.go_on(now, &mut self.streams, &mut self.links, of_paths, worked_us) {
            self.tasks.add(self.snapshot.class(now), Task::Snapshot);
        }
    }

    /// Takes what was put down for streams; what is left is taken in the next round.
    fn answer_calls(&mut self) {
        self.calls.take(&mut self.called);
        if self.streams.take_put_down(&self.clock, &mut self.called) {
            self.bell.ring();
        }
    }

    /// Something may have been put down for a stream before it was known what that is for.
    fn look_again(&mut self, stream: StreamId) {
        self.called.push(stream);
        self.bell.ring();
    }

    fn event(&mut self, token: usize, flags: epoll::EventFlags) {
        match self.watch.get(token) {
            Some(Watched::Bell) => {
                self.bell.clear();
                self.obey();
                self.answer_calls();
                self.take_parcels();
            }
            Some(Watched::Source { stream, .. }) => {
                let stream = *stream;
                let class = self.streams.get(stream).map_or(Priority::Normal, LiveStream::class);
                self.tasks.add(class, Task::Receive { token, stream });
            }
            // An error shows itself at the next packet; it is waited for once.
            Some(&Watched::Port { port }) => self.port_writable(port),
            Some(&Watched::PeerPort { port }) => {
                self.paths.peers().port_writable(&mut self.watch, port);
                self.paths.peers().plan(&mut self.tasks);
            }
            Some(Watched::Routes) => self.paths.routes_changed(),
            Some(Watched::Rtcp { .. }) => self.receive_rtcp(token),
            Some(&Watched::Connection { stream, sink }) => self.connection_event(stream, sink, flags),
            None => {}
        }
    }
}

/// Puts down what has to be done for a stream, if something has happened to it or its time has come.
fn plan_stream(tasks: &mut Tasks, now: Time, index: usize, stream: &mut LiveStream) {
    if !core::mem::take(&mut stream.touched) && stream.wake.is_none_or(|wake| wake > now) {
        return;
    }
    stream.tell_class();
    // One task sees to what is of no class: deadlines, events, and what other workers are handed.
    stream.wake = None;
    let first = stream.class();
    tasks.add(first, Task::Serve(index));
    for class in stream.core.classes().filter(|class| *class != first) {
        tasks.add(class, Task::Serve(index));
    }
}
