//! Some frames, and not the rest.

use outflow_media::{Rate, Time, TokenBucket};
use outflow_packet::DropReason;

use super::by_frame::{BY_FRAME, ByFrame, Judge};
use super::select::{KINDS, LAYER, PAYLOAD_TYPES, SSRCS, Select, TRACKS};
use super::verdict::{DEPENDENTS, Kept, OUT_AND_REST};
use crate::{Form, Item, Kind, Make, Opt, Settings, Tally, Unfit};

const KEEP: &str = "keep";
const DROP: &str = "drop";

/// What passes at once where nothing is said.
pub(super) const BURST_BYTES: u64 = 256_000;

/// The option of what passes at once.
pub(super) const BURST: Opt =
    Opt::new("burst", Form::Size, Some("256 kB"), "May pass at once, above the rate.");

/// The element.
pub const KIND: Kind = Kind {
    name: "filter",
    doc: "Keeps the frames that are all that is given, or drops them; all packets of a frame alike.",
    contract: |_| BY_FRAME,
    outputs: OUT_AND_REST,
    options: &[
        Opt::new("mode", Form::Word(&[KEEP, DROP]), Some(KEEP), "What happens to the frames that are meant."),
        KINDS,
        TRACKS,
        LAYER,
        PAYLOAD_TYPES,
        SSRCS,
        Opt::new("rate", Form::Rate, None, "Of what is kept, the frames beyond this rate are left out."),
        BURST,
        DEPENDENTS,
    ],
    make: Make::Core(|settings| Ok(Box::new(ByFrame::new(Filter::new(settings)?)))),
};

#[derive(Debug)]
struct Filter {
    select: Select,
    drop: bool,
    dependents: bool,
    limit: Option<(Rate, TokenBucket)>,
}

impl Filter {
    fn new(settings: &Settings) -> Result<Self, Unfit> {
        let select = Select::new(settings);
        let rate = settings.rate("rate");
        if select.is_all() && rate.is_none() {
            let help = "write `kinds`, `tracks`, `layer`, `payload_types`, `ssrcs` or `rate`";
            return Err(Unfit::new("a filter without anything to go by", help));
        }
        let burst = settings.size("burst").unwrap_or(BURST_BYTES);
        Ok(Filter {
            // Without anything given but a rate, all are meant to be kept.
            drop: settings.text("mode") == Some(DROP) && !select.is_all(),
            select,
            dependents: settings.flag("dependents").unwrap_or(true),
            limit: rate.map(|bps| (Rate::per_second(bps), TokenBucket::new(burst.saturating_mul(8)))),
        })
    }
}

impl Judge for Filter {
    type Verdict = Kept;
    type State = Option<TokenBucket>;

    fn judge(&mut self, now: Time, item: &Item, orphan: bool) -> Kept {
        if self.select.matches(item) == self.drop {
            return Kept::No(DropReason::Filtered);
        }
        if orphan && self.dependents {
            return Kept::No(DropReason::DependsOnDropped);
        }
        let Some((rate, bits)) = &mut self.limit else { return Kept::Yes };
        bits.fill(now, *rate);
        Kept::if_so(bits.is_above(0, 1), DropReason::Filtered)
    }

    fn carry_out(&mut self, item: &mut Item, verdict: Kept, _: &mut Tally) -> bool {
        if let (Kept::Yes, Some((_, bits))) = (verdict, &mut self.limit) {
            bits.take(8 * item.len() as u64);
        }
        verdict.part(item);
        true
    }

    fn state(&mut self) -> Option<TokenBucket> {
        self.limit.map(|(_, bits)| bits)
    }

    fn resume(&mut self, state: Option<TokenBucket>) {
        if let (Some((_, bits)), Some(before)) = (&mut self.limit, state) {
            bits.resume(&before);
        }
    }
}

#[cfg(test)]
mod tests;
