//! A session without sockets: what it asks, says and wants, for what it is told.

use core::time::Duration;

use outflow_rtp::rtcp;
use rtsp_types::headers;

use super::*;
use crate::{Lower, Pair, Response};

const ANNOUNCED: &str = "v=0\r\no=- 0 0 IN IP4 127.0.0.1\r\ns=x\r\nt=0 0\r\n\
    m=video 0 RTP/AVP 96\r\na=rtpmap:96 H264/90000\r\na=control:streamid=0\r\n";

const TCP: &str = "Transport: RTP/AVP/TCP;unicast;interleaved=4-5\r\n";
const UDP: &str = "Transport: RTP/AVP;unicast;client_port=5000-5001\r\n";

/// A driver that says yes to all.
struct Driver {
    session: Session<String>,
    now: Time,
    cseq: u32,
    asked: Vec<Question<String>>,
    /// What the next question is answered instead.
    refusal: Option<Reply>,
    groups: bool,
    lives: bool,
    wait: Option<(Time, Wake)>,
}

impl Driver {
    fn new() -> Driver {
        let [peer, local] = [[127, 0, 0, 2], [127, 0, 0, 1]].map(IpAddr::from);
        let (id, nonce) = ("12ab".to_owned(), "34cd".to_owned());
        let options = Options { id, nonce, ssrc: 99, is_encrypted: false, peer, local };
        Driver {
            session: Session::new(Time::ZERO, options),
            now: Time::ZERO,
            cseq: 0,
            asked: Vec::new(),
            refusal: None,
            groups: false,
            lives: false,
            wait: None,
        }
    }

    fn answer(&self, question: &Question<String>) -> Answer<String> {
        match question {
            Question::Enter(entry) => {
                Answer::Entered { selection: entry.address.name.clone(), wanted: String::new() }
            }
            Question::Describe(_) => Answer::Described("v=0\r\n".to_owned()),
            Question::Tracks(_) => Answer::Tracks { count: 2, groups: self.groups },
            Question::Site(_) | Question::Ports(_) => Answer::Ports(Pair { rtp: 6000, rtcp: 6001 }),
            Question::Group(_) => {
                Answer::Group { to: ([239, 0, 0, 1], 7000).into(), source: [10, 0, 0, 1].into(), ttl: 3 }
            }
            Question::Play(..) | Question::Resume => {
                Answer::Playing(vec![TrackStart { track: 0, sequence: 7, timestamp: 8 }])
            }
            Question::Announce(..) | Question::Record(_) | Question::Set(_) => Answer::Done,
            Question::Life => Answer::Life(self.lives),
        }
    }

    /// What is to be done besides answering questions, until there is something to wait for.
    fn serve(&mut self) -> Vec<Output<String>> {
        let mut done = Vec::new();
        loop {
            match self.session.poll(self.now) {
                Output::Ask(question) => {
                    let answer = self.refusal.take().map_or_else(|| Ok(self.answer(&question)), Err);
                    self.asked.push(question);
                    self.session.handle(self.now, Input::Answer(answer));
                }
                Output::Wait(wait) => {
                    self.wait = wait;
                    return done;
                }
                output => done.push(output),
            }
        }
    }

    /// It goes on in another process.
    fn go_on_elsewhere(&mut self) {
        let saved = self.session.save(String::clone).expect("nothing is open");
        let bytes = minicbor::to_vec(&saved).expect("memory does not fail");
        let options = Options { id: "other".to_owned(), ..Driver::new().session.options };
        let read = minicbor::decode(&bytes).expect("what was written");
        self.session = Session::restore(read, options, |words| Some(words.to_owned())).expect("it fits");
        assert_eq!(self.session.save(String::clone), Some(saved));
    }

    fn receive(&mut self, bytes: &[u8]) -> Vec<Output<String>> {
        self.session.buffer().extend_from_slice(bytes);
        self.serve()
    }

