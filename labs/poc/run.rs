//! One run: the same units through all transports at the same time, over the same path.

use std::io::{ErrorKind, Read, Write};
use std::net::UdpSocket;
use std::process::{ChildStdin, ChildStdout};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use nix::sys::signal::Signal;
use outflow_labs::figures::progress;
use outflow_labs::net::Namespace;
use outflow_labs::process::{Running, be_preferred};
use outflow_labs::scene::wait_for;

use crate::path::{Counts, Path, Way};
use crate::stream::Stream;
use crate::transport::{Form, Terms, Transport};
use crate::wire::{Bytes, Pieces, UNIT_HEADER, cut, for_poc};

/// Until a program that was started listens.
const LISTENS: Duration = Duration::from_millis(500);
/// From when all are connected until media flows.
const SETTLES: Duration = Duration::from_secs(1);
/// Behind the last unit and its latency, for what comes late.
const GRACE: Duration = Duration::from_secs(1);

/// How long a program that is asked to end may take.
const ENDS: Duration = Duration::from_secs(2);

/// What a run is about.
#[derive(Debug, Clone)]
pub(crate) struct Conditions<'a> {
    pub(crate) stream: &'a Arc<Stream>,
    pub(crate) transports: &'a [Transport],
    pub(crate) terms: Terms<'a>,
    /// Either way.
    pub(crate) delay: Duration,
    /// What is lost, from 0 to 1.
    pub(crate) loss: f64,
    pub(crate) seed: u64,
}

/// What became of the units with one transport.
#[derive(Debug)]
pub(crate) struct Arrivals {
    pub(crate) transport: Transport,
    /// When each unit was whole at the receiver, in the order of delivery.
    pub(crate) delivered: Vec<(Instant, usize)>,
    /// How late the lab was at most to give it a unit; of pipes it is not known whose doing that is.
    pub(crate) behind: Duration,
    /// Processor time of both ends.
    pub(crate) cpu: Duration,
}

/// All of a run.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) began: Instant,
    pub(crate) arrivals: Vec<Arrivals>,
    pub(crate) counts: Counts,
}

/// A transport's programs, and the threads of the lab that give to them and take from them.
struct Leg {
    transport: Transport,
    sender: Running,
    receiver: Running,
    entry: Option<Entry>,
    sink: JoinHandle<Result<Vec<(Instant, usize)>>>,
}

enum Entry {
    Datagrams(UdpSocket),
    Pipe(ChildStdin, Form),
}

/// Runs it.
pub(crate) fn run(conditions: &Conditions) -> Result<Outcome> {
    let path = Path::new(conditions.delay, conditions.seed)?;
    let over = Arc::new(AtomicBool::new(false));
    let legs = conditions.transports.iter().map(|transport| Leg::start(*transport, &path, conditions, &over));
    let mut legs = legs.collect::<Result<Vec<_>>>()?;
    wait_for("all are connected", || {
        for leg in &mut legs {
            leg.lives()?;
        }
        let counts = path.counts()?;
        let there_and_back =
            |transport| [Way::There, Way::Back].iter().all(|way| counts.contains_key(&(transport, *way)));
        Ok(legs.iter().all(|leg| !leg.transport.connects() || there_and_back(leg.transport)))
    })?;
    std::thread::sleep(SETTLES);

    let began = Instant::now() + Duration::from_millis(200);
    let lasts = Stream::due(conditions.stream.units().count()) + conditions.delay + conditions.terms.latency;
    path.storm(conditions.loss, began)?;
    let before = legs.iter().map(Leg::processor_time).collect::<Result<Vec<_>>>()?;
    let bytes_before = path.counts()?;
    let feeders: Vec<_> = legs
        .iter_mut()
        .map(|leg| {
            let (entry, stream) = (leg.entry.take(), Arc::clone(conditions.stream));
            std::thread::spawn(move || entry.map(|entry| feed(entry, &stream, began)))
        })
        .collect();
    std::thread::sleep((began + lasts + GRACE).saturating_duration_since(Instant::now()));

    let counts = less(path.counts()?, &bytes_before);
    let after = legs.iter().map(Leg::processor_time).collect::<Result<Vec<_>>>()?;
    over.store(true, Ordering::Relaxed);
    let cpus = before.into_iter().zip(after).map(|(before, after)| after.saturating_sub(before));
    let mut arrivals = Vec::new();
    for ((leg, cpu), feeder) in legs.into_iter().zip(cpus).zip(feeders) {
        arrivals.push(leg.end(cpu, feeder)?);
    }
    Ok(Outcome { began, arrivals, counts })
}

/// What was counted since. Nothing is lost before the storm.
fn less(mut counts: Counts, before: &Counts) -> Counts {
    for (flow, count) in &mut counts {
        if let Some(before) = before.get(flow) {
            count.packets -= before.packets;
            count.bytes -= before.bytes;
        }
    }
    counts
}

