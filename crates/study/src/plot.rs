//! Pictures of figures.

use core::fmt;

use plotters::chart::ChartContext;
use plotters::coord::Shift;
use plotters::coord::types::RangedCoordf64;
use plotters::element::ErrorBar;
use plotters::prelude::*;

/// Width and height of a panel in pixels.
const PANEL: (u32, u32) = (560, 400);
/// Distinct in colour and in lightness.
const COLOURS: [RGBColor; 7] = [
    RGBColor(0x33, 0x33, 0x33),
    RGBColor(0x1F, 0x77, 0xB4),
    RGBColor(0xD6, 0x5F, 0x00),
    RGBColor(0x2C, 0xA0, 0x2C),
    RGBColor(0x94, 0x67, 0xBD),
    RGBColor(0xC4, 0x2E, 0x4C),
    RGBColor(0x8C, 0x6D, 0x31),
];

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Chart<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<RangedCoordf64, RangedCoordf64>>;

/// A panel of a picture: lines over the same axes.
#[derive(Debug, Clone)]
pub struct Panel {
    /// Stands above it.
    pub title: String,
    /// What the axes are, with their units.
    pub axes: (String, String),
    /// Each line's name and points.
    pub lines: Vec<(String, Vec<Spot>)>,
}

/// A point of a line.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spot {
    /// From left to right.
    pub x: f64,
    /// Upwards.
    pub y: f64,
    /// How far it may be off, up and down; nothing is drawn of 0.
    pub ci: f64,
}

impl From<(f64, f64)> for Spot {
    fn from((x, y): (f64, f64)) -> Self {
        Spot { x, y, ci: 0.0 }
    }
}

/// A picture could not be drawn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CannotDraw(String);

impl fmt::Display for CannotDraw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot draw the picture: {}", self.0)
    }
}

impl std::error::Error for CannotDraw {}

/// Panels side by side, as SVG.
///
/// # Errors
/// There is nothing in them that can be drawn.
pub fn svg(panels: &[Panel]) -> Result<String, CannotDraw> {
    picture(panels, Across::Evenly)
}

/// The same, with ten times as much at each step to the right. What is not above 0 there is left out.
///
/// # Errors
/// As of [`svg`].
pub fn svg_by_decades(panels: &[Panel]) -> Result<String, CannotDraw> {
    let decades = |panel: &Panel| {
        let mut panel = panel.clone();
        for (_, spots) in &mut panel.lines {
            spots.retain(|spot| spot.x > 0.0);
            spots.iter_mut().for_each(|spot| spot.x = spot.x.log10());
        }
        panel
    };
    let panels: Vec<_> = panels.iter().map(decades).collect();
    picture(&panels, Across::ByDecades)
}

/// What a step to the right is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Across {
    /// As much everywhere.
    Evenly,
    /// Ten times as much; points are at their logarithms already.
    ByDecades,
}

fn picture(panels: &[Panel], across: Across) -> Result<String, CannotDraw> {
    let mut picture = String::new();
    drawn(&mut picture, panels, across).map_err(|error| CannotDraw(error.to_string()))?;
    Ok(picture)
}

fn drawn(picture: &mut String, panels: &[Panel], across: Across) -> Result<(), Box<dyn std::error::Error>> {
    let count = u32::try_from(panels.len())?.max(1);
    let area = SVGBackend::with_string(picture, (PANEL.0 * count, PANEL.1)).into_drawing_area();
    area.fill(&WHITE).map_err(|error| error.to_string())?;
    for (part, panel) in area.split_evenly((1, panels.len().max(1))).iter().zip(panels) {
        draw(part, panel, across).map_err(|error| error.to_string())?;
    }
    area.present().map_err(|error| error.to_string())?;
    Ok(())
}

fn draw(area: &Area<'_>, panel: &Panel, steps: Across) -> Result<(), Box<dyn std::error::Error>> {
    let points = || panel.lines.iter().flat_map(|(_, points)| points);
    let right = points().map(|point| point.x).fold(f64::MIN_POSITIVE, f64::max);
    let least = points().map(|point| point.x).fold(right, f64::min);
    let left = if steps == Across::ByDecades { least.floor() } else { 0.0 };
    let top = points().map(|point| point.y + point.ci).fold(f64::MIN_POSITIVE, f64::max) * 1.1;
    let mut chart: Chart<'_, '_> = ChartBuilder::on(area)
        .caption(&panel.title, ("sans-serif", 15))
        .margin(12)
        .x_label_area_size(40)
        .y_label_area_size(64)
        .build_cartesian_2d(left..right * 1.02, 0.0..top)?;
    let (across, up) = (panel.axes.0.as_str(), panel.axes.1.as_str());
    let mut mesh = chart.configure_mesh();
    mesh.x_desc(across).y_desc(up).light_line_style(WHITE);
    match steps {
        Across::Evenly => mesh.draw()?,
        Across::ByDecades => {
            let decades = (right.ceil() - left) as usize + 1;
            mesh.x_labels(decades).x_label_formatter(&|x| format!("{:.0}", 10_f64.powf(*x))).draw()?;
        }
    }
    for ((name, points), colour) in panel.lines.iter().zip(COLOURS.iter().cycle()) {
        let style = colour.stroke_width(2);
        let line = points.iter().map(|point| (point.x, point.y));
        chart
            .draw_series(LineSeries::new(line, style).point_size(3))?
            .label(name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], style));
        let bars = points.iter().filter(|point| point.ci > 0.0);
        let bar = |point: &Spot| {
            let (low, high) = (point.y - point.ci, point.y + point.ci);
            ErrorBar::new_vertical(point.x, low, point.y, high, colour.stroke_width(1), 6)
        };
        chart.draw_series(bars.map(bar))?;
    }
    let mut lines = panel.lines.clone();
    lines.iter_mut().flat_map(|(_, spots)| spots).for_each(|spot| spot.x -= left);
    let place = emptiest(&lines, (right * 1.02 - left, top));
    chart
        .configure_series_labels()
        .position(place)
        .background_style(WHITE.mix(0.8))
        .border_style(BLACK)
        .draw()?;
    Ok(())
}

