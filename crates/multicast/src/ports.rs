//! The interfaces that take part, each under its number in the kernel's table.

use std::collections::BTreeMap;

use crate::event::Name;
use crate::interfaces::Interface;
use crate::limits::PORTS_MAX;
use crate::sys::Vif;

/// An interface that takes part.
#[derive(Debug)]
pub(crate) struct Port {
    pub(crate) name: Name,
    pub(crate) vif: Vif,
    pub(crate) interface: Interface,
}

/// They, by their index and by their number.
#[derive(Debug, Default)]
pub(crate) struct Ports {
    by_index: BTreeMap<u32, Port>,
    by_vif: BTreeMap<Vif, u32>,
}

impl Ports {
    /// The lowest number that is free, if there is one.
    pub(crate) fn free(&self) -> Option<Vif> {
        (0..PORTS_MAX as Vif).find(|vif| !self.by_vif.contains_key(vif))
    }

    pub(crate) fn insert(&mut self, vif: Vif, interface: Interface) {
        let (index, name) = (interface.index, Name::from(interface.name.as_str()));
        self.by_vif.insert(vif, index);
        self.by_index.insert(index, Port { name, vif, interface });
    }

    pub(crate) fn remove(&mut self, index: u32) -> Option<Port> {
        let port = self.by_index.remove(&index)?;
        self.by_vif.remove(&port.vif);
        Some(port)
    }

    pub(crate) fn get(&self, index: u32) -> Option<&Port> {
        self.by_index.get(&index)
    }

    pub(crate) fn at(&self, vif: Vif) -> Option<&Port> {
        self.by_index.get(self.by_vif.get(&vif)?)
    }

    pub(crate) fn vif(&self, index: u32) -> Option<Vif> {
        Some(self.by_index.get(&index)?.vif)
    }

    pub(crate) fn interfaces(&self) -> impl Iterator<Item = &Interface> {
        self.by_index.values().map(|port| &port.interface)
    }

    pub(crate) fn named(&self, name: &str) -> Option<&Port> {
        self.by_index.values().find(|port| &*port.name == name)
    }

    /// The name of the interface with this number.
    pub(crate) fn name(&self, vif: Vif) -> Option<Name> {
        self.at(vif).map(|port| Name::clone(&port.name))
    }
}
