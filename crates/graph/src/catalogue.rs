//! Every element there is: one line each. What `outflow elements` prints, what a configuration is
//! checked against, and where elements come from.

use core::fmt;
use core::fmt::Write as _;

use super::contract::Contract;
use super::settings::{Opt, Settings};
use super::{Element, Unfit};
use crate::elements;

/// What there is to know of an element before it is made.
#[derive(Debug)]
pub struct Kind {
    /// Its name.
    pub name: &'static str,
    /// What it does, in a line.
    pub doc: &'static str,
    /// What it takes and gives, given its options.
    pub contract: fn(&Settings) -> Contract,
    /// Its outputs; the first is the one meant where none is named.
    pub outputs: &'static [&'static str],
    /// Its options.
    pub options: &'static [Opt],
    /// What makes one.
    pub make: Make,
}

/// What makes an element.
#[derive(Debug, Clone, Copy)]
pub enum Make {
    /// The core.
    Core(fn(&Settings) -> Result<Box<dyn Element>, Unfit>),
    /// The driver: it needs files, another program, or a sandbox.
    Driver,
}

/// The output of elements that have one.
pub const OUT: &[&str] = &["out"];

/// All elements, in the order of the manual.
pub const CATALOGUE: &[&Kind] = &[
    &elements::pass::KIND,
    &elements::filter::KIND,
    &elements::sample::KIND,
    &elements::rate_limit::KIND,
    &elements::prioritise::KIND,
    &elements::remark::KIND,
    &elements::redirect::KIND,
    &elements::duplicate::KIND,
    &elements::merge::KIND,
    &elements::encrypt::KIND,
    &elements::decrypt::KIND,
    &elements::gray::KIND,
    &elements::crop::KIND,
    &elements::shrink::KIND,
    &elements::convert::KIND,
    &elements::view::KIND,
    &elements::to_ts::KIND,
    &elements::wasm::KIND,
    &elements::external::KIND,
];

/// The element of this name.
pub fn find(name: &str) -> Option<&'static Kind> {
    CATALOGUE.iter().copied().find(|kind| kind.name == name)
}

impl Kind {
    /// All about it, as people read it.
    pub fn describe(&self) -> String {
        let Contract { takes, gives, control, parallel, unit: _ } = (self.contract)(&Settings::default());
        let mut text = format!("{}: {}\n", self.name, self.doc);
        let mut line = |what: &str, words: &dyn fmt::Display| {
            let _ = writeln!(text, "    {what:<8} {words}");
        };
        line("takes", &takes);
        line("gives", &gives);
        if self.outputs.len() > 1 {
            line("outputs", &self.outputs.join(", "));
        }
        if !parallel.is_empty() {
            line("lanes", &format!("one or more, of {parallel}"));
        }
        for (what, signals) in
            [("hears", control.hears), ("changes", control.changes), ("ends", control.ends)]
        {
            if !signals.is_empty() {
                line(what, &signals);
            }
        }
        for option in self.options {
            let default = match (option.default, option.needed) {
                (Some(default), _) => format!("; {default} if left out"),
                (None, true) => "; needed".to_owned(),
                (None, false) => String::new(),
            };
            let _ =
                writeln!(text, "    {} ({}{default}): {}", option.name, option.form.describe(), option.doc);
        }
        text
    }

    /// The number of an output.
    pub fn output(&self, name: &str) -> Option<u8> {
        self.outputs.iter().position(|output| *output == name).map(|index| index as u8)
    }

    /// Its option of this name.
    pub fn option(&self, name: &str) -> Option<&'static Opt> {
        self.options.iter().find(|option| option.name == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_distinct_and_lines_are_lines() {
        for (index, kind) in CATALOGUE.iter().enumerate() {
            assert!(CATALOGUE[..index].iter().all(|other| other.name != kind.name), "{} twice", kind.name);
            assert!(!kind.outputs.is_empty() && kind.outputs.len() <= 256, "{}", kind.name);
            assert!(kind.doc.ends_with('.') && !kind.doc.contains('\n'), "{}: {}", kind.name, kind.doc);
            for (at, option) in kind.options.iter().enumerate() {
                assert!(option.doc.ends_with('.'), "{}: {}", kind.name, option.doc);
                assert!(kind.options[..at].iter().all(|other| other.name != option.name), "{}", option.name);
                assert!(!(option.needed && option.default.is_some()), "{}", option.name);
            }
            assert!(kind.describe().contains(kind.doc));
        }
    }
}
