//! Hosts at which relays of tests listen.

use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicU8, Ordering};

/// A loopback address of its own for each call. A port that is free there by now still is when a relay comes to listen
/// at it: tests run side by side, and at an address that they share, another one may be given the same port meanwhile.
pub(crate) fn own_host() -> Ipv4Addr {
    static LAST: AtomicU8 = AtomicU8::new(0);
    Ipv4Addr::new(127, 0, 1, LAST.fetch_add(1, Ordering::Relaxed))
}
