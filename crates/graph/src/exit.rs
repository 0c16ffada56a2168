//! Where packets leave a graph, to a branch.

use outflow_media::Format;
use outflow_packet::Parsed;

use super::{Item, Numbering, Origin, Target, Unfit};

/// A branch that comes out.
#[derive(Debug)]
pub(super) struct Exit {
    pub(super) name: String,
    /// From where its packets come.
    pub(super) from: Vec<Origin>,
    pub(super) wanted: bool,
    pub(super) format: Result<Format, Unfit>,
    /// What elements before it have no place for.
    pub(super) left_out: Vec<String>,
    pub(super) numbering: Numbering,
}

/// A packet leaves the stages that are here.
pub(super) fn leave(
    exits: &mut [Exit],
    further: &mut dyn FnMut(Target, Item),
    each: &mut dyn FnMut(usize, Parsed),
    target: Target,
    mut item: Item,
) {
    let Target::Exit(number) = target else { return further(target, item) };
    let Some(exit) = exits.get_mut(usize::from(number)).filter(|exit| exit.wanted) else { return };
    if exit.from.len() > 1 {
        item.found = None;
    }
    exit.numbering.number(&mut item);
    each(usize::from(number), item.parsed());
}

impl Exit {
    pub(super) fn new(name: &str, from: Vec<Origin>) -> Self {
        let format = Err(Unfit::new("the stream has no format yet", "wait for its source"));
        Exit {
            name: name.to_owned(),
            from,
            wanted: false,
            format,
            left_out: Vec::new(),
            numbering: Numbering::default(),
        }
    }
}
