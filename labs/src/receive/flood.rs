//! Many connections of which only the bytes are counted: the kernel drops them unread (MSG_TRUNC),
//! so that one thread keeps up with gigabits. A few are read, for the delays.

use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::socket::{MsgFlags, recv};

use super::open::{Socket, allow_many_files, connect};
use super::stamped::{Stream, ask_for_stamps};
use super::wire::interleaved;
use super::{How, Receiver, Target};
use crate::arrivals::{Arrivals, BUCKETS, bucket};
use crate::media::{Marker, monotonic_nanos, wall_nanos};

/// One connection in this many is read.
const SAMPLE: usize = 32;
/// Between two looks at the connections: fewer wake-ups, more bytes each.
const NAP: Duration = Duration::from_millis(4);
/// Bytes dropped at once.
const DROPPED: usize = 4 << 20;

/// What comes on the connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Records {
    /// Packets and nothing else.
    Bare,
    /// RTSP with RTP between its messages (RFC 2326, section 10.12).
    Interleaved,
}

/// A connection on which packets come.
#[derive(Debug)]
pub struct Connection {
    socket: TcpStream,
    /// What came together with the answer to our last request.
    early: Vec<u8>,
}

/// Connections that are being emptied. They are closed when this is dropped.
#[derive(Debug)]
pub struct Flood {
    shared: Arc<Shared>,
    record: u64,
    thread: Option<JoinHandle<Vec<Connection>>>,
}

#[derive(Debug)]
struct Shared {
    stop: AtomicBool,
    bytes: Vec<AtomicU64>,
    delays: Mutex<Vec<u64>>,
    ended: AtomicU64,
}

impl Connection {
    /// A connection that is sent packets as soon as it stands.
    pub fn bare(to: SocketAddr) -> Result<Self> {
        allow_many_files();
        Ok(Self { socket: connect(to)?, early: Vec::new() })
    }

    /// Its socket, to say something, or to read what comes.
    pub fn socket(&self) -> &TcpStream {
        &self.socket
    }

    /// A player that has asked for its stream by RTSP over TCP.
    pub fn rtsp(target: &Target) -> Result<Self> {
        let mut receiver = Receiver::open(How::RtspTcp, target)?;
        match receiver.feeds.pop().map(|feed| feed.socket) {
            Some(Socket::Tcp(socket)) => Ok(Self { socket, early: receiver.early }),
            other => anyhow::bail!("an interleaved receiver has a connection, not {other:?}"),
        }
    }
}

impl Flood {
    /// Begins to empty connections on which packets of this many bytes come.
    pub fn start(connections: Vec<Connection>, records: Records, payload: u16) -> Result<Self> {
        let shared = Arc::new(Shared {
            stop: AtomicBool::new(false),
            bytes: connections.iter().map(|one| AtomicU64::new(one.early.len() as u64)).collect(),
            delays: Mutex::new(vec![0; BUCKETS]),
            ended: AtomicU64::new(0),
        });
        let record = u64::from(payload) + if records == Records::Interleaved { 4 } else { 0 };
        let mut emptying = Emptying::new(connections, records, usize::from(payload), &shared)?;
        let thread = std::thread::spawn(move || {
            emptying.run();
            emptying.connections
        });
        Ok(Self { shared, record, thread: Some(thread) })
    }

    /// Stops, and gives the connections back. Nothing must be on its way: parts of packets are not
    /// kept.
    pub fn stop(&mut self) -> Result<Vec<Connection>> {
        self.shared.stop.store(true, Ordering::Relaxed);
        let thread = self.thread.take().context("it has been stopped before")?;
        thread.join().map_err(|_| anyhow::anyhow!("the receiving thread panicked"))
    }

    /// What has come so far, in packets. What else comes by RTSP, now and then a sender report, is
    /// far less than one.
    pub fn read(&self) -> Result<Arrivals> {
        let ended = self.shared.ended.load(Ordering::Relaxed);
        ensure!(ended == 0, "{ended} connections were ended by the relay");
        let packets = |bytes: &AtomicU64| bytes.load(Ordering::Relaxed) / self.record;
        Ok(Arrivals {
            counts: self.shared.bytes.iter().map(packets).collect(),
            delays: self.shared.delays.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            ..Arrivals::default()
        })
    }
}

impl Drop for Flood {
    fn drop(&mut self) {
        let _stopped_before = self.stop();
    }
}

struct Emptying {
    shared: Arc<Shared>,
    epoll: Epoll,
    connections: Vec<Connection>,
    records: Records,
    payload: usize,
    /// What is kept of the sampled connections: the beginning of a packet.
    rests: Vec<Vec<u8>>,
    stream: Stream,
    /// What the clock of arrival stamps is ahead of the source's.
    ahead: u64,
}

