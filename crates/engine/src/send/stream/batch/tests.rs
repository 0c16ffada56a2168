//! Orders to many connections, with a ring and without: the same comes of it.

use std::io::{PipeReader, Read};
use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use outflow_uring::testing::{ring, tcp};

use super::*;
use crate::message::{Framing, TrackChannel, WriteSide};
use crate::send::stream::tests::pieces;

/// Connections by key, each of which several keys may stand for.
struct Sinks(Vec<(Connection, Framing)>);

impl Connections for Sinks {
    fn connection(&mut self, key: SinkKey) -> Option<(&mut Connection, &Framing)> {
        let count = self.0.len();
        self.0.get_mut(key.0 % count).map(|(connection, framing)| (connection, &*framing))
    }
}

/// A ring if there is one, and none.
fn ways() -> impl Iterator<Item = Uring> {
    ring().into_iter().chain([Uring::without()])
}

fn keys(count: usize) -> Vec<SinkKey> {
    (0..count).map(SinkKey).collect()
}

fn interleaved(channel: u8) -> Framing {
    Framing::Interleaved(vec![TrackChannel { track: 0, rtp: channel, rtcp: channel + 1 }])
}

/// What the receiver of a connection with this framing gets.
fn expected(bodies: &[Vec<u8>], framing: &Framing) -> Vec<u8> {
    let framed = |body: &Vec<u8>| match framing {
        Framing::Raw => body.clone(),
        Framing::Interleaved(channels) => {
            let length = (body.len() as u16).to_be_bytes();
            [&[b'$', channels[0].rtp], &length[..], body].concat()
        }
    };
    bodies.iter().map(framed).collect::<Vec<_>>().concat()
}

/// Sends what each connection has not got yet, as the core would, until all have all of it.
fn send_all(uring: &mut Uring, sinks: &mut Sinks, bodies: &[Vec<u8>]) {
    let pieces = pieces(bodies);
    let mut next = vec![0; sinks.0.len()];
    let mut sender = StreamSender::default();
    let until = Instant::now() + Duration::from_secs(30);
    while next.iter().any(|next| *next < bodies.len()) {
        assert!(Instant::now() < until, "stuck at {next:?}");
        for (connection, _) in &mut sinks.0 {
            connection.flush().expect("the other end reads");
        }
        // All that stand at the same packet are one order.
        let mut starts: Vec<_> = next.iter().copied().filter(|next| *next < bodies.len()).collect();
        starts.sort();
        starts.dedup();
        for start in starts {
            let members: Vec<_> = keys(next.len()).into_iter().filter(|key| next[key.0] == start).collect();
            let end = bodies.len().min(start + 60);
            let flush = Flush { pieces: &pieces[start..end], end: end as Seq };
            sender.send(uring, flush, &members, sinks, |key, outcome| {
                next[key.0] = match outcome {
                    Outcome::Sent => end,
                    Outcome::Blocked(seq) => seq as usize,
                    Outcome::Gone => panic!("the other end reads"),
                };
            });
        }
    }
    while sinks.0.iter_mut().any(|(connection, _)| !connection.flush().expect("the other end reads")) {
        assert!(Instant::now() < until, "the last bytes do not go");
    }
}

fn read_to_end(mut from: impl Read + Send + 'static) -> std::thread::JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut got = Vec::new();
        from.read_to_end(&mut got).expect("readable");
        got
    })
}

fn small_buffer(stream: TcpStream) -> OwnedFd {
    socket2::SockRef::from(&stream).set_send_buffer_size(1).expect("a size");
    stream.into()
}

