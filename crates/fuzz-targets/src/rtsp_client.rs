//! An RTSP client that is answered anything.

use core::time::Duration;

use bytes::{Bytes, BytesMut};
use outflow_media::Time;
use outflow_rtp::sdp;
use outflow_rtsp::client::{Event, Output, RtspClient, SavedClient, TrackSetup};
use outflow_rtsp::{ClientOptions, Decoder, Item, Lower, Pair};

/// Waits that a client may ask for without anything being received.
const WAITS: usize = 4;

/// What it asks for in one go: far more than any answer calls for, and than media of one part.
const OUTPUTS: usize = 1 << 16;

/// The URL that is asked for.
const URL: &str = "rtsp://user:password@host/path";

/// The first byte chooses UDP or TCP, a teardown at the end, and whether another process goes on wherever one could; if
/// the second is `#`, a stream is published. What follows is received in parts, which a byte of 0xff ends.
pub(crate) fn rtsp_client(data: &[u8]) {
    let (first, data) = data.split_first().map_or((0, data), |(first, rest)| (*first, rest));
    let (udp, ends, moves) = (first % 2 == 1, first & 2 != 0, first & 4 != 0);
    let (publishes, data) = data.strip_prefix(b"#").map_or((false, data), |rest| (true, rest));
    let mut driver = Driver::new(udp, publishes);
    let mut buffer = BytesMut::new();
    let mut wait = driver.serve();
    for part in data.split(|byte| *byte == 0xff) {
        driver.now = driver.now + Duration::from_millis(part.len() as u64 * 100);
        buffer.extend_from_slice(part);
        driver.client.handle(driver.now, &mut buffer);
        wait = driver.serve();
        if moves && driver.goes_on_elsewhere() {
            assert_eq!(driver.serve(), wait, "it waits for the same in another process");
        }
    }
    for _ in 0..WAITS {
        let Some(at) = wait else { break };
        driver.now = at;
        wait = driver.serve();
    }
    if ends {
        driver.client.teardown(driver.now);
        driver.serve();
    }
    driver.client.disconnected(None);
    driver.serve();
    assert!(driver.closed, "a client without connection has ended");
}

/// A client that a process hands over, as what it saved might be read.
pub(crate) fn restored(saved: &[u8]) {
    let Ok(saved) = minicbor::decode::<SavedClient>(saved) else { return };
    let Some(mut client) = RtspClient::restore(URL, ClientOptions::default(), saved) else { return };
    let answer = b"RTSP/1.0 401 Unauthorized\r\nCSeq: 7\r\nWWW-Authenticate: Basic realm=r\r\n\r\n";
    client.handle(Time::ZERO, &mut BytesMut::from(&answer[..]));
    for round in 0..4 {
        while let Output::Send(_) | Output::Event(_) = client.poll(Time::from_millis(7_000 * round)) {}
        client.handle(Time::ZERO, &mut BytesMut::from(&b"$\0\0\x01x"[..]));
    }
}

struct Driver {
    client: RtspClient,
    options: ClientOptions,
    now: Time,
    ports: Option<Pair<u16>>,
    tracks: usize,
    closed: bool,
}

impl Driver {
    fn new(udp: bool, publishes: bool) -> Driver {
        let lower = if udp { Lower::Udp } else { Lower::Tcp };
        let announce = publishes.then(|| Bytes::from_static(b"v=0"));
        let options = ClientOptions { lower, announce, ..ClientOptions::default() };
        let client = RtspClient::new(URL, options.clone()).expect("a URL");
        let ports = udp.then_some(Pair { rtp: 5000, rtcp: 5001 });
        Driver { client, options, now: Time::ZERO, ports, tracks: 0, closed: false }
    }

    /// Answers whether another process goes on with it.
    fn goes_on_elsewhere(&mut self) -> bool {
        let Some(saved) = self.client.save() else { return false };
        let bytes = minicbor::to_vec(&saved).expect("memory does not fail");
        let saved = minicbor::decode(&bytes).expect("what was written");
        self.client = RtspClient::restore(URL, self.options.clone(), saved).expect("what was saved fits");
        true
    }

    /// Does what the client wants, until it wants to wait.
    fn serve(&mut self) -> Option<Time> {
        for _ in 0..OUTPUTS {
            match self.client.poll(self.now) {
                Output::Wait(None) => return None,
                Output::Wait(Some((at, _))) => {
                    assert!(at > self.now && !self.closed, "there is something to wait for");
                    return Some(at);
                }
                Output::Connect(_) => self.client.connected(self.now),
                Output::Send(bytes) => sendable(bytes),
                Output::Event(event) => self.happened(event),
            }
        }
        panic!("a client asks for more and more");
    }

    fn happened(&mut self, event: Event) {
        assert!(!self.closed, "{event:?} after the end");
        match event {
            Event::Described { sdp } => self.set_up(&sdp),
            Event::Announced => self.set_up(b""),
            Event::SetUp(carried) => assert_eq!(carried.len(), self.tracks),
            Event::Started(starts) => {
                assert_eq!(starts.len(), self.tracks);
                self.client.set_parameter("level", "2");
            }
            Event::Media { track, .. } => assert!(track < self.tracks),
            Event::ParameterSet { status } => assert!(status >= 200),
            Event::Closed(why) => self.closed = !why.to_string().is_empty(),
        }
    }

    fn set_up(&mut self, text: &[u8]) {
        let track = |control: Option<String>| TrackSetup { control, ports: self.ports };
        let (aggregate, tracks): (_, Vec<_>) = match sdp::parse(text) {
            Ok(read) => {
                let tracks = read.media.into_iter().map(|media| track(media.control));
                (read.control, tracks.collect())
            }
            Err(_) => {
                let controls = ["trackID=0", "rtsp://host/else"];
                (None, controls.map(|control| track(Some(control.to_owned()))).into())
            }
        };
        self.tracks = tracks.len();
        self.client.setup(self.now, aggregate.as_deref(), &tracks);
    }
}

/// A server can read what is sent, as one message.
fn sendable(bytes: Bytes) {
    let mut buffer = BytesMut::from(&bytes[..]);
    let item = Decoder::new().decode(&mut buffer);
    assert!(matches!(item, Ok(Some(Item::Request(_) | Item::Response(_)))), "{item:?} of {bytes:?}");
    assert!(buffer.is_empty(), "one message, not two: {bytes:?}");
}
