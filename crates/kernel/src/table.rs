//! The table of targets: one array for a worker, of which each group has a range.

use core::ops::Range;

use super::device::Devices;
use super::failure::{Failure, Reason};
use super::layout::{Entry, Target};
use super::shared::Shared;

/// A group gets its entries in lots of this many, so that it can grow a little where it is.
const LOT: u32 = 16;

/// Targets that get the same packets. To be given back by [`super::Kernel::remove_group`].
#[derive(Debug)]
#[must_use = "its entries are free again only after `remove_group`"]
pub struct Group {
    /// Its entries; those behind `count` are in reserve.
    room: Range<u32>,
    count: u32,
    /// Entries of the same device that stand together; what is blank is left out.
    runs: Vec<Range<u32>>,
    /// All devices cut segmented packets themselves.
    segments: bool,
    /// The two above are no longer as the entries have them.
    changed: bool,
}

/// The table has no room for a group of this size.
#[derive(Debug, thiserror::Error)]
#[error(
    "no room for {wanted} receivers in one piece in the kernel path's table: {free} entries of {size} are free"
)]
pub struct TableFull {
    wanted: usize,
    free: u32,
    size: u32,
}

impl Group {
    /// The entries of its targets.
    pub(super) fn entries(&self) -> Range<u32> {
        self.room.start..self.room.start + self.count
    }

    /// The entries of the targets at `places`.
    pub(super) fn at(&self, places: &Range<usize>) -> Range<u32> {
        let index = |place: usize| self.room.start + place.min(self.count as usize) as u32;
        index(places.start)..index(places.end)
    }
}

/// All entries, and which are free.
#[derive(Debug)]
pub(super) struct Table {
    entries: Shared<Entry>,
    /// By entry: the highest layer that is sent there, so that entries need not be read to be counted.
    max_layers: Vec<Option<u8>>,
    devices: Devices,
    size: u32,
    /// In order, and never two that touch.
    free: Vec<Range<u32>>,
}

impl Table {
    pub(super) fn new(entries: Shared<Entry>, devices: Devices, size: u32) -> Self {
        let max_layers = vec![None; size as usize];
        Table { entries, max_layers, devices, size, free: core::iter::once(0..size).collect() }
    }

    pub(super) fn add(&mut self, places: usize) -> Result<Group, TableFull> {
        let room = self.take(places)?;
        let mut group = Group { room, count: 0, runs: Vec::new(), segments: false, changed: true };
        self.set_count(&mut group, places);
        Ok(group)
    }

    /// Gives a group more or fewer places; new ones are blank. When that fails, it keeps those it has.
    pub(super) fn resize(&mut self, group: &mut Group, places: usize) -> Result<(), TableFull> {
        if places > group.room.len() {
            // With something in reserve, as a group that grows is likely to go on growing.
            let room = self.take(places + places / 4).or_else(|_| self.take(places))?;
            let before = group.entries();
            for (from, to) in before.zip(room.clone()) {
                self.write(to, self.entries.get(from));
            }
            self.give_back(core::mem::replace(&mut group.room, room));
        }
        self.set_count(group, places);
        Ok(())
    }

    fn set_count(&mut self, group: &mut Group, places: usize) {
        let before = group.count;
        group.count = places as u32;
        group.changed = true;
        for place in before..group.count {
            self.write(group.room.start + place, Entry::BLANK);
        }
    }

    fn write(&mut self, index: u32, entry: Entry) {
        self.entries.set(index, entry);
        self.max_layers[index as usize] = entry.max_layer();
    }

    /// Gives a place to a target, or leaves it blank: nothing is sent there.
    pub(super) fn set(&mut self, group: &mut Group, place: usize, target: Option<&Target>) {
        let index = group.at(&(place..place + 1));
        let entry = target.map_or(Entry::BLANK, Entry::new);
        for index in index {
            group.changed |= self.entries.get(index).ifindex != entry.ifindex;
            self.write(index, entry);
        }
    }

