use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::{Duration, Instant};

use socket2::SockRef;

use super::*;

const V4: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const V6: IpAddr = IpAddr::V6(Ipv6Addr::LOCALHOST);
const ANY_V6: IpAddr = IpAddr::V6(Ipv6Addr::UNSPECIFIED);
const MOST: usize = 2000;

fn bound(address: IpAddr, segmentation: bool) -> Udp {
    let options = Options { segmentation, ..Options::default() };
    Udp::bind((address, 0).into(), &options).expect("a free port")
}

fn segments(to: SocketAddr, segment_bytes: usize, bytes: &[u8]) -> Segments<'_> {
    Segments { to, from: None, mark: Mark::None, segment_bytes, bytes }
}

/// Whether there is IPv6 on this machine.
fn has_v6(test: &str) -> bool {
    let has = std::net::UdpSocket::bind((V6, 0)).is_ok();
    if !has {
        outflow_skip::skipped(test, "no IPv6 here");
    }
    has
}

/// Receives `count` datagrams, and what is asked about each.
async fn received<T>(socket: &Udp, count: usize, about: impl Fn(Received<'_>) -> T) -> Vec<T> {
    let (mut batch, mut all) = (Batch::new(MOST), Vec::new());
    while all.len() < count {
        let waiting = socket.recv(&mut batch);
        let datagrams = tokio::time::timeout(Duration::from_secs(20), waiting).await;
        let datagrams = datagrams.expect("they have been sent").expect("the socket lives");
        let before = all.len();
        all.extend(batch.iter().map(&about));
        assert_eq!(all.len() - before, datagrams);
    }
    all
}

/// Datagrams that can be told apart.
fn numbered(count: usize, segment_bytes: usize, last_bytes: usize) -> Vec<u8> {
    let datagram = |number| std::iter::repeat_n(number as u8, segment_bytes);
    let mut bytes: Vec<_> = (0..count).flat_map(datagram).collect();
    bytes.truncate((count - 1) * segment_bytes + last_bytes);
    bytes
}

async fn arrive_in_order(receiver: IpAddr, to: IpAddr, segmentation: bool) {
    let (receiver, sender) = (bound(receiver, true), bound(to, segmentation));
    let to = SocketAddr::new(to, receiver.local_addr().port());
    // More than fit in one piece, and a shorter one behind.
    let bytes = numbered(100, 1200, 77);
    sender.send(&segments(to, 1200, &bytes)).await.expect("the socket lives");
    let lengths = received(&receiver, 100, |it| {
        assert!(it.bytes.iter().all(|byte| *byte == it.bytes[0]));
        assert_eq!((it.from, it.to), (sender.local_addr(), Some(to.ip())));
        (it.bytes[0], it.bytes.len())
    });
    let lengths = lengths.await;
    assert!(lengths.iter().enumerate().all(|(at, (number, _))| at == usize::from(*number)));
    assert!(lengths[..99].iter().all(|(_, bytes)| *bytes == 1200));
    assert_eq!(lengths[99].1, 77);
    assert_eq!((sender.counts().sent, receiver.counts().received), (100, 100));
}

#[tokio::test]
async fn datagrams_arrive_in_order_in_pieces_or_not() {
    for segmentation in [true, false] {
        arrive_in_order(V4, V4, segmentation).await;
    }
}

#[tokio::test]
async fn datagrams_arrive_by_ipv6() {
    if has_v6("datagrams_arrive_by_ipv6") {
        for segmentation in [true, false] {
            arrive_in_order(V6, V6, segmentation).await;
        }
    }
}

#[tokio::test]
async fn a_socket_of_both_families_calls_ipv4_by_its_name_and_answers() {
    if !has_v6("a_socket_of_both_families_calls_ipv4_by_its_name_and_answers") {
        return;
    }
    arrive_in_order(ANY_V6, V4, true).await;
    arrive_in_order(ANY_V6, V6, true).await;
    let (server, client) = (bound(ANY_V6, true), bound(V4, true));
    let there = SocketAddr::new(V4, server.local_addr().port());
    client.send(&segments(there, 3, b"ask")).await.expect("the socket lives");
    let (from, to) = received(&server, 1, |it| (it.from, it.to)).await[0];
    let answer = Segments { from: to, mark: Mark::Ect0, ..segments(from, 6, b"answer") };
    server.send(&answer).await.expect("the socket lives");
    assert_eq!(received(&client, 1, |it| (it.from, it.mark)).await, [(there, Mark::Ect0)]);
}

#[tokio::test]
async fn marks_arrive() {
    let families = if has_v6("marks_arrive by IPv6") { &[V4, V6][..] } else { &[V4] };
    for address in families {
        let (receiver, sender) = (bound(*address, true), bound(*address, true));
        for mark in [Mark::None, Mark::Ect0, Mark::Ect1, Mark::Ce] {
            let bytes = numbered(3, 100, 100);
            let sent = Segments { mark, ..segments(receiver.local_addr(), 100, &bytes) };
            sender.send(&sent).await.expect("the socket lives");
            assert_eq!(received(&receiver, 3, |it| it.mark).await, [mark; 3], "{address}");
        }
    }
}

#[tokio::test]
async fn datagrams_without_a_byte_and_the_longest_arrive() {
    let (receiver, sender) = (bound(V4, true), std::net::UdpSocket::bind((V4, 0)).expect("a free port"));
    sender.send_to(&[], receiver.local_addr()).expect("sent");
    sender.send_to(&[1; MOST], receiver.local_addr()).expect("sent");
    assert_eq!(received(&receiver, 2, |it| it.bytes.len()).await, [0, MOST]);
}

#[tokio::test]
async fn datagrams_too_long_are_left_out_and_counted() {
    for segmentation in [true, false] {
        let (receiver, sender) = (bound(V4, true), bound(V4, segmentation));
        let long = numbered(4, MOST + 1, 10);
        sender.send(&segments(receiver.local_addr(), MOST + 1, &long)).await.expect("the socket lives");
        assert_eq!(received(&receiver, 1, |it| it.bytes.len()).await, [10]);
        let counts = receiver.counts();
        assert_eq!((counts.received, counts.left_out), (1, 3));
    }
}

#[tokio::test]
async fn what_the_way_does_not_carry_is_counted() {
    let (receiver, sender) = (bound(V4, true), bound(V4, true));
    let to = receiver.local_addr();
    let long = vec![0; 65_520];
    sender.send(&segments(to, long.len(), &long)).await.expect("the socket lives");
    sender.send(&segments(to, 5, b"short")).await.expect("the socket lives");
    assert_eq!(received(&receiver, 1, |it| it.bytes.len()).await, [5]);
    let counts = sender.counts();
    assert_eq!((counts.too_long, counts.sent), (1, 1));
    assert!(sender.segmentation());
}

#[tokio::test]
async fn destinations_that_are_none_are_counted() {
    let sender = bound(V4, true);
    for to in [(V4, 0).into(), (IpAddr::V4(Ipv4Addr::UNSPECIFIED), 5000).into(), (V6, 5000).into()] {
        assert_eq!(sender.try_send(&segments(to, 4, b"lostlost")).ok(), Some(2));
    }
    assert_eq!((sender.counts().unreachable, sender.counts().sent), (6, 0));
    assert!(sender.segmentation());
}

#[tokio::test]
async fn a_refusal_of_a_peer_is_counted_and_not_the_end() {
    let (receiver, sender) = (bound(V4, true), bound(V4, true));
    let gone = bound(V4, true).local_addr();
    // Only a connected socket hears of it.
    SockRef::from(&sender.io).connect(&gone.into()).expect("an address");
    for _ in 0..3 {
        sender.send(&segments(gone, 4, b"lost")).await.expect("the socket lives");
    }
    let mut batch = Batch::new(MOST);
    assert_eq!(sender.try_recv(&mut batch).map_err(|error| error.kind()), Err(io::ErrorKind::WouldBlock));
    assert!(sender.counts().unreachable > 0);
    // The first may be told of a refusal once more.
    for _ in 0..2 {
        sender.send(&segments(receiver.local_addr(), 4, b"more")).await.expect("the socket lives");
    }
    assert!(!received(&receiver, 1, |it| it.bytes.len()).await.is_empty());
}

#[tokio::test]
async fn an_own_address_that_is_none_costs_neither_pieces_nor_marks() {
    let name = "an_own_address_that_is_none_costs_neither_pieces_nor_marks";
    if !has_v6(name) {
        return;
    }
    let (receiver, sender) = (bound(ANY_V6, true), bound(ANY_V6, true));
    let (port, pieces) = (receiver.local_addr().port(), sender.segmentation());
    let bytes = numbered(3, 100, 100);
    let foreign = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);
    for _ in 0..2 {
        let sent = Segments { from: Some(foreign.into()), ..segments((V6, port).into(), 100, &bytes) };
        sender.send(&sent).await.expect("the socket lives");
    }
    let counts = sender.counts();
    assert_eq!((counts.sent, counts.invalid, sender.segmentation()), (0, 6, pieces));
    let sent = Segments { mark: Mark::Ect1, ..segments((V4, port).into(), 100, &bytes) };
    sender.send(&sent).await.expect("the socket lives");
    assert_eq!(received(&receiver, 3, |it| it.mark).await, [Mark::Ect1; 3]);
    assert_eq!(sender.segmentation(), pieces);
}

