//! What matters more when there is not room for all: the one order that whatever has to choose goes by.
//!
//! | class, the most important first | what is of it | why |
//! |---|---|---|
//! | [`Header`](Class::Header) | parameter sets, program tables, clock references | small, and nothing is decoded or timed without them |
//! | [`Key`](Class::Key) | intra pictures, and others at which decoding can start | all pictures up to the next one need them |
//! | [`Sound`](Class::Sound) | audio | a few per cent of the rate; what is lost of it is heard at once, a lost picture is concealed |
//! | [`Reference`](Class::Reference) | predicted pictures | others need them |
//! | [`Opaque`](Class::Opaque) | subtitles, encrypted or unknown media, pictures of codecs in which each stands alone | others may need them, as far as is known, or may not |
//! | [`Disposable`](Class::Disposable) | pictures that are no references | nothing needs them |
//! | [`Enhancement`](Class::Enhancement) | pictures of higher spatial layers | without them there is the same picture, less sharp |
//! | [`Stuffing`](Class::Stuffing) | null packets of a transport stream | there is nothing in them |
//!
//! Within a class, the lower [layer](Tag::layer) matters more, because nothing needs a higher one. Layers of
//! different codecs are not comparable: a choice between streams goes by classes first.
//!
//! Deliberately not ranked by it is what the papers rank themselves: the silence of ABD (I, P, others; its section
//! 2.3), and the classes of the partial-order service for groups of pictures, which agree with it.

use crate::{Content, Kind, Tag};

/// How much a packet matters: the more, the greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Importance(u8);

/// What importance is a matter of in the first place. The more important, the greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "the table of the module says what they are")]
pub enum Class {
    Stuffing,
    Enhancement,
    Disposable,
    Opaque,
    Reference,
    Sound,
    Key,
    Header,
}

/// Layers of a class that are told apart; higher ones count as the highest.
const LAYERS: u8 = 16;

impl Class {
    const ALL: [Class; 8] = [
        Class::Stuffing,
        Class::Enhancement,
        Class::Disposable,
        Class::Opaque,
        Class::Reference,
        Class::Sound,
        Class::Key,
        Class::Header,
    ];

    const fn of(tag: &Tag) -> Self {
        match (tag.kind, tag.content) {
            (Kind::Header, _) | (Kind::Data, Content::Tables) => Class::Header,
            (Kind::Intra, _) => Class::Key,
            (Kind::Predicted, _) if tag.key => Class::Key,
            (Kind::Data, Content::Sound) => Class::Sound,
            (Kind::Predicted, _) => Class::Reference,
            (Kind::Data, Content::Opaque) => Class::Opaque,
            (Kind::Bidirectional, _) if !tag.adds => Class::Disposable,
            (Kind::Bidirectional | Kind::Enhancement, _) => Class::Enhancement,
            (Kind::Data, Content::Stuffing) => Class::Stuffing,
        }
    }
}

impl Importance {
    /// Of the highest class, and its lowest layer.
    pub const MOST: Importance = Importance::of(Class::Header, 0);

    /// Of this class and layer.
    pub const fn of(class: Class, layer: u8) -> Self {
        let above = if layer < LAYERS { layer } else { LAYERS - 1 };
        Importance(class as u8 * LAYERS + (LAYERS - 1 - above))
    }

    /// The one of this [rank](Self::rank); of a number that is none, the greatest.
    pub const fn of_rank(rank: u8) -> Self {
        if rank < Self::MOST.0 { Importance(rank) } else { Self::MOST }
    }

    /// The layer; those above the fifteenth count as that.
    pub const fn layer(self) -> u8 {
        LAYERS - 1 - self.0 % LAYERS
    }

    /// Its class.
    pub const fn class(self) -> Class {
        Class::ALL[(self.0 / LAYERS) as usize]
    }

    /// As a number of 7 bits: the more important, the higher.
    pub const fn rank(self) -> u8 {
        self.0
    }

