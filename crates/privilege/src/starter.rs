//! A process of its own that keeps all that the relay was started with: privileges, environment, working directory and
//! arguments. It does one thing when it is asked to: it starts a program that it was told of at its own start, with a
//! descriptor of the relay as standard input. The relay says neither which program nor with which arguments, so that
//! one that has been taken over gets no more by it than a relay that starts again.
//!
//! It answers nothing: the relay hears of the program by the other end of what it gave. The starter ends when the
//! relay does, and what it has started goes on.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

use crate::message::{receive, send};

/// What it is asked by.
const START: &[u8] = b"start";

/// How often it looks whether a program that it has started has ended.
const LOOK: Duration = Duration::from_secs(1);

/// The relay's end.
#[derive(Debug)]
struct Starter {
    asks: OwnedFd,
    /// It is not waited for: it ends with this process, or before it.
    _process: Child,
}

static STARTER: OnceLock<Starter> = OnceLock::new();

/// Starts the starter, by a command that calls [`serve_starter`]. To be called before anything is given up that the
/// programs are to have.
///
/// # Errors
/// It cannot be started.
pub fn start_starter(command: &mut Command) -> io::Result<()> {
    if STARTER.get().is_some() {
        return Ok(());
    }
    let (asks, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
    // A signal to the relay's terminal is not one to it: it ends when the relay has.
    let process = command.process_group(0).stdin(Stdio::from(theirs)).spawn()?;
    // The command holds the other end until it is given another one: an end of the starter would not be seen.
    command.stdin(Stdio::null());
    // Another one that was started meanwhile ends with its socket.
    let _ = STARTER.set(Starter { asks, _process: process });
    Ok(())
}

/// Has the starter start its program, with this as standard input. If that cannot be, the other end of it says so: what
/// was given is closed.
///
/// # Errors
/// There is no starter ([`io::ErrorKind::NotFound`]), or it is gone.
pub fn ask(descriptor: BorrowedFd<'_>) -> io::Result<()> {
    let starter = STARTER.get().ok_or(io::ErrorKind::NotFound)?;
    Ok(send(&starter.asks, START, Some(descriptor))?)
}

/// What the starter does, in its own process: starts this program each time that the relay asks, which is at the other
/// end of this socket, until the relay ends. A program that cannot be started is told of by `failed`.
///
/// # Errors
/// The socket is none.
pub fn serve_starter(
    relay: BorrowedFd<'_>,
    program: &mut Command,
    mut failed: impl FnMut(io::Error),
) -> io::Result<()> {
    let mut started: Vec<Child> = Vec::new();
    loop {
        // One that has ended is known no longer, so that the system need not know it either.
        started.retain_mut(|child| matches!(child.try_wait(), Ok(None)));
        let look = Timespec { tv_sec: LOOK.as_secs().cast_signed(), tv_nsec: 0 };
        match poll(&mut [PollFd::new(&relay, PollFlags::IN)], (!started.is_empty()).then_some(&look)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => continue,
            Ok(_) => {}
            Err(error) => return Err(error.into()),
        }
        let mut bytes = [0; START.len() + 1];
        let (length, descriptor) = match receive(relay, &mut bytes) {
            Ok(message) => message,
            Err(rustix::io::Errno::INTR) => continue,
            // It has ended while something of the starter's was on its way.
            Err(rustix::io::Errno::CONNRESET) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        if length == 0 {
            return Ok(());
        }
        if let (START, Some(descriptor)) = (&bytes[..length], descriptor) {
            let start = program.stdin(Stdio::from(descriptor)).spawn();
            // As at the start of the starter: the program's end of it is the only one.
            program.stdin(Stdio::null());
            match start {
                Ok(child) => started.push(child),
                Err(error) => failed(error),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::os::fd::AsFd as _;
    use std::os::unix::net::UnixStream;

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(20);

    /// What asks a starter of a shell with these arguments, and the starter, which tells how often it failed.
    fn starter(path: &str, script: &str) -> (OwnedFd, std::thread::JoinHandle<io::Result<usize>>) {
        let (asks, theirs) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
                .expect("a pair");
        let mut program = Command::new(path);
        program.args(["-c", script]);
        let serving = std::thread::spawn(move || {
            let mut failures = 0;
            serve_starter(theirs.as_fd(), &mut program, |_| failures += 1).map(|()| failures)
        });
        (asks, serving)
    }

    fn pair() -> (UnixStream, UnixStream) {
        let (ours, theirs) = UnixStream::pair().expect("a pair");
        ours.set_read_timeout(Some(PATIENCE)).expect("it takes one");
        (ours, theirs)
    }

    #[test]
    fn a_program_is_started_each_time_with_what_was_given_as_standard_input() {
        let (asks, serving) = starter("/bin/sh", "read word; echo $word >&0");
        for word in ["one", "two"] {
            let (mut ours, theirs) = pair();
            send(&asks, START, Some(theirs.as_fd())).expect("asked");
            drop(theirs);
            writeln!(ours, "{word}").expect("it reads");
            let mut answer = String::new();
            ours.read_to_string(&mut answer).expect("it ends, and none else has its end");
            assert_eq!(answer.trim(), word);
        }
        drop(asks);
        assert_eq!(serving.join().expect("no panic").expect("it ends with the relay"), 0);
    }

    #[test]
    fn a_program_goes_on_when_the_starter_has_ended() {
        let (asks, serving) = starter("/bin/sh", "read word; echo $word >&0");
        let (mut ours, theirs) = pair();
        send(&asks, START, Some(theirs.as_fd())).expect("asked");
        drop((asks, theirs));
        serving.join().expect("no panic").expect("it ends with the relay");
        writeln!(ours, "on").expect("it reads");
        let mut answer = String::new();
        ours.read_to_string(&mut answer).expect("it goes on");
        assert_eq!(answer.trim(), "on");
    }

    #[test]
    fn a_program_that_cannot_be_started_leaves_the_other_end_closed() {
        let (asks, serving) = starter("/nonexistent", "");
        let (mut ours, theirs) = pair();
        send(&asks, START, Some(theirs.as_fd())).expect("asked");
        drop(theirs);
        assert_eq!(ours.read_to_end(&mut Vec::new()).expect("closed"), 0);
        drop(asks);
        assert_eq!(serving.join().expect("no panic").expect("it goes on until then"), 1);
    }

    #[test]
    fn what_is_no_request_starts_nothing() {
        let (asks, serving) = starter("/nonexistent", "");
        let (mut ours, theirs) = pair();
        send(&asks, START, None).expect("without a descriptor");
        send(&asks, b"start!", Some(theirs.as_fd())).expect("another word");
        drop(theirs);
        assert_eq!(ours.read_to_end(&mut Vec::new()).expect("closed"), 0);
        drop(asks);
        assert_eq!(serving.join().expect("no panic").expect("it goes on until then"), 0);
    }
}
