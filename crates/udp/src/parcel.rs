//! Datagrams that are read by one thread and are for another: peers of one socket are served by several.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use outflow_media::ecn::Mark;

use crate::limits::PARCEL_DATAGRAMS_MAX;

/// Some datagrams, and whose they are.
#[derive(Debug, Default)]
pub struct Parcel {
    heads: Vec<Head>,
    bytes: Vec<u8>,
}

#[derive(Debug)]
struct Head {
    peer: u64,
    from: SocketAddr,
    to: Option<IpAddr>,
    mark: Mark,
    length: usize,
}

/// A datagram of a parcel.
#[derive(Debug, PartialEq, Eq)]
pub struct HandedOver<'a> {
    /// The number of the peer that it is of, where it is read.
    pub peer: u64,
    /// Where it came from.
    pub from: SocketAddr,
    /// The own address that it was sent to, if that matters for answers.
    pub to: Option<IpAddr>,
    /// How it was marked when it came.
    pub mark: Mark,
    /// What is in it.
    pub bytes: &'a mut [u8],
}

impl Parcel {
    /// Puts a copy of a datagram behind the others.
    pub fn add(&mut self, datagram: &HandedOver<'_>) {
        let HandedOver { peer, from, to, mark, ref bytes } = *datagram;
        self.heads.push(Head { peer, from, to, mark, length: bytes.len() });
        self.bytes.extend_from_slice(bytes);
    }

    /// How many datagrams there are.
    pub fn len(&self) -> usize {
        self.heads.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.heads.is_empty()
    }

    /// Whether it is to be handed over before more is put into it.
    pub fn is_full(&self) -> bool {
        self.len() >= PARCEL_DATAGRAMS_MAX
    }

    /// The datagrams, in the order in which they came.
    pub fn iter(&mut self) -> impl Iterator<Item = HandedOver<'_>> {
        let mut left = &mut self.bytes[..];
        self.heads.iter().map(move |head| {
            let (bytes, behind) = core::mem::take(&mut left).split_at_mut(head.length);
            left = behind;
            let Head { peer, from, to, mark, .. } = *head;
            HandedOver { peer, from, to, mark, bytes }
        })
    }
}

/// Where parcels are put for another thread: a bounded queue, and what wakes its reader.
#[derive(Clone)]
pub struct Inbox {
    queue: SyncSender<Parcel>,
    wake: Arc<dyn Fn() + Send + Sync>,
}

/// The other end of an [`Inbox`].
#[derive(Debug)]
pub struct Parcels {
    queue: Receiver<Parcel>,
}

/// A queue of up to `parcels_max` parcels. What finds it full is dropped, as if the network had lost it.
pub fn inbox(parcels_max: usize, wake: Arc<dyn Fn() + Send + Sync>) -> (Inbox, Parcels) {
    let (sender, receiver) = sync_channel(parcels_max);
    (Inbox { queue: sender, wake }, Parcels { queue: receiver })
}

impl Inbox {
    /// Hands a parcel over. Returns how many datagrams found no room.
    pub fn give(&self, parcel: Parcel) -> u64 {
        match self.queue.try_send(parcel) {
            Ok(()) => {
                (self.wake)();
                0
            }
            Err(refused) => {
                let (std::sync::mpsc::TrySendError::Full(parcel)
                | std::sync::mpsc::TrySendError::Disconnected(parcel)) = refused;
                parcel.len() as u64
            }
        }
    }

    /// Whether both lead to the same place.
    pub fn is(&self, other: &Inbox) -> bool {
        Arc::ptr_eq(&self.wake, &other.wake)
    }
}

impl fmt::Debug for Inbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inbox").finish_non_exhaustive()
    }
}

impl Parcels {
    /// The next one, if there is one.
    pub fn take(&self) -> Option<Parcel> {
        self.queue.try_recv().ok()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    fn parcel(peer: u64, bytes: &mut [u8]) -> Parcel {
        let from = SocketAddr::from(([192, 0, 2, 1], 1000));
        let mut parcel = Parcel::default();
        parcel.add(&HandedOver { peer, from, to: None, mark: Mark::Ce, bytes });
        parcel
    }

    #[test]
    fn datagrams_come_out_as_they_were_put_in() {
        let mut both = parcel(1, &mut [1, 2, 3]);
        let from = SocketAddr::from(([192, 0, 2, 2], 2000));
        let own = Some(IpAddr::from([10, 0, 0, 1]));
        both.add(&HandedOver { peer: 2, from, to: own, mark: Mark::None, bytes: &mut [] });
        both.add(&HandedOver { peer: 3, from, to: own, mark: Mark::Ect0, bytes: &mut [4] });
        let all: Vec<_> = both.iter().map(|it| (it.peer, it.to, it.mark, it.bytes.to_vec())).collect();
        let expected =
            [(1, None, Mark::Ce, vec![1, 2, 3]), (2, own, Mark::None, vec![]), (3, own, Mark::Ect0, vec![4])];
        assert_eq!(all, expected);
    }

    #[test]
    fn what_finds_no_room_is_counted_and_the_reader_is_woken_for_the_rest() {
        let woken = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&woken);
        let (inbox, parcels) = inbox(2, Arc::new(move || _ = counter.fetch_add(1, Ordering::Relaxed)));
        let unread: u64 = (0..3).map(|peer| inbox.give(parcel(peer, &mut [0]))).sum();
        assert_eq!((unread, woken.load(Ordering::Relaxed)), (1, 2));
        let mut taken = Vec::new();
        while let Some(mut parcel) = parcels.take() {
            taken.extend(parcel.iter().map(|it| it.peer));
        }
        assert_eq!(taken, [0, 1]);
        drop(parcels);
        assert_eq!(inbox.give(parcel(4, &mut [0])), 1, "it is not read any more");
    }
}
