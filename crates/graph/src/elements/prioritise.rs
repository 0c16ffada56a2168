//! What is important, for whatever has to choose later on.

use core::cmp::Reverse;

use outflow_media::{Content, Kind as Frame, Tag, Time};

use super::by_frame::{BY_FRAME, ByFrame, Judge, Verdict};
use super::select::{KINDS, PAYLOAD_TYPES, SSRCS, Select, TRACKS, WORDS, place};
use crate::{Form, Item, Kind, Make, OUT, Opt, Settings, Tally, Unfit};

/// Layers of one kind: those that the frames had stay apart.
const LAYERS_A_KIND: u8 = 16;
/// The layer of what is least important.
const LAST: u8 = 127;

/// The element.
///
/// Packets of a flow never overtake each other here, so priority is not about order. It is about what
/// goes first where not everything can: the layer of the tag, 0 the base and 127 the least important,
/// which `rate-limit` and `filter` read behind this element. Where no order is written it is that of
/// [`Importance`](outflow_media::Importance).
pub const KIND: Kind = Kind {
    name: "prioritise",
    doc: "Says what is important: sets the layer by which later elements choose, 0 is the base.",
    contract: |_| BY_FRAME,
    outputs: OUT,
    options: &[
        Opt::new(
            "order",
            Form::Words(WORDS),
            Some("headers, key frames, sound, predicted, other data, bidirectional, enhancement"),
            "Kinds of frames, the most important first; those that are not named come behind them.",
        ),
        Opt::new("to_layer", Form::Whole(0, 127), None, "This layer for all that is meant, instead."),
        KINDS,
        TRACKS,
        PAYLOAD_TYPES,
        SSRCS,
    ],
    make: Make::Core(|settings| Ok(Box::new(ByFrame::new(Prioritise::new(settings)?)))),
};

#[derive(Debug)]
struct Prioritise {
    select: Select,
    layers: Layers,
}

#[derive(Debug)]
enum Layers {
    ByImportance,
    /// By kind, in the order of [`WORDS`]: the rank.
    Ranks([u8; WORDS.len()]),
    One(u8),
}

impl Prioritise {
    fn new(settings: &Settings) -> Result<Self, Unfit> {
        let layers = match (settings.texts("order"), settings.whole("to_layer")) {
            (Some(_), Some(_)) => {
                return Err(Unfit::new("both `order` and `to_layer`", "write one of them"));
            }
            (_, Some(layer)) => Layers::One(layer as u8),
            (Some(order), None) => Layers::Ranks(ranks(order)),
            (None, None) => Layers::ByImportance,
        };
        Ok(Prioritise { select: Select::new(settings), layers })
    }
}

/// The rank of each kind: first those that are named, then the others by importance.
fn ranks(order: &[String]) -> [u8; WORDS.len()] {
    let named = |word: &str| order.iter().position(|other| other == word);
    // Most data is sound.
    let importance = |kind| Tag { kind, content: Content::Sound, ..Tag::default() }.importance();
    let mut others = Vec::from(Frame::ALL);
    others.retain(|kind| named(WORDS[place(*kind)]).is_none());
    others.sort_by_key(|kind| Reverse(importance(*kind)));
    core::array::from_fn(|at| {
        let behind = || order.len() + others.iter().position(|kind| place(*kind) == at).unwrap_or(0);
        named(WORDS[at]).unwrap_or_else(behind).min(WORDS.len() - 1) as u8
    })
}

/// The layer of a frame, if it is changed.
#[derive(Debug, Clone, Copy)]
struct Layer(Option<u8>);

impl Verdict for Layer {
    fn leaves_out(self) -> bool {
        false
    }
}

impl Judge for Prioritise {
    type Verdict = Layer;
    type State = ();

    fn judge(&mut self, _: Time, item: &Item, _: bool) -> Layer {
        let Tag { kind, layer, .. } = item.packet.tag;
        let new = match &self.layers {
            Layers::One(layer) => *layer,
            Layers::ByImportance => LAST - item.packet.tag.importance().rank(),
            Layers::Ranks(ranks) => ranks[place(kind)] * LAYERS_A_KIND + layer.min(LAYERS_A_KIND - 1),
        };
        Layer(self.select.matches(item).then_some(new))
    }

    fn carry_out(&mut self, item: &mut Item, verdict: Layer, _: &mut Tally) -> bool {
        if let Layer(Some(layer)) = verdict {
            item.packet.tag.layer = layer;
        }
        true
    }

    fn state(&mut self) {}

    fn resume(&mut self, (): ()) {}
}

#[cfg(test)]
mod tests {
    use outflow_media::importance::examples;

    use super::super::testing::{Run, Source, settings, video, words};
    use super::*;
    use crate::Setting;

    fn layers(settings: &Settings, letters: &str) -> Vec<u8> {
        let mut run = Run::new(&KIND, settings, &video(1));
        let mut items = Source::new(0).frames(letters);
        items.iter_mut().for_each(|item| item.packet.tag.layer = 2);
        let out = run.give(items);
        out.iter().map(|item| item.packet.tag.layer).collect()
    }

    #[test]
    fn kinds_are_ranked_and_layers_within_them_kept() {
        assert_eq!(layers(&settings([]), "iPDB"), [18, 18, 18, 50, 50, 66, 66, 82, 82]);
        let order = settings([("order", words(&["data", "intra"]))]);
        assert_eq!(layers(&order, "DIP"), [2, 2, 18, 18, 50, 50]);
    }

    #[test]
    fn what_matters_more_gets_a_lower_layer() {
        let mut run = Run::new(&KIND, &settings([]), &video(1));
        let ranked: Vec<_> = (0..)
            .zip(examples())
            .map(|(frame, (name, tag))| {
                let item = Source::new(0).packet(Tag { frame, last: true, ..tag });
                (run.give(vec![item])[0].packet.tag.layer, name)
            })
            .collect();
        assert!(ranked.is_sorted_by(|(more, _), (less, _)| more < less), "{ranked:?}");
    }

    #[test]
    fn what_is_not_named_comes_behind_by_importance() {
        let of = |named: &[&str]| {
            let ranks = ranks(&named.iter().map(|&word| word.to_owned()).collect::<Vec<_>>());
            let mut words = WORDS.to_vec();
            words.sort_by_key(|word| WORDS.iter().position(|other| other == word).map(|at| ranks[at]));
            words
        };
        let all = ["header", "intra", "data", "predicted", "bidirectional", "enhancement"];
        assert_eq!(of(&[]), all);
        assert_eq!(of(&["bidirectional"])[..3], ["bidirectional", "header", "intra"]);
    }

    #[test]
    fn what_is_meant_gets_a_layer_and_the_rest_keeps_its_own() {
        let least = settings([("kinds", words(&["bidirectional"])), ("to_layer", Setting::Whole(127))]);
        assert_eq!(layers(&least, "IB"), [2, 2, 127, 127]);
    }

    #[test]
    fn an_order_and_a_layer_are_two_wishes() {
        let both = settings([("order", words(&["data"])), ("to_layer", Setting::Whole(1))]);
        assert!(Run::refusal(&KIND, &both, &video(1)).contains("write one of them"));
    }
}
