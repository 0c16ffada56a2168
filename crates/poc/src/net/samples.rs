//! Nets that tests share.

use core::time::Duration;
use std::sync::Arc;

use super::{Builder, Carries, Interval, Net, Place, Rule, mpeg_gop, mpeg_shape, of_gop};

/// The paper's MPEG service.
pub(crate) fn mpeg() -> Net {
    of_gop(&mpeg_gop(), &mpeg_shape()).expect("a net")
}

/// The audio and video that was written by hand.
pub(crate) fn lip_sync() -> Net {
    include_str!("../../nets/lip-sync.tspn").parse().expect("a net")
}

/// `[earliest, latest]` in milliseconds; 0 for no end.
pub(crate) fn interval(earliest: u64, latest: u64) -> Interval {
    let earliest = Duration::from_millis(earliest);
    let latest = (latest > 0).then(|| Duration::from_millis(latest));
    Interval { earliest, nominal: earliest, latest }
}

/// One transition `t` with two objects `a` and `b` of intervals in milliseconds, `a` the master if one is
/// needed; each round follows the one before.
pub(crate) fn pair(rule: Rule, a: (u64, u64), b: (u64, u64)) -> Arc<Net> {
    let mut builder = Builder::new();
    let t = builder.transition("t", rule);
    let ids = [("a", a), ("b", b)].map(|(name, (earliest, latest))| {
        builder.place(Place {
            name: name.into(),
            carries: Carries::Object,
            producer: t,
            consumer: t,
            interval: interval(earliest, latest),
            initial: 1,
        })
    });
    if rule.needs_master() {
        builder.master(ids[0]);
    }
    Arc::new(builder.build().expect("a net"))
}
