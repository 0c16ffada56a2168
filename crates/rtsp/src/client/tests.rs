//! The client against scripted servers.

use super::*;
use proptest::prelude::*;

const URL: &str = "rtsp://user:secret@cam/s";

fn options(lower: Lower) -> ClientOptions {
    ClientOptions { lower, seed: 7, ..ClientOptions::default() }
}

/// A client and all that it has said.
struct Talk {
    client: RtspClient,
    now: Time,
    events: Vec<Event>,
    connects: Vec<Server>,
    asked: Vec<String>,
}

impl Talk {
    fn new(url: &str, options: ClientOptions) -> Talk {
        let client = RtspClient::new(url, options).unwrap();
        let (events, connects, asked) = (vec![], vec![], vec![]);
        let mut talk = Talk { client, now: Time::from_millis(5), events, connects, asked };
        talk.run();
        talk
    }

    fn run(&mut self) -> Option<(Time, Wake)> {
        loop {
            match self.client.poll(self.now) {
                Output::Connect(server) => {
                    self.connects.push(server);
                    self.client.connected(self.now);
                }
                Output::Send(bytes) => self.asked.push(String::from_utf8(bytes.to_vec()).unwrap()),
                Output::Event(event) => self.events.push(event),
                Output::Wait(until) => return until,
            }
        }
    }

    /// Answers the last request and returns the next one.
    fn answer(&mut self, status: &str, headers: &str, body: &str) -> &str {
        let cseq = self.last().split("CSeq: ").nth(1).and_then(|t| t.lines().next()).unwrap();
        let text = format!(
            "RTSP/1.0 {status}\r\nCSeq: {cseq}\r\n{headers}Content-Length: {}\r\n\r\n{body}",
            body.len()
        );
        self.receive(text.as_bytes());
        self.last()
    }

    fn receive(&mut self, bytes: &[u8]) {
        self.client.handle(self.now, &mut BytesMut::from(bytes));
        self.run();
    }

    fn last(&self) -> &str {
        self.asked.last().map_or("", String::as_str)
    }

    fn setup(&mut self, tracks: usize, ports: Option<Pair<u16>>) -> &str {
        let setups: Vec<_> =
            (0..tracks).map(|i| TrackSetup { control: Some(format!("trackID={i}")), ports }).collect();
        self.client.setup(self.now, Some("*"), &setups);
        self.run();
        self.last()
    }

    /// Up to PLAY having been answered, over TCP.
    fn playing(session: &str) -> Talk {
        let mut talk = Talk::new(URL, options(Lower::Tcp));
        talk.answer("200 OK", "Public: OPTIONS, GET_PARAMETER\r\n", "");
        talk.answer("200 OK", "Content-Base: rtsp://cam/s/\r\n", "v=0");
        talk.setup(2, None);
        let session = format!("Session: {session}\r\n");
        talk.answer("200 OK", &format!("{session}Transport: RTP/AVP/TCP;interleaved=0-1\r\n"), "");
        talk.answer("200 OK", &format!("{session}Transport: RTP/AVP/TCP;interleaved=6-7\r\n"), "");
        talk.answer(
            "200 OK",
            "RTP-Info: url=rtsp://cam/s/trackID=1;seq=5;rtptime=9,url=rtsp://cam/s/trackID=0;seq=1\r\n",
            "",
        );
        talk
    }

    fn closed(&self) -> &Closed {
        match self.events.last() {
            Some(Event::Closed(why)) => why,
            other => panic!("not closed: {other:?}"),
        }
    }
}

#[test]
fn a_stream_is_played_over_tcp() {
    let mut talk = Talk::playing("abc;timeout=20");
    let methods: Vec<_> = talk.asked.iter().map(|r| r.split("\r\n").next().unwrap()).collect();
    assert_eq!(
        methods,
        [
            "OPTIONS rtsp://cam/s RTSP/1.0",
            "DESCRIBE rtsp://cam/s RTSP/1.0",
            "SETUP rtsp://cam/s/trackID=0 RTSP/1.0",
            "SETUP rtsp://cam/s/trackID=1 RTSP/1.0",
            "PLAY rtsp://cam/s/ RTSP/1.0",
        ]
    );
    assert!(talk.asked[4].contains("\r\nSession: abc\r\n"));
    assert_eq!(talk.connects, [Server { host: "cam".to_owned(), port: 554, tls: false }]);
    let starts = vec![Start { seq: Some(1), rtptime: None }, Start { seq: Some(5), rtptime: Some(9) }];
    assert_eq!(talk.events.last(), Some(&Event::Started(starts)));

    talk.receive(b"$\x07\x00\x02hi$\x09\x00\x01x");
    let media = Event::Media { track: 1, rtcp: true, bytes: Bytes::from_static(b"hi") };
    assert_eq!(talk.events.last(), Some(&media));
    assert_eq!(talk.client.strays(), 1);
}

