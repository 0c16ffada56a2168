//! The Transport header, RFC 2326 section 12.39.

use core::fmt;

use crate::limits::TRANSPORTS;

/// What carries the RTP packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Lower {
    /// Datagrams of their own.
    #[default]
    Udp,
    /// The RTSP connection, interleaved with the messages.
    Tcp,
}

/// Two numbers that belong together: ports or channels of RTP and of its RTCP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Pair<T> {
    /// For RTP.
    pub rtp: T,
    /// For RTCP.
    pub rtcp: T,
}

/// One alternative of a Transport header. What is not given is `None`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Transport {
    /// What carries the packets.
    pub lower: Lower,
    /// Whether they go to a group. The RFC makes this the default, but what says neither is always
    /// meant to be unicast.
    pub multicast: bool,
    /// The receiver's UDP ports.
    pub client_port: Option<Pair<u16>>,
    /// The sender's UDP ports.
    pub server_port: Option<Pair<u16>>,
    /// The group's UDP ports.
    pub port: Option<Pair<u16>>,
    /// The channels within the connection.
    pub interleaved: Option<Pair<u8>>,
    /// Synchronization source of what the server sends.
    pub ssrc: Option<u32>,
    /// Whether the client sends (`mode=record`) or receives.
    pub record: bool,
    /// Where the client wants the packets to go.
    pub destination: Option<String>,
    /// Where the server sends the packets from.
    pub source: Option<String>,
    /// Time to live of multicast packets.
    pub ttl: Option<u8>,
}

impl Transport {
    /// Plain unicast over UDP to a pair of ports of the client.
    pub fn udp(client_port: Pair<u16>) -> Self {
        Transport { client_port: Some(client_port), ..Transport::default() }
    }

    /// Interleaved with the messages on a pair of channels.
    pub fn tcp(interleaved: Pair<u8>) -> Self {
        Transport { lower: Lower::Tcp, interleaved: Some(interleaved), ..Transport::default() }
    }

    /// The alternatives that a header offers, best first. Those of other profiles than RTP/AVP
    /// and those that are malformed are left out, so the list may be empty.
    pub fn parse_all(value: &str) -> Vec<Transport> {
        split_unquoted(value, ',').filter_map(Transport::parse).take(TRANSPORTS).collect()
    }

    /// One alternative; `None` if it is malformed or of another profile than RTP/AVP.
    pub fn parse(value: &str) -> Option<Transport> {
        let mut parts = split_unquoted(value, ';').map(str::trim);
        let profile = parts.next()?;
        let lower = match profile.to_ascii_uppercase().as_str() {
            "RTP/AVP" | "RTP/AVP/UDP" => Lower::Udp,
            "RTP/AVP/TCP" => Lower::Tcp,
            _ => return None,
        };
        let mut transport = Transport { lower, ..Transport::default() };
        for part in parts {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            transport.set(&name.trim().to_ascii_lowercase(), value.trim().trim_matches('"'))?;
        }
        Some(transport)
    }

    fn set(&mut self, name: &str, value: &str) -> Option<()> {
        match name {
            "unicast" => self.multicast = false,
            "multicast" => self.multicast = true,
            "client_port" => self.client_port = Some(port_pair(value)?),
            "server_port" => self.server_port = Some(port_pair(value)?),
            "port" => self.port = Some(port_pair(value)?),
            "interleaved" => self.interleaved = Some(channel_pair(value)?),
            // Several servers pad it with blanks, or leave leading zeros out.
            "ssrc" => self.ssrc = u32::from_str_radix(value, 16).ok(),
            // "receive" is what drafts before the RFC called it.
            "mode" => self.record = ["record", "receive"].iter().any(|m| value.eq_ignore_ascii_case(m)),
            "destination" => self.destination = host(value),
            "source" => self.source = host(value),
            "ttl" => self.ttl = Some(value.parse().ok()?),
            _ => {}
        }
        Some(())
    }
}

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.lower {
            Lower::Udp => "RTP/AVP",
            Lower::Tcp => "RTP/AVP/TCP",
        })?;
        f.write_str(if self.multicast { ";multicast" } else { ";unicast" })?;
        if let Some(destination) = &self.destination {
            write!(f, ";destination={destination}")?;
        }
        if let Some(source) = &self.source {
            write!(f, ";source={source}")?;
        }
        for (name, pair) in
            [("client_port", self.client_port), ("server_port", self.server_port), ("port", self.port)]
        {
            if let Some(Pair { rtp, rtcp }) = pair {
                write!(f, ";{name}={rtp}-{rtcp}")?;
            }
        }
        if let Some(Pair { rtp, rtcp }) = self.interleaved {
            write!(f, ";interleaved={rtp}-{rtcp}")?;
        }
        if let Some(ttl) = self.ttl {
            write!(f, ";ttl={ttl}")?;
        }
        if let Some(ssrc) = self.ssrc {
            write!(f, ";ssrc={ssrc:08X}")?;
        }
        if self.record {
            f.write_str(";mode=record")?;
        }
        Ok(())
    }
}

/// A name or an address (RFC 3986 section 3.2.2; `%` begins the zone of RFC 6874); anything else
/// would not come out again as it went in.
fn host(value: &str) -> Option<String> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "-._~:[]%".contains(c);
    (!value.is_empty() && value.chars().all(allowed)).then(|| value.to_owned())
}

