//! The server as its clients see it, over real sockets.

#![allow(clippy::disallowed_methods, reason = "a test of sockets")]

use std::net::SocketAddr;
use std::time::Duration;

use outflow_config::Config;
use outflow_control::Relay;
use outflow_front_poc::{NO_MEDIA, REVOKED, TAKEN_OVER};
use outflow_poc_socket::media::{self, Form};
use outflow_poc_socket::{Options, PocListener, PocSocket, Security};
use tokio::time::{sleep, timeout};

/// Longer than anything here takes, so that a failure is one and no hang.
const PATIENCE: Duration = Duration::from_secs(20);

struct Server {
    relay: Option<Relay>,
    at: SocketAddr,
}

/// Another relay that wants to talk.
fn other_relay() -> outflow_petri::service::Request {
    let mut request = media::to_send("/.tree", Form::Ts, Duration::from_millis(200));
    request.to_client = Some(media::whatever(None));
    request
}

impl Server {
    async fn start(config: &str) -> Server {
        let all = format!(
            "[listen]\nrtsp = \"off\"\nhttp = \"off\"\npoc = \"127.0.0.1:1\"\nrtp_ports = \"32000-32999\"\n\
             [poc]\nencryption = \"off\"\n{config}\n\
             [streams.demo]\nsource = \"demo://\"\n[streams.push]\n"
        );
        let mut config = Config::parse(&all, "test", &outflow_fronts::protocols())
            .unwrap_or_else(|errors| panic!("{errors}"));
        // Any port that is free serves here instead.
        config.listen.set("poc", None);
        let relay = Relay::start(config, None, outflow_fronts::all(), None).await.expect("started");
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let listener = PocListener::bind(any, Options::new(Security::Plain)).expect("bound");
        let at = listener.local_addr();
        tokio::spawn(outflow_front_poc::serve(listener, relay.control().clone()));
        Server { relay: Some(relay), at }
    }

    async fn connect(&self, request: outflow_petri::service::Request) -> Result<PocSocket, String> {
        let options = Options::new(Security::Plain);
        let connected = PocSocket::connect(self.at, request, &options);
        timeout(PATIENCE, connected).await.expect("in time").map_err(|error| error.to_string())
    }

    async fn play(&self, resource: &str) -> Result<PocSocket, String> {
        self.connect(media::to_receive(resource, Form::Ts, None)).await
    }

    async fn refused(&self, resource: &str) -> String {
        self.play(resource).await.expect_err("it is refused")
    }

    async fn publish(&self, resource: &str) -> Result<PocSocket, String> {
        self.connect(media::to_send(resource, Form::Ts, Duration::from_millis(200))).await
    }

