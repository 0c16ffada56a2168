//! Presets by name, with parameters as text.

use core::time::Duration;

use super::{Flow, Mpeg, Order, audio, av_sync, datagrams, gop, j2k_layers, mpeg, parts};
use crate::limits::PLACES_MAX;
use crate::net::NetError;
use crate::service::{Class, units};

/// Pictures of a group: of more it takes long to work out how a receiver keeps up.
const PICTURES_MAX: usize = 600;

/// A flow that is known by a name.
#[derive(Debug)]
pub struct Preset {
    /// Its name, as in `--service mpeg`.
    pub name: &'static str,
    /// What it is for, in a line.
    pub summary: &'static str,
    /// What can be said of it.
    pub parameters: &'static [Parameter],
    make: fn(&Values<'_>) -> Result<Flow, PresetError>,
}

/// What can be said of a preset.
#[derive(Debug)]
pub struct Parameter {
    /// Its name.
    pub name: &'static str,
    /// What it is if nothing is said.
    pub default: &'static str,
    /// What it says.
    pub summary: &'static str,
}

/// Why there is no such flow; its author is to blame.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PresetError {
    /// No preset has this name.
    #[error("no service is called \"{name}\": write one of {}", known())]
    Unknown {
        /// The name.
        name: String,
    },
    /// The preset has no such parameter.
    #[error("{preset} has no \"{parameter}\": it takes {known}")]
    NoParameter {
        /// The preset.
        preset: &'static str,
        /// The parameter.
        parameter: String,
        /// What there is.
        known: String,
    },
    /// Something that is not a name and a value.
    #[error("\"{text}\" says nothing: write NAME:PARAMETER=VALUE,PARAMETER=VALUE, as in audio:latency=200ms")]
    NoValue {
        /// It.
        text: String,
    },
    /// A value that is none of this parameter's.
    #[error("{parameter} cannot be \"{value}\": write {wanted}")]
    Value {
        /// The parameter.
        parameter: &'static str,
        /// What was said.
        value: String,
        /// What can be.
        wanted: String,
    },
    /// What was said makes a net that cannot be.
    #[error(transparent)]
    Net(#[from] NetError),
}

fn known() -> String {
    Preset::ALL.iter().map(|preset| preset.name).collect::<Vec<_>>().join(", ")
}

const fn parameter(name: &'static str, default: &'static str, summary: &'static str) -> Parameter {
    Parameter { name, default, summary }
}

const FPS: Parameter = parameter("fps", "25", "pictures a second, as in 25 or 29.97");
const LATENCY: Parameter = parameter("latency", "200 ms", "how long something missing is waited for");

impl Preset {
    /// All there are.
    pub const ALL: &'static [Preset] = &[
        Preset {
            name: "datagrams",
            summary: "units of any kind, as far in order as is wanted",
            parameters: &[
                parameter("order", "total", "total, none, or how many units may swap"),
                parameter("latency", "200 ms", "how long a missing unit is waited for, or inf"),
                parameter("repair", "partial", "reliable, partial or unreliable"),
            ],
            make: |values| {
                datagrams(values.order()?, values.time_or_inf("latency")?, values.class("repair")?)
                    .map_err(PresetError::Net)
            },
        },
        Preset {
            name: "mpeg",
            summary: "pictures in slices, of which some need others",
            parameters: &[
                parameter("pictures", "12", "pictures of a group (N)"),
                parameter("distance", "4", "from one I or P picture to the next (M)"),
                parameter("slices", "15", "units of a picture"),
                parameter("headers", "no", "whether a unit of headers stands in front of each picture"),
                FPS,
                parameter("b", "unreliable", "B pictures: reliable, partial or unreliable"),
            ],
            make: made_mpeg,
        },
        Preset {
            name: "audio",
            summary: "sound in frames, in order, live",
            parameters: &[parameter("frame", "20 ms", "how long a frame lasts"), LATENCY],
            make: |values| audio(values.time("frame")?, values.time("latency")?).map_err(PresetError::Net),
        },
        Preset {
            name: "av-sync",
            summary: "pictures and their sound, kept together",
            parameters: &[
                FPS,
                parameter("slices", "15", "units of a picture; the sound of each is one unit in front"),
                parameter("skew", "80 ms", "how far one may be ahead of the other"),
                LATENCY,
            ],
            make: |values| {
                let slices = values.number("slices", PLACES_MAX - 2)?;
                av_sync(values.frame()?, slices, values.time("skew")?, values.time("latency")?)
                    .map_err(PresetError::Net)
            },
        },
        Preset {
            name: "j2k-layers",
            summary: "images in quality layers, JPEG 2000 say, live",
            parameters: &[parameter("layers", "4", "layers of an image, one unit each"), FPS, LATENCY],
            make: |values| {
                let layers = values.number("layers", crate::limits::CLASSES_MAX)?;
                j2k_layers(layers, values.frame()?, values.time("latency")?).map_err(PresetError::Net)
            },
        },
        Preset {
            name: "parts",
            summary: "pages: the text first, the other parts in any order, all reliable",
            parameters: &[parameter("others", "8", "parts of a page besides its text, one unit each")],
            make: |values| parts(values.number("others", PLACES_MAX - 1)?).map_err(PresetError::Net),
        },
    ];

