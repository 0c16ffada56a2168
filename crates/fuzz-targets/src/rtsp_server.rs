//! An RTSP server that is asked anything, and whose driver says yes or no.

use core::net::IpAddr;
use core::time::Duration;

use bytes::{Bytes, BytesMut};
use outflow_media::Time;
use outflow_rtsp::server::{Answer, Input, Options, Output, Question, Reply, Session, TrackStart};
use outflow_rtsp::{Decoder, Item, Pair, StatusCode};

/// Waits that a session may ask for without anything being received.
const WAITS: usize = 4;

/// What it asks for in one go: far more than any request calls for, and than media of one part.
const OUTPUTS: usize = 1 << 16;

/// The bits of the first byte say which answers of the driver, of eight in turn, are no. What follows is received in
/// parts, which a byte of 0xff ends; after each a key frame is wanted.
pub(crate) fn rtsp_server(data: &[u8]) {
    let (refusals, data) = data.split_first().map_or((0, data), |(first, rest)| (*first, rest));
    let [peer, local] = [[127, 0, 0, 2], [127, 0, 0, 1]].map(IpAddr::from);
    let (id, nonce) = ("1".to_owned(), "2".to_owned());
    let options = Options { id, nonce, ssrc: 3, is_encrypted: true, peer, local };
    let session = Session::new(Time::ZERO, options);
    let mut driver = Driver { session, now: Time::ZERO, refusals, closed: false };
    let mut wait = driver.serve();
    for part in data.split(|byte| *byte == 0xff) {
        driver.now = driver.now + Duration::from_millis(part.len() as u64 * 10);
        driver.session.buffer().extend_from_slice(part);
        driver.serve();
        driver.session.handle(driver.now, Input::KeyFrame { track: 0 });
        wait = driver.serve();
    }
    for _ in 0..WAITS {
        let Some(at) = wait else { break };
        driver.now = at;
        wait = driver.serve();
    }
}

struct Driver {
    session: Session<String>,
    now: Time,
    refusals: u8,
    closed: bool,
}

impl Driver {
    /// Does what the session wants, until it wants to wait.
    fn serve(&mut self) -> Option<Time> {
        for _ in 0..OUTPUTS {
            let output = self.session.poll(self.now);
            assert!(!self.closed || output == Output::Wait(None), "{output:?} after the end");
            match output {
                Output::Wait(None) => {
                    assert!(self.closed, "a session that is not over has a deadline");
                    return None;
                }
                Output::Wait(Some((at, _))) => {
                    assert!(at > self.now, "there is something to wait for");
                    return Some(at);
                }
                Output::Ask(question) => self.answer(question),
                Output::Send(bytes) => sendable(bytes),
                Output::Refused { status, .. } => assert!(status >= 400),
                Output::Close { last, .. } => {
                    last.into_iter().for_each(sendable);
                    self.closed = true;
                }
                Output::Start { .. } | Output::Pause | Output::Media { .. } | Output::Release => {}
            }
        }
        panic!("a session wants more and more");
    }

    fn answer(&mut self, question: Question<String>) {
        let refuses = self.refusals & 1 == 1;
        self.refusals = self.refusals.rotate_right(1);
        let answer = match question {
            _ if refuses => Err(Reply::error(StatusCode::Unauthorized, "no").and_challenge()),
            Question::Enter(entry) => {
                if let Some(shown) = entry.shown {
                    let _ = shown.judge(["password"]);
                }
                Ok(Answer::Entered { selection: entry.address.name, wanted: entry.address.query })
            }
            Question::Describe(_) => Ok(Answer::Described("v=0\r\n".to_owned())),
            Question::Tracks(_) => Ok(Answer::Tracks { count: 2, groups: true }),
            Question::Site(_) | Question::Ports(_) => Ok(Answer::Ports(Pair { rtp: 6000, rtcp: 6001 })),
            Question::Group(_) => Ok(Answer::Group {
                to: ([239, 0, 0, 1], u16::MAX - 2).into(),
                source: [10, 0, 0, 1].into(),
                ttl: 1,
            }),
            Question::Play(..) | Question::Resume => {
                Ok(Answer::Playing(vec![TrackStart { track: 1, sequence: 1, timestamp: 1 }]))
            }
            Question::Announce(..) | Question::Record(_) | Question::Set(_) => Ok(Answer::Done),
            Question::Life => Ok(Answer::Life(true)),
        };
        self.session.handle(self.now, Input::Answer(answer));
    }
}

/// A peer can read what is sent, as one message.
fn sendable(bytes: Bytes) {
    let mut buffer = BytesMut::from(&bytes[..]);
    let item = Decoder::new().decode(&mut buffer);
    assert!(matches!(item, Ok(Some(Item::Response(_) | Item::Interleaved { .. }))), "{item:?} of {bytes:?}");
    assert!(buffer.is_empty(), "one message, not two: {bytes:?}");
}