    fn text(&mut self, method: &str, path: &str, more: &str, body: &str) -> String {
        self.cseq += 1;
        let length = body.len();
        let cseq = self.cseq;
        format!(
            "{method} rtsp://h{path} RTSP/1.0\r\nCSeq: {cseq}\r\n{more}Content-Length: {length}\r\n\r\n{body}"
        )
    }

    /// The answer to a request, and what is to be done behind it.
    fn ask(&mut self, method: &str, path: &str, more: &str, body: &str) -> (Response, Vec<Output<String>>) {
        let text = self.text(method, path, more, body);
        let mut done = self.receive(text.as_bytes());
        let at = done.iter().position(|output| matches!(output, Output::Send(_)));
        let Some(Output::Send(bytes)) = at.map(|at| done.remove(at)) else { panic!("{method}: {done:?}") };
        let response = read(&bytes);
        assert_eq!(
            response.header(&headers::CSEQ).map(|v| v.as_str().to_owned()),
            Some(self.cseq.to_string())
        );
        (response, done)
    }

    fn status(&mut self, method: &str, path: &str, more: &str, body: &str) -> u16 {
        self.ask(method, path, more, body).0.status().into()
    }
}

fn read(bytes: &[u8]) -> Response {
    match Decoder::new().decode(&mut BytesMut::from(bytes)) {
        Ok(Some(Item::Response(response))) => response,
        other => panic!("no answer: {other:?}"),
    }
}

fn value<'a>(response: &'a Response, name: &rtsp_types::HeaderName) -> &'a str {
    response.header(name).unwrap_or_else(|| panic!("no {name}: {response:?}")).as_str()
}

fn frame(channel: u8, packet: &[u8]) -> Vec<u8> {
    [&crate::interleaved_prefix(channel, packet.len() as u16)[..], packet].concat()
}

#[test]
fn a_player_within_the_connection_plays_pauses_plays_on_and_leaves() {
    let mut driver = Driver::new();
    let (response, done) = driver.ask("SETUP", "/s/trackID=1", TCP, "");
    assert_eq!((value(&response, &headers::SESSION), done), ("12ab;timeout=60", vec![]));
    let (response, done) = driver.ask("PLAY", "/s/", "Session: 12ab\r\n", "");
    assert_eq!(value(&response, &headers::RTP_INFO), "url=rtsp://h/s/trackID=0;seq=7;rtptime=8");
    assert_eq!(done, [Output::Start { within: true }], "behind the answer");
    let channels = vec![(1, Pair { rtp: 4, rtcp: 5 })];
    assert_eq!(driver.asked.pop(), Some(Question::Play("s".to_owned(), Delivery::Interleaved(channels))));
    assert_eq!(driver.ask("PLAY", "/s/", "", "").1, [], "it plays already");

    let media = Output::Media { track: 1, rtcp: true, bytes: Bytes::from_static(b"report") };
    assert_eq!(driver.receive(&frame(5, b"report")), [media]);
    assert_eq!(driver.receive(&frame(4, b"packet")), [], "players send reports only");

    assert_eq!(driver.ask("PAUSE", "/s/", "", "").1, [Output::Pause]);
    assert_eq!(driver.ask("PAUSE", "/s/", "", "").1, []);
    assert_eq!(driver.ask("PLAY", "/s/", "", "").1, [Output::Start { within: false }]);
    assert_eq!(driver.asked.pop(), Some(Question::Resume));
    assert_eq!(driver.status("SETUP", "/s/trackID=0", TCP, ""), 455, "not while it plays");

    let text = driver.text("TEARDOWN", "/s/", "Session: 12ab\r\n", "");
    let done = driver.receive(text.as_bytes());
    let [Output::Close { why: Closed::TornDown, last: Some(last) }] = &done[..] else { panic!("{done:?}") };
    assert_eq!(u16::from(read(last).status()), 200);
    assert_eq!(driver.receive(text.as_bytes()), [], "nothing follows");
}