#[tokio::test]
async fn times_of_arrival_are_before_those_of_receiving() {
    let (receiver, sender) = (bound(V4, true), bound(V4, true));
    for _ in 0..2 {
        sender.send(&segments(receiver.local_addr(), 4, b"once")).await.expect("the socket lives");
    }
    let times = received(&receiver, 2, |it| it.at).await;
    assert!(times[0] <= times[1] && times[1] <= Instant::now());
}

#[tokio::test]
async fn nothing_to_receive_is_no_error() {
    let receiver = bound(V4, true);
    let mut batch = Batch::new(MOST);
    let error = receiver.try_recv(&mut batch).map_err(|error| error.kind());
    assert_eq!((error, batch.is_empty(), batch.iter().count()), (Err(io::ErrorKind::WouldBlock), true, 0));
}

#[tokio::test]
async fn buffers_are_reported_as_they_are() {
    let options = Options { recv_buffer_bytes: 100_000, send_buffer_bytes: 200_000, segmentation: true };
    let socket = Udp::bind((V4, 0).into(), &options).expect("a free port");
    assert_eq!(socket.buffers(), Buffers { recv_bytes: 100_000, send_bytes: 200_000 });
}

#[tokio::test]
async fn another_process_goes_on_with_a_socket() {
    let (receiver, sender) = (bound(V4, true), bound(V4, true));
    let copy = receiver.as_fd().try_clone_to_owned().expect("a descriptor");
    let to = receiver.local_addr();
    sender.send(&segments(to, 4, b"wait")).await.expect("the socket lives");
    let buffers = receiver.buffers();
    drop(receiver);
    let taken = Udp::taken(copy, &Options::default()).expect("it is one");
    assert_eq!((taken.local_addr(), taken.buffers()), (to, buffers));
    sender.send(&Segments { mark: Mark::Ect1, ..segments(to, 4, b"more") }).await.expect("the socket lives");
    let both = received(&taken, 2, |it| (it.bytes.to_vec(), it.mark)).await;
    assert_eq!(both, [(b"wait".to_vec(), Mark::None), (b"more".to_vec(), Mark::Ect1)]);
    let (other, _) = std::os::unix::net::UnixDatagram::pair().expect("a pair");
    assert!(Udp::taken(other.into(), &Options::default()).is_err());
}

#[tokio::test]
async fn a_piece_is_no_longer_than_a_packet_may_be() {
    let socket = bound(V4, true);
    if !socket.segmentation() {
        outflow_skip::skipped("a_piece_is_no_longer_than_a_packet_may_be", "this kernel cuts no pieces");
        return;
    }
    assert_eq!([100, 1200, 1452, 9000, 70_000].map(|bytes| socket.segments_max(bytes)), [64, 54, 45, 7, 1]);
    assert_eq!(bound(V4, false).segments_max(100), 1);
}
