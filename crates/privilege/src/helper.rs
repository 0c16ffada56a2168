//! A process of its own that keeps `CAP_NET_ADMIN` when the relay has given it up. It does three things when it is
//! asked to, and nothing else: it has the kernel confirm neighbours, gives sockets larger buffers than the system's
//! limit, and has a socket of multicast routing choose a table.
//!
//! Asks are single messages of a socket pair, and but for the last without answers: the relay goes on meanwhile. What
//! the relay cannot ask, because the helper is late or gone, it does without. The helper ends when the relay does.

use std::io;
use std::net::{IpAddr, Ipv6Addr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, recv, socketpair};
use rustix::thread::{CapabilitySet, capabilities};

use crate::message::{receive, send};
use crate::{explained, reduce};

/// How long it may take to start. One that does not is done without.
const STARTS_WITHIN: Duration = Duration::from_secs(2);

/// Neighbours of one ask. More are several asks.
const NEIGHBOURS_MAX: usize = 128;

/// Bytes of a buffer that may be asked for. More are not given.
const BUFFER_BYTES_MAX: u32 = 64 << 20;

/// A neighbour on the wire: the index of its device, and its address, of IPv4 as one of IPv6.
const NEIGHBOUR_BYTES: usize = 4 + 16;

/// The longest ask: its kind, and neighbours.
const ASK_BYTES_MAX: usize = 1 + NEIGHBOURS_MAX * NEIGHBOUR_BYTES;

/// How long an answer may take.
const ANSWERS_WITHIN: Duration = Duration::from_secs(1);

/// What the helper says first.
const READY: &[u8] = b"ready";

/// A buffer of a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Buffer {
    /// Of what is to be sent.
    Send,
    /// Of what has come.
    Receive,
}

/// A neighbour: the index of the device that it is behind, and its address.
pub type Neighbour = (u32, IpAddr);

/// The relay's end.
#[derive(Debug)]
struct Helper {
    asks: OwnedFd,
    /// One answer is waited for at a time.
    answers: Mutex<()>,
    /// It is not waited for: it ends with this process, or before it.
    _process: Child,
}

static HELPER: OnceLock<Helper> = OnceLock::new();

/// Starts the helper, by a command that calls [`serve`], if this thread has what it is for. To be called before that is
/// given up. Without it, workers keep what it would have.
///
/// # Errors
/// It cannot be started, or is not ready in time.
pub fn start_helper(command: &mut Command) -> io::Result<()> {
    if HELPER.get().is_some() || !capabilities(None)?.permitted.contains(CapabilitySet::NET_ADMIN) {
        return Ok(());
    }
    let (asks, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
    // A signal to the relay's terminal is not one to it: it ends when the relay has.
    command.process_group(0).env_clear().current_dir("/");
    let mut process =
        command.stdin(Stdio::from(theirs)).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    // The command holds the other end until it is given another one: an end of the helper would not be seen.
    command.stdin(Stdio::null());
    if let Err(error) = wait_until_ready(&asks) {
        process.kill()?;
        process.wait()?;
        return Err(error);
    }
    // Another one that was started meanwhile ends with its socket.
    let _ = HELPER.set(Helper { asks, answers: Mutex::default(), _process: process });
    Ok(())
}

fn wait_until_ready(asks: &OwnedFd) -> io::Result<()> {
    let mut bytes = [0; READY.len()];
    if comes_within(asks, STARTS_WITHIN)?
        && rustix::io::read(asks, &mut bytes)? == READY.len()
        && bytes == READY
    {
        return Ok(());
    }
    Err(io::Error::new(io::ErrorKind::TimedOut, "the helper for privileges does not start"))
}

fn comes_within(asks: &OwnedFd, time: Duration) -> io::Result<bool> {
    let wait = Timespec { tv_sec: time.as_secs().cast_signed(), tv_nsec: 0 };
    Ok(poll(&mut [PollFd::new(asks, PollFlags::IN)], Some(&wait))? > 0)
}

/// Whether there is one to ask.
pub fn has_helper() -> bool {
    HELPER.get().is_some()
}

/// Asks for a larger buffer of a socket; if there is no helper, nothing happens.
///
/// # Errors
/// The helper is late, or gone: the buffer stays as it is.
pub fn enlarge(socket: BorrowedFd<'_>, buffer: Buffer, bytes: usize) -> io::Result<()> {
    let Some(helper) = HELPER.get() else { return Ok(()) };
    let bytes = u32::try_from(bytes).unwrap_or(BUFFER_BYTES_MAX).to_le_bytes();
    helper.ask(&[&[kind_of(buffer)][..], &bytes].concat(), Some(socket))
}

/// Has a raw socket of IGMP or ICMPv6 choose this table of multicast routing (`MRT_TABLE`).
///
/// # Errors
/// There is no helper ([`io::ErrorKind::PermissionDenied`]), it is late or gone, or what the system says.
pub fn choose_table(socket: BorrowedFd<'_>, table: u32) -> io::Result<()> {
    let helper = HELPER.get().ok_or(io::ErrorKind::PermissionDenied)?;
    let _one = helper.answers.lock().unwrap_or_else(PoisonError::into_inner);
    let mut answer = [0; 4];
    // One that came too late belongs to another ask.
    while recv(&helper.asks, &mut answer, RecvFlags::DONTWAIT).is_ok_and(|(read, _)| read > 0) {}
    helper.ask(&[&[TABLE][..], &table.to_le_bytes()].concat(), Some(socket))?;
    if !comes_within(&helper.asks, ANSWERS_WITHIN)? || rustix::io::read(&helper.asks, &mut answer)? < 4 {
        return Err(io::ErrorKind::TimedOut.into());
    }
    match i32::from_le_bytes(answer) {
        0 => Ok(()),
        number => Err(io::Error::from_raw_os_error(number)),
    }
}

/// Asks that the kernel make sure of these neighbours; if there is no helper, nothing happens.
///
/// # Errors
/// The helper is late ([`io::ErrorKind::WouldBlock`]), or gone.
pub fn confirm(neighbours: &[Neighbour]) -> io::Result<()> {
    let Some(helper) = HELPER.get() else { return Ok(()) };
    for some in neighbours.chunks(NEIGHBOURS_MAX) {
        let mut ask = vec![NEIGHBOURS];
        for (device, address) in some {
            let address = match address {
                IpAddr::V4(address) => address.to_ipv6_mapped(),
                IpAddr::V6(address) => *address,
            };
            ask.extend(device.to_le_bytes());
            ask.extend(address.octets());
        }
        helper.ask(&ask, None)?;
    }
    Ok(())
}

const NEIGHBOURS: u8 = 2;

const TABLE: u8 = 3;

const fn kind_of(buffer: Buffer) -> u8 {
    match buffer {
        Buffer::Send => 0,
        Buffer::Receive => 1,
    }
}

impl Helper {
    fn ask(&self, bytes: &[u8], socket: Option<BorrowedFd<'_>>) -> io::Result<()> {
        Ok(send(&self.asks, bytes, socket)?)
    }
}

/// What the helper is asked for.
#[derive(Debug, PartialEq, Eq)]
enum Ask {
    Socket(Deed),
    Confirm(Vec<Neighbour>),
}

/// What is to be done to a socket that comes along.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deed {
    /// To give it a buffer of this many bytes.
    Enlarge(Buffer, u32),
    /// To have it choose this table of multicast routing.
    ChooseTable(u32),
}