/// `a-b`, or `a` alone, which means the next higher number for RTCP.
fn port_pair(value: &str) -> Option<Pair<u16>> {
    let (rtp, rtcp) = match value.split_once('-') {
        Some((rtp, rtcp)) => (rtp.trim().parse().ok()?, rtcp.trim().parse().ok()?),
        None => {
            let rtp: u16 = value.parse().ok()?;
            (rtp, rtp.checked_add(1)?)
        }
    };
    (rtp != 0 && rtcp != 0).then_some(Pair { rtp, rtcp })
}

fn channel_pair(value: &str) -> Option<Pair<u8>> {
    let (rtp, rtcp) = match value.split_once('-') {
        Some((rtp, rtcp)) => (rtp.trim().parse().ok()?, rtcp.trim().parse().ok()?),
        None => {
            let rtp: u8 = value.parse().ok()?;
            (rtp, rtp.checked_add(1)?)
        }
    };
    Some(Pair { rtp, rtcp })
}

/// Splits at a separator, except within double quotes.
pub(crate) fn split_unquoted(value: &str, separator: char) -> impl Iterator<Item = &str> {
    let (mut quoted, mut escaped) = (false, false);
    value.split(move |c| {
        let was_escaped = core::mem::take(&mut escaped);
        match c {
            '\\' if quoted && !was_escaped => escaped = true,
            '"' if !was_escaped => quoted = !quoted,
            _ => {}
        }
        c == separator && !quoted
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_players_send_is_understood() {
        let ffmpeg = Transport::parse("RTP/AVP/UDP;unicast;client_port=5000-5001").unwrap();
        assert_eq!(ffmpeg, Transport::udp(Pair { rtp: 5000, rtcp: 5001 }));
        let vlc = Transport::parse("RTP/AVP/TCP;unicast;interleaved=0-1").unwrap();
        assert_eq!(vlc, Transport::tcp(Pair { rtp: 0, rtcp: 1 }));
        let publisher = Transport::parse("RTP/AVP/TCP;unicast;interleaved=2-3;mode=record").unwrap();
        assert!(publisher.record && publisher.interleaved == Some(Pair { rtp: 2, rtcp: 3 }));
        let quoted = Transport::parse("RTP/AVP;unicast;client_port=4588;mode=\"PLAY\"").unwrap();
        assert_eq!(quoted, Transport::udp(Pair { rtp: 4588, rtcp: 4589 }));
    }

    #[test]
    fn what_cameras_answer_is_understood() {
        let answer = "RTP/AVP;unicast;destination=10.0.0.2;source=10.0.0.9;client_port=5000-5001;\
                      server_port=8210-8211;ssrc=4c0ffee;mode=\"play\"";
        let transport = Transport::parse(answer).unwrap();
        assert_eq!(transport.server_port, Some(Pair { rtp: 8210, rtcp: 8211 }));
        assert_eq!(transport.source.as_deref(), Some("10.0.0.9"));
        assert_eq!(transport.ssrc, Some(0x4c0_ffee));
        assert!(!transport.record);
    }

    #[test]
    fn unusable_alternatives_are_left_out_in_order() {
        let offered = "RTP/SAVP;unicast;client_port=1-2,RTP/AVP;multicast;ttl=9;port=7000-7001, \
                       RTP/AVP;client_port=0-70000,RTP/AVP/TCP;unicast";
        let usable = Transport::parse_all(offered);
        assert_eq!(usable.len(), 2);
        assert!(usable[0].multicast && usable[0].ttl == Some(9));
        assert_eq!(usable[1].lower, Lower::Tcp);
    }

    #[test]
    fn what_is_no_address_is_left_out() {
        let transport = Transport::parse("RTP/AVP;destination=\"a;ssrc=1\";source=[fe80::1%eth0]").unwrap();
        assert_eq!(transport.destination, None);
        assert_eq!(transport.source.as_deref(), Some("[fe80::1%eth0]"));
    }

    #[test]
    fn ports_stay_within_their_range() {
        assert_eq!(Transport::parse("RTP/AVP;client_port=65535"), None);
        assert_eq!(Transport::parse("RTP/AVP/TCP;interleaved=255"), None);
        assert_eq!(Transport::parse("RTP/AVP;client_port=0-1"), None);
    }

    proptest! {
        #[test]
        fn text_never_panics(text in ".{0,80}") {
            let _ = Transport::parse_all(&text);
            let _ = Transport::parse(&format!("RTP/AVP;{text}"));
        }

        #[test]
        fn what_is_written_is_read_again(
            rtp in 1u16..u16::MAX, channel in 0u8..255, ssrc: u32, tcp: bool, record: bool, ttl: Option<u8>
        ) {
            let mut transport = if tcp {
                Transport::tcp(Pair { rtp: channel, rtcp: channel + 1 })
            } else {
                Transport::udp(Pair { rtp, rtcp: rtp + 1 })
            };
            transport.ssrc = Some(ssrc);
            transport.record = record;
            transport.ttl = ttl;
            transport.multicast = ttl.is_some();
            transport.source = Some("10.1.2.3".to_owned());
            prop_assert_eq!(Transport::parse(&transport.to_string()), Some(transport));
        }
    }
}
