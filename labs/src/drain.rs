//! The far end of a fan-out: a BPF program that counts what comes to each sink, and drops it.
//!
//! A thousand sinks that are sockets would cost more than the relay. Here a sink is an address and
//! a counter; nothing that comes to one is missed, and the delays are true (`labs/bpf/drain.c`).

use anyhow::{Context, Result, ensure};
use aya::maps::{MapData, PerCpuArray};
use aya::programs::tc::qdisc_add_clsact;
use aya::programs::xdp::XdpMode;
use aya::programs::{SchedClassifier, TcAttachType, Xdp};
use aya::{Ebpf, EbpfLoader, include_bytes_aligned};

use crate::net::{Namespace, SINK_PORT, SINK_PORTS, SINKS_FIRST};

static PROGRAM: &[u8] = include_bytes_aligned!(concat!(env!("OUT_DIR"), "/drain.o"));

/// Bits of a delay that its bucket keeps: as `SUB_BITS` in `drain.c`.
const SUB_BITS: u32 = 5;
/// Names of the counters of what is not as it should be: as `enum stat` in `drain.c`.
const STATS: usize = 3;

/// Where a drain takes packets off a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hook {
    /// A tc classifier: packets come as the kernel's buffers, possibly several merged.
    Tc,
    /// XDP in the driver: a good end for XDP senders, a bad one for others (veth copies).
    Xdp,
}

/// A drain at work. It is taken off its device when dropped.
pub struct Drain {
    /// Keeps the program and its place on the device.
    _program: Ebpf,
    sinks: usize,
    counts: PerCpuArray<MapData, u64>,
    delays: PerCpuArray<MapData, u64>,
    stats: PerCpuArray<MapData, u64>,
}

/// What a drain has counted so far.
#[derive(Debug, Clone)]
pub struct Drained {
    /// Datagrams of each sink.
    pub counts: Vec<u64>,
    /// Delays in nanoseconds, in buckets.
    delays: Vec<u64>,
    stats: Vec<u64>,
}

impl Drain {
    /// Puts a drain for this many sinks, whose datagrams all have this payload, on a device.
    pub fn attach(
        namespace: &Namespace,
        device: &str,
        hook: Hook,
        sinks: usize,
        payload: u16,
    ) -> Result<Self> {
        let count = u32::try_from(sinks).context("so many sinks have no number")?;
        let mut program = EbpfLoader::new()
            .override_global("first", &SINKS_FIRST.to_bits(), true)
            .override_global("sinks", &count, true)
            .override_global("port", &SINK_PORT, true)
            .override_global("ports", &u32::from(SINK_PORTS), true)
            .override_global("payload", &payload, true)
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

    /// All counts so far.
    pub fn read(&self) -> Result<Drained> {
        Ok(Drained {
            counts: sums(&self.counts, self.sinks)?,
            delays: sums(&self.delays, self.delays.len() as usize)?,
            stats: sums(&self.stats, STATS)?,
        })
    }
}

fn attach_tc(program: &mut Ebpf, device: &str) -> Result<()> {
    let program: &mut SchedClassifier = program.program_mut("drain_tc").context("no tc program")?.try_into()?;
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

fn map(program: &mut Ebpf, name: &str) -> Result<PerCpuArray<MapData, u64>> {
    Ok(program.take_map(name).with_context(|| format!("no map {name}"))?.try_into()?)
}

fn sums(map: &PerCpuArray<MapData, u64>, count: usize) -> Result<Vec<u64>> {
    let sum = |key| Ok(map.get(&key, 0)?.iter().sum());
    (0..).take(count).map(sum).collect()
}

impl Drained {
    /// What came since an earlier reading.
    pub fn since(&self, earlier: &Self) -> Self {
        let less = |now: &[u64], then: &[u64]| now.iter().zip(then).map(|(n, t)| n - t).collect();
        Self {
            counts: less(&self.counts, &earlier.counts),
            delays: less(&self.delays, &earlier.delays),
            stats: less(&self.stats, &earlier.stats),
        }
    }

    /// Datagrams of all sinks together.
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Datagrams of this many sent that sinks did not get, all sinks together.
    pub fn lost(&self, sent: u64) -> u64 {
        self.counts.iter().map(|count| sent.saturating_sub(*count)).sum()
    }

    /// Fails if something came that nobody sent: the measurement would not be of what it says.
    pub fn sound(&self, sent: u64) -> Result<()> {
        let [odd_size, unknown, _merged] = self.stats[..] else { unreachable!("as many as were read") };
        let more = self.counts.iter().filter(|count| **count > sent).count();
        ensure!(more == 0, "{more} sinks got more than was sent");
        ensure!(odd_size + unknown == 0, "{odd_size} datagrams of another size, {unknown} to nobody came");
        Ok(())
    }

    /// Datagrams that came merged with others (GSO, GRO).
    pub fn merged(&self) -> u64 {
        self.stats[2]
    }

    /// The delay at a quantile (0 to 1) in microseconds, from the source's stamp to the drain.
    pub fn delay_us(&self, quantile: f64) -> f64 {
        let total: u64 = self.delays.iter().sum();
        let rank = (quantile * total as f64).ceil() as u64;
        let mut seen = 0;
        let bucket = self.delays.iter().position(|count| {
            seen += count;
            seen >= rank.max(1)
        });
        bucket.map_or(f64::NAN, |bucket| bucket_nanos(bucket as u64) / 1e3)
    }
}

/// The middle of a bucket: `SUB_BITS` bits below the highest one are kept.
fn bucket_nanos(bucket: u64) -> f64 {
    let (shift, sub) = (bucket >> SUB_BITS, bucket & ((1 << SUB_BITS) - 1));
    if shift == 0 {
        return sub as f64;
    }
    let width = 2f64.powi(shift as i32 - 1);
    ((1 << SUB_BITS | sub) as f64 + 0.5) * width
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drained(counts: &[u64], buckets: &[(usize, u64)], stats: [u64; STATS]) -> Drained {
        let mut delays = vec![0; 2048];
        buckets.iter().for_each(|(bucket, count)| delays[*bucket] = *count);
        Drained { counts: counts.to_vec(), delays, stats: stats.to_vec() }
    }

    #[test]
    fn what_one_sink_lacks_another_cannot_make_up_for() {
        let all = drained(&[10, 9, 12], &[], [0; STATS]);
        assert_eq!((all.total(), all.lost(10)), (31, 1));
        assert!(all.sound(12).is_ok() && all.sound(11).is_err());
        assert!(drained(&[10], &[], [1, 0, 0]).sound(10).is_err());
        assert_eq!(all.since(&drained(&[10, 0, 2], &[], [0; STATS])).counts, [0, 9, 10]);
    }

    #[test]
    fn delays_are_those_of_their_buckets() {
        // Bucket 32 begins at 32 ns; an octave on, at 64 ns, they are two nanoseconds wide.
        assert_eq!((bucket_nanos(31), bucket_nanos(32), bucket_nanos(64)), (31.0, 32.5, 65.0));
        let all = drained(&[], &[(31, 98), (64, 2)], [0; STATS]);
        assert_eq!((all.delay_us(0.5), all.delay_us(0.99)), (0.031, 0.065));
        assert!(drained(&[], &[], [0; STATS]).delay_us(0.5).is_nan());
    }
}
