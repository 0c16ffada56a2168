//! The far end of a fan-out: a BPF program that counts what comes to each sink, and drops it.
//!
//! A thousand sinks that are sockets would cost more than the relay. Here a sink is an address and
//! a counter; nothing that comes to one is missed, and the delays are true (`labs/bpf/drain.c`).

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use aya::maps::{MapData, PerCpuArray};
use aya::programs::tc::qdisc_add_clsact;
use aya::programs::xdp::XdpMode;
use aya::programs::{SchedClassifier, TcAttachType, Xdp};
use aya::{Ebpf, EbpfLoader, Pod, include_bytes_aligned};

use crate::arrivals::{Arrivals, BUCKETS};
use crate::net::{Namespace, SINK_PORT, SINK_PORTS, SINKS_FIRST};
use crate::relay::PATIENCE;

static PROGRAM: &[u8] = include_bytes_aligned!(concat!(env!("OUT_DIR"), "/drain.o"));

/// Counters of what is not as it should be, in the order of `enum stat` in `drain.c`.
const STATS: usize = 2;

/// `struct count` of `drain.c`: packets of a sink on one core, those of them that came merged, and bytes.
type Count = [u64; 3];

/// Where a drain takes packets off a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hook {
    /// A tc classifier: packets come as the kernel's buffers, possibly several merged.
    Tc,
    /// XDP in the driver: a good end for XDP senders, a bad one for others (veth copies).
    Xdp,
}

/// What a drain takes.
struct Takes {
    sinks: usize,
    /// Sinks, the first ones, whose delays are looked at.
    timed: usize,
    /// Bytes of each datagram; 0 if they differ.
    payload: u16,
    /// Media of WebRTC alone.
    media: bool,
    /// Sinks, the first ones, to which media gets through.
    open: usize,
}

/// A drain at work. It is taken off its device when dropped.
pub struct Drain {
    /// Keeps the program and its place on the device.
    _program: Ebpf,
    sinks: usize,
    counts: PerCpuArray<MapData, Count>,
    delays: PerCpuArray<MapData, u64>,
    stats: PerCpuArray<MapData, u64>,
}

impl Drain {
    /// Puts a drain for this many sinks on a device. Their datagrams all have this payload, with a marker at
    /// its end; or, where none is said, any: then there are no delays.
    pub fn attach(
        namespace: &Namespace,
        device: &str,
        hook: Hook,
        sinks: usize,
        payload: Option<u16>,
    ) -> Result<Self> {
        Self::attach_timing(namespace, device, hook, (sinks, sinks), payload)
    }

    /// The same, but delays are those of the first `timed` sinks alone.
    pub fn attach_timing(
        namespace: &Namespace,
        device: &str,
        hook: Hook,
        (sinks, timed): (usize, usize),
        payload: Option<u16>,
    ) -> Result<Self> {
        let takes = Takes { sinks, timed, payload: payload.unwrap_or(0), media: false, open: 0 };
        Self::load(namespace, device, hook, takes)
    }

    /// Puts one for this many viewers by WebRTC on a device: packets of media are counted, of any size, and dropped.
    /// All else that comes to them gets through, and to the first `open` of them media, too, once it is counted.
    pub fn attach_media(namespace: &Namespace, device: &str, sinks: usize, open: usize) -> Result<Self> {
        let takes = Takes { sinks, timed: 0, payload: 0, media: true, open };
        Self::load(namespace, device, Hook::Tc, takes)
    }

    fn load(namespace: &Namespace, device: &str, hook: Hook, takes: Takes) -> Result<Self> {
        let number = |count| u32::try_from(count).context("there are more sinks than numbers");
        let Takes { sinks, timed, payload, media, open } = takes;
        let (count, timed, open) = (number(sinks)?, number(timed)?, number(open)?);
        let mut program = EbpfLoader::new()
            .override_global("first", &SINKS_FIRST.to_bits(), true)
            .override_global("sinks", &count, true)
            .override_global("timed", &timed, true)
            .override_global("port", &SINK_PORT, true)
            .override_global("ports", &u32::from(SINK_PORTS), true)
            .override_global("payload", &payload, true)
            .override_global("media", &u32::from(media), true)
            .override_global("open", &open, true)
            .map_max_entries("counts", count)
            .load(PROGRAM)?;
        namespace.run(|| match hook {
            Hook::Tc => attach_tc(&mut program, device),
            Hook::Xdp => attach_xdp(&mut program, device),
        })?;
        Ok(Self {
            sinks,
            counts: map(&mut program, "counts")?,
            delays: map(&mut program, "delays")?,
            stats: map(&mut program, "stats")?,
            _program: program,
        })
    }

    /// What came, once nothing has come for so long.
    ///
    /// # Errors
    /// Something comes and comes.
    pub fn quiet(&self, silence: Duration) -> Result<Arrivals> {
        let mut last = self.read()?;
        let (mut since, until) = (Instant::now(), Instant::now() + PATIENCE);
        while since.elapsed() < silence {
            ensure!(Instant::now() < until, "packets come and come, long after the last was sent");
            std::thread::sleep(silence / 10);
            let now = self.read()?;
            if now.total() != last.total() {
                since = Instant::now();
            }
            last = now;
        }
        Ok(last)
    }

    /// All that has come so far.
    pub fn read(&self) -> Result<Arrivals> {
        self.read_of(self.sinks)
    }

    /// All that has come so far to the first sinks, this many.
    pub fn read_of(&self, sinks: usize) -> Result<Arrivals> {
        let sinks = sinks.min(self.sinks);
        let (mut counts, mut bytes) = (Vec::with_capacity(sinks), Vec::with_capacity(sinks));
        let mut merged = 0;
        for sink in (0..).take(sinks) {
            let of_cores = self.counts.get(&sink, 0)?;
            let sum = |index: usize| of_cores.iter().map(|count| count[index]).sum::<u64>();
            counts.push(sum(0));
            merged += sum(1);
            bytes.push(sum(2));
        }
        Ok(Arrivals {
            counts,
            bytes,
            merged,
            strange: sums(&self.stats, STATS)?.iter().sum(),
            delays: sums(&self.delays, BUCKETS)?,
        })
    }
}

fn attach_tc(program: &mut Ebpf, device: &str) -> Result<()> {
    let program: &mut SchedClassifier =
        program.program_mut("drain_tc").context("no tc program")?.try_into()?;
    program.load()?;
    if program.attach(device, TcAttachType::Ingress).is_err() {
        // Before Linux 6.6, programs need a qdisc to be attached to.
        qdisc_add_clsact(device)?;
        program.attach(device, TcAttachType::Ingress)?;
    }
    Ok(())
}

fn attach_xdp(program: &mut Ebpf, device: &str) -> Result<()> {
    let program: &mut Xdp = program.program_mut("drain_xdp").context("no XDP program")?.try_into()?;
    program.load()?;
    program.attach(device, XdpMode::Driver)?;
    Ok(())
}

fn map<V: Pod>(program: &mut Ebpf, name: &str) -> Result<PerCpuArray<MapData, V>> {
    Ok(program.take_map(name).with_context(|| format!("no map {name}"))?.try_into()?)
}

fn sums(map: &PerCpuArray<MapData, u64>, count: usize) -> Result<Vec<u64>> {
    let sum = |key| Ok(map.get(&key, 0)?.iter().sum());
    (0..).take(count).map(sum).collect()
}
