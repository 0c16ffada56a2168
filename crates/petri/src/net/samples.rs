//! Nets that tests share.

use core::time::Duration;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Builder, Carries, Interval, Name, Net, Place, Rule, mpeg_gop, mpeg_shape, of_gop};

/// The paper's MPEG service.
pub fn mpeg() -> Net {
    of_gop(&mpeg_gop(), &mpeg_shape()).expect("a net")
}

/// The audio and video that was written by hand.
pub fn lip_sync() -> Net {
    include_str!("../../nets/lip-sync.tspn").parse().expect("a net")
}

/// `[earliest, latest]` in milliseconds; 0 for no end.
pub fn interval(earliest: u64, latest: u64) -> Interval {
    let earliest = Duration::from_millis(earliest);
    let latest = (latest > 0).then(|| Duration::from_millis(latest));
    Interval { earliest, nominal: earliest, latest }
}

/// One transition `t` with two objects `a` and `b` of intervals in milliseconds, `a` the master if one is
/// needed; each round follows the one before.
pub fn pair(rule: Rule, a: (u64, u64), b: (u64, u64)) -> Arc<Net> {
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

/// Numbers that decide: of a place its ends, tokens, interval, and whether it carries an object.
pub type Choice = (usize, usize, u32, u64, u64, bool);

/// A live net whose places all lie on circuits: a circuit through all transitions, and more places at
/// random, those that lead back with a token. Intervals are counted in units of `ms` milliseconds.
pub fn live(rules: &[usize], choices: &[Choice], ms: u64) -> Arc<Net> {
    let (mut builder, count) = (Builder::new(), rules.len());
    let ids: Vec<_> = (0..count)
        .map(|i| builder.transition(Name::new("t").numbered(i as u32), Rule::ALL[rules[i]]))
        .collect();
    let mut masters = BTreeMap::new();
    for (i, (a, b, tokens, earliest, latest, is_object)) in choices.iter().copied().enumerate() {
        let (from, to) = if i < count { (i, (i + 1) % count) } else { (a % count, b % count) };
        let latest = if latest == 0 { 0 } else { ms * (earliest + latest) };
        let id = builder.place(Place {
            name: Name::new("p").numbered(i as u32),
            carries: if is_object || i == 0 { Carries::Object } else { Carries::Order },
            producer: ids[from],
            consumer: ids[to],
            interval: interval(ms * earliest, latest),
            initial: if from < to { tokens.saturating_sub(1) } else { tokens.max(1) },
        });
        // The last one, so that it is any.
        masters.insert(to, id);
    }
    for (transition, place) in masters {
        if Rule::ALL[rules[transition]].needs_master() {
            builder.master(place);
        }
    }
    Arc::new(builder.build().expect("a live net"))
}
