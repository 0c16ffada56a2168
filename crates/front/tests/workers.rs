//! A stream that several workers serve: its receivers do not notice.

#![allow(clippy::disallowed_methods, reason = "a test of sockets and files")]

use std::collections::BTreeSet;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::path::Path;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use outflow_control::limits::REPLICA_LINGER;
use outflow_control::{Control, Playing, PublishOptions, Publisher, Relay, StreamLimits, load};
use outflow_engine::message::{
    CloseReason, Delivery, Framing, Receiver, StreamState, TrackChannel, WriteSide,
};
use outflow_media::{Format, Track};
use outflow_relay::Encapsulation;
use outflow_rtp::{PlainHeader, RtpHeader};
use tokio::io::AsyncReadExt as _;
use tokio::net::UnixStream;
use tokio::time::timeout;

/// Longer than anything here takes, so that a failure is one and no hang.
const PATIENCE: Duration = Duration::from_secs(20);

/// A relay of three workers that share a stream from its third receiver on.
async fn relay(path: &Path, streams: &str) -> Relay {
    std::fs::write(path, configuration(streams)).expect("written");
    Relay::start(
        load(path, &outflow_fronts::protocols()).expect("valid"),
        Some(path.to_owned()),
        outflow_fronts::all(),
        None,
    )
    .await
    .expect("started")
}

fn configuration(streams: &str) -> String {
    format!(
        "[listen]\nrtsp = \"off\"\nhttp = \"off\"\nrtp_ports = \"46200-46399\"\n\
         [limits]\nworkers = 3\nsplit = 2\n{streams}"
    )
}

fn format() -> Format {
    Format::Rtp(vec![Track::h264()])
}

/// A publisher of one access unit a packet, every tenth of them a key frame.
struct Camera {
    publisher: Publisher,
    sent: u16,
    ssrc: u32,
}

impl Camera {
    async fn open(control: &Control, ssrc: u32) -> Camera {
        let options = PublishOptions { format: format(), peer: "test".to_owned(), configured: false };
        Camera { publisher: control.publish("live", options).await.expect("free"), sent: 0, ssrc }
    }

    fn frames(&mut self, count: u16) {
        for _ in 0..count {
            let (sequence, timestamp) = (self.sent, u32::from(self.sent) * 3_600);
            let header = PlainHeader { marker: true, payload_type: 96, sequence, timestamp, ssrc: self.ssrc };
            let mut packet = BytesMut::from(&header.emit()[..]);
            let nal: [u8; 2] = if self.sent.is_multiple_of(10) { [0x65, 0xb0] } else { [0x41, 0xc0] };
            packet.extend_from_slice(&nal);
            packet.resize(500, self.sent as u8);
            self.publisher.try_send(0, packet);
            self.sent += 1;
        }
    }
}

/// A receiver of RTP packets in interleaved frames.
struct Player {
    playing: Playing,
    wire: UnixStream,
    input: BytesMut,
}

impl Player {
    async fn join(control: &Control) -> Player {
        let framing = Framing::Interleaved(vec![TrackChannel { track: 0, rtp: 0, rtcp: 1 }]);
        let (receiver, delivery) = (
            Receiver::new("rtsp-tcp", "test", Default::default()),
            Delivery::Bytes(Encapsulation::Rtp, framing),
        );
        let playing = control.play("live", receiver, delivery).await.expect("a place");
        let (ours, relays) = StdUnixStream::pair().expect("a pair");
        ours.set_nonblocking(true).expect("set");
        playing.start(Some(WriteSide::Own(relays.into())));
        Player { playing, wire: UnixStream::from_std(ours).expect("registered"), input: BytesMut::new() }
    }

    /// The next RTP packet.
    async fn next(&mut self) -> Bytes {
        loop {
            if let [b'$', channel, high, low, rest @ ..] = &self.input[..]
                && rest.len() >= usize::from(u16::from_be_bytes([*high, *low]))
            {
                let (channel, length) = (*channel, u16::from_be_bytes([*high, *low]));
                let frame = self.input.split_to(4 + usize::from(length)).freeze();
                if channel == 0 {
                    return frame.slice(4..);
                }
                continue;
            }
            let read = timeout(PATIENCE, self.wire.read_buf(&mut self.input)).await.expect("in time");
            assert!(read.expect("connected") > 0, "the relay ended it");
        }
    }

    async fn packets(&mut self, count: usize) -> Vec<Bytes> {
        let mut packets = Vec::new();
        while packets.len() < count {
            packets.push(self.next().await);
        }
        packets
    }
}

fn sequence(packet: &Bytes) -> u16 {
    RtpHeader::new_checked(packet).expect("RTP").sequence()
}

/// Reads `count` packets of each, which are the same for all; returns them.
async fn all_get(players: &mut [Player], count: usize) -> Vec<Bytes> {
    let mut first: Option<Vec<Bytes>> = None;
    for player in players {
        let packets = player.packets(count).await;
        match &first {
            Some(first) => assert!(packets == *first, "all get the same"),
            None => first = Some(packets),
        }
    }
    first.expect("players")
}