    /// Waits until there is a place again for one that asks for this.
    async fn play_soon(&self, resource: &str) -> PocSocket {
        timeout(PATIENCE, async {
            loop {
                match self.play(resource).await {
                    Ok(socket) => return socket,
                    Err(_) => sleep(Duration::from_millis(20)).await,
                }
            }
        })
        .await
        .expect("in time")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(relay) = self.relay.take() {
            relay.shut_down();
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn what_no_stream_can_be_called_is_refused_as_such() {
    let server = Server::start("").await;
    for (resource, name) in [("/", ""), ("/a%20b", "a b"), ("/.demo", ".demo"), ("/api/v1", "api/v1")] {
        let expected = outflow_config::check_name(name).expect_err("no name").to_string();
        let played = server.refused(resource).await;
        assert!(played.contains(&expected), "{resource}: {played}");
        let published = server.publish(resource).await.expect_err("refused");
        assert!(published.contains(&expected), "{resource}: {published}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_receiver_is_refused_for_which_its_link_has_no_room() {
    let link = "[link.narrow]\nrate = \"1 Mbit/s\"\nadmission = \"refuse\"\n\
                [defaults]\nlink = \"narrow\"\nreserve_rate = \"40 Mbit/s\"\n";
    let server = Server::start(link).await;
    let refused = server.refused("/push").await;
    let why = "link 'narrow' has 1 Mbit/s left of 1 Mbit/s, and this takes 40 Mbit/s";
    assert!(refused.contains(why), "{refused}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn connections_have_their_places_among_all_others() {
    let server = Server::start("[limits]\nconnections_per_address = 2").await;
    let playing = server.play_soon("/demo").await;
    let _publishing = server.publish("/push").await.expect("there is a place");
    let full = server.refused("/demo").await;
    assert!(full.contains("limit of 2") && full.contains("connections_per_address"), "{full}");
    drop(playing);
    server.play_soon("/demo").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn relays_of_the_tree_have_theirs_too() {
    let tree = "[limits]\nconnections_per_address = 1\n\
                [tree]\nname = \"a\"\naddress = \"127.0.0.1:9\"";
    let server = Server::start(tree).await;
    let relay = server.connect(other_relay()).await.expect("there is a place");
    let full = server.connect(other_relay()).await.expect_err("there is none");
    assert!(full.contains("limit of 1"), "{full}");
    drop(relay);
    server.play_soon("/demo").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_relay_of_the_tree_ends_when_its_token_is_taken_out() {
    let server = Server::start(
        "[access]\nplay = [\"x\"]\n[tree]\nname = \"a\"\naddress = \"127.0.0.1:9\"\ntoken = \"one\"",
    )
    .await;
    let mut request = other_relay();
    request.resource = "/.tree?token=one".to_owned();
    let relay = server.connect(request).await.expect("it may");
    let control = server.relay.as_ref().expect("it runs").control();
    let rules = outflow_door::Rules::from(&*control.config());
    assert_eq!(rules.relay.len(), 1, "the right needs a token");
    let other = vec![outflow_config::Secret::new("another")];
    control.door().set_rules(outflow_door::Rules { relay: other, ..rules });
    let ended = async { while relay.recv().await.is_ok() {} };
    timeout(PATIENCE, ended).await.expect("in time");
    assert_eq!(control.door().counts().revoked, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_address_that_guesses_tokens_has_to_wait() {
    let server = Server::start("[access]\nplay = [\"one\"]").await;
    drop(server.play_soon("/demo?token=one").await);
    let mut guesses = 0;
    let refused = loop {
        let refused = server.refused("/demo?token=x").await;
        if !refused.contains("is not one of those") {
            break refused;
        }
        guesses += 1;
        assert!(guesses < 100, "an address may guess for ever");
    };
    assert!(refused.contains("too many wrong tokens"), "{refused}");
    let right = server.refused("/demo?token=one").await;
    assert!(right.contains("too many wrong tokens"), "guessing would go on: {right}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_publisher_that_is_silent_is_taken_over_and_told() {
    let server = Server::start("[defaults]\nsource_timeout = \"200 ms\"").await;
    let first = server.publish("/push").await.expect("it may");
    let second = timeout(PATIENCE, async {
        loop {
            match server.publish("/push").await {
                Ok(second) => return second,
                Err(_) => sleep(Duration::from_millis(20)).await,
            }
        }
    });
    let _second = second.await.expect("it may in time");
    let told = timeout(PATIENCE, first.recv()).await.expect("told in time").expect_err("it is over");
    assert_eq!((told.code, told.text.contains("taken the stream over")), (TAKEN_OVER, true), "{told:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_publisher_that_sends_no_media_is_let_go_and_told() {
    let server = Server::start("[defaults]\npublish_timeout = \"300 ms\"").await;
    for form in [Form::Ts, Form::Rtp] {
        let request = media::to_send("/push", form, Duration::from_millis(200));
        let publisher = server.connect(request).await.expect("it may");
        let told = timeout(PATIENCE, publisher.recv()).await.expect("told in time").expect_err("it is over");
        assert_eq!((told.code, told.text.contains("no media")), (NO_MEDIA, true), "{told:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn clients_end_when_their_token_is_taken_out() {
    let hash = "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b";
    let server = Server::start(&format!(
        "[[access.tokens]]\nname = \"studio\"\nsha256 = \"{hash}\"\nrights = [\"play\", \"publish\"]"
    ))
    .await;
    let player = server.play_soon("/demo?token=secret").await;
    let publisher = server.publish("/push?token=secret").await.expect("it may");
    let refused = server.refused("/demo").await;
    assert!(refused.contains("a token is needed"), "{refused}");
    let control = server.relay.as_ref().expect("it runs").control();
    let other = || vec![outflow_config::Secret::new("another")];
    let rules = outflow_door::Rules::from(&*control.config());
    let rules = outflow_door::Rules { play: other(), publish: other(), tokens: Vec::new(), ..rules };
    control.door().set_rules(rules);
    let ended = async |socket: &PocSocket| loop {
        if let Err(closed) = socket.recv().await {
            break closed;
        }
    };
    let closed = timeout(PATIENCE, ended(&player)).await.expect("in time");
    assert!(closed.text.contains("token is no longer good"), "{closed:?}");
    let closed = timeout(PATIENCE, ended(&publisher)).await.expect("in time");
    assert!(closed.code == REVOKED && closed.text.contains("token is no longer good"), "{closed:?}");
}
