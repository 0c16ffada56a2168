//! Gateways between sockets of this machine.

use std::sync::LazyLock;
use std::time::Duration;

use outflow_control::Upgrade;
use outflow_ice::testing::request;
use outflow_ice::{Credentials, Path};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::*;

/// Longer than anything here takes, so that a failure is one and no hang.
const PATIENCE: Duration = Duration::from_secs(20);

struct Scene {
    relay: Arc<UdpSocket>,
    peer: TcpStream,
    gateways: Arc<Gateways>,
    connections: Arc<Connections>,
}

impl Scene {
    async fn new() -> (Self, Gateway) {
        let relay = Arc::new(UdpSocket::bind("127.0.0.1:0").await.expect("a port"));
        let gateways = Arc::new(Gateways::new(relay.local_addr().expect("bound")));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let at = listener.local_addr().expect("bound");
        let (peer, accepted) = tokio::join!(TcpStream::connect(at), listener.accept());
        let (tcp, from) = accepted.expect("accepted");
        let connections = Arc::<Connections>::default();
        let going = (Arc::clone(&connections), Upgrade::default().lingering());
        let gateway = Gateway::open(tcp, from, &gateways, going).await.expect("open");
        (Scene { relay, peer: peer.expect("connected"), gateways, connections }, gateway)
    }

    /// One whose check was answered, what it ends with, and where its gateway is.
    async fn answered() -> (Self, JoinHandle<End>, SocketAddr) {
        let (mut scene, gateway) = Scene::new().await;
        let end = tokio::spawn(gateway.run());
        scene.write(&frame(&CHECK)).await;
        let (heard, at) = scene.hear().await;
        assert_eq!(heard, *CHECK);
        scene.relay.send_to(b"answer", at).await.expect("sent");
        assert_eq!(scene.next().await, b"answer");
        (scene, end, at)
    }

    async fn write(&mut self, bytes: &[u8]) {
        self.peer.write_all(bytes).await.expect("written");
    }

    /// The next datagram that comes to the relay, and from where.
    async fn hear(&mut self) -> (Vec<u8>, SocketAddr) {
        let mut bytes = [0; 4096];
        let heard = timeout(PATIENCE, self.relay.recv_from(&mut bytes)).await.expect("in time");
        let (length, from) = heard.expect("received");
        (bytes[..length].to_vec(), from)
    }

    /// What is in the next frame that comes to the peer.
    async fn next(&mut self) -> Vec<u8> {
        let reading = async {
            let length = self.peer.read_u16().await?;
            let mut bytes = vec![0; usize::from(length)];
            self.peer.read_exact(&mut bytes).await.map(|_| bytes)
        };
        timeout(PATIENCE, reading).await.expect("in time").expect("it is open")
    }
}

async fn ended(gateway: impl Future<Output = End>) -> End {
    timeout(PATIENCE, gateway).await.expect("in time")
}

static CHECK: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let key = Credentials { ufrag: "relay".to_owned(), password: "the password of the relay".to_owned() };
    request("relay:peer", &key, true)
});

fn frame(datagram: &[u8]) -> Vec<u8> {
    [&(datagram.len() as u16).to_be_bytes()[..], datagram].concat()
}

#[tokio::test]
async fn frames_become_datagrams_and_back_in_whatever_pieces_they_come() {
    let (mut scene, end, at) = Scene::answered().await;
    let peer = scene.peer.local_addr().expect("connected");
    assert_eq!(scene.gateways.path(at), Path { own: at.port().into(), peer });
    for byte in frame(b"slowly") {
        scene.write(&[byte]).await;
    }
    scene.write(&[frame(b"one"), frame(b""), frame(&[7; DATAGRAM_BYTES_MAX]), frame(b"two")].concat()).await;
    for expected in [&b"slowly"[..], b"one", &[7; DATAGRAM_BYTES_MAX], b"two"] {
        assert_eq!(scene.hear().await, (expected.to_vec(), at));
    }
    for number in 0..20_u8 {
        scene.relay.send_to(&[number; 1200], at).await.expect("sent");
    }
    for number in 0..20_u8 {
        assert_eq!(scene.next().await, [number; 1200]);
    }
    scene.peer.shutdown().await.expect("shut down");
    let end = ended(async { end.await.expect("no panic") }).await;
    assert!(matches!(end, End::Closed), "{end}");
    assert_eq!(scene.gateways.path(at), Path { own: 0, peer: at }, "it is forgotten");
}