    /// The entries at `places` in pieces that have one device each; what is blank is left out.
    pub(super) fn runs<'g>(
        &mut self,
        group: &'g mut Group,
        places: &Range<usize>,
    ) -> impl Iterator<Item = Range<u32>> + use<'g> {
        self.follow_changes(group);
        let wanted = group.at(places);
        let within = move |run: &Range<u32>| run.start.max(wanted.start)..run.end.min(wanted.end);
        group.runs.iter().map(within).filter(|run| run.start < run.end)
    }

    /// Those of these entries that take packets of this layer: from the first to the last, and how many.
    pub(super) fn taking(&self, entries: Range<u32>, layer: u8) -> (Range<u32>, u32) {
        let max_layers =
            self.max_layers.get(entries.start as usize..entries.end as usize).unwrap_or_default();
        let takes = |max_layer: &Option<u8>| max_layer.is_some_and(|max_layer| layer <= max_layer);
        let first = max_layers.iter().position(takes).unwrap_or(max_layers.len());
        let last = max_layers.iter().rposition(takes).map_or(first, |last| last + 1);
        let count = max_layers[first..last].iter().filter(|max_layer| takes(max_layer)).count();
        (entries.start + first as u32..entries.start + last as u32, count as u32)
    }

    /// Whether all devices of the group cut segmented packets themselves.
    pub(super) fn segments(&mut self, group: &mut Group) -> bool {
        self.follow_changes(group);
        group.segments
    }

    fn follow_changes(&mut self, group: &mut Group) {
        if !core::mem::take(&mut group.changed) {
            return;
        }
        let Table { entries: all, devices, .. } = self;
        let device = |index: &u32| all.get(*index).ifindex;
        let mut entries = group.entries().peekable();
        group.runs.clear();
        group.segments = true;
        while let Some(first) = entries.next() {
            let of_run = device(&first);
            let mut end = first + 1;
            while entries.next_if(|index| device(index) == of_run).is_some() {
                end += 1;
            }
            if of_run == 0 {
                continue;
            }
            group.runs.push(first..end);
            group.segments &= devices.segments(of_run);
        }
    }

    /// Devices may be others: they are asked again what they do.
    pub(super) fn forget_devices(&mut self) {
        self.devices.forget();
    }

    pub(super) fn remove(&mut self, group: Group) {
        self.give_back(group.room);
    }

    /// Counts packets for the targets of `entries` as not taken, for the reason `code`. Returns how
    /// many these are.
    pub(super) fn fail(&mut self, entries: Range<u32>, packets: u32, code: i32) -> u64 {
        let mut failed = 0;
        for index in entries {
            let mut entry = self.entries.get(index);
            if entry.ifindex != 0 {
                (entry.failed, entry.error) = (entry.failed + u64::from(packets), code as i16);
                self.entries.set(index, entry);
                failed += u64::from(packets);
            }
        }
        failed
    }

    /// Hands over what failed since the last time: place of the target, and what.
    pub(super) fn take_failures(&mut self, group: &Group, mut each: impl FnMut(usize, Failure)) {
        // Neighbours mostly have the same device.
        let mut asked = None;
        for (place, index) in group.entries().enumerate() {
            let mut entry = self.entries.get(index);
            if entry.failed > 0 {
                let is_running = || match asked {
                    Some((ifindex, answer)) if ifindex == entry.ifindex => answer,
                    _ => asked.insert((entry.ifindex, self.devices.is_running(entry.ifindex))).1,
                };
                let reason = Reason::new(entry.error.into(), is_running);
                each(place, Failure { packets: entry.failed, reason });
                (entry.failed, entry.error) = (0, 0);
                self.entries.set(index, entry);
            }
        }
    }

    /// The first piece that is large enough.
    fn take(&mut self, wanted: usize) -> Result<Range<u32>, TableFull> {
        let full = |free: &[Range<u32>]| TableFull {
            wanted,
            free: free.iter().map(|piece| piece.end - piece.start).sum(),
            size: self.size,
        };
        let count = u32::try_from(wanted).map_err(|_| full(&self.free))?.max(1);
        // The last lot of the table may be a smaller one.
        let lots = count.checked_next_multiple_of(LOT).unwrap_or(count);
        for count in [lots, count] {
            if let Some(at) = self.free.iter().position(|piece| piece.end - piece.start >= count) {
                let piece = &mut self.free[at];
                let taken = piece.start..piece.start + count;
                piece.start = taken.end;
                if piece.start == piece.end {
                    self.free.remove(at);
                }
                return Ok(taken);
            }
        }
        Err(full(&self.free))
    }

    fn give_back(&mut self, room: Range<u32>) {
        let at = self.free.partition_point(|piece| piece.start < room.start);
        self.free.insert(at, room);
        if at + 1 < self.free.len() && self.free[at].end == self.free[at + 1].start {
            self.free[at].end = self.free.remove(at + 1).end;
        }
        if at > 0 && self.free[at - 1].end == self.free[at].start {
            self.free[at - 1].end = self.free.remove(at).end;
        }
    }
}

#[cfg(test)]
mod tests;
