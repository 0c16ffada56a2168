//! A viewer by WebRTC without a browser: it offers, is found, shakes hands, and opens what comes.

use std::net::{SocketAddr, SocketAddrV4, UdpSocket};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use nix::sys::socket::{setsockopt, sockopt};
use outflow_dtls::testing::Version;
use outflow_dtls::{Clock, Identity};
use outflow_ice::Credentials;
use outflow_ice::testing::answer;
use outflow_media::Time;
use outflow_srtp::{Opener, Profile};
use outflow_webrtc::testing::Browser;

use crate::media::Marker;
use crate::net::RELAY_OUT;

/// How long a handshake may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// A check is repeated, and DTLS is asked whether something is to be sent again, after this time.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Bytes of a datagram at most.
const DATAGRAM: usize = 2048;
/// Room in the socket of a viewer whose media gets through: some seconds of it.
const ROOM: usize = 32 << 20;
/// The first two bytes of a request of STUN (RFC 8489, section 5).
const STUN_REQUEST: [u8; 2] = [0, 1];

/// What a viewer is called in checks; none is told from another by the password.
fn names(number: usize) -> Credentials {
    Credentials { ufrag: format!("viewer{number}"), password: "passwordOfAllViewers0000".to_owned() }
}

/// A description of what viewer `number` receives: a picture of H.264, with repairs (RFC 4585, RFC 4588), as browsers
/// offer it, without any other codec, and without `transport-cc`: the viewer says nothing of single packets. `setup`
/// is "actpass" in an offer, "active" in an answer.
pub(crate) fn description(number: usize, identity: &Identity, setup: &str) -> String {
    let (Credentials { ufrag, password }, fingerprint) = (names(number), identity.fingerprint());
    format!(
        "v=0\r\no=- {number} 2 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\na=group:BUNDLE 0\r\n\
         m=video 9 UDP/TLS/RTP/SAVPF 96 97\r\nc=IN IP4 0.0.0.0\r\na=rtcp-mux\r\na=mid:0\r\na=recvonly\r\n\
         a=ice-ufrag:{ufrag}\r\na=ice-pwd:{password}\r\n\
         a=fingerprint:sha-256 {fingerprint}\r\na=setup:{setup}\r\n\
         a=rtpmap:96 H264/90000\r\na=rtcp-fb:96 nack\r\na=rtcp-fb:96 nack pli\r\n\
         a=fmtp:96 level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=42e01f\r\n\
         a=rtpmap:97 rtx/90000\r\na=fmtp:97 apt=96\r\n"
    )
}

/// Where a viewer comes to, and how that is called in checks.
pub(crate) struct Told {
    relay: Credentials,
    at: SocketAddr,
}

impl Told {
    /// Reads a relay's description: of its candidates, the one that viewers reach.
    pub(crate) fn read(text: &str) -> Result<Self> {
        let line = |start: &str| text.lines().find_map(|line| line.trim_end().strip_prefix(start));
        let value = |start| line(start).with_context(|| format!("no {start} in {text}")).map(str::to_owned);
        let here = RELAY_OUT.to_string();
        let candidates = text.lines().filter_map(|line| line.trim_end().strip_prefix("a=candidate:"));
        let port = |line: &str| match line.split(' ').collect::<Vec<_>>()[..] {
            [_, "1", by, _, ip, port, ..] if ip == here && by.eq_ignore_ascii_case("udp") => {
                port.parse().ok()
            }
            _ => None,
        };
        let port: Option<u16> = candidates.into_iter().find_map(port);
        let port = port.with_context(|| format!("no candidate at {here} in {text}"))?;
        let relay = Credentials { ufrag: value("a=ice-ufrag:")?, password: value("a=ice-pwd:")? };
        Ok(Self { relay, at: SocketAddr::from((RELAY_OUT, port)) })
    }
}

/// A viewer that has come.
pub(crate) struct Viewer {
    wire: UdpSocket,
    browser: Browser,
    own: Credentials,
    began: Instant,
    opener: Opener,
    /// What packets are sealed with.
    pub(crate) profile: Profile,
    last: Option<u32>,
}

/// What became of the media of a viewer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Opened {
    /// Packets that were opened.
    pub(crate) packets: u64,
    /// Those that were not authentic, or came twice.
    pub(crate) refused: u64,
    /// Those of them that the source did not send behind the packet before.
    pub(crate) strange: u64,
}