impl Ask {
    /// Whatever is none of these is not done.
    fn parse(bytes: &[u8]) -> Option<Ask> {
        let (&kind, rest) = bytes.split_first()?;
        let number = |bytes: &[u8]| bytes.first_chunk().map(|bytes| u32::from_le_bytes(*bytes));
        if let Some(buffer) = [Buffer::Send, Buffer::Receive].into_iter().find(|one| kind_of(*one) == kind) {
            let bytes = number(rest).filter(|bytes| rest.len() == 4 && *bytes <= BUFFER_BYTES_MAX)?;
            return Some(Ask::Socket(Deed::Enlarge(buffer, bytes)));
        }
        if kind == TABLE {
            return number(rest)
                .filter(|_| rest.len() == 4)
                .map(|table| Ask::Socket(Deed::ChooseTable(table)));
        }
        let (neighbours, left) = rest.as_chunks::<NEIGHBOUR_BYTES>();
        if kind != NEIGHBOURS || !left.is_empty() {
            return None;
        }
        let neighbour = |bytes: &[u8; NEIGHBOUR_BYTES]| {
            let address: [u8; 16] = *bytes.last_chunk()?;
            Some((number(bytes)?, Ipv6Addr::from(address).to_canonical()))
        };
        neighbours.iter().map(neighbour).collect::<Option<_>>().map(Ask::Confirm)
    }
}

/// What the helper does, in its own process: serves the relay, which is at the other end of this socket, until it ends.
/// `deed` and `confirm` do what is asked for; if they cannot, the relay does without.
///
/// # Errors
/// The socket is none, or privileges cannot be given up.
pub fn serve(
    relay: BorrowedFd<'_>,
    mut deed: impl FnMut(BorrowedFd<'_>, Deed) -> io::Result<()>,
    mut confirm: impl FnMut(&[Neighbour]),
) -> io::Result<()> {
    reduce(CapabilitySet::NET_ADMIN).map_err(explained)?;
    rustix::io::write(relay, READY)?;
    let mut bytes = [0; ASK_BYTES_MAX];
    loop {
        let (length, socket) = match receive(relay, &mut bytes) {
            Ok(message) => message,
            Err(rustix::io::Errno::INTR) => continue,
            Err(error) => return Err(error.into()),
        };
        match (Ask::parse(&bytes[..length]), socket) {
            _ if length == 0 => return Ok(()),
            (Some(Ask::Socket(what)), Some(socket)) => {
                let done = deed(socket.as_fd(), what);
                if matches!(what, Deed::ChooseTable(_)) {
                    let number = done.err().map_or(0, |error| {
                        error.raw_os_error().unwrap_or(rustix::io::Errno::IO.raw_os_error())
                    });
                    rustix::io::write(relay, &number.to_le_bytes())?;
                }
            }
            (Some(Ask::Confirm(neighbours)), None) => confirm(&neighbours),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_on_the_list_is_not_done() {
        let neighbour = [&7_u32.to_le_bytes()[..], &Ipv6Addr::LOCALHOST.octets()].concat();
        let some = Ask::parse(&[&[NEIGHBOURS][..], &neighbour].concat());
        assert_eq!(some, Some(Ask::Confirm(vec![(7, Ipv6Addr::LOCALHOST.into())])));
        assert_eq!(Ask::parse(&[1, 0, 1, 0, 0]), Some(Ask::Socket(Deed::Enlarge(Buffer::Receive, 256))));
        for wrong in [
            &[][..],
            &[0],
            &[0, 1, 2, 3],
            &[0, 0, 0, 0, 0xff],
            &[1, 0, 0, 0, 0, 0],
            &[2, 1],
            &[3, 0, 0, 0],
            &[4, 0, 0, 0, 0],
        ] {
            assert_eq!(Ask::parse(wrong), None, "{wrong:?}");
        }
    }
}