    /// The preset of this name. The error lists those there are.
    pub fn by_name(name: &str) -> Result<&'static Preset, PresetError> {
        let found = Preset::ALL.iter().find(|preset| preset.name == name);
        found.ok_or_else(|| PresetError::Unknown { name: name.to_owned() })
    }

    /// The flow of a name and parameters in one text, as on a command line: `mpeg`, or
    /// `datagrams:order=none,latency=50ms`.
    pub fn parse(text: &str) -> Result<Flow, PresetError> {
        let (name, rest) = text.split_once(':').unwrap_or((text, ""));
        let mut said = Vec::new();
        for part in rest.split(',').filter(|part| !part.trim().is_empty()) {
            let Some((name, value)) = part.split_once('=') else {
                return Err(PresetError::NoValue { text: part.trim().to_owned() });
            };
            said.push((name.trim(), value.trim()));
        }
        Preset::by_name(name.trim())?.flow(&said)
    }

    /// Its flow with these parameters, names and values. Of those that are left out it takes the defaults, of
    /// one that is said twice the last.
    pub fn flow(&self, said: &[(&str, &str)]) -> Result<Flow, PresetError> {
        let is_known = |name: &str| self.parameters.iter().any(|parameter| parameter.name == name);
        if let Some((name, _)) = said.iter().find(|(name, _)| !is_known(name)) {
            let known: Vec<_> = self.parameters.iter().map(|parameter| parameter.name).collect();
            let (preset, parameter) = (self.name, (*name).to_owned());
            return Err(PresetError::NoParameter { preset, parameter, known: known.join(", ") });
        }
        (self.make)(&Values { preset: self, said })
    }
}

fn made_mpeg(values: &Values<'_>) -> Result<Flow, PresetError> {
    let pictures = values.number("pictures", PICTURES_MAX)?;
    let distance = values.number("distance", PICTURES_MAX)?;
    if distance == 0 || pictures == 0 || !pictures.is_multiple_of(distance) {
        let wanted = "a multiple of distance, and neither of them 0".to_owned();
        return Err(PresetError::Value { parameter: "pictures", value: pictures.to_string(), wanted });
    }
    let service = Mpeg {
        frames: gop(pictures, distance),
        slices: values.number("slices", PLACES_MAX)?,
        has_headers: values.flag("headers")?,
        frame: values.frame()?,
        bidirectional: values.class("b")?,
    };
    Ok(mpeg(&service)?)
}

/// What was said, and what was not.
struct Values<'a> {
    preset: &'a Preset,
    said: &'a [(&'a str, &'a str)],
}

impl<'a> Values<'a> {
    fn text(&self, name: &str) -> &'a str {
        let said = self.said.iter().rev().find(|(known, _)| *known == name).map(|(_, value)| *value);
        let default = || self.preset.parameters.iter().find(|known| known.name == name);
        said.or_else(|| default().map(|parameter| parameter.default)).unwrap_or_default()
    }

    /// What the text is, if it can be.
    fn value<T>(
        &self,
        parameter: &'static str,
        wanted: &str,
        read: impl Fn(&'a str) -> Option<T>,
    ) -> Result<T, PresetError> {
        let text = self.text(parameter);
        let error = || PresetError::Value { parameter, value: text.to_owned(), wanted: wanted.to_owned() };
        read(text).ok_or_else(error)
    }

    fn number(&self, name: &'static str, most: usize) -> Result<u32, PresetError> {
        let read = |text: &str| text.parse::<u32>().ok().filter(|number| *number as usize <= most);
        self.value(name, &format!("a whole number, at most {most}"), read)
    }

    fn time(&self, name: &'static str) -> Result<Duration, PresetError> {
        self.value(name, "a time, as in 200 ms", |text| units::time(text).flatten())
    }

    fn time_or_inf(&self, name: &'static str) -> Result<Option<Duration>, PresetError> {
        self.value(name, "a time, as in 200 ms, or inf", units::time)
    }

    fn flag(&self, name: &'static str) -> Result<bool, PresetError> {
        self.value(name, "yes or no", |text| match text {
            "yes" => Some(true),
            "no" => Some(false),
            _ => None,
        })
    }

    fn class(&self, name: &'static str) -> Result<Class, PresetError> {
        self.value(name, "reliable, partial or unreliable", units::class)
    }

    fn order(&self) -> Result<Order, PresetError> {
        self.value("order", "total, none, or how many units may swap, as in 8", |text| match text {
            "total" => Some(Order::Total),
            "none" => Some(Order::None),
            number => number.parse().ok().map(Order::Partial),
        })
    }

    /// How long a picture lasts, by how many there are in a second.
    fn frame(&self) -> Result<Duration, PresetError> {
        let read = |text: &str| text.parse::<f64>().ok().filter(|fps| (0.001..=100_000.0).contains(fps));
        let fps = self.value("fps", "pictures a second, as in 25 or 29.97", read)?;
        Ok(Duration::from_secs_f64(1.0 / fps))
    }
}

#[cfg(test)]
mod tests;
