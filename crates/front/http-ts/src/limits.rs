//! Every limit of HTTP connections, with what happens when it is reached.

use core::time::Duration;

/// Silence after which the TCP stack asks whether an HTTP peer is still there. One that does not
/// answer for [`TCP_USER_TIMEOUT`] is given up.
pub const TCP_KEEPALIVE_AFTER: Duration = Duration::from_secs(30);

/// Time between such questions.
pub const TCP_KEEPALIVE_EVERY: Duration = Duration::from_secs(5);

/// Bytes of an HTTP request's head; a longer one is answered with 431.
pub const HTTP_HEAD_BYTES: usize = 16 << 10;
