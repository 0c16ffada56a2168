//! Forwarding in user space, where the kernel cannot: from and to interfaces that have no number in its table of
//! multicast routing, which has room for [`VIFS_MAX`](crate::sys::VIFS_MAX).
//!
//! The driver sets where packets go as it does in the kernel's table, and is told of packets of which nothing was
//! set ([`Arrival`]), as the kernel tells by upcalls. A thread ([`engine`]) moves them.

mod arrival;
mod counts;
mod engine;
mod filtered;
mod packet;
mod table;
#[cfg(feature = "testing")]
pub mod testing;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;
use std::sync::mpsc as thread;
use std::thread::JoinHandle;

use nix::sys::eventfd::{EfdFlags, EventFd};
use outflow_kernel::thin;
use outflow_kernel::thin::{Filter, Seat};
use outflow_packet::Level;
use outflow_packet::gmc::Described;
use outflow_routing::forwarding::Pair;
use outflow_routing::membership;
use outflow_routing::membership::Family;
use tokio::sync::mpsc;

pub(crate) use self::arrival::Arrival;
use self::counts::Counters;
pub use self::counts::UserCounts;
use self::engine::{Command, Engine};
use self::filtered::{Filtered, Places};
use self::table::{Entry, FlowCounter};
use crate::clock::Clock;
use crate::forward::Outputs;
use crate::limits::{ARRIVALS_MAX, FILTER_TRACKS_MAX, FLOWS_MAX};
use crate::sys::{FlowCounts, Tap};

/// An interface from which packets are read.
#[derive(Debug)]
struct Parent {
    tap: Arc<Tap>,
    is_ours: bool,
    /// Of one of the kernel's, what is read there.
    pairs: BTreeSet<Pair>,
    /// The kernel's filter sits there, and says what is read.
    seat: Option<Seat>,
}

#[derive(Debug)]
struct Running {
    commands: thread::Sender<Command>,
    wake: Arc<EventFd>,
    thread: Option<JoinHandle<()>>,
}

impl Running {
    fn say(&self, command: Command) {
        // The thread ends when it is told to, and no command follows then.
        let _ended = self.commands.send(command);
        let _it_is_awake = self.wake.write(1);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.say(Command::Stop);
        if let Some(thread) = self.thread.take() {
            let _panicked = thread.join();
        }
    }
}

/// The driver's handle.
#[derive(Debug)]
pub(crate) struct Forwarder {
    clock: Clock,
    family: Family,
    arrivals: mpsc::Sender<Arrival>,
    counters: Arc<Counters>,
    /// What thins in the kernel; or why nothing does.
    filtered: Result<Filtered, String>,
    /// Why it could not sit at an interface, when it was last tried.
    unseated: Option<String>,
    /// Once there is something to forward.
    running: Option<Running>,
    parents: BTreeMap<u32, Parent>,
    flows: BTreeMap<Pair, (u32, Arc<FlowCounter>)>,
}

impl Forwarder {
    /// One that forwards nothing yet, and where it will tell what comes.
    pub(crate) fn new(
        clock: Clock,
        family: Family,
        filter: Result<Arc<Filter>, String>,
    ) -> (Self, mpsc::Receiver<Arrival>) {
        let (arrivals, receiver) = mpsc::channel(ARRIVALS_MAX);
        let (counters, parents, flows) = (Arc::default(), BTreeMap::new(), BTreeMap::new());
        let filtered = filter.map(|filter| Filtered::new(family, filter));
        let forwarder = Forwarder {
            clock,
            family,
            arrivals,
            counters,
            filtered,
            unseated: None,
            running: None,
            parents,
            flows,
        };
        (forwarder, receiver)
    }

