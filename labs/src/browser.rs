//! Chromium without a window, told what to do by its DevTools protocol, through pipes.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{ChildStdin, ChildStdout};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::net::Namespace;
use crate::process::{Program, Running};

/// How long it may take to answer: it starts slowly on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// How often a page is asked again.
const ASK_EVERY: Duration = Duration::from_millis(50);

/// The program, as Debian has it.
pub const CHROMIUM: &str = "chromium";

/// Nothing that reaches for the network by itself, or needs a screen or a user. The sandbox is not for root.
const FLAGS: [&str; 13] = [
    "--headless=new",
    "--remote-debugging-pipe",
    "--no-sandbox",
    "--no-first-run",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--mute-audio",
    "--autoplay-policy=no-user-gesture-required",
    "--allow-loopback-in-peer-connection",
];

/// A camera, which shows a moving shape, and a microphone, which beeps, that all pages may use.
const CAMERA: [&str; 2] = ["--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream"];

/// A browser with one page.
#[derive(Debug)]
pub struct Browser {
    input: ChildStdin,
    answers: Receiver<Value>,
    asked: u64,
    /// The page that is asked.
    session: Option<String>,
    process: Running,
    _profile: TempDir,
}

impl Browser {
    /// Starts one there.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(namespace: &Namespace) -> Result<Self> {
        Self::start_as(namespace, &[])
    }

    /// Starts one there that has a camera and a microphone. Pages from this origin may use them as if they came by
    /// HTTPS; no others may.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start_with_camera(namespace: &Namespace, trusted: &str) -> Result<Self> {
        let trusted = format!("--unsafely-treat-insecure-origin-as-secure={trusted}");
        Self::start_as(namespace, &[CAMERA[0], CAMERA[1], &trusted])
    }

    fn start_as(namespace: &Namespace, more: &[&str]) -> Result<Self> {
        let profile = tempfile::tempdir()?;
        // It reads its descriptor 3, and writes to 4.
        let pipes = "exec 3<&0 4>&1 </dev/null 1>&2; exec \"$0\" \"$@\"";
        let data = format!("--user-data-dir={}", profile.path().display());
        let program = Program::new("sh").args(["-c", pipes, CHROMIUM]).args(FLAGS).args(more.iter().copied());
        let program = program.args([data, "about:blank".into()]);
        let (process, input, output) = program.within(namespace).start_piped()?;
        let answers = listen(output);
        Ok(Browser { input, answers, asked: 0, session: None, process, _profile: profile })
    }

    /// Opens an address in a page of its own, which is asked from then on.
    ///
    /// # Errors
    /// It does not answer.
    pub fn open(&mut self, url: &str) -> Result<()> {
        self.session = None;
        let page = self.ask("Target.createTarget", json!({ "url": url }))?;
        let attach = json!({ "targetId": page["targetId"], "flatten": true });
        let attached = self.ask("Target.attachToTarget", attach)?;
        self.session = attached["sessionId"].as_str().map(str::to_owned);
        ensure!(self.session.is_some(), "it has no session: {attached}");
        Ok(())
    }

    /// What a script of the page comes to; a promise is waited for.
    ///
    /// # Errors
    /// The script fails.
    pub fn evaluate(&mut self, script: &str) -> Result<Value> {
        let params = json!({ "expression": script, "awaitPromise": true, "returnByValue": true });
        let mut answer = self.ask("Runtime.evaluate", params)?;
        if let Some(wrong) = answer.get("exceptionDetails") {
            bail!("{script}: {wrong}");
        }
        Ok(answer["result"]["value"].take())
    }

    /// Waits until a script comes to something that satisfies `condition`; `what` says which in the error.
    ///
    /// # Errors
    /// It does not in time.
    pub fn wait_for(
        &mut self,
        what: &str,
        script: &str,
        condition: impl Fn(&Value) -> bool,
    ) -> Result<Value> {
        let until = Instant::now() + PATIENCE;
        loop {
            let value = self.evaluate(script)?;
            if condition(&value) {
                return Ok(value);
            }
            if Instant::now() > until {
                let state = self.evaluate("document.body.innerText")?;
                bail!("{what}: not after {PATIENCE:?}: {value}, the page says {state}");
            }
            std::thread::sleep(ASK_EVERY);
        }
    }

    fn ask(&mut self, method: &str, params: Value) -> Result<Value> {
        self.asked += 1;
        let id = self.asked;
        let mut message = json!({ "id": id, "method": method, "params": params });
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        let asked = self.input.write_all(format!("{message}\0").as_bytes());
        asked.with_context(|| format!("{method}: it has ended: {}", self.process.account()))?;
        loop {
            let mut answer = self.answers.recv_timeout(PATIENCE).with_context(|| {
                format!("{method}: no answer within {PATIENCE:?}: {}", self.process.account())
            })?;
            if answer["id"] == id {
                ensure!(answer.get("error").is_none(), "{method}: {}", answer["error"]);
                return Ok(answer["result"].take());
            }
        }
    }
}

/// What it says, each message with a zero behind it.
fn listen(output: ChildStdout) -> Receiver<Value> {
    let (told, answers) = channel();
    std::thread::spawn(move || {
        let mut output = BufReader::new(output);
        loop {
            let mut message = Vec::new();
            let read = output.read_until(0, &mut message).unwrap_or(0);
            message.pop();
            let Ok(value) = serde_json::from_slice(&message) else { return };
            if read == 0 || told.send(value).is_err() {
                return;
            }
        }
    });
    answers
}