#[test]
fn behind_a_session_by_udp_the_connection_goes_on() {
    let mut driver = Driver::new();
    let (response, _) = driver.ask("SETUP", "/s/trackID=0", UDP, "");
    let transport = crate::Transport::parse(value(&response, &headers::TRANSPORT)).expect("a transport");
    assert_eq!(transport.server_port, Some(Pair { rtp: 6000, rtcp: 6001 }));
    assert_eq!(transport.source.as_deref(), Some("127.0.0.1"));
    assert_eq!(driver.status("SETUP", "/s/trackID=1", TCP, ""), 461, "all of a session the same way");
    assert_eq!(driver.status("SETUP", "/other/trackID=1", UDP, ""), 455);
    assert_eq!(driver.ask("PLAY", "/s/", "", "").1, [Output::Start { within: false }]);
    assert_eq!(driver.ask("TEARDOWN", "/s/", "", "").1, [Output::Release]);
    assert_eq!(driver.status("OPTIONS", "/s/", "Session: 12ab\r\n", ""), 454, "there is none any more");
    assert_eq!(driver.status("SETUP", "/other/trackID=1", UDP, ""), 200);
}

#[test]
fn a_first_setup_that_fails_gives_back_what_it_took() {
    let mut driver = Driver::new();
    let same = "Transport: RTP/AVP/TCP;interleaved=3-3\r\n";
    for (transport, expected) in [(same, 400), ("Transport: RTP/AVP;unicast\r\n", 400), ("", 461)] {
        let (response, done) = driver.ask("SETUP", "/s/trackID=0", transport, "");
        assert_eq!(u16::from(response.status()), expected);
        assert_eq!(done[0], Output::Release, "{transport}");
        assert!(response.header(&headers::SESSION).is_none());
    }
    assert_eq!(driver.status("SETUP", "/s/trackID=0", TCP, ""), 200);
    let (response, done) = driver.ask("SETUP", "/s/trackID=1", TCP, "");
    assert_eq!(u16::from(response.status()), 400, "the channels are the first track's");
    assert!(!done.contains(&Output::Release), "which stays");
}

#[test]
fn requests_behind_an_open_question_wait_for_its_answer() {
    let mut driver = Driver::new();
    let two = driver.text("DESCRIBE", "/a", "", "") + &driver.text("OPTIONS", "/a", "", "");
    driver.session.buffer().extend_from_slice(two.as_bytes());
    let Output::Ask(enter @ Question::Enter(_)) = driver.session.poll(driver.now) else {
        panic!("no question")
    };
    assert_eq!(driver.session.poll(driver.now), Output::Wait(None), "for the answer alone");
    let answer = driver.answer(&enter);
    driver.session.handle(driver.now, Input::Answer(Ok(answer)));
    let done = driver.serve();
    let [Output::Send(first), Output::Send(second)] = &done[..] else { panic!("{done:?}") };
    let [first, second] = [first, second].map(|bytes| read(bytes));
    assert_eq!([&first, &second].map(|response| value(response, &headers::CSEQ)), ["1", "2"]);
    assert_eq!(value(&first, &headers::CONTENT_BASE), "rtsp://h/a/");
    assert!(value(&second, &headers::PUBLIC).contains("RECORD"));
}

#[test]
fn bytes_may_come_one_by_one() {
    let mut driver = Driver::new();
    let text = driver.text("OPTIONS", "/a", "", "");
    let (last, rest) = text.as_bytes().split_last().expect("some");
    for byte in rest {
        assert_eq!(driver.receive(&[*byte]), []);
    }
    assert!(matches!(&driver.receive(&[*last])[..], [Output::Send(_)]));
}