#[test]
fn the_session_is_kept_alive_at_half_its_time_out() {
    let mut talk = Talk::playing("abc;timeout=20");
    let (at, why) = talk.run().unwrap();
    assert_eq!((at.since(talk.now), why), (Duration::from_secs(10), Wake::KeepAlive));
    talk.now = at;
    talk.run();
    assert!(talk.last().starts_with("GET_PARAMETER rtsp://cam/s/ "));
    // A server that does not want it is shown OPTIONS the next time.
    talk.answer("501 Not Implemented", "", "");
    talk.now = talk.run().unwrap().0;
    talk.run();
    assert!(talk.last().starts_with("OPTIONS "));
    talk.answer("454 Session Not Found", "", "");
    assert_eq!(talk.closed(), &Closed::SessionLost);
}

#[test]
fn parameters_are_set_one_after_the_other_and_a_refusal_ends_nothing() {
    let mut talk = Talk::playing("abc;timeout=20");
    for level in ["2", "3", "4"] {
        talk.client.set_parameter("level", level);
        if level == "2" {
            talk.run();
        }
    }
    assert!(talk.last().starts_with("SET_PARAMETER rtsp://cam/s/ "));
    assert!(talk.last().contains("\r\nSession: abc\r\n") && talk.last().ends_with("\r\n\r\nlevel: 2\r\n"));
    assert!(talk.answer("200 OK", "", "").ends_with("\r\n\r\nlevel: 4\r\n"), "the last wish");
    assert_eq!(talk.events.last(), Some(&Event::ParameterSet { status: 200 }));
    talk.now = talk.now + Duration::from_secs(3);
    talk.answer("451 Parameter Not Understood", "", "");
    assert_eq!(talk.events.last(), Some(&Event::ParameterSet { status: 451 }));
    let (at, why) = talk.run().unwrap();
    assert_eq!(
        (at.since(talk.now), why),
        (Duration::from_secs(10), Wake::KeepAlive),
        "it was a sign of life"
    );
}

#[test]
fn a_challenge_is_answered_once() {
    let mut talk = Talk::new(URL, options(Lower::Tcp));
    let challenge =
        "WWW-Authenticate: Digest realm=\"c\", nonce=\"n\"\r\nWWW-Authenticate: Basic realm=\"c\"\r\n";
    let request = talk.answer("401 Unauthorized", challenge, "").to_owned();
    assert!(request.contains("\r\nAuthorization: Digest username=\"user\", realm=\"c\""), "{request}");
    assert!(!request.contains("secret") && !request.contains("user:"));
    let request = talk.answer("200 OK", "", "").to_owned();
    assert!(request.starts_with("DESCRIBE") && request.contains("\r\nAuthorization: Digest "));
    // The nonce runs out: with "stale", and as some cameras do, without.
    let stale = "WWW-Authenticate: Digest realm=\"c\", nonce=\"m\", stale=true\r\n";
    assert!(talk.answer("401 Unauthorized", stale, "").contains("nonce=\"m\""));
    talk.answer("200 OK", "", "v=0");
    talk.setup(1, None);
    let other = "WWW-Authenticate: Digest realm=\"c\", nonce=\"o\"\r\n";
    assert!(talk.answer("401 Unauthorized", other, "").contains("nonce=\"o\""));
    talk.answer("401 Unauthorized", other, "");
    assert_eq!(talk.closed(), &Closed::WrongCredentials);
}

#[test]
fn without_a_password_a_challenge_ends_it() {
    let mut talk = Talk::new("rtsp://cam/s", options(Lower::Tcp));
    talk.answer("401 Unauthorized", "WWW-Authenticate: Basic realm=\"yard\"\r\n", "");
    assert_eq!(talk.closed(), &Closed::NeedsCredentials("yard".to_owned()));
}

#[test]
fn a_server_without_udp_is_asked_for_tcp() {
    let mut talk = Talk::new(URL, options(Lower::Udp));
    talk.answer("200 OK", "", "");
    talk.answer("200 OK", "", "v=0");
    let request = talk.setup(1, Some(Pair { rtp: 5000, rtcp: 5001 }));
    assert!(request.contains("Transport: RTP/AVP;unicast;client_port=5000-5001\r\n"), "{request}");
    let request = talk.answer("461 Unsupported Transport", "", "");
    assert!(request.contains("Transport: RTP/AVP/TCP;unicast;interleaved=0-1\r\n"), "{request}");
    talk.answer("200 OK", "Session: 1\r\nTransport: RTP/AVP/TCP;unicast;interleaved=0-1\r\n", "");
    let Some(Event::SetUp(carried)) = talk.events.last() else { panic!("{:?}", talk.events) };
    assert_eq!(carried[0].interleaved, Some(Pair { rtp: 0, rtcp: 1 }));
}

