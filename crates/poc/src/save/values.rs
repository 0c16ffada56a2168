//! What many of the saved values are made of.

use core::fmt;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::collections::BTreeMap;

use bytes::Bytes;
use minicbor::bytes::ByteArray;
use minicbor::{Decode, Decoder, Encode, Encoder, decode, encode};
use outflow_media::ecn::MarkCounts;
use outflow_petri::service::{Flow, Service};

use super::{NUMBER_MOST, Unfit, check};
use crate::packet::{ConnectionId, Span};
use crate::secret::Secret;

/// Bytes, which are not copied to be saved. They may be secret: none of them is shown.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct SavedBytes(pub Bytes);

impl fmt::Debug for SavedBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.0.len())
    }
}

impl<C> Encode<C> for SavedBytes {
    fn encode<W: encode::Write>(&self, e: &mut Encoder<W>, _: &mut C) -> Result<(), encode::Error<W::Error>> {
        e.bytes(&self.0)?.ok()
    }
}

impl<'b, C> Decode<'b, C> for SavedBytes {
    fn decode(d: &mut Decoder<'b>, _: &mut C) -> Result<Self, decode::Error> {
        d.bytes().map(|bytes| SavedBytes(Bytes::copy_from_slice(bytes)))
    }
}

/// Numbers from one to another, both of which belong to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
#[cbor(array)]
pub struct SavedSpan {
    /// The first one.
    #[n(0)]
    pub first: u64,
    /// The last one.
    #[n(1)]
    pub last: u64,
}

impl From<Span> for SavedSpan {
    fn from(span: Span) -> Self {
        SavedSpan { first: span.first, last: span.last }
    }
}

impl SavedSpan {
    /// All of these, ascending and apart.
    pub(crate) fn all(spans: &[Span]) -> Vec<SavedSpan> {
        spans.iter().copied().map(SavedSpan::from).collect()
    }

    /// As it was, if it is one.
    pub(crate) fn checked(self, what: &'static str) -> Result<Span, Unfit> {
        check(self.first <= self.last && self.last < NUMBER_MOST, what, "a range without numbers")?;
        Ok(Span { first: self.first, last: self.last })
    }
}

/// The id of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
#[cbor(array)]
pub struct SavedId {
    /// The bytes of it.
    #[cbor(n(0), with = "minicbor::bytes")]
    pub bytes: [u8; ConnectionId::BYTES],
}

impl From<ConnectionId> for SavedId {
    fn from(id: ConnectionId) -> Self {
        SavedId { bytes: id.0 }
    }
}

impl From<SavedId> for ConnectionId {
    fn from(id: SavedId) -> Self {
        ConnectionId(id.bytes)
    }
}

/// The address of a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct SavedAddress {
    /// Of version 4: four bytes.
    #[n(0)]
    pub v4: Option<ByteArray<4>>,
    /// Of version 6: sixteen.
    #[n(1)]
    pub v6: Option<ByteArray<16>>,
    /// The port.
    #[n(2)]
    pub port: u16,
    /// Of version 6: the interface that it is behind, if it is local to that.
    #[n(3)]
    #[cbor(default)]
    pub scope: u32,
}

impl From<SocketAddr> for SavedAddress {
    fn from(address: SocketAddr) -> Self {
        let port = address.port();
        match address {
            SocketAddr::V4(v4) => {
                SavedAddress { v4: Some(v4.ip().octets().into()), v6: None, port, scope: 0 }
            }
            SocketAddr::V6(v6) => {
                SavedAddress { v4: None, v6: Some(v6.ip().octets().into()), port, scope: v6.scope_id() }
            }
        }
    }
}

impl SavedAddress {
    /// As it was, if it is one.
    pub(crate) fn checked(self) -> Result<SocketAddr, Unfit> {
        match (self.v4, self.v6) {
            (Some(v4), None) => Ok((IpAddr::V4(Ipv4Addr::from(*v4)), self.port).into()),
            (None, Some(v6)) => Ok(SocketAddrV6::new(Ipv6Addr::from(*v6), self.port, 0, self.scope).into()),
            _ => Err(Unfit { what: "address", why: "it is of no version, or of both" }),
        }
    }
}

/// What no other host may know. It is not shown.
#[derive(Clone, Copy, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct SavedSecret {
    /// The key.
    #[cbor(n(0), with = "minicbor::bytes")]
    pub key: [u8; 16],
    /// How often it was used.
    #[n(1)]
    pub count: u64,
}

impl fmt::Debug for SavedSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SavedSecret")
    }
}

impl SavedSecret {
    /// As it was, if it can go on.
    pub(crate) fn checked(self) -> Result<Secret, Unfit> {
        check(self.count < NUMBER_MOST, "secret", "it was used too often")?;
        Ok(Secret::restore(self))
    }
}

/// How many packets came with each mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Encode, Decode)]
#[cbor(array)]
pub struct SavedMarks {
    /// Those marked ECT(0).
    #[n(0)]
    pub ect0: u64,
    /// Those marked ECT(1).
    #[n(1)]
    pub ect1: u64,
    /// Those marked CE.
    #[n(2)]
    pub ce: u64,
}

impl From<MarkCounts> for SavedMarks {
    fn from(MarkCounts { ect0, ect1, ce }: MarkCounts) -> Self {
        SavedMarks { ect0, ect1, ce }
    }
}

impl From<SavedMarks> for MarkCounts {
    fn from(SavedMarks { ect0, ect1, ce }: SavedMarks) -> Self {
        // Sums of them fit.
        MarkCounts { ect0: ect0.min(NUMBER_MOST), ect1: ect1.min(NUMBER_MOST), ce: ce.min(NUMBER_MOST) }
    }
}

/// Services of connections that are restored: those of the same bytes share their nets.
#[derive(Debug, Clone, Default)]
pub struct Services(BTreeMap<SavedBytes, Service>);

impl Services {
    /// None so far.
    pub fn new() -> Self {
        Services::default()
    }

    /// What is sent, and what is received.
    pub(crate) fn flows(&mut self, bytes: &SavedBytes) -> Result<(Option<Flow>, Option<Flow>), Unfit> {
        if !self.0.contains_key(bytes) {
            let service = Service::parse(&bytes.0);
            let service = service.map_err(|error| Unfit { what: "service", why: error.reason })?;
            self.0.insert(bytes.clone(), service);
        }
        let service = self.0.get(bytes).cloned();
        Ok(service.map_or((None, None), |service| (service.to_server, service.to_client)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_come_back_as_they_were() {
        for address in ["10.0.0.1:4000", "[::ffff:10.0.0.1]:4000", "[fe80::1%3]:65535"] {
            let address: SocketAddr = address.parse().expect("an address");
            let bytes = minicbor::to_vec(SavedAddress::from(address)).expect("it is written to memory");
            let saved: SavedAddress = minicbor::decode(&bytes).expect("it was just written");
            assert_eq!(saved.checked(), Ok(address));
        }
        let none = SavedAddress { v4: None, v6: None, port: 1, scope: 0 };
        assert!(none.checked().is_err());
    }

    #[test]
    fn secrets_are_not_shown() {
        let secret = SavedSecret { key: [7; 16], count: 3 };
        assert_eq!(format!("{secret:?}"), "SavedSecret");
        assert_eq!(format!("{:?}", SavedBytes(Bytes::from_static(b"key"))), "3 bytes");
    }
}
