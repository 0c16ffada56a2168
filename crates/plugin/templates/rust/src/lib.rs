//! NAME: lets everything pass but frames that nothing else needs.

wit_bindgen::generate!({ world: "plugin", path: "wit" });

use exports::outflow::plugin::element::Guest;
use outflow::plugin::types::{Action, Answer, Chosen, Format, Kind, Packet, Payload, Setup};

struct Element;

export!(Element);

impl Guest for Element {
    fn init(_config: String, _input: Format) -> Result<Setup, String> {
        // What the relay knows of a packet is enough; `Head` and `All` ask for its bytes.
        Ok(Setup { payload: Payload::None })
    }

    fn work(packets: Vec<Packet>, _bytes: Vec<u8>) -> Answer {
        if packets.iter().all(passes) {
            return Answer::Pass;
        }
        let passing = (0..).zip(&packets).filter(|(_, packet)| passes(packet));
        let actions = passing.map(|(packet, _)| Action { packet, port: 0, edit: None }).collect();
        Answer::Only(Chosen { actions, bytes: Vec::new() })
    }
}

fn passes(packet: &Packet) -> bool {
    packet.kind != Kind::Bidirectional
}

#[cfg(test)]
mod tests {
    use super::*;
    use outflow::plugin::types::Marks;

    fn packet(kind: Kind) -> Packet {
        Packet {
            arrived: 0,
            offset: 0,
            length: 0,
            size: 1400,
            frame: 0,
            track: 0,
            kind,
            layer: 0,
            marks: Marks::empty(),
            needs: 0,
        }
    }

    #[test]
    fn frames_that_nothing_needs_are_dropped() {
        let packets = vec![packet(Kind::Intra), packet(Kind::Bidirectional), packet(Kind::Predicted)];
        let Answer::Only(chosen) = Element::work(packets, Vec::new()) else { panic!("it drops one") };
        assert_eq!(chosen.actions.iter().map(|action| action.packet).collect::<Vec<_>>(), [0, 2]);
        assert!(matches!(Element::work(vec![packet(Kind::Data)], Vec::new()), Answer::Pass));
    }
}
