//! Packets on their way out.

use std::net::IpAddr;

use crate::sys::Routing;

/// What packets are written into on their way out, one after the other.
#[derive(Debug, Default)]
pub(super) struct Out {
    pub(super) packet: Vec<u8>,
    /// Packets that did not go.
    pub(super) errors: u64,
}

impl Out {
    /// Sends all that there is to say on an interface.
    pub(super) fn send_all(
        &mut self,
        kernel: &Routing,
        interface: u32,
        mut next: impl FnMut(&mut Vec<u8>) -> Option<IpAddr>,
    ) {
        while let Some(to) = next(&mut self.packet) {
            self.send(kernel, to, interface);
        }
    }

    /// Sends what was written into it.
    pub(super) fn send(&mut self, kernel: &Routing, to: IpAddr, interface: u32) {
        let is_sent = kernel.send(&self.packet, to, interface).is_ok();
        self.errors += u64::from(!is_sent);
    }
}
