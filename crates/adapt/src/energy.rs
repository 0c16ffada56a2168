//! What playing costs in energy (GMS, section IV.B): measured where there is a battery, else estimated.
//!
//! Equation 1 of the paper is `E = I_avg · V_power · Time_play`. Table III parts the energy of a pocket PC in
//! network, display and processing, at five levels and idle, over 100 seconds.

use core::time::Duration;

/// What was done while it played.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Work {
    /// Playing time in seconds.
    pub seconds: f64,
    /// Bytes that came in.
    pub bytes: f64,
    /// CPU time in seconds.
    pub cpu_seconds: f64,
    /// Pictures that were shown.
    pub pictures: f64,
}

/// Energy in joules.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Energy {
    /// Of the network interface.
    pub network: f64,
    /// Of the display.
    pub display: f64,
    /// Of CPU and memory.
    pub processing: f64,
}

impl Energy {
    /// All of it.
    pub fn total(&self) -> f64 {
        self.network + self.display + self.processing
    }
}

/// A term of the model: watts in any case, and joules for what is done.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Term {
    /// Watts while nothing is done.
    pub idle: f64,
    /// Joules a picture.
    pub per_picture: f64,
    /// Joules a unit: a byte, or a second of CPU time.
    pub per_unit: f64,
}

/// A measurement that a term is fitted to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// Pictures that were shown.
    pub pictures: f64,
    /// Units that were needed.
    pub units: f64,
    /// Joules, of all the time.
    pub joules: f64,
}

impl Term {
    fn of(&self, seconds: f64, pictures: f64, units: f64) -> f64 {
        self.idle * seconds + self.per_picture * pictures + self.per_unit * units
    }

    /// With the least sum of squared relative errors, over `seconds` each. `idle` was measured by itself.
    pub fn fit(idle: f64, seconds: f64, points: &[Point]) -> Term {
        // Of (base + a·pictures + b·units − joules) / joules, by its normal equations.
        let sum = |f: &dyn Fn(&Point) -> f64| -> f64 { points.iter().map(|p| f(p) / p.joules.powi(2)).sum() };
        let above = |p: &Point| p.joules - idle * seconds;
        let (pp, pu) = (sum(&|p| p.pictures * p.pictures), sum(&|p| p.pictures * p.units));
        let uu = sum(&|p| p.units * p.units);
        let (py, uy) = (sum(&|p| p.pictures * above(p)), sum(&|p| p.units * above(p)));
        let determinant = pp * uu - pu * pu;
        if determinant <= 0.0 {
            return Term { idle, per_picture: 0.0, per_unit: 0.0 };
        }
        let per_picture = (py * uu - uy * pu) / determinant;
        Term { idle, per_picture, per_unit: (uy * pp - py * pu) / determinant }
    }
}

/// Energy as a function of what is done.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Model {
    /// Units are bytes.
    pub network: Term,
    /// Units are bytes: finer pictures change more of what is shown.
    pub display: Term,
    /// Units are seconds of CPU time.
    pub processing: Term,
}

/// A row of Table III: joules in [`TABLE_SECONDS`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Row {
    /// The level; `None` for idle.
    pub level: Option<u8>,
    /// What it took.
    pub energy: Energy,
}

const fn row(level: Option<u8>, network: f64, display: f64, processing: f64) -> Row {
    Row { level, energy: Energy { network, display, processing } }
}

/// Table III: an iPAQ H3600 with IEEE 802.11b that plays 33-layer wavelet video, 3 pictures a second.
pub const TABLE_III: [Row; 6] = [
    row(Some(1), 471.7, 55.5, 273.9),
    row(Some(5), 437.5, 50.9, 272.8),
    row(Some(15), 366.7, 49.8, 271.8),
    row(Some(25), 337.8, 51.1, 271.3),
    row(Some(33), 326.7, 47.8, 270.9),
    row(None, 312.5, 40.6, 261.9),
];

/// Seconds that each row of Table III is for.
pub const TABLE_SECONDS: f64 = 100.0;

/// Pictures a second of Table III.
pub const TABLE_RATE: f64 = 3.0;

impl Model {
    /// Fitted to the table with what `labs/energy` measured: packets of the clip's pictures in 352 by 288, and the
    /// time that decoding them takes on the machine that these were measured on.
    pub const TABLE_III: Model = Model {
        network: Term { idle: 3.125, per_picture: 0.049_78, per_unit: 2.127e-5 },
        display: Term { idle: 0.406, per_picture: 0.027_22, per_unit: 7.634e-7 },
        processing: Term { idle: 2.619, per_picture: 0.027_01, per_unit: 1.130 },
    };

