//! Connections that go on: what one process gives of them, and what another one makes of that. Here one relay is both.

use std::io;
use std::time::Duration;

use outflow_config::Config;
use outflow_control::{Control, Part, Relay};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

use super::connection::Connection;
use super::save::SavedConnection;
use super::wire::Wire;

/// Longer than anything here takes, so that a failure is one and no hang.
const PATIENCE: Duration = Duration::from_secs(20);

const ANNOUNCED: &str = "v=0\r\no=- 0 0 IN IP4 127.0.0.1\r\ns=x\r\nt=0 0\r\n\
    m=video 0 RTP/AVP 96\r\na=rtpmap:96 H264/90000\r\na=control:streamid=0\r\n";

const WITHIN: &str = "RTP/AVP/TCP;unicast;interleaved=4-5";
const BY_UDP: &str = "RTP/AVP;unicast;client_port=40000-40001";

/// A relay with one stream, which takes publishers.
async fn relay() -> Relay {
    let fronts = vec![super::front()];
    let text = "[listen]\nrtsp = \"off\"\nrtp_ports = \"30000-31999\"\n[streams.push]\n";
    let config = Config::parse(text, "test", &outflow_control::protocols(&fronts));
    let config = config.unwrap_or_else(|errors| panic!("{errors}"));
    Relay::start(config, None, fronts, None).await.expect("started")
}

/// A peer, and the relay's side of its connection, which is served while the peer waits for an answer.
struct Pair {
    control: Control,
    connection: Connection,
    tcp: TcpStream,
    session: String,
}

impl Pair {
    async fn of(relay: &Relay) -> Pair {
        let control = relay.control().clone();
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let at = listener.local_addr().expect("bound");
        let (tcp, accepted) = tokio::join!(TcpStream::connect(at), listener.accept());
        let (accepted, peer) = accepted.expect("accepted");
        let permit = control.door().admit(peer.ip()).expect("room");
        let connection = Connection::new(Wire::plain(accepted), peer, at, control.clone(), permit);
        Pair { control, connection, tcp: tcp.expect("connected"), session: String::new() }
    }

    /// The first line of the answer.
    async fn ask(&mut self, method: &str, path: &str, more: &str, body: &str) -> String {
        let Pair { connection, tcp, session, .. } = self;
        let length = body.len();
        let text = format!(
            "{method} rtsp://127.0.0.1{path} RTSP/1.0\r\nCSeq: 1\r\n{session}{more}\
             Content-Length: {length}\r\n\r\n{body}"
        );
        let answer = async {
            tcp.write_all(text.as_bytes()).await.expect("sent");
            let mut answer = Vec::new();
            while !answer.ends_with(b"\r\n\r\n") {
                answer.push(tcp.read_u8().await.expect("an answer"));
            }
            String::from_utf8(answer).expect("text")
        };
        let answer = tokio::select! {
            ended = connection.run() => panic!("{ended:?}"),
            answer = timeout(PATIENCE, answer) => answer.expect("in time"),
        };
        if let Some(named) = answer.lines().find(|line| line.starts_with("Session: ")) {
            *session = format!("{}\r\n", named.split(';').next().unwrap_or_default());
        }
        answer.lines().next().unwrap_or_default().to_owned()
    }

    async fn set_up(&mut self, path: &str, transport: &str) {
        let transport = format!("Transport: {transport}\r\n");
        assert_eq!(self.ask("SETUP", path, &transport, "").await, "RTSP/1.0 200 OK");
    }

    async fn announce(&mut self, transport: &str) {
        let kind = "Content-Type: application/sdp\r\n";
        assert_eq!(self.ask("ANNOUNCE", "/push", kind, ANNOUNCED).await, "RTSP/1.0 200 OK");
        self.set_up("/push/streamid=0", &format!("{transport};mode=record")).await;
    }

    async fn record(&mut self) {
        assert_eq!(self.ask("RECORD", "/push", "", "").await, "RTSP/1.0 200 OK");
    }

    async fn play(&mut self) {
        assert_eq!(self.ask("PLAY", "/push/", "", "").await, "RTSP/1.0 200 OK");
    }

