//! Every limit of the API, with what happens when it is reached.

use core::time::Duration;

/// How long a connection may take to say what it wants, or to shake hands; it is then ended and
/// counted.
pub const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// Bytes of a JSON body that the API takes; a longer one is answered with 413.
pub const API_BODY_BYTES: usize = 64 << 10;

/// Pages that are kept up to date at once. A further one takes the place of the oldest of the address that has most,
/// if that has two more than its own; else it is answered with 503.
pub const EVENT_STREAMS_MAX: usize = 64;

/// How often they are brought up to date at most.
pub const EVENTS_EVERY: Duration = Duration::from_secs(1);

/// Receivers of a stream that an overview shows, the worst first; all are counted.
pub const RECEIVERS_SHOWN: usize = 50;
