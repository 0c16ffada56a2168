//! A seat in a group that goes on in another process, which sends to the group from then on.

use std::net::SocketAddr;

use minicbor::{Decode, Encode};
use outflow_control::Control;
use outflow_packet::Level;
use outflow_routing::membership::Family;

use super::{GroupSettings, Groups, Key, Seat};

/// A seat, as it is said.
#[derive(Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct SavedSeat {
    /// By which the group is sent to.
    #[n(0)]
    interface: String,
    /// The group and its port.
    #[n(1)]
    to: String,
    /// Whether there is a member.
    #[n(2)]
    is_member: bool,
}

impl Seat {
    /// What another process needs to go on with it.
    pub fn save(&self) -> SavedSeat {
        let is_member = self.sending.is_some();
        SavedSeat { interface: self.key.interface.clone(), to: self.group.to.to_string(), is_member }
    }

    /// Goes on with what another process has saved, of a member that wants this level. None if the stream is to go to
    /// other groups now: it has to be asked for again.
    pub fn restore(control: &Control, stream: &str, saved: SavedSeat, level: Level) -> Option<Seat> {
        let to: SocketAddr = saved.to.parse().ok()?;
        let key = Key { stream: stream.to_owned(), interface: saved.interface, family: Family::of(to.ip()) };
        let range = control.config().section::<GroupSettings>().of(key.family)?;
        if !range.contains(to.ip()) {
            return None;
        }
        let number = control.shared::<Groups>().book().seat_at(&key, to)?;
        let mut seat = Seat::at(control, key, number, to).ok()?;
        if saved.is_member {
            // It need not be waited for: where it cannot be sent to, the seat ends.
            drop(seat.join(level));
        }
        Some(seat)
    }
}