    fn running(&mut self) -> io::Result<&Running> {
        if self.running.is_none() {
            let wake = Arc::new(EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK)?);
            // bounded: one for each change of what is forwarded where, which control decides.
            let (commands, queue) = thread::channel();
            let counters = Arc::clone(&self.counters);
            let filter = self.filtered.as_ref().ok().map(|filtered| Arc::clone(filtered.filter()));
            let says = (queue, Arc::clone(&wake));
            let engine = Engine::new(self.clock, says, self.arrivals.clone(), (counters, filter))?;
            let builder = std::thread::Builder::new().name("multicast".to_owned());
            // What it moves packets between is open: it needs no privileges.
            let thread = Some(outflow_privilege::apart(|| builder.spawn(move || engine.run()))??);
            self.running = Some(Running { commands, wake, thread });
        }
        self.running.as_ref().ok_or_else(|| io::ErrorKind::Other.into())
    }

    fn say(&self, command: Command) {
        if let Some(running) = &self.running {
            running.say(command);
        }
    }

    /// Reads all packets of an interface that the kernel does not forward from, and tells of them.
    pub(crate) fn watch(&mut self, interface: u32) -> io::Result<()> {
        self.open(interface, true)
    }

    fn open(&mut self, interface: u32, is_ours: bool) -> io::Result<()> {
        let tap = Arc::new(Tap::open(self.family, interface, is_ours)?);
        let seat = if is_ours { None } else { self.sit(interface, &tap) };
        self.running()?.say(Command::Watch { interface, tap: Arc::clone(&tap), is_ours });
        self.parents.insert(interface, Parent { tap, is_ours, pairs: BTreeSet::new(), seat });
        Ok(())
    }

    /// Has the kernel's filter sit at an interface, if it is one of Ethernet and the kernel can.
    fn sit(&mut self, interface: u32, tap: &Tap) -> Option<Seat> {
        let filtered = self.filtered.as_ref().ok()?;
        tap.ethernet(interface)?;
        match filtered.sit(interface) {
            Ok(seat) => tap.hear_what_is_given(filtered.filter().hear()).is_ok().then_some(seat),
            Err(error) => {
                self.unseated = Some(error);
                None
            }
        }
    }

    /// Reads nothing there any more. What came from there is to be removed before.
    pub(crate) fn unwatch(&mut self, interface: u32) {
        if self.parents.remove(&interface).is_some() {
            self.say(Command::Unwatch { interface });
        }
    }

    /// Sets where packets of a pair go that come in by `parent`; some interfaces had all of them before, and packets
    /// that do not say what they are may be described. If `parent` is the kernel's, it is read as long as packets from
    /// there go somewhere.
    pub(crate) fn set_flow(
        &mut self,
        pair: Pair,
        parent: u32,
        (outputs, had_all, described): (&Outputs, &[u32], Arc<Described>),
    ) -> io::Result<()> {
        if self.flows.get(&pair).is_some_and(|(before, _)| *before != parent) {
            self.remove_flow(pair);
        }
        if !self.parents.contains_key(&parent) {
            self.open(parent, false)?;
        }
        if let Some(from) = self.parents.get_mut(&parent).filter(|from| !from.is_ours) {
            from.pairs.insert(pair);
            from.hear()?;
        }
        let places = self.filter_flow(pair, parent, (outputs, had_all, &described))?;
        let counts = self.flows.entry(pair).or_insert_with(|| (parent, Arc::default()));
        let (whole, counts) = (outputs.whole.as_slice().into(), Arc::clone(&counts.1));
        let thinned = outputs.thinned.iter().map(|(to, level)| (*to, packets_level(*level))).collect();
        let had_all = had_all.to_vec();
        let entry = Entry { parent, whole, thinned, had_all, described, counts, places };
        self.say(Command::Set(pair, entry));
        Ok(())
    }

    /// Has the kernel's filter forward a pair, where it sits, if that is all that there is to do.
    fn filter_flow(
        &mut self,
        pair: Pair,
        parent: u32,
        (outputs, had_all, described): (&Outputs, &[u32], &Described),
    ) -> io::Result<Option<Places>> {
        let Some(from) = self.parents.get(&parent).filter(|from| from.seat.is_some()) else {
            return Ok(None);
        };
        let prioritized = described.prioritized().filter(|_| outputs.whole.is_empty());
        let wanted = |(to, level): &(u32, _)| (*to, packets_level(*level), had_all.contains(to));
        let wanted = outputs.thinned.iter().filter(|_| prioritized.is_some()).map(wanted).collect::<Vec<_>>();
        let wanted = (&*wanted, prioritized.as_deref().unwrap_or_default());
        let ethernet = |to| from.tap.ethernet(to);
        match &mut self.filtered {
            Ok(filtered) => filtered.set((pair, parent), wanted, ethernet),
            Err(_) => Ok(None),
        }
    }

    /// Forwards a pair no more, if it did.
    pub(crate) fn remove_flow(&mut self, pair: Pair) {
        let Some((parent, _)) = self.flows.remove(&pair) else { return };
        if let Ok(filtered) = &mut self.filtered {
            filtered.remove(pair);
        }
        self.say(Command::Remove(pair));
        let Some(from) = self.parents.get_mut(&parent).filter(|from| !from.is_ours) else { return };
        from.pairs.remove(&pair);
        if from.pairs.is_empty() {
            self.unwatch(parent);
        } else {
            // What is read needlessly is left alone.
            let _reads_more = from.hear();
        }
    }

    /// Whether the kernel's filter forwards a pair.
    pub(crate) fn is_filtered(&self, pair: Pair) -> bool {
        self.filtered.as_ref().is_ok_and(|filtered| filtered.has(pair))
    }

    /// What was counted of a pair since it was set first.
    pub(crate) fn flow_counts(&self, pair: Pair) -> FlowCounts {
        self.flows.get(&pair).map(|(_, counts)| counts.read()).unwrap_or_default()
    }

    pub(crate) fn counts(&self) -> UserCounts {
        self.counters.read()
    }

    /// What the kernel's filter has forwarded.
    pub(crate) fn filter_counts(&self) -> thin::Counts {
        self.filtered.as_ref().map(|filtered| filtered.counts()).unwrap_or_default()
    }

    /// Why there is no such filter, if there is none.
    pub(crate) fn filter_refused(&self) -> Option<&String> {
        self.filtered.as_ref().err().or(self.unseated.as_ref())
    }
}

/// Loads what thins packets in the kernel. It takes privileges that are needed for nothing else here.
///
/// # Errors
/// What is missing, with what to do about it.
pub fn open_filter() -> Result<Arc<Filter>, String> {
    let filter = Filter::open(FLOWS_MAX as u32, FILTER_TRACKS_MAX);
    filter.map(Arc::new).map_err(|error| error.to_string())
}

/// The level as packets are judged by it: there are as many.
fn packets_level(level: membership::Level) -> Level {
    Level::new(level.number()).unwrap_or_default()
}

impl Parent {
    fn hear(&self) -> io::Result<()> {
        if self.seat.is_some() {
            return Ok(());
        }
        let pairs = self.pairs.iter().map(|pair| (pair.source, pair.group)).collect::<Vec<_>>();
        self.tap.hear(&pairs)
    }
}