#[test]
fn every_kind_of_connection_gets_the_same_bytes_both_ways_however_little_it_takes_at_once() {
    let bodies: Vec<Vec<u8>> = (0..300_usize).map(|i| vec![i as u8; 1 + i * 37 % 2000]).collect();
    for mut uring in ways() {
        let (mut sinks, mut readers) = (Sinks(Vec::new()), Vec::new());
        let framings = [Framing::Raw, interleaved(0), interleaved(4), Framing::Raw, interleaved(0)];
        for framing in &framings {
            let (ours, theirs) = tcp();
            sinks.0.push((Connection::new(WriteSide::Own(ours.into()), &mut uring), framing.clone()));
            readers.push(read_to_end(theirs));
        }
        let (ours, theirs) = tcp();
        sinks.0.push((Connection::new(WriteSide::Own(small_buffer(ours)), &mut uring), Framing::Raw));
        readers.push(read_to_end(theirs));
        let (ours, theirs) = UnixStream::pair().expect("pair");
        ours.set_nonblocking(true).expect("nonblocking");
        sinks.0.push((Connection::new(WriteSide::Own(ours.into()), &mut uring), interleaved(2)));
        readers.push(read_to_end(theirs));
        let (theirs, ours): (PipeReader, _) = std::io::pipe().expect("pipe");
        let ours = OwnedFd::from(ours);
        rustix::io::ioctl_fionbio(&ours, true).expect("nonblocking");
        sinks.0.push((Connection::new(WriteSide::Own(ours), &mut uring), Framing::Raw));
        readers.push(read_to_end(theirs));
        send_all(&mut uring, &mut sinks, &bodies);
        let framings: Vec<_> = sinks.0.iter().map(|(_, framing)| framing.clone()).collect();
        sinks.0.into_iter().for_each(|(connection, _)| connection.close(&mut uring));
        for (index, (reader, framing)) in readers.into_iter().zip(framings).enumerate() {
            let got = reader.join().expect("reader");
            assert!(got == expected(&bodies, &framing), "sink {index}, ring: {}", uring.works());
        }
    }
}

#[test]
fn a_blocked_connection_is_told_from_where_and_goes_on_when_it_is_writable() {
    for mut uring in ways() {
        let pairs = [tcp(), tcp()];
        let (ends, readers): (Vec<_>, Vec<_>) = pairs.into_iter().unzip();
        let mut sinks = Sinks(
            ends.into_iter()
                .map(|end| (Connection::new(WriteSide::Own(end.into()), &mut uring), Framing::Raw))
                .collect(),
        );
        let bodies = vec![vec![1; 30_000]; 40];
        let pieces = pieces(&bodies);
        let flush = Flush { pieces: &pieces, end: 40 };
        let mut sender = StreamSender::default();
        let (mut blocked, mut sent) = ([0; 2], 0);
        while blocked.contains(&0) {
            sender.send(&mut uring, flush, &keys(2), &mut sinks, |key, outcome| match outcome {
                Outcome::Blocked(seq) => blocked[key.0] = seq,
                Outcome::Sent => sent += 1,
                Outcome::Gone => panic!("it was not closed"),
            });
        }
        let mut again = Vec::new();
        sender.send(&mut uring, flush, &keys(2), &mut sinks, |_, outcome| again.push(outcome));
        for (outcome, (connection, _)) in again.iter().zip(&sinks.0) {
            assert!(!connection.has_unsent() || *outcome == Outcome::Blocked(0), "{outcome:?}");
        }
        let mut rest = vec![0; 1 << 20];
        for (mut reader, (connection, _)) in readers.into_iter().zip(&mut sinks.0) {
            reader.set_read_timeout(Some(Duration::from_millis(1))).expect("timeout");
            let until = Instant::now() + Duration::from_secs(10);
            while !connection.flush().expect("alive") {
                assert!(Instant::now() < until, "it reads");
                let _ = reader.read(&mut rest);
            }
        }
    }
}

#[test]
fn a_connection_that_its_peer_closed_is_gone_and_the_others_get_theirs() {
    for mut uring in ways() {
        let mut pairs: Vec<_> = (0..5).map(|_| tcp()).collect();
        drop(pairs.remove(2).1);
        let (broken, theirs) = tcp();
        drop(theirs);
        let mut sinks = Sinks(Vec::new());
        let mut readers = Vec::new();
        for (ours, theirs) in pairs {
            sinks.0.push((Connection::new(WriteSide::Own(ours.into()), &mut uring), Framing::Raw));
            readers.push(theirs);
        }
        sinks.0.insert(2, (Connection::new(WriteSide::Own(broken.into()), &mut uring), Framing::Raw));
        let bodies = [vec![5; 700]];
        let pieces = pieces(&bodies);
        let mut sender = StreamSender::default();
        let (mut gone, mut rounds) = (false, 0);
        let until = Instant::now() + Duration::from_secs(5);
        while !gone {
            assert!(Instant::now() < until, "the reset does not arrive");
            let flush = Flush { pieces: &pieces, end: 1 };
            sender.send(&mut uring, flush, &keys(5), &mut sinks, |key, outcome| match outcome {
                Outcome::Gone => gone |= key == SinkKey(2),
                outcome => assert_eq!(outcome, Outcome::Sent, "{key:?}"),
            });
            rounds += 1;
        }
        for mut reader in readers {
            let mut got = vec![0; 700 * rounds];
            reader.read_exact(&mut got).expect("all rounds");
            assert!(got.iter().all(|byte| *byte == 5));
        }
    }
}

