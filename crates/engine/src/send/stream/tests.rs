//! Writes to a connection whose other end reads, or does not.

use std::io::Read;
use std::os::unix::net::UnixStream;

use outflow_media::Time;

use super::*;
use crate::message::TrackChannel;
use crate::send::Worth;

fn pair() -> (Connection, UnixStream) {
    let (ours, theirs) = UnixStream::pair().expect("pair");
    ours.set_nonblocking(true).expect("nonblocking");
    (Connection::new(WriteSide::Own(ours.into()), &mut Uring::without()), theirs)
}

pub(super) fn pieces(bodies: &[Vec<u8>]) -> Vec<Piece<'_>> {
    bodies
        .iter()
        .enumerate()
        .map(|(i, body)| Piece {
            seq: i as Seq,
            track: 0,
            header: &[],
            body,
            bytes: None,
            is_preamble: false,
            layer: None,
            ends: None,
            worth: Worth::most(Time::ZERO),
        })
        .collect()
}

#[test]
fn interleaved_packets_have_channel_and_length() {
    let (mut connection, mut theirs) = pair();
    let framing = Framing::Interleaved(vec![TrackChannel { track: 0, rtp: 4, rtcp: 5 }]);
    let bodies = [vec![1; 3], vec![2; 300]];
    assert_eq!(connection.send(&pieces(&bodies), 2, &framing), Outcome::Sent);
    let mut got = vec![0; 4 + 3 + 4 + 300];
    theirs.read_exact(&mut got).expect("all of it");
    assert_eq!(got[..7], [b'$', 4, 0, 3, 1, 1, 1]);
    assert_eq!(got[7..11], [b'$', 4, 1, 44]);
}

#[test]
fn a_blocked_connection_finishes_the_packet_it_began_and_repeats_nothing() {
    let (mut connection, mut theirs) = pair();
    let bodies: Vec<_> = (0..60_u8).map(|i| vec![i; 10_007]).collect();
    let expected = bodies.concat();
    let pieces = pieces(&bodies);
    let reader = std::thread::spawn(move || {
        let mut got = Vec::new();
        theirs.read_to_end(&mut got).expect("readable");
        got
    });
    let mut next = 0;
    while next < bodies.len() {
        match connection.send(&pieces[next..], bodies.len() as Seq, &Framing::Raw) {
            Outcome::Sent => next = bodies.len(),
            Outcome::Blocked(seq) => next = seq as usize,
            Outcome::Gone => panic!("the other end reads"),
        }
        while connection.has_unsent() {
            connection.flush().expect("the other end reads");
        }
    }
    drop(connection);
    assert_eq!(reader.join().expect("reader"), expected);
}

#[test]
fn a_closed_connection_is_gone() {
    let (mut connection, theirs) = pair();
    drop(theirs);
    assert_eq!(connection.send(&pieces(&[vec![0; 10]]), 1, &Framing::Raw), Outcome::Gone);
}

#[test]
fn what_waits_besides_packets_is_bounded() {
    let (mut connection, _theirs) = pair();
    let big = [vec![0; 10 << 20]];
    assert_eq!(connection.send(&pieces(&big), 1, &Framing::Raw), Outcome::Blocked(1));
    assert!(!connection.inject(&[0; 100]), "the rest of one packet alone is over the limit");
}

#[test]
fn a_preamble_that_does_not_fit_waits_instead_of_being_lost() {
    let (mut connection, mut theirs) = pair();
    let filler = [vec![7; 100_000]];
    while connection.send(&pieces(&filler), 1, &Framing::Raw) == Outcome::Sent {}
    let mut drained = vec![0; 1 << 20];
    theirs.set_nonblocking(true).expect("nonblocking");
    while !connection.flush().expect("alive") {
        let _ = theirs.read(&mut drained);
    }
    while connection.send(&pieces(&[vec![8; 1]]), 1, &Framing::Raw) == Outcome::Sent {}
    let preamble = Piece {
        seq: 5,
        track: 0,
        header: &[],
        body: &[9; 376],
        bytes: None,
        is_preamble: true,
        layer: None,
        ends: None,
        worth: Worth::most(Time::ZERO),
    };
    let packet = Piece {
        seq: 5,
        track: 0,
        header: &[],
        body: &[1; 10],
        bytes: None,
        is_preamble: false,
        layer: None,
        ends: None,
        worth: Worth::most(Time::ZERO),
    };
    assert_eq!(connection.send(&[preamble, packet], 6, &Framing::Raw), Outcome::Blocked(5));
    assert!(connection.has_unsent());
}
