//! Nets as text: one line a transition, one a place or a run of places that differ in their numbers alone.
//!
//! ```text
//! # Everything behind a # is for people.
//! transition picture and-master by sound
//! object slice[0..14] from picture to picture within 0 ms, 40 ms, 120 ms holding 1
//! object sound from picture to picture within 0 ms, 40 ms, 80 ms holding 1
//! order gate from picture to picture holding 2
//! ```
//!
//! `transition NAME RULE` and, of rules that need one, `by PLACE`. `object` or `order`, then the name, or a
//! word and the first and last number of many; `from` and `to` are transitions. `within` says the earliest,
//! the nominal and the latest time, in `s`, `ms` or `us`, or `inf` for the latest; without it, any time will
//! do. `holding` is the number of tokens at the start, none without it. Things may be named before the line
//! that declares them.

use core::fmt;
use core::str::FromStr;
use core::time::Duration;
use std::collections::BTreeMap;

use super::{Builder, Carries, Interval, Name, Net, NetError, Place, Rule, TransitionId};
use crate::limits::{PLACES_MAX, TEXT_BYTES_MAX, TRANSITIONS_MAX};

/// Why a text is not a net.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TextError {
    /// A line that cannot be parsed.
    #[error("line {line}: {problem}")]
    Line {
        /// Counted from 1.
        line: usize,
        /// What is wrong, and what to write.
        problem: String,
    },
    /// All lines are parsed, but what they say cannot be run.
    #[error(transparent)]
    Net(#[from] NetError),
    /// More text than is read.
    #[error("the text has {0} bytes; {TEXT_BYTES_MAX} are read")]
    TooLong(usize),
}

impl FromStr for Net {
    type Err = TextError;

    fn from_str(text: &str) -> Result<Net, TextError> {
        if text.len() > TEXT_BYTES_MAX {
            return Err(TextError::TooLong(text.len()));
        }
        let mut reader = Reader::default();
        let mut lines = Vec::new();
        for (i, text) in text.lines().enumerate() {
            let line = Line::new(i + 1, text);
            match line.words.first() {
                Some(&"transition") => reader.transition(&line)?,
                Some(&("object" | "order")) => lines.push(line),
                Some(word) => {
                    let known = "a line begins with transition, object or order";
                    return Err(line.error(format!("\"{word}\" is not known: {known}")));
                }
                None => {}
            }
        }
        lines.iter().try_for_each(|line| reader.places(line))?;
        reader.finish()
    }
}

/// A line in words. Commas end a word; brackets belong to names.
struct Line<'a> {
    number: usize,
    words: Vec<&'a str>,
}

impl<'a> Line<'a> {
    fn new(number: usize, text: &'a str) -> Self {
        let told = text.split('#').next().unwrap_or_default();
        let words = told.split([' ', '\t', ',']).filter(|word| !word.is_empty()).collect();
        Line { number, words }
    }

    fn error(&self, problem: impl Into<String>) -> TextError {
        TextError::Line { line: self.number, problem: problem.into() }
    }

    /// The word at a place, or an error that says what is missing.
    fn word(&self, at: usize, what: &str) -> Result<&'a str, TextError> {
        self.words
            .get(at)
            .copied()
            .ok_or_else(|| self.error(format!("{what} is missing at the end of the line")))
    }

    /// The word behind a keyword, or an error that says that there is another one.
    fn behind(&self, at: usize, keyword: &str, what: &str) -> Result<&'a str, TextError> {
        let found = self.word(at, keyword)?;
        if found != keyword {
            return Err(self.error(format!("\"{found}\" stands where \"{keyword}\" and {what} belong")));
        }
        self.word(at + 1, what)
    }

    /// A time, in one word or two, and where the next one begins.
    fn time(&self, at: usize) -> Result<(Option<Duration>, usize), TextError> {
        let word = self.word(at, "a time, as in 40 ms,")?;
        if word == "inf" {
            return Ok((None, at + 1));
        }
        let digits = word.find(|c: char| !c.is_ascii_digit()).unwrap_or(word.len());
        let (number, unit, next) = match word.split_at(digits) {
            (number, "") => (number, self.words.get(at + 1).copied().unwrap_or_default(), at + 2),
            (number, unit) => (number, unit, at + 1),
        };
        let scale = match unit {
            "s" => 1_000_000,
            "ms" => 1000,
            "us" => 1,
            _ => {
                return Err(self.error(format!("{number} of what? Write s, ms or us behind it, as in 40 ms")));
            }
        };
        let us = number.parse::<u64>().ok().and_then(|number| number.checked_mul(scale));
        let us = us
            .ok_or_else(|| self.error(format!("\"{word}\" is no time: write a whole number, as in 40 ms")))?;
        Ok((Some(Duration::from_micros(us)), next))
    }
}

