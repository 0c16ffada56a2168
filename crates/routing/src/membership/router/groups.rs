//! The groups of an interface, by slot and by address.

use std::collections::BTreeMap;
use std::net::IpAddr;

use super::group::Group;

/// Groups in slots. One stays in its slot until it is removed.
#[derive(Debug, Default)]
pub(super) struct Groups {
    slots: Vec<Option<Group>>,
    free: Vec<u32>,
    by_address: BTreeMap<IpAddr, u32>,
}

impl Groups {
    pub(super) fn len(&self) -> usize {
        self.by_address.len()
    }

    pub(super) fn find(&self, address: IpAddr) -> Option<u32> {
        self.by_address.get(&address).copied()
    }

    pub(super) fn get(&self, slot: u32) -> Option<&Group> {
        self.slots.get(slot as usize)?.as_ref()
    }

    pub(super) fn get_mut(&mut self, slot: u32) -> Option<&mut Group> {
        self.slots.get_mut(slot as usize)?.as_mut()
    }

    /// In the order of their addresses.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Group> {
        self.by_address.values().filter_map(|slot| self.get(*slot))
    }

    /// A group that is not there yet.
    pub(super) fn insert(&mut self, address: IpAddr) -> u32 {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() as u32 - 1
        });
        self.slots[slot as usize] = Some(Group::new(address));
        self.by_address.insert(address, slot);
        slot
    }

    pub(super) fn remove(&mut self, slot: u32) {
        if let Some(group) = self.slots.get_mut(slot as usize).and_then(Option::take) {
            self.by_address.remove(&group.address);
            self.free.push(slot);
        }
    }
}