    /// Whether a packet is better late than never.
    pub const fn is_key(self) -> bool {
        match self.class() {
            Class::Header | Class::Sound => true,
            // The base of what cannot be read may be what others need.
            Class::Key | Class::Opaque => self.layer() == 0,
            Class::Reference | Class::Disposable | Class::Enhancement | Class::Stuffing => false,
        }
    }
}

impl Tag {
    /// How much the packet matters.
    pub const fn importance(&self) -> Importance {
        Importance::of(Class::of(self), self.layer)
    }
}

/// A packet of each sort, the most important first: what tests of all that rank go through, so that none of them
/// comes to another order.
pub fn examples() -> Vec<(&'static str, Tag)> {
    let of = |kind, layer| Tag { kind, layer, ..Tag::default() };
    let alone = |content| Tag { content, ..Tag::default() };
    vec![
        ("parameter sets", of(Kind::Header, 0)),
        ("intra", of(Kind::Intra, 0)),
        ("sound", alone(Content::Sound)),
        ("predicted", of(Kind::Predicted, 0)),
        ("predicted, a temporal layer up", of(Kind::Predicted, 1)),
        ("opaque", alone(Content::Opaque)),
        ("bidirectional", of(Kind::Bidirectional, 2)),
        ("enhancement", of(Kind::Enhancement, 1)),
        ("enhancement, a layer up", of(Kind::Enhancement, 2)),
        ("stuffing", alone(Content::Stuffing)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_are_of_all_classes_and_stand_in_their_order() {
        let examples = examples();
        for pair in examples.windows(2) {
            let [(more, a), (less, b)] = pair else { unreachable!("windows of two") };
            assert!(a.importance() > b.importance(), "{more} matters more than {less}");
        }
        let mut classes: Vec<_> = examples.iter().map(|(_, tag)| tag.importance().class()).collect();
        classes.dedup();
        classes.reverse();
        assert_eq!(classes, Class::ALL);
    }

    #[test]
    fn classes_and_layers_lead_back_from_ranks_of_seven_bits() {
        for (at, class) in Class::ALL.into_iter().enumerate() {
            assert_eq!(class as usize, at);
            for layer in [0, 1, 14, 15, 16, u8::MAX] {
                let importance = Importance::of(class, layer);
                assert!(importance.class() == class && importance.rank() < 128);
                assert_eq!(
                    (importance.layer(), Importance::of_rank(importance.rank())),
                    (layer.min(15), importance)
                );
                assert!(importance <= Importance::of(class, 0) && importance >= Importance::of(class, 15));
            }
        }
        assert_eq!(Importance::MOST.rank(), 127);
        assert_eq!(Importance::of_rank(u8::MAX), Importance::MOST);
    }

    #[test]
    fn tables_count_as_headers_and_a_picture_that_decoding_starts_at_as_a_key_frame() {
        let class = |tag: Tag| tag.importance().class();
        assert_eq!(class(Tag { content: Content::Tables, ..Tag::default() }), Class::Header);
        let recovery = Tag { kind: Kind::Predicted, key: true, ..Tag::default() };
        assert_eq!(class(recovery), Class::Key);
    }

    #[test]
    fn no_layer_makes_opaque_data_or_sound_another_thing() {
        // `prioritise` sets layers by importance; behind it the order is the same.
        let behind = examples().into_iter().map(|(name, tag)| {
            let layer = 127 - tag.importance().rank();
            (name, tag.importance().class(), Tag { layer, ..tag }.importance().class())
        });
        behind.into_iter().for_each(|(name, before, after)| assert_eq!(before, after, "{name}"));
    }

    #[test]
    fn what_nothing_needs_of_a_higher_spatial_layer_is_an_enhancement() {
        let tag = Tag { kind: Kind::Bidirectional, adds: true, layer: 3, ..Tag::default() };
        let above = Tag { kind: Kind::Enhancement, layer: 2, ..Tag::default() };
        assert!(tag.importance() < above.importance());
    }
}
