//! The task that drives, and the handle of it.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::SystemTime;

use outflow_kernel::thin::Filter;
use outflow_packet::gmc::Described;
use outflow_routing::membership::Level;
use tokio::io::unix::AsyncFd;
use tokio::sync::{mpsc, oneshot};

use crate::driver::Driver;
use crate::error::Error;
use crate::event::{Event, Events, LevelReported, Snapshot};
use crate::forward::Relayed;
use crate::forwarder::Arrival;
use crate::interfaces::{Interface, Warning};
use crate::limits::COMMANDS_MAX;
use crate::neighbours::Neighbours;
use crate::options::Options;
use crate::querier::Downstream;
use crate::sys::{Changes, Listener, Routing, Watchable};

type Answer<T> = oneshot::Sender<T>;

enum Command {
    Add(Box<Downstream>, Answer<Result<(), Error>>),
    AddNeighbours(Neighbours, Answer<Result<(), Error>>),
    Upstream(Option<Interface>, Answer<Result<(), Error>>),
    Remove(String, Answer<Result<(), Error>>),
    Relayed(BTreeMap<IpAddr, Relayed>, Answer<()>),
    Received(BTreeMap<IpAddr, Level>, Answer<()>),
    Described(BTreeMap<IpAddr, Arc<Described>>, Answer<()>),
    SayLevel(IpAddr, IpAddr, Level, Answer<Result<LevelReported, Error>>),
    Snapshot(Answer<Snapshot>),
}

/// Multicast routing on some interfaces. It ends when the last handle is dropped, and the kernel then
/// forwards nothing any more.
#[derive(Debug, Clone)]
pub struct Multicast {
    commands: mpsc::Sender<Command>,
}

impl Multicast {
    /// Begins, without any interface, in the network namespace of the thread that calls. Sockets are opened
    /// by the runtime's threads, which are to be in the same. Where less than all of a group is wanted, the filter
    /// leaves out what is not; without, for this reason, user space does.
    ///
    /// # Errors
    ///
    /// If privileges lack, another program routes multicast here, or the kernel cannot; it says what to do.
    ///
    /// # Panics
    ///
    /// Outside a runtime of tokio with I/O and time.
    pub fn start(
        options: Options,
        filter: Result<Arc<Filter>, String>,
    ) -> Result<(Self, mpsc::Receiver<Event>), Error> {
        let kernel = Routing::open(options.family, options.table)?.watched().map_err(Error::Open)?;
        let (events, receiver) = Events::new();
        let seed = RandomState::new().hash_one("host");
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        // It wraps as the field of the messages does.
        let generation = since.map_or(0, |since| since.as_secs() as u32);
        let listener = Arc::new(Listener::open(options.family).map_err(Error::Open)?);
        let (driver, arrivals) =
            Driver::new(Arc::clone(&listener), events, (&options, filter), (seed, generation));
        let (commands, queue) = mpsc::channel(COMMANDS_MAX);
        let changes = Changes::open().and_then(Changes::watched).map_err(Error::Open)?;
        let listener = listener.watched().map_err(Error::Open)?;
        tokio::spawn(run(Sources { kernel, listener, changes, arrivals }, driver, queue));
        Ok((Multicast { commands }, receiver))
    }

    /// Adds an interface with hosts, and says what may keep packets away from it.
    ///
    /// # Errors
    ///
    /// If it takes part already, or the kernel refuses it.
    pub async fn add(&self, downstream: Downstream) -> Result<Vec<Warning>, Error> {
        let warnings = downstream.interface.warnings();
        self.ask(|answer| Command::Add(Box::new(downstream), answer)).await??;
        Ok(warnings)
    }

    /// Adds an interface on which routers of DVMRP are, or may be, and says what may keep packets away from it.
    /// It may have hosts, too. As soon as there is one, sources are where routes of DVMRP say, and all other
    /// interfaces' networks are told to neighbours.
    ///
    /// # Errors
    ///
    /// If it takes part so already, there is an interface upstream, or the kernel refuses it.
    pub async fn add_neighbours(&self, neighbours: Neighbours) -> Result<Vec<Warning>, Error> {
        let warnings = neighbours.interface.warnings();
        self.ask(|answer| Command::AddNeighbours(neighbours, answer)).await??;
        Ok(warnings)
    }

    /// Sets the interface on which is joined what is wanted on the others (RFC 4605), or that there is none,
    /// and says what may keep packets away from it.
    ///
    /// # Errors
    ///
    /// If it takes part already, there are interfaces with neighbours, or the kernel refuses it; then there is
    /// none.
    pub async fn set_upstream(&self, interface: Option<Interface>) -> Result<Vec<Warning>, Error> {
        let warnings = interface.as_ref().map(Interface::warnings).unwrap_or_default();
        self.ask(|answer| Command::Upstream(interface, answer)).await??;
        Ok(warnings)
    }

    /// Removes an interface with hosts, neighbours or both.
    ///
    /// # Errors
    ///
    /// If it does not take part.
    pub async fn remove(&self, name: &str) -> Result<(), Error> {
        self.ask(|answer| Command::Remove(name.to_owned(), answer)).await?
    }

