//! The receiver at the far end: a process of its own, because the end is a namespace of the emulator's.

use std::fs::File;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{IoSliceMut, Write};
use std::net::UdpSocket;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg, setsockopt, sockopt};
use outflow_labs::bench::OTHER_CPU;
use outflow_labs::process::keep_to_cpu;
use outflow_ts::packet::SYNC;

/// The first argument of a receiver; the second one is the file for what has come.
pub(crate) const WORD: &str = "receive";

/// Where it receives.
pub(crate) const PORT: u16 = 5500;

/// It ends when nothing has come for so long.
const SILENCE: Duration = Duration::from_millis(1500);

/// Bytes of a record: a number, and when it came.
const RECORD: usize = 16;

/// A packet that has come.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Came {
    /// Its number.
    pub(crate) number: u64,
    /// When, in nanoseconds of the system's clock.
    pub(crate) at: u64,
}

/// Receives until there is silence.
pub(crate) fn run() -> ExitCode {
    match receive() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

fn receive() -> Result<()> {
    let name = std::env::args().nth(2).context("name a file")?;
    keep_to_cpu(OTHER_CPU)?;
    let socket = UdpSocket::bind(("0.0.0.0", PORT))?;
    setsockopt(&socket, sockopt::ReceiveTimestampns, &true)?;
    setsockopt(&socket, sockopt::RcvBufForce, &(64 << 20))?;
    socket.set_read_timeout(Some(SILENCE))?;
    // It is there: the sender may begin.
    let mut file = File::create(Path::new(&name))?;
    let (mut all, mut bytes) = (Vec::new(), [0; 2048]);
    let mut control = nix::cmsg_space!(nix::sys::time::TimeSpec);
    loop {
        let mut parts = [IoSliceMut::new(&mut bytes)];
        let received = recvmsg::<()>(socket.as_raw_fd(), &mut parts, Some(&mut control), MsgFlags::empty());
        let Ok(message) = received else {
            // Silence before the first packet is patience.
            if all.is_empty() {
                continue;
            }
            break;
        };
        let at = message.cmsgs()?.find_map(|part| match part {
            ControlMessageOwned::ScmTimestampns(at) => Some(at),
            _ => None,
        });
        let at = at.context("no time of arrival")?;
        let length = message.bytes;
        all.push(Came {
            number: number(&bytes[..length]),
            at: at.tv_sec() as u64 * 1_000_000_000 + at.tv_nsec() as u64,
        });
    }
    let records = all.iter().flat_map(|came| [came.number.to_be_bytes(), came.at.to_be_bytes()].concat());
    file.write_all(&records.collect::<Vec<u8>>())?;
    Ok(())
}

/// The number that a payload begins with; of a transport stream, which has none, what its bytes come to.
pub(crate) fn number(payload: &[u8]) -> u64 {
    match payload {
        [SYNC, ..] => {
            let mut hasher = DefaultHasher::new();
            payload.hash(&mut hasher);
            hasher.finish()
        }
        _ => payload.first_chunk().map_or(u64::MAX, |number| u64::from_be_bytes(*number)),
    }
}

/// What a receiver has written.
pub(crate) fn read(file: &Path) -> Result<Vec<Came>> {
    let bytes = std::fs::read(file)?;
    let word = |record: &[u8], at: usize| {
        record.get(at..at + 8).and_then(|word| word.first_chunk()).map_or(0, |word| u64::from_be_bytes(*word))
    };
    let came = |record: &[u8]| Came { number: word(record, 0), at: word(record, 8) };
    Ok(bytes.chunks_exact(RECORD).map(came).collect())
}
