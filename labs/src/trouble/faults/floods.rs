//! More packets than any client has reason to send.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use nix::sys::socket::{setsockopt, sockopt};

use crate::receive::{Connection, Target};
use crate::trouble::background::{Background, Work};
use crate::trouble::fault::{Storm, Trouble};
use crate::trouble::places::RELAY_ATTACKED;
use crate::trouble::scene::{STREAMS, Scene};

/// Bytes of RTCP a second.
const RTCP_RATE: f64 = 100e6;
/// Reports that are written at once.
const REPORTS: usize = 1800;
/// Datagrams a second, to one port after the other.
const JUNK_RATE: f64 = 200e3;
/// Datagrams of one send, and bytes of each.
const SEGMENTS: usize = 40;
const SEGMENT: usize = 100;
/// How long each port gets them before it is the next one's turn.
const TURN: Duration = Duration::from_millis(200);

/// A player by RTSP over TCP that sends nothing but reports. What was done is how many bytes.
pub(super) fn rtcp(scene: &mut Scene<'_>) -> Result<Box<dyn Trouble>> {
    let target = Target { relay: RELAY_ATTACKED, ..Target::new(STREAMS[0]) };
    let player = scene.places.attacker.run(|| Connection::rtsp(&target))?;
    player.socket().set_nonblocking(true)?;
    Ok(Box::new(Storm(vec![Background::start(&scene.places.attacker, move |work| report(&player, work))])))
}

/// Sends reports as fast as they are taken, and reads what comes, as a player does.
fn report(player: &Connection, work: &Work) {
    let reports = reports();
    let (mut at, mut media, began) = (0, vec![0; 64 << 10], Instant::now());
    while !work.is_over() {
        let mut socket = player.socket();
        while socket.read(&mut media).is_ok_and(|read| read > 0) {}
        match socket.write(&reports[at..]) {
            Ok(written) => {
                work.add(written as u64);
                at = (at + written) % reports.len();
                work.keep_to(began, RTCP_RATE);
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                std::thread::sleep(Duration::from_millis(1));
            }
            // It was sent away, which ends the matter.
            Err(_) => return,
        }
    }
}

/// Receiver reports (RFC 3550, section 6.4.2), each in a frame of RTSP (RFC 2326, section 10.12).
fn reports() -> Vec<u8> {
    let mut bytes = Vec::new();
    for number in 0..REPORTS as u32 {
        bytes.extend([b'$', 1, 0, 32, 0x81, 201, 0, 7]);
        bytes.extend(0x1234_5678_u32.to_be_bytes());
        bytes.extend(0x0F10_0F10_u32.to_be_bytes());
        bytes.extend([0x10, 0, 0, 1]);
        for word in [number, 90, 0, 0] {
            bytes.extend(word.to_be_bytes());
        }
    }
    bytes
}

/// Datagrams of noise to each UDP port that the relay has. What was done is how many.
pub(super) fn junk(scene: &mut Scene<'_>) -> Result<Box<dyn Trouble>> {
    let ports = udp_ports(scene.relay.process().pid())?;
    let socket = scene.places.attacker.run(|| UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)))?;
    setsockopt(&socket, sockopt::UdpGsoSegment, &(SEGMENT as i32))?;
    let junk = Background::start(&scene.places.attacker, move |work| {
        let mut random = fastrand::Rng::with_seed(7);
        let mut noise = vec![0; SEGMENTS * SEGMENT];
        let began = Instant::now();
        for port in ports.into_iter().cycle() {
            let turn = Instant::now();
            random.fill(&mut noise);
            while turn.elapsed() < TURN {
                if work.is_over() {
                    return;
                }
                let to = SocketAddr::from((RELAY_ATTACKED, port));
                if socket.send_to(&noise, to).is_ok() {
                    work.add(SEGMENTS as u64);
                }
                work.keep_to(began, JUNK_RATE);
            }
        }
    });
    Ok(Box::new(Storm(vec![junk])))
}

/// Those on which anything listens in the namespace of a process.
fn udp_ports(pid: u32) -> Result<Vec<u16>> {
    let table = std::fs::read_to_string(format!("/proc/{pid}/net/udp"))?;
    let port = |line: &str| {
        let (_, port) = line.split_whitespace().nth(1)?.rsplit_once(':')?;
        u16::from_str_radix(port, 16).ok()
    };
    let mut ports: Vec<u16> = table.lines().skip(1).filter_map(port).collect();
    ports.sort_unstable();
    ports.dedup();
    Some(ports).filter(|ports| !ports.is_empty()).context("the relay has no UDP port")
}
