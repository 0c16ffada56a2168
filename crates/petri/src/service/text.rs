//! Flows as text: the lines of a net, and lines that say how it is used.
//!
//! ```text
//! rounds 4
//! buffer 8 MiB
//! period 40 ms
//! class reliable of caption
//! class partial within 120 ms of sound
//! class unreliable within 400 ms
//!
//! transition instant and-master by sound
//! …
//! ```
//!
//! `rounds` and `buffer` are what the receiver keeps, 4 and 32 MiB if nothing is said; `period` is said of
//! live sources, `dependent` where objects are of no use without those before them in their round. `class` says how reliable objects are, for how long if not for ever, and which: `of` names
//! them, as `sound`, `slice[3]` or `slice[0..14]`; `slice` is all of that word. One class may leave `of` out: it
//! is that of all others. Without classes all objects are reliable for ever, so a net is a flow as it stands.
//! Lines may come in any order. Times are in `s`, `ms` or `us`, sizes in `B`, `KiB`, `MiB` or `GiB`.

use core::fmt;
use core::str::FromStr;
use core::time::Duration;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::units::{self, Bytes, Time, class_word};
use super::{Class, Flow, FlowError, ServiceClass, presets};
use crate::limits::{CLASSES_MAX, TEXT_BYTES_MAX};
use crate::net::{Name, Net, TextError};

/// Rounds that a receiver keeps if nothing is said.
const ROUNDS: u32 = 4;

/// Why a text is not a flow.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FlowTextError {
    /// A line that says how the net is used, and cannot be parsed.
    #[error("line {line}, column {column}: {problem}")]
    Line {
        /// Counted from 1.
        line: usize,
        /// Where in the line, in characters, counted from 1.
        column: usize,
        /// What is wrong, and what to write.
        problem: String,
    },
    /// The net is none.
    #[error(transparent)]
    Net(#[from] TextError),
    /// All lines are parsed, but what they say is no flow.
    #[error(transparent)]
    Flow(#[from] FlowError),
    /// Some object has no class.
    #[error("object {0} has no class: add it behind an \"of\", or a class without \"of\", for all others")]
    NoClass(Name),
}

impl FromStr for Flow {
    type Err = FlowTextError;

    fn from_str(text: &str) -> Result<Flow, FlowTextError> {
        if text.len() > TEXT_BYTES_MAX {
            return Err(TextError::TooLong(text.len()).into());
        }
        let (mut used, mut net) = (Used::default(), String::with_capacity(text.len()));
        for (i, text) in text.lines().enumerate() {
            let line = Line::new(i + 1, text);
            match line.words.first() {
                None | Some(&("transition" | "object" | "order")) => net.push_str(text),
                Some(&"rounds") => used.rounds = Some(line.number("a number of rounds, as in rounds 4")?),
                Some(&"buffer") => used.buffer_bytes = Some(line.value("a size, as in 8 MiB", units::bytes)?),
                Some(&"period") => {
                    let time = |text: &str| units::time(text).flatten();
                    used.period = Some(line.value("a time, as in 40 ms", time)?);
                }
                Some(&"dependent") => used.is_dependent = true,
                Some(&"class") => used.class(line)?,
                Some(word) => {
                    let known = "transition, object, order, class, rounds, buffer, period or dependent";
                    return Err(line.error(0, format!("\"{word}\" is not known: a line begins with {known}")));
                }
            }
            // Of lines that are not the net's, nothing: so that those behind keep their numbers.
            net.push('\n');
        }
        used.flow(net.parse()?)
    }
}

/// A line in words.
struct Line<'a> {
    at: usize,
    text: &'a str,
    words: Vec<&'a str>,
}

impl<'a> Line<'a> {
    fn new(at: usize, text: &'a str) -> Self {
        let told = text.split('#').next().unwrap_or_default();
        let words = told.split([' ', '\t', ',']).filter(|word| !word.is_empty()).collect();
        Line { at, text: told, words }
    }

    /// At a word, or behind the last one.
    fn error(&self, word: usize, problem: impl Into<String>) -> FlowTextError {
        let before = match self.words.get(word) {
            // Words are pieces of the text.
            Some(word) => word.as_ptr() as usize - self.text.as_ptr() as usize,
            None => self.text.trim_end().len(),
        };
        let column = self.text[..before].chars().count() + 1;
        FlowTextError::Line { line: self.at, column, problem: problem.into() }
    }

    /// All that is behind the first word.
    fn value<T>(&self, what: &str, read: impl Fn(&str) -> Option<T>) -> Result<T, FlowTextError> {
        let said = self.words[1..].join(" ");
        read(&said).ok_or_else(|| self.error(1, format!("\"{said}\" is not {what}")))
    }

    fn number(&self, what: &str) -> Result<u32, FlowTextError> {
        self.value(what, |text| text.parse().ok())
    }
}

/// What lines say that are not the net's.
#[derive(Default)]
struct Used<'a> {
    rounds: Option<u32>,
    buffer_bytes: Option<u32>,
    period: Option<Duration>,
    is_dependent: bool,
    classes: Vec<ServiceClass>,
    /// Of each class: its line, and where the names of its objects begin, if there is an "of".
    members: Vec<(Line<'a>, Option<usize>)>,
}

