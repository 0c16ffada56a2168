//! Frames of a connection of TCP, in pieces as it may be read, and cut as it may take them.

use outflow_ice::frame::{Unframer, cut};

/// Bytes of a datagram at most.
const BYTES_MAX: usize = 600;

/// A byte says how long pieces are, one how much of what was read a connection takes that is to be written to. Then comes
/// what is read.
pub(crate) fn frames(data: &[u8]) {
    let [piece, part, bytes @ ..] = data else { return };
    let (whole, is_whole) = read(bytes.chunks(bytes.len().max(1)));
    let (pieces, are_whole) = read(bytes.chunks(usize::from(*piece).max(1)));
    assert_eq!((&whole, is_whole), (&pieces, are_whole), "pieces make no difference");

    let frame = |datagram: &Vec<u8>| [&(datagram.len() as u16).to_be_bytes()[..], datagram].concat();
    let framed: Vec<u8> = whole.iter().flat_map(frame).collect();
    let written = framed.len() * usize::from(*part) / 255;
    let (rest, others) = cut(&framed, written);
    let gone = [&framed[..written], rest].concat();
    let (got, is_whole) = read(core::iter::once(&gone[..]));
    assert!(is_whole && got[..] == whole[..whole.len() - others], "whole ones go");
    // What is no frames leads nowhere, but does no harm.
    cut(bytes, bytes.len() * usize::from(*part) / 255);
}

/// The datagrams, and whether none was too long.
fn read<'a>(mut pieces: impl Iterator<Item = &'a [u8]>) -> (Vec<Vec<u8>>, bool) {
    let (mut unframer, mut all) = (Unframer::new(BYTES_MAX), Vec::new());
    let mut take = |piece| unframer.take(piece, |datagram| all.push(datagram.to_vec()));
    let is_whole = pieces.all(|piece| take(piece).is_ok());
    assert!(all.iter().all(|datagram| (1..=BYTES_MAX).contains(&datagram.len())));
    (all, is_whole)
}
