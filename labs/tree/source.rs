//! What is sent: VP9 of five temporal layers in shape, a packet a picture, each with its number. It cannot
//! be viewed, but what belongs to a level is known exactly.

use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::Result;
use outflow_labs::net::Namespace;
use outflow_rtp::PlainHeader;
use outflow_rtp::payload::vp9::{Descriptor, GroupPicture, Layer, PictureId, Structure};

/// Levels of every stream: level 1 has twice the packets of level 2, and so on.
pub(crate) const LEVELS: u8 = 5;
/// Pictures after which the layers repeat.
const GROUP: u32 = 1 << (LEVELS - 1);
/// Bytes of an RTP packet.
const PACKET: usize = 700;
/// The first port; the next streams follow in steps of two.
pub(crate) const PORT: u16 = 5000;
const PAYLOAD_TYPE: u8 = 98;
const TICKS: u32 = 90_000;
/// Stands before the number of the stream and of the packet.
const MAGIC: [u8; 6] = *b"\xf1otfr\xf2";
/// Between two packets that are sent at a time, so that not all streams burst.
const APART: Duration = Duration::from_micros(200);

/// Which packet of which stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Stamp {
    /// Number of the stream.
    pub(crate) stream: u8,
    /// Number of the packet, without gaps.
    pub(crate) number: u32,
}

impl Stamp {
    /// All stamps in what came over a network.
    pub(crate) fn all_in(mut bytes: &[u8]) -> Vec<Stamp> {
        let mut all = Vec::new();
        while let Some(at) = bytes.windows(MAGIC.len()).position(|window| window == MAGIC) {
            let behind = &bytes[at + MAGIC.len()..];
            if let Some(&[stream, a, b, c, d]) = behind.first_chunk::<5>() {
                all.push(Stamp { stream, number: u32::from_be_bytes([a, b, c, d]) });
            }
            bytes = behind;
        }
        all
    }
}

/// The layer of a packet.
fn layer(number: u32) -> u8 {
    match number % GROUP {
        0 => 0,
        place => LEVELS - 1 - place.trailing_zeros() as u8,
    }
}

/// Whether a packet belongs to a level, 1 being the best.
pub(crate) fn is_in(level: u8, number: u32) -> bool {
    layer(number) <= LEVELS - level
}

/// The session description of a stream by its number.
pub(crate) fn description(stream: u8) -> String {
    format!(
        "v=0\no=- 0 0 IN IP4 0.0.0.0\ns=-\nc=IN IP4 0.0.0.0\nt=0 0\nm=video {} RTP/AVP {PAYLOAD_TYPE}\n\
         a=rtpmap:{PAYLOAD_TYPE} VP9/90000\n",
        port(stream)
    )
}

/// Where a stream's packets come to the origin.
pub(crate) fn port(stream: u8) -> u16 {
    PORT + 2 * u16::from(stream)
}

/// A packet as it is sent.
fn packet(stamp: Stamp, per_second: u32) -> Vec<u8> {
    let Stamp { stream, number } = stamp;
    // A key picture every two seconds or so.
    let key_every = (2 * per_second).next_multiple_of(GROUP);
    let key = number.is_multiple_of(key_every);
    let distance = match number % GROUP {
        0 => GROUP,
        place => 1 << place.trailing_zeros(),
    };
    let layer = Layer { temporal: layer(number), switches_up: true, spatial: 0, needs_below: false };
    let picture = |place: u32| GroupPicture {
        temporal: self::layer(place),
        switches_up: true,
        references: std::iter::once(if place == 0 { GROUP } else { 1 << place.trailing_zeros() } as u8)
            .collect(),
    };
    let group = Some((0..GROUP).map(picture).collect());
    let structure = Structure { spatial: 1, resolutions: std::iter::once((320, 240)).collect(), group };
    let descriptor = Descriptor {
        picture: Some(PictureId { value: number as u16 & 0x7fff, is_long: true }),
        is_inter: !key,
        layer: Some(layer),
        is_flexible: true,
        references: std::iter::once(distance as u8).filter(|_| !key).collect(),
        first: true,
        last: true,
        structure: key.then_some(structure),
        is_not_below: true,
        ..Descriptor::default()
    };
    let timestamp = (u64::from(number) * u64::from(TICKS) / u64::from(per_second)) as u32;
    let (payload_type, sequence, ssrc) = (PAYLOAD_TYPE, number as u16, 0x7ee0_0000 + u32::from(stream));
    let header = PlainHeader { marker: true, payload_type, sequence, timestamp, ssrc };
    let mut bytes = header.emit().to_vec();
    descriptor.emit(&mut bytes);
    // How a frame of VP9 begins: whether it is a key frame (bitstream specification, section 6.2).
    bytes.push(if key { 0x82 } else { 0x86 });
    bytes.extend(MAGIC);
    bytes.push(stream);
    bytes.extend(number.to_be_bytes());
    bytes.resize(PACKET, 0xab);
    bytes
}

/// Streams on their way to the origin, until dropped. All have packets of the same numbers at the same times.
#[derive(Debug)]
pub(crate) struct Source {
    sent: Arc<Mutex<Vec<Instant>>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Source {
    /// Begins to send from within the origin's namespace.
    pub(crate) fn start(
        namespace: &Namespace,
        streams: std::ops::Range<u8>,
        per_second: u32,
    ) -> Result<Self> {
        let socket = namespace.run(|| UdpSocket::bind("127.0.0.1:0"))?;
        let (sent, stop) = (Arc::<Mutex<Vec<Instant>>>::default(), Arc::<AtomicBool>::default());
        let (theirs, ends) = (Arc::clone(&sent), Arc::clone(&stop));
        let began = Instant::now();
        let send = move || {
            for number in 0u32.. {
                let due = began + Duration::from_secs(1) * number / per_second;
                std::thread::sleep(due.saturating_duration_since(Instant::now()));
                if ends.load(Ordering::Relaxed) {
                    return;
                }
                theirs.lock().unwrap_or_else(PoisonError::into_inner).push(Instant::now());
                for stream in streams.clone() {
                    let bytes = packet(Stamp { stream, number }, per_second);
                    let _seen_by_what_is_lost = socket.send_to(&bytes, ("127.0.0.1", port(stream)));
                    std::thread::sleep(APART);
                }
            }
        };
        Ok(Self { sent, stop, thread: Some(std::thread::spawn(send)) })
    }

    /// When each packet was sent, by its number.
    pub(crate) fn sent(&self) -> Vec<Instant> {
        self.sent.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Source {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _panicked = thread.join();
        }
    }
}