impl<'a> Used<'a> {
    fn class(&mut self, line: Line<'a>) -> Result<(), FlowTextError> {
        let Some(repair) = line.words.get(1).and_then(|word| units::class(word)) else {
            let problem =
                "a class is reliable, partial or unreliable, as in class partial within 120 ms of sound";
            return Err(line.error(1, problem));
        };
        if self.classes.len() == CLASSES_MAX {
            return Err(line.error(0, format!("more than {CLASSES_MAX} classes: let objects share some")));
        }
        let of = line.words.iter().position(|word| *word == "of");
        let end = of.unwrap_or(line.words.len());
        let validity = match line.words.get(2..end).unwrap_or_default() {
            [] => None,
            ["within", time @ ..] => {
                let validity = units::time(&time.join(" "));
                validity.ok_or_else(|| line.error(3, "a time belongs here, as in within 120 ms"))?
            }
            _ => return Err(line.error(2, "\"within\" and a time, or \"of\" and objects, belong here")),
        };
        if of.is_some_and(|of| of + 1 == line.words.len()) {
            return Err(line.error(end + 1, "the names of objects are missing behind \"of\""));
        }
        if of.is_none() && self.members.iter().any(|(_, first)| first.is_none()) {
            return Err(line.error(0, "another class is that of all others already: say what this one is of"));
        }
        self.classes.push(ServiceClass { repair, validity });
        self.members.push((line, of.map(|of| of + 1)));
        Ok(())
    }

    fn flow(self, net: Net) -> Result<Flow, FlowTextError> {
        let class_of = self.class_of(&net)?;
        let mut classes = self.classes;
        if classes.is_empty() {
            classes.push(ServiceClass { repair: Class::Reliable, validity: None });
        }
        let (rounds, is_dependent) = (self.rounds.unwrap_or(ROUNDS), self.is_dependent);
        let buffer_bytes = self.buffer_bytes.unwrap_or(presets::BUFFER_BYTES);
        let flow = Flow {
            net: Arc::new(net),
            classes,
            class_of,
            rounds,
            buffer_bytes,
            period: self.period,
            is_dependent,
        };
        flow.check()?;
        Ok(flow)
    }

    fn class_of(&self, net: &Net) -> Result<Vec<u8>, FlowTextError> {
        let name = |object: usize| &net.places()[net.place_of(object).index()].name;
        let mut known: BTreeMap<&str, BTreeMap<Option<u32>, usize>> = BTreeMap::new();
        for object in 0..net.objects() {
            known.entry(name(object).word()).or_default().insert(name(object).number(), object);
        }
        let mut class_of = vec![None; net.objects()];
        for (class, (line, first)) in (0_u8..).zip(&self.members) {
            for at in first.unwrap_or(line.words.len())..line.words.len() {
                let word = line.words[at];
                let Some(objects) = named(&known, word) else {
                    return Err(line.error(at, format!("no objects are called {word}")));
                };
                for object in objects {
                    if class_of[object].replace(class).is_some() {
                        let problem = format!("object {} is of a class already", name(object));
                        return Err(line.error(at, problem));
                    }
                }
            }
        }
        let others = (0_u8..).zip(&self.members).find(|(_, (_, first))| first.is_none());
        let others = others.map(|(class, _)| class).or(self.members.is_empty().then_some(0));
        let of = |(object, class): (usize, &Option<u8>)| {
            class.or(others).ok_or_else(|| FlowTextError::NoClass(name(object).clone()))
        };
        class_of.iter().enumerate().map(of).collect()
    }
}

/// The objects of a name or of a range of them, if they are all there.
fn named(known: &BTreeMap<&str, BTreeMap<Option<u32>, usize>>, text: &str) -> Option<Vec<usize>> {
    let Some((word, range)) = text.split_once('[') else {
        return known.get(text).map(|objects| objects.values().copied().collect());
    };
    let range = range.strip_suffix(']')?;
    let (first, last) = range.split_once("..").unwrap_or((range, range));
    let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
    if first > last {
        return None;
    }
    let objects: Vec<_> = known.get(word)?.range(Some(first)..=Some(last)).map(|(_, i)| *i).collect();
    (objects.len() as u64 == u64::from(last - first) + 1).then_some(objects)
}

impl fmt::Display for Flow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "rounds {}", self.rounds)?;
        writeln!(f, "buffer {}", Bytes(self.buffer_bytes))?;
        if self.period.is_some() {
            writeln!(f, "period {}", Time(self.period))?;
        }
        let names: Vec<_> = (0..self.net.objects().min(self.class_of.len()))
            .map(|object| (self.class_of[object], &self.net.places()[self.net.place_of(object).index()].name))
            .collect();
        if self.is_dependent {
            writeln!(f, "dependent")?;
        }
        for (number, class) in self.classes.iter().enumerate() {
            let of: Vec<_> = names.iter().filter(|(of, _)| usize::from(*of) == number).collect();
            if of.is_empty() {
                continue;
            }
            write!(f, "class {}", class_word(class.repair))?;
            if class.validity.is_some() {
                write!(f, " within {}", Time(class.validity))?;
            }
            if of.len() < names.len() {
                f.write_str(" of")?;
                for run in of.chunk_by(|(_, a), (_, b)| b.follows(a)) {
                    let (first, last) = (run[0].1, run[run.len() - 1].1);
                    match (first.number(), last.number()) {
                        (Some(a), Some(b)) if a != b => write!(f, " {}[{a}..{b}]", first.word())?,
                        _ => write!(f, " {first}")?,
                    }
                }
            }
            writeln!(f)?;
        }
        write!(f, "\n{}", self.net)
    }
}

#[cfg(test)]
mod tests;
