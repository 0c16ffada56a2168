//! A receiver that changes its level again and again, and how long that takes.

use std::net::UdpSocket;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use outflow_labs::media::wall_nanos;
use outflow_labs::net::{PLAYER, Paths};
use outflow_labs::receive::Stamped;
use outflow_rtp::rtcp::{LevelMessage, LevelRequest};

use super::source::{Frame, SSRC, layer};
use super::video::{FPS, LEVELS};

/// Where it receives; RTCP one above.
pub(crate) const PORT: u16 = 6900;
/// The receiver's own SSRC.
const OWN_SSRC: u32 = 0x0F10_0001;
/// Its level in the beginning.
pub(crate) const FIRST_LEVEL: usize = LEVELS;
/// How long a change may take: a frame that began before it was asked for, the next one, and the one that
/// tells that this has ended.
const WITHIN: Duration = Duration::from_secs(3);
/// Between two changes: ten requests a second are answered.
const PAUSE: Duration = Duration::from_millis(100);

/// A change of level.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Change {
    pub(crate) from: usize,
    pub(crate) to: usize,
    /// When it was asked for. All times are nanoseconds since 1970.
    asked: u64,
    /// When the first packet came of the first frame at the new level.
    frame: u64,
    /// When the first packet came of a layer that was not taken before.
    layer: Option<u64>,
    timestamp: u32,
}

/// How long a change took, in milliseconds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Took {
    pub(crate) is_up: bool,
    /// From the request to the first packet of a frame at the new level.
    pub(crate) whole_ms: f64,
    /// From the request until the source began its next frame.
    pub(crate) next_frame_ms: f64,
    /// From when the source sent it to when the first packet of a new layer came.
    pub(crate) new_layer_ms: Option<f64>,
}

impl Change {
    /// How long it took, next to the frames that the source sent meanwhile.
    pub(crate) fn took(&self, frames: &[Frame]) -> Result<Took> {
        let ms = |from: u64, to: u64| (to as f64 - from as f64) / 1e6;
        let next = frames.iter().map(|frame| frame.layers[0]).find(|sent| *sent > self.asked);
        let its = frames.iter().find(|frame| frame.timestamp == self.timestamp);
        let (next, its) = next.zip(its).context("a change behind the last frame")?;
        // Layers are counted from 0, the base: the lowest new one is the number of those taken before.
        let sent = its.layers.get(LEVELS + 1 - self.from);
        Ok(Took {
            is_up: self.to < self.from,
            whole_ms: ms(self.asked, self.frame),
            next_frame_ms: ms(self.asked, next),
            new_layer_ms: self.layer.zip(sent).map(|(came, sent)| ms(*sent, came)),
        })
    }
}

/// The receiver.
pub(crate) struct Changer {
    media: Stamped,
    control: UdpSocket,
    level: usize,
    requests: u16,
    /// All that came.
    packets: Vec<Bytes>,
}

/// The frame of which packets come.
struct Coming {
    timestamp: u32,
    began: u64,
    /// The highest layer so far.
    top: usize,
}

impl Changer {
    pub(crate) fn open(paths: &Paths) -> Result<Self> {
        let bind = |port| paths.players.run(|| UdpSocket::bind((PLAYER, port)));
        let control = bind(PORT + 1)?;
        control.set_nonblocking(true)?;
        let media = Stamped::new(bind(PORT)?, Duration::from_millis(200))?;
        Ok(Self { media, control, level: FIRST_LEVEL, requests: 0, packets: Vec::new() })
    }

    /// Learns from a sender report, if one has come, where requests go.
    pub(crate) fn is_ready(&mut self) -> Result<bool> {
        let mut report = [0; 2048];
        if let Ok((_, from)) = self.control.recv_from(&mut report) {
            self.control.connect(from)?;
            return Ok(true);
        }
        Ok(false)
    }

    /// Changes again and again, up and down in turn, as long as there is time; each request comes at another
    /// moment within a frame.
    pub(crate) fn run(&mut self, until: Instant) -> Result<Vec<Change>> {
        let mut changes = Vec::new();
        while Instant::now() + WITHIN < until {
            let number = changes.len();
            let phase = (number as f64 * 0.618).fract();
            std::thread::sleep(PAUSE + Duration::from_secs_f64(phase / f64::from(FPS)));
            // From the worse half of the levels to the better one, and back.
            let half = LEVELS / 2;
            let to =
                if number.is_multiple_of(2) { 1 + number * 5 % half } else { LEVELS - number * 7 % half };
            changes.push(self.change(to)?);
        }
        Ok(changes)
    }

    fn change(&mut self, to: usize) -> Result<Change> {
        let mut coming = self.drain()?;
        let (from, asked) = (std::mem::replace(&mut self.level, to), wall_nanos());
        self.ask()?;
        let found = |frame: u64, layer, timestamp| Change { from, to, asked, frame, layer, timestamp };
        let until = Instant::now() + WITHIN;
        while Instant::now() < until {
            let Some((packet, at)) = self.media.read() else { continue };
            self.packets.push(Bytes::copy_from_slice(packet));
            let (layer, timestamp) = layer(packet)?;
            match &mut coming {
                Some(frame) if frame.timestamp == timestamp => frame.top = frame.top.max(layer),
                // A frame has ended. It is at a lower level if it had none of the layers given up.
                before => {
                    let ended = before.replace(Coming { timestamp, began: at, top: layer });
                    if let Some(Coming { timestamp, began, top }) = ended
                        && to > from
                        && top <= LEVELS - to
                    {
                        return Ok(found(began, None, timestamp));
                    }
                }
            }
            if let Some(frame) = coming.as_ref().filter(|_| to < from && layer > LEVELS - from) {
                return Ok(found(frame.began, Some(at), timestamp));
            }
        }
        bail!("level {to} was asked for, and nothing of it came within {WITHIN:?}")
    }

    /// Takes what is there already. Returns the frame of the last packet.
    fn drain(&mut self) -> Result<Option<Coming>> {
        let mut coming: Option<Coming> = None;
        while let Some((packet, at)) = self.media.read_now() {
            self.packets.push(Bytes::copy_from_slice(packet));
            let (layer, timestamp) = layer(packet)?;
            match &mut coming {
                Some(frame) if frame.timestamp == timestamp => frame.top = frame.top.max(layer),
                before => *before = Some(Coming { timestamp, began: at, top: layer }),
            }
        }
        Ok(coming)
    }

    fn ask(&mut self) -> Result<()> {
        self.requests += 1;
        let level = self.level as u8;
        let request = LevelRequest { number: self.requests, level, media: SSRC };
        self.control.send(&LevelMessage::Request(request).emit(OWN_SSRC, "changes"))?;
        Ok(())
    }

    /// All that came so far; it is kept no longer.
    pub(crate) fn take(&mut self) -> Result<Vec<Bytes>> {
        self.drain()?;
        Ok(std::mem::take(&mut self.packets))
    }
}