#[test]
fn more_receivers_than_a_batch_holds_all_get_their_packets() {
    for mut uring in ways() {
        let pairs: Vec<_> = (0..4).map(|_| tcp()).collect();
        let (ends, readers): (Vec<_>, Vec<_>) = pairs.into_iter().unzip();
        let mut sinks = Sinks(
            ends.into_iter()
                .map(|end| (Connection::new(WriteSide::Own(end.into()), &mut uring), Framing::Raw))
                .collect(),
        );
        let bodies = [vec![3; 11]];
        let pieces = pieces(&bodies);
        let members = keys(2 * BATCH + 4);
        let mut told = vec![0; members.len()];
        let flush = Flush { pieces: &pieces, end: 1 };
        StreamSender::default().send(&mut uring, flush, &members, &mut sinks, |key, outcome| {
            assert_eq!(outcome, Outcome::Sent);
            told[key.0] += 1;
        });
        assert!(told.iter().all(|times| *times == 1));
        for mut reader in readers {
            reader.read_exact(&mut vec![0; 11 * members.len() / 4]).expect("each packet");
        }
    }
}

#[test]
fn more_framings_than_are_kept_are_served_all_the_same() {
    for mut uring in ways() {
        let (mut sinks, mut readers) = (Sinks(Vec::new()), Vec::new());
        for channel in 0..(FRAMINGS_MAX + 3) as u8 {
            let (ours, theirs) = tcp();
            sinks.0.push((Connection::new(WriteSide::Own(ours.into()), &mut uring), interleaved(channel)));
            readers.push(theirs);
        }
        let bodies = [vec![9; 20]];
        let pieces = pieces(&bodies);
        let mut sender = StreamSender::default();
        for _ in 0..2 {
            let flush = Flush { pieces: &pieces, end: 1 };
            sender.send(&mut uring, flush, &keys(sinks.0.len()), &mut sinks, |_, outcome| {
                assert_eq!(outcome, Outcome::Sent);
            });
            for (channel, mut reader) in readers.iter().enumerate() {
                let mut got = [0; 24];
                reader.read_exact(&mut got).expect("a packet");
                assert_eq!(got[..5], [b'$', channel as u8, 0, 20, 9]);
            }
        }
    }
}

#[test]
fn when_the_ring_fails_packets_go_without_it() {
    let Some(mut uring) = ring() else { return };
    let pairs: Vec<_> = (0..3).map(|_| tcp()).collect();
    let (ends, readers): (Vec<_>, Vec<_>) = pairs.into_iter().unzip();
    let connection = |end: TcpStream, uring: &mut Uring| {
        (Connection::new(WriteSide::Own(end.into()), uring), Framing::Raw)
    };
    let mut sinks = Sinks(ends.into_iter().map(|end| connection(end, &mut uring)).collect());
    let bodies = [vec![3; 700]];
    let pieces = pieces(&bodies);
    uring.put_something_else_in_its_place();
    for round in 0..3 {
        let (flush, mut sent) = (Flush { pieces: &pieces, end: 1 }, 0);
        StreamSender::default().send(&mut uring, flush, &keys(3), &mut sinks, |_, outcome| {
            sent += usize::from(outcome == Outcome::Sent);
        });
        assert_eq!((sent, uring.works()), (3, false), "round {round}");
    }
    sinks.0.into_iter().for_each(|(connection, _)| connection.close(&mut uring));
    for mut reader in readers {
        let mut got = Vec::new();
        reader.read_to_end(&mut got).expect("readable, and closed");
        assert_eq!(got, vec![3; 3 * 700]);
    }
}
