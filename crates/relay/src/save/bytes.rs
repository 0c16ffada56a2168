//! Bytes that are shared, as a byte string.

use bytes::Bytes;
use minicbor::decode::{Decoder, Error as Malformed};
use minicbor::encode::{Encoder, Error, Write};

pub(super) fn encode<C, W: Write>(
    bytes: &Bytes,
    encoder: &mut Encoder<W>,
    _: &mut C,
) -> Result<(), Error<W::Error>> {
    encoder.bytes(bytes)?;
    Ok(())
}

pub(super) fn decode<C>(decoder: &mut Decoder<'_>, _: &mut C) -> Result<Bytes, Malformed> {
    decoder.bytes().map(Bytes::copy_from_slice)
}
