//! The paper's pictures: losses and inter-packet times (Figures 3 and 4), damaged pictures side by side (Figure 5),
//! and what was lost and delivered by kind (Figure 6). They go to `target/poc`.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use anyhow::Result;
use outflow_labs::figures::progress;
use outflow_study::plot::{Panel, Spot, svg};

use crate::pictures::{Decoded, side_by_side};
use crate::score::{Score, WARM_UP};
use crate::stream::Kind;
use crate::transport::Transport;

/// Where pictures go: beside what is built.
const PICTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../target/poc");
/// Of the curves over time, a point for so long, and how much of a run is drawn.
const STEP_S: f64 = 0.25;
const DRAWN_S: f64 = 20.0;
/// Of the distribution, a point for so long, up to where.
const SLOT_MS: f64 = 0.5;
const SLOTS: usize = 40;
/// Pictures side by side.
const COLUMNS: usize = 4;

/// A file for a picture.
fn file(name: &str, loss: &str, ending: &str) -> Result<PathBuf> {
    std::fs::create_dir_all(PICTURES)?;
    let file = Path::new(PICTURES).join(format!("{name}-{loss}.{ending}"));
    progress(format!("drawn: {}", file.display()));
    Ok(file)
}

/// Figure 3: what the path lost, and the longest time between two deliveries, over time.
pub(crate) fn over_time(scores: &[Score], loss: &str, rtt_s: f64) -> Result<()> {
    let last =
        scores.iter().flat_map(|score| &score.gaps).map(|(at, _)| *at).fold(0.0, f64::max).min(DRAWN_S);
    let steps = (last / STEP_S) as usize + 1;
    let curve = |points: &mut dyn Iterator<Item = (f64, f64)>, join: fn(f64, f64) -> f64| -> Vec<Spot> {
        let mut up = vec![0.0; steps];
        for (at, value) in points {
            if let Some(step) = up.get_mut((at / STEP_S) as usize) {
                *step = join(*step, value);
            }
        }
        up.iter().enumerate().map(|(step, up)| (step as f64 * STEP_S, *up).into()).collect()
    };
    let losses = scores.iter().map(|score| {
        let name = score.transport.name().to_owned();
        (name, curve(&mut score.losses.iter().map(|at| (*at, 1.0)), |sum, one| sum + one))
    });
    let times = scores.iter().map(|score| {
        let name = score.transport.name().to_owned();
        (name, curve(&mut score.gaps.iter().map(|(at, gap)| (*at, gap * 1e3)), f64::max))
    });
    let rtt = ("RTT".to_owned(), vec![(0.0, rtt_s * 1e3).into(), (last, rtt_s * 1e3).into()]);
    let axes = |up: &str| ("time (s)".to_owned(), format!("{up} per {STEP_S} s"));
    let panels = [
        Panel {
            title: format!("Packets lost on the path, {loss} %"),
            axes: axes("packets"),
            lines: losses.collect(),
        },
        Panel {
            title: "Longest inter-packet time".into(),
            axes: axes("ms"),
            lines: times.chain([rtt]).collect(),
        },
    ];
    Ok(std::fs::write(file("figure-3", loss, "svg")?, svg(&panels)?)?)
}

/// Figure 4: how inter-packet times are distributed.
pub(crate) fn distribution(scores: &[Score], loss: &str) -> Result<()> {
    let line = |score: &Score| {
        let mut slots = [0.0; SLOTS + 1];
        for (_, gap) in &score.gaps {
            slots[((gap * 1e3 / SLOT_MS) as usize).min(SLOTS)] += 100.0 / score.gaps.len() as f64;
        }
        let spot = |(slot, share): (usize, &f64)| (slot as f64 * SLOT_MS, *share).into();
        (score.transport.name().to_owned(), slots.iter().enumerate().map(spot).collect())
    };
    let panel = Panel {
        title: format!("Inter-packet times, {loss} % lost (the last point: all longer ones)"),
        axes: ("ms".into(), format!("% in {SLOT_MS} ms")),
        lines: scores.iter().map(line).collect(),
    };
    Ok(std::fs::write(file("figure-4", loss, "svg")?, svg(&[panel])?)?)
}

