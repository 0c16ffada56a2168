//! Sinks that want other layers than they take: they change where decoding can go on.

use outflow_media::{Tag, Time};
use outflow_packet::Level;

use super::branch::Branch;
use super::cohort::Class;
use super::ids::SinkKey;
use super::sink::{Place, Sinks};
use outflow_ring::Seq;

impl Branch {
    /// How many levels there are: as many as the main track has layers. 0 before that is known.
    pub fn levels(&self) -> u8 {
        self.layers
    }

    /// Bits a second of each level, the best first.
    pub fn rate_table(&self, now: Time) -> Vec<u64> {
        self.rates.table(now, self.layers)
    }

    /// A sink wants another quality. It gets less from the next frame on, and more from where that can be
    /// decoded.
    pub fn set_level(&mut self, sinks: &mut Sinks, key: SinkKey, level: Level) {
        let Some(sink) = sinks.get_mut(key.0) else { return };
        sink.spec.level = level;
        if matches!(sink.place, Place::Live { .. }) && !self.changing.contains(&key) {
            self.changing.push(key);
        }
    }

    /// Puts a sink at the beginning of a key frame, with the sequence numbers of sinks that take the same.
    pub(super) fn begin(&mut self, sinks: &mut Sinks, key: SinkKey, at: Seq) {
        let Some(sink) = sinks.get_mut(key.0) else { return };
        let (class, max_layer) = (Class::of(&sink.spec), sink.spec.level.of(self.layers));
        let cohort = self.cohorts.iter().find(|cohort| cohort.class == class);
        let group = cohort.and_then(|cohort| Some((cohort.cursor, cohort.group(max_layer)?.sequence_offset)));
        sink.max_layer = max_layer;
        sink.sequence_offset = group.map_or(0, |(cursor, sequence_offset)| {
            let is_left_out =
                |tag: &Tag| sink.spec.tracks.has(tag.track) && !self.ring.is_within(max_layer, tag);
            let before = self.ring.range(at, cursor).filter(|(_, entry)| is_left_out(&entry.packet.tag));
            sequence_offset.wrapping_sub(before.count() as u16)
        });
        self.place_behind(sinks, key, at);
    }

    /// A packet arrives. Members of cohorts for which something changes with it go on with a cursor of
    /// their own, until they are up again.
    pub(super) fn look_at_layers(&mut self, sinks: &mut Sinks, tag: &Tag) {
        if tag.track != self.ring.main_track() {
            return;
        }
        if tag.layers != self.layers && tag.layers > 0 {
            self.layers = tag.layers;
            let keys = self.cohorts.iter().flat_map(|cohort| &cohort.members);
            self.changing = keys.copied().collect();
        }
        let opens_all = self.ring.opens_all(tag);
        if self.changing.is_empty() || !(tag.first || tag.grown > 0 || opens_all) {
            return;
        }
        let mut changing = core::mem::take(&mut self.changing);
        changing.retain(|&key| {
            let Some(sink) = sinks.get(key.0) else { return false };
            let (max_layer, level) = (sink.max_layer, sink.spec.level);
            let wish = level.of(self.layers);
            if max_layer == wish || !matches!(sink.place, Place::Live { .. }) {
                return false;
            }
            let changes = max_layer.grown(level, tag).from(wish, tag, opens_all) != max_layer;
            if changes && let Some(cursor) = self.cursor(sinks, key) {
                self.detach(sinks, key);
                self.place_behind(sinks, key, cursor);
            }
            !changes
        });
        self.changing = changing;
    }
}

#[cfg(test)]
mod tests;
