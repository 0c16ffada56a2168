//! What receivers get of a link that admits: streams ask for their receivers, and give them what fits.

use outflow_config::BitRate;
use outflow_link::Declared;
use outflow_media::Time;
use outflow_packet::Level;
use outflow_relay::{SinkKey, Stream, Wish};

use super::super::stream::LiveStream;
use super::{Behind, Links};
use crate::message::{ControlError, ReceiverId};

/// What each level of a sink takes of a link, bits a second, the best first; nothing before that is known. What packets
/// have there besides is added as if each were of the source's mean size. What the sink reserves counts if that is more,
/// else what its stream is said to take, where it gets that as it comes in.
fn takes(core: &Stream, now: Time, key: SinkKey, behind: &Behind) -> Vec<u64> {
    let source = core.source_counters();
    let more = |bps: u64| {
        let headers = u128::from(bps) * behind.overhead as u128 * u128::from(source.packets);
        bps + u64::try_from(headers / u128::from(source.bytes.max(1))).unwrap_or(u64::MAX)
    };
    let declared = match core.spec(key) {
        Some(spec) if spec.claim.reserve_bps > 0 => {
            Declared { least_bps: spec.claim.reserve_bps, ..Declared::default() }
        }
        Some(spec) if spec.is_of_source() => {
            Declared { best_bps: core.options().reserve_bps, ..Declared::default() }
        }
        _ => Declared::default(),
    };
    declared.beside(core.rates_of(now, key).into_iter().map(more).collect())
}

impl Links {
    /// A sink's level changes, or it joins (`before` says nothing): it has reserved what it takes, or has the level of
    /// before.
    ///
    /// # Errors
    /// The link has no room for it.
    pub(in super::super) fn admit(
        &mut self,
        now: Time,
        core: &mut Stream,
        (key, receiver, behind): (SinkKey, ReceiverId, &Behind),
        before: Option<Wish>,
    ) -> Result<(), ControlError> {
        let Some(link) = self.all.get_mut(&behind.link) else { return Ok(()) };
        let rate_bps = link.rate_bps();
        let Some((admission, may_lower)) = &mut link.admission else { return Ok(()) };
        let Some(wish) = core.sink(key).map(|sink| sink.wish) else { return Ok(()) };
        let rates = takes(core, now, key, behind);
        let may_lower = *may_lower && before.is_none();
        let admitted = admission.admit(receiver, (rate_bps, &rates), (wish.level().number(), may_lower));
        let is_other = |level: &Level| *level != wish.level();
        let (other, done) = match admitted {
            Ok(level) => (Level::new(level).filter(is_other).map(Wish::for_level), Ok(())),
            Err(full) => {
                let [left, least] = [full.left_bps, full.takes_bps.1].map(BitRate);
                let what = format!(
                    "link '{}' has {left} left of {}, and this takes {least}: ask for a lower level, reserve less, \
                     or raise the link's rate",
                    link.name,
                    BitRate(rate_bps)
                );
                (before, Err(ControlError::NoRoom(what)))
            }
        };
        other.into_iter().for_each(|wish| core.set_wish(key, wish));
        done
    }

    /// What a sink takes may have changed with what comes.
    pub(in super::super) fn reserve(
        &mut self,
        now: Time,
        core: &Stream,
        (key, receiver, behind): (SinkKey, ReceiverId, &Behind),
    ) {
        let link = self.all.get_mut(&behind.link);
        let Some((admission, _)) = link.and_then(|link| link.admission.as_mut()) else { return };
        let rates = takes(core, now, key, behind);
        let level = core.spec(key).map_or(Level::BEST, |spec| spec.level);
        let at = usize::from(level.number() - 1).min(rates.len().saturating_sub(1));
        admission.reserve(receiver, rates.get(at).copied().unwrap_or(0));
    }
}

impl LiveStream {
    /// The level that a sink wants.
    pub(in super::super) fn wish(&self, key: SinkKey) -> Option<Wish> {
        self.core.sink(key).map(|sink| sink.wish)
    }

    /// The level that a sink wants has changed: it has that if its link has room for it, else the one of before.
    pub(in super::super) fn keep_within_link(
        &mut self,
        now: Time,
        key: SinkKey,
        before: Option<Wish>,
        links: &mut Links,
    ) -> Result<(), ControlError> {
        let LiveStream { core, sinks, .. } = self;
        let Some(Some(sink)) = sinks.get(key.0) else { return Ok(()) };
        let has_changed = core.sink(key).map(|sink| sink.wish) != before;
        match &sink.behind {
            Some(behind) if has_changed => links.admit(now, core, (key, sink.id, behind), before),
            _ => Ok(()),
        }
    }
}
