//! A program that is kept running: a thread writes to it, one reads from it and starts it again.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::{Bytes, BytesMut};

use crate::limits::{
    EXTERNAL_CHUNK_BYTES, EXTERNAL_CHUNKS, EXTERNAL_PACKETS, EXTERNAL_REST, EXTERNAL_REST_MAX, EXTERNAL_WORDS,
};

/// What is run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Words {
    pub(super) command: Vec<String>,
    pub(super) nice: u64,
}

/// A program that is kept running until this is dropped.
#[derive(Debug)]
pub(super) struct Process {
    input: SyncSender<Bytes>,
    output: Receiver<Bytes>,
    troubles: Receiver<String>,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    over: AtomicBool,
    child: Mutex<Option<Child>>,
}

impl Shared {
    fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire)
    }

    /// Ends the program, if one runs, and says how it ended.
    fn end(&self) -> Option<String> {
        let mut child = self.child.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        // One that has ended by itself cannot be killed, and need not be.
        let _ = child.kill();
        child.wait().ok().map(|status| status.to_string())
    }
}

impl Process {
    /// Starts it, in the background.
    pub(super) fn start(words: &Words) -> Self {
        let (input, inputs) = sync_channel(EXTERNAL_PACKETS);
        let (outputs, output) = sync_channel(EXTERNAL_CHUNKS);
        let (told, troubles) = channel();
        let shared = Arc::new(Shared::default());
        let (theirs, words) = (Arc::clone(&shared), words.clone());
        // Without a thread nothing comes out, which shows; what goes in is counted as dropped.
        let _ = std::thread::Builder::new()
            .name("external".to_owned())
            .spawn(move || keep(&words, &theirs, inputs, &outputs, &told));
        Process { input, output, troubles, shared }
    }

    /// Gives it bytes; `false` if it does not keep up.
    pub(super) fn give(&self, bytes: &Bytes) -> bool {
        self.input.try_send(bytes.clone()).is_ok()
    }

    /// What it has written.
    pub(super) fn take(&self) -> Option<Bytes> {
        self.output.try_recv().ok()
    }

    /// What went wrong.
    pub(super) fn trouble(&self) -> Option<String> {
        self.troubles.try_recv().ok()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.shared.over.store(true, Ordering::Release);
        self.shared.end();
    }
}

/// Runs the program again and again, with growing rests.
fn keep(
    words: &Words,
    shared: &Arc<Shared>,
    inputs: Receiver<Bytes>,
    outputs: &SyncSender<Bytes>,
    told: &Sender<String>,
) {
    let mut rest = EXTERNAL_REST;
    let mut inputs = Some(inputs);
    while !shared.is_over() {
        let began = std::time::Instant::now();
        let trouble = match launch(words) {
            Ok((child, stdin, stdout)) => {
                *shared.child.lock().unwrap_or_else(PoisonError::into_inner) = Some(child);
                let (back, status) = serve(shared, inputs.take(), stdin, stdout, outputs);
                inputs = back;
                status.map(|status| format!("{} ended: {status}", words.command[0]))
            }
            Err(error) => Some(format!("{} cannot be started: {error}", words.command[0])),
        };
        if shared.is_over() {
            return;
        }
        // Whoever asked may be gone.
        trouble.into_iter().for_each(|trouble| drop(told.send(trouble)));
        rest = if began.elapsed() > EXTERNAL_REST_MAX { EXTERNAL_REST } else { rest };
        sleep_until_over(shared, rest);
        rest = (rest * 2).min(EXTERNAL_REST_MAX);
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

fn launch(words: &Words) -> std::io::Result<(Child, ChildStdin, ChildStdout)> {
    let mut command = Command::new("nice");
    command.args(["-n", &words.nice.to_string(), "--"]).args(&words.command);
    // Its own group, so that a signal to the relay's terminal is not one to it.
    command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    if std::path::Path::new(&words.command[0]).components().count() > 1 {
        // What nice cannot find it tells nobody but its own standard error.
        std::fs::metadata(&words.command[0])?;
    }
    let mut child = command.spawn()?;
    let taken = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let (Some(stdin), Some(stdout), Some(stderr)) = taken else {
        return Err(std::io::ErrorKind::BrokenPipe.into());
    };
    let name = words.command[0].clone();
    std::thread::Builder::new().name("external-words".to_owned()).spawn(move || {
        for line in BufReader::new(stderr).lines().map_while(Result::ok).take(EXTERNAL_WORDS) {
            tracing::info!(program = name, line, "another program says");
        }
    })?;
    Ok((child, stdin, stdout))
}

/// Writes to the program and reads from it until it has closed its output. Returns what feeds it, and
/// how it ended.
fn serve(
    shared: &Arc<Shared>,
    inputs: Option<Receiver<Bytes>>,
    mut stdin: ChildStdin,
    mut stdout: ChildStdout,
    outputs: &SyncSender<Bytes>,
) -> (Option<Receiver<Bytes>>, Option<String>) {
    // Whoever let it go while it was being started did not find it.
    let Some(inputs) = inputs.filter(|_| !shared.is_over()) else { return (None, shared.end()) };
    let theirs = Arc::clone(shared);
    let ended = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&ended);
    let writer = std::thread::spawn(move || {
        while !theirs.is_over() && !told.load(Ordering::Acquire) {
            match inputs.recv_timeout(Duration::from_millis(50)) {
                Ok(bytes) if stdin.write_all(&bytes).is_ok() => {}
                Err(RecvTimeoutError::Timeout) => {}
                Ok(_) | Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        inputs
    });
    loop {
        let mut chunk = BytesMut::zeroed(EXTERNAL_CHUNK_BYTES);
        match stdout.read(&mut chunk) {
            Ok(0) | Err(_) => break,
            Ok(read) => {
                chunk.truncate(read);
                // It waits while nobody takes what it writes: that is its clock.
                if outputs.send(chunk.freeze()).is_err() {
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
