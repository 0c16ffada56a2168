use super::*;

/// Packets that can be told apart.
fn packets(count: usize) -> Vec<u8> {
    let packet = |i: usize| {
        let mut bytes = vec![(i % 64) as u8; PACKET_BYTES];
        bytes[0] = SYNC;
        bytes
    };
    (0..count).flat_map(packet).collect()
}

/// What comes out of these chunks, and how many bytes were skipped.
fn framed(chunks: &[&[u8]]) -> (Vec<u8>, u64) {
    let mut framer = TsFramer::default();
    let mut all = Vec::new();
    for chunk in chunks {
        framer.push(Bytes::copy_from_slice(chunk));
        while let Some(datagram) = framer.next_datagram() {
            assert!(datagram.len() <= DATAGRAM_BYTES && datagram.len().is_multiple_of(PACKET_BYTES));
            assert!(!datagram.is_empty());
            all.extend_from_slice(&datagram);
        }
    }
    (all, framer.skipped())
}

#[test]
fn how_the_stream_is_cut_makes_no_difference() {
    let stream = packets(40);
    for size in [1, 2, 100, 187, 188, 189, 376, 1000, 1316, 1448, 4096, 9999] {
        let chunks: Vec<_> = stream.chunks(size).collect();
        let (out, skipped) = framed(&chunks);
        assert!(out == stream && skipped == 0, "chunks of {size}");
    }
}

#[test]
fn garbage_is_skipped_and_counted() {
    let (head, tail) = (packets(10), packets(12));
    // Sync bytes among the garbage, as they are in any payload.
    let garbage = [SYNC, 1, SYNC, SYNC, 5, 6, 7];
    let stream = [&garbage[..], &head, &garbage[1..], &tail].concat();
    for size in [1, 50, 188, 700, 5000] {
        let chunks: Vec<_> = stream.chunks(size).collect();
        let (out, skipped) = framed(&chunks);
        assert_eq!(skipped, 13, "chunks of {size}");
        assert!(out == [&head[..], &tail].concat(), "chunks of {size}");
    }
}

#[test]
fn what_is_no_transport_stream_is_not_kept() {
    let mut framer = TsFramer::default();
    for _ in 0..1000 {
        framer.push(Bytes::from_static(b"GET / HTTP/1.1"));
        framer.push(Bytes::from_static(&[0; 150]));
        assert_eq!(framer.next_datagram().map(|d| d.len() % PACKET_BYTES), None);
        assert!(framer.carried.len() < SYNCS * PACKET_BYTES);
    }
    assert!(framer.skipped() > 150_000);
}

#[test]
fn whole_packets_share_the_memory_of_their_chunk() {
    let chunk = Bytes::from(packets(20));
    let mut framer = TsFramer::default();
    framer.push(chunk.clone());
    let mut at = 0;
    while let Some(datagram) = framer.next_datagram() {
        assert_eq!(datagram.as_ptr(), chunk[at..].as_ptr());
        at += datagram.len();
    }
    assert_eq!(at, chunk.len());
}

#[test]
fn bytes_pushed_before_the_others_were_taken_are_not_lost() {
    let stream = packets(30);
    let mut framer = TsFramer::default();
    for chunk in stream.chunks(500) {
        framer.push(Bytes::copy_from_slice(chunk));
    }
    let mut all = Vec::new();
    while let Some(datagram) = framer.next_datagram() {
        all.extend_from_slice(&datagram);
    }
    assert!(all == stream);
}

#[test]
fn the_alignment_is_found() {
    let stream = packets(6);
    assert_eq!(resync(&stream), 0);
    assert_eq!(resync(&stream[1..]), 187);
    assert_eq!(resync(&[&[SYNC; 3], &stream[..]].concat()), 3);
    assert_eq!(resync(&[0; 1000]), 1000);
    assert_eq!(resync(&[]), 0);
}