/// `word`, `word[3]` or `word[0..14]`: the name and the range of its numbers.
fn name(text: &str) -> Option<(Name, Option<(u32, u32)>)> {
    let Some((word, range)) = text.split_once('[') else { return Some((Name::new(text), None)) };
    let range = range.strip_suffix(']')?;
    let (first, last) = range.split_once("..").unwrap_or((range, range));
    // As numbers are printed, so that no two texts are one name.
    let number = |digits: &str| digits.parse::<u32>().ok().filter(|number| number.to_string() == digits);
    let (first, last) = (number(first)?, number(last)?);
    (first <= last).then_some((Name::new(word), Some((first, last))))
}

#[derive(Default)]
struct Reader {
    builder: Builder,
    transitions: BTreeMap<Name, TransitionId>,
    /// Of transitions, in their order: the name of the master, and the line that says it.
    masters: Vec<(usize, TransitionId, Name)>,
}

impl Reader {
    fn one(line: &Line<'_>, text: &str) -> Result<Name, TextError> {
        match name(text) {
            Some((name, None)) => Ok(name),
            Some((name, Some((first, last)))) if first == last => Ok(name.numbered(first)),
            _ => {
                Err(line
                    .error(format!("\"{text}\" is not the name of one thing: write it as in I0 or I0[3]")))
            }
        }
    }

    fn transition(&mut self, line: &Line<'_>) -> Result<(), TextError> {
        let name = Self::one(line, line.word(1, "the name of the transition")?)?;
        let word = line.word(2, "the rule by which the transition fires")?;
        let Some(rule) = Rule::from_word(word) else {
            let rules = Rule::ALL.map(Rule::as_str).join(", ");
            return Err(line.error(format!("\"{word}\" is no rule: write one of {rules}")));
        };
        if self.transitions.contains_key(&name) {
            return Err(line.error(format!("there is a transition {name} already: choose another name")));
        }
        if self.transitions.len() == TRANSITIONS_MAX {
            return Err(
                line.error(format!("more than {TRANSITIONS_MAX} transitions: describe a shorter period"))
            );
        }
        let id = self.builder.transition(name.clone(), rule);
        self.transitions.insert(name, id);
        let mut end = 3;
        if line.words.len() > 3 {
            let master = Self::one(line, line.behind(3, "by", "the name of the master")?)?;
            self.masters.push((line.number, id, master));
            end = 5;
        }
        Self::ended(line, end)
    }

    fn ended(line: &Line<'_>, at: usize) -> Result<(), TextError> {
        match line.words.get(at) {
            Some(word) => Err(line.error(format!("\"{word}\" is too much: the line ends before it"))),
            None => Ok(()),
        }
    }

    fn end(&self, line: &Line<'_>, at: usize, keyword: &str) -> Result<TransitionId, TextError> {
        let name = Self::one(line, line.behind(at, keyword, "the name of a transition")?)?;
        let id = self.transitions.get(&name).copied();
        id.ok_or_else(|| {
            line.error(format!("no transition is called {name}: add the line \"transition {name} …\""))
        })
    }

