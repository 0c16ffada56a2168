//! Nets as pictures, for Graphviz.

use core::fmt::Write as _;

use super::{Carries, Net, Place};

/// The net in the language of Graphviz's `dot`. Neighbours that differ in their names alone are drawn as one
/// place with their number: a picture's slices, say. Bullets are the tokens at the start; places that only
/// order are dashed.
pub fn dot(net: &Net) -> String {
    let mut text = String::from("digraph net {\n    rankdir=LR;\n    node [fontname=\"sans-serif\"];\n");
    for (i, transition) in net.transitions.iter().enumerate() {
        let label = format!("{}\\n{}", transition.name, transition.rule);
        let _ = writeln!(text, "    t{i} [shape=box, label=\"{label}\"];");
    }
    let masters: Vec<_> = net.transitions.iter().filter_map(|transition| transition.master).collect();
    let mut first = 0;
    for group in net.places.chunk_by(Place::is_alike) {
        let (place, last) = (&group[0], first + group.len());
        let style = if place.carries == Carries::Order { ", style=dashed" } else { "" };
        let _ = writeln!(text, "    p{first} [shape=circle{style}, label=\"{}\"];", label(group));
        let is_master = masters.iter().any(|master| (first..last).contains(&master.index()));
        let arc = if is_master { " [penwidth=3]" } else { "" };
        let (producer, consumer) = (place.producer.index(), place.consumer.index());
        let _ = writeln!(text, "    t{producer} -> p{first};\n    p{first} -> t{consumer}{arc};");
        first = last;
    }
    text.push_str("}\n");
    text
}

fn label(group: &[Place]) -> String {
    let place = &group[0];
    let mut label = match group.len() {
        1 => place.name.to_string(),
        many => format!("{many} × {}", place.name.word()),
    };
    let _ = write!(label, "\\n{}", place.interval);
    if place.initial > 0 {
        let _ = write!(label, "\\n{}", "•".repeat(place.initial as usize));
    }
    label
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::samples;

    #[test]
    fn places_that_are_alike_are_drawn_once() {
        let drawn = dot(&samples::mpeg());
        assert_eq!(drawn.matches("shape=box").count(), 12);
        assert_eq!(drawn.matches("shape=circle").count(), 29);
        assert!(drawn.contains("t0 [shape=box, label=\"I0\\nweak-and\"];"), "{drawn}");
        assert!(drawn.contains("label=\"15 × P4\\n0 ms, 40 ms, 160 ms\"];"), "{drawn}");
        assert!(drawn.contains("••"));
    }

    #[test]
    fn masters_and_orders_stand_out() {
        let drawn = dot(&samples::lip_sync());
        assert_eq!(drawn.matches("penwidth").count(), 1, "{drawn}");
        assert!(drawn.contains("style=dashed"), "{drawn}");
    }
}
