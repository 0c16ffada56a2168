//! Many receivers in one thread.

use std::os::fd::AsFd;
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};

use super::open::{Receiver, Socket};
use super::stamped::{Batch, Stream};
use crate::figures::{Delays, delays};
use crate::media::wall_nanos;
use crate::receive::Meter;

/// RTSP sessions end when nothing is heard of a client for a minute.
const KEEP_ALIVE_EVERY: Duration = Duration::from_secs(15);
/// How long a round may take when nothing arrives.
const ROUND: u16 = 50;

/// What a crowd has counted over a period.
#[derive(Debug)]
pub struct Period {
    /// One meter a receiver, in the order in which they were given.
    pub meters: Vec<Meter>,
    /// From the source's stamp to arrival, of all receivers together.
    pub delays: Delays,
}

impl Period {
    /// The sum of a count over all receivers.
    pub fn sum(&self, count: impl Fn(&Meter) -> u64) -> u64 {
        self.meters.iter().map(count).sum()
    }

    /// Every receiver is still there and has got all that was sent, in order.
    ///
    /// # Errors
    /// The first that has not.
    pub fn all_unharmed(&self) -> Result<()> {
        for (number, meter) in self.meters.iter().enumerate() {
            ensure!(meter.ended.is_none(), "receiver {number} was cut: {:?}", meter.ended);
            ensure!(meter.perfect() && meter.datagrams > 0, "receiver {number} noticed: {}", meter.summary());
        }
        Ok(())
    }
}

enum Request {
    Split(mpsc::Sender<Period>),
    Add(Box<Receiver>),
    Replace(usize, Box<Receiver>),
}

/// Receivers that are being read. They leave when this is dropped.
#[derive(Debug)]
pub struct Crowd {
    requests: Option<mpsc::Sender<Request>>,
    thread: Option<JoinHandle<()>>,
}

impl Crowd {
    /// Begins to read. With a `nap`, sockets are looked at only that often: fewer wake-ups, and
    /// delays are right all the same, because the kernel stamps arrivals.
    pub fn start(receivers: Vec<Receiver>, nap: Duration) -> Result<Self> {
        let (requests, inbox) = mpsc::channel();
        let mut reading = Reading::new(receivers, nap)?;
        let thread = std::thread::spawn(move || reading.run(&inbox));
        Ok(Self { requests: Some(requests), thread: Some(thread) })
    }

    /// Adds one more.
    pub fn add(&self, receiver: Receiver) -> Result<()> {
        self.ask(Request::Add(Box::new(receiver)))
    }

    /// The receiver at this place has asked again: what it gets from now on is compared with what it got before, by the
    /// numbers of the source.
    pub fn replace(&self, place: usize, receiver: Receiver) -> Result<()> {
        self.ask(Request::Replace(place, Box::new(receiver)))
    }

    /// The counts since the last split, or since the start.
    pub fn split(&self) -> Result<Period> {
        let (answer, period) = mpsc::channel();
        self.ask(Request::Split(answer))?;
        period.recv().context("the receiving thread ended")
    }

    fn ask(&self, request: Request) -> Result<()> {
        let requests = self.requests.as_ref().context("the crowd has left")?;
        requests.send(request).ok().context("the receiving thread ended")
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        self.requests = None;
        if let Some(thread) = self.thread.take() {
            let _panicked = thread.join();
        }
    }
}

struct Reading {
    receivers: Vec<Receiver>,
    epoll: Epoll,
    delays: Delays,
    nap: Duration,
    stream: Stream,
}

impl Reading {
    fn new(receivers: Vec<Receiver>, nap: Duration) -> Result<Self> {
        let mut reading = Self {
            receivers: Vec::with_capacity(receivers.len()),
            epoll: Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?,
            delays: delays(),
            nap,
            stream: Stream::new(),
        };
        for receiver in receivers {
            reading.add(receiver)?;
        }
        Ok(reading)
    }

    fn add(&mut self, receiver: Receiver) -> Result<()> {
        self.receivers.push(receiver);
        self.watch(self.receivers.len() - 1)
    }

