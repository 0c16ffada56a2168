//! A value that is not what it should be.

use std::fmt;
use std::ops::RangeInclusive;

/// What is wrong with a value, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invalid {
    /// What is wrong, as in "'8 MX' is no size".
    pub what: String,
    /// What to do, as in "write it like \"8 MB\"".
    pub help: String,
}

impl Invalid {
    /// What is wrong, and what to do.
    pub fn new(what: impl Into<String>, help: impl Into<String>) -> Self {
        Invalid { what: what.into(), help: help.into() }
    }
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.what, self.help)
    }
}

impl std::error::Error for Invalid {}

/// What to say about a value that is not allowed.
pub fn out_of<T: PartialOrd>(
    value: T,
    allowed: &RangeInclusive<T>,
    show: impl Fn(&T) -> String,
) -> Option<Invalid> {
    let side = match value {
        ref value if value < allowed.start() => "little",
        ref value if value > allowed.end() => "much",
        _ => return None,
    };
    let help = format!("possible: {} to {}", show(allowed.start()), show(allowed.end()));
    Some(Invalid::new(format!("{} is too {side}", show(&value)), help))
}

/// The known word that is nearest to `word`, if one is near enough to be meant.
pub(crate) fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // Beyond, comparing would cost more than the answer is worth: the cost is quadratic.
    const LONGEST: usize = 64;
    if word.len() > LONGEST {
        return None;
    }
    let folded = word.to_lowercase();
    known
        .into_iter()
        .map(|candidate| (strsim::jaro_winkler(&folded, candidate), candidate))
        .filter(|(likeness, _)| *likeness > 0.75)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, candidate)| candidate)
}

/// Several choices in a sentence: "a, b or c".
pub(crate) fn choices(all: &[String]) -> String {
    match all {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_finds_what_was_meant_and_nothing_else() {
        let known = ["ring", "source", "when_full", "hopeless_after"];
        assert_eq!(nearest("rign", known), Some("ring"));
        assert_eq!(nearest("Source", known), Some("source"));
        assert_eq!(nearest("hopeles_after", known), Some("hopeless_after"));
        assert_eq!(nearest("colour", known), None);
        assert_eq!(nearest(&"ring".repeat(1000), known), None);
    }
}