    fn places(&mut self, line: &Line<'_>) -> Result<(), TextError> {
        let text = line.word(1, "the name of the place")?;
        let carries = if line.words[0] == "object" { Carries::Object } else { Carries::Order };
        let Some((name, numbers)) = name(text) else {
            return Err(line.error(format!("\"{text}\" is no name: write it as in I0, I0[3] or I0[0..14]")));
        };
        let (producer, consumer) = (self.end(line, 2, "from")?, self.end(line, 4, "to")?);
        let (mut at, mut interval, mut initial) = (6, Interval::ALWAYS, 0);
        if line.words.get(at) == Some(&"within") {
            let ends;
            (ends, at) = Self::interval(line, at + 1)?;
            interval = ends;
        }
        if line.words.get(at) == Some(&"holding") {
            let word = line.word(at + 1, "the number of tokens")?;
            let number =
                word.parse().map_err(|_| line.error(format!("\"{word}\" is no number of tokens")))?;
            (initial, at) = (number, at + 2);
        }
        Self::ended(line, at)?;
        let count = numbers.map_or(1, |(first, last)| u64::from(last - first) + 1);
        if self.builder.places().len() as u64 + count > PLACES_MAX as u64 {
            return Err(line.error(format!("more than {PLACES_MAX} places: describe a shorter period")));
        }
        let mut place =
            |name| self.builder.place(Place { name, carries, producer, consumer, interval, initial });
        match numbers {
            Some((first, last)) => (first..=last).for_each(|number| _ = place(name.numbered(number))),
            None => _ = place(name),
        }
        Ok(())
    }

    fn interval(line: &Line<'_>, at: usize) -> Result<(Interval, usize), TextError> {
        let (earliest, at) = line.time(at)?;
        let (nominal, at) = line.time(at)?;
        let (latest, at) = line.time(at)?;
        let (Some(earliest), Some(nominal)) = (earliest, nominal) else {
            return Err(line.error("only the latest time, the third, can be inf"));
        };
        let interval = Interval { earliest, nominal, latest };
        match interval.problem() {
            Some(problem) => Err(line.error(format!("the interval {problem}"))),
            None => Ok((interval, at)),
        }
    }

    fn finish(self) -> Result<Net, TextError> {
        let Reader { mut builder, masters, .. } = self;
        for (line, transition, master) in masters {
            let found = builder.places().iter().position(|place| place.name == master);
            let Some(found) = found else {
                let problem =
                    format!("no place is called {master}: the master is one that leads to the transition");
                return Err(TextError::Line { line, problem });
            };
            if builder.places()[found].consumer != transition {
                let transition = builder.transitions()[transition.index()].name.clone();
                return Err(NetError::ForeignMaster { transition }.into());
            }
            builder.master(super::PlaceId(found as u32));
        }
        Ok(builder.build()?)
    }
}

impl fmt::Display for Net {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for transition in &self.transitions {
            write!(f, "transition {} {}", transition.name, transition.rule)?;
            if let Some(master) = transition.master {
                write!(f, " by {}", self.places[master.index()].name)?;
            }
            writeln!(f)?;
        }
        let goes_on = |a: &Place, b: &Place| a.is_alike(b) && b.name.follows(&a.name);
        for run in self.places.chunk_by(goes_on) {
            let (first, last) = (&run[0], &run[run.len() - 1]);
            let word = if first.carries == Carries::Object { "object" } else { "order" };
            write!(f, "{word} ")?;
            match (first.name.number(), last.name.number()) {
                (Some(a), Some(b)) if a != b => write!(f, "{}[{a}..{b}]", first.name.word())?,
                _ => write!(f, "{}", first.name)?,
            }
            let name = |id: TransitionId| &self.transitions[id.index()].name;
            write!(f, " from {} to {}", name(first.producer), name(first.consumer))?;
            if first.interval != Interval::ALWAYS {
                write!(f, " within {}", first.interval)?;
            }
            if first.initial > 0 {
                write!(f, " holding {}", first.initial)?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
