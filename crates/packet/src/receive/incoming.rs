//! Bytes as the driver received them.

use bytes::{Bytes, BytesMut};

/// A packet's bytes: writable, if nothing else holds them.
#[derive(Debug)]
pub enum Incoming {
    /// Bytes that can be rewritten in place.
    Own(BytesMut),
    /// Bytes that others may hold too: rewriting them means a copy.
    Shared(Bytes),
}

impl Incoming {
    /// As immutable bytes, without a copy.
    pub fn freeze(self) -> Bytes {
        match self {
            Incoming::Own(bytes) => bytes.freeze(),
            Incoming::Shared(bytes) => bytes,
        }
    }

    /// As writable bytes; copied if others may hold them.
    pub fn into_own(self) -> BytesMut {
        match self {
            Incoming::Own(bytes) => bytes,
            Incoming::Shared(bytes) => {
                bytes.try_into_mut().unwrap_or_else(|shared| BytesMut::from(&shared[..]))
            }
        }
    }
}

impl AsRef<[u8]> for Incoming {
    fn as_ref(&self) -> &[u8] {
        match self {
            Incoming::Own(bytes) => bytes,
            Incoming::Shared(bytes) => bytes,
        }
    }
}

impl From<BytesMut> for Incoming {
    fn from(bytes: BytesMut) -> Self {
        Incoming::Own(bytes)
    }
}

impl From<Bytes> for Incoming {
    fn from(bytes: Bytes) -> Self {
        Incoming::Shared(bytes)
    }
}
