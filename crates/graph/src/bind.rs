//! A graph is told what comes in.

use outflow_media::Format;

use super::{Graph, Origin, Target, Unfit};

impl Graph {
    /// Tells all elements what comes in. What cannot work on it lets nothing through; see
    /// [`Graph::exit_format`]. Nothing happens if they were told the same before.
    pub fn bind(&mut self, format: &Format) {
        if self.bound.as_ref() == Some(format) {
            return;
        }
        if !self.is_whole() {
            self.bound = None;
            let unfit = || Unfit::new("the services are being bound again", "try again in a moment");
            self.exits.iter_mut().for_each(|exit| exit.format = Err(unfit()));
            return;
        }
        self.bound = Some(format.clone());
        let mut gives: Vec<Result<Format, Unfit>> = Vec::new();
        let mut left_out: Vec<Vec<String>> = Vec::new();
        self.turning.clear();
        let inputs = self.origins();
        for (index, node) in self.stages.iter_mut().flat_map(|stage| &mut stage.nodes).enumerate() {
            let given = together(&inputs[index], format, &gives);
            let out = node.bind(given.as_ref());
            let turns = out.as_ref().zip(given.as_ref().ok()).is_some_and(|(out, given)| out != given);
            if turns {
                self.turning.push(node.name.clone());
            }
            let own = if turns && !node.bypass { node.element.left_out() } else { &[] };
            left_out.push(before(&inputs[index], &left_out, own));
            // What is passed by is what came in.
            let out = if node.bypass && turns { given.clone().ok() } else { out };
            let unfit = |unfit: Unfit| Unfit { what: format!("'{}': {}", node.name, unfit.what), ..unfit };
            gives.push(match (out, given) {
                (Some(format), _) => Ok(format),
                (None, Err(before)) => Err(before),
                (None, Ok(_)) => Err(unfit(node.unfit.clone().expect("it was not bound"))),
            });
        }
        for exit in &mut self.exits {
            exit.format = together(&exit.from, format, &gives);
            exit.left_out = before(&exit.from, &left_out, &[]);
        }
    }

    /// From where each element's packets come.
    pub(super) fn origins(&self) -> Vec<Vec<Origin>> {
        let mut origins = vec![Vec::new(); self.wires.len()];
        let from_source = self.source.iter().map(|target| (Origin::Source, *target));
        let from_nodes = (0_u16..).zip(&self.wires).flat_map(|(number, outs)| {
            let outs = (0_u8..).zip(outs);
            outs.flat_map(move |(output, targets)| {
                targets.iter().map(move |t| (Origin::Node(number, output), *t))
            })
        });
        for (from, to) in from_source.chain(from_nodes) {
            if let Target::Node(to) = to {
                origins[usize::from(to)].push(from);
            }
        }
        origins
    }
}

/// What was left out up to here: on the way to several places, and by an element itself.
fn before(from: &[Origin], left_out: &[Vec<String>], own: &[String]) -> Vec<String> {
    let nodes = from.iter().filter_map(|origin| match origin {
        Origin::Source => None,
        Origin::Node(number, _) => left_out.get(usize::from(*number)),
    });
    let mut all: Vec<String> = Vec::new();
    for name in nodes.flatten().chain(own) {
        if !all.contains(name) {
            all.push(name.clone());
        }
    }
    all
}

/// What comes out of several places: of one format, or it does not fit.
fn together(from: &[Origin], source: &Format, gives: &[Result<Format, Unfit>]) -> Result<Format, Unfit> {
    let mut all = from.iter().map(|origin| match origin {
        Origin::Source => Ok(source),
        Origin::Node(number, _) => gives[usize::from(*number)].as_ref(),
    });
    let first = all.next().ok_or_else(|| Unfit::new("nothing comes in", "give it an input"))?;
    let first = first.map_err(Clone::clone)?;
    for other in all {
        if other.map_err(Clone::clone)? != first {
            let help = "let only flows of one format come together";
            return Err(Unfit::new("what comes together here is of different formats", help));
        }
    }
    Ok(first.clone())
}
