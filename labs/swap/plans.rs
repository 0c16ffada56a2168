//! The services between which it goes to and fro.

use serde_json::{Value, json};

/// One series of swaps.
pub(crate) struct Series {
    pub(crate) name: &'static str,
    /// What there is before the first swap, as in the configuration.
    pub(crate) first: &'static str,
    plans: fn() -> Vec<Value>,
}

const FIRST: &str = "[streams.live.elements.a]\nelement = \"pass\"\n\
                     [streams.live.branches.out]\ninput = \"a\"";

/// Elements are kept (`b`), added and removed; their contexts change, too.
pub(crate) const SERIES: [Series; 2] = [
    Series {
        name: "plain",
        first: FIRST,
        plans: || vec![chain(&[("a", None), ("b", None)]), chain(&[("b", None), ("c", None), ("d", None)])],
    },
    Series {
        name: "contexts",
        first: FIRST,
        plans: || {
            vec![
                chain(&[("a", None), ("b", Some("x"))]),
                chain(&[("b", Some("x")), ("c", Some("y"))]),
                chain(&[("b", None), ("d", None)]),
            ]
        },
    },
];

impl Series {
    pub(crate) fn plans(&self) -> Vec<Value> {
        (self.plans)()
    }
}

/// Elements one behind the other, each by its name and context, and the branch behind the last.
fn chain(elements: &[(&str, Option<&str>)]) -> Value {
    let mut services = serde_json::Map::new();
    let mut from = "source";
    for &(name, context) in elements {
        let mut element = json!({ "element": "pass", "input": from });
        if let Some(context) = context {
            element["context"] = context.into();
        }
        services.insert(name.to_owned(), element);
        from = name;
    }
    json!({ "elements": services, "branches": { "out": { "input": from } } })
}
