//! An RTSP client that is answered anything.

use core::time::Duration;

use bytes::{Bytes, BytesMut};
use outflow_media::Time;
use outflow_rtp::sdp;
use outflow_rtsp::client::{Event, Output, RtspClient, TrackSetup};
use outflow_rtsp::{ClientOptions, Decoder, Item, Lower, Pair};

/// Waits that a client may ask for without anything being received.
const WAITS: usize = 4;

/// What it asks for in one go: far more than any answer calls for, and than media of one part.
const OUTPUTS: usize = 1 << 16;

/// The first byte chooses UDP or TCP, and a teardown at the end; if the second is `#`, a stream is
/// published. What follows is received in parts, which a byte of 0xff ends.
pub(crate) fn rtsp_client(data: &[u8]) {
    let (first, data) = data.split_first().map_or((0, data), |(first, rest)| (*first, rest));
    let (udp, ends) = (first % 2 == 1, first & 2 != 0);
    let (publishes, data) = data.strip_prefix(b"#").map_or((false, data), |rest| (true, rest));
    let mut driver = Driver::new(udp, publishes);
    let mut buffer = BytesMut::new();
    let mut wait = driver.serve();
    for part in data.split(|byte| *byte == 0xff) {
        driver.now = driver.now + Duration::from_millis(part.len() as u64 * 100);
        buffer.extend_from_slice(part);
        driver.client.handle(driver.now, &mut buffer);
        wait = driver.serve();
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

struct Driver {
    client: RtspClient,
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
        let client = RtspClient::new("rtsp://user:password@host/path", options).expect("a URL");
        let ports = udp.then_some(Pair { rtp: 5000, rtcp: 5001 });
        Driver { client, now: Time::ZERO, ports, tracks: 0, closed: false }
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
