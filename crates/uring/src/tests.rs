//! The ring with real sockets, full and broken.

use std::io::Read;
use std::net::UdpSocket;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use super::testing::{ring, ring_of, tcp};
use super::*;
use crate::limits::ZERO_COPY_BUFFER_BYTES;

/// Sends `bytes` to each, and returns the answers. With `zero_copy` it tries without a copy, even if
/// the kernel made one before, as it does to receivers on the same machine.
fn send(uring: &mut Uring, to: &[Descriptor], bytes: &[u8], zero_copy: bool) -> Vec<io::Result<usize>> {
    uring.begin();
    for descriptor in to {
        if let (Descriptor::Slot(slot), Some(ring)) = (descriptor, &mut uring.ring) {
            ring.slots.set_zero_copy(*slot, zero_copy);
        }
    }
    let parcel = uring.compose(bytes.len(), zero_copy, &|part| part(bytes)).expect("a ring");
    to.iter().for_each(|to| uring.push(*to, parcel));
    let mut answers: Vec<Option<io::Result<usize>>> = to.iter().map(|_| None).collect();
    let result = uring.submit(Answers::All, |index, answer| {
        assert!(answers[index].replace(answer).is_none(), "answered twice");
    });
    assert_eq!(result, Ok(()));
    answers.into_iter().map(|answer| answer.expect("all are answered")).collect()
}

fn in_use(uring: &Uring) -> usize {
    uring.ring.as_ref().map_or(0, |ring| ring.pool.in_use())
}

/// Waits until the kernel has given back all buffers.
fn wait_until_free(uring: &mut Uring) {
    let until = Instant::now() + Duration::from_secs(20);
    while in_use(uring) > 0 {
        assert!(Instant::now() < until, "buffers do not come back");
        std::thread::sleep(Duration::from_millis(1));
        uring.ring.as_mut().expect("a ring").collect();
    }
}

#[test]
fn more_sends_than_the_submission_queue_holds_all_go() {
    let Some(mut uring) = ring_of(8, 64) else { return };
    let pairs: Vec<_> = (0..50).map(|_| tcp()).collect();
    let to: Vec<_> = pairs.iter().map(|(ours, _)| uring.add(ours.as_fd(), true).expect("a ring")).collect();
    let answers = send(&mut uring, &to, b"to all of them", false);
    assert!(answers.iter().all(|answer| matches!(answer, Ok(14))), "{answers:?}");
    for (_, mut theirs) in pairs {
        let mut got = [0; 14];
        theirs.read_exact(&mut got).expect("it came");
        assert_eq!(&got, b"to all of them");
    }
}

#[test]
fn sockets_beyond_the_table_are_sent_to_by_their_own_descriptors() {
    let Some(mut uring) = ring_of(64, 2) else { return };
    let pairs: Vec<_> = (0..4).map(|_| tcp()).collect();
    let to: Vec<_> = pairs.iter().map(|(ours, _)| uring.add(ours.as_fd(), true).expect("a ring")).collect();
    let plain = |index: usize| Descriptor::Plain(pairs[index].0.as_raw_fd());
    assert_eq!(to, [Descriptor::Slot(0), Descriptor::Slot(1), plain(2), plain(3)]);
    for answer in send(&mut uring, &to, b"one", false) {
        assert_eq!(answer.expect("sent"), 3);
    }
    uring.remove(to[1]);
    assert_eq!(uring.add(pairs[3].0.as_fd(), true), Some(Descriptor::Slot(1)), "a place that became free");
}

#[test]
fn a_socket_that_was_removed_closes_for_its_peer() {
    let Some(mut uring) = ring() else { return };
    let (ours, mut theirs) = tcp();
    let descriptor = uring.add(ours.as_fd(), true).expect("a ring");
    assert_eq!(send(&mut uring, &[descriptor], b"bye", false)[0].as_ref().ok(), Some(&3));
    uring.remove(descriptor);
    drop(ours);
    let mut got = Vec::new();
    theirs.read_to_end(&mut got).expect("the end comes at once");
    assert_eq!(got, b"bye");
}

#[test]
fn bytes_sent_without_a_copy_stay_until_the_peer_has_them() {
    let Some(mut uring) = ring() else { return };
    let pairs: Vec<_> = (0..4).map(|_| tcp()).collect();
    let to: Vec<_> = pairs.iter().map(|(ours, _)| uring.add(ours.as_fd(), true).expect("a ring")).collect();
    for round in 0..3 * ZERO_COPY_BUFFERS {
        let bytes = vec![round as u8; 20_000];
        for answer in send(&mut uring, &to, &bytes, true) {
            assert_eq!(answer.expect("sent"), bytes.len());
        }
        for (_, theirs) in &pairs {
            let (mut theirs, mut got) = (theirs, vec![0; bytes.len()]);
            theirs.read_exact(&mut got).expect("they came");
            assert_eq!(got, bytes);
        }
    }
    wait_until_free(&mut uring);
}

#[test]
fn a_peer_that_never_reads_keeps_buffers_only_while_it_lives() {
    let Some(mut uring) = ring() else { return };
    let (ours, theirs) = tcp();
    let descriptor = uring.add(ours.as_fd(), true).expect("a ring");
    let bytes = vec![7; ZERO_COPY_BUFFER_BYTES];
    let mut taken = 0;
    while let Ok(sent) = &send(&mut uring, &[descriptor], &bytes, true)[0] {
        taken += sent;
    }
    assert!(taken > 0 && in_use(&uring) <= ZERO_COPY_BUFFERS);
    // Another one is served meanwhile, by copies if need be.
    let (other, mut reader) = tcp();
    let other = uring.add(other.as_fd(), true).expect("a ring");
    for round in 0..2 * ZERO_COPY_BUFFERS as u8 {
        assert_eq!(send(&mut uring, &[other], &[round; 1000], true)[0].as_ref().ok(), Some(&1000));
        let mut got = [0; 1000];
        reader.read_exact(&mut got).expect("it came");
        assert_eq!(got, [round; 1000]);
    }
    uring.remove(descriptor);
    drop((ours, theirs));
    wait_until_free(&mut uring);
}

