//! Datagrams of one socket on their way to several readers.

use crate::{HandedOver, Inbox, Parcel};

/// What is to be handed over, by the place that it is for: there are few.
#[derive(Debug, Default)]
pub struct Dispatch {
    parcels: Vec<(Inbox, Parcel)>,
    unread: u64,
}

impl Dispatch {
    /// Puts a datagram down for a place.
    pub fn put(&mut self, inbox: &Inbox, datagram: &HandedOver<'_>) {
        let at = match self.parcels.iter().position(|(known, _)| known.is(inbox)) {
            Some(at) => at,
            None => {
                self.parcels.push((inbox.clone(), Parcel::default()));
                self.parcels.len() - 1
            }
        };
        let (inbox, parcel) = &mut self.parcels[at];
        parcel.add(datagram);
        if parcel.is_full() {
            self.unread += inbox.give(core::mem::take(parcel));
        }
    }

    /// Hands over what was put down. Answers how many datagrams found no room.
    pub fn hand_over(&mut self) -> u64 {
        for (inbox, parcel) in self.parcels.iter_mut().filter(|(_, parcel)| !parcel.is_empty()) {
            self.unread += inbox.give(core::mem::take(parcel));
        }
        core::mem::take(&mut self.unread)
    }

    /// Forgets the places: nothing more is for them.
    pub fn clear(&mut self) {
        self.parcels.clear();
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;
    use std::sync::Arc;

    use outflow_media::ecn::Mark;

    use super::*;
    use crate::inbox;
    use crate::limits::PARCEL_DATAGRAMS_MAX;

    fn datagram(peer: u64, bytes: &mut [u8]) -> HandedOver<'_> {
        let from = SocketAddr::from(([192, 0, 2, 1], 1000));
        HandedOver { peer, from, to: None, mark: Mark::None, bytes }
    }

    #[test]
    fn each_place_gets_its_own_in_their_order_and_what_finds_no_room_is_counted() {
        let [(one, first), (other, second)] = [(); 2].map(|()| inbox(2, Arc::new(|| ())));
        let mut dispatch = Dispatch::default();
        for peer in 0..2 * PARCEL_DATAGRAMS_MAX as u64 {
            dispatch.put(if peer % 2 == 0 { &one } else { &other }, &datagram(peer, &mut [peer as u8]));
        }
        assert_eq!(dispatch.hand_over(), 0);
        for (parcels, expected) in [(&first, 0), (&second, 1)] {
            let mut parcel = parcels.take().expect("it was handed over when it was full");
            let peers: Vec<u64> = parcel.iter().map(|it| it.peer).collect();
            assert_eq!(
                peers,
                (0..PARCEL_DATAGRAMS_MAX as u64).map(|at| 2 * at + expected).collect::<Vec<_>>()
            );
            assert!(parcels.take().is_none(), "nothing is left");
        }
        for round in 0..3 {
            dispatch.put(&one, &datagram(round, &mut [0]));
            assert_eq!(dispatch.hand_over(), u64::from(round == 2), "two parcels wait at most");
        }
    }
}
