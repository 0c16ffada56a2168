//! The nine firing rules of a Time Stream Petri Net.

use core::fmt;

/// When a transition fires: what completes it, and until when it waits for that.
///
/// See the table in [`net`](super).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rule {
    /// `[min a, min b]`
    StrongOr,
    /// `[min a, max b]`
    Or,
    /// `[min a, b of the master]`
    OrMaster,
    /// `[max a, min b]`
    And,
    /// `[max a, max b]`
    WeakAnd,
    /// `[max a, b of the master]`
    AndMaster,
    /// `[a of the master, min b]`
    StrongMaster,
    /// `[a of the master, max b]`
    WeakMaster,
    /// `[a of the master, b of the master]`
    Master,
}

/// What completes a transition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Driver {
    /// Any of its objects.
    Any,
    /// All of its objects.
    All,
    /// That of the master arc.
    Master,
}

/// Until when an enabled transition waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Upper {
    /// Until the first of its arcs runs out.
    Strong,
    /// Until the last of its arcs runs out.
    Weak,
    /// Until the master arc runs out.
    Master,
}

impl Rule {
    /// All rules, in the order of their numbers on the wire.
    pub const ALL: [Rule; 9] = [
        Rule::StrongOr,
        Rule::Or,
        Rule::OrMaster,
        Rule::And,
        Rule::WeakAnd,
        Rule::AndMaster,
        Rule::StrongMaster,
        Rule::WeakMaster,
        Rule::Master,
    ];

    /// What completes the transition.
    pub const fn driver(self) -> Driver {
        match self {
            Rule::StrongOr | Rule::Or | Rule::OrMaster => Driver::Any,
            Rule::And | Rule::WeakAnd | Rule::AndMaster => Driver::All,
            Rule::StrongMaster | Rule::WeakMaster | Rule::Master => Driver::Master,
        }
    }

    /// Until when the transition waits.
    pub const fn upper(self) -> Upper {
        match self {
            Rule::StrongOr | Rule::And | Rule::StrongMaster => Upper::Strong,
            Rule::Or | Rule::WeakAnd | Rule::WeakMaster => Upper::Weak,
            Rule::OrMaster | Rule::AndMaster | Rule::Master => Upper::Master,
        }
    }

    /// Whether one of the arcs must be the master.
    pub const fn needs_master(self) -> bool {
        matches!(self.driver(), Driver::Master) || matches!(self.upper(), Upper::Master)
    }

    /// Its word in a net's text.
    pub const fn as_str(self) -> &'static str {
        match self {
            Rule::StrongOr => "strong-or",
            Rule::Or => "or",
            Rule::OrMaster => "or-master",
            Rule::And => "and",
            Rule::WeakAnd => "weak-and",
            Rule::AndMaster => "and-master",
            Rule::StrongMaster => "strong-master",
            Rule::WeakMaster => "weak-master",
            Rule::Master => "master",
        }
    }

    /// The rule of this word.
    pub fn from_word(word: &str) -> Option<Rule> {
        Rule::ALL.into_iter().find(|rule| rule.as_str() == word)
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_has_a_word_and_bounds_of_its_own() {
        for (i, rule) in Rule::ALL.into_iter().enumerate() {
            assert_eq!(Rule::from_word(rule.as_str()), Some(rule));
            let same = |other: &Rule| other.driver() == rule.driver() && other.upper() == rule.upper();
            assert_eq!(Rule::ALL.iter().position(same), Some(i));
        }
        assert_eq!(Rule::from_word("strong"), None);
    }

    #[test]
    fn rules_named_after_the_master_need_one() {
        for rule in Rule::ALL {
            assert_eq!(rule.needs_master(), rule.as_str().contains("master"));
        }
    }
}