/// Where names stand in the way of as little as can be.
fn emptiest(lines: &[(String, Vec<Spot>)], (right, top): (f64, f64)) -> SeriesLabelPosition {
    use SeriesLabelPosition::{LowerLeft, LowerRight, MiddleRight, UpperLeft, UpperRight};
    // What they may take of the width and of the height, and where that begins.
    const WIDE: f64 = 0.25;
    const HIGH: f64 = 0.4;
    let places = [
        (UpperRight, (1.0 - WIDE, 1.0 - HIGH)),
        (UpperLeft, (0.0, 1.0 - HIGH)),
        (LowerRight, (1.0 - WIDE, 0.0)),
        (MiddleRight, (1.0 - WIDE, (1.0 - HIGH) / 2.0)),
        (LowerLeft, (0.0, 0.0)),
    ];
    let steps = lines.iter().flat_map(|(_, points)| points.windows(2)).flat_map(|pair| {
        (0..=10).map(move |step| {
            let part = f64::from(step) / 10.0;
            let between = |from: f64, to: f64| from + (to - from) * part;
            (between(pair[0].x, pair[1].x) / right, between(pair[0].y, pair[1].y) / top)
        })
    });
    let mut covered = [0_u32; 5];
    for (x, y) in steps {
        for (count, (_, (left, bottom))) in covered.iter_mut().zip(&places) {
            let is_in = (*left..=left + WIDE).contains(&x) && (*bottom..=bottom + HIGH).contains(&y);
            *count += u32::from(is_in);
        }
    }
    let least = covered.iter().zip(places).min_by_key(|(count, _)| **count);
    least.map_or(UpperRight, |(_, (place, _))| place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_words_are_in_the_picture() {
        let panel = |title: &str| Panel {
            title: title.into(),
            axes: ("payload (bytes)".into(), "core (%)".into()),
            lines: vec![
                ("plain".into(), vec![(50.0, 3.0).into(), Spot { x: 1400.0, y: 9.0, ci: 2.0 }]),
                ("other".into(), Vec::new()),
            ],
        };
        let text = svg(&[panel("UDP"), panel("TCP")]).expect("it can be drawn");
        for word in ["<svg", "UDP", "TCP", "payload (bytes)", "plain", "other", "polyline"] {
            assert!(text.contains(word), "{word} is missing");
        }
        let without = Panel { lines: Vec::new(), ..panel("UDP") };
        assert!(svg(&[without]).is_ok());
    }

    #[test]
    fn by_decades_labels_are_powers_of_ten() {
        let spots = vec![(0.0, 1.0).into(), (10.0, 3.0).into(), (100.0, 2.0).into(), (1000.0, 9.0).into()];
        let axes = ("relays".into(), "s".into());
        let panel = Panel { title: "time".into(), axes, lines: vec![("all".into(), spots)] };
        let text = svg_by_decades(&[panel]).expect("it can be drawn");
        let labels: Vec<_> = text.lines().map(str::trim).filter(|line| line.starts_with("10")).collect();
        assert!(["10", "100", "1000"].iter().all(|label| labels.contains(label)), "{labels:?}");
    }

    #[test]
    fn names_stand_where_lines_do_not() {
        let line =
            |spots: &[(f64, f64)]| ("line".to_owned(), spots.iter().copied().map(Spot::from).collect());
        let place = |spots: &[(f64, f64)]| emptiest(&[line(spots)], (10.0, 10.0));
        let is = |place, expected: SeriesLabelPosition| {
            assert_eq!(core::mem::discriminant(&place), core::mem::discriminant(&expected));
        };
        is(place(&[(0.0, 9.0), (10.0, 1.0)]), SeriesLabelPosition::UpperRight);
        is(place(&[(0.0, 1.0), (10.0, 9.0)]), SeriesLabelPosition::UpperLeft);
        is(place(&[(0.0, 9.0), (10.0, 9.0)]), SeriesLabelPosition::LowerRight);
    }
}
