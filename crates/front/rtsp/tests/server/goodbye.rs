//! Players that the relay ends are told.

use outflow_rtp::rtcp;

use super::*;

/// The sources that an RTCP packet says goodbye for.
fn gone(packet: &[u8]) -> Vec<u32> {
    let mut gone = Vec::new();
    rtcp::read(packet, |report| {
        if let rtcp::Report::Bye { ssrc } = report {
            gone.push(ssrc);
        }
    })
    .expect("RTCP");
    gone
}

#[tokio::test]
async fn when_the_relay_shuts_down_goodbye_is_the_last_that_comes_within_a_connection() {
    let server = Server::start("").await;
    server.demo_is_up().await;
    let mut client = server.connect().await;
    client.play("demo").await;
    let ssrc = loop {
        let (channel, bytes) = client.next_media().await;
        if channel == 4 {
            break RtpHeader::new_checked(&bytes).expect("RTP").ssrc();
        }
    };
    server.relay.shut_down();
    let mut last = None;
    while let Some(item) = client.next().await {
        if let Item::Interleaved { channel, bytes } = item {
            last = Some((channel, bytes));
        }
    }
    let (channel, bytes) = last.expect("something came");
    assert_eq!((channel, gone(&bytes)), (5, vec![ssrc]));
}

#[tokio::test]
async fn by_udp_goodbye_comes_to_the_port_of_reports() {
    let server = Server::start("").await;
    server.demo_is_up().await;
    let (rtp, reports) = (UdpSocket::bind("127.0.0.1:0").await, UdpSocket::bind("127.0.0.1:0").await);
    let (rtp, reports) = (rtp.expect("a port"), reports.expect("a port"));
    let ports = [&rtp, &reports].map(|socket| socket.local_addr().expect("bound").port());
    let mut client = server.connect().await;
    let asked = format!("Transport: RTP/AVP;unicast;client_port={}-{}\r\n", ports[0], ports[1]);
    client.play_by_udp("demo", &asked).await;
    let mut packet = [0; 2048];
    timeout(PATIENCE, rtp.recv(&mut packet)).await.expect("in time").expect("a packet");
    server.relay.shut_down();
    let said = timeout(PATIENCE, async {
        loop {
            let length = reports.recv(&mut packet).await.expect("a report");
            let gone = gone(&packet[..length]);
            if !gone.is_empty() {
                return gone.len();
            }
        }
    });
    assert_eq!(said.await.expect("in time"), 1);
    let Some(Item::Request(notice)) = client.next().await else { panic!("no notice") };
    let text = notice.header(&outflow_rtsp::HeaderName::from_static_str("Notice").expect("ASCII"));
    assert_eq!(text.map(|text| text.as_str()), Some("5403 \"Server Shutting Down\""));
    assert!(client.next().await.is_none(), "and the end");
}

#[tokio::test]
async fn a_relay_that_drains_takes_no_more_peers_and_lets_its_player_go_on() {
    let mut server = Server::start("").await;
    server.demo_is_up().await;
    let mut player = server.connect().await;
    let (session, _) = player.play("demo").await;
    let mut late = server.connect().await;
    assert_eq!(late.status("DESCRIBE", "/push", "", "").await, StatusCode::ServiceUnavailable, "no source");
    server.relay.control().health().ending().begin(PATIENCE);
    for (method, path, body) in [("DESCRIBE", "/demo", ""), ("ANNOUNCE", "/push", ANNOUNCED)] {
        let mut late = server.connect().await;
        let refused = late.ask(method, path, "", body).await;
        let text = String::from_utf8_lossy(refused.body()).into_owned();
        assert_eq!(refused.status(), StatusCode::ServiceUnavailable, "{method}: {text}");
        assert!(text.contains("ask another one"), "{text}");
    }
    for _ in 0..20 {
        player.next_media().await;
    }
    assert!(
        timeout(Duration::from_millis(500), server.relay.ended()).await.is_err(),
        "it waits for the player"
    );
    player.ask("TEARDOWN", "/demo", &session, "").await;
    timeout(PATIENCE / 2, server.relay.ended()).await.expect("it was the last one").expect("well");
}