#[test]
fn one_that_finds_no_buffer_sends_with_a_copy() {
    let Some(mut uring) = ring() else { return };
    uring.begin();
    let parcels: Vec<_> = (0..ZERO_COPY_BUFFERS + 2)
        .map(|i| uring.compose(3, true, &|part| part(&[i as u8; 3])).expect("a ring"))
        .collect();
    let pooled = parcels.iter().filter(|parcel| matches!(parcel.place, Place::Pooled(_))).count();
    if !uring.ring.as_ref().is_some_and(|ring| ring.support.zero_copy) {
        outflow_skip::skipped("buffers for sends without a copy", "Linux 6.13 or newer");
        return;
    }
    assert_eq!(pooled, ZERO_COPY_BUFFERS);
    assert_eq!(parcels.last().expect("some").place, Place::Copied(3));
    let large = ZERO_COPY_BUFFER_BYTES + 1;
    let parcel = uring.compose(large, true, &|part| part(&vec![0; large])).expect("a ring");
    assert_eq!(parcel, Parcel { place: Place::Copied(6), bytes: large });
}

#[test]
fn bytes_that_lie_in_a_buffer_are_not_put_there_again() {
    let Some(mut uring) = ring() else { return };
    let compose = |uring: &mut Uring, bytes: [&[u8]; 2]| {
        uring.begin();
        let length = bytes.concat().len();
        uring.compose(length, true, &|part| bytes.iter().for_each(|b| part(b))).expect("a ring")
    };
    let first = compose(&mut uring, [b"some ", b"bytes"]);
    if first.place != Place::Pooled(0) {
        outflow_skip::skipped("buffers for sends without a copy", "Linux 6.13 or newer");
        return;
    }
    assert_eq!(compose(&mut uring, [b"some b", b"ytes"]), first);
    uring.ring.as_mut().expect("a ring").pool.given(0);
    let second = compose(&mut uring, [b"some ", b"byteS"]);
    assert_eq!(second.place, Place::Pooled(1), "the kernel still reads the first");
    assert_eq!(compose(&mut uring, [b"some ", b"bytes"]), first);
}

#[test]
fn a_socket_whose_bytes_are_copied_all_the_same_sends_with_a_copy_from_then_on() {
    let Some(mut uring) = ring() else { return };
    let (ours, mut theirs) = tcp();
    let Some(Descriptor::Slot(slot)) = uring.add(ours.as_fd(), true) else { panic!("there is room") };
    let sends_without = |uring: &Uring| uring.ring.as_ref().is_some_and(|ring| ring.slots.zero_copy(slot));
    assert!(sends_without(&uring));
    if !uring.ring.as_ref().is_some_and(|ring| ring.support.zero_copy) {
        outflow_skip::skipped("sends without a copy", "Linux 6.13 or newer");
        return;
    }
    // To a receiver on the same machine the kernel copies when it delivers.
    assert_eq!(
        send(&mut uring, &[Descriptor::Slot(slot)], &[1; 20_000], true)[0].as_ref().ok(),
        Some(&20_000)
    );
    theirs.read_exact(&mut [0; 20_000]).expect("they came");
    wait_until_free(&mut uring);
    assert!(!sends_without(&uring));
    uring.remove(Descriptor::Slot(slot));
    assert_eq!(uring.add(ours.as_fd(), true), Some(Descriptor::Slot(slot)));
    assert!(sends_without(&uring), "the next receiver is tried again");
}

#[test]
fn tags_come_back_as_they_went() {
    for zero_copy in [None, Some((0, 0)), Some((31, 7)), Some((u16::MAX - 1, u32::MAX))] {
        for index in [0, 1, 1023, u16::MAX] {
            let tag = Tag { index, zero_copy };
            assert_eq!(Tag::decode(tag.encode()), tag);
        }
    }
}

#[test]
fn of_datagrams_only_failures_are_answered() {
    let Some(mut uring) = ring() else { return };
    let receiver = UdpSocket::bind("127.0.0.1:0").expect("bind");
    receiver.set_read_timeout(Some(Duration::from_secs(5))).expect("timeout");
    let connected = UdpSocket::bind("127.0.0.1:0").expect("bind");
    connected.connect(receiver.local_addr().expect("address")).expect("connect");
    let without_peer = UdpSocket::bind("127.0.0.1:0").expect("bind");
    let to = [&connected, &without_peer, &connected]
        .map(|socket| uring.add(socket.as_fd(), false).expect("a ring"));
    uring.begin();
    let parcel = uring.compose(2, false, &|part| part(b"hi")).expect("a ring");
    to.iter().for_each(|to| uring.push(*to, parcel));
    let mut answers = Vec::new();
    let result = uring.submit(Answers::Failures, |index, answer| answers.push((index, answer)));
    assert_eq!(result, Ok(()));
    answers.retain(|(_, answer)| answer.is_err());
    assert!(matches!(&answers[..], [(1, Err(error))] if error.raw_os_error() == Some(libc::EDESTADDRREQ)));
    let mut got = [0; 10];
    assert_eq!(receiver.recv(&mut got).expect("the first"), 2);
    assert_eq!(receiver.recv(&mut got).expect("the second"), 2);
}
