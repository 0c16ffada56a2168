//! Both ends of a line in one process.

use std::io::{Read as _, Seek as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::time::Duration;

use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::limits::{DESCRIPTORS_MAX, VALUE_BYTES_MAX, VALUE_IN_PACKET_MAX};
use crate::line::HEAD_BYTES;
use crate::memfd;
use crate::{Line, LineError, Message};

/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(20);

/// Long enough to be waited for.
const SHORT: Duration = Duration::from_millis(20);

fn lines() -> (Line, Line) {
    let (ours, theirs) = Line::pair().expect("a pair");
    (ours, Line::taken(theirs).expect("an end of a line"))
}

fn message(kind: u8, value: Vec<u8>) -> Message {
    Message { kind, value, descriptors: Vec::new() }
}

/// A file that says a number.
fn numbered(number: u32) -> OwnedFd {
    let mut file = memfd::file().expect("a file");
    file.write_all(&number.to_le_bytes()).expect("written");
    file.into()
}

/// A first packet as it is on the wire.
fn head(length: u32, descriptors: u32) -> Vec<u8> {
    [&b"Ofl1\x07"[..], &length.to_le_bytes(), &descriptors.to_le_bytes()].concat()
}

/// What a reader says of these packets, with their descriptors.
fn said_of(packets: &[(&[u8], &[OwnedFd])]) -> LineError {
    let (raw, theirs) = Line::pair().map(|(line, end)| (end, line)).expect("a pair");
    for (bytes, descriptors) in packets {
        let borrowed: Vec<_> = descriptors.iter().map(|descriptor| descriptor.as_fd()).collect();
        let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !borrowed.is_empty() {
            control.push(SendAncillaryMessage::ScmRights(&borrowed));
        }
        sendmsg(&raw, &[std::io::IoSlice::new(bytes)], &mut control, SendFlags::NOSIGNAL).expect("sent");
    }
    theirs.receive(SHORT).expect_err("it is no message")
}

#[test]
fn values_of_any_length_arrive_as_they_are() {
    let (ours, theirs) = lines();
    for length in [0, 1, VALUE_IN_PACKET_MAX, VALUE_IN_PACKET_MAX + 1, 5 << 20] {
        let value: Vec<u8> = (0..length).map(|at| (at % 251) as u8).collect();
        ours.send(message(3, value.clone()), PATIENCE).expect("sent");
        let received = theirs.receive(PATIENCE).expect("it came");
        assert_eq!((received.kind, received.descriptors.len()), (3, 0));
        assert!(received.value == value, "{length} bytes");
    }
    theirs.send(message(4, vec![9]), PATIENCE).expect("both ways");
    assert_eq!(ours.receive(PATIENCE).expect("it came").value, [9]);
}

#[test]
fn six_hundred_descriptors_arrive_in_their_order() {
    // Those of both ends are this process's here.
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }).expect("permitted");
    let (ours, theirs) = lines();
    let descriptors = (0..600).map(numbered).collect();
    let value = vec![1; VALUE_IN_PACKET_MAX + 1];
    let sending = std::thread::spawn(move || ours.send(Message { kind: 1, value, descriptors }, PATIENCE));
    let received = theirs.receive(PATIENCE).expect("it came");
    sending.join().expect("no panic").expect("sent");
    assert_eq!(received.descriptors.len(), 600);
    for (expected, descriptor) in (0..600_u32).zip(received.descriptors) {
        assert!(
            rustix::io::fcntl_getfd(&descriptor).expect("open").contains(rustix::io::FdFlags::CLOEXEC),
            "no program gets it"
        );
        let (mut file, mut bytes) = (std::fs::File::from(descriptor), [0; 4]);
        file.rewind().expect("a file");
        file.read_exact(&mut bytes).expect("it says its number");
        assert_eq!(u32::from_le_bytes(bytes), expected);
    }
}

