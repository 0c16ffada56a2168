//! Why a connection is refused or ended, as the other end is told. See [`Code`]: those from 64 on are the
//! application's.

use outflow_engine::message::CloseReason;
use outflow_poc::packet::Code;

/// A peer is refused that asks for what is not there.
pub const REFUSED: Code = Code(64);

/// The relay ends it: the text says why.
pub(crate) const ENDED: Code = Code(65);

/// Another publisher has the stream now.
pub const TAKEN_OVER: Code = Code(66);

/// It was to publish, and no media came in time.
pub const NO_MEDIA: Code = Code(67);

/// What let it in is no longer good: a token has expired, or was taken out of the configuration.
pub const REVOKED: Code = Code(68);

/// The code for a publisher's end.
pub(crate) fn of(why: CloseReason) -> Code {
    match why {
        CloseReason::TakenOver => TAKEN_OVER,
        CloseReason::NoMedia => NO_MEDIA,
        CloseReason::Revoked => REVOKED,
        _ => ENDED,
    }
}
