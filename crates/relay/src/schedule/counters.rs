//! What was sent, in packets and bytes.

/// What a sink has been sent. Cumulative.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Packets given to the driver and taken by it.
    pub packets: u64,
    /// Their bytes, without transport headers.
    pub bytes: u64,
}

impl Counters {
    /// Adds what was sent. Sums wrap where more was taken off before.
    pub(crate) fn add(&mut self, sent: Counters) {
        self.packets = self.packets.wrapping_add(sent.packets);
        self.bytes = self.bytes.wrapping_add(sent.bytes);
    }

    /// Takes off what was not sent, or what will be added again.
    pub(crate) fn take_off(&mut self, sent: Counters) {
        self.packets = self.packets.wrapping_sub(sent.packets);
        self.bytes = self.bytes.wrapping_sub(sent.bytes);
    }
}