#[test]
fn a_peer_that_goes_away_is_told_from_one_that_is_late() {
    let (ours, theirs) = lines();
    assert!(matches!(ours.receive(SHORT), Err(LineError::Late)));
    theirs.send(message(1, vec![1]), PATIENCE).expect("sent");
    assert_eq!(ours.receive(SHORT).expect("lateness has broken nothing").value, [1]);
    theirs.send(message(2, vec![2]), PATIENCE).expect("sent");
    drop(theirs);
    assert_eq!(ours.receive(SHORT).expect("it was said before").value, [2]);
    assert!(matches!(ours.receive(PATIENCE), Err(LineError::Gone)));
    assert!(matches!(ours.send(message(3, vec![]), PATIENCE), Err(LineError::Gone)));
}

#[test]
fn one_that_reads_nothing_is_late() {
    let (ours, _theirs) = lines();
    let full = (0..10_000).find_map(|_| ours.send(message(1, vec![0; 10_000]), SHORT).err());
    assert!(matches!(full, Some(LineError::Late)), "{full:?}");
}

#[test]
fn a_message_that_ends_before_its_descriptors_have_come_is_late() {
    assert!(matches!(said_of(&[(&head(0, 1), &[])]), LineError::Late));
}

#[test]
fn what_is_no_message_is_refused() {
    let one = || [numbered(1)];
    let too_long = vec![0; HEAD_BYTES + VALUE_IN_PACKET_MAX + 1];
    let wrong: [&[(&[u8], &[OwnedFd])]; 12] = [
        &[(b"Ofl", &[])],
        &[(b"Ofl2\x07\0\0\0\0\0\0\0\0", &[])],
        &[(&too_long, &[])],
        // Values.
        &[(&head(1, 0), &[])],
        &[(&[head(1, 0), vec![1, 2]].concat(), &[])],
        &[(&[head(1, 0), vec![1]].concat(), &one())],
        &[(&head(VALUE_IN_PACKET_MAX as u32 + 1, 0), &[])],
        &[(&head(VALUE_BYTES_MAX as u32 + 1, 0), &one())],
        // Descriptors.
        &[(&head(0, DESCRIPTORS_MAX as u32 + 1), &[])],
        &[(&head(0, 1), &[]), (&[1], &[])],
        &[(&head(0, 2), &[]), (&[2], &one())],
        &[(&head(0, 1), &[]), (&[2], &[numbered(1), numbered(2)])],
    ];
    for (number, packets) in wrong.into_iter().enumerate() {
        let said = said_of(packets);
        assert!(matches!(said, LineError::Malformed(_)), "{number}: {said:?}");
    }
}

#[test]
fn a_value_that_could_change_while_it_is_read_is_refused() {
    let length = VALUE_IN_PACKET_MAX + 1;
    let mut open = memfd::file().expect("a file");
    open.write_all(&vec![1; length]).expect("written");
    let said = said_of(&[(&head(length as u32, 0), &[open.into()])]);
    assert!(matches!(said, LineError::Malformed(why) if why.contains("could change")), "{said:?}");
    let shorter = memfd::sealed(&vec![1; length - 1]).expect("a file");
    let said = said_of(&[(&head(length as u32, 0), &[shorter])]);
    assert!(matches!(said, LineError::Malformed(why) if why.contains("length")), "{said:?}");
    let (pipe, _end) = rustix::pipe::pipe().expect("a pipe");
    let said = said_of(&[(&head(length as u32, 0), &[pipe])]);
    assert!(matches!(said, LineError::Malformed(_)), "{said:?}");
}

#[test]
fn standard_input_that_is_no_line_is_told() {
    let (pipe, _end) = rustix::pipe::pipe().expect("a pipe");
    assert!(Line::taken(pipe).is_err());
    let (socket, _end) = std::os::unix::net::UnixStream::pair().expect("a pair");
    assert!(Line::taken(socket.into()).is_err(), "a stream keeps no packets apart");
}

#[test]
fn what_a_message_says_is_not_printed() {
    let printed = format!("{:?}", message(5, b"a key".to_vec()));
    assert_eq!(printed, "Message { kind: 5, 5 bytes, 0 descriptors }");
}
