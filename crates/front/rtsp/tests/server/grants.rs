//! What a connection may do with which stream, and for how long.

use std::time::{Duration, SystemTime};

use outflow_config::{Date, Secret};
use outflow_door::Rules;
use outflow_rtsp::auth::{Challenge, Credentials};
use outflow_rtsp::{StatusCode, headers};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use super::{ANNOUNCED, Client, PATIENCE, Server, session};

/// SHA-256 of "secret".
const HASH: &str = "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b";
/// Of "studio:Outflow:secret", by MD5 and by SHA-256.
const HA1: [&str; 2] =
    ["f4f4fca6feee0245a755b1b1ff7d1e61", "62eef67bbbf6a448cb1dc2f2a64471124871b3ba72f06ed2a2db207e5675c251"];
const OVER_TCP: &str = "Transport: RTP/AVP/TCP;unicast;interleaved=0-1;mode=record\r\n";

/// A token "studio", which is "secret", and a second stream.
fn token(keys: &str) -> String {
    format!(
        "[[access.tokens]]\nname = \"studio\"\nsha256 = \"{HASH}\"\n{keys}\n\
         [streams.other]\nsource = \"demo://\"\n"
    )
}

impl Server {
    /// From now on nothing that was listed is.
    fn revoke_all(&self) {
        let control = self.relay.control();
        let other = || vec![Secret::new("another")];
        let rules = Rules::from(&*control.config());
        control.door().set_rules(Rules { play: other(), publish: other(), tokens: Vec::new(), ..rules });
    }

    async fn other_is_up(&self) {
        let mut states = self.relay.control().watch();
        let is_up = states.wait_for(|state| state.stream("other").is_some_and(|s| s.source.packets > 0));
        timeout(PATIENCE, is_up).await.expect("in time").expect("running");
    }

    async fn revoked(&self, sessions: u64) {
        let counted = async {
            while self.relay.control().door().counts().revoked < sessions {
                sleep(Duration::from_millis(10)).await;
            }
        };
        timeout(PATIENCE, counted).await.expect("it is counted");
    }
}

impl Client {
    async fn until_sent_away(mut self) {
        let ended = async { while self.next().await.is_some() {} };
        timeout(PATIENCE, ended).await.expect("the relay ends it in time");
    }
}

#[tokio::test]
async fn what_lets_a_connection_in_to_one_stream_opens_no_other() {
    let named = token("rights = [\"play\"]\nstreams = [\"demo\"]");
    let listed = "[access]\nplay = [\"secret\"]\n[streams.other]\nsource = \"demo://\"\n".to_owned();
    for (config, other) in [(named, StatusCode::Forbidden), (listed, StatusCode::Ok)] {
        let server = Server::start(&config).await;
        server.demo_is_up().await;
        server.other_is_up().await;
        let mut client = server.connect().await;
        assert_eq!(client.status("DESCRIBE", "/demo?token=secret", "", "").await, StatusCode::Ok);
        assert_eq!(client.status("DESCRIBE", "/demo", "", "").await, StatusCode::Ok, "it has shown it");
        assert_eq!(client.status("DESCRIBE", "/other", "", "").await, StatusCode::Unauthorized);
        let setup = "Transport: RTP/AVP/TCP;unicast;interleaved=0-1\r\n";
        assert_eq!(client.status("SETUP", "/other/trackID=0", setup, "").await, StatusCode::Unauthorized);
        let response = client.ask("SETUP", "/other/trackID=0?token=secret", setup, "").await;
        let why = String::from_utf8_lossy(response.body());
        assert_eq!(response.status(), other, "{why}");
        assert_eq!(why.contains("token 'studio'"), other == StatusCode::Forbidden, "{why}");
    }
}

#[tokio::test]
async fn a_token_of_which_hashes_are_known_is_shown_by_digest() {
    let ha1 = format!("rights = [\"play\"]\nha1 = [\"{}\", \"{}\"]", HA1[0], HA1[1]);
    let server = Server::start(&token(&ha1)).await;
    server.demo_is_up().await;
    for (user, password, expected) in [
        ("studio", "secret", StatusCode::Ok),
        ("studio", "sekret", StatusCode::Unauthorized),
        ("any", "secret", StatusCode::Unauthorized),
    ] {
        let mut client = server.connect().await;
        let response = client.ask("DESCRIBE", "/demo", "", "").await;
        let challenges = response.header(&headers::WWW_AUTHENTICATE).expect("a challenge").as_str();
        for challenge in Challenge::parse_all(challenges) {
            let credentials = Credentials { user: user.to_owned(), password: password.to_owned() };
            let uri = format!("{}/demo", client.base);
            let answer = challenge.answer(&credentials, "DESCRIBE", &uri, 1, "c");
            let answer = format!("Authorization: {answer}\r\n");
            assert_eq!(client.status("DESCRIBE", "/demo", &answer, "").await, expected, "{user} {password}");
        }
    }
}

