//! The levels of a stream that has renditions.

use outflow_media::Time;
use outflow_packet::{Level, Parsed};

use super::switch::Pushed;
use crate::control::branches::ORIGINAL;
use crate::control::distribution::Distribution;
use crate::control::levels::{Coming, Levels, TsBranches};
use crate::schedule::SinkKey;
use outflow_ring::Seq;

/// Levels that are streams of their own: a branch each.
#[derive(Debug, Clone, Copy)]
pub(in crate::control) struct Simulcast {
    /// The branch that is asked about.
    branch: usize,
}

impl Simulcast {
    pub(in crate::control) fn at(branch: usize) -> Self {
        Simulcast { branch }
    }
}

impl Levels for Simulcast {
    fn count(self, out: &Distribution) -> u8 {
        out.rendition_count() as u8
    }

    fn rates(self, out: &Distribution, now: Time) -> Vec<u64> {
        let rate = |index| out.branches.get(index).and_then(|branch| branch.rate_table(now).first().copied());
        (0..out.rendition_count()).map(|index| rate(index).unwrap_or(0)).collect()
    }

    /// Renditions are taken whole.
    fn branch_for(self, _: &mut Distribution, _: Time, _: Level) -> usize {
        self.branch
    }

    fn take(self, out: &mut Distribution, key: SinkKey, level: Level) {
        self.wants_other(out, key);
        out.sinks.get_mut(key.0).into_iter().for_each(|sink| sink.spec.level = level);
    }

    fn set_least(self, out: &mut Distribution, layers: u8) {
        TsBranches::of(self.branch).set_least(out, layers);
    }

    fn restart(self, out: &mut Distribution) {
        TsBranches::of(self.branch).restart(out);
    }

    fn comes(self, out: &Distribution, index: usize, parsed: &Parsed) -> Coming {
        let Coming { datagram, .. } = TsBranches::of(index).comes(out, index, parsed);
        let ring = out.branches.get(index).map(|branch| branch.ring());
        let pushed = ring.map(|ring| Pushed::new(&parsed.packet, &parsed.rtp_header, ring));
        Coming { datagram, pushed }
    }

    fn came(self, out: &mut Distribution, now: Time, at: (usize, Seq, bool), coming: Coming) {
        let (index, _, is_there) = at;
        let pushed = coming.pushed.filter(|_| is_there);
        TsBranches::of(index).came(out, now, at, coming);
        if let Some(pushed) = pushed {
            self.look_for_entrances(out, index, pushed);
        }
    }

    fn look(self, out: &mut Distribution, now: Time) -> bool {
        self.look_at_news(out, now)
    }

    fn change(self, out: &mut Distribution, now: Time, key: SinkKey) -> bool {
        self.go_or_stop(out, now, key)
    }

    fn roots(self, out: &Distribution) -> usize {
        out.rendition_count()
    }

    fn root_for(self, out: &Distribution, level: Level) -> usize {
        out.renditions.as_ref().map_or(ORIGINAL, |renditions| renditions.of_level(level))
    }

    fn begin(self, out: &mut Distribution) {
        self.forget_entrances(out);
    }

    fn begin_with_held(self, out: &mut Distribution, index: usize) {
        self.comes_behind_held(out, index);
    }

    fn forget(self, out: &mut Distribution, index: usize) {
        self.forget_branch(out, index);
    }

    fn is_awaited(self, out: &mut Distribution, now: Time, index: usize) -> bool {
        self.awaits(out, now, index)
    }
}
