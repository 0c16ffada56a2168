//! Pictures of figures.

use std::path::Path;

use anyhow::{Result, anyhow};
use plotters::chart::ChartContext;
use plotters::coord::Shift;
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;

/// Width and height of a panel in pixels.
const PANEL: (u32, u32) = (560, 400);
/// Distinct in colour and in lightness.
const COLOURS: [RGBColor; 5] = [
    RGBColor(0x33, 0x33, 0x33),
    RGBColor(0x1F, 0x77, 0xB4),
    RGBColor(0xD6, 0x5F, 0x00),
    RGBColor(0x2C, 0xA0, 0x2C),
    RGBColor(0x94, 0x67, 0xBD),
];

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Chart<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<RangedCoordf64, RangedCoordf64>>;

/// A panel of a picture: lines over the same axes.
#[derive(Debug, Clone)]
pub struct Panel {
    /// Stands above it.
    pub title: String,
    /// What the axes are, with their units.
    pub axes: (&'static str, &'static str),
    /// Each line's name and points.
    pub lines: Vec<(String, Vec<(f64, f64)>)>,
}

/// Writes panels side by side as SVG.
pub fn write_svg(file: &Path, panels: &[Panel]) -> Result<()> {
    let count = u32::try_from(panels.len())?;
    let area = SVGBackend::new(file, (PANEL.0 * count, PANEL.1)).into_drawing_area();
    let failed = |error: &dyn std::fmt::Display| anyhow!("cannot draw {}: {error}", file.display());
    area.fill(&WHITE).map_err(|error| failed(&error))?;
    for (part, panel) in area.split_evenly((1, panels.len())).iter().zip(panels) {
        draw(part, panel).map_err(|error| failed(&error))?;
    }
    area.present().map_err(|error| failed(&error))
}

fn draw(area: &Area<'_>, panel: &Panel) -> Result<(), Box<dyn std::error::Error>> {
    let points = || panel.lines.iter().flat_map(|(_, points)| points);
    let right = points().map(|point| point.0).fold(1.0, f64::max);
    let top = points().map(|point| point.1).fold(f64::MIN_POSITIVE, f64::max) * 1.1;
    let mut chart: Chart<'_, '_> = ChartBuilder::on(area)
        .caption(&panel.title, ("sans-serif", 18))
        .margin(12)
        .x_label_area_size(40)
        .y_label_area_size(56)
        .build_cartesian_2d(0.0..right, 0.0..top)?;
    chart.configure_mesh().x_desc(panel.axes.0).y_desc(panel.axes.1).light_line_style(WHITE).draw()?;
    for ((name, points), colour) in panel.lines.iter().zip(COLOURS.iter().cycle()) {
        let style = colour.stroke_width(2);
        chart
            .draw_series(LineSeries::new(points.iter().copied(), style).point_size(3))?
            .label(name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], style));
    }
    chart.configure_series_labels().background_style(WHITE.mix(0.8)).border_style(BLACK).draw()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_words_are_in_the_picture() {
        let folder = tempfile::tempdir().expect("there is room");
        let file = folder.path().join("picture.svg");
        let panel = |title: &str| Panel {
            title: title.into(),
            axes: ("payload (bytes)", "core (%)"),
            lines: vec![("plain".into(), vec![(50.0, 3.0), (1400.0, 9.0)]), ("other".into(), Vec::new())],
        };
        write_svg(&file, &[panel("UDP"), panel("TCP")]).expect("it can be drawn");
        let text = std::fs::read_to_string(&file).expect("it is there");
        for word in ["<svg", "UDP", "TCP", "payload (bytes)", "plain", "other", "polyline"] {
            assert!(text.contains(word), "{word} is missing");
        }
    }
}
