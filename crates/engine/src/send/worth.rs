//! What a packet is worth to a receiver that cannot have all: told to the transports that choose themselves.

use core::time::Duration;

use outflow_media::Time;
use outflow_media::importance::Importance;
use outflow_packet::Packet;

/// What a packet is worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Worth {
    /// How much it is missed: the more, the higher.
    pub rank: u8,
    /// When it came to the relay.
    pub arrived: Time,
    /// The receiver is about to go on with another rendition, which needs nothing of this one.
    pub is_left: bool,
}

impl Worth {
    /// By its importance.
    pub fn of(packet: &Packet) -> Self {
        Worth { rank: packet.tag.importance().rank(), ..Self::most(packet.arrived) }
    }

    /// What goes with the packet is worth as much as the best.
    pub fn most(arrived: Time) -> Self {
        Worth { rank: Importance::MOST.rank(), arrived, is_left: false }
    }

    /// Whether it is better late than never.
    pub fn is_key(self) -> bool {
        Importance::of_rank(self.rank).is_key()
    }

    /// How long ago it came.
    pub fn age(self, now: Time) -> Duration {
        now.since(self.arrived)
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use outflow_media::importance::examples;
    use outflow_media::{Kind, Tag};

    use super::*;

    fn worth(kind: Kind, layer: u8) -> Worth {
        let tag = Tag { kind, layer, ..Tag::default() };
        Worth::of(&Packet { bytes: Bytes::new(), tag, arrived: Time::from_millis(70_000) })
    }

    #[test]
    fn what_others_need_is_worth_more() {
        let order = [
            worth(Kind::Enhancement, 40),
            worth(Kind::Bidirectional, 0),
            worth(Kind::Predicted, 3),
            worth(Kind::Predicted, 0),
            worth(Kind::Intra, 31),
            worth(Kind::Intra, 1),
            worth(Kind::Intra, 0),
            worth(Kind::Header, 0),
        ];
        assert!(order.windows(2).all(|pair| pair[0].rank < pair[1].rank), "{order:?}");
        assert!(worth(Kind::Intra, 0).is_key() && !worth(Kind::Predicted, 0).is_key());
        assert!(worth(Kind::Data, 0).is_key() && !worth(Kind::Data, 1).is_key());
        assert!(!worth(Kind::Intra, 1).is_key(), "a layer on top");
    }

    #[test]
    fn what_matters_more_is_worth_more() {
        let packet = |tag| Packet { bytes: Bytes::new(), tag, arrived: Time::ZERO };
        let order: Vec<_> =
            examples().into_iter().map(|(name, tag)| (Worth::of(&packet(tag)), name)).collect();
        assert!(order.is_sorted_by(|(more, _), (less, _)| more.rank > less.rank), "{order:?}");
        let late: Vec<_> = order.iter().filter(|(worth, _)| worth.is_key()).map(|(_, name)| *name).collect();
        assert_eq!(late, ["parameter sets", "intra", "sound", "opaque"], "better late than never");
    }

    #[test]
    fn it_is_as_old_as_its_packet() {
        let age = |ms| worth(Kind::Predicted, 2).age(Time::from_millis(ms));
        assert_eq!([age(70_000), age(70_250), age(69_000)], [0, 250, 0].map(Duration::from_millis));
    }
}
