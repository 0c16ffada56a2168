//! Every limit on what is read, with what happens when it is reached.

/// Bytes of parameter sets kept for key frames that come without them; further ones are not kept.
pub const PARAMETER_SET_BYTES_MAX: usize = 4096;
