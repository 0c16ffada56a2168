//! Why a connection is refused or closed: a number for programs, a text for people.

use outflow_media::Malformed;
use outflow_petri::leb128::{Reader, put_prefixed};
use outflow_petri::limits::REASON_BYTES_MAX;

/// Why a connection is refused or closed. Those from 64 on are the application's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Code(pub u64);

impl Code {
    /// Nothing is wrong: it is over.
    pub const DONE: Code = Code(0);
    /// The version is not spoken here. To be tried with that of the refusal.
    pub const VERSION: Code = Code(1);
    /// The service cannot be offered, not even reduced.
    pub const SERVICE: Code = Code(2);
    /// There are too many connections. To be tried later.
    pub const BUSY: Code = Code(3);
    /// The peer sent what must not be.
    pub const VIOLATION: Code = Code(4);
    /// Nothing was heard for too long.
    pub const IDLE: Code = Code(5);
    /// The host that was asked does not know the connection (any more).
    pub const RESET: Code = Code(6);
    /// The keys have seen as many packets as they may. The connection has to be begun again.
    pub const SPENT: Code = Code(7);
    /// The key is not the one that is asked for.
    pub const KEY: Code = Code(8);
}

/// What is said to people.
pub(super) fn text<'a>(reader: &mut Reader<'a>) -> Result<&'a str, Malformed> {
    let bytes = reader.prefixed(REASON_BYTES_MAX, "a text too long")?;
    str::from_utf8(bytes).map_err(|_| reader.error("a text that is not UTF-8"))
}

/// Writes what is said to people; what is too long is cut.
pub(super) fn put_text(out: &mut Vec<u8>, text: &str) {
    put_prefixed(out, &text.as_bytes()[..text.floor_char_boundary(REASON_BYTES_MAX)]);
}
