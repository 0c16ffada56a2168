//! Messages of DVMRP version 3 on the wire (draft-ietf-idmr-dvmrp-v3-11; sections are of it).
//!
//! | code | message | behind the header of 8 bytes |
//! |---|---|---|
//! | 1 | [`Message::Probe`] | generation, neighbours |
//! | 2 | [`Message::Report`] | routes by mask |
//! | 5, 6 | [`Message::AskNeighbours2`], [`Message::Neighbours2`] | interfaces with their neighbours |
//! | 7 | [`Message::Prune`] | source, group, lifetime in s, perhaps a mask |
//! | 8, 9 | [`Message::Graft`], [`Message::GraftAck`] | source, group, perhaps a mask |
//! | 0x70 | [`Message::Demand`] | network, group, level, bits of the network, 2 zeros, lifetime in s, sequence |
//! | 0x71 | [`Message::DemandAck`] | network, group, level, bits of the network, 2 zeros, sequence |
//!
//! The last two are our own, and only sent to neighbours that set [`LEVELS`] in their probes. Others were
//! seen to ignore them, and the bit (mrouted 4.6). Numbers are in network byte order. Reading does not
//! allocate: what is read refers to the packet.

mod neighbours2;
mod report;

use core::net::Ipv4Addr;

use outflow_media::{Malformed, Prefix};

pub use crate::ip::{HEADER_BYTES as IP_HEADER_BYTES, emit_header as emit_ip};
pub use neighbours2::{Neighbours2, Section};
pub(super) use report::is_told;
pub use report::{Advertised, ReportWriter, Routes};

use crate::demand::Level;
use crate::ip;
use crate::ip::{Ip, checksum};

/// All DVMRP routers on a link (section 4).
pub const ALL_ROUTERS: Ipv4Addr = Ipv4Addr::new(224, 0, 0, 4);

/// The bit of capabilities that says: understands prunes (section 3.2.1).
pub const PRUNES: u8 = 0x02;
/// The bit of capabilities that says: its probes have generations.
pub const GENERATIONS: u8 = 0x04;
/// The bit of capabilities that says: answers to traces. Older routers want to see it.
pub const TRACES: u8 = 0x08;
/// The bit of capabilities that says: understands [`Message::Demand`]. The draft leaves it unused.
pub const LEVELS: u8 = 0x40;

/// Bytes of the header.
pub const HEADER_BYTES: usize = 8;

const FORMAT: &str = "DVMRP";
const TYPE: u8 = 0x13;
const MINOR: u8 = 0xff;
const MAJOR: u8 = 3;

const PROBE: u8 = 1;
const REPORT: u8 = 2;
const ASK_NEIGHBOURS2: u8 = 5;
const NEIGHBOURS2: u8 = 6;
const PRUNE: u8 = 7;
const GRAFT: u8 = 8;
const GRAFT_ACK: u8 = 9;
const DEMAND: u8 = 0x70;
const DEMAND_ACK: u8 = 0x71;

/// Why a packet is not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// It is something else: not of IGMP, or of another type.
    #[error("not a message of DVMRP")]
    NotDvmrp,
    /// It was changed on the way, or its sender cannot count.
    #[error("a wrong checksum")]
    Checksum,
    /// It is not as it has to be.
    #[error("{0}")]
    Malformed(#[from] Malformed),
}

const fn of_ip(fault: ip::Unreadable, bytes: &[u8]) -> Unreadable {
    match fault {
        ip::Unreadable::Truncated => malformed(bytes.len(), "ends early"),
        ip::Unreadable::NotIpv4 => malformed(0, "not IP version 4"),
        ip::Unreadable::Checksum => Unreadable::Checksum,
        ip::Unreadable::OtherProtocol => Unreadable::NotDvmrp,
        ip::Unreadable::Fragment => malformed(6, "a fragment"),
    }
}

const fn malformed(offset: usize, reason: &'static str) -> Unreadable {
    Unreadable::Malformed(Malformed { format: FORMAT, offset, reason })
}

/// A packet with a message: which address sent it, and what all messages have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet<'a> {
    /// The address that sent it, if that is true.
    pub source: Ipv4Addr,
    /// Where it went.
    pub destination: Ipv4Addr,
    /// How many links it may still pass, this one included.
    pub ttl: u8,
    /// Which message it is.
    pub code: u8,
    /// In probes what the sender can do; others may have anything there (section 3.1).
    pub capabilities: u8,
    /// Version, of which 3.255 is that of the draft.
    pub major: u8,
    /// See `major`.
    pub minor: u8,
    body: &'a [u8],
}