async fn until(control: &Control, what: &str, is_so: impl Fn(&StreamState) -> bool) {
    let mut states = control.watch();
    let so = states.wait_for(|state| state.streams.iter().any(&is_so));
    timeout(PATIENCE, so).await.unwrap_or_else(|_| panic!("not in time: {what}")).expect("running");
}

/// Enough for three workers; how many of them serve shows in the ports that the next one is told.
async fn crowd(control: &Control, count: usize) -> (Vec<Player>, usize) {
    let (mut players, mut ports) = (Vec::new(), BTreeSet::new());
    for _ in 0..count {
        let site = control.udp_site("live", &Default::default(), [127, 0, 0, 1].into());
        ports.insert(site.expect("a stream").rtp);
        players.push(Player::join(control).await);
    }
    (players, ports.len())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn receivers_get_the_same_from_every_worker_whatever_happens_to_the_source() {
    let folder = tempfile::tempdir().expect("folder");
    let relay = relay(&folder.path().join("outflow.toml"), "[streams.live]\n").await;
    let control = relay.control();
    let mut camera = Camera::open(control, 7).await;
    camera.frames(15);
    until(control, "packets come", |stream| stream.source.packets == 15).await;
    let (mut players, workers) = crowd(control, 9).await;
    assert_eq!(workers, 3);
    let starts: BTreeSet<_> = players.iter().map(|player| player.playing.starts()[0].sequence).collect();
    assert_eq!(starts, [10].into(), "a picture at once, at every worker");
    camera.frames(15);
    let packets = all_get(&mut players, 20).await;
    assert_eq!(packets.iter().map(sequence).collect::<Vec<_>>(), (10..30).collect::<Vec<_>>());

    // The source is restarted, with numbers of its own.
    drop(camera);
    let mut camera = Camera::open(control, 8).await;
    camera.frames(10);
    let packets = all_get(&mut players, 10).await;
    assert_eq!(packets.iter().map(sequence).collect::<Vec<_>>(), (30..40).collect::<Vec<_>>());

    // All of it is shown as one stream.
    let limits = StreamLimits { ring: Some(outflow_config::ByteSize(1 << 20)), ..StreamLimits::default() };
    control.set_limits("live", limits).await.expect("possible");
    until(control, "all receivers are shown", |stream| {
        stream.receivers.len() == 9 && stream.joins == 9 && stream.out_packets == 9 * 30
    })
    .await;
    let state = control.state();
    let ids: Vec<u64> = state.streams[0].receivers.iter().map(|receiver| receiver.id).collect();
    let mut expected: Vec<u64> = players.iter().map(|player| player.playing.id()).collect();
    expected.sort_unstable();
    assert_eq!(ids, expected);
    assert_eq!((state.streams.len(), state.streams[0].ring_bytes_max), (1, 1 << 20));
    relay.shut_down();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_is_not_needed_rests_and_helps_again() {
    let folder = tempfile::tempdir().expect("folder");
    let relay = relay(&folder.path().join("outflow.toml"), "[streams.live]\n").await;
    let control = relay.control();
    let mut camera = Camera::open(control, 7).await;
    camera.frames(5);
    until(control, "packets come", |stream| stream.source.packets == 5).await;
    let (mut players, _) = crowd(control, 6).await;
    all_get(&mut players, 5).await;
    players.truncate(2);
    until(control, "the others have left", |stream| stream.receivers.len() == 2).await;
    tokio::time::sleep(REPLICA_LINGER * 3 / 2).await;
    camera.frames(10);
    all_get(&mut players, 10).await;
    let (mut again, workers) = crowd(control, 4).await;
    assert_eq!(workers, 2);
    camera.frames(5);
    let packets = all_get(&mut again, 10).await;
    assert_eq!(packets.iter().map(sequence).collect::<Vec<_>>(), (10..20).collect::<Vec<_>>());
    all_get(&mut players, 5).await;
    until(control, "what was sent before is not forgotten", |stream| {
        stream.out_packets == 6 * 5 + 2 * 15 + 4 * 10 && stream.joins == 10
    })
    .await;
    relay.shut_down();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_that_is_removed_ends_for_all() {
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("outflow.toml");
    let relay = relay(&path, "[streams.live]\n").await;
    let control = relay.control();
    let mut camera = Camera::open(control, 7).await;
    camera.frames(5);
    let (mut players, _) = crowd(control, 6).await;
    std::fs::write(&path, configuration("")).expect("written");
    control.reload(true).await.expect("valid");
    for player in &mut players {
        let reason = timeout(PATIENCE, player.playing.closed()).await.expect("told");
        assert_eq!(reason, CloseReason::StreamRemoved);
    }
    relay.shut_down();
}
