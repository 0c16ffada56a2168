//! Where the relay listens.

use std::net::{Ipv6Addr, SocketAddr};
use std::ops::RangeInclusive;

use toml::de::DeTable;

use crate::Vocabulary;
use crate::contract::Contract;
use crate::error::Collector;
use crate::section::read_keys;
use crate::value::{Fault, Given, Value};

/// A key of `[listen]`: an address with a port, or "off".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Listener {
    /// The key.
    pub key: &'static str,
    /// The port at all addresses, of IPv6 and IPv4, where nothing is said; none stands for "off".
    pub port: Option<u16>,
    /// Whether it listens only if there is a certificate.
    pub needs_tls: bool,
    /// Whether it is a TCP port, or one of both; else it is one of UDP alone.
    pub is_tcp: bool,
    /// Receivers that come in there, as a graph names them, and what they get.
    pub players: (&'static str, Contract),
    /// How the addresses of streams at it are shown to people, if they are such.
    pub address: Option<StreamAddress>,
}

/// How the address of a stream at a listener is shown to people: `KEY://HOST:PORT/STREAM`, and what follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamAddress {
    /// What it is, in a word or two.
    pub label: &'static str,
    /// The port of addresses that name none (RFC 3986, section 3.2.3).
    pub usual_port: Option<u16>,
    /// What follows the stream's name.
    pub suffix: &'static str,
    /// A command that publishes there, with `URL` in the place of the address.
    pub publish: Option<&'static str>,
}

/// The key of [`Listen::rtp_ports`].
pub(crate) const RTP_PORTS: &str = "rtp_ports";

/// Where the relay listens: an address with a port for each listener of its protocols, or "off".
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listen {
    /// UDP ports for RTP and RTCP of sessions.
    pub rtp_ports: RangeInclusive<u16>,
    listeners: Vec<(Listener, Option<SocketAddr>)>,
}

impl Default for Listen {
    fn default() -> Self {
        Listen { rtp_ports: 8000..=8999, listeners: Vec::new() }
    }
}

impl Listen {
    /// What these listeners do where nothing is said.
    pub(crate) fn new(listeners: impl Iterator<Item = &'static Listener>) -> Self {
        let everywhere = |port| SocketAddr::from((Ipv6Addr::UNSPECIFIED, port));
        let listeners = listeners.map(|listener| (*listener, listener.port.map(everywhere)));
        Listen { listeners: listeners.collect(), ..Listen::default() }
    }

    /// The address of a listener; none if it is off, or not there.
    pub fn at(&self, key: &str) -> Option<SocketAddr> {
        self.listeners.iter().find(|(listener, _)| listener.key == key)?.1
    }

    /// Moves a listener, if there is one of this key, or turns it off.
    pub fn set(&mut self, key: &str, at: Option<SocketAddr>) {
        let found = self.listeners.iter_mut().filter(|(listener, _)| listener.key == key);
        found.for_each(|(_, place)| *place = at);
    }

    /// All listeners, each with its address unless it is off.
    pub fn listeners(&self) -> impl Iterator<Item = (&Listener, Option<SocketAddr>)> {
        self.listeners.iter().map(|(listener, at)| (listener, *at))
    }

    fn keys(&self) -> Vec<&'static str> {
        self.listeners.iter().map(|(listener, _)| listener.key).chain([RTP_PORTS]).collect()
    }

    pub(crate) fn read(&mut self, table: &DeTable<'_>, known: &Vocabulary, errors: &mut Collector<'_>) {
        let keys = self.keys();
        read_keys(table, "listen", &keys, known, errors, |key, given| self.read_key(key, given));
    }

    fn read_key(&mut self, key: &str, given: &Given<'_>) -> Result<bool, Fault> {
        if key == RTP_PORTS {
            self.rtp_ports = Value::read(given)?;
            return Ok(true);
        }
        let Some((_, at)) = self.listeners.iter_mut().find(|(listener, _)| listener.key == key) else {
            return Ok(false);
        };
        *at = Value::read(given)?;
        Ok(true)
    }

    /// Encrypted listeners are off without a certificate.
    pub(crate) fn without_certificate(&mut self) {
        let encrypted = self.listeners.iter_mut().filter(|(listener, _)| listener.needs_tls);
        encrypted.for_each(|(_, at)| *at = None);
    }

    /// The keys in which two differ.
    pub(crate) fn changed(&self, other: &Self) -> Vec<&'static str> {
        let moved = |(listener, at): &&(Listener, Option<SocketAddr>)| other.at(listener.key) != *at;
        let moved = self.listeners.iter().filter(moved).map(|(listener, _)| listener.key);
        let ports = (self.rtp_ports != other.rtp_ports).then_some(RTP_PORTS);
        moved.chain(ports).collect()
    }
}
