//! Messages on the wire, with the IP packets that carry them.
//!
//! [`parse`] checks all that can be told from a packet and the link alone: the headers, TTL or hop limit,
//! Router Alert, where it comes from and goes to, the checksum and the lengths. What it says is read without
//! allocation, when it is asked for.

mod code;
mod extension;
mod fields;
mod ip;
mod kind;
mod query;
mod report;

use std::net::IpAddr;

pub use extension::{Entry, Extension, LEVELS_TLV, Levels, Tlvs};
pub use fields::Addresses;
pub use ip::{Writer, checksum};
pub use query::{Query, QueryHead, emit_query};
pub use report::{Record, RecordKind, Records, Report, ReportWriter, emit_leave, emit_old_report};

use self::kind::Kind;
use super::address::{Family, Link};
use super::{Reason, Version};

/// A packet that has been checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet<'a> {
    /// The address that sent it; IPv4 hosts may not have one yet, and then it is 0.0.0.0.
    pub source: IpAddr,
    /// What it says.
    pub message: Message<'a>,
}

/// What a message says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Message<'a> {
    /// Asks which hosts are members.
    Query(Query<'a>),
    /// Members of one group, of an older version.
    OldReport {
        /// `V1` or `V2`.
        version: Version,
        /// The group.
        group: IpAddr,
    },
    /// A member of IGMPv2 or MLDv1 leaves.
    Leave {
        /// The group.
        group: IpAddr,
    },
    /// What a host receives, of several groups.
    Report(Report<'a>),
}

/// Reads an IP packet as it came from a link, from its IP header on. Bytes behind its end, as of Ethernet's
/// padding, are left out.
///
/// # Errors
///
/// Why it is refused.
pub fn parse<'a>(bytes: &'a [u8], link: &Link) -> Result<Packet<'a>, Reason> {
    let family = link.family();
    let ip = ip::open(family, bytes)?;
    let code = *ip.payload.first().ok_or(Reason::Truncated)?;
    let kind = Kind::of(family, code).ok_or(Reason::OtherType)?;
    if ip.hops != 1 {
        return Err(Reason::HopLimit);
    }
    if ip.source == link.address {
        return Err(Reason::Own);
    }
    if ip::message_checksum(ip.source, ip.destination, ip.payload) != 0 {
        return Err(Reason::Checksum);
    }
    let message = match kind {
        Kind::Query => Message::Query(Query::parse(family, ip.payload)?),
        Kind::OldReport(version) => Message::OldReport { version, group: group_of(family, ip.payload)? },
        Kind::Leave => Message::Leave { group: group_of(family, ip.payload)? },
        Kind::Report => Message::Report(Report::parse(family, ip.payload)?),
    };
    if link.needs_router_alert && !ip.router_alert && message.version() != Version::V1 {
        return Err(Reason::RouterAlert);
    }
    let unspecified_query = matches!(message, Message::Query(_)) && ip.source == unspecified();
    if !unspecified_query && !link.reaches(ip.source) {
        return Err(Reason::Source);
    }
    if ip.destination != link.address && !message.goes_to(family, ip.destination) {
        return Err(Reason::Destination);
    }
    Ok(Packet { source: ip.source, message })
}

const fn unspecified() -> IpAddr {
    IpAddr::V4(std::net::Ipv4Addr::UNSPECIFIED)
}

/// The group of a message of one group. What is behind it is ignored (RFC 2236 section 2.5).
fn group_of(family: Family, payload: &[u8]) -> Result<IpAddr, Reason> {
    let group = match family {
        Family::V4 => payload.get(4..),
        Family::V6 => payload.get(8..),
    };
    let group = group.and_then(|bytes| family.read(bytes)).ok_or(Reason::Truncated)?;
    if group.is_multicast() { Ok(group) } else { Err(Reason::NotMulticast) }
}

impl Message<'_> {
    const fn version(&self) -> Version {
        match self {
            Message::Query(query) => query.head.version,
            Message::OldReport { version, .. } => *version,
            Message::Leave { .. } => Version::V2,
            Message::Report(_) => Version::V3,
        }
    }

    /// Whether such a message may go there (RFC 3376 sections 4.1.12 and 4.2.14, RFC 2236 section 2.4): to
    /// where it is sent, or to another address that routers and hosts that need it have in any case.
    fn goes_to(&self, family: Family, destination: IpAddr) -> bool {
        match self {
            Message::Query(query) => {
                destination == family.all_nodes() || query.head.group == Some(destination)
            }
            Message::OldReport { group, .. } => destination == *group,
            Message::Leave { group } => destination == family.all_routers() || destination == *group,
            Message::Report(_) => destination == family.all_reports(),
        }
    }
}

#[cfg(test)]
mod tests;
