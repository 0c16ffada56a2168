//! What a packet is worth to whoever cannot have all: told to the transports that choose themselves.

use outflow_media::{Kind, Tag};

/// What a packet is worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Worth {
    /// It goes to those who are up with the newest, not to one who catches up.
    pub(crate) is_live: bool,
    /// How much it is missed: the more, the higher; below [`Worth::END`].
    pub(crate) rank: u8,
}

impl Worth {
    /// No rank is that high.
    const END: u8 = 64;
    /// What all the rest needs, or what is small and heard.
    const MOST: u8 = Self::END - 1;
    /// From here on it is what others need to be decoded at all.
    const KEY: u8 = 48;
    /// Below it is what nothing else needs.
    const NEEDED: u8 = 16;

    /// By the kind of the frame, and the layer: the lower, the more others need it.
    pub(crate) fn of(tag: &Tag, is_live: bool) -> Self {
        let layer = tag.layer.min(Self::NEEDED - 1);
        let rank = match tag.kind {
            Kind::Header | Kind::Data => Self::MOST,
            Kind::Intra if layer == 0 => Self::MOST - 1,
            Kind::Intra => Self::KEY - layer,
            Kind::Predicted => 2 * Self::NEEDED - 1 - layer,
            Kind::Bidirectional | Kind::Enhancement => Self::NEEDED - 1 - layer,
        };
        Worth { is_live, rank }
    }

    /// What goes with the packet is worth as much as the best.
    pub(crate) const fn most(is_live: bool) -> Self {
        Worth { is_live, rank: Self::MOST }
    }

    /// Whether the rest is of no use without it.
    pub(crate) fn is_key(self) -> bool {
        self.rank >= Self::KEY
    }

    /// As a byte.
    pub(crate) fn byte(self) -> u8 {
        u8::from(self.is_live) << 7 | self.rank
    }

    /// From a byte.
    pub(crate) fn read(byte: u8) -> Self {
        Worth { is_live: byte >> 7 == 1, rank: byte % Self::END }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_need_is_worth_more() {
        let rank = |kind, layer| Worth::of(&Tag { kind, layer, ..Tag::default() }, true).rank;
        let order = [
            rank(Kind::Enhancement, 40),
            rank(Kind::Bidirectional, 0),
            rank(Kind::Predicted, 3),
            rank(Kind::Predicted, 0),
            rank(Kind::Intra, 31),
            rank(Kind::Intra, 1),
            rank(Kind::Intra, 0),
            rank(Kind::Header, 0),
        ];
        assert!(order.windows(2).all(|pair| pair[0] < pair[1]), "{order:?}");
        assert!(order.iter().all(|rank| *rank < Worth::END));
        assert!(Worth { is_live: true, rank: rank(Kind::Intra, 0) }.is_key());
        assert!(!Worth { is_live: true, rank: rank(Kind::Predicted, 0) }.is_key());
    }

    #[test]
    fn a_byte_says_all_of_it() {
        for is_live in [false, true] {
            let worth = Worth { is_live, rank: 37 };
            assert_eq!(Worth::read(worth.byte()), worth);
        }
    }
}
