//! Receivers whose packets are kept, one of each level, and whether what they got can be decoded.

use std::collections::BTreeMap;
use std::net::UdpSocket;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use bytes::Bytes;
use nix::sys::socket::{setsockopt, sockopt};
use outflow_labs::net::{PLAYER, Paths};
use outflow_wavelet::coding::{LAYERS, layers_of_level};
use outflow_wavelet::openjpeg::decode;
use outflow_wavelet::rtp::{Assembled, Assembler};

use super::video::LEVELS;

/// Where the witness of level 1 receives; the others follow in steps of two.
const FIRST_PORT: u16 = 7000;
/// Room for what comes while nothing is read.
const BUFFER: usize = 8 << 20;
/// How often the sockets are emptied.
const READ_EVERY: Duration = Duration::from_millis(2);
/// Room for a packet.
const PACKET: usize = 2048;

/// The address of the witness of a level.
pub(crate) fn address(level: usize) -> (std::net::Ipv4Addr, u16) {
    (PLAYER, FIRST_PORT + 2 * (level as u16 - 1))
}

/// One receiver of each level.
pub(crate) struct Witnesses {
    /// The best level's first.
    sockets: Vec<UdpSocket>,
    packets: Mutex<Vec<Vec<Bytes>>>,
}

impl Witnesses {
    pub(crate) fn open(paths: &Paths) -> Result<Self> {
        let bind = |level| -> Result<UdpSocket> {
            let socket = paths.players.run(|| UdpSocket::bind(address(level)))?;
            socket.set_nonblocking(true)?;
            setsockopt(&socket, sockopt::RcvBufForce, &BUFFER).context("the kernel gives no room")?;
            Ok(socket)
        };
        let sockets = (1..=LEVELS).map(bind).collect::<Result<_>>()?;
        Ok(Self { sockets, packets: Mutex::new(vec![Vec::new(); LEVELS]) })
    }

    /// Reads until it is to stop, and then what is still there.
    pub(crate) fn read_until(&self, stop: &AtomicBool) {
        let mut ends = false;
        while !ends {
            ends = stop.load(Ordering::Acquire);
            self.read();
            std::thread::sleep(READ_EVERY);
        }
    }

    fn read(&self) {
        let mut packets = self.packets.lock().unwrap_or_else(PoisonError::into_inner);
        let mut buffer = [0; PACKET];
        for (socket, packets) in self.sockets.iter().zip(packets.iter_mut()) {
            // What goes wrong here shows in what is missing.
            while let Ok(length) = socket.recv(&mut buffer) {
                packets.push(Bytes::copy_from_slice(&buffer[..length]));
            }
        }
    }

    /// All that came so far, level by level; it is kept no longer.
    pub(crate) fn take(&self) -> Vec<Vec<Bytes>> {
        self.read();
        let mut packets = self.packets.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut *packets, vec![Vec::new(); LEVELS])
    }
}

/// Decodes frames. What is the same, to the last byte, decodes the same and is decoded once.
#[derive(Default)]
pub(crate) struct Decoder {
    known: BTreeMap<Vec<u8>, bool>,
}

impl Decoder {
    /// Of `frames` frames whose packets these are, those that did not come, have a gap, cannot be decoded or
    /// do not have the layers of the level. Where none is said, any layers are right.
    pub(crate) fn undecodable(&mut self, packets: &[Bytes], frames: usize, level: Option<usize>) -> usize {
        let (mut assembler, mut told) = (Assembler::default(), Vec::new());
        packets.iter().for_each(|packet| assembler.handle(packet.clone(), |frame| told.push(frame)));
        assembler.flush(|frame| told.push(frame));
        let good = told.iter().filter(|frame| self.is_good(frame, level)).count();
        frames.abs_diff(good)
    }

    fn is_good(&mut self, frame: &Assembled, level: Option<usize>) -> bool {
        let Some(codestream) = frame.codestream.as_ref().filter(|_| !frame.gap) else { return false };
        let layers = level.and_then(|level| layers_of_level(LAYERS, level));
        if layers.is_some_and(|layers| layers != codestream.layers()) {
            return false;
        }
        let bytes = codestream.to_bytes();
        *self.known.entry(bytes).or_insert_with_key(|bytes| decode(bytes).is_ok())
    }
}
