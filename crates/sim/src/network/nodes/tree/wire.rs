//! What relays and the directory say to each other, a datagram each, in JSON: messages of the tree are the text that
//! live relays say.

use outflow_routing::tree::{Message, Offer};
use serde::{Deserialize, Serialize};

/// What is said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Said {
    /// About the tree.
    Tree(Message),
    /// The relay is there, and says how many layers the stream has at its source; 0 if that is not known.
    Alive { layers: u8 },
    /// To a parent: begin to send to this port.
    Begin { port: u16 },
    /// To a child: I have begun to.
    Begun { port: u16 },
    /// To the directory: I have the stream.
    Register(Offer),
    /// To the directory: I do not have it any more.
    Withdraw,
    /// To the directory: which relays have it?
    Lookup,
    /// To a relay: these have it.
    Offers(Vec<Offer>),
}

impl Said {
    /// What a datagram says, if it says anything.
    pub(super) fn parse(datagram: &[u8]) -> Option<Self> {
        serde_json::from_slice(datagram).ok()
    }

    /// A datagram that says this.
    pub(super) fn emit(&self) -> Vec<u8> {
        // Texts and numbers have a form in JSON.
        serde_json::to_vec(self).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use core::cmp::Reverse;
    use core::net::Ipv4Addr;
    use core::time::Duration;

    use outflow_routing::Level;
    use outflow_routing::tree::limits::OTHERS_MAX;
    use outflow_routing::tree::{Path, RelayId, Root};

    use super::super::contact;
    use super::super::limits::OFFERS_MAX;
    use super::*;

    #[test]
    fn what_is_said_is_read_again_and_fits_into_a_packet() {
        let relay = RelayId(u32::MAX.into());
        let root = Root { preference: 0, relay, incarnation: Reverse(0) };
        let path = Path { root, beat: Reverse(9_999_999), depth: 64 };
        let offer = Offer { contact: contact(Ipv4Addr::BROADCAST), path, load: 255 };
        let (age, others) = (Duration::from_millis(1250), vec![offer; OTHERS_MAX]);
        for said in [
            Said::Tree(Message::Grant { ask: u32::MAX, path, age, others: others.clone() }),
            Said::Tree(Message::Beat { ask: u32::MAX, path, others }),
            Said::Tree(Message::Want { ask: 1, level: Level::BEST }),
            Said::Alive { layers: 2 },
            Said::Begin { port: 5 },
            Said::Begun { port: 5 },
            Said::Register(offer),
            Said::Withdraw,
            Said::Lookup,
            Said::Offers(vec![offer; OFFERS_MAX]),
        ] {
            let datagram = said.emit();
            assert!(datagram.len() <= 1500 - 28, "{} bytes: {said:?}", datagram.len());
            assert_eq!(Said::parse(&datagram), Some(said));
            assert_eq!(Said::parse(&datagram[..datagram.len() - 1]), None, "it is cut off");
        }
    }
}
