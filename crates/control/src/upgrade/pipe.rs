//! A publisher whose bytes a library reads, or decrypts, in the old process: that goes on with reading, and writes what
//! comes to a local connection; the new one reads it there.
//!
//! Each piece: its kind and track, a byte each, its length in four bytes (big endian), its bytes.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream as StdUnixStream;

use bytes::{Buf, Bytes, BytesMut};
use minicbor::{Decode, Encode};
use outflow_engine::message::{Ingest, SourceId};
use outflow_packet::DropReason;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::sync::mpsc;

use super::saved::{decode, encode};
use super::{Member, Part, Upgrade};
use crate::control::Control;
use crate::publisher::{Publisher, Push};

/// What parts of such connections are called.
pub(super) const FRONT: &str = "pipe";

const HEAD: usize = 6;

/// The longest piece: more than a publisher hands on at once.
const BYTES_MAX: usize = 1 << 20;

const MEDIA: u8 = 0;
const RTCP: u8 = 1;
const DROPPED: u8 = 2;

/// What the new process has to know when it hands one on in its turn.
#[derive(Debug, Encode, Decode)]
#[cbor(map)]
struct SavedPipe {
    #[n(0)]
    source: u64,
    /// What was read, and is not a whole piece.
    #[cbor(n(1), with = "minicbor::bytes")]
    read: Vec<u8>,
}

/// The two ends.
pub(super) fn pair() -> io::Result<(StdUnixStream, OwnedFd)> {
    let (ours, theirs) = StdUnixStream::pair()?;
    ours.set_nonblocking(true)?;
    theirs.set_nonblocking(true)?;
    Ok((ours, theirs.into()))
}

/// In the old process: writes what a publisher's task goes on putting into its queue, until that ends or the new process
/// does. `came` is told of each piece: the publisher is not silent.
pub(super) async fn write(
    mut queue: mpsc::Receiver<Ingest>,
    to: StdUnixStream,
    came: impl Fn(),
) -> io::Result<()> {
    let mut to = UnixStream::from_std(to)?;
    while let Some(ingest) = queue.recv().await {
        came();
        let (kind, track, bytes) = match ingest {
            Ingest::Media { track, bytes } => (MEDIA, track, bytes.freeze()),
            Ingest::Rtcp { track, bytes } => (RTCP, track, bytes),
            Ingest::Dropped { packets, .. } => (DROPPED, 0, Bytes::copy_from_slice(&packets.to_be_bytes())),
        };
        let mut piece = BytesMut::with_capacity(HEAD + bytes.len());
        piece.extend_from_slice(&[kind, track]);
        piece.extend_from_slice(&(bytes.len() as u32).to_be_bytes());
        piece.extend_from_slice(&bytes);
        to.write_all(&piece).await?;
    }
    Ok(())
}

/// In the new process: a publisher goes on with what comes from the old one.
pub(super) fn begin(control: &Control, upgrade: &Upgrade, source: SourceId, from: OwnedFd) {
    go_on(control, upgrade, (source, BytesMut::new()), from);
}

/// The same with what one gave that was begun in the process before.
pub(super) fn take(control: &Control, upgrade: &Upgrade, part: Part) {
    let Ok(SavedPipe { source, read }) = decode(&part.value) else { return };
    if let Some(from) = part.descriptors.into_iter().next() {
        go_on(control, upgrade, (source, BytesMut::from(&read[..])), from);
    }
}

fn go_on(control: &Control, upgrade: &Upgrade, (source, read): (SourceId, BytesMut), from: OwnedFd) {
    let from = StdUnixStream::from(from);
    let Some(publisher) = upgrade.publisher(control, source) else { return };
    let Ok(from) = UnixStream::from_std(from) else { return };
    let mut member = upgrade.join(FRONT);
    member.brings_media();
    tokio::spawn(Pipe { from, read, source, publisher, member }.run());
}

struct Pipe {
    from: UnixStream,
    read: BytesMut,
    source: SourceId,
    publisher: Publisher,
    member: Member,
}