impl Leg {
    fn start(
        transport: Transport,
        path: &Path,
        conditions: &Conditions,
        over: &Arc<AtomicBool>,
    ) -> Result<Self> {
        let place =
            |program: outflow_labs::process::Program, namespace| program.within(namespace).preferred();
        let receiver = place(transport.receiver(&conditions.terms)?, &path.sink);
        let sender = place(transport.sender(&conditions.terms)?, &path.source);
        progress(sender.shown());
        let over = Arc::clone(over);
        let (form, skipped) = match transport.form() {
            Form::Units => (Form::Units, UNIT_HEADER),
            form => (form, 0),
        };
        let (sender, receiver, entry, sink) = if form == Form::Datagrams {
            let socket = bind(&path.sink, transport)?;
            let sink = std::thread::spawn(move || take_datagrams(&socket, &over));
            let receiver = receiver.start()?;
            std::thread::sleep(LISTENS);
            let socket = path.source.run(|| UdpSocket::bind("127.0.0.1:0"))?;
            socket.connect(transport.local())?;
            (sender.start()?, receiver, Entry::Datagrams(socket), sink)
        } else {
            let (receiver, _nothing_to_say, output) = receiver.start_piped()?;
            let sink = std::thread::spawn(move || take_bytes(output, skipped));
            std::thread::sleep(LISTENS);
            let (sender, input, _says_nothing) = sender.start_piped()?;
            (sender, receiver, Entry::Pipe(input, form), sink)
        };
        Ok(Leg { transport, sender, receiver, entry: Some(entry), sink })
    }

    /// Ends the programs; what they have delivered.
    fn end(mut self, cpu: Duration, feeder: JoinHandle<Option<(Entry, Duration)>>) -> Result<Arrivals> {
        self.lives()?;
        if self.transport == Transport::Poc {
            // It may want to write its statistics.
            for program in [&mut self.sender, &mut self.receiver] {
                let _ended = program.signal(Signal::SIGTERM).and_then(|()| program.wait(ENDS));
            }
        }
        drop((self.sender, self.receiver));
        let fed = feeder.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let (_entry, behind) = fed.context("it was fed once")?;
        let delivered = self.sink.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        Ok(Arrivals { transport: self.transport, delivered, behind, cpu })
    }

    fn lives(&mut self) -> Result<()> {
        for program in [&mut self.sender, &mut self.receiver] {
            ensure!(program.alive(), "{} has ended: {}", self.transport.name(), program.account());
        }
        Ok(())
    }

    fn processor_time(&self) -> Result<Duration> {
        Ok(self.sender.processor_time()? + self.receiver.processor_time()?)
    }
}

/// Where a receiving program gives datagrams back.
fn bind(namespace: &Namespace, transport: Transport) -> Result<UdpSocket> {
    let socket = namespace.run(|| UdpSocket::bind(transport.local()))?;
    // Only so that the end of the run is noticed.
    socket.set_read_timeout(Some(Duration::from_millis(200)))?;
    Ok(socket)
}

/// Gives all units to a transport when they are due, and says how late that was at most. A pipe that is full is the
/// transport's doing: it is waited for, and the next units are given at once. The entry is given back: programs are
/// not to end before it is over.
fn feed(mut entry: Entry, stream: &Stream, began: Instant) -> (Entry, Duration) {
    be_preferred();
    let mut behind = Duration::ZERO;
    for (unit, sealed) in stream.units().enumerate() {
        let due = began + Stream::due(unit);
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        let late = due.elapsed();
        match &mut entry {
            Entry::Datagrams(socket) => {
                behind = behind.max(late);
                for datagram in cut(sealed) {
                    let _nobody_there = socket.send(&datagram);
                }
            }
            Entry::Pipe(pipe, form) => {
                let written = match form {
                    Form::Units => pipe.write_all(&for_poc(unit, sealed)).and_then(|()| pipe.flush()),
                    _ => pipe.write_all(sealed),
                };
                // It was ended while it was behind.
                if written.is_err_and(|error| error.kind() == ErrorKind::BrokenPipe) {
                    break;
                }
            }
        }
    }
    (entry, behind)
}

fn take_datagrams(socket: &UdpSocket, over: &AtomicBool) -> Result<Vec<(Instant, usize)>> {
    be_preferred();
    let (mut pieces, mut delivered, mut datagram) = (Pieces::default(), Vec::new(), [0; 2048]);
    while !over.load(Ordering::Relaxed) {
        match socket.recv(&mut datagram) {
            Ok(bytes) => {
                delivered.extend(pieces.take(&datagram[..bytes]).map(|unit| (Instant::now(), unit)));
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(error) => return Err(error).context("cannot receive datagrams"),
        }
    }
    Ok(delivered)
}

fn take_bytes(mut output: ChildStdout, skipped: usize) -> Result<Vec<(Instant, usize)>> {
    be_preferred();
    let (mut units, mut delivered, mut bytes) = (Bytes::new(skipped), Vec::new(), vec![0; 1 << 16]);
    loop {
        let read = output.read(&mut bytes)?;
        let now = Instant::now();
        delivered.extend(units.take(&bytes[..read]).into_iter().map(|unit| (now, unit)));
        if read == 0 {
            return Ok(delivered);
        }
    }
}
