//! What tags promise, against what frames truly refer to: for the tests of all readers.

use crate::Tag;

/// A frame as it was told, and the places of those that it truly refers to.
#[derive(Debug, Clone)]
pub struct Case {
    /// What was told.
    pub tag: Tag,
    /// The frames that it truly refers to, by their places.
    pub refers: Vec<usize>,
}

/// Nothing needs anything of a higher layer.
pub fn assert_that_layers_are_a_chain(cases: &[Case]) {
    let layer_of = |frame: u32| cases.iter().find(|case| case.tag.frame == frame).map(|case| case.tag.layer);
    for (at, Case { tag, refers }) in cases.iter().enumerate() {
        assert!(tag.layer < tag.layers && tag.layers < 128, "{at}: {tag:?}");
        for place in refers {
            let needed = cases[*place].tag;
            assert!(needed.layer <= tag.layer, "{at} refers to {place}: {tag:?}, {needed:?}");
        }
        for distance in tag.needs.distances() {
            let layer = layer_of(tag.frame.wrapping_sub(distance)).unwrap_or(0);
            assert!(layer <= tag.layer, "{at} needs one of layer {layer}: {tag:?}");
        }
    }
}

/// A receiver that goes up and down as [`Tag::opens`] says gets no frame that refers to one it lacks.
/// `wanted` is the highest layer that it wants, from frame to frame, again and again.
///
/// The places of the frames that it gets.
pub fn assert_that_levels_can_change(cases: &[Case], wanted: &[u8]) -> Vec<usize> {
    let mut receiver = Receiver::default();
    let wanted = wanted.iter().cycle();
    let got: Vec<bool> =
        cases.iter().zip(wanted).map(|(case, most)| receiver.gets(&case.tag, *most)).collect();
    for (at, Case { tag, refers }) in cases.iter().enumerate().filter(|(at, _)| got[*at]) {
        for place in refers {
            assert!(
                got[*place],
                "{at} refers to {place}, which was refused: {tag:?}, {:?}",
                cases[*place].tag
            );
        }
    }
    (0..cases.len()).filter(|at| got[*at]).collect()
}

/// Whatever layers a receiver takes, each picture ends with the last packet of it that it gets, and no other.
/// The tags of each picture's packets, of which the last has the RTP marker. As long as it shows only little by
/// little how many layers there are, nothing is left out.
pub fn assert_that_pictures_end(pictures: &[Vec<Tag>]) {
    let layers = pictures.iter().flatten().map(|tag| tag.layers).max().unwrap_or(0);
    let is_known = |tags: &&Vec<Tag>| tags.iter().all(|tag| tag.layers == layers);
    for (number, tags) in pictures.iter().filter(is_known).enumerate() {
        for most in 0..layers {
            let taken: Vec<_> = tags.iter().enumerate().filter(|(_, tag)| tag.layer <= most).collect();
            for (place, (at, tag)) in taken.iter().enumerate() {
                let is_marked = *at + 1 == tags.len() || tag.ends.is_some_and(|ends| most <= ends);
                let is_last = place + 1 == taken.len();
                assert_eq!(is_marked, is_last, "picture {number} up to layer {most}: {tag:?}");
            }
        }
    }
}

/// A receiver that does what the documentation of [`Tag`] says.
#[derive(Debug, Default)]
struct Receiver {
    /// The key frame at which it joined.
    began: Option<u32>,
    /// A key frame of an open group, and no frame since that does not reach past it.
    open: Option<u32>,
    /// The highest layer that it takes.
    taken: u8,
    /// Layers, a bit each, of which frames were refused since the last key frame and since they were taken.
    refused: u128,
}

impl Receiver {
    fn gets(&mut self, tag: &Tag, wanted: u8) -> bool {
        let below = |layer: u8| (1_u128 << layer) - 1;
        let reaches_past = |key: u32| {
            let before = |distance: u32| tag.frame.wrapping_sub(distance).wrapping_sub(key).cast_signed() < 0;
            tag.needs.distances().any(before)
        };
        self.grow(tag);
        let joins = tag.key && self.began.is_none();
        let is_behind = !tag.key && self.open.is_some_and(|key| !reaches_past(key));
        if joins {
            self.began = Some(tag.frame);
        }
        if tag.key {
            self.open = (!tag.opens).then_some(tag.frame);
        } else if is_behind {
            self.open = None;
        }
        if joins || is_behind || (tag.key && tag.opens) {
            (self.taken, self.refused) = (wanted, 0);
        } else if wanted < self.taken {
            self.taken = wanted;
        } else if (self.taken + 1..=wanted).contains(&tag.layer)
            && tag.opens
            && self.refused & below(tag.layer) == 0
        {
            self.taken = tag.layer;
            self.refused &= !(1 << tag.layer);
        }
        let Some(began) = self.began else { return false };
        if reaches_past(began) {
            return false;
        }
        if tag.layer > self.taken {
            self.refused |= 1 << tag.layer;
        }
        tag.layer <= self.taken
    }

    /// A receiver that takes what was below takes new layers, and what was above has other numbers.
    fn grow(&mut self, tag: &Tag) {
        if tag.grown > 0 {
            let first = tag.layer + 1 - tag.grown;
            let low = (1_u128 << first) - 1;
            self.refused = self.refused & low | (self.refused & !low) << tag.grown;
            self.taken += if self.taken + 1 >= first { tag.grown } else { 0 };
        }
    }
}