#[test]
fn what_is_no_rtsp_ends_the_connection() {
    let close = |bytes: &[u8]| match Driver::new().receive(bytes).pop() {
        Some(Output::Close { why, last }) => (why, last.map(|last| u16::from(read(&last).status()))),
        other => panic!("{other:?}"),
    };
    assert_eq!(close(b"\x16\x03\x01"), (Closed::Broken(DecodeError::NotRtsp(0x16)), None));
    assert_eq!(close(b"SETUP x\r\n\r\n"), (Closed::Broken(DecodeError::Malformed), Some(400)));
    assert_eq!(close(&[b'A'; 20_000]), (Closed::Broken(DecodeError::HeaderTooLarge), Some(400)));
    let large = b"ANNOUNCE rtsp://h/s RTSP/1.0\r\nContent-Length: 70000\r\n\r\n";
    assert_eq!(close(large), (Closed::Broken(DecodeError::BodyTooLarge(70_000)), Some(413)));
}

#[test]
fn methods_that_do_not_fit_are_refused() {
    let mut driver = Driver::new();
    for (method, more, expected) in [
        ("PLAY", "", 455),
        ("PAUSE", "", 455),
        ("RECORD", "", 455),
        ("TEARDOWN", "", 455),
        ("REDIRECT", "", 501),
        ("OPTIONS", "Session: 12ab\r\n", 454),
        ("OPTIONS", "Require: funky\r\n", 551),
    ] {
        assert_eq!(driver.status(method, "/s", more, ""), expected, "{method}");
    }
    assert_eq!(driver.status("SET_PARAMETER", "/s", "", "level: 3"), 455);
    assert_eq!(driver.status("SET_PARAMETER", "/s", "", ""), 200, "a sign of life");
    assert_eq!(driver.asked, [], "of all that the driver knows nothing");
}

#[test]
fn a_peer_that_sends_no_whole_request_is_slow() {
    for bytes in [&b""[..], b"DESCRIBE rtsp"] {
        let mut driver = Driver::new();
        assert_eq!(driver.receive(bytes), []);
        let (at, wake) = driver.wait.expect("a deadline");
        assert_eq!((at, wake), (Time::ZERO + Duration::from_secs(10), Wake::Request));
        driver.now = at;
        assert_eq!(driver.serve(), [Output::Close { why: Closed::Slow, last: None }]);
        assert_eq!((driver.serve(), driver.wait), (vec![], None));
    }
}

#[test]
fn a_session_lives_as_long_as_there_are_signs_of_life() {
    let mut driver = Driver::new();
    driver.ask("SETUP", "/s/trackID=0", UDP, "");
    driver.lives = true;
    for lives in [true, false] {
        driver.lives = lives;
        let (at, wake) = driver.wait.expect("a deadline");
        assert_eq!((at, wake), (driver.now + Duration::from_secs(60), Wake::Life));
        driver.now = at;
        let expected = if lives { vec![] } else { vec![Output::Close { why: Closed::TimedOut, last: None }] };
        assert_eq!(driver.serve(), expected);
        assert_eq!(driver.asked.pop(), Some(Question::Life));
    }
}

#[test]
fn a_player_within_the_connection_needs_no_sign_of_life() {
    let mut driver = Driver::new();
    driver.ask("SETUP", "/s/trackID=0", TCP, "");
    driver.ask("PLAY", "/s/", "", "");
    driver.now = driver.wait.expect("a deadline").0;
    assert_eq!(driver.serve(), []);
    assert!(!driver.asked.contains(&Question::Life) && driver.wait.is_some());
}

#[test]
fn media_of_no_session_is_no_sign_of_a_client() {
    let mut driver = Driver::new();
    driver.now = Time::from_millis(9000);
    assert_eq!(driver.receive(&frame(0, b"stray")), []);
    assert_eq!(driver.wait, Some((Time::from_millis(10_000), Wake::Request)));
}