#[tokio::test]
async fn players_and_publishers_end_when_their_token_is_taken_out() {
    let server = Server::start(&token("rights = [\"play\", \"publish\"]")).await;
    server.demo_is_up().await;
    let mut player = server.connect().await;
    assert_eq!(player.status("DESCRIBE", "/demo?token=secret", "", "").await, StatusCode::Ok);
    player.play("demo").await;
    player.next_media().await;
    let mut publisher = server.connect().await;
    let announced = publisher.status("ANNOUNCE", "/push?token=secret", "", ANNOUNCED).await;
    assert_eq!(announced, StatusCode::Ok);
    let response = publisher.ask("SETUP", "/push?token=secret/streamid=0", OVER_TCP, "").await;
    let recorded = publisher.status("RECORD", "/push", &session(&response), "").await;
    assert_eq!(recorded, StatusCode::Ok);
    let mut ready = server.connect().await;
    assert_eq!(ready.status("DESCRIBE", "/demo?token=secret", "", "").await, StatusCode::Ok);
    let setup = "Transport: RTP/AVP/TCP;unicast;interleaved=0-1\r\n";
    let response = ready.ask("SETUP", "/demo/trackID=0", setup, "").await;
    server.revoke_all();
    let played = ready.status("PLAY", "/demo", &session(&response), "").await;
    assert_eq!(played, StatusCode::Unauthorized, "what was set up before cannot be played");
    assert_eq!(ready.status("DESCRIBE", "/demo", "", "").await, StatusCode::Unauthorized);
    player.until_sent_away().await;
    publisher.until_sent_away().await;
    server.revoked(2).await;
}

#[tokio::test]
async fn a_player_ends_when_its_token_expires() {
    let server = Server::start(&token("rights = [\"play\"]")).await;
    server.demo_is_up().await;
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("after 1970").as_secs();
    let mut rules = Rules::from(&*server.relay.control().config());
    rules.tokens[0].expires = Some(Date(now as i64 + 4));
    server.relay.control().door().set_rules(rules);
    let mut player = server.connect().await;
    assert_eq!(player.status("DESCRIBE", "/demo?token=secret", "", "").await, StatusCode::Ok);
    player.play("demo").await;
    player.until_sent_away().await;
    server.revoked(1).await;
    let response = server.connect().await.ask("DESCRIBE", "/demo?token=secret", "", "").await;
    let why = String::from_utf8_lossy(response.body());
    assert!(response.status() == StatusCode::Forbidden && why.contains("expired"), "{why}");
}

#[tokio::test]
async fn an_address_that_guesses_is_refused_on_every_connection() {
    let server = Server::start("[access]\nplay = [\"one\"]").await;
    server.demo_is_up().await;
    let mut known = server.connect().await;
    assert_eq!(known.status("DESCRIBE", "/demo?token=one", "", "").await, StatusCode::Ok);
    let mut guesses = 0;
    let refused = loop {
        let mut client = server.connect().await;
        let response = client.ask("DESCRIBE", "/demo?token=x", "", "").await;
        if response.status() != StatusCode::Unauthorized {
            assert_eq!(client.next().await, None, "the connection is ended");
            break response;
        }
        guesses += 1;
        assert!(guesses < 100, "an address may guess for ever");
    };
    assert_eq!(refused.status(), StatusCode::ServiceUnavailable);
    let why = String::from_utf8_lossy(refused.body());
    assert!(
        why.contains("too many wrong tokens") && refused.header(&headers::RETRY_AFTER).is_some(),
        "{why}"
    );
    let mut client = server.connect().await;
    let right = client.status("DESCRIBE", "/demo?token=one", "", "").await;
    assert_eq!(right, StatusCode::ServiceUnavailable, "guessing would go on if a right one were told apart");
    assert_eq!(known.status("DESCRIBE", "/demo", "", "").await, StatusCode::Ok, "it has shown its token");
    let mut other = Client { tcp: from("127.0.0.2", server.port).await, ..server.connect().await };
    assert_eq!(other.status("DESCRIBE", "/demo?token=one", "", "").await, StatusCode::Ok);
}

/// A connection from this address.
async fn from(address: &str, port: u16) -> TcpStream {
    let socket = tokio::net::TcpSocket::new_v4().expect("a socket");
    socket.bind((address.parse::<std::net::IpAddr>().expect("an address"), 0).into()).expect("bound");
    socket.connect(([127, 0, 0, 1], port).into()).await.expect("connected")
}