#[test]
fn a_group_is_asked_for_and_nothing_else_taken() {
    let asking = || {
        let mut talk = Talk::new(URL, ClientOptions { multicast: true, ..options(Lower::Tcp) });
        talk.answer("200 OK", "", "");
        talk.answer("200 OK", "", "v=0");
        let request = talk.setup(1, None);
        assert!(request.contains("Transport: RTP/AVP;multicast\r\n"), "{request}");
        talk
    };
    let mut talk = asking();
    let group = "RTP/AVP;multicast;destination=232.1.1.7;source=10.0.0.9;port=5004-5005;ttl=3";
    talk.answer("200 OK", &format!("Session: 1\r\nTransport: {group}\r\n"), "");
    let Some(Event::SetUp(carried)) = talk.events.last() else { panic!("{:?}", talk.events) };
    assert_eq!(carried[0].port, Some(Pair { rtp: 5004, rtcp: 5005 }));
    assert_eq!(carried[0].destination.as_deref(), Some("232.1.1.7"));
    let mut talk = asking();
    talk.answer("200 OK", "Session: 1\r\nTransport: RTP/AVP;unicast;server_port=80-81\r\n", "");
    assert!(matches!(talk.closed(), Closed::Unexpected(_)));
    let mut talk = asking();
    talk.answer("461 Unsupported Transport", "", "");
    assert!(matches!(talk.closed(), Closed::Refused { status: 461, .. }), "TCP is not what was asked for");
}

#[test]
fn udp_ports_of_the_server_are_passed_on() {
    let mut talk = Talk::new(URL, options(Lower::Udp));
    talk.answer("200 OK", "", "");
    talk.answer("200 OK", "", "v=0");
    talk.setup(1, Some(Pair { rtp: 5000, rtcp: 5001 }));
    talk.answer("200 OK", "Session: 1\r\nTransport: RTP/AVP;unicast;server_port=80-81\r\n", "");
    let Some(Event::SetUp(carried)) = talk.events.last() else { panic!("{:?}", talk.events) };
    assert_eq!(carried[0].server_port, Some(Pair { rtp: 80, rtcp: 81 }));
    assert_eq!(carried[0].client_port, Some(Pair { rtp: 5000, rtcp: 5001 }));
}

#[test]
fn redirections_are_followed_but_not_for_ever_and_without_the_password() {
    let mut talk = Talk::new(URL, options(Lower::Tcp));
    talk.answer("302 Found", "Location: rtsps://other:99/t\r\n", "");
    assert_eq!(talk.connects[1], Server { host: "other".to_owned(), port: 99, tls: true });
    talk.answer("401 Unauthorized", "WWW-Authenticate: Basic realm=\"x\"\r\n", "");
    assert_eq!(talk.closed(), &Closed::NeedsCredentials("x".to_owned()));

    let mut talk = Talk::new(URL, options(Lower::Tcp));
    for _ in 0..6 {
        talk.answer("301 Moved Permanently", "Location: rtsp://cam/again\r\n", "");
    }
    assert_eq!(talk.closed(), &Closed::Redirected);
    assert_eq!(talk.connects.len(), 6);
}

#[test]
fn a_stream_is_published() {
    let announce = Some(Bytes::from_static(b"v=0\r\n"));
    let mut talk = Talk::new("rtsp://relay:8554/s", ClientOptions { announce, ..options(Lower::Tcp) });
    let request = talk.answer("200 OK", "", "");
    assert!(request.starts_with("ANNOUNCE ") && request.ends_with("\r\n\r\nv=0\r\n"), "{request}");
    talk.answer("200 OK", "", "");
    assert_eq!(talk.events, [Event::Announced]);
    assert!(talk.setup(1, None).contains("interleaved=0-1;mode=record\r\n"));
    let request = talk.answer("200 OK", "Session: 1\r\nTransport: RTP/AVP/TCP;interleaved=0-1\r\n", "");
    assert!(request.starts_with("RECORD "));
}

#[test]
fn silence_and_refusals_end_it_with_a_reason() {
    let mut talk = Talk::new(URL, options(Lower::Tcp));
    talk.now = talk.run().unwrap().0;
    talk.run();
    assert_eq!(talk.closed(), &Closed::TimedOut("OPTIONS"));

    let mut talk = Talk::new(URL, options(Lower::Tcp));
    talk.answer("501 Not Implemented", "", "");
    talk.answer("404 Not Found", "", "");
    let text = talk.closed().to_string();
    assert_eq!(
        text,
        "the server refused DESCRIBE: 404 Not Found (no such stream: check the path of the URL)"
    );

    let mut talk = Talk::playing("abc");
    talk.receive(b"\x00");
    assert_eq!(talk.closed(), &Closed::Broken(crate::DecodeError::NotRtsp(0)));
    assert_eq!(talk.run(), None);
}

