//! The figures as tables.

use std::fmt::Write as _;

use outflow_relay::WhenFull;
use outflow_sim::Viewing;

use crate::Cell;

/// What a cell of a table says; `None` where there is nothing to say.
type Figure = fn(&Cell) -> Option<String>;

const TABLES: [(&str, Figure); 3] = [
    (
        "Frames that could be decoded, of all that there were, by healthy receivers and by the others",
        |cell| Some(both(cell, |seen| percent(seen.goodput()))),
    ),
    ("Delay of healthy receivers and of the others (while they read), 99th percentile", |cell| {
        Some(both(cell, |seen| seconds(seen.delays.quantile_ms(0.99))))
    }),
    ("Packets dropped, of all that were owed to all receivers, by reason", |cell| {
        let drops = cell.drops.iter().map(|(reason, share)| format!("{reason} {}", percent(*share)));
        (!cell.drops.is_empty()).then(|| drops.collect::<Vec<_>>().join(", "))
    }),
];

/// What is true of healthy receivers, and of the others where there are any.
fn both(cell: &Cell, figure: fn(&Viewing) -> String) -> String {
    let healthy = figure(&cell.healthy);
    if cell.lagging.frames == 0 { healthy } else { format!("{healthy}, {}", figure(&cell.lagging)) }
}

/// All tables, as Markdown.
pub(crate) fn all(cells: &[Cell]) -> String {
    TABLES.iter().map(|(title, figure)| format!("{title}:\n\n{}\n", table(cells, *figure))).collect()
}

/// A row a case and size of ring, a column a policy; rows that say nothing are left out.
fn table(cells: &[Cell], figure: Figure) -> String {
    let names: Vec<_> = WhenFull::ALL.iter().map(|policy| format!("`{}`", policy.as_str())).collect();
    let mut text = format!("| cannot keep up | ring | {} |\n|---|---|", names.join(" | "));
    text += &"---|".repeat(names.len());
    text.push('\n');
    for row in cells.chunks(names.len()) {
        let figures: Vec<_> = row.iter().map(figure).collect();
        if figures.iter().all(Option::is_none) {
            continue;
        }
        let figures = figures.into_iter().map(|figure| figure.unwrap_or_else(|| "–".to_owned()));
        let megabytes = row[0].ring_bytes as f64 / 1e6;
        let figures = figures.collect::<Vec<_>>().join(" | ");
        let _ = writeln!(text, "| {} | {megabytes} MB | {figures} |", row[0].case.name);
    }
    text
}

fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

fn seconds(ms: u64) -> String {
    if ms < 1000 { format!("{ms} ms") } else { format!("{:.1} s", ms as f64 / 1e3) }
}
