//! A switch.

use outflow_media::Time;
use outflow_packet::DropReason;
use outflow_packet::limits::TRACKS_MAX;

use super::by_frame::{BY_FRAME, ByFrame, Judge, Verdict};
use super::select::{KINDS, LAYER, PAYLOAD_TYPES, SSRCS, Select, TRACKS};
use crate::{Form, Item, Kind, Make, Opt, Settings, Tally, Unfit};

const OUT: u8 = 0;
const OTHER: u8 = 1;
/// The element.
pub const KIND: Kind = Kind {
    name: "redirect",
    doc: "A switch: what is meant, or everything, leaves by `other`, and the rest by `out`.",
    contract: |_| BY_FRAME,
    outputs: &["out", "other"],
    options: &[
        Opt::new("all", Form::Flag, Some("false"), "Everything leaves by `other`."),
        Opt::new(
            "at_key",
            Form::Flag,
            Some("true"),
            "When `all` was changed, a track goes over only where decoding can start.",
        ),
        KINDS,
        TRACKS,
        LAYER,
        PAYLOAD_TYPES,
        SSRCS,
    ],
    make: Make::Core(|settings| Ok(Box::new(ByFrame::new(Redirect::new(settings)?)))),
};

#[derive(Debug)]
struct Redirect {
    /// `None`: nothing but `all` says what goes to `other`.
    select: Option<Select>,
    all: bool,
    at_key: bool,
    /// Whether all of a track goes to `other` now; `None` before its first frame.
    over: [Option<bool>; TRACKS_MAX],
}

impl Redirect {
    fn new(settings: &Settings) -> Result<Self, Unfit> {
        let select = Select::new(settings);
        Ok(Redirect {
            select: Some(select).filter(|select| !select.is_all()),
            all: settings.flag("all").unwrap_or(false),
            at_key: settings.flag("at_key").unwrap_or(true),
            over: [None; TRACKS_MAX],
        })
    }
}

/// By which output.
#[derive(Debug, Clone, Copy)]
struct Port(u8);

impl Verdict for Port {
    fn leaves_out(self) -> bool {
        false
    }
}

impl Judge for Redirect {
    type Verdict = Port;
    type State = [Option<bool>; TRACKS_MAX];

    fn judge(&mut self, _: Time, item: &Item, _: bool) -> Port {
        let tag = item.packet.tag;
        let over = &mut self.over[usize::from(tag.track) % TRACKS_MAX];
        if over.is_none() || !self.at_key || tag.key {
            *over = Some(self.all);
        }
        let is_meant = || self.select.as_ref().is_some_and(|select| select.matches(item));
        Port(if *over == Some(true) || is_meant() { OTHER } else { OUT })
    }

    fn carry_out(&mut self, item: &mut Item, Port(port): Port, _: &mut Tally) -> bool {
        item.leave_by(port, DropReason::Filtered);
        true
    }

    fn state(&mut self) -> Self::State {
        self.over
    }

    fn resume(&mut self, state: Self::State) {
        self.over = state;
    }
}

#[cfg(test)]
mod tests;
