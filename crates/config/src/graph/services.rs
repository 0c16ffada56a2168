//! The services of a stream, drawn: its elements, what goes where, and the branches that come out.

use std::collections::BTreeMap;

use outflow_graph::{Contents, Input, SOURCE};

use super::Element;
use crate::services::written;
use crate::{Contract, Share, StreamConfig};

/// Adds elements and branches behind the element at `source`. Returns the branches, by name.
pub(super) fn draw(
    stream: &StreamConfig,
    (source, carried): (usize, Contract),
    add: &mut impl FnMut(Element, &str, String) -> usize,
    edges: &mut Vec<(usize, usize, Contract)>,
) -> BTreeMap<String, usize> {
    let plan = stream.plan();
    // What does not fit is named by `outflow check`; the names alone tell where to draw it.
    let names: Vec<&str> = match plan.check(Contents::ANY) {
        Ok(checked) => checked.order.into_iter().map(|(name, _)| name).collect(),
        Err(_) => plan.elements.keys().map(String::as_str).collect(),
    };
    let mut numbers = BTreeMap::from([(SOURCE, source)]);
    for name in names {
        let element = &plan.elements[name];
        let mut detail = vec![element.kind.clone()];
        detail.extend(written(element));
        detail.extend(element.context.iter().map(|context| format!("in context {context}")));
        detail.extend((element.lanes > 1).then(|| format!("in {} lanes", element.lanes)));
        detail.extend(element.budget.map(|parts| format!("at most {} of a core", Share(parts))));
        if element.bypass {
            detail.push("bypassed".to_owned());
        }
        numbers.insert(name, add(Element::Service, name, detail.join("\n")));
    }
    let mut connect = |inputs: &[Input], to: usize| {
        let whole = [Input::source()];
        let inputs = if inputs.is_empty() { &whole[..] } else { inputs };
        for input in inputs {
            edges.extend(numbers.get(input.from.as_str()).map(|from| (*from, to, carried)));
        }
    };
    for (name, element) in &plan.elements {
        connect(&element.inputs, numbers[name.as_str()]);
    }
    let mut branches = BTreeMap::new();
    for (name, inputs) in &plan.branches {
        let number = add(Element::Branch, &format!("branch {name}"), "while somebody wants it".to_owned());
        connect(inputs, number);
        branches.insert(name.clone(), number);
    }
    branches
}