impl Viewer {
    /// Comes from this address to where it was told, and shakes hands. With `is_open`, media gets through to it.
    ///
    /// # Errors
    /// It does not get in.
    pub(crate) fn come(
        (number, from): (usize, SocketAddrV4),
        told: Told,
        (identity, version): (&Identity, Version),
        is_open: bool,
    ) -> Result<Self> {
        let wire = UdpSocket::bind(from).with_context(|| format!("cannot send from {from}"))?;
        wire.connect(told.at)?;
        if is_open {
            setsockopt(&wire, sockopt::RcvBufForce, &ROOM).context("SO_RCVBUFFORCE")?;
        }
        wire.set_read_timeout(Some(LOOK_EVERY))?;
        let (began, own) = (Instant::now(), names(number));
        let clock = (Time::ZERO, Clock(began));
        let mut browser = Browser::of_version(version, clock, identity, &own.ufrag, told.relay);
        let mut buffer = [0; DATAGRAM];
        let mut check_at = began;
        while browser.profile().is_none() {
            ensure!(began.elapsed() < PATIENCE, "viewer {number} does not get in");
            if check_at <= Instant::now() {
                wire.send(&browser.check())?;
                check_at += LOOK_EVERY;
            }
            match wire.recv(&mut buffer) {
                Ok(length) if buffer.starts_with(&STUN_REQUEST) => {
                    wire.send(&answer(&buffer[..length], &own))?;
                    continue;
                }
                Ok(length) => browser.handle_datagram(Time::ZERO + began.elapsed(), &buffer[..length]),
                Err(error) if is_early(&error) => browser.handle_timeout(Time::ZERO + began.elapsed()),
                Err(error) => bail!("viewer {number}: {error}"),
            }
            for datagram in browser.sends() {
                wire.send(&datagram)?;
            }
        }
        wire.set_nonblocking(true)?;
        let ((_, opener), profile) = browser.srtp().zip(browser.profile()).context("it has keys")?;
        Ok(Self { wire, browser, own, began, opener, profile, last: None })
    }

    /// Says that it still wants to be sent to (RFC 7675).
    pub(crate) fn consent(&self) -> Result<()> {
        self.wire.send(&self.browser.check())?;
        Ok(())
    }

    /// Reads all that has come: the relay's checks are answered, media is opened.
    ///
    /// # Errors
    /// The relay has said that it is gone.
    pub(crate) fn read(&mut self) -> Result<Opened> {
        let mut opened = Opened::default();
        let mut buffer = [0; DATAGRAM];
        loop {
            let length = match self.wire.recv(&mut buffer) {
                Ok(length) => length,
                Err(error) if is_early(&error) => return Ok(opened),
                Err(error) => bail!("a viewer: {error}"),
            };
            let datagram = &mut buffer[..length];
            if datagram.starts_with(&STUN_REQUEST) {
                self.wire.send(&answer(datagram, &self.own))?;
            } else if datagram[0] >> 6 == 2 && !outflow_rtp::is_rtcp(datagram) {
                self.open(datagram, &mut opened);
            } else {
                self.browser.handle_datagram(Time::ZERO + self.began.elapsed(), datagram);
                self.browser.sends();
                ensure!(!self.browser.is_closed(), "the relay has ended a viewer");
            }
        }
    }

    fn open(&mut self, datagram: &mut [u8], opened: &mut Opened) {
        let Ok(length) = self.opener.open(datagram) else {
            opened.refused += 1;
            return;
        };
        opened.packets += 1;
        let number = Marker::parse(&datagram[..length]).map(|marker| marker.datagram);
        let follows = number.is_some_and(|number| self.last.is_none_or(|last| number > last));
        opened.strange += u64::from(!follows);
        self.last = number.or(self.last);
    }
}

fn is_early(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_the_candidates_the_one_is_taken_that_viewers_reach() {
        let text = format!(
            "v=0\r\na=ice-ufrag:abcd\r\na=ice-pwd:0123456789012345678901\r\n\
             a=candidate:1 1 udp 2130706431 10.66.1.1 4000 typ host\r\n\
             a=candidate:2 1 UDP 2130706175 {RELAY_OUT} 4001 typ host\r\n"
        );
        let told = Told::read(&text).expect("all is there");
        assert_eq!((told.at, told.relay.ufrag.as_str()), (SocketAddr::from((RELAY_OUT, 4001)), "abcd"));
        assert!(Told::read(&text.replace("a=ice-pwd", "a=other")).is_err());
        assert!(Told::read(&text.replace(&format!("{RELAY_OUT} "), "10.66.9.1 ")).is_err());
    }
}
