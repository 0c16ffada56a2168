//! The options of elements: what there is, and what was chosen.

use core::time::Duration;
use std::collections::BTreeMap;

use outflow_media::image::Rect;

/// An option of an element.
#[derive(Debug, Clone, Copy)]
pub struct Opt {
    /// Its name.
    pub name: &'static str,
    /// How its value is written.
    pub form: Form,
    /// What holds where nothing is said, as it would be written; `None` if it must be said or has
    /// no value then.
    pub default: Option<&'static str>,
    /// The element cannot be without it.
    pub needed: bool,
    /// What it is for.
    pub doc: &'static str,
}

impl Opt {
    /// An option that may be left out.
    pub const fn new(
        name: &'static str,
        form: Form,
        default: Option<&'static str>,
        doc: &'static str,
    ) -> Self {
        Opt { name, form, default, needed: false, doc }
    }

    /// An option that must be given.
    pub const fn needed(name: &'static str, form: Form, doc: &'static str) -> Self {
        Opt { name, form, default: None, needed: true, doc }
    }
}

/// How the value of an option is written.
#[derive(Debug, Clone, Copy)]
pub enum Form {
    /// A whole number within these bounds, both included.
    Whole(u64, u64),
    /// Any text.
    Text,
    /// A text that is not shown to people.
    Secret,
    /// A file, relative to the configuration.
    File,
    /// `true` or `false`.
    Flag,
    /// As in "10 ms".
    Duration,
    /// As in "20 Mbit/s".
    Rate,
    /// As in "64 MB".
    Size,
    /// As in "640x360".
    Dimensions,
    /// As in "640x360+16+0": width, height, pixels left of it, rows above it.
    Part,
    /// One of these words.
    Word(&'static [&'static str]),
    /// A list of such words.
    Words(&'static [&'static str]),
    /// A list of texts.
    Texts,
    /// A list of whole numbers within these bounds.
    Numbers(u64, u64),
}

impl Form {
    /// In words, with an example.
    pub fn describe(self) -> String {
        match self {
            Form::Whole(min, max) => format!("a whole number, {min} to {max}"),
            Form::Text | Form::Secret => "a text".to_owned(),
            Form::File => "a file".to_owned(),
            Form::Flag => "true or false".to_owned(),
            Form::Duration => "a duration, as \"10 ms\"".to_owned(),
            Form::Rate => "a rate, as \"20 Mbit/s\"".to_owned(),
            Form::Size => "a size, as \"64 MB\"".to_owned(),
            Form::Dimensions => "width and height, as \"640x360\"".to_owned(),
            Form::Part => "width, height and place, as \"640x360+16+0\"".to_owned(),
            Form::Word(words) => format!("\"{}\"", words.join("\" or \"")),
            Form::Words(words) => format!("a list of \"{}\"", words.join("\", \"")),
            Form::Texts => "a list of texts".to_owned(),
            Form::Numbers(min, max) => format!("a list of whole numbers, {min} to {max}"),
        }
    }
}

/// A value that was chosen for an option.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Setting {
    /// Of [`Form::Whole`].
    Whole(u64),
    /// Of [`Form::Text`], [`Form::Secret`], [`Form::File`] and [`Form::Word`].
    Text(String),
    /// Of [`Form::Flag`].
    Flag(bool),
    /// Of [`Form::Duration`].
    Duration(Duration),
    /// Of [`Form::Rate`], bits a second.
    Rate(u64),
    /// Of [`Form::Size`], bytes.
    Size(u64),
    /// Of [`Form::Dimensions`].
    Dimensions(usize, usize),
    /// Of [`Form::Part`].
    Part(Rect),
    /// Of [`Form::Texts`] and [`Form::Words`].
    Texts(Vec<String>),
    /// Of [`Form::Numbers`].
    Numbers(Vec<u64>),
}

/// What was chosen for the options of an element. What is not there stands at its default.
///
/// Each value is of its option's [`Form`]: the reader of a configuration sees to that.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Settings(BTreeMap<String, Setting>);

macro_rules! getters {
    ($($(#[$doc:meta])* $name:ident: $variant:ident => $type:ty;)+) => {
        impl Settings {
            $($(#[$doc])*
            pub fn $name(&self, option: &str) -> Option<$type> {
                match self.0.get(option) {
                    Some(Setting::$variant(value)) => Some(value.clone()),
                    _ => None,
                }
            })+
        }
    };
}

getters! {
    /// A whole number.
    whole: Whole => u64;
    /// A flag.
    flag: Flag => bool;
    /// A duration.
    duration: Duration => Duration;
    /// Bits a second.
    rate: Rate => u64;
    /// Bytes.
    size: Size => u64;
    /// A part of an image.
    part: Part => Rect;
    /// Whole numbers.
    numbers: Numbers => Vec<u64>;
}

impl Settings {
    /// With one more value.
    pub fn with(mut self, option: &str, value: Setting) -> Self {
        self.set(option, value);
        self
    }

    /// Sets a value.
    pub fn set(&mut self, option: &str, value: Setting) {
        self.0.insert(option.to_owned(), value);
    }

    /// A text, a word or a file.
    pub fn text(&self, option: &str) -> Option<&str> {
        match self.0.get(option) {
            Some(Setting::Text(text)) => Some(text),
            _ => None,
        }
    }

    /// Texts or words.
    pub fn texts(&self, option: &str) -> Option<&[String]> {
        match self.0.get(option) {
            Some(Setting::Texts(texts)) => Some(texts),
            _ => None,
        }
    }

    /// Width and height.
    pub fn dimensions(&self, option: &str) -> Option<(usize, usize)> {
        match self.0.get(option) {
            Some(Setting::Dimensions(width, height)) => Some((*width, *height)),
            _ => None,
        }
    }

    /// Whether the option was given.
    pub fn has(&self, option: &str) -> bool {
        self.0.contains_key(option)
    }

    /// All that was given, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Setting)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }
}
