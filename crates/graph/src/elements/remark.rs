//! Other RTP headers, without touching what is behind them.

use outflow_media::{Format, Tag, Time};
use outflow_packet::TrackMask;
use outflow_rtp::HEADER;

use super::select::{can_be_changed, mask};
use crate::{
    Contents, Contract, Control, Element, Form, Gives, Item, Kind, Make, Message, OUT, Opt, Settings,
    Signals, Tally, TrackTime, Unfit,
};

const SET: &str = "set";
const CLEAR: &str = "clear";
const LAST: &str = "last";
const MARKER: u8 = 0x80;

/// The element.
pub const KIND: Kind = Kind {
    name: "remark",
    doc: "Rewrites the RTP header: payload type, source, marker, timestamp; the payload is not touched.",
    contract: |_| {
        let control = Control { changes: Signals::CLOCK, ..Control::NONE };
        Contract::new(Contents::RTP, Gives::Same).with(control)
    },
    outputs: OUT,
    options: &[
        Opt::new(
            "tracks",
            Form::Numbers(0, 31),
            None,
            "Of these tracks, the first is 0; of all if left out.",
        ),
        Opt::new("payload_type", Form::Whole(0, 127), None, "Another payload type, of a single track."),
        Opt::new("ssrc", Form::Whole(0, u32::MAX as u64), None, "Another source (SSRC), of a single track."),
        Opt::new(
            "marker",
            Form::Word(&[SET, CLEAR, LAST]),
            None,
            "The marker bit: set, cleared, or set on the last packet of a frame only.",
        ),
        Opt::new(
            "timestamp_offset",
            Form::Whole(0, u32::MAX as u64),
            None,
            "Ticks added to the timestamp, which wraps: 4294967295 is one less.",
        ),
    ],
    make: Make::Core(|settings| Ok(Box::new(Remark::new(settings)?))),
};

#[derive(Debug)]
struct Remark {
    asked: TrackMask,
    /// Those of the asked that can be changed: an encrypted packet's header is signed.
    tracks: TrackMask,
    payload_type: Option<u8>,
    ssrc: Option<u32>,
    marker: Option<Marker>,
    timestamp_offset: u32,
}

#[derive(Debug, Clone, Copy)]
enum Marker {
    Set,
    Clear,
    Last,
}

impl Remark {
    fn new(settings: &Settings) -> Result<Self, Unfit> {
        let marker = settings.text("marker").map(|word| match word {
            SET => Marker::Set,
            CLEAR => Marker::Clear,
            _ => Marker::Last,
        });
        let remark = Remark {
            asked: settings.numbers("tracks").map_or(TrackMask::ALL, |tracks| mask(&tracks)),
            tracks: TrackMask::NONE,
            payload_type: settings.whole("payload_type").map(|number| number as u8),
            ssrc: settings.whole("ssrc").map(|ssrc| ssrc as u32),
            marker,
            timestamp_offset: settings.whole("timestamp_offset").unwrap_or(0) as u32,
        };
        let changes = [
            remark.payload_type.is_some(),
            remark.ssrc.is_some(),
            marker.is_some(),
            remark.timestamp_offset != 0,
        ];
        if !changes.contains(&true) {
            let help = "write `payload_type`, `ssrc`, `marker` or `timestamp_offset`";
            return Err(Unfit::new("nothing to rewrite", help));
        }
        Ok(remark)
    }

    fn rewrite(&self, header: &mut [u8; HEADER], tag: &Tag) {
        if let Some(payload_type) = self.payload_type {
            outflow_rtp::set_payload_type(header, payload_type);
        }
        if let Some(ssrc) = self.ssrc {
            outflow_rtp::set_ssrc(header, ssrc);
        }
        if self.timestamp_offset != 0 {
            let [_, _, _, _, a, b, c, d, ..] = *header;
            let timestamp = u32::from_be_bytes([a, b, c, d]).wrapping_add(self.timestamp_offset);
            outflow_rtp::set_timestamp(header, timestamp);
        }
        match self.marker {
            Some(Marker::Set) => header[1] |= MARKER,
            Some(Marker::Last) if tag.last => header[1] |= MARKER,
            Some(Marker::Clear | Marker::Last) => header[1] &= !MARKER,
            None => {}
        }
    }
}

impl Element for Remark {
    fn bind(&mut self, input: &Format) -> Result<Format, Unfit> {
        let Format::Rtp(tracks) = input else {
            return Err(Unfit::new("what comes in is no RTP", "let it take from where there is RTP"));
        };
        let meant: Vec<usize> =
            (0..tracks.len()).filter(|index| can_be_changed(self.asked, *index, &tracks[*index])).collect();
        let mut out = tracks.clone();
        match meant[..] {
            [] => {
                let help = "write the number of one in `tracks`; the first is 0, and SRTP is signed as it is";
                return Err(Unfit::new("no track to rewrite", help));
            }
            [only] => out[only].payload_type = self.payload_type.unwrap_or(out[only].payload_type),
            _ if self.payload_type.is_some() || self.ssrc.is_some() => {
                let what = format!("one `payload_type` or `ssrc` for {} tracks", meant.len());
                return Err(Unfit::new(what, "write the number of a single one in `tracks`"));
            }
            _ => {}
        }
        self.tracks = meant.iter().fold(TrackMask::NONE, |all, at| all.with(TrackMask::only(*at as u8)));
        Ok(Format::Rtp(out))
    }

    fn work(&mut self, _: Time, batch: &mut Vec<Item>, _: &mut Tally) {
        for item in batch.iter_mut().filter(|item| self.tracks.has(item.packet.tag.track)) {
            let tag = item.packet.tag;
            if let Some(header) = item.header_mut() {
                self.rewrite(header, &tag);
            }
        }
    }

    fn message(&mut self, _: Time, message: Message) -> Option<Message> {
        Some(match message {
            Message::Clock(time) if self.tracks.has(time.track) => {
                let rtp = time.rtp.wrapping_add(self.timestamp_offset);
                Message::Clock(TrackTime { rtp, ..time })
            }
            message => message,
        })
    }
}

#[cfg(test)]
mod tests;
