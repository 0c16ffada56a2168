//! A program that is kept running: a thread writes to it, one reads from it and starts it again.

use std::io::{Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use outflow_privilege::{Bounds, environment, give_up_privileges, spawn};
use rustix::process::{Pid, Signal, kill_process_group};

use super::log;
use crate::limits::{AGAIN, CHUNK_BYTES, CHUNKS, FILES, GOOD_AFTER, LAST_WORDS, PACKETS, TROUBLES};

/// What is run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Words {
    pub(crate) command: Vec<String>,
    pub(crate) nice: u64,
    /// Bytes that it may have.
    pub(crate) memory: u64,
    /// What it finds in its environment, besides what all programs do.
    pub(crate) env: Vec<String>,
}

/// What comes from it.
#[derive(Debug)]
pub(crate) enum Output {
    /// What it has written.
    Bytes(Bytes),
    /// It has ended. What it writes next, it writes as another one.
    End,
}

/// Its standard streams, and what it says last, once it has said that.
struct Pipes {
    stdin: ChildStdin,
    stdout: ChildStdout,
    last_words: Receiver<String>,
}

/// A program that is kept running until this is dropped.
#[derive(Debug)]
pub(crate) struct Process {
    input: SyncSender<Bytes>,
    output: Receiver<Output>,
    troubles: Receiver<String>,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    over: AtomicBool,
    child: Mutex<Option<Child>>,
    /// Packets that it was given and did not live to read.
    missed: AtomicU64,
}

impl Shared {
    fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire)
    }

    fn child(&self) -> MutexGuard<'_, Option<Child>> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the program, if one runs, and says how it ended.
    fn end(&self) -> Option<String> {
        let mut child = self.child().take()?;
        kill(&child);
        child.wait().ok().map(|status| status.to_string())
    }
}

impl Process {
    /// Starts it, in the background.
    pub(crate) fn start(words: &Words) -> Self {
        let (input, inputs) = sync_channel(PACKETS);
        let (outputs, output) = sync_channel(CHUNKS);
        let (told, troubles) = sync_channel(TROUBLES);
        let shared = Arc::new(Shared::default());
        let (theirs, words) = (Arc::clone(&shared), words.clone());
        // Without a thread nothing comes out, which shows; what goes in is counted as dropped.
        let _ = std::thread::Builder::new()
            .name("external".to_owned())
            .spawn(move || keep(&words, &theirs, inputs, &outputs, &told));
        Process { input, output, troubles, shared }
    }

    /// Gives it bytes; `false` if it does not keep up.
    pub(crate) fn give(&self, bytes: &Bytes) -> bool {
        self.input.try_send(bytes.clone()).is_ok()
    }

    /// What comes from it.
    pub(crate) fn take(&self) -> Option<Output> {
        self.output.try_recv().ok()
    }

    /// How many packets it was given since the last time and did not live to read.
    pub(crate) fn missed(&self) -> u64 {
        self.shared.missed.swap(0, Ordering::Relaxed)
    }

    /// What went wrong.
    pub(crate) fn trouble(&self) -> Option<String> {
        self.troubles.try_recv().ok()
    }
}

impl Drop for Process {
    /// Does not wait for its end: the thread that keeps it does.
    fn drop(&mut self) {
        self.shared.over.store(true, Ordering::Release);
        self.shared.child().iter().for_each(kill);
    }
}

/// Ends a program and what it has started, all of which is its group. One that has ended by itself cannot
/// be killed, and need not be.
fn kill(child: &Child) {
    let _ = kill_process_group(Pid::from_child(child), Signal::KILL);
}

