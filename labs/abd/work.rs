//! State and work per packet of each policy (the paper's Tables 3 and 4), measured: bytes that a link takes, and
//! instructions per packet, counted by callgrind.

use std::alloc::{GlobalAlloc, Layout, System};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use outflow_labs::figures::{progress, rounded};
use outflow_labs::programs::missing;
use outflow_link::{ApplicationId, Link, LinkOptions, Next, Policy, Scheduling, Share, Size, Unit};
use outflow_media::{Kind, Needs, Tag, Time};
use serde_json::{Map, Value, json};

/// Flows, two in three of them Video.
const FLOWS: [usize; 3] = [30, 300, 3_000];
/// A count of packets, and twice as many: the difference is without what it takes to begin.
const PACKETS: usize = 60_000;
const PACKET_BYTES: usize = 576;
/// What is offered, as a share of what the link takes.
const LOAD: f64 = 1.1;
const RATE_BPS: u64 = 20_000_000;

/// Counts the bytes that are in use.
struct Counting;

static IN_USE: AtomicUsize = AtomicUsize::new(0);

// SAFETY: everything is done by the system's allocator; counting has no effect on it.
#[allow(unsafe_code, reason = "an allocator that counts cannot be written without")]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        IN_USE.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller keeps to the contract, which is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        IN_USE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the same.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// What a child does: offers a number of packets of a number of flows to a link of this policy, or to none.
#[derive(Debug, Clone)]
pub(crate) struct Load {
    policy: Option<Policy>,
    flows: usize,
    packets: usize,
}

impl std::str::FromStr for Load {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("'{text}' is no load");
        let mut words = text.split(',');
        let policy = words.next().ok_or_else(wrong)?;
        let mut number = || words.next().and_then(|word| word.parse().ok()).ok_or_else(wrong);
        Ok(Load { policy: Policy::from_name(policy), flows: number()?, packets: number()? })
    }
}

/// A packet of the paper's group, one a frame: I B B P B B P B B.
fn tag(number: u32) -> Tag {
    let (kind, needs) = match number % 9 {
        0 => (Kind::Intra, Needs::NOTHING),
        at @ (3 | 6) => (Kind::Predicted, Needs::back(at)),
        at => (Kind::Bidirectional, Needs::back(at % 3)),
    };
    Tag { frame: number, kind, needs, first: true, last: true, ..Tag::default() }
}

impl Load {
    /// Does it; the bytes that the link takes afterwards, with nothing in it.
    pub(crate) fn run(&self) -> usize {
        let before = IN_USE.load(Ordering::Relaxed);
        let mut link = self.policy.map(|policy| {
            Link::new(LinkOptions {
                rate_bps: RATE_BPS,
                policy,
                unit: Unit::Packet,
                scheduling: Scheduling::Wrr,
                lower_share: Share::NONE,
                size: Size::PerFlow(1_500),
                slack: Duration::ZERO,
            })
        });
        let is_data = |flow: usize| flow % 3 == 2;
        let application = |flow| ApplicationId(u32::from(is_data(flow)));
        let ids: Option<Vec<_>> = link
            .as_mut()
            .map(|link| (0..self.flows).map(|flow| link.add_flow(application(flow), 0)).collect());
        let gap_ns = PACKET_BYTES as f64 * 8e9 / RATE_BPS as f64 / LOAD;
        for number in 0..self.packets {
            let now = Time::from_nanos((number as f64 * gap_ns) as u64);
            let flow = number % self.flows;
            let tag = if is_data(flow) { Tag::default() } else { tag((number / self.flows) as u32) };
            let tag = std::hint::black_box(tag);
            let (Some(link), Some(ids)) = (&mut link, &ids) else { continue };
            link.offer(now, ids[flow], tag, PACKET_BYTES, ());
            link.dropped().for_each(drop);
            while let Next::Departs(departed) = link.depart(now) {
                std::hint::black_box(departed);
            }
        }
        if let Some(link) = &mut link {
            let mut now = Time::from_nanos((self.packets as f64 * gap_ns) as u64);
            while !matches!(link.depart(now), Next::Nothing) {
                now = now + Duration::from_secs(1);
            }
        }
        IN_USE.load(Ordering::Relaxed) - before - ids.map_or(0, |ids| std::mem::size_of_val(&ids[..]))
    }
}

/// Measures all policies.
pub(crate) fn measure() -> Result<Value> {
    if let Some(why) = missing("valgrind") {
        bail!("{why}: scripts/setup valgrind");
    }
    let mut policies = Map::new();
    for policy in Policy::ALL {
        let mut rows = Vec::new();
        for flows in FLOWS {
            let load = Load { policy: Some(*policy), flows, packets: PACKETS };
            let work = instructions(policy.as_str(), flows)? - instructions("none", flows)?;
            let state = load.run();
            progress(format!(
                "{}, {flows} flows: {work:.0} instructions a packet, {state} bytes",
                policy.as_str()
            ));
            rows.push(json!({
                "flows": flows,
                "instructions_a_packet": rounded(work),
                "state_bytes": state,
                "state_bytes_a_flow": rounded(state as f64 / flows as f64),
            }));
        }
        policies.insert(policy.as_str().to_owned(), Value::Array(rows));
    }
    Ok(json!({ "work": policies, "load": LOAD, "rate_bps": RATE_BPS, "packet_bytes": PACKET_BYTES }))
}

/// Instructions for a packet.
fn instructions(policy: &str, flows: usize) -> Result<f64> {
    let (once, twice) = (collected(policy, flows, PACKETS)?, collected(policy, flows, 2 * PACKETS)?);
    Ok((twice as f64 - once as f64) / PACKETS as f64)
}

/// Instructions of a child.
fn collected(policy: &str, flows: usize, packets: usize) -> Result<u64> {
    let child = std::env::current_exe()?;
    let load = format!("{policy},{flows},{packets}");
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(child)
        .args(["--load", &load])
        .output()
        .context("cannot run valgrind")?;
    let told = String::from_utf8_lossy(&output.stderr);
    let line = told.lines().find_map(|line| line.split_once("Collected : "));
    let count = line.and_then(|(_, count)| count.trim().parse().ok());
    count.with_context(|| format!("callgrind says nothing of instructions: {told}"))
}