/// A list of addresses on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Addresses<'a>(&'a [[u8; 4]]);

impl<'a> Addresses<'a> {
    /// Of their octets.
    pub const fn new(octets: &'a [[u8; 4]]) -> Self {
        Addresses(octets)
    }

    /// They, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Ipv4Addr> + use<'a> {
        self.0.iter().map(|octets| Ipv4Addr::from_octets(*octets))
    }
}

/// A pair of source and group, as prunes and grafts have it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pair {
    /// A host that sends, or its network.
    pub source: Ipv4Addr,
    /// The group that it sends to.
    pub group: Ipv4Addr,
    /// How much of the source counts. Only written to a router that says it understands it (section 3.2.1).
    pub mask: Option<u32>,
}

/// A level that is wanted of a group's sources in a network. Takes the place of a graft, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Demand {
    /// Where the sources are: the route that the sender depends on.
    pub network: Prefix,
    /// The group that they send to.
    pub group: Ipv4Addr,
    /// What is wanted.
    pub level: Level,
    /// Seconds. A router that does not say it again before counts as wanting the best.
    pub lifetime_s: u32,
    /// Later ones have larger ones, modulo 2^32.
    pub sequence: u32,
}

/// That a demand has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DemandAck {
    /// As in the demand.
    pub network: Prefix,
    /// As in the demand.
    pub group: Ipv4Addr,
    /// As in the demand.
    pub level: Level,
    /// As in the demand.
    pub sequence: u32,
}

/// A message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Message<'a> {
    /// Here is a router (section 3.2.5).
    Probe {
        /// Another one than before: it was restarted.
        generation: u32,
        /// Those it has heard of on this link.
        neighbours: Addresses<'a>,
    },
    /// Routes (section 3.4.10).
    Report(Routes<'a>),
    /// Not wanted for this many seconds (section 3.5.6).
    Prune(Pair, u32),
    /// Wanted after all (section 3.6.3).
    Graft(Pair),
    /// That a graft has come (section 3.6.6).
    GraftAck(Pair),
    /// A router or host asks for the neighbours (appendix B).
    AskNeighbours2,
    /// The answer.
    Neighbours2(Neighbours2<'a>),
    /// Wanted at this level.
    Demand(Demand),
    /// That a demand has come.
    DemandAck(DemandAck),
    /// A message of this code, which is not understood here.
    Other(u8),
}

impl<'a> Packet<'a> {
    /// Reads a packet of IP. Checksums of both headers are verified; whether TTL and addresses are right is
    /// for a caller that knows the link.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Unreadable> {
        let Ip { source, destination, ttl, payload, .. } =
            Ip::parse(bytes).map_err(|fault| of_ip(fault, bytes))?;
        let Some((header, body)) = payload.split_first_chunk::<HEADER_BYTES>() else {
            return Err(malformed(bytes.len(), "ends early"));
        };
        let [kind, code, _, _, _, capabilities, minor, major] = *header;
        if kind != TYPE {
            return Err(Unreadable::NotDvmrp);
        }
        if checksum(0, payload) != 0 {
            return Err(Unreadable::Checksum);
        }
        Ok(Packet { source, destination, ttl, code, capabilities, major, minor, body })
    }

    /// Whether the message is a probe, by which a neighbour becomes known.
    pub const fn is_probe(&self) -> bool {
        self.code == PROBE
    }

    /// Reads the message. Offsets of errors count from behind the header. What follows behind a prune or a
    /// graft is ignored, as others do.
    pub fn message(&self) -> Result<Message<'a>, Malformed> {
        let mut reader = Reader { rest: self.body, length: self.body.len() };
        Ok(match self.code {
            PROBE => {
                let generation = u32::from_be_bytes(reader.take()?);
                let (neighbours, rest) = reader.rest.as_chunks();
                if !rest.is_empty() {
                    return Err(reader.error("a neighbour's address ends early"));
                }
                Message::Probe { generation, neighbours: Addresses(neighbours) }
            }
            REPORT => Message::Report(Routes::parse(self.body)?),
            PRUNE => {
                let (source, group) = (reader.address()?, reader.address()?);
                let lifetime_s = u32::from_be_bytes(reader.take()?);
                Message::Prune(Pair { source, group, mask: reader.mask() }, lifetime_s)
            }
            GRAFT | GRAFT_ACK => {
                let (source, group) = (reader.address()?, reader.address()?);
                let pair = Pair { source, group, mask: reader.mask() };
                if self.code == GRAFT { Message::Graft(pair) } else { Message::GraftAck(pair) }
            }
            ASK_NEIGHBOURS2 => Message::AskNeighbours2,
            NEIGHBOURS2 => Message::Neighbours2(Neighbours2::parse(self.body)?),
            DEMAND => Message::Demand(reader.demand()?),
            DEMAND_ACK => {
                let (network, group, level) = reader.wanted()?;
                let sequence = u32::from_be_bytes(reader.take()?);
                Message::DemandAck(DemandAck { network, group, level, sequence })
            }
            code => Message::Other(code),
        })
    }
}