/// Figure 6: units that were lost on the path, and of these those that were delivered on time, by kind.
pub(crate) fn by_kind(scores: &[Score], loss: &str) -> Result<()> {
    const PANEL: usize = 240;
    const FOOT: usize = 250;
    const HEIGHT: f64 = 190.0;
    let fates = || scores.iter().flat_map(|score| score.fates.values());
    let most = fates().map(|fate| fate.lost).max().unwrap_or(0).max(1);
    let (width, height) = (PANEL * scores.len(), FOOT + 30);
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"{width}\" height=\"{height}\" fill=\"white\"/>\n"
    );
    for (number, score) in scores.iter().enumerate() {
        let left = PANEL * number + 20;
        writeln!(text, "<text x=\"{left}\" y=\"20\">{}, {loss} % lost</text>", score.transport.name())?;
        for (place, kind) in Kind::ALL.into_iter().enumerate() {
            let fate = score.fates.get(&kind).copied().unwrap_or_default();
            let left = left + 52 * place;
            for (bar, (count, fill)) in
                [(fate.lost, "#d65f00"), (fate.recovered, "#1f77b4")].iter().enumerate()
            {
                let (x, high) = (left + 21 * bar, HEIGHT * *count as f64 / most as f64);
                let y = FOOT as f64 - high;
                writeln!(
                    text,
                    "<rect x=\"{x}\" y=\"{y:.1}\" width=\"20\" height=\"{high:.1}\" fill=\"{fill}\"/>"
                )?;
                writeln!(text, "<text x=\"{x}\" y=\"{:.1}\" font-size=\"10\">{count}</text>", y - 3.0)?;
            }
            writeln!(text, "<text x=\"{left}\" y=\"{}\">{}</text>", FOOT + 16, kind.name())?;
        }
    }
    for (x, fill, word) in [(width - 200, "#d65f00", "lost"), (width - 140, "#1f77b4", "delivered on time")] {
        writeln!(text, "<text x=\"{x}\" y=\"36\" fill=\"{fill}\">{word}</text>")?;
    }
    text += "</svg>\n";
    Ok(std::fs::write(file("figure-6", loss, "svg")?, text)?)
}

/// Figure 5: successive I and P pictures as they are seen through transports, one row for each: those of which UDP
/// leaves least. From the left to the right as they are shown; the first row is UDP.
pub(crate) fn damaged(seen: &[(Transport, Decoded, Vec<f64>)], loss: &str, folder: &Path) -> Result<()> {
    let Some((_, _, udp)) = seen.iter().find(|(transport, ..)| *transport == Transport::Udp) else {
        return Ok(());
    };
    let at = |number: usize| udp.get(number).copied().unwrap_or(0.0);
    // Every fourth picture is an I or P picture, from the fourth on.
    let windows = (3..udp.len().saturating_sub(4 * COLUMNS)).step_by(4);
    let sum = |from: &usize| (0..COLUMNS).map(|column| at(from + 4 * column)).sum::<f64>();
    let Some(worst) = windows.min_by(|a, b| sum(a).total_cmp(&sum(b))) else { return Ok(()) };
    let shown: Vec<usize> = (0..COLUMNS).map(|column| WARM_UP + worst + 4 * column).collect();
    let rows = seen.iter().filter(|(transport, ..)| *transport != Transport::Tcp);
    let rows: Vec<(&Transport, &Decoded)> =
        rows.map(|(transport, decoded, _)| (transport, decoded)).collect();
    let names: Vec<&str> = rows.iter().map(|(transport, _)| transport.name()).collect();
    progress(format!("pictures {shown:?}, from above: {}", names.join(", ")));
    let decoded: Vec<&Decoded> = rows.iter().map(|(_, decoded)| *decoded).collect();
    side_by_side(&decoded, &shown, folder, &file("figure-5", loss, "png")?)
}
