//! What the kernel's multicast routing takes and gives (`linux/mroute.h`, `linux/in.h`).

use std::net::Ipv4Addr;

/// Interfaces that a table can have: MAXVIFS.
pub const VIFS_MAX: usize = 32;

pub(super) const MRT_INIT: libc::c_int = 200;
pub(super) const MRT_DONE: libc::c_int = 201;
pub(super) const MRT_ADD_VIF: libc::c_int = 202;
pub(super) const MRT_DEL_VIF: libc::c_int = 203;
pub(super) const MRT_ADD_MFC: libc::c_int = 204;
pub(super) const MRT_DEL_MFC: libc::c_int = 205;
pub(super) const MRT_ASSERT: libc::c_int = 207;
/// As MRT_ASSERT, of packets that come in by any interface (`CONFIG_IP_PIMSM`).
pub(super) const MRT_PIM: libc::c_int = 208;
pub(super) const MRT_TABLE: libc::c_int = 209;
/// `SIOCPROTOPRIVATE + 1`.
pub(super) const SIOCGETSGCNT: libc::c_ulong = 0x89e1;

const VIFF_USE_IFINDEX: u8 = 8;

/// An interface by its number in the table.
pub type Vif = u16;

/// The interfaces of a table, a bit each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Vifs(pub u32);

impl Vifs {
    /// Adds one.
    pub const fn insert(&mut self, vif: Vif) {
        self.0 |= 1 << vif;
    }

    /// Whether it is one of them.
    pub const fn contains(self, vif: Vif) -> bool {
        (vif as usize) < VIFS_MAX && self.0 >> vif & 1 == 1
    }

    /// They, in order.
    pub fn iter(self) -> impl Iterator<Item = Vif> {
        (0..VIFS_MAX as Vif).filter(move |vif| self.contains(*vif))
    }
}

/// What may be the value of an option: plain numbers without padding that matters.
pub(super) trait Value: Copy {}
impl Value for libc::c_int {}
impl Value for u32 {}
impl Value for VifCtl {}
impl Value for MfcCtl {}
impl Value for libc::packet_mreq {}

/// `struct vifctl`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(super) struct VifCtl {
    vif: u16,
    flags: u8,
    threshold: u8,
    rate_limit: u32,
    index: i32,
    remote: u32,
}

const _: () = assert!(size_of::<VifCtl>() == 16);

impl VifCtl {
    pub(super) const fn new(vif: Vif, index: u32) -> Self {
        let index = index.cast_signed();
        VifCtl { vif, flags: VIFF_USE_IFINDEX, threshold: 1, rate_limit: 0, index, remote: 0 }
    }
}

/// `struct mfcctl`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(super) struct MfcCtl {
    source: [u8; 4],
    group: [u8; 4],
    parent: u16,
    ttls: [u8; VIFS_MAX],
    /// Where C has padding.
    unused: [u8; 2],
    counts: [u32; 3],
    expire: i32,
}

const _: () = assert!(size_of::<MfcCtl>() == 60);

impl MfcCtl {
    pub(super) fn new(source: Ipv4Addr, group: Ipv4Addr, parent: Vif, outputs: Vifs) -> Self {
        // A packet is forwarded if its TTL is larger; 0 is never.
        let ttls = std::array::from_fn(|vif| u8::from(outputs.contains(vif as Vif)));
        let (source, group) = (source.octets(), group.octets());
        MfcCtl { source, group, parent, ttls, unused: [0; 2], counts: [0; 3], expire: 0 }
    }
}

/// `struct sioc_sg_req`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(super) struct SgReq {
    pub(super) source: [u8; 4],
    pub(super) group: [u8; 4],
    pub(super) packets: libc::c_ulong,
    pub(super) bytes: libc::c_ulong,
    pub(super) wrong: libc::c_ulong,
}

const _: () = assert!(size_of::<SgReq>() == 8 + 3 * size_of::<libc::c_ulong>());

/// What the kernel counted of a source and a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FlowCounts {
    /// Packets that came in, whatever became of them.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Those of them that came in by another interface than they should.
    pub wrong_interface: u64,
}

/// What the kernel asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UpcallKind {
    /// A packet of which it does not know where it goes. Up to four wait for the answer, for 10 s.
    NoCache,
    /// A packet that came in by another interface than the entry says.
    WrongVif,
}

/// The kernel's word on a packet (`struct igmpmsg`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Upcall {
    /// What for.
    pub kind: UpcallKind,
    /// Where the packet came in.
    pub vif: Vif,
    /// The address that sent it.
    pub source: Ipv4Addr,
    /// Its group.
    pub group: Ipv4Addr,
}

impl Upcall {
    /// Reads what came from the socket: an IGMP packet has the protocol's number where this has a zero. None
    /// if it is no upcall; `Some(None)` if it is one of a kind that was not asked for.
    pub fn parse(bytes: &[u8]) -> Option<Option<Upcall>> {
        let head: &[u8; 20] = bytes.first_chunk()?;
        if head[9] != 0 {
            return None;
        }
        let kind = match head[8] {
            1 => UpcallKind::NoCache,
            2 => UpcallKind::WrongVif,
            _ => return Some(None),
        };
        let address = |at: usize| Ipv4Addr::new(head[at], head[at + 1], head[at + 2], head[at + 3]);
        let vif = u16::from_le_bytes([head[10], head[11]]);
        Some(Some(Upcall { kind, vif, source: address(12), group: address(16) }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn upcalls_are_told_from_packets() {
        let mut bytes = [0; 28];
        bytes[8..20].copy_from_slice(&[2, 0, 5, 0, 10, 0, 0, 9, 239, 1, 2, 3]);
        let (source, group) = (Ipv4Addr::new(10, 0, 0, 9), Ipv4Addr::new(239, 1, 2, 3));
        let upcall = Upcall { kind: UpcallKind::WrongVif, vif: 5, source, group };
        assert_eq!(Upcall::parse(&bytes), Some(Some(upcall)));
        bytes[8] = 3;
        assert_eq!(Upcall::parse(&bytes), Some(None));
        bytes[9] = 2;
        assert_eq!(Upcall::parse(&bytes), None);
        assert_eq!(Upcall::parse(&bytes[..19]), None);
    }

    #[test]
    fn only_outputs_have_a_ttl() {
        let mut outputs = Vifs::default();
        outputs.insert(0);
        outputs.insert(31);
        let entry = MfcCtl::new(Ipv4Addr::LOCALHOST, Ipv4Addr::BROADCAST, 3, outputs);
        assert_eq!(entry.ttls.iter().map(|ttl| u32::from(*ttl)).sum::<u32>(), 2);
        assert!(entry.ttls[0] == 1 && entry.ttls[31] == 1 && !outputs.contains(32));
    }
}
