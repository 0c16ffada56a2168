//! What the kernel's multicast routing takes and gives (`linux/mroute.h`, `linux/mroute6.h`, `linux/in.h`). Options and
//! requests of IPv6 have the numbers of IPv4, at another level.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use outflow_routing::membership::Family;

/// Interfaces that a table can have: MAXVIFS, MAXMIFS.
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
/// `SIOCPROTOPRIVATE + 1`, as is SIOCGETSGCNT_IN6.
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
impl Value for Mif6Ctl {}
impl Value for Mf6cCtl {}
impl Value for [u32; 8] {}
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

/// `struct mif6ctl`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(super) struct Mif6Ctl {
    mif: u16,
    flags: u8,
    threshold: u8,
    index: u16,
    /// Where C has padding.
    unused: u16,
    rate_limit: u32,
}

const _: () = assert!(size_of::<Mif6Ctl>() == 12);

impl Mif6Ctl {
    /// None if the index is too large for what the kernel takes.
    pub(super) fn new(mif: Vif, index: u32) -> Option<Self> {
        let index = u16::try_from(index).ok()?;
        Some(Mif6Ctl { mif, flags: 0, threshold: 1, index, unused: 0, rate_limit: 0 })
    }
}

/// `struct sockaddr_in6`, of which the address counts.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(super) struct Place6 {
    family: u16,
    port: u16,
    flow: u32,
    address: [u8; 16],
    scope: u32,
}

impl Place6 {
    pub(super) const fn new(address: Ipv6Addr) -> Self {
        let family = libc::AF_INET6 as u16;
        Place6 { family, port: 0, flow: 0, address: address.octets(), scope: 0 }
    }
}

/// `struct mf6cctl`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(super) struct Mf6cCtl {
    source: Place6,
    group: Place6,
    parent: u16,
    /// Where C has padding.
    unused: u16,
    /// `struct if_set`: a bit each.
    outputs: [u32; 8],
}

const _: () = assert!(size_of::<Mf6cCtl>() == 92);

impl Mf6cCtl {
    pub(super) const fn new(source: Ipv6Addr, group: Ipv6Addr, parent: Vif, outputs: Vifs) -> Self {
        let outputs = [outputs.0, 0, 0, 0, 0, 0, 0, 0];
        Mf6cCtl { source: Place6::new(source), group: Place6::new(group), parent, unused: 0, outputs }
    }
}

/// `struct sioc_sg_req6`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(super) struct SgReq6 {
    pub(super) source: Place6,
    pub(super) group: Place6,
    pub(super) packets: libc::c_ulong,
    pub(super) bytes: libc::c_ulong,
    pub(super) wrong: libc::c_ulong,
}

const _: () = assert!(size_of::<SgReq6>() == 56 + 3 * size_of::<libc::c_ulong>());

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

/// The kernel's word on a packet (`struct igmpmsg`, `struct mrt6msg`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Upcall {
    /// What for.
    pub kind: UpcallKind,
    /// Where the packet came in.
    pub vif: Vif,
    /// The address that sent it.
    pub source: IpAddr,
    /// Its group.
    pub group: IpAddr,
}

impl Upcall {
    /// Reads what came from the socket. None if it is no upcall; `Some(None)` if it is one of a kind that was not asked
    /// for.
    pub fn parse(family: Family, bytes: &[u8]) -> Option<Option<Upcall>> {
        match family {
            Family::V4 => Upcall::parse_v4(bytes),
            Family::V6 => Upcall::parse_v6(bytes),
        }
    }

    /// A packet of IGMP has the protocol's number where this has a zero.
    fn parse_v4(bytes: &[u8]) -> Option<Option<Upcall>> {
        let head: &[u8; 20] = bytes.first_chunk()?;
        if head[9] != 0 {
            return None;
        }
        let address = |at: usize| Ipv4Addr::new(head[at], head[at + 1], head[at + 2], head[at + 3]).into();
        let (vif, source, group) = (u16::from_le_bytes([head[10], head[11]]), address(12), address(16));
        Some(UpcallKind::of(head[8]).map(|kind| Upcall { kind, vif, source, group }))
    }

    /// A message of ICMPv6 has its type where this has a zero.
    fn parse_v6(bytes: &[u8]) -> Option<Option<Upcall>> {
        let ([0, kind, vif @ .., _, _, _, _], behind) = bytes.split_first_chunk::<8>()? else { return None };
        let (source, behind) = behind.split_first_chunk::<16>()?;
        let group = behind.first_chunk::<16>()?;
        let (vif, source, group) = (u16::from_ne_bytes(*vif), IpAddr::from(*source), IpAddr::from(*group));
        Some(UpcallKind::of(*kind).map(|kind| Upcall { kind, vif, source, group }))
    }
}

impl UpcallKind {
    const fn of(number: u8) -> Option<Self> {
        match number {
            1 => Some(UpcallKind::NoCache),
            2 => Some(UpcallKind::WrongVif),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> Ipv6Addr {
        text.parse().expect("an address")
    }

    #[test]
    fn upcalls_are_told_from_packets() {
        let mut bytes = [0; 28];
        bytes[8..20].copy_from_slice(&[2, 0, 5, 0, 10, 0, 0, 9, 239, 1, 2, 3]);
        let (source, group) = ([10, 0, 0, 9].into(), [239, 1, 2, 3].into());
        let upcall = Upcall { kind: UpcallKind::WrongVif, vif: 5, source, group };
        let parse = |bytes: &[u8]| Upcall::parse(Family::V4, bytes);
        assert_eq!(parse(&bytes), Some(Some(upcall)));
        bytes[8] = 3;
        assert_eq!(parse(&bytes), Some(None));
        bytes[9] = 2;
        assert_eq!(parse(&bytes), None);
        assert_eq!(parse(&bytes[..19]), None);
    }

    #[test]
    fn upcalls_of_ipv6_are_told_from_messages() {
        let (source, group): (Ipv6Addr, Ipv6Addr) = (address("2001:db8::9"), address("ff3e::8000:1"));
        let mut bytes = [&[0, 1][..], &5_u16.to_ne_bytes(), &[0; 4]].concat();
        bytes.extend(source.octets().into_iter().chain(group.octets()));
        let upcall = Upcall { kind: UpcallKind::NoCache, vif: 5, source: source.into(), group: group.into() };
        let parse = |bytes: &[u8]| Upcall::parse(Family::V6, bytes);
        assert_eq!(parse(&bytes), Some(Some(upcall)));
        assert_eq!(parse(&bytes[..39]), None);
        bytes[1] = 3;
        assert_eq!(parse(&bytes), Some(None), "a whole packet, for PIM");
        bytes[0] = 143;
        assert_eq!(parse(&bytes), None, "a report");
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