/// Runs the program again and again, with growing rests.
fn keep(
    words: &Words,
    shared: &Arc<Shared>,
    inputs: Receiver<Bytes>,
    outputs: &SyncSender<Output>,
    told: &SyncSender<String>,
) {
    give_up_privileges("external");
    let mut backoff = AGAIN;
    let mut inputs = Some(inputs);
    while !shared.is_over() {
        let began = std::time::Instant::now();
        let trouble = match launch(words) {
            Ok((child, Pipes { stdin, stdout, last_words })) => {
                *shared.child() = Some(child);
                let (back, status) = serve(shared, inputs.take(), stdin, stdout, outputs);
                inputs = back;
                // The reader may be gone; it is over then.
                let _ = outputs.send(Output::End);
                let last = last_words.recv_timeout(LAST_WORDS).unwrap_or_default();
                let last = if last.is_empty() { last } else { format!("; its last words: {last}") };
                status.map(|status| format!("{} ended: {status}{last}", words.command[0]))
            }
            Err(error) => Some(format!("{} cannot be started: {error}", words.command[0])),
        };
        if shared.is_over() {
            return;
        }
        // The caller that asked may be gone, or have some to look at that are like it.
        trouble.into_iter().for_each(|trouble| drop(told.try_send(trouble)));
        if began.elapsed() > GOOD_AFTER {
            backoff.reset();
        }
        sleep_until_over(shared, backoff.wait());
        // The next one begins with what comes now, without a gap behind it.
        let missed = inputs.iter().flat_map(|inputs| inputs.try_iter()).count();
        shared.missed.fetch_add(missed as u64, Ordering::Relaxed);
    }
}

fn sleep_until_over(shared: &Shared, rest: Duration) {
    let step = Duration::from_millis(50);
    for _ in 0..rest.as_millis() / step.as_millis() {
        if shared.is_over() {
            return;
        }
        std::thread::sleep(step);
    }
}

fn launch(words: &Words) -> std::io::Result<(Child, Pipes)> {
    let mut command = Command::new(&words.command[0]);
    command.args(&words.command[1..]);
    environment(&mut command, &words.env);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let nice = i32::try_from(words.nice).unwrap_or(i32::MAX);
    let mut child = spawn(&mut command, Bounds { nice, memory_bytes: words.memory, files: FILES })?;
    let taken = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let (Some(stdin), Some(stdout), Some(stderr)) = taken else {
        return Err(std::io::ErrorKind::BrokenPipe.into());
    };
    let (say, last_words) = sync_channel(1);
    let name = words.command[0].clone();
    let drained = std::thread::Builder::new().name("external-words".to_owned());
    // The receiver of its last words may be gone.
    if let Err(error) = drained.spawn(move || drop(say.send(log::drain(&name, stderr)))) {
        kill(&child);
        child.wait()?;
        return Err(error);
    }
    Ok((child, Pipes { stdin, stdout, last_words }))
}

/// Writes to the program and reads from it until it has closed its output. Returns what feeds it, and
/// how it ended.
fn serve(
    shared: &Arc<Shared>,
    inputs: Option<Receiver<Bytes>>,
    mut stdin: ChildStdin,
    mut stdout: ChildStdout,
    outputs: &SyncSender<Output>,
) -> (Option<Receiver<Bytes>>, Option<String>) {
    // An element that was let go while the program was being started did not find it.
    let Some(inputs) = inputs.filter(|_| !shared.is_over()) else { return (None, shared.end()) };
    let theirs = Arc::clone(shared);
    let ended = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&ended);
    let writer = std::thread::spawn(move || {
        while !theirs.is_over() && !told.load(Ordering::Acquire) {
            match inputs.recv_timeout(Duration::from_millis(50)) {
                Ok(bytes) if stdin.write_all(&bytes).is_ok() => {}
                Err(RecvTimeoutError::Timeout) => {}
                Ok(_) => {
                    theirs.missed.fetch_add(1, Ordering::Relaxed);
                    break;
                }
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        inputs
    });
    loop {
        let mut chunk = BytesMut::zeroed(CHUNK_BYTES);
        match stdout.read(&mut chunk) {
            Ok(0) | Err(_) => break,
            Ok(read) => {
                chunk.truncate(read);
                // It waits while its output is not taken: that is its clock.
                if outputs.send(Output::Bytes(chunk.freeze())).is_err() {
                    break;
                }
            }
        }
    }
    ended.store(true, Ordering::Release);
    // Before the writer, which may wait for it to read.
    let status = shared.end();
    (writer.join().ok(), status)
}
