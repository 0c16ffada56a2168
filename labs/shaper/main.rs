//! Six H.264 streams of ffmpeg and bulk data through the relay and 5 Mbit/s, at 120 % load, in namespaces: by the
//! kernel's token bucket (`tbf`) behind a relay without a link, and by a link of the relay with each policy (`shb` is
//! the plain queue that drops what does not fit). 200 ms of packets may wait, however they are shared out.
//!
//! What came to the relay and to the receivers is captured. Told are, of all pictures behind the first seconds:
//! `frames_ok_pct`, those that ffmpeg decodes without an error of what came, by its own count (which does not see
//! that a picture is made from one that is missing or wrong); `frames_exact_pct`, those that are as if nothing had
//! been lost; `psnr_db`, the mean PSNR of luma against the pictures before they were coded, where a missing or
//! broken picture is the last one before it (`psnr_clean_db` if nothing were lost); `p50_ms` and `p99_ms`, from the
//! relay's device to the receiver's, of packets of video that arrive; `goodput_pct`, the bytes of video that can
//! be decoded, and `data_pct`, those of bulk data that arrive; `carried_pct`, what got through of what the link
//! could carry: less where so much is given up that buffers run empty, or the relay has no processor in time.
//!
//! The simulator is given the capture of what came and the same link: `sim_goodput_error_points` is by how much its
//! goodput is off, in the round where that is most.

mod decode;
mod judge;
mod pcap;
mod scene;
mod video;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Result, bail};
use outflow_labs::figures::{Options, progress, rounded, run_lab};
use outflow_labs::net::Paths;
use outflow_labs::process::Program;
use outflow_labs::programs::missing;
use outflow_labs::relay::PATIENCE;
use outflow_link::Policy;
use serde_json::{Map, Value, json};

use judge::{Found, Seen, WARM_UP_S, judge};
use scene::{OFFERED_BPS, RATE_BPS, Variant, record};
use video::FPS;

/// How much is measured.
struct Plan {
    variants: Vec<Variant>,
    rounds: usize,
    /// That count.
    seconds: u64,
}

impl Plan {
    fn full() -> Self {
        let links = Policy::ALL.iter().copied().map(Variant::Link);
        Plan { variants: [Variant::Tbf].into_iter().chain(links).collect(), rounds: 2, seconds: 20 }
    }

    fn quick() -> Self {
        let variants = vec![Variant::Tbf, Variant::Link(Policy::Shb), Variant::Link(Policy::LeastValue)];
        Plan { variants, rounds: 1, seconds: 4 }
    }
}

fn main() -> ExitCode {
    run_lab("shaper", lab)
}

fn lab(options: &Options) -> Result<Value> {
    if let Some(why) = ["ffmpeg", "ffprobe", "tcpdump", "ethtool"].into_iter().find_map(missing) {
        bail!("{why}: see scripts/setup");
    }
    let plan = if options.quick { Plan::quick() } else { Plan::full() };
    let (folder, paths) = (tempfile::tempdir()?, Paths::new()?);
    // A packet is one in the captures, too.
    let segments = "ethtool -K out0 tx-udp-segmentation off";
    Program::words(segments).within(&paths.relay).finish(PATIENCE)?;
    let lasts = Duration::from_secs(WARM_UP_S + plan.seconds);
    let pictures = FPS * (lasts.as_secs() as usize + 2);
    progress(format!("six videos of {pictures} pictures are coded"));
    let videos = video::make(folder.path(), pictures)?;
    let mut all: Vec<(Variant, Vec<Found>)> =
        plan.variants.iter().map(|variant| (*variant, Vec::new())).collect();
    for round in 1..=plan.rounds {
        for (variant, found) in &mut all {
            let recording = record(&paths, &videos, *variant, (folder.path(), lasts))?;
            let judged = judge(&recording, &videos, *variant, folder.path())?;
            progress(format!("{round}/{}: {}: {}", plan.rounds, variant.name(), figures(&[judged])));
            found.push(judged);
        }
    }
    let policies = all.iter().map(|(variant, found)| (variant.name().to_owned(), figures(found)));
    let worst = all.iter().flat_map(|(_, found)| found).map(error_points).fold(0.0, f64::max);
    Ok(json!({
        "policies": policies.collect::<Map<_, _>>(),
        "sim_goodput_error_points": rounded(worst),
        "rate_mbps": RATE_BPS as f64 / 1e6,
        "load_pct": OFFERED_BPS * 100 / RATE_BPS,
        "seconds": plan.seconds,
        "rounds": plan.rounds,
    }))
}

/// By how many points the simulator is off.
fn error_points(found: &Found) -> f64 {
    100.0 * (found.goodput - found.predicted.goodput).abs()
}

/// The figures of one variant.
fn figures(rounds: &[Found]) -> Value {
    let mean = |of: &dyn Fn(&Found) -> f64| rounded(rounds.iter().map(of).sum::<f64>() / rounds.len() as f64);
    let seen = rounds.iter().fold(Seen::default(), |mut all, found| {
        all.add(&found.seen);
        all
    });
    let share = |of: f64| rounded(of / seen.sent as f64);
    json!({
        "frames_ok_pct": share(100.0 * seen.ok as f64),
        "frames_exact_pct": share(100.0 * seen.exact as f64),
        "psnr_db": share(seen.sum_db),
        "psnr_clean_db": share(seen.sum_clean_db),
        "p50_ms": mean(&|found| found.p50_ms),
        "p99_ms": mean(&|found| found.p99_ms),
        "goodput_pct": mean(&|found| 100.0 * found.goodput),
        "data_pct": mean(&|found| 100.0 * found.data),
        "sim_goodput_pct": mean(&|found| 100.0 * found.predicted.goodput),
        "sim_data_pct": mean(&|found| 100.0 * found.predicted.data),
        "sim_p50_ms": mean(&|found| found.predicted.p50_ms),
        "sim_p99_ms": mean(&|found| found.predicted.p99_ms),
        "sim_goodput_error_points": rounded(rounds.iter().map(error_points).fold(0.0, f64::max)),
        "load_pct": mean(&|found| 100.0 * found.offered_bps / RATE_BPS as f64),
        "carried_pct": mean(&|found| 100.0 * found.carried_bps / RATE_BPS as f64),
    })
}
