//! The interfaces that take part, each under its number in the kernel's table if there was one left.

use std::collections::BTreeMap;

use crate::event::Name;
use crate::interfaces::Interface;
use crate::sys::{VIFS_MAX, Vif};

/// An interface as packets come and go by it. Without a number, they are forwarded in user space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PortId {
    pub(crate) index: u32,
    pub(crate) vif: Option<Vif>,
}

/// An interface that takes part.
#[derive(Debug)]
pub(crate) struct Port {
    pub(crate) name: Name,
    pub(crate) id: PortId,
    pub(crate) interface: Interface,
}

/// They, by their index and by their number.
#[derive(Debug, Default)]
pub(crate) struct Ports {
    by_index: BTreeMap<u32, Port>,
    by_vif: BTreeMap<Vif, u32>,
}

impl Ports {
    /// The lowest number that is free, if there is one. The last one is for the interface upstream, by which most
    /// packets come in.
    pub(crate) fn free(&self, is_upstream: bool) -> Option<Vif> {
        let last = VIFS_MAX as Vif - 1;
        let mut all = if is_upstream { last..=last } else { 0..=last - 1 };
        all.find(|vif| !self.by_vif.contains_key(vif))
    }

    pub(crate) fn len(&self) -> usize {
        self.by_index.len()
    }

    pub(crate) fn insert(&mut self, vif: Option<Vif>, interface: Interface) {
        let (index, name) = (interface.index, Name::from(interface.name.as_str()));
        if let Some(vif) = vif {
            self.by_vif.insert(vif, index);
        }
        self.by_index.insert(index, Port { name, id: PortId { index, vif }, interface });
    }

    pub(crate) fn remove(&mut self, index: u32) {
        if let Some(Port { id: PortId { vif: Some(vif), .. }, .. }) = self.by_index.remove(&index) {
            self.by_vif.remove(&vif);
        }
    }

    pub(crate) fn get(&self, index: u32) -> Option<&Port> {
        self.by_index.get(&index)
    }

    pub(crate) fn at(&self, vif: Vif) -> Option<&Port> {
        self.get(*self.by_vif.get(&vif)?)
    }

    pub(crate) fn id(&self, index: u32) -> Option<PortId> {
        Some(self.get(index)?.id)
    }

    pub(crate) fn interfaces(&self) -> impl Iterator<Item = &Interface> {
        self.by_index.values().map(|port| &port.interface)
    }

    pub(crate) fn named(&self, name: &str) -> Option<&Port> {
        self.by_index.values().find(|port| &*port.name == name)
    }

    /// The name of the interface with this index.
    pub(crate) fn name(&self, index: u32) -> Option<Name> {
        self.get(index).map(|port| Name::clone(&port.name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interface(index: u32) -> Interface {
        let (own, networks) = (Vec::new(), Vec::new());
        Interface { name: format!("eth{index}"), index, address: [127, 0, 0, 1].into(), own, networks }
    }

    #[test]
    fn numbers_are_given_while_there_are_some_and_again_when_they_are_free() {
        let mut ports = Ports::default();
        for index in 1..=40 {
            ports.insert(ports.free(false), interface(index));
        }
        assert_eq!(ports.id(31).and_then(|id| id.vif), Some(30));
        assert_eq!(ports.id(32), Some(PortId { index: 32, vif: None }));
        assert_eq!((ports.free(true), ports.free(false)), (Some(31), None));
        ports.remove(40);
        ports.remove(5);
        assert_eq!((ports.len(), ports.free(false)), (38, Some(4)));
        ports.insert(ports.free(true), interface(50));
        assert_eq!((ports.at(31).map(|port| port.id.index), ports.free(true)), (Some(50), None));
    }
}