impl Emptying {
    fn new(
        mut connections: Vec<Connection>,
        records: Records,
        payload: usize,
        shared: &Arc<Shared>,
    ) -> Result<Self> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        for (index, connection) in connections.iter().enumerate() {
            epoll.add(&connection.socket, EpollEvent::new(EpollFlags::EPOLLIN, index as u64))?;
            if index % SAMPLE == 0 {
                ask_for_stamps(&connection.socket)?;
            }
        }
        let rests =
            connections.iter_mut().step_by(SAMPLE).map(|one| std::mem::take(&mut one.early)).collect();
        let ahead = wall_nanos() - monotonic_nanos();
        let (shared, stream) = (Arc::clone(shared), Stream::new());
        Ok(Self { shared, epoll, connections, records, payload, rests, stream, ahead })
    }

    fn run(&mut self) {
        let mut events = vec![EpollEvent::empty(); 1024];
        let mut nothing = vec![0; DROPPED];
        while !self.shared.stop.load(Ordering::Relaxed) {
            while let Ok(count @ 1..) = self.epoll.wait(&mut events, EpollTimeout::ZERO) {
                for event in &events[..count] {
                    let index = event.data() as usize;
                    if !self.empty(index, &mut nothing) {
                        self.shared.ended.fetch_add(1, Ordering::Relaxed);
                        let _gone_already = self.epoll.delete(&self.connections[index].socket);
                    }
                }
                if count < events.len() {
                    break;
                }
            }
            std::thread::sleep(NAP);
        }
    }

    /// Takes what is there; returns whether more may come.
    fn empty(&mut self, index: usize, nothing: &mut [u8]) -> bool {
        let bytes = &self.shared.bytes[index];
        if index.is_multiple_of(SAMPLE) {
            return self.read(index);
        }
        let flags = MsgFlags::MSG_TRUNC | MsgFlags::MSG_DONTWAIT;
        match recv(self.connections[index].socket.as_raw_fd(), nothing, flags) {
            Ok(0) => false,
            Ok(count) => {
                bytes.fetch_add(count as u64, Ordering::Relaxed);
                true
            }
            Err(error) => matches!(error, Errno::EAGAIN | Errno::EINTR),
        }
    }

    /// Reads a sampled connection and puts down how long its packets took.
    fn read(&mut self, index: usize) -> bool {
        let Ok((bytes, arrived)) = self.stream.read(&self.connections[index].socket) else { return false };
        self.shared.bytes[index].fetch_add(bytes.len() as u64, Ordering::Relaxed);
        let rest = &mut self.rests[index / SAMPLE];
        rest.extend_from_slice(bytes);
        let arrived = arrived.saturating_sub(self.ahead);
        let mut delays = self.shared.delays.lock().unwrap_or_else(PoisonError::into_inner);
        let mut take = |packet: &[u8]| {
            if let Some(marker) = Marker::parse(packet) {
                delays[bucket(arrived.saturating_sub(marker.sent_nanos))] += 1;
            }
        };
        let used = match self.records {
            Records::Interleaved => interleaved(rest, &mut |_, packet| take(packet)),
            Records::Bare => {
                rest.chunks_exact(self.payload).for_each(&mut take);
                rest.len() - rest.len() % self.payload
            }
        };
        rest.drain(..used);
        true
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::TcpListener;

    use super::*;
    use crate::media::Pulses;
    use crate::media::rtp::Pictures;

    #[test]
    fn packets_are_counted_and_their_delays_known() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let to = listener.local_addr().expect("it is bound");
        let connections = (0..SAMPLE + 1).map(|_| Connection::bare(to).expect("it is taken")).collect();
        let mut far: Vec<_> = (0..SAMPLE + 1).map(|_| listener.accept().expect("it is there").0).collect();
        let flood = Flood::start(connections, Records::Bare, 1400).expect("sockets are taken");
        let mut pictures = Pictures::new(Pulses { payload: 1400, packets: 3, per_second: 25.0 });
        for socket in &mut far {
            socket.write_all(pictures.next_picture(monotonic_nanos())).expect("the loopback takes it");
        }
        let until = std::time::Instant::now() + Duration::from_secs(20);
        while flood.read().expect("all live").total() < 3 * far.len() as u64 {
            assert!(std::time::Instant::now() < until, "{:?}", flood.read());
            std::thread::sleep(NAP);
        }
        let arrivals = flood.read().expect("all live");
        assert_eq!((arrivals.lost(3), arrivals.delays.iter().sum::<u64>()), (0, 6));
        assert!(arrivals.delay_us(0.99) < 20e6);
        far.pop();
        while flood.read().is_ok() {
            assert!(std::time::Instant::now() < until, "an end is seen");
            std::thread::sleep(NAP);
        }
    }
}
