//! Publishes the synthetic stream by RTSP, as a transport stream in RTP (RFC 2326, section 10.11; RFC 2250).

use std::io::Write;
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use nix::sys::socket::{MsgFlags, recv};

use super::{Sender, Shape, Synthetic};
use crate::net::Namespace;
use crate::receive::{Client, pair_of_ports};

/// What is published (the payload type is that of RFC 3551, section 6).
const DESCRIPTION: &str = "v=0\r\no=- 0 0 IN IP4 0.0.0.0\r\ns=lab\r\nt=0 0\r\n\
    m=video 0 RTP/AVP 33\r\na=rtpmap:33 MP2T/90000\r\na=control:streamid=0\r\n";
const PAYLOAD_TYPE: u8 = 33;
const TICKS_PER_SECOND: f64 = 90_000.0;
const SSRC: u32 = 0x1AB5_0001;
/// RTSP sessions end when nothing is heard of a client for a minute.
const KEEP_ALIVE_EVERY: Duration = Duration::from_secs(15);

/// How packets are carried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// RTP over UDP.
    Udp,
    /// RTP within the connection.
    Tcp,
}

impl Sender {
    /// Publishes the synthetic stream by RTSP: `path` has its query, as in `live?token=…`.
    pub fn record(namespace: &Namespace, to: SocketAddr, path: &str, by: By, shape: Shape) -> Result<Self> {
        let mut recorder = namespace.run(|| Recorder::start(to, path, by))?;
        let connection = recorder.client.socket.try_clone()?;
        let ticks = TICKS_PER_SECOND / shape.datagrams_per_second();
        let mut number = 0;
        Ok(Self::spawn(shape, Synthetic::new(shape), Some(connection), move |datagram| {
            let _seen_by_what_is_lost = recorder.send(number, (number as f64 * ticks) as u64, datagram);
            number += 1;
        }))
    }
}

struct Recorder {
    client: Client,
    out: Out,
    told: Instant,
}

/// Where packets are written to.
enum Out {
    Udp {
        rtp: UdpSocket,
        /// It only stays open: reports come to it.
        _rtcp: UdpSocket,
    },
    Tcp(TcpStream),
}

impl Recorder {
    fn start(to: SocketAddr, path: &str, by: By) -> Result<Self> {
        let mut client = Client::connect(to, path)?;
        client.announce(DESCRIPTION)?;
        let out = match by {
            By::Tcp => {
                client.set_up_all("RTP/AVP/TCP;unicast;interleaved=0-1;mode=record")?;
                Out::Tcp(client.socket.try_clone()?)
            }
            By::Udp => {
                let (rtp, rtcp) = pair_of_ports()?;
                let port = rtp.local_addr()?.port();
                let ports = format!("client_port={port}-{}", port + 1);
                let answered = client.set_up_all(&format!("RTP/AVP;unicast;{ports};mode=record"))?;
                rtp.connect((to.ip(), server_port(&answered).with_context(|| answered.clone())?))?;
                Out::Udp { rtp, _rtcp: rtcp }
            }
        };
        client.record()?;
        Ok(Self { client, out, told: Instant::now() })
    }

    fn send(&mut self, number: u64, ticks: u64, datagram: &[u8]) -> Result<()> {
        let packet = packet(number, ticks, datagram);
        match &mut self.out {
            Out::Udp { rtp, .. } => {
                rtp.send(&packet)?;
            }
            Out::Tcp(connection) => {
                let length = u16::try_from(packet.len())?.to_be_bytes();
                connection.write_all(&[&[b'$', 0][..], &length, &packet].concat())?;
            }
        }
        if self.told.elapsed() > KEEP_ALIVE_EVERY {
            self.told = Instant::now();
            self.client.keep_alive()?;
        }
        // Answers and reports, which nothing is to be learned from.
        let socket = self.client.socket.as_raw_fd();
        while recv(socket, &mut [0; 4096], MsgFlags::MSG_DONTWAIT).is_ok_and(|read| read > 0) {}
        Ok(())
    }
}

fn packet(number: u64, ticks: u64, payload: &[u8]) -> Vec<u8> {
    let (sequence, time) = ((number as u16).to_be_bytes(), (ticks as u32).to_be_bytes());
    [&[0x80, PAYLOAD_TYPE][..], &sequence, &time, &SSRC.to_be_bytes(), payload].concat()
}

/// The first of the ports in a transport that was answered.
fn server_port(transport: &str) -> Option<u16> {
    let ports = transport.split(';').find_map(|part| part.trim().strip_prefix("server_port="))?;
    ports.split('-').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_have_their_place_before_their_payload() {
        let bytes = packet(0x1_0002, 0x1_0000_0003, &[0x47, 9]);
        assert_eq!(bytes[..8], [0x80, 33, 0, 2, 0, 0, 0, 3]);
        assert_eq!((&bytes[8..12], &bytes[12..]), (&SSRC.to_be_bytes()[..], &[0x47, 9][..]));
    }

    #[test]
    fn the_relays_port_is_found_in_its_answer() {
        let answered = "RTP/AVP;unicast;client_port=5000-5001;server_port=30004-30005;source=10.66.1.1";
        assert_eq!(server_port(answered), Some(30_004));
        assert_eq!(server_port("RTP/AVP/TCP;interleaved=0-1"), None);
    }
}