#[test]
fn passwords_are_asked_for_and_judged_by_the_driver() {
    let mut driver = Driver::new();
    let unauthorized = || Reply::error(StatusCode::Unauthorized, "a token is missing").and_challenge();
    driver.refusal = Some(unauthorized());
    let (response, done) = driver.ask("DESCRIBE", "/s", "", "");
    let (method, why) = ("DESCRIBE".to_owned(), "a token is missing".to_owned());
    assert_eq!(done, [Output::Refused { method, status: 401, why }]);
    let challenges = crate::auth::Challenge::parse_all(value(&response, &headers::WWW_AUTHENTICATE));
    let challenge = crate::auth::Challenge::strongest(challenges).expect("one");
    let credentials = crate::auth::Credentials { user: "any".to_owned(), password: "right".to_owned() };
    for (uri, expected) in
        [("rtsp://h/s", crate::auth::Verdict::Right), ("rtsp://h/x", crate::auth::Verdict::Wrong)]
    {
        let answer = challenge.answer(&credentials, "DESCRIBE", uri, 1, "c");
        driver.refusal = Some(unauthorized());
        driver.ask("DESCRIBE", "/s", &format!("Authorization: {answer}\r\n"), "");
        let Some(Question::Enter(entry)) = driver.asked.pop() else { panic!("no question") };
        assert_eq!(entry.shown.map(|shown| shown.judge(["left", "right"])), Some(expected), "{uri}");
    }
    assert_eq!(driver.status("DESCRIBE", "/s", "", ""), 200);
    driver.refusal = Some(Reply::error(StatusCode::ServiceUnavailable, "too often").and_leave());
    let text = driver.text("ANNOUNCE", "/s", "", ANNOUNCED);
    let done = driver.receive(text.as_bytes());
    assert!(matches!(done.last(), Some(Output::Close { why: Closed::SentAway, last: Some(_) })), "{done:?}");
    let asked = driver.asked.iter().rev().find_map(|question| match question {
        Question::Enter(entry) => Some(entry.right),
        _ => None,
    });
    assert_eq!(asked, Some(Right::Publish), "the driver is asked about each");
}

#[test]
fn a_publisher_announces_records_and_is_asked_for_key_frames() {
    let mut driver = Driver::new();
    let packet = [0x80, 96, 0, 1, 0, 0, 0, 0, 0, 0, 0, 7];
    assert_eq!(driver.status("ANNOUNCE", "/s", "", "no description"), 415);
    assert_eq!(driver.status("ANNOUNCE", "/s", "", ANNOUNCED), 200);
    let Some(Question::Announce(stream, tracks)) = driver.asked.last() else { panic!("no question") };
    assert_eq!((&**stream, tracks.len()), ("s", 1));
    assert_eq!(driver.status("ANNOUNCE", "/s", "", ANNOUNCED), 455);
    assert_eq!(driver.status("RECORD", "/s", "", ""), 455, "set a track up first");
    assert_eq!(driver.status("SETUP", "/s/streamid=1", TCP, ""), 404);
    let (response, _) = driver.ask("SETUP", "/s/streamid=0", TCP, "");
    assert!(value(&response, &headers::TRANSPORT).to_ascii_lowercase().contains("mode="));
    assert_eq!(driver.receive(&frame(4, &packet)), [], "not before RECORD");
    assert_eq!(driver.status("RECORD", "/s", "", ""), 200);
    assert_eq!(driver.asked.pop(), Some(Question::Record(Lower::Tcp)));
    driver.session.handle(driver.now, Input::KeyFrame { track: 0 });
    assert_eq!(driver.serve(), [], "of what nothing came from yet, nothing is asked");

    let media = |rtcp| Output::Media { track: 0, rtcp, bytes: Bytes::copy_from_slice(&packet) };
    assert_eq!(driver.receive(&frame(4, &packet)), [media(false)]);
    assert_eq!(driver.receive(&frame(5, &packet)), [media(true)]);
    assert_eq!(driver.receive(&frame(6, &packet)), [], "a channel that was not agreed on");
    driver.session.handle(driver.now, Input::KeyFrame { track: 0 });
    let asked = frame(5, &rtcp::key_frame_request(99, 7, 2, "outflow"));
    assert_eq!(driver.serve(), [Output::Send(asked.into())]);
    assert_eq!(driver.ask("TEARDOWN", "/s", "", "").1, [Output::Release]);
}

