//! Limits of DTLS, with what happens when they are reached.

use core::time::Duration;

/// Bytes of a datagram. A longer one is passed over: certificates of WebRTC have some hundred.
pub const DATAGRAM_MAX: usize = 2048;

/// Datagrams of a peer that are kept until a message is whole. With one more it has ended.
pub const KEPT_MAX: usize = 30;

/// Bytes of the datagrams that are sent, without headers of UDP and IP: what all networks carry.
pub const SENT_MAX: usize = 1150;

/// Datagrams of one peer until keys are agreed on. With more it has ended.
pub const DATAGRAMS_MAX: u32 = 300;

/// A peer that has not agreed on keys so long after its first datagram has ended.
pub const HANDSHAKE: Duration = Duration::from_secs(20);

/// What gets no answer is sent again after this time, then after twice as long ...
pub const SENT_AGAIN: Duration = Duration::from_millis(300);

/// ... and so on, this often. Datagrams of the peer that come twice count, too.
pub const SENT_AGAIN_TIMES: usize = 8;
