//! RTP tracks into one transport stream.

use bytes::Bytes;
use outflow_media::remux::RtpToTs;
use outflow_media::ts::TsReader;
use outflow_media::{Format, Time};

use crate::buffer::Packet;
use crate::drops::{DropReason, Drops};
use crate::graph::{
    Content, Contents, Contract, Element, Gives, Item, Kind, Make, Message, OUT, Tally, Unfit,
};

/// The element.
pub const KIND: Kind = Kind {
    name: "to-ts",
    doc: "Puts the tracks of RTP into one MPEG transport stream.",
    contract: |_| Contract { takes: Contents::RTP, gives: Gives::Only(Content::Ts) },
    outputs: OUT,
    options: &[],
    make: Make::Core(|_| Ok(Box::new(ToTs { mux: None, reader: TsReader::default(), made: Vec::new() }))),
};

/// Puts the tracks' access units into transport stream packets, and tags those.
#[derive(Debug)]
struct ToTs {
    mux: Option<RtpToTs>,
    reader: TsReader,
    made: Vec<Item>,
}

impl Element for ToTs {
    fn bind(&mut self, input: &Format) -> Result<Format, Unfit> {
        let mux = match input {
            Format::Rtp(tracks) => RtpToTs::new(tracks).ok(),
            Format::Ts | Format::Images => None,
        };
        let help = "play it by RTSP, or send it to an rtp:// address";
        let unfit = || Unfit::new("no track can be carried in a transport stream", help);
        self.mux = Some(mux.ok_or_else(unfit)?);
        self.reader = TsReader::default();
        Ok(Format::Ts)
    }

    fn work(&mut self, _: Time, batch: &mut Vec<Item>, tally: &mut Tally) {
        let ToTs { mux: Some(mux), reader, made } = self else { return };
        for mut item in batch.drain(..) {
            let Packet { tag, arrived, .. } = item.packet;
            let whole =
                if item.rtp_header[0] != 0 { item.own(true).freeze() } else { item.packet.bytes.clone() };
            mux.push(tag.track, &whole, arrived, &mut |bytes: Bytes| {
                // What the multiplexer makes is well-formed; were it not, it would not be sent.
                if let Ok(tag) = reader.read(&bytes) {
                    let mut out = item.made(Packet { bytes, tag, arrived });
                    out.preamble = if tag.key { reader.preamble() } else { None };
                    made.push(out);
                }
            });
        }
        core::mem::swap(batch, made);
        tally.drops = drops(mux);
    }

    fn message(&mut self, _: Time, message: Message) {
        if let (Message::Clock { track, ntp, rtp, at }, Some(mux)) = (message, &mut self.mux) {
            mux.sender_report(track, ntp, rtp, at);
        }
    }
}

/// What could not be put into the transport stream, and why.
fn drops(mux: &RtpToTs) -> Drops {
    let mut drops = Drops::default();
    let counted = mux.dropped();
    drops.add(DropReason::Late, counted.late);
    drops.add(DropReason::Incomplete, counted.incomplete);
    drops.add(DropReason::Malformed, counted.malformed);
    drops.add(DropReason::Oversized, counted.too_large);
    drops
}
