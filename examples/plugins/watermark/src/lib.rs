//! Marks a stream: the packet of each key frame at which decoding can start gets an RTP header
//! extension (RFC 8285, one-byte form) with a text of up to 16 bytes, by which it is known again
//! wherever it turns up.
//!
//! An extension, because receivers that do not know it skip it (RFC 8285, section 4), so that no
//! decoder sees anything new, because the same works for every codec, and because it wants to see
//! nothing of a packet but its header. What is to survive a decoder belongs into the pictures.

wit_bindgen::generate!({ world: "plugin", path: "../../../crates/plugin/wit" });

use exports::outflow::plugin::element::Guest;
use outflow::plugin::types::{Action, Answer, Chosen, Edit, Format, Marks, Packet, Payload, Setup};

/// The number of the extension; descriptions give it a meaning with `a=extmap:13 …`.
const ID: u8 = 13;
/// Bytes of a header without CSRCs and extension.
const HEADER: usize = 12;

struct Watermark;

export!(Watermark);

/// The text, from `init` on. A plug-in has one thread.
static MARK: std::sync::Mutex<Vec<u8>> = std::sync::Mutex::new(Vec::new());

impl Guest for Watermark {
    fn init(config: String, input: Format) -> Result<Setup, String> {
        if !matches!(input, Format::Rtp(_)) {
            return Err("only RTP has header extensions".to_owned());
        }
        if !(1..=16).contains(&config.len()) {
            return Err(format!("the mark has {} bytes; write 1 to 16", config.len()));
        }
        *MARK.lock().map_err(|error| error.to_string())? = extension(config.as_bytes());
        Ok(Setup { payload: Payload::Head(HEADER as u32) })
    }

    fn work(packets: Vec<Packet>, bytes: Vec<u8>) -> Answer {
        let Ok(mark) = MARK.lock() else { return Answer::Pass };
        answer(&packets, &bytes, &mark)
    }
}

/// The extension as it stands behind a header.
fn extension(text: &[u8]) -> Vec<u8> {
    let mut element = vec![ID << 4 | (text.len() - 1) as u8];
    element.extend_from_slice(text);
    element.resize(element.len().next_multiple_of(4), 0);
    let words = (element.len() / 4) as u16;
    [&[0xbe, 0xde][..], &words.to_be_bytes(), &element].concat()
}

fn answer(packets: &[Packet], bytes: &[u8], mark: &[u8]) -> Answer {
    // What has CSRCs or an extension already is left alone.
    let header = |packet: &Packet| {
        let starts = packet.marks.contains(Marks::KEY);
        let header = bytes.get(packet.offset as usize..)?.get(..HEADER)?;
        (starts && header[0] & 0x1f == 0).then_some(header)
    };
    if packets.iter().all(|packet| header(packet).is_none()) {
        return Answer::Pass;
    }
    let mut made = Vec::new();
    let mut act = |(index, packet): (usize, &Packet)| {
        let edit = header(packet).map(|header| {
            let offset = made.len();
            made.extend_from_slice(header);
            made[offset] |= 0x10;
            made.extend_from_slice(mark);
            Edit { offset: offset as u32, length: (made.len() - offset) as u32, after: HEADER as u32 }
        });
        Action { packet: index as u32, port: 0, edit }
    };
    let actions = packets.iter().enumerate().map(&mut act).collect();
    Answer::Only(Chosen { actions, bytes: made })
}

#[cfg(test)]
mod tests {
    use super::*;
    use outflow::plugin::types::Kind;

    fn packet(offset: u32, marks: Marks) -> Packet {
        Packet {
            arrived: 0,
            offset,
            length: 12,
            size: 100,
            frame: 0,
            track: 0,
            kind: Kind::Intra,
            layer: 0,
            marks,
            needs: 0,
        }
    }

    #[test]
    fn key_frames_get_an_extension_behind_their_header() {
        let mut bytes = [0; 24];
        (bytes[0], bytes[12]) = (0x80, 0x80);
        let mark = extension(b"outflow");
        assert_eq!(mark, b"\xbe\xde\0\x02\xd6outflow");
        let packets = [packet(0, Marks::KEY), packet(12, Marks::empty())];
        let Answer::Only(chosen) = answer(&packets, &bytes, &mark) else { panic!("it marks") };
        assert_eq!(chosen.actions.len(), 2);
        assert!(chosen.actions[1].edit.is_none());
        assert_eq!((chosen.bytes[0], &chosen.bytes[12..]), (0x90, &mark[..]));
        assert!(matches!(answer(&packets[1..], &bytes, &mark), Answer::Pass));
    }
}