#[tokio::test]
async fn a_peer_that_takes_too_little_loses_whole_datagrams_and_gets_what_comes_later() {
    let (mut scene, _end, at) = Scene::answered().await;
    let mut sent = 0_u32;
    let filling = async {
        while scene.connections.dropped(Way::Peer) < 100 {
            let datagram = [&sent.to_be_bytes()[..], &[7; 1200]].concat();
            scene.relay.send_to(&datagram, at).await.expect("sent");
            sent += 1;
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, filling).await.expect("in time");
    let relay = Arc::clone(&scene.relay);
    // It is dropped, too, until there is room.
    let later = tokio::spawn(async move {
        loop {
            relay.send_to(b"later", at).await.expect("sent");
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    });
    let mut got = Vec::new();
    loop {
        let datagram = scene.next().await;
        if datagram == b"later" {
            break;
        }
        assert_eq!(datagram[4..], [7; 1200], "it is whole");
        got.extend(datagram.first_chunk().map(|number| u32::from_be_bytes(*number)));
    }
    later.abort();
    assert!(got.is_sorted() && got.first() == Some(&0), "{got:?}");
    assert!(got.len() + 100 <= sent as usize, "{} of {sent}", got.len());
}

#[tokio::test]
async fn what_does_not_begin_with_a_check_of_a_session_or_is_too_long_is_closed() {
    let nameless = b"\x00\x01\x00\x08\x21\x12\xa4\x42twelve bytes\x80\x28\x00\x04\x00\x00\x00\x00";
    for first in [&frame(&[0x80; 40])[..], &frame(nameless), b"GET / HTTP/1.1\r\n\r\n", &[8, 1, 0]] {
        let (mut scene, gateway) = Scene::new().await;
        scene.write(first).await;
        let end = ended(gateway.run()).await;
        assert!(matches!(end, End::Malformed), "{end}");
        assert!(scene.relay.try_recv(&mut [0; 100]).is_err(), "nothing of it reaches the relay");
    }
    let (mut scene, end, _) = Scene::answered().await;
    scene.write(&[8, 1]).await;
    let end = ended(async { end.await.expect("no panic") }).await;
    assert!(matches!(end, End::Malformed), "{end}");
}

#[tokio::test]
async fn a_connection_has_to_be_of_use_in_time_and_to_stay_so() {
    let (mut scene, mut gateway) = Scene::new().await;
    let begins_until = gateway.relay_until;
    scene.write(&frame(&CHECK)).await;
    while gateway.stage == Stage::New {
        gateway.tcp.readable().await.expect("it is open");
        gateway.take().expect("it is a check");
    }
    let (_, at) = scene.hear().await;
    let until = [gateway.peer_until, gateway.relay_until];
    assert_eq!((gateway.stage, until), (Stage::Checked, [begins_until; 2]), "it may be of no session");
    scene.relay.send_to(b"answer", at).await.expect("sent");
    while gateway.stage != Stage::Answered {
        gateway.udp.readable().await.expect("it is open");
        gateway.give().expect("it is open");
    }
    let silent_until = gateway.peer_until;
    assert!(silent_until > begins_until && gateway.relay_until == silent_until);
    scene.write(&frame(b"more")).await;
    while gateway.peer_until <= silent_until {
        gateway.tcp.readable().await.expect("it is open");
        gateway.take().expect("it is taken");
    }
    assert_eq!(gateway.relay_until, silent_until, "the session may be over");
    gateway.relay_until = Instant::now();
    assert!(matches!(ended(gateway.run()).await, End::Silent));
    for is_peer in [true, false] {
        let (_scene, mut gateway) = Scene::new().await;
        *(if is_peer { &mut gateway.peer_until } else { &mut gateway.relay_until }) = Instant::now();
        assert!(matches!(ended(gateway.run()).await, End::Late));
    }
}
