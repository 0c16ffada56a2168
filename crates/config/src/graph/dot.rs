//! A graph as Graphviz draws it.

use std::fmt;

use super::{Element, Graph, Node};
use crate::Contract;

/// Shape and colours (fill, line) of an element.
fn style(element: Element) -> (&'static str, &'static str, &'static str) {
    match element {
        Element::Source => ("cds", "#dbeafe", "#2563eb"),
        Element::Parse => ("box", "#ede9fe", "#7c3aed"),
        Element::Ring => ("cylinder", "#fef3c7", "#d97706"),
        Element::Service => ("component", "#fce7f3", "#db2777"),
        Element::Branch => ("box", "#f1f5f9", "#475569"),
        Element::Players => ("box", "#dcfce7", "#16a34a"),
        Element::Sink => ("box", "#ccfbf1", "#0d9488"),
    }
}

fn label(contract: Contract) -> &'static str {
    match contract {
        Contract::Ts => "ts",
        Contract::Images => "ppm",
        Contract::Data => "data",
        Contract::Rtp => "rtp",
        Contract::Either => "ts | rtp",
    }
}

/// A text between quotation marks, as DOT wants it.
struct Quoted<'a>(&'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("\"")?;
        for c in self.0.chars() {
            match c {
                '"' => f.write_str("\\\"")?,
                '\\' => f.write_str("\\\\")?,
                '\n' => f.write_str("\\n")?,
                c if c.is_control() => f.write_str(" ")?,
                c => write!(f, "{c}")?,
            }
        }
        f.write_str("\"")
    }
}

/// Written as a graph of the DOT language, one cluster a stream, from left to right.
impl fmt::Display for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "digraph outflow {{")?;
        writeln!(f, "  rankdir=LR; nodesep=0.25; ranksep=0.55; compound=true; bgcolor=\"white\";")?;
        writeln!(f, "  fontname=\"Helvetica\"; fontsize=14; fontcolor=\"#0f172a\";")?;
        writeln!(
            f,
            "  node [fontname=\"Helvetica\", fontsize=11, style=\"filled,rounded\", margin=\"0.16,0.08\"];"
        )?;
        writeln!(
            f,
            "  edge [fontname=\"Helvetica\", fontsize=9, color=\"#64748b\", fontcolor=\"#64748b\", arrowsize=0.7];"
        )?;
        let mut offset = 0;
        for nodes in self.nodes.chunk_by(|a, b| a.stream == b.stream) {
            cluster(f, offset, nodes)?;
            offset += nodes.len();
        }
        for edge in &self.edges {
            let dashes = if edge.contract == Contract::Either { ", style=dashed" } else { "" };
            writeln!(f, "  n{} -> n{} [label=\" {} \"{dashes}];", edge.from, edge.to, label(edge.contract))?;
        }
        writeln!(f, "}}")
    }
}

/// Draws the elements of one stream, the first of which has the number `offset`.
fn cluster(f: &mut fmt::Formatter<'_>, offset: usize, nodes: &[Node]) -> fmt::Result {
    writeln!(f, "  subgraph cluster_{offset} {{")?;
    let title = Quoted(&nodes[0].stream);
    writeln!(f, "    label={title}; labeljust=l; style=rounded; color=\"#cbd5e1\"; margin=14;")?;
    for (index, node) in nodes.iter().enumerate() {
        let (shape, fill, line) = style(node.element);
        let number = offset + index;
        let text = format!("{}\n{}", node.name, node.detail);
        let label = Quoted(&text);
        writeln!(f, "    n{number} [label={label}, shape={shape}, fillcolor=\"{fill}\", color=\"{line}\"];")?;
    }
    writeln!(f, "  }}")
}
