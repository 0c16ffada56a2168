//! Key frames that players ask for reach the publisher.

use outflow_rtp::rtcp;

use super::*;

/// Of which sources a key frame is asked for in an RTCP packet.
fn asked_of(packet: &[u8]) -> BTreeSet<u32> {
    let mut asked = BTreeSet::new();
    rtcp::read(packet, |report| {
        if let rtcp::Report::KeyFrame { media, .. } = report {
            asked.insert(media);
        }
    })
    .expect("RTCP");
    asked
}

/// A player within the connection that has got the publisher's picture; channel 4 has its packets, 5 its reports.
pub(super) async fn player(server: &Server) -> Client {
    player_of(server, "push").await
}

async fn player_of(server: &Server, stream: &str) -> Client {
    let mut player = server.connect().await;
    player.play(stream).await;
    while player.next_media().await.0 != 4 {}
    player
}

/// The player cannot go on without a key frame of the source 7.
async fn ask(player: &mut Client) {
    let request = rtcp::key_frame_request(99, 7, 1, "player");
    let prefix = interleaved_prefix(5, request.len() as u16);
    player.tcp.write_all(&[&prefix[..], &request].concat()).await.expect("sent");
}

pub(super) async fn publisher(server: &Server) -> Client {
    let mut publisher = server.connect().await;
    publisher.record("Transport: RTP/AVP/TCP;unicast;interleaved=0-1;mode=record\r\n").await;
    send(&mut publisher, 100).await;
    publisher
}

pub(super) async fn send(publisher: &mut Client, sequence: u16) {
    let packet = picture(sequence);
    let prefix = interleaved_prefix(0, packet.len() as u16);
    publisher.tcp.write_all(&[&prefix[..], &packet].concat()).await.expect("sent");
}

#[tokio::test]
async fn within_the_connection_it_is_asked_for_on_the_channel_of_reports() {
    let server = Server::start("").await;
    let mut publisher = publisher(&server).await;
    let mut player = player(&server).await;
    ask(&mut player).await;
    let (channel, packet) = publisher.next_media().await;
    assert_eq!((channel, asked_of(&packet)), (1, BTreeSet::from([7])));
}

#[tokio::test]
async fn of_many_players_with_all_workers_one_request_goes_up() {
    let server = Server::start("[limits]\nworkers = 2\nsplit = 1\n").await;
    let mut publisher = publisher(&server).await;
    let mut players = Vec::new();
    for _ in 0..6 {
        players.push(player(&server).await);
    }
    for player in &mut players {
        ask(player).await;
    }
    let (_, packet) = publisher.next_media().await;
    assert_eq!(asked_of(&packet), BTreeSet::from([7]));
    // The picture that was asked for comes: nothing is asked for that those before it wanted.
    send(&mut publisher, 101).await;
    for player in &mut players {
        while player.next_media().await.0 != 4 {}
    }
    ask(&mut players[5]).await;
    let (_, packet) = publisher.next_media().await;
    assert_eq!(asked_of(&packet), BTreeSet::from([7]), "and of a replica it is asked for again");
}

#[tokio::test]
async fn by_udp_it_is_asked_for_where_the_packets_come_from() {
    let server = Server::start("").await;
    let mut publisher = server.connect().await;
    let (rtp, reports) = pair().await;
    let port = rtp.local_addr().expect("bound").port();
    let asked = format!("Transport: RTP/AVP;unicast;client_port={port}-{};mode=record\r\n", port + 1);
    let response = publisher.record(&asked).await;
    let to = transport(&response).server_port.expect("the relay's ports").rtp;
    rtp.send_to(&picture(100), ("127.0.0.1", to)).await.expect("sent");
    let mut player = player(&server).await;
    ask(&mut player).await;
    assert_eq!(asked_by_udp(&reports).await, (to + 1, BTreeSet::from([7])));
}

/// From which port something is asked for, and of which sources.
async fn asked_by_udp(reports: &UdpSocket) -> (u16, BTreeSet<u32>) {
    let mut buffer = [0; 2048];
    let (length, from) =
        timeout(PATIENCE, reports.recv_from(&mut buffer)).await.expect("in time").expect("received");
    (from.port(), asked_of(&buffer[..length]))
}

#[tokio::test]
#[allow(clippy::disallowed_methods, reason = "a file for the relay")]
async fn a_source_at_any_address_of_ipv6_hears_a_sender_of_ipv4_and_asks_it() {
    let sdp = concat!(env!("CARGO_TARGET_TMPDIR"), "/ipv4_at_ipv6.sdp");
    std::fs::write(sdp, ANNOUNCED).expect("written");
    let (rtp, reports) = pair().await;
    let (free, above) = pair().await;
    let port = free.local_addr().expect("bound").port();
    drop((free, above));
    let dual = format!("[streams.dual]\nsource = \"rtp://[::]:{port}?source=127.0.0.1\"\nsdp = \"{sdp}\"\n");
    let server = Server::start(&dual).await;
    rtp.send_to(&picture(100), ("127.0.0.1", port)).await.expect("sent");
    let mut player = player_of(&server, "dual").await;
    ask(&mut player).await;
    assert_eq!(asked_by_udp(&reports).await, (port + 1, BTreeSet::from([7])));
}

/// Two ports in a row.
async fn pair() -> (UdpSocket, UdpSocket) {
    loop {
        let rtp = UdpSocket::bind("127.0.0.1:0").await.expect("a port");
        let above = rtp.local_addr().expect("bound").port().saturating_add(1);
        if let Ok(reports) = UdpSocket::bind(("127.0.0.1", above)).await {
            return (rtp, reports);
        }
    }
}
