//! A stream that comes by a group goes on in another process by the way that carries it. The other way is opened there
//! again when it is needed.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use minicbor::{Decode, Encode};
use outflow_client::{Options, Received, Subscription};
use outflow_media::Format;

use super::merge::{Merge, SavedMerge};
use super::{By, Grouped, Shown, url, way};

/// As it is said, beside the subscription that carries.
#[derive(Debug, Encode, Decode)]
#[cbor(map)]
pub(in super::super) struct SavedGrouped {
    /// Whether that is the group's.
    #[n(0)]
    is_by_group: bool,
    /// How many levels there are, if that was said.
    #[n(1)]
    levels: Option<u8>,
    /// The longest time between two packets of the group, lately, in nanoseconds.
    #[n(2)]
    lull: u64,
    #[n(3)]
    merge: SavedMerge,
}

impl Grouped {
    /// What came and was not passed on yet, before another process goes on with it.
    pub(in super::super) fn take_received(&mut self) -> Vec<Received> {
        let of = |way: &mut Option<Subscription>| -> Vec<_> {
            way.iter_mut().flat_map(Subscription::take_received).collect()
        };
        of(&mut self.group).into_iter().for_each(|received| self.hear_group(received));
        of(&mut self.unicast).into_iter().for_each(|received| self.hear_unicast(received));
        self.out.drain(..).collect()
    }

    /// What another process needs to go on with it, and the subscription that carries, with its descriptors. None if it
    /// has to begin again. `epoch` is when the time began that both share.
    pub(in super::super) async fn save(
        &mut self,
        epoch: Instant,
    ) -> Option<(SavedGrouped, Vec<u8>, Vec<OwnedFd>)> {
        let carrier = match self.carrier {
            By::Group => self.group.as_mut(),
            By::Unicast => self.unicast.as_mut(),
        };
        let (subscription, descriptors) = carrier?.save(epoch).await?;
        let saved = SavedGrouped {
            is_by_group: self.carrier == By::Group,
            levels: self.levels,
            lull: self.times.lull.as_nanos() as u64,
            merge: self.merge.save(),
        };
        Some((saved, subscription, descriptors))
    }

    /// Goes on with what another process has saved. None if that cannot be.
    pub(in super::super) fn restore(
        (place, stream): (&str, &str),
        (options, level): (Options, u8),
        shown: Arc<Shown>,
        (saved, subscription): (SavedGrouped, (&[u8], Vec<OwnedFd>)),
        epoch: Instant,
    ) -> Option<Self> {
        let SavedGrouped { is_by_group, levels, lull, merge } = saved;
        let by = if is_by_group { By::Group } else { By::Unicast };
        let url = url(place, stream, level);
        let subscription = Subscription::restore(&url, way(by, &options), subscription, epoch)?;
        let format = subscription.format().clone();
        let merge = Merge::restore(format != Format::Ts, merge)?;
        shown.is_by_group.store(is_by_group, Ordering::Relaxed);
        let mut grouped = Grouped::new((place, stream), (options, level), format, shown);
        (grouped.carrier, grouped.levels, grouped.merge) = (by, levels, merge);
        grouped.times.lull = Duration::from_nanos(lull);
        match by {
            By::Group => grouped.group = Some(subscription),
            By::Unicast => {
                grouped.unicast = Some(subscription);
                grouped.open(By::Group);
            }
        }
        Some(grouped)
    }
}