    /// Says what the relay sends itself, in place of what was said before. Of all other groups the kernel
    /// forwards all, whatever the level, so that no host starves.
    ///
    /// # Errors
    ///
    /// If the runtime has ended.
    pub async fn set_relayed(&self, groups: BTreeMap<IpAddr, Relayed>) -> Result<(), Error> {
        self.ask(|answer| Command::Relayed(groups, answer)).await
    }

    /// Says which groups the relay receives, and the level that it wants of each, in place of what was said before:
    /// routers of DVMRP are asked for that, as for members. (Other routers hear the reports of this machine.)
    ///
    /// # Errors
    ///
    /// If the runtime has ended.
    pub async fn set_received(&self, groups: BTreeMap<IpAddr, Level>) -> Result<(), Error> {
        self.ask(|answer| Command::Received(groups, answer)).await
    }

    /// Says what packets of groups are that do not say it themselves, in place of what was said before.
    ///
    /// # Errors
    ///
    /// If the runtime has ended.
    pub async fn set_described(&self, groups: BTreeMap<IpAddr, Arc<Described>>) -> Result<(), Error> {
        self.ask(|answer| Command::Described(groups, answer)).await
    }

    /// A host says which level it wants of a group that it is a member of, by other means than a report: the
    /// caller knows which host it is. It holds until the host says something else, or is a member no more.
    ///
    /// # Errors
    ///
    /// If it is not known as a member, or says too much.
    pub async fn say_level(&self, host: IpAddr, group: IpAddr, level: Level) -> Result<LevelReported, Error> {
        self.ask(|answer| Command::SayLevel(host, group, level, answer)).await?
    }

    /// All that is known now.
    ///
    /// # Errors
    ///
    /// If the runtime has ended.
    pub async fn snapshot(&self) -> Result<Snapshot, Error> {
        self.ask(Command::Snapshot).await
    }

    async fn ask<T>(&self, command: impl FnOnce(Answer<T>) -> Command) -> Result<T, Error> {
        let (sender, receiver) = oneshot::channel();
        self.commands.send(command(sender)).await.map_err(|_| Error::Ended)?;
        receiver.await.map_err(|_| Error::Ended)
    }
}

/// What the driver is to be told of.
#[derive(Debug)]
struct Sources {
    kernel: AsyncFd<Routing>,
    listener: AsyncFd<Arc<Listener>>,
    changes: AsyncFd<Changes>,
    arrivals: mpsc::Receiver<Arrival>,
}

async fn run(sources: Sources, mut driver: Driver, mut commands: mpsc::Receiver<Command>) {
    let Sources { kernel, listener, changes, mut arrivals } = sources;
    loop {
        let deadline = tokio::time::Instant::from_std(driver.next_timeout());
        tokio::select! {
            ready = kernel.readable() => {
                // Only a runtime that ends fails here.
                let Ok(mut guard) = ready else { return };
                if driver.read(kernel.get_ref()) {
                    guard.clear_ready();
                }
            }
            ready = listener.readable() => {
                let Ok(mut guard) = ready else { return };
                if driver.listen(kernel.get_ref()) {
                    guard.clear_ready();
                }
            }
            Some(arrival) = arrivals.recv() => driver.handle_arrival(kernel.get_ref(), arrival),
            changed = changes.readable() => {
                let Ok(mut guard) = changed else { return };
                if changes.get_ref().take() {
                    guard.clear_ready();
                }
                driver.handle_interfaces_changed();
            }
            command = commands.recv() => match command {
                Some(command) => carry_out(&mut driver, kernel.get_ref(), command),
                None => break,
            },
            () = tokio::time::sleep_until(deadline) => (),
        }
        driver.settle(kernel.get_ref());
    }
    driver.end(kernel.get_ref());
}

/// The caller may not want the answer any more.
fn carry_out(driver: &mut Driver, kernel: &Routing, command: Command) {
    match command {
        Command::Add(downstream, answer) => _ = answer.send(driver.add(kernel, *downstream)),
        Command::AddNeighbours(neighbours, answer) => {
            _ = answer.send(driver.add_neighbours(kernel, neighbours));
        }
        Command::Upstream(interface, answer) => _ = answer.send(driver.set_upstream(kernel, interface)),
        Command::Remove(name, answer) => _ = answer.send(driver.remove(kernel, &name)),
        Command::Relayed(groups, answer) => {
            driver.set_relayed(groups);
            let _nobody_waits = answer.send(());
        }
        Command::Received(groups, answer) => {
            driver.set_received(groups);
            let _nobody_waits = answer.send(());
        }
        Command::Described(groups, answer) => {
            driver.set_described(kernel, groups);
            let _nobody_waits = answer.send(());
        }
        Command::SayLevel(host, group, level, answer) => {
            // It is about what the host has reported before.
            let _is_all = (driver.read(kernel), driver.listen(kernel));
            _ = answer.send(driver.say_level(host, group, level));
        }
        Command::Snapshot(answer) => _ = answer.send(driver.snapshot()),
    }
}