struct Reader<'a> {
    rest: &'a [u8],
    length: usize,
}

impl Reader<'_> {
    const fn error(&self, reason: &'static str) -> Malformed {
        Malformed { format: FORMAT, offset: self.length - self.rest.len(), reason }
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (taken, rest) = self.rest.split_first_chunk().ok_or_else(|| self.error("ends early"))?;
        self.rest = rest;
        Ok(*taken)
    }

    fn address(&mut self) -> Result<Ipv4Addr, Malformed> {
        self.take().map(Ipv4Addr::from_octets)
    }

    fn mask(&mut self) -> Option<u32> {
        self.take().ok().map(u32::from_be_bytes)
    }

    fn wanted(&mut self) -> Result<(Prefix, Ipv4Addr, Level), Malformed> {
        let (network, group) = (self.address()?, self.address()?);
        let [level, length, _, _] = self.take()?;
        let prefix = Prefix::of(network, length);
        if length > 32 || prefix.network() != network {
            return Err(self.error("a network with bits behind its length"));
        }
        let level = Level::new(level).ok_or_else(|| self.error("no level"))?;
        Ok((prefix, group, level))
    }

    fn demand(&mut self) -> Result<Demand, Malformed> {
        let (network, group, level) = self.wanted()?;
        let lifetime_s = u32::from_be_bytes(self.take()?);
        let sequence = u32::from_be_bytes(self.take()?);
        Ok(Demand { network, group, level, lifetime_s, sequence })
    }
}

impl Message<'_> {
    /// Writes the message with its header behind what is in `out`. All messages say what the sender can do,
    /// as those of mrouted do, which reads it in any.
    pub fn emit(&self, capabilities: u8, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend([TYPE, self.code(), 0, 0, 0, capabilities, MINOR, MAJOR]);
        match self {
            Message::Probe { generation, neighbours } => {
                out.extend(generation.to_be_bytes());
                out.extend(neighbours.0.as_flattened());
            }
            Message::Report(routes) => out.extend(routes.bytes()),
            Message::Prune(pair, lifetime_s) => {
                out.extend(pair.source.octets());
                out.extend(pair.group.octets());
                out.extend(lifetime_s.to_be_bytes());
                out.extend(pair.mask.iter().flat_map(|mask| mask.to_be_bytes()));
            }
            Message::Graft(pair) | Message::GraftAck(pair) => {
                out.extend(pair.source.octets());
                out.extend(pair.group.octets());
                out.extend(pair.mask.iter().flat_map(|mask| mask.to_be_bytes()));
            }
            Message::Neighbours2(sections) => out.extend(sections.bytes()),
            Message::Demand(demand) => {
                emit_wanted(demand.network, demand.group, demand.level, out);
                out.extend(demand.lifetime_s.to_be_bytes());
                out.extend(demand.sequence.to_be_bytes());
            }
            Message::DemandAck(ack) => {
                emit_wanted(ack.network, ack.group, ack.level, out);
                out.extend(ack.sequence.to_be_bytes());
            }
            Message::AskNeighbours2 | Message::Other(_) => (),
        }
        let sum = checksum(0, &out[start..]).to_be_bytes();
        out[start + 2..start + 4].copy_from_slice(&sum);
    }

    const fn code(&self) -> u8 {
        match self {
            Message::Probe { .. } => PROBE,
            Message::Report(_) => REPORT,
            Message::Prune(..) => PRUNE,
            Message::Graft(_) => GRAFT,
            Message::GraftAck(_) => GRAFT_ACK,
            Message::AskNeighbours2 => ASK_NEIGHBOURS2,
            Message::Neighbours2(_) => NEIGHBOURS2,
            Message::Demand(_) => DEMAND,
            Message::DemandAck(_) => DEMAND_ACK,
            Message::Other(code) => *code,
        }
    }
}

fn emit_wanted(network: Prefix, group: Ipv4Addr, level: Level, out: &mut Vec<u8>) {
    out.extend(network.network().octets());
    out.extend(group.octets());
    out.extend([level.number(), network.length(), 0, 0]);
}

#[cfg(test)]
mod tests;
