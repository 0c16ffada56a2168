//! What there is to know of an element before it is made: what it takes and gives, its options, what makes it.

use core::fmt;
use core::fmt::Write as _;

use crate::contract::Contract;
use crate::settings::{Opt, Settings};
use crate::{Element, Unfit};

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
