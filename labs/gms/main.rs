//! Generalized multicast over three levels of routers: does each link carry the best level that is wanted behind it,
//! and what does a packet cost?
//!
//! **The tree.** A source, seven relays (one, two and four), a host behind each of the last ones. Of IPv4 they are routers
//! of DVMRP; of IPv6, which that does not route, each is a host of the one above (RFC 4605): its figures stand under
//! `ipv6`. Two streams whose packets say what they are: wavelet video of 33 levels (352x288, 15 frames a second), and
//! AV1 of three spatial and three temporal layers. Every 8.5 s one host wants another level of both, or leaves,
//! or is back: a program there says so by reports of IGMPv3 or MLDv2 with levels (RFC 9279). All links are watched.
//!
//! While nothing changes (from 5.5 s after each change on: routers hold what they have asked for 2 s each before they
//! ask for less): `rate_error_pct` is that of the link and stream that is furthest off, `unwanted` packets came over a
//! link behind which none wants their layer (or twice), `missing` ones did not come although one does. `undecodable` are frames of wavelet video
//! at hosts that are not there or have other layers than the level has, and frames of AV1 that are not bit for bit
//! what they are with nothing left out: these over all changes. `change_ms_per_hop` is the median for better levels
//! of the first stream (`judge.rs` says of what), `join_ms` from joining to the end of the first whole picture,
//! `leave_ms` from leaving to the last packet at the last router (`last_member_interval` is 300 ms, and there are two
//! queries; then the router holds for 2 s).
//!
//! **Cost.** Core time of a router, softirqs included, a packet that it forwards to one host: by the kernel's multicast
//! routing (`kernel_ns`), by the filter in the kernel (`kernel_filter_ns`; `kernel_priority_ns` of a source that says
//! nothing to routers, whose packets are described to be JPEG 2000 with layers by priority), and by user space
//! (`user_ns`). In all but the first, each packet has another sequence number behind the router. Rounds of all, one after
//! the other; medians.

mod cost;
mod judge;
mod plain;
mod source;
mod tree;
mod witness;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Result;
use outflow_labs::figures::{Options, progress, quantile, rounded, run_lab};
use outflow_routing::membership::Family;
use serde_json::{Value, json};

use judge::{Change, Run, Wants};
use source::{LEVELS, STREAMS, Source, Video, groups};
use tree::{HOSTS, Tree};
use witness::Witness;

/// From one change to the next.
const EVERY: Duration = Duration::from_millis(8500);
/// Of the changes.
const SEED: u64 = 22;

fn main() -> ExitCode {
    run_lab("gms", lab)
}

fn lab(options: &Options) -> Result<Value> {
    let (changes, rounds) = if options.quick { (3, 3) } else { (14, 9) };
    let mut figures = of(Family::V4, (changes, rounds))?;
    figures["ipv6"] = of(Family::V6, (changes, rounds))?;
    Ok(figures)
}

fn of(family: Family, (changes, rounds): (u32, usize)) -> Result<Value> {
    let mut figures = over_routers(family, changes)?;
    for (name, cost) in cost::measure(family, rounds)? {
        figures[name] = json!(cost);
    }
    Ok(figures)
}

/// What hosts want next: another one of them, or the same one, is back, leaves, or wants another level.
fn next(random: &mut fastrand::Rng, wants: &Wants) -> (usize, [Option<u8>; STREAMS]) {
    let host = random.usize(..HOSTS);
    if wants[host][0].is_some() && random.u8(..4) == 0 {
        return (host, [None; STREAMS]);
    }
    (host, LEVELS.map(|levels| Some(random.u8(1..=levels))))
}

fn over_routers(family: Family, changes: u32) -> Result<Value> {
    let seconds = 5 + (EVERY * (changes + 1)).as_secs() as u32;
    progress(format!("coding {seconds} s of video"));
    let video = Video::new(seconds + 15)?;
    let tree = Tree::new(family)?;
    progress("waiting for routers");
    let mut routers = tree.start()?;
    let mut random = fastrand::Rng::with_seed(SEED);
    let programs = (0..HOSTS).map(|host| tree.program(host)).collect::<Result<Vec<_>>>()?;
    let mut members = [const { Vec::new() }; HOSTS];
    let mut wants = [LEVELS.map(|levels| Some(levels.min(2))); HOSTS];
    for host in 0..HOSTS {
        for (stream, group) in groups(family).into_iter().enumerate() {
            programs[host].says(group, wants[host][stream])?;
            members[host].push(tree.join(host, group)?);
        }
    }
    let witness = Witness::start(&tree)?;
    let source = Source::start(&tree, &video)?;
    let mut made = vec![Change { at: Instant::now(), host: 0, wants }];
    for number in 0..changes {
        std::thread::sleep(EVERY);
        let (host, wanted) = next(&mut random, &wants);
        progress(format!("{number}: host {host} wants {wanted:?}, had {:?}", wants[host]));
        let was = std::mem::replace(&mut wants[host], wanted);
        made.push(Change { at: Instant::now(), host, wants });
        if wanted[0].is_none() {
            members[host].clear();
        }
        for (stream, group) in groups(family).into_iter().enumerate() {
            programs[host].says(group, wanted[stream])?;
            if was[stream].is_none() && wanted[stream].is_some() {
                members[host].push(tree.join(host, group)?);
            }
        }
    }
    std::thread::sleep(EVERY);
    made.push(Change { at: Instant::now(), host: 0, wants });
    let sent = source.stop()?;
    std::thread::sleep(Duration::from_millis(300));
    let run = Run::new(&tree, sent, witness.stop()?, made);
    let (filtered, by_user) = (routers.counted("filter_packets")?, routers.counted("user_packets")?);
    routers.healthy()?;
    drop(routers);
    let mut figures = figures(&run, &video, (filtered, by_user))?;
    figures["mrouted"] = json!(tree.has_plain());
    Ok(figures)
}

fn figures(run: &Run<'_>, video: &Video, (filtered, by_user): (u64, u64)) -> Result<Value> {
    let found = run.links();
    progress("decoding");
    let (wavelet, wavelet_frames) = run.wavelet_undecodable();
    let (av1, av1_frames) = run.av1_undecodable(&video.av1);
    let changes = run.changes_ms();
    let (joins, leaves) = run.joins_and_leaves_ms();
    Ok(json!({
        "rate_error_pct": rounded(found.rate_error_pct),
        "unwanted": found.unwanted,
        "missing": found.missing,
        "packets": found.packets,
        "undecodable": wavelet + av1,
        "frames": wavelet_frames + av1_frames,
        "change_ms_per_hop": rounded(quantile(&changes, 0.5)),
        "change_ms_per_hop_max": rounded(quantile(&changes, 1.0)),
        "changes": changes.len(),
        "join_ms": rounded(quantile(&joins, 0.5)),
        "leave_ms": rounded(quantile(&leaves, 0.5)),
        "leave_ms_max": rounded(quantile(&leaves, 1.0)),
        "filter_packets": filtered,
        "user_packets": by_user,
    }))
}
