//! Keeps a stream to a bit rate.

use outflow_media::importance::Class;
use outflow_media::{Rate, Tag, Time, TokenBucket};
use outflow_packet::DropReason;

use super::by_frame::{BY_FRAME, ByFrame, Judge};
use super::filter::{BURST, BURST_BYTES};
use super::verdict::{DEPENDENTS, Kept};
use crate::{Form, Item, Kind, Make, OUT, Opt, Settings, Tally, Unfit};

/// The element.
pub const KIND: Kind = Kind {
    name: "rate-limit",
    doc: "Keeps to a rate: whole frames are left out, and what needs them; key frames last.",
    contract: |_| BY_FRAME,
    outputs: OUT,
    options: &[Opt::needed("rate", Form::Rate, "What passes, in the long run."), BURST, DEPENDENTS],
    make: Make::Core(|settings| Ok(Box::new(ByFrame::new(RateLimit::new(settings)?)))),
};

/// A token bucket, of which the less important frames leave a part to the others: what is next above
/// the rate is left out in the order of [`reserve`].
///
/// A frame that has begun passes as a whole and may leave the bucket in debt; so what passes in any
/// time is at most what the rate brings, the burst, and a frame.
#[derive(Debug)]
struct RateLimit {
    rate: Rate,
    bits: TokenBucket,
    dependents: bool,
}

impl RateLimit {
    fn new(settings: &Settings) -> Result<Self, Unfit> {
        let rate = settings.rate("rate").unwrap_or(0);
        let burst = settings.size("burst").unwrap_or(BURST_BYTES);
        if rate == 0 || burst == 0 {
            let help = "write `rate` and `burst` above zero, or leave everything out with a filter";
            return Err(Unfit::new("a limit of nothing", help));
        }
        let dependents = settings.flag("dependents").unwrap_or(true);
        Ok(RateLimit {
            rate: Rate::per_second(rate),
            bits: TokenBucket::new(burst.saturating_mul(8)),
            dependents,
        })
    }
}

/// How many of 128 parts of the bucket a frame leaves to more important ones: by its class, since little is
/// gained by many steps. The layer, which `prioritise` may have set, counts where it says more.
pub(crate) fn reserve(tag: &Tag) -> u8 {
    let by_class = match tag.importance().class() {
        Class::Header | Class::Key | Class::Sound => 0,
        Class::Reference | Class::Opaque => 32,
        Class::Disposable | Class::Enhancement => 64,
        Class::Stuffing => 127,
    };
    if by_class == 0 && tag.key { 0 } else { by_class.max(tag.layer.min(127)) }
}

impl Judge for RateLimit {
    type Verdict = Kept;
    type State = TokenBucket;

    fn judge(&mut self, now: Time, item: &Item, orphan: bool) -> Kept {
        if orphan && self.dependents {
            return Kept::No(DropReason::DependsOnDropped);
        }
        self.bits.fill(now, self.rate);
        let reserved = reserve(&item.packet.tag);
        Kept::if_so(self.bits.is_above(reserved.into(), 128), DropReason::RateLimit)
    }

    fn carry_out(&mut self, item: &mut Item, verdict: Kept, tally: &mut Tally) -> bool {
        match verdict {
            Kept::Yes => self.bits.take(8 * item.len() as u64),
            Kept::No(reason) => tally.drop(reason),
        }
        verdict == Kept::Yes
    }

    fn state(&mut self) -> TokenBucket {
        self.bits
    }

    fn resume(&mut self, state: TokenBucket) {
        self.bits.resume(&state);
    }
}

#[cfg(test)]
mod tests;