impl Pipe {
    async fn run(mut self) {
        loop {
            let Some(piece) = next(&mut self.read) else { return };
            if let Some((kind, track, bytes)) = piece {
                if self.give(kind, track, bytes).await == Push::Closed {
                    return;
                }
                continue;
            }
            tokio::select! {
                read = self.from.read_buf(&mut self.read) => match read {
                    Ok(0) | Err(_) => return,
                    Ok(_) => {}
                },
                _ = self.publisher.closed() => return,
                () = self.member.asked() => {
                    let part = self.part();
                    if self.member.give(part).await {
                        return;
                    }
                }
            }
        }
    }

    async fn give(&self, kind: u8, track: u8, mut bytes: Bytes) -> Push {
        match kind {
            MEDIA => self.publisher.send(track, bytes).await,
            RTCP => self.publisher.rtcp(track, bytes),
            _ => {
                let packets = if bytes.len() == 8 { bytes.get_u64() } else { 0 };
                self.publisher.dropped(DropReason::IngestFull, packets);
                Push::Taken
            }
        }
    }

    fn part(&self) -> Option<Part> {
        let descriptor = self.from.as_fd().try_clone_to_owned().ok()?;
        let value = encode(&SavedPipe { source: self.source, read: self.read.to_vec() });
        Some(Part { value, descriptors: vec![descriptor], turn: Some(self.source) })
    }
}

/// The next whole piece; `Some(None)` if there is none yet, and `None` if what is there is none.
fn next(read: &mut BytesMut) -> Option<Option<(u8, u8, Bytes)>> {
    let Some(&[kind, track, a, b, c, d]) = read.first_chunk::<HEAD>() else { return Some(None) };
    let length = u32::from_be_bytes([a, b, c, d]) as usize;
    if length > BYTES_MAX || kind > DROPPED {
        return None;
    }
    if read.len() < HEAD + length {
        return Some(None);
    }
    read.advance(HEAD);
    Some(Some((kind, track, read.split_to(length).freeze())))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU8, Ordering};

    use super::*;

    #[tokio::test]
    async fn what_is_written_is_read_piece_by_piece() {
        let (ours, theirs) = pair().expect("a pair");
        let (queue, written) = mpsc::channel(4);
        let media = Bytes::from_static(b"media");
        queue.send(Ingest::Media { track: 2, bytes: media.clone().into() }).await.expect("room");
        queue.send(Ingest::Rtcp { track: 1, bytes: Bytes::from_static(b"rtcp") }).await.expect("room");
        let dropped = Ingest::Dropped { reason: DropReason::IngestFull, packets: 7 };
        queue.send(dropped).await.expect("room");
        drop(queue);
        let pieces = AtomicU8::new(0);
        write(written, ours, || _ = pieces.fetch_add(1, Ordering::Relaxed)).await.expect("written");
        assert_eq!(pieces.into_inner(), 3);
        let mut from = UnixStream::from_std(StdUnixStream::from(theirs)).expect("a socket");
        let mut read = BytesMut::new();
        while from.read_buf(&mut read).await.expect("read") > 0 {}
        assert_eq!(next(&mut read), Some(Some((MEDIA, 2, media))));
        assert_eq!(next(&mut read), Some(Some((RTCP, 1, Bytes::from_static(b"rtcp")))));
        assert_eq!(next(&mut read), Some(Some((DROPPED, 0, Bytes::copy_from_slice(&7_u64.to_be_bytes())))));
        assert_eq!(next(&mut read), Some(None));
    }

    #[test]
    fn what_is_no_piece_ends_it() {
        assert_eq!(next(&mut BytesMut::from(&[9, 0, 0, 0, 0, 1, 2][..])), None);
        assert_eq!(next(&mut BytesMut::from(&[0, 0, 0xff, 0, 0, 1, 2][..])), None);
        assert_eq!(next(&mut BytesMut::from(&[0, 0, 0, 0, 0, 2, 2][..])), Some(None));
    }
}
