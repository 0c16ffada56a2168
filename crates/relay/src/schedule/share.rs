//! What of an order a sink gets.

use outflow_packet::MaxLayer;

/// What of an order's packets a sink gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Share {
    /// Packets of the main track up to this layer.
    pub max_layer: MaxLayer,
    /// By how much the sequence numbers of the main track are lower for this sink, from the order's first
    /// packet on: packets that were left out on purpose leave no gap. Wraps.
    pub sequence_offset: u16,
}

impl Share {
    /// Everything, as it is.
    pub const WHOLE: Share = Share { max_layer: MaxLayer::ALL, sequence_offset: 0 };
}
