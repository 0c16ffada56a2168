//! Whether devices take XDP frames to transmit: the generic netlink family "netdev" (Linux 6.3,
//! Documentation/netlink/specs/netdev.yaml).

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use netlink_packet_core::{DefaultNla, Emitable, NetlinkSerializable, NlaBuffer, NlasIterator};

use super::socket::{Message, Netlink};

/// The controller, which knows the families by name (linux/genetlink.h).
const CONTROLLER: u16 = libc::GENL_ID_CTRL as u16;
const CONTROLLER_VERSION: u8 = 2;
/// `NETDEV_FAMILY_VERSION`, and constants of linux/netdev.h.
const NETDEV_VERSION: u8 = 1;
const DEV_GET: u8 = 1;
const DEV_CHANGED: u8 = 4;
const DEV_IFINDEX: u16 = 1;
const DEV_XDP_FEATURES: u16 = 3;
/// `NETDEV_XDP_ACT_NDO_XMIT`.
const NDO_XMIT: u64 = 1 << 2;
/// `struct genlmsghdr`: command, version, two reserved bytes.
const HEADER_BYTES: usize = 4;

/// The family, asked and heard.
pub(super) struct Netdev {
    family: u16,
    asker: Netlink,
    events: Netlink,
}

/// A request of generic netlink with one attribute.
struct Request {
    family: u16,
    command: u8,
    version: u8,
    attribute: DefaultNla,
}

impl Netdev {
    /// Finds the family.
    ///
    /// # Errors
    /// The kernel does not know it, or what the system refused.
    pub(super) fn open() -> io::Result<Self> {
        let mut asker = Netlink::open(libc::NETLINK_GENERIC, &[])?;
        let request = Request {
            family: CONTROLLER,
            command: libc::CTRL_CMD_GETFAMILY as u8,
            version: CONTROLLER_VERSION,
            attribute: DefaultNla::new(libc::CTRL_ATTR_FAMILY_NAME as u16, b"netdev\0".to_vec()),
        };
        let (mut family, mut group) = (None, None);
        asker.ask(false, request, |message| {
            for attribute in attributes(&message) {
                match i32::from(attribute.kind()) {
                    libc::CTRL_ATTR_FAMILY_ID => family = number(attribute.value()),
                    libc::CTRL_ATTR_MCAST_GROUPS => group = group_named(attribute.value(), b"mgmt\0"),
                    _ => {}
                }
            }
            Ok(())
        })?;
        let (Some(family), Some(group)) = (family, group) else {
            return Err(io::Error::from_raw_os_error(libc::ENOENT));
        };
        let events = Netlink::open(libc::NETLINK_GENERIC, &[group as u32])?;
        Ok(Netdev { family: family as u16, asker, events })
    }

    /// Whether a device takes XDP frames; false also when it is gone or cannot say.
    pub(super) fn transmits(&mut self, ifindex: u32) -> bool {
        let attribute = DefaultNla::new(DEV_IFINDEX, ifindex.to_ne_bytes().to_vec());
        let request = Request { family: self.family, command: DEV_GET, version: NETDEV_VERSION, attribute };
        let mut transmits = false;
        let answered = self.asker.ask(false, request, |message| {
            transmits = device(&message).is_some_and(|(_, transmits)| transmits);
            Ok(())
        });
        answered.is_ok() && transmits
    }

    /// Reads one system call's worth of events: the devices whose abilities have changed. Tells
    /// whether there were any.
    ///
    /// # Errors
    /// ENOBUFS: events were lost.
    pub(super) fn receive(&mut self, mut tell: impl FnMut(u32, bool)) -> io::Result<bool> {
        let family = self.family;
        self.events.receive(|message| {
            if message.kind == family
                && message.payload.first() == Some(&DEV_CHANGED)
                && let Some((ifindex, transmits)) = device(&message)
            {
                tell(ifindex, transmits);
            }
            Ok(())
        })
    }
}

impl AsFd for Netdev {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.events.as_fd()
    }
}

/// Which device a message is about, and whether that one transmits.
fn device(message: &Message<'_>) -> Option<(u32, bool)> {
    let (mut ifindex, mut features) = (None, 0);
    for attribute in attributes(message) {
        match attribute.kind() {
            DEV_IFINDEX => ifindex = number(attribute.value()),
            DEV_XDP_FEATURES => features = number(attribute.value()).unwrap_or(0),
            _ => {}
        }
    }
    Some((ifindex? as u32, features & NDO_XMIT != 0))
}

/// The id of a multicast group, from the list of a family's.
fn group_named(groups: &[u8], wanted: &[u8]) -> Option<u64> {
    NlasIterator::new(groups).flatten().find_map(|group| {
        let (mut id, mut named) = (None, false);
        for attribute in NlasIterator::new(group.value()).flatten() {
            match i32::from(attribute.kind()) {
                libc::CTRL_ATTR_MCAST_GRP_NAME => named = attribute.value() == wanted,
                libc::CTRL_ATTR_MCAST_GRP_ID => id = number(attribute.value()),
                _ => {}
            }
        }
        id.filter(|_| named)
    })
}

fn attributes<'a>(message: &Message<'a>) -> impl Iterator<Item = NlaBuffer<&'a [u8]>> {
    NlasIterator::new(message.payload.get(HEADER_BYTES..).unwrap_or_default()).flatten()
}

/// An unsigned number of two, four or eight bytes, as the kernel's order is.
fn number(value: &[u8]) -> Option<u64> {
    match value.len() {
        2 => value.try_into().ok().map(|bytes| u64::from(u16::from_ne_bytes(bytes))),
        4 => value.try_into().ok().map(|bytes| u64::from(u32::from_ne_bytes(bytes))),
        8 => value.try_into().ok().map(u64::from_ne_bytes),
        _ => None,
    }
}

impl NetlinkSerializable for Request {
    fn message_type(&self) -> u16 {
        self.family
    }

    fn buffer_len(&self) -> usize {
        HEADER_BYTES + self.attribute.buffer_len()
    }

    fn serialize(&self, buffer: &mut [u8]) {
        let (header, attribute) = buffer.split_at_mut(HEADER_BYTES);
        header.copy_from_slice(&[self.command, self.version, 0, 0]);
        self.attribute.emit(attribute);
    }
}