#[test]
fn teardown_does_not_wait_for_ever() {
    let mut talk = Talk::playing("abc");
    talk.client.teardown(talk.now);
    let (at, _) = talk.run().unwrap();
    assert!(talk.last().starts_with("TEARDOWN rtsp://cam/s/ "));
    talk.now = at;
    talk.run();
    assert_eq!(talk.closed(), &Closed::Ended);
}

#[test]
fn requests_of_the_server_are_answered() {
    let mut talk = Talk::playing("abc");
    talk.receive(b"OPTIONS * RTSP/1.0\r\nCSeq: 99\r\n\r\n");
    assert_eq!(talk.last(), "RTSP/1.0 200 Ok\r\nCSeq: 99\r\n\r\n");
    talk.receive(b"REDIRECT * RTSP/1.0\r\nCSeq: 100\r\n\r\n");
    assert!(talk.last().starts_with("RTSP/1.0 501 "));
}

proptest! {
    #[test]
    fn no_answer_makes_it_panic(
        statuses in proptest::collection::vec(100u16..600, 1..12), headers in "[ -~]{0,60}", body in ".{0,20}"
    ) {
        let mut talk = Talk::new(URL, options(Lower::Udp));
        for status in statuses {
            let text = format!(
                "Transport: {headers}\r\nSession: {headers}\r\nWWW-Authenticate: Digest {headers}\r\n\
                 Location: {headers}\r\nRTP-Info: {headers}\r\nContent-Base: {headers}\r\n"
            );
            talk.answer(&format!("{status} X"), &text, &body);
            talk.setup(2, Some(Pair { rtp: 5000, rtcp: 5001 }));
        }
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        Talk::playing("abc").receive(&bytes);
    }
}

/// The same client in another process, as it is handed over.
fn elsewhere(client: &RtspClient, url: &str) -> RtspClient {
    let bytes = minicbor::to_vec(client.save().expect("it plays")).unwrap();
    RtspClient::restore(url, options(Lower::Tcp), minicbor::decode(&bytes).unwrap()).expect("it fits")
}

#[test]
fn a_client_goes_on_in_another_process() {
    let mut talk = Talk::playing("abc;timeout=20");
    talk.client = elsewhere(&talk.client, URL);
    talk.now = talk.run().unwrap().0;
    talk.run();
    let asked = talk.last().to_owned();
    assert!(asked.starts_with("GET_PARAMETER rtsp://cam/s/ ") && asked.contains("\r\nSession: abc\r\n"));
    // The answer comes after the next hand-over; the server wants a password by now.
    talk.client = elsewhere(&talk.client, URL);
    let challenge = "WWW-Authenticate: Digest realm=\"c\\\"am\", nonce=\"n\", opaque=\"o\", qop=\"auth\"\r\n";
    assert!(talk.answer("401 Unauthorized", challenge, "").contains("nc=00000001"));
    talk.answer("200 OK", "", "");
    let known = talk.client.challenge.clone();
    talk.client = elsewhere(&talk.client, URL);
    assert_eq!(talk.client.challenge, known);
    talk.now = talk.run().unwrap().0;
    talk.run();
    assert!(talk.last().contains("nc=00000002"), "{}", talk.last());
    assert_eq!(talk.last().matches("CSeq: 8").count(), 1, "{}", talk.last());
    talk.receive(b"$\x07\x00\x02hi");
    let media = Event::Media { track: 1, rtcp: true, bytes: Bytes::from_static(b"hi") };
    assert_eq!(talk.events.last(), Some(&media));
}

#[test]
fn a_password_stays_with_the_server_that_may_have_it_in_another_process_too() {
    let mut talk = Talk::new(URL, options(Lower::Tcp));
    talk.answer("302 Found", "Location: rtsp://elsewhere/s\r\n", "");
    talk.answer("200 OK", "Public: OPTIONS\r\n", "");
    talk.answer("200 OK", "", "v=0");
    talk.setup(1, None);
    talk.answer("200 OK", "Session: a\r\nTransport: RTP/AVP/TCP;interleaved=0-1\r\n", "");
    assert!(talk.client.save().is_none(), "it does not play");
    talk.answer("200 OK", "", "");
    talk.client = elsewhere(&talk.client, URL);
    talk.now = talk.run().unwrap().0;
    talk.run();
    assert!(talk.last().starts_with("OPTIONS rtsp://elsewhere/s "), "{}", talk.last());
    talk.answer("401 Unauthorized", "WWW-Authenticate: Basic realm=\"b\"\r\n", "");
    assert_eq!(talk.closed(), &Closed::NeedsCredentials("b".to_owned()));
    assert!(talk.client.save().is_none(), "it is over");
}