    fn replace(&mut self, place: usize, mut receiver: Receiver) -> Result<()> {
        let before = self.receivers.get_mut(place).context("there is none to replace")?;
        receiver.meter = before.meter.of_new_session();
        *before = receiver;
        self.watch(place)
    }

    fn watch(&mut self, place: usize) -> Result<()> {
        let receiver = &mut self.receivers[place];
        let early = std::mem::take(&mut receiver.early);
        if let Some(feed) = receiver.feeds.first_mut().filter(|_| !early.is_empty()) {
            feed.wire.take(&early, wall_nanos(), &mut receiver.meter, &mut self.delays);
        }
        for (index, feed) in receiver.feeds.iter().enumerate() {
            let event = EpollEvent::new(EpollFlags::EPOLLIN, (place << 8 | index) as u64);
            match &feed.socket {
                Socket::Udp(socket) => self.epoll.add(socket, event)?,
                Socket::Tcp(socket) => self.epoll.add(socket, event)?,
            }
        }
        Ok(())
    }

    fn run(&mut self, inbox: &mpsc::Receiver<Request>) {
        let mut events = vec![EpollEvent::empty(); 512];
        let mut batch = Batch::new();
        let mut kept_alive = Instant::now();
        loop {
            loop {
                match inbox.try_recv() {
                    Ok(Request::Split(answer)) => {
                        // What has arrived belongs to the period that ends.
                        self.read_ready(&mut events, 0, &mut batch);
                        let meters = self.receivers.iter_mut().map(|r| r.meter.split()).collect();
                        let delays = std::mem::replace(&mut self.delays, delays());
                        let _not_awaited = answer.send(Period { meters, delays });
                    }
                    Ok(Request::Add(receiver)) => {
                        if let Err(error) = self.add(*receiver) {
                            eprintln!("a receiver could not be added: {error:#}");
                        }
                    }
                    Ok(Request::Replace(place, receiver)) => {
                        if let Err(error) = self.replace(place, *receiver) {
                            eprintln!("a receiver could not be replaced: {error:#}");
                        }
                    }
                    Err(mpsc::TryRecvError::Disconnected) => return,
                    Err(mpsc::TryRecvError::Empty) => break,
                }
            }
            self.read_ready(&mut events, ROUND, &mut batch);
            std::thread::sleep(self.nap);
            if kept_alive.elapsed() > KEEP_ALIVE_EVERY {
                kept_alive = Instant::now();
                self.keep_alive();
            }
        }
    }

    fn read_ready(&mut self, events: &mut [EpollEvent], milliseconds: u16, batch: &mut Batch) {
        let mut timeout = EpollTimeout::from(milliseconds);
        while let Ok(count @ 1..) = self.epoll.wait(events, timeout) {
            for event in &events[..count] {
                let data = event.data() as usize;
                self.read(data >> 8, data & 0xFF, batch);
            }
            if count < events.len() {
                return;
            }
            timeout = EpollTimeout::ZERO;
        }
    }

    /// Reads what a feed has.
    fn read(&mut self, receiver: usize, feed: usize, batch: &mut Batch) {
        let receiver = &mut self.receivers[receiver];
        let feed = &mut receiver.feeds[feed];
        let ended = match &mut feed.socket {
            Socket::Udp(socket) => {
                batch.read(socket, &mut |bytes, arrived| {
                    feed.wire.take(bytes, arrived, &mut receiver.meter, &mut self.delays);
                });
                None
            }
            Socket::Tcp(socket) => match self.stream.read(socket) {
                Ok((bytes, arrived)) => {
                    feed.wire.take(bytes, arrived, &mut receiver.meter, &mut self.delays);
                    None
                }
                Err(why) => Some(why),
            },
        };
        if let Some(why) = ended {
            receiver.meter.ended = Some(why);
            if let Socket::Tcp(socket) = &feed.socket {
                let _gone_already = self.epoll.delete(socket.as_fd());
            }
        }
    }

    fn keep_alive(&mut self) {
        for receiver in &mut self.receivers {
            if let Some(control) = &mut receiver.control {
                let _seen_when_reading = control.keep_alive();
            }
        }
    }
}
