//! A driver that runs in a namespace, on a thread of its own.

use std::net::Ipv4Addr;
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::sched::{CloneFlags, setns};
use outflow_multicast::{
    Downstream, Event, Interface, Multicast, Neighbours, Options, Relayed, Snapshot, open_filter,
};
use outflow_routing::membership::{Family, Version};
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

use crate::net::Namespace;

/// How long something may take that comes in a moment, on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// What leaves out packets of which less is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Thins {
    Kernel,
    User,
}

/// A driver.
#[derive(Debug)]
pub(crate) struct Relay {
    pub(crate) multicast: Multicast,
    pub(crate) runtime: Handle,
    events: Receiver<Event>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Relay {
    /// Starts it on these interfaces, asking often.
    pub(crate) fn start(namespace: &Namespace, names: &[&str], proxy: Option<&str>) -> Self {
        Self::start_with((Version::V3, Thins::Kernel), namespace, (names, &[]), proxy)
    }

    /// The same of IPv6.
    pub(crate) fn start_v6(namespace: &Namespace, names: &[&str], proxy: Option<&str>) -> Self {
        Self::start_v6_as(Version::V3, namespace, names, proxy)
    }

    /// The same, asking by MLDv1 if it is to be the version before the last.
    pub(crate) fn start_v6_as(
        version: Version,
        namespace: &Namespace,
        names: &[&str],
        proxy: Option<&str>,
    ) -> Self {
        Self::start_of(Family::V6, (version, Thins::Kernel), namespace, (names, &[]), proxy)
    }

    /// The same, asking in this version.
    pub(crate) fn start_as(
        version: Version,
        namespace: &Namespace,
        names: &[&str],
        proxy: Option<&str>,
    ) -> Self {
        Self::start_with((version, Thins::Kernel), namespace, (names, &[]), proxy)
    }

    /// Starts it with what thins.
    pub(crate) fn start_thinning(
        family: Family,
        thins: Thins,
        namespace: &Namespace,
        names: &[&str],
    ) -> Self {
        Self::start_of(family, (Version::V3, thins), namespace, (names, &[]), None)
    }

    /// Starts it as a router of DVMRP, with hosts on some interfaces and neighbours on some.
    pub(crate) fn route(namespace: &Namespace, hosts: &[&str], neighbours: &[&str]) -> Self {
        Self::start_with((Version::V3, Thins::Kernel), namespace, (hosts, neighbours), None)
    }

    fn start_with(
        how: (Version, Thins),
        namespace: &Namespace,
        names: (&[&str], &[&str]),
        proxy: Option<&str>,
    ) -> Self {
        Self::start_of(Family::V4, how, namespace, names, proxy)
    }

    fn start_of(
        family: Family,
        (version, thins): (Version, Thins),
        namespace: &Namespace,
        (hosts, neighbours): (&[&str], &[&str]),
        proxy: Option<&str>,
    ) -> Self {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let (hosts, neighbours, proxy) = (owned(hosts), owned(neighbours), proxy.map(str::to_owned));
        let path = std::path::PathBuf::from("/run/netns").join(&namespace.name);
        let (said, events) = channel();
        let (ready, is_ready) = channel();
        let (stop, stopped) = oneshot::channel::<()>();
        let thread = std::thread::spawn(move || {
            let file = std::fs::File::open(path).expect("its name");
            setns(file, CloneFlags::CLONE_NEWNET).expect("root may");
            let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async {
                let filter = match thins {
                    Thins::Kernel => open_filter(),
                    Thins::User => Err("not asked for".to_owned()),
                };
                let (multicast, mut events) =
                    Multicast::start(Options { family, ..Options::default() }, filter).expect("privileges");
                set_up((family, version), &multicast, (&hosts, &neighbours), proxy.as_deref()).await;
                ready.send((multicast, Handle::current())).expect("somebody waits");
                let forward = async {
                    while let Some(event) = events.recv().await {
                        let _nobody_waits = said.send(event);
                    }
                };
                tokio::select! { () = forward => (), _ = stopped => () }
            });
        });
        let (multicast, runtime) = is_ready.recv().expect("it starts");
        Relay { multicast, runtime, events, stop: Some(stop), thread: Some(thread) }
    }

    /// Adds an interface with hosts.
    pub(crate) fn add(&self, namespace: &Namespace, name: &str) {
        let interface = namespace.run(|| Interface::find(Family::V4, name)).expect("an interface");
        let added = self.runtime.block_on(self.multicast.add(Downstream::new(interface)));
        added.expect("room for it");
    }

    /// Waits for an event, leaving out others.
    pub(crate) fn wait(&self, what: &str, is_it: impl Fn(&Event) -> bool) -> Event {
        let (end, mut others) = (Instant::now() + PATIENCE, Vec::new());
        while let Ok(event) = self.events.recv_timeout(end.saturating_duration_since(Instant::now())) {
            if is_it(&event) {
                return event;
            }
            others.push(event);
        }
        panic!("{what}: did not come, but {others:?}; {:?}", self.snapshot());
    }

    /// Says what of a group the relay sends itself.
    pub(crate) fn send(&self, group: Ipv4Addr, relayed: Relayed) {
        let groups = [(group.into(), relayed)].into();
        self.runtime.block_on(self.multicast.set_relayed(groups)).expect("it runs");
    }

    /// Asks for snapshots until one is as it is to be.
    pub(crate) fn wait_until(&self, what: &str, is_it: impl Fn(&Snapshot) -> bool) -> Snapshot {
        // Probes come each ten seconds.
        let end = Instant::now() + 3 * PATIENCE;
        loop {
            let snapshot = self.snapshot();
            if is_it(&snapshot) {
                return snapshot;
            }
            assert!(Instant::now() < end, "{what}: is not so, but {snapshot:#?}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// The events until now that no test has waited for.
    pub(crate) fn told(&self) -> Vec<Event> {
        self.events.try_iter().collect()
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        self.runtime.block_on(self.multicast.snapshot()).expect("it runs")
    }
}

async fn set_up(
    (family, version): (Family, Version),
    multicast: &Multicast,
    (hosts, neighbours): (&[String], &[String]),
    proxy: Option<&str>,
) {
    for name in hosts {
        let mut downstream = Downstream::new(Interface::find(family, name).expect("an interface"));
        downstream.settings.version = version;
        downstream.settings.query_interval = Duration::from_secs(2);
        downstream.settings.query_response = Duration::from_secs(1);
        downstream.settings.last_member_interval = Duration::from_millis(300);
        assert_eq!(multicast.add(downstream).await.expect("room for it"), []);
    }
    for name in neighbours {
        let interface = Interface::find(family, name).expect("an interface");
        assert_eq!(multicast.add_neighbours(Neighbours::new(interface)).await.expect("room for it"), []);
    }
    if let Some(name) = proxy {
        let interface = Interface::find(family, name).expect("an interface");
        multicast.set_upstream(Some(interface)).await.expect("room for it");
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _panicked = thread.join();
        }
    }
}