/// What the last message before a connection's end says.
fn notice(done: &[Output<String>]) -> Option<String> {
    let [Output::Close { why: Closed::Ended, last }] = done else { panic!("{done:?}") };
    let text = last.as_ref().map(|bytes| String::from_utf8_lossy(bytes).into_owned())?;
    assert!(text.contains("\r\nSession: 12ab\r\n") && text.ends_with("\r\n\r\n"), "{text}");
    let value = text.lines().find_map(|line| line.strip_prefix("Notice: ")).map(str::to_owned);
    assert!(text.starts_with("ANNOUNCE rtsp://h/s"), "{text}");
    value
}

#[test]
fn a_session_that_the_relay_ends_is_told_unless_a_packet_may_be_out_in_part() {
    let (down, ended) = ("5403 \"Server Shutting Down\"", "5402 \"Client Session Terminated\"");
    for (way, why, expected) in [
        (UDP, Notice::ShuttingDown, Some(down)),
        (UDP, Notice::SessionTerminated, Some(ended)),
        (TCP, Notice::ShuttingDown, None),
    ] {
        let mut driver = Driver::new();
        driver.ask("SETUP", "/s/trackID=1", way, "");
        driver.ask("PLAY", "/s/", "Session: 12ab\r\n", "");
        driver.session.handle(driver.now, Input::End(why));
        assert_eq!(notice(&driver.serve()).as_deref(), expected, "{way} {why:?}");
        driver.session.handle(driver.now, Input::End(why));
        assert_eq!(driver.serve(), [], "once");
    }
    let mut publisher = Driver::new();
    publisher.ask("ANNOUNCE", "/s", "", ANNOUNCED);
    publisher.session.handle(publisher.now, Input::End(Notice::SessionTerminated));
    assert_eq!(notice(&publisher.serve()).as_deref(), Some(ended));
}

#[test]
fn members_of_a_group_show_life_sooner_and_start_nothing() {
    let mut driver = Driver::new();
    let group = "Transport: RTP/AVP;multicast\r\n";
    assert_eq!(driver.status("SETUP", "/s/trackID=1", group, ""), 461, "not where there are none");
    driver.groups = true;
    let (response, _) = driver.ask("SETUP", "/s/trackID=1", group, "");
    assert_eq!(value(&response, &headers::SESSION), "12ab;timeout=10");
    let transport = crate::Transport::parse(value(&response, &headers::TRANSPORT)).expect("a transport");
    assert_eq!((transport.port, transport.ttl), (Some(Pair { rtp: 7002, rtcp: 7003 }), Some(3)));
    assert_eq!(driver.wait.map(|(at, _)| at), Some(Time::ZERO + Duration::from_secs(10)));
    assert_eq!(driver.status("SET_PARAMETER", "/s", "", "Level: 3\r\n"), 200, "before PLAY, too");
    assert_eq!(driver.asked.pop(), Some(Question::Set(vec![("level".to_owned(), "3".to_owned())])));
    for _ in 0..2 {
        assert_eq!(driver.ask("PLAY", "/s", "", "").1, []);
        assert_eq!(driver.asked.pop(), Some(Question::Play("s".to_owned(), Delivery::Group)));
        assert_eq!(driver.ask("PAUSE", "/s", "", "").1, [Output::Pause]);
    }
}

#[test]
fn an_answer_to_another_question_is_an_error_of_ours() {
    let mut driver = Driver::new();
    let text = driver.text("DESCRIBE", "/s", "", "");
    driver.session.buffer().extend_from_slice(text.as_bytes());
    driver.session.poll(driver.now);
    driver.session.handle(driver.now, Input::Answer(Ok(Answer::Done)));
    let done = driver.serve();
    let Some(Output::Send(bytes)) = done.last() else { panic!("{done:?}") };
    assert_eq!(u16::from(read(bytes).status()), 500);
    driver.session.handle(driver.now, Input::Answer(Ok(Answer::Done)));
    assert_eq!(driver.serve(), [], "one to no question is left alone");
    assert_eq!(driver.status("OPTIONS", "/s", "", ""), 200);
}

