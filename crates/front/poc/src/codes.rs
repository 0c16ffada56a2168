//! Why a connection is refused or ended, as the other end is told. See [`Code`]: those from 64 on are the
//! application's.

use outflow_poc::packet::Code;

/// A peer is refused that asks for what is not there.
pub const REFUSED: Code = Code(64);

/// The relay ends it: the text says why.
pub(crate) const ENDED: Code = Code(65);
