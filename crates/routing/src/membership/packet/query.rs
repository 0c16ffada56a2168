//! Queries (RFC 1112 appendix I, RFC 2236 section 2, RFC 3376 section 4.1; RFC 2710 section 3, RFC 3810
//! section 5.1).

use core::time::Duration;
use std::net::IpAddr;

use super::code::{code8, code16, units, value8, value16};
use super::fields::be16;
use super::kind::{IGMP_QUERY, MLD_QUERY};
use super::{Addresses, Extension, Writer};
use crate::membership::address::{self, Family};
use crate::membership::{Reason, Version};

/// Milliseconds of a unit of Max Resp Time of IGMP; MLD's is one.
const IGMP_UNIT_MS: u32 = 100;
/// How long a host of IGMPv1 may take, which it is not told (RFC 2236 section 4).
const V1_RESPONSE: Duration = Duration::from_secs(10);

/// A query, but for its list of sources.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueryHead {
    /// The version of the querier.
    pub version: Version,
    /// The group that is asked about; none for all.
    pub group: Option<IpAddr>,
    /// How long hosts may take to answer.
    pub max_response: Duration,
    /// The S flag: routers do not shorten their timers because of it. Only of version 3, as what follows.
    pub suppress: bool,
    /// The querier's robustness variable, 0 if it is above 7 or not said.
    pub robustness: u8,
    /// The querier's query interval; zero if it is not said.
    pub interval: Duration,
}

/// A query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Query<'a> {
    /// All but the sources.
    pub head: QueryHead,
    /// The sources that are asked about; none if it is about the whole group.
    pub sources: Addresses<'a>,
    /// What follows in an extension.
    pub extension: Extension<'a>,
}

impl<'a> Query<'a> {
    pub(super) fn parse(family: Family, payload: &'a [u8]) -> Result<Self, Reason> {
        let (group_at, old_bytes) = match family {
            Family::V4 => (4, 8),
            Family::V6 => (8, 24),
        };
        let group = payload.get(group_at..).and_then(|bytes| family.read(bytes)).ok_or(Reason::Truncated)?;
        let group = (!group.is_unspecified()).then_some(group);
        if group.is_some_and(|group| !group.is_multicast()) {
            return Err(Reason::NotMulticast);
        }
        if payload.len() == old_bytes {
            return Ok(Self::old(family, group, payload));
        }
        let [flags, qqic, count @ ..] = &payload[old_bytes..] else { return Err(Reason::QueryLength) };
        let count = be16(count, 0).map_err(|_| Reason::QueryLength)?;
        let (sources, rest) = Addresses::split(family, count, &payload[old_bytes + 4..])?;
        if group.is_none() && count > 0 {
            return Err(Reason::SourcesOfNoGroup);
        }
        let max_response_ms = match family {
            Family::V4 => value8(payload[1]) * IGMP_UNIT_MS,
            Family::V6 => value16(be16(payload, 4)?),
        };
        let head = QueryHead {
            version: Version::V3,
            group,
            max_response: Duration::from_millis(max_response_ms.into()),
            suppress: flags & 0x08 != 0,
            robustness: flags & 0x07,
            interval: Duration::from_secs(value8(*qqic).into()),
        };
        Ok(Query { head, sources, extension: Extension::parse(family, flags & 0x80 != 0, rest) })
    }

    /// A query of an older version: IGMPv1's have no time (RFC 3376 section 7.1).
    fn old(family: Family, group: Option<IpAddr>, payload: &[u8]) -> Self {
        let (version, max_response) = match family {
            Family::V4 if payload[1] == 0 => (Version::V1, V1_RESPONSE),
            Family::V4 => (Version::V2, Duration::from_millis(100) * u32::from(payload[1])),
            Family::V6 => {
                let ms = u16::from_be_bytes([payload[4], payload[5]]);
                (Version::V2, Duration::from_millis(ms.into()))
            }
        };
        let (suppress, robustness, interval) = (false, 0, Duration::ZERO);
        let head = QueryHead { version, group, max_response, suppress, robustness, interval };
        Query { head, sources: Addresses::none(family), extension: Extension::none(family) }
    }
}

/// Writes a query as an IP packet, in place of what is in `out`, and says where it goes: to all nodes, or to
/// the group. Of older versions than 3 it has no sources; of version 1 no time. Times are rounded down to
/// what can be written.
pub fn emit_query(
    head: &QueryHead,
    source: IpAddr,
    sources: impl IntoIterator<Item = IpAddr>,
    out: &mut Vec<u8>,
) -> IpAddr {
    let family = Family::of(source);
    let destination = head.group.unwrap_or(family.all_nodes());
    let mut packet = Writer::new(source, destination, out);
    let out = packet.out();
    match family {
        Family::V4 => {
            let tenths = units(head.max_response, IGMP_UNIT_MS.into());
            let code = match head.version {
                Version::V1 => 0,
                // Zero would make it version 1.
                Version::V2 => tenths.clamp(1, 255) as u8,
                Version::V3 => code8(tenths),
            };
            out.extend_from_slice(&[IGMP_QUERY, code, 0, 0]);
            address::put(head.group.unwrap_or(std::net::Ipv4Addr::UNSPECIFIED.into()), out);
        }
        Family::V6 => {
            let ms = units(head.max_response, 1);
            let code = match head.version {
                Version::V1 | Version::V2 => ms.min(0xffff) as u16,
                Version::V3 => code16(ms),
            };
            out.extend_from_slice(&[MLD_QUERY, 0, 0, 0]);
            out.extend_from_slice(&code.to_be_bytes());
            out.extend_from_slice(&[0, 0]);
            address::put(head.group.unwrap_or(std::net::Ipv6Addr::UNSPECIFIED.into()), out);
        }
    }
    if head.version == Version::V3 {
        let robustness = if head.robustness > 7 { 0 } else { head.robustness };
        let qqic = code8(units(head.interval, 1000));
        out.extend_from_slice(&[u8::from(head.suppress) << 3 | robustness, qqic, 0, 0]);
        let start = out.len();
        sources.into_iter().for_each(|source| address::put(source, out));
        let count = ((out.len() - start) / family.address_bytes()) as u16;
        out[start - 2..start].copy_from_slice(&count.to_be_bytes());
    }
    packet.finish();
    destination
}
