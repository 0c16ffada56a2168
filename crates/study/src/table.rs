//! Results as CSV, as JSON, and as a table to read.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use super::axis::Label;
use super::stats::Interval;
use super::summary::{Point, TrafficSummary};

/// A column: its name and what stands in it.
type Column = (&'static str, fn(&TrafficSummary) -> f64);

/// Of each traffic.
const COLUMNS: [Column; 10] = [
    ("goodput_pct", |of| 100.0 * of.goodput.mean),
    ("goodput_ci95_pct", |of| 100.0 * of.goodput.ci95),
    ("least_goodput_pct", |of| 100.0 * of.least_goodput),
    ("frames_lost_pct", |of| 100.0 * of.frames_lost.mean),
    ("frames_lost_ci95_pct", |of| 100.0 * of.frames_lost.ci95),
    ("delay_ms", |of| of.delay_ms.mean),
    ("delay_ci95_ms", |of| of.delay_ms.ci95),
    ("delay_p50_ms", |of| of.delays.quantile_ms(0.5)),
    ("delay_p99_ms", |of| of.delays.quantile_ms(0.99)),
    ("dropped_pct", |of| 100.0 * (of.drops.total() + of.lost) as f64 / of.sent.max(1) as f64),
];

/// A figure of a point: `found`, or one of some traffic, as `video.goodput_pct`; and how far it may be off.
pub(super) fn figure(point: &Point, name: &str) -> Option<(f64, f64)> {
    if name == "found" {
        return point.found.map(|found| (found as f64, 0.0));
    }
    let (traffic, column) = name.rsplit_once('.')?;
    if let Some(of) = point.figures.get(traffic).and_then(|of| of.get(column)) {
        return Some((of.mean, of.ci95));
    }
    let of = point.traffic.get(traffic)?;
    let value = |wanted: &str| COLUMNS.iter().find(|(name, _)| *name == wanted).map(|(_, value)| value(of));
    let (what, unit) = column.rsplit_once('_')?;
    Some((value(column)?, value(&format!("{what}_ci95_{unit}")).unwrap_or(0.0)))
}

/// What can be drawn of some traffic.
pub(super) fn is_figure(name: &str) -> bool {
    let column = name.rsplit_once('.').map_or("", |(_, column)| column);
    name == "found" || COLUMNS.iter().any(|(known, _)| *known == column)
}

/// The names of all figures of some traffic, for messages.
pub(super) fn figures() -> String {
    COLUMNS.map(|(name, _)| name).join(", ")
}

/// The names of all traffic.
fn traffic(points: &[Point]) -> Vec<&str> {
    let most = points.iter().max_by_key(|point| point.traffic.len());
    most.into_iter().flat_map(|point| point.traffic.keys().map(String::as_str)).collect()
}

/// The names of all figures of nodes and links, in order: `home.missing`.
fn others(points: &[Point]) -> Vec<(&str, &'static str)> {
    let all = points.iter().flat_map(|point| &point.figures);
    let mut names: Vec<_> = all.flat_map(|(name, of)| of.keys().map(|key| (name.as_str(), *key))).collect();
    names.sort_unstable();
    names.dedup();
    names
}

fn other(point: &Point, (name, key): (&str, &'static str)) -> Option<Interval> {
    point.figures.get(name)?.get(key).copied()
}

fn rounded(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
}

/// A line a point: the values that vary, the one found, and what came of each traffic. Fields are empty where no
/// value was enough.
pub fn csv(points: &[Point]) -> String {
    let names = traffic(points);
    let axes = points.first().into_iter().flat_map(|point| point.at.iter().map(|(name, _)| quoted(name)));
    let mut head: Vec<String> = axes.collect();
    head.push("found".to_owned());
    head.extend(names.iter().flat_map(|name| COLUMNS.map(|(column, _)| quoted(&format!("{name}.{column}")))));
    let others = others(points);
    head.extend(others.iter().map(|(name, key)| quoted(&format!("{name}.{key}"))));
    let mut out = head.join(",") + "\n";
    for point in points {
        let mut line: Vec<String> = point.at.iter().map(|(_, label)| quoted(&label.to_string())).collect();
        line.push(point.found.map_or(String::new(), |found| found.to_string()));
        for name in &names {
            let of = point.traffic.get(*name);
            let field = |(_, value): &Column| of.map_or(String::new(), |of| rounded(value(of)).to_string());
            line.extend(COLUMNS.iter().map(field));
        }
        let field = |of: Option<Interval>| of.map_or(String::new(), |of| rounded(of.mean).to_string());
        line.extend(others.iter().map(|of| field(other(point, *of))));
        out.push_str(&(line.join(",") + "\n"));
    }
    out
}

/// A field as RFC 4180 has it.
fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

/// The same as JSON: a list of points.
pub fn json(points: &[Point]) -> Value {
    let label =
        |label: &Label| label.number().map_or_else(|| json!(label.to_string()), |number| json!(number));
    let point = |point: &Point| {
        let at: Map<String, Value> = point.at.iter().map(|(name, of)| (name.clone(), label(of))).collect();
        let traffic: Map<String, Value> =
            point.traffic.iter().map(|(name, of)| (name.clone(), of_traffic(of))).collect();
        let figures: Map<String, Value> = point.figures.iter().map(of_figures).collect();
        json!({
            "at": at,
            "found": point.found,
            "packet_events": point.packet_events,
            "traffic": traffic,
            "figures": figures,
        })
    };
    points.iter().map(point).collect()
}

fn of_figures((name, of): (&String, &BTreeMap<&'static str, Interval>)) -> (String, Value) {
    let figures = of.iter().map(|(key, of)| ((*key).to_owned(), json!(rounded(of.mean))));
    (name.clone(), Value::Object(figures.collect()))
}

fn of_traffic(of: &TrafficSummary) -> Value {
    let figures = COLUMNS.iter().map(|(name, value)| ((*name).to_owned(), json!(rounded(value(of)))));
    let mut all: Map<String, Value> = figures.collect();
    let drops = of.drops.iter().filter(|(_, count)| *count > 0);
    let drops: Map<String, Value> =
        drops.map(|(reason, count)| (reason.as_str().to_owned(), json!(count))).collect();
    all.insert("sent".to_owned(), json!(of.sent));
    all.insert("lost".to_owned(), json!(of.lost));
    all.insert("drops".to_owned(), Value::Object(drops));
    Value::Object(all)
}

/// The same as a table to read.
pub fn words(points: &[Point]) -> String {
    let names = traffic(points);
    let mut rows: Vec<Vec<String>> = Vec::new();
    let axes = points.first().into_iter().flat_map(|point| point.at.iter().map(|(name, _)| name.clone()));
    let mut head: Vec<String> = axes.collect();
    let has_found = points.iter().any(|point| point.found.is_some());
    head.extend(has_found.then(|| "found".to_owned()));
    for name in &names {
        let columns = ["goodput %", "frames lost %", "delay ms", "p99 ms"];
        head.extend(columns.map(|column| format!("{name}: {column}")));
    }
    rows.push(head);
    let interval = |of: Interval, scale: f64| format!("{:.2} ± {:.2}", scale * of.mean, scale * of.ci95);
    for point in points {
        let mut row: Vec<String> = point.at.iter().map(|(_, label)| label.to_string()).collect();
        row.extend(has_found.then(|| point.found.map_or("none".to_owned(), |found| found.to_string())));
        for name in &names {
            let of = point.traffic.get(*name);
            let cell = |cell: &dyn Fn(&TrafficSummary) -> String| of.map_or("–".to_owned(), cell);
            row.push(cell(&|of| interval(of.goodput, 100.0)));
            row.push(cell(&|of| interval(of.frames_lost, 100.0)));
            row.push(cell(&|of| interval(of.delay_ms, 1.0)));
            row.push(cell(&|of| format!("{:.2}", of.delays.quantile_ms(0.99))));
        }
        rows.push(row);
    }
    aligned(&rows) + &words_of_others(points)
}

/// Of each node and link its figures, point by point in a column each.
fn words_of_others(points: &[Point]) -> String {
    let others = others(points);
    if others.is_empty() {
        return String::new();
    }
    let row = |of: &(&str, &'static str)| {
        let cell = |of: Option<Interval>| of.map_or("–".to_owned(), |of| rounded(of.mean).to_string());
        let values = points.iter().map(|point| cell(other(point, *of)));
        core::iter::once(format!("{}.{}", of.0, of.1)).chain(values).collect()
    };
    String::from("\n") + &aligned(&others.iter().map(row).collect::<Vec<Vec<String>>>())
}

fn aligned(rows: &[Vec<String>]) -> String {
    let columns = rows.first().map_or(0, Vec::len);
    let width = |at: usize| rows.iter().filter_map(|row| row.get(at)).map(|cell| cell.chars().count()).max();
    let widths: Vec<usize> = (0..columns).map(|at| width(at).unwrap_or(0)).collect();
    let mut out = String::new();
    for row in rows {
        for (cell, width) in row.iter().zip(&widths) {
            let _ = write!(out, "{cell:<width$}  ");
        }
        out.truncate(out.trim_end().len());
        out.push('\n');
    }
    out
}
