//! Clients that hold connections, join and leave all the time, or guess.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::Result;
use socket2::{Domain, Socket, Type};

use crate::relay::{HTTP_PORT, RTSP_PORT};
use crate::trouble::background::{Background, Work};
use crate::trouble::fault::{Storm, Trouble};
use crate::trouble::places::{ATTACKERS, RELAY_ATTACKED};
use crate::trouble::scene::{STREAMS, Scene};

/// Connections that are held, if the relay takes them.
const IDLE: usize = 10_000;
/// How long a client waits for a connection or an answer.
const PATIENCE: Duration = Duration::from_millis(300);
/// Before it tries again where it was refused.
const AGAIN: Duration = Duration::from_millis(10);
/// Guesses that are sent at once.
const GUESSES: u64 = 16;

/// Many connections on which nothing is said. What was done is how many were open.
pub(super) fn idle(scene: &mut Scene<'_>) -> Result<Box<dyn Trouble>> {
    Ok(Box::new(Storm(vec![connections_at(scene, IDLE, IDLE)])))
}

/// Opens `opened` connections, one after the other, and keeps the newest `held` of them open.
pub(super) fn connections_at(scene: &Scene<'_>, opened: usize, held: usize) -> Background {
    Background::start(&scene.places.attacker, move |work| {
        let mut open = VecDeque::new();
        for number in 0..opened {
            if work.is_over() {
                return;
            }
            let port = if number.is_multiple_of(2) { RTSP_PORT } else { HTTP_PORT };
            if let Ok(socket) = connect(ATTACKERS[number % ATTACKERS.len()], port) {
                open.push_back(socket);
                work.add(1);
            }
            if open.len() > held {
                open.pop_front();
                std::thread::sleep(AGAIN);
            }
        }
        while !work.is_over() {
            std::thread::sleep(AGAIN);
        }
    })
}

/// Viewers that leave as soon as something comes.
pub(super) fn joins(scene: &mut Scene<'_>) -> Result<Box<dyn Trouble>> {
    Ok(Box::new(Storm((0..4).map(|_| joins_at(scene)).collect())))
}

/// One viewer after the other joins and leaves.
pub(super) fn joins_at(scene: &Scene<'_>) -> Background {
    let request = format!("GET /{}.ts HTTP/1.1\r\nHost: x\r\n\r\n", STREAMS[0]);
    Background::start(&scene.places.attacker, move |work| {
        for attacker in ATTACKERS.into_iter().cycle() {
            if work.is_over() {
                return;
            }
            match once(attacker, &request) {
                Ok(()) => work.add(1),
                Err(_) => std::thread::sleep(AGAIN),
            }
        }
    })
}

fn once(from: Ipv4Addr, request: &str) -> std::io::Result<()> {
    let mut socket = connect(from, HTTP_PORT)?;
    socket.write_all(request.as_bytes())?;
    match socket.read(&mut [0; 4096])? {
        0 => Err(ErrorKind::UnexpectedEof.into()),
        _ => Ok(()),
    }
}

/// Tokens of the right to control are guessed. What was done is how many guesses were answered.
pub(super) fn guesses(scene: &mut Scene<'_>) -> Result<Box<dyn Trouble>> {
    let one = |attacker| Background::start(&scene.places.attacker, move |work| guess(attacker, work));
    Ok(Box::new(Storm(ATTACKERS.into_iter().take(2).map(one).collect())))
}

fn guess(from: Ipv4Addr, work: &Work) {
    let mut number = 0u64;
    while !work.is_over() {
        let Ok(mut socket) = connect(from, HTTP_PORT) else {
            std::thread::sleep(AGAIN);
            continue;
        };
        while !work.is_over() {
            let mut requests = String::new();
            for _ in 0..GUESSES {
                number += 1;
                requests += "GET /api/v1/relay HTTP/1.1\r\nHost: x\r\n";
                requests += &format!("Authorization: Bearer guess-{number}\r\n\r\n");
            }
            match answers(&mut socket, &requests) {
                Ok(count) => work.add(count),
                Err(_) => break,
            }
        }
    }
}

/// How many answers came to these requests.
fn answers(socket: &mut TcpStream, requests: &str) -> std::io::Result<u64> {
    const HEAD: &[u8] = b"HTTP/1.1 4";
    socket.write_all(requests.as_bytes())?;
    let (mut bytes, mut buffer) = (Vec::new(), [0; 16 << 10]);
    loop {
        let read = socket.read(&mut buffer)?;
        bytes.extend_from_slice(&buffer[..read]);
        let count = bytes.windows(HEAD.len()).filter(|window| *window == HEAD).count() as u64;
        if count >= GUESSES || (read == 0 && count > 0) {
            return Ok(count);
        }
        if read == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
    }
}

/// A connection to the relay from one of the attackers' addresses.
fn connect(from: Ipv4Addr, port: u16) -> std::io::Result<TcpStream> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    socket.bind(&SocketAddr::from((from, 0)).into())?;
    socket.connect_timeout(&SocketAddr::from((RELAY_ATTACKED, port)).into(), PATIENCE)?;
    let socket = TcpStream::from(socket);
    socket.set_read_timeout(Some(PATIENCE))?;
    socket.set_write_timeout(Some(PATIENCE))?;
    Ok(socket)
}