    fn saved(&self) -> SavedConnection {
        let part = self.connection.save().expect("it can go on");
        SavedConnection::decode(&part.value).expect("a part")
    }

    /// It goes on by what it has given.
    fn go_on(self) -> io::Result<Pair> {
        let Pair { control, connection, tcp, session } = self;
        let part = connection.save().expect("it can go on");
        drop(connection);
        Ok(Pair { connection: Connection::restore(&control, part)?, control, tcp, session })
    }
}

#[tokio::test]
async fn what_was_announced_is_recorded_after_it_has_gone_on() {
    let relay = relay().await;
    let mut publisher = Pair::of(&relay).await;
    publisher.announce(WITHIN).await;
    let before = publisher.saved();
    let mut publisher = publisher.go_on().expect("it goes on");
    let after = publisher.saved();
    assert!(before.publication == after.publication && before.session == after.session);
    assert!(before.granted == after.granted && (&before.peer, &before.local) == (&after.peer, &after.local));
    assert!(after.ran_ns >= before.ran_ns, "the session's time goes on");
    publisher.record().await;
    let part = publisher.connection.save().expect("it can go on");
    let source = publisher.saved().publication.and_then(|publication| publication.source);
    assert!(source.is_some() && part.turn == source, "its turn goes with it");
}

#[tokio::test]
async fn a_publisher_by_udp_goes_on_once_a_worker_reads_its_ports() {
    let relay = relay().await;
    let mut publisher = Pair::of(&relay).await;
    publisher.announce(BY_UDP).await;
    assert!(publisher.connection.save().is_none(), "nothing has its ports yet");
    publisher.record().await;
    assert!(publisher.connection.save().is_some_and(|part| part.turn.is_some()));
}

#[tokio::test]
async fn a_player_that_was_set_up_plays_after_it_has_gone_on() {
    let relay = relay().await;
    let mut publisher = Pair::of(&relay).await;
    publisher.announce(WITHIN).await;
    publisher.record().await;
    for (transport, has_site) in [(WITHIN, false), (BY_UDP, true)] {
        let mut player = Pair::of(&relay).await;
        player.set_up("/push/wanted:level=2/trackID=0", transport).await;
        let before = player.saved();
        let site = before.player.as_ref().and_then(|player| player.site.as_ref());
        assert_eq!(site.is_some(), has_site);
        let mut player = player.go_on().expect("it goes on");
        let after = player.saved();
        assert!(before.player == after.player && before.session == after.session);
        assert!(before.wanted.is_some() && before.wanted == after.wanted);
        player.play().await;
        let plays = player.saved();
        assert_eq!(plays.is_given_away, !has_site);
        let playing = plays.player.expect("it plays");
        assert!(playing.receiver.is_some());
        assert_eq!(playing.selection, "level=2");
    }
}

#[tokio::test]
async fn a_receiver_or_a_turn_that_is_not_there_any_more_ends_the_session() {
    let relay = relay().await;
    let mut publisher = Pair::of(&relay).await;
    publisher.announce(WITHIN).await;
    publisher.record().await;
    let mut player = Pair::of(&relay).await;
    player.set_up("/push/trackID=0", WITHIN).await;
    player.play().await;
    for (pair, why) in [(player, "its receiver has left"), (publisher, "its turn is over")] {
        let error = pair.go_on().err().expect("nothing is kept for it").to_string();
        assert!(error.contains(why) && error.contains("connect again"), "{error}");
    }
}

#[tokio::test]
async fn what_cannot_be_read_or_has_no_descriptor_does_not_go_on() {
    let relay = relay().await;
    let pair = Pair::of(&relay).await;
    let part = pair.connection.save().expect("it can go on");
    let without = Part { value: part.value.clone(), ..Part::default() };
    let odd = Part { value: vec![0xff], ..part };
    for part in [without, odd] {
        let error = Connection::restore(&pair.control, part).err().expect("it cannot").to_string();
        assert!(error.contains("connect again"), "{error}");
    }
}
