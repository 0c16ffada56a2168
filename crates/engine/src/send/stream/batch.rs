//! The packets of an order to many connections by one system call.
//!
//! The bytes are put together once for each distinct framing, and sent to every connection from
//! there. TCP then cuts them into segments for each, so that what is saved is the system call, the
//! gathering and, from some size on, the copy.

use std::io;

use outflow_relay::SinkKey;
use outflow_ring::Seq;
use outflow_uring::limits::BATCH;
use outflow_uring::{Answers, NotSent, Parcel, Uring};

use super::{Connection, Outcome};
use crate::limits::{FRAMINGS_MAX, URING_SINKS_MIN, ZERO_COPY_BYTES_MIN};
use crate::message::Framing;
use crate::send::Piece;

/// Where the connections of sinks are found.
pub(crate) trait Connections {
    /// A sink's connection, if it has one, and how packets are framed there.
    fn connection(&mut self, key: SinkKey) -> Option<(&mut Connection, &Framing)>;
}

/// The packets of an order, and the position behind them.
#[derive(Clone, Copy)]
pub(crate) struct Flush<'a> {
    pub(crate) pieces: &'a [Piece<'a>],
    pub(crate) end: Seq,
}

/// Sends orders to connections.
#[derive(Default)]
pub(crate) struct StreamSender {
    /// Framings met, and where the order's bytes lie in each. They outlive the order because the
    /// next one wants the same.
    framings: Vec<(Framing, Option<Parcel>)>,
    /// The sink that each send of the batch is for.
    owners: Vec<SinkKey>,
}

impl StreamSender {
    /// Sends what there is to flush to all `members`; `tell` learns what became of it for each.
    pub(crate) fn send(
        &mut self,
        uring: &mut Uring,
        flush: Flush<'_>,
        members: &[SinkKey],
        sinks: &mut impl Connections,
        mut tell: impl FnMut(SinkKey, Outcome),
    ) {
        if members.len() < URING_SINKS_MIN || !uring.works() {
            members.iter().for_each(|key| write(flush, *key, sinks, &mut tell));
            return;
        }
        uring.begin();
        self.begin();
        for key in members {
            let Some((connection, framing)) = sinks.connection(*key) else { continue };
            let ready = connection.descriptor.filter(|_| connection.unsent.is_empty());
            match ready.and_then(|to| Some((to, self.parcel(uring, flush, framing)?))) {
                Some((to, parcel)) => {
                    uring.push(to, parcel);
                    self.owners.push(*key);
                }
                None => write(flush, *key, sinks, &mut tell),
            }
            if self.owners.len() == BATCH {
                self.submit(uring, flush, sinks, &mut tell);
            }
        }
        self.submit(uring, flush, sinks, &mut tell);
    }

    fn begin(&mut self) {
        if self.framings.len() == FRAMINGS_MAX {
            self.framings.clear();
        }
        self.framings.iter_mut().for_each(|(_, parcel)| *parcel = None);
    }

    /// The order's bytes in this framing. `None` if there are too many framings.
    fn parcel(&mut self, uring: &mut Uring, flush: Flush<'_>, framing: &Framing) -> Option<Parcel> {
        let index = match self.framings.iter().position(|(known, _)| known == framing) {
            Some(index) => index,
            None if self.framings.len() == FRAMINGS_MAX => return None,
            None => {
                self.framings.push((framing.clone(), None));
                self.framings.len() - 1
            }
        };
        let parcel = &mut self.framings[index].1;
        if parcel.is_none() {
            *parcel = compose(uring, flush, framing);
        }
        *parcel
    }

    /// Sends the batch.
    fn submit(
        &mut self,
        uring: &mut Uring,
        flush: Flush<'_>,
        sinks: &mut impl Connections,
        tell: &mut impl FnMut(SinkKey, Outcome),
    ) {
        let owners = &self.owners;
        let result = uring.submit(Answers::All, |index, result| {
            let Some(key) = owners.get(index) else { return };
            if let Some((connection, framing)) = sinks.connection(*key) {
                tell(*key, connection.answered(flush, framing, result));
            }
        });
        if let Err(NotSent { from }) = result {
            self.owners[from..].iter().for_each(|key| write(flush, *key, sinks, tell));
        }
        self.owners.clear();
    }
}

impl Connection {
    /// What the ring's answer means.
    fn answered(&mut self, flush: Flush<'_>, framing: &Framing, result: io::Result<usize>) -> Outcome {
        match result {
            Ok(written) => self.settle(flush.pieces, flush.end, framing, written),
            Err(error) => match error.raw_os_error() {
                Some(libc::EAGAIN) => self.settle(flush.pieces, flush.end, framing, 0),
                // Nothing was sent, and a plain write says whether anything is wrong.
                Some(libc::EINTR | libc::ENOMEM | libc::ENOBUFS | libc::EOPNOTSUPP) => {
                    self.send(flush.pieces, flush.end, framing)
                }
                _ => Outcome::Gone,
            },
        }
    }
}

/// Sends to one connection without the ring.
fn write(
    flush: Flush<'_>,
    key: SinkKey,
    sinks: &mut impl Connections,
    tell: &mut impl FnMut(SinkKey, Outcome),
) {
    if let Some((connection, framing)) = sinks.connection(key) {
        tell(key, connection.send(flush.pieces, flush.end, framing));
    }
}

fn compose(uring: &mut Uring, flush: Flush<'_>, framing: &Framing) -> Option<Parcel> {
    let prefixed = || flush.pieces.iter().map(|piece| (framing.prefix(piece), piece));
    let bytes = prefixed().map(|(prefix, piece)| prefix.len() + piece.len()).sum();
    uring.compose(bytes, bytes >= ZERO_COPY_BYTES_MIN, &|part| {
        for (prefix, piece) in prefixed() {
            [&prefix[..], piece.header, piece.body].into_iter().for_each(&mut *part);
        }
    })
}

#[cfg(test)]
mod tests;