#[test]
fn a_session_goes_on_in_another_process_wherever_it_stands() {
    let mut driver = Driver::new();
    driver.go_on_elsewhere();
    assert_eq!(driver.status("SETUP", "/s/trackID=1", TCP, ""), 200);
    driver.go_on_elsewhere();
    // A request of which one process gets the beginning, and the other one the end.
    let play = driver.text("PLAY", "/s/", "Session: 12ab\r\n", "");
    let (begin, end) = play.as_bytes().split_at(20);
    assert_eq!(driver.receive(begin), []);
    driver.go_on_elsewhere();
    let done = driver.receive(end);
    assert_eq!(done[1..], [Output::Start { within: true }]);
    driver.go_on_elsewhere();
    let report = [0x80, 201, 0, 1, 0, 0, 0, 9];
    let done = driver.receive(&frame(5, &report));
    assert_eq!(done, [Output::Media { track: 1, rtcp: true, bytes: report.to_vec().into() }]);
    let text = driver.text("TEARDOWN", "/s/", "Session: 12ab\r\n", "");
    let done = driver.receive(text.as_bytes());
    assert!(matches!(&done[..], [Output::Close { why: Closed::TornDown, .. }]), "{done:?}");
}

#[test]
fn a_publisher_goes_on_in_another_process_and_is_asked_for_key_frames() {
    let mut driver = Driver::new();
    assert_eq!(driver.status("ANNOUNCE", "/s", "Content-Type: application/sdp\r\n", ANNOUNCED), 200);
    driver.go_on_elsewhere();
    let record = "Transport: RTP/AVP/TCP;unicast;interleaved=4-5;mode=record\r\n";
    assert_eq!(driver.status("SETUP", "/s/streamid=0", record, ""), 200);
    assert_eq!(driver.status("RECORD", "/s", "Session: 12ab\r\n", ""), 200);
    driver.go_on_elsewhere();
    let packet = [0x80, 96, 0, 1, 0, 0, 0, 0, 0, 0, 0, 7, 0x65];
    let done = driver.receive(&frame(4, &packet));
    assert_eq!(done, [Output::Media { track: 0, rtcp: false, bytes: packet.to_vec().into() }]);
    driver.go_on_elsewhere();
    driver.session.handle(driver.now, Input::KeyFrame { track: 0 });
    let asked = driver.serve();
    assert!(matches!(&asked[..], [Output::Send(bytes)] if bytes[1] == 5), "{asked:?}");
}

#[test]
fn a_session_does_not_go_on_while_a_question_is_open_nor_with_what_is_not_known() {
    let mut driver = Driver::new();
    assert_eq!(driver.status("SETUP", "/s/trackID=1", UDP, ""), 200);
    let saved = driver.session.save(String::clone).expect("nothing is open");
    let options = || Driver::new().session.options;
    let gone = Session::<String>::restore(saved.clone(), options(), |_| None).expect_err("it is not there");
    assert!(gone.to_string().contains("connect again"), "{gone}");
    let mut odd = saved;
    odd.player.as_mut().expect("it plays").setups[0].1 = "by hand".to_owned();
    let odd = Session::restore(odd, options(), |words| Some(words.to_owned())).expect_err("not known");
    assert!(odd.to_string().contains("carried"), "{odd}");
    let text = driver.text("OPTIONS", "/s", "", "");
    let describe = driver.text("DESCRIBE", "/s", "", "");
    driver.session.buffer().extend_from_slice(format!("{text}{describe}").as_bytes());
    while !matches!(driver.session.poll(driver.now), Output::Ask(_)) {}
    assert_eq!(driver.session.save(String::clone), None, "a question is open");
}
