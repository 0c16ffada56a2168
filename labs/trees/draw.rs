//! Pictures of the sizes.

use std::path::{Path, PathBuf};

use anyhow::Result;
use outflow_study::plot::{Panel, Spot, svg, svg_by_decades};
use serde_json::Value;

use super::phases::Played;

/// A line: its name, and the figure that it is of.
type Line = (&'static str, &'static str);

/// All of them, as files.
pub(crate) fn all(sizes: &[Played], directory: &Path) -> Result<Vec<PathBuf>> {
    std::fs::create_dir_all(directory)?;
    let times: [Line; 5] = [
        ("all join at once", "/join/converged_s"),
        ("a tenth dies", "/tenth_dies/all_served_after_s"),
        ("half are cut off", "/partition/others_served_after_s"),
        ("and back", "/partition/healed_s"),
        ("after chaos", "/chaos/all_served_after_s"),
    ];
    let messages: [Line; 4] = [
        ("mean at rest", "/rest/messages_s_mean"),
        ("most at rest", "/rest/messages_s_most"),
        ("mean with a crowd", "/crowd/messages_s_mean"),
        ("mean as relays die", "/deaths/messages_s_mean"),
    ];
    let joining: [Line; 1] = [("mean", "/join/messages_each")];
    let entries: [Line; 3] =
        [("mean", "/shape/entries/mean"), ("99 %", "/shape/entries/p99"), ("most", "/shape/entries/most")];
    let depths: [Line; 2] = [("mean", "/shape/depth/mean"), ("most", "/shape/depth/most")];
    let pictures = [
        ("trees-convergence.svg", vec![panel(sizes, "Until all are served", "s", &times)]),
        (
            "trees-messages.svg",
            vec![
                panel(sizes, "Messages of a relay", "messages a second", &messages),
                panel(sizes, "Messages of a relay until all have joined", "messages", &joining),
            ],
        ),
        (
            "trees-state.svg",
            vec![
                panel(sizes, "What a relay keeps", "entries", &entries),
                panel(sizes, "Depth of the tree", "relays", &depths),
            ],
        ),
    ];
    let mut files = Vec::new();
    for (name, panels) in pictures {
        files.push(written(directory, name, &svg_by_decades(&panels)?)?);
    }
    files.push(written(directory, "trees-gaps.svg", &svg(&[gaps(sizes)])?)?);
    Ok(files)
}

fn written(directory: &Path, name: &str, picture: &str) -> Result<PathBuf> {
    let file = directory.join(name);
    std::fs::write(&file, picture)?;
    Ok(file)
}

fn panel(sizes: &[Played], title: &str, unit: &str, lines: &[Line]) -> Panel {
    let spot = |played: &Played, figure: &str| -> Option<Spot> {
        let y = played.figures.pointer(figure).and_then(Value::as_f64)?;
        Some((played.plan.relays as f64, y).into())
    };
    let line = |(name, figure): &Line| {
        let spots = sizes.iter().filter_map(|played| spot(played, figure)).collect();
        ((*name).to_owned(), spots)
    };
    Panel {
        title: title.to_owned(),
        axes: ("relays".to_owned(), unit.to_owned()),
        lines: lines.iter().map(line).collect(),
    }
}

/// Which share of the gaps after parents' deaths is no longer than a number of milliseconds.
fn gaps(sizes: &[Played]) -> Panel {
    let line = |played: &Played| {
        let mut gaps = played.gaps_ms.clone();
        gaps.sort_by(f64::total_cmp);
        let share = |below: usize| 100.0 * below as f64 / gaps.len() as f64;
        let spots = (0..=60).map(|step| {
            let ms = f64::from(step) * 20.0;
            (ms, share(gaps.partition_point(|gap| *gap <= ms))).into()
        });
        let name = format!("{} relays", played.plan.relays);
        (name, if gaps.is_empty() { Vec::new() } else { spots.collect() })
    };
    Panel {
        title: "Gaps after a parent's death, without the directory".to_owned(),
        axes: ("ms".to_owned(), "% no longer".to_owned()),
        lines: sizes.iter().map(line).collect(),
    }
}