    /// Fitted to Table III; `work` is what each of its levels took in [`TABLE_SECONDS`], in its order.
    pub fn fit(work: &[Work]) -> Model {
        let idle = TABLE_III[TABLE_III.len() - 1].energy;
        let term = |idle: f64, joules: fn(&Energy) -> f64, units: fn(&Work) -> f64| {
            let point = |(row, work): (&Row, &Work)| Point {
                pictures: work.pictures,
                units: units(work),
                joules: joules(&row.energy),
            };
            let points: Vec<Point> = TABLE_III.iter().zip(work).map(point).collect();
            Term::fit(idle / TABLE_SECONDS, TABLE_SECONDS, &points)
        };
        Model {
            network: term(idle.network, |e| e.network, |w| w.bytes),
            display: term(idle.display, |e| e.display, |w| w.bytes),
            processing: term(idle.processing, |e| e.processing, |w| w.cpu_seconds),
        }
    }

    /// What this work takes, as an estimate.
    pub fn energy(&self, work: &Work) -> Energy {
        Energy {
            network: self.network.of(work.seconds, work.pictures, work.bytes),
            display: self.display.of(work.seconds, work.pictures, work.bytes),
            processing: self.processing.of(work.seconds, work.pictures, work.cpu_seconds),
        }
    }
}

/// Adds up `I · V · t` of a battery that is looked at now and then.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Meter {
    last: Option<(f64, Duration)>,
    joules: f64,
    over: Duration,
}

impl Meter {
    /// The battery gives `amperes` at `volts`, at this time.
    pub fn note(&mut self, at: Duration, amperes: f64, volts: f64) {
        let watts = amperes.abs() * volts;
        if let Some((before, since)) = self.last {
            let passed = at.saturating_sub(since);
            self.joules += (before + watts) / 2.0 * passed.as_secs_f64();
            self.over += passed;
        }
        self.last = Some((watts, at));
    }

    /// Joules so far, and how long that was.
    pub fn total(&self) -> (f64, Duration) {
        (self.joules, self.over)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Work of which the table would be true exactly.
    fn work_of(model: &Model, rows: &[Row]) -> Vec<Work> {
        let work = |row: &Row| {
            let bytes = (row.energy.network - model.network.idle * 100.0 - model.network.per_picture * 300.0)
                / model.network.per_unit;
            Work { seconds: 100.0, bytes, cpu_seconds: 10.0 + bytes / 1e6, pictures: 300.0 }
        };
        rows.iter().map(work).collect()
    }

    #[test]
    fn a_fit_finds_the_line_that_points_lie_on() {
        let joules = |pictures: f64, units: f64| 2.0 * 100.0 + 0.5 * pictures + 0.01 * units;
        let point = |(pictures, units)| Point { pictures, units, joules: joules(pictures, units) };
        let points = [(300.0, 1e3), (300.0, 5e4), (150.0, 1e4)].map(point);
        let term = Term::fit(2.0, 100.0, &points);
        assert!((term.per_picture - 0.5).abs() < 1e-9 && (term.per_unit - 0.01).abs() < 1e-9, "{term:?}");
        assert_eq!(
            Term::fit(2.0, 100.0, &points[..1]).per_unit,
            0.0,
            "one point says nothing of two numbers"
        );
    }

    #[test]
    fn the_table_adds_up_as_printed() {
        let totals = [801.1, 761.2, 688.3, 660.2, 645.4, 615.0];
        for (row, total) in TABLE_III.iter().zip(totals) {
            assert!((row.energy.total() - total).abs() < 0.11, "{row:?}");
        }
    }

    #[test]
    fn a_model_that_is_fitted_tells_the_table() {
        let term = |idle: f64, per_unit| Term { idle: idle / 100.0, per_picture: 0.01, per_unit };
        let start =
            Model { network: term(312.5, 1e-5), display: term(40.6, 0.0), processing: term(261.9, 0.0) };
        let work = work_of(&start, &TABLE_III[..5]);
        let model = Model::fit(&work);
        for (row, work) in TABLE_III.iter().zip(&work) {
            let energy = model.energy(work);
            assert!((energy.network / row.energy.network - 1.0).abs() < 1e-3, "{energy:?}");
            assert!((energy.total() / row.energy.total() - 1.0).abs() < 0.01, "{energy:?}");
        }
        let idle = model.energy(&Work { seconds: 100.0, ..Work::default() });
        assert!((idle.total() - 615.0).abs() < 0.01);
    }

    #[test]
    fn a_battery_is_added_up_by_time() {
        let mut meter = Meter::default();
        for (second, amperes) in [(0, -1.0), (1, -1.0), (3, -2.0)] {
            meter.note(Duration::from_secs(second), amperes, 4.0);
        }
        assert_eq!(meter.total(), (4.0 + 12.0, Duration::from_secs(3)));
    }
}
