//! A receiver that keeps the number and the time of every packet: what got lost, came twice or out of
//! order is then known exactly, and how long nothing came.

use std::net::UdpSocket;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

use anyhow::{Context, Result};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{setsockopt, sockopt};

use super::stamped::{Batch, ask_for_stamps};
use crate::media::Marker;
use crate::process::be_preferred;

/// Room for what comes while the reader does not run.
const BUFFER: usize = 32 << 20;
/// How long the reader waits before it looks whether it is to stop.
const LOOK_EVERY_MS: u8 = 20;

/// A packet that came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrived {
    /// Its number.
    pub number: u32,
    /// When the source sent it, by the source's clock.
    pub sent: u64,
    /// When the kernel got it: nanoseconds since 1970.
    pub at: u64,
}

/// Reads marked packets from a socket, until stopped.
#[derive(Debug)]
pub struct Numbered {
    shared: Arc<Shared>,
    thread: JoinHandle<Vec<Arrived>>,
}

#[derive(Debug, Default)]
struct Shared {
    stop: AtomicBool,
    count: AtomicU64,
}

impl Numbered {
    /// Begins to read, in a thread that goes before others.
    pub fn start(socket: UdpSocket) -> Result<Self> {
        setsockopt(&socket, sockopt::RcvBufForce, &BUFFER).context("the kernel gives no room")?;
        ask_for_stamps(&socket)?;
        let shared = Arc::new(Shared::default());
        let theirs = Arc::clone(&shared);
        let thread = std::thread::spawn(move || {
            be_preferred();
            read(&socket, &theirs)
        });
        Ok(Self { shared, thread })
    }

    /// Packets that have come so far.
    pub fn count(&self) -> u64 {
        self.shared.count.load(Ordering::Acquire)
    }

    /// Stops, and gives all that came, in its order.
    pub fn stop(self) -> Vec<Arrived> {
        self.shared.stop.store(true, Ordering::Release);
        self.thread.join().expect("it does not panic")
    }
}

fn read(socket: &UdpSocket, shared: &Shared) -> Vec<Arrived> {
    let (mut batch, mut all) = (Batch::new(), Vec::new());
    while !shared.stop.load(Ordering::Acquire) {
        let mut fds = [PollFd::new(socket.as_fd(), PollFlags::POLLIN)];
        // What goes wrong here shows in what is missing.
        let _ready = poll(&mut fds, PollTimeout::from(LOOK_EVERY_MS));
        batch.read(socket, &mut |bytes, at| {
            all.extend(Marker::parse(bytes).map(|marker| Arrived {
                number: marker.datagram,
                sent: marker.sent_nanos,
                at,
            }));
        });
        shared.count.store(all.len() as u64, Ordering::Release);
    }
    all
}

/// What is wrong with the packets that came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Account {
    /// Numbers that did not come, from the first that did to the last that was sent.
    pub lost: u64,
    /// Packets whose number had come before.
    pub repeated: u64,
    /// Packets whose number is below one that had come before.
    pub reordered: u64,
}

impl Account {
    /// Compares what came with what was sent, up to number `sent` without it.
    pub fn of(arrived: &[Arrived], sent: u32) -> Self {
        let Some(first) = arrived.iter().map(|one| one.number).min() else { return Account::default() };
        let mut seen = vec![false; sent.saturating_sub(first) as usize];
        let (mut account, mut highest) = (Account::default(), first);
        for one in arrived {
            // A number that was never sent has no place.
            let before =
                seen.get_mut((one.number - first) as usize).map(|seen| core::mem::replace(seen, true));
            account.repeated += u64::from(before != Some(false));
            account.reordered += u64::from(one.number < highest);
            highest = highest.max(one.number);
        }
        account.lost = seen.iter().filter(|seen| !**seen).count() as u64;
        account
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_twice_there_or_late_is_told_apart() {
        let of = |numbers: &[u32], sent| {
            let all: Vec<_> = numbers.iter().map(|&number| Arrived { number, sent: 0, at: 0 }).collect();
            let Account { lost, repeated, reordered } = Account::of(&all, sent);
            (lost, repeated, reordered)
        };
        assert_eq!(of(&[3, 4, 5], 6), (0, 0, 0), "one that joins late has lost nothing");
        assert_eq!(of(&[3, 5], 8), (3, 0, 0));
        assert_eq!(of(&[3, 4, 4, 5], 6), (0, 1, 0));
        assert_eq!(of(&[3, 5, 4], 6), (0, 0, 1));
        assert_eq!(of(&[], 6), (0, 0, 0));
    }
}
