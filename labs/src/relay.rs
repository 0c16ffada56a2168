//! A relay under test: started in a namespace, asked through its API.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use nix::sys::signal::Signal;
use serde_json::Value;
use tempfile::TempDir;

use crate::net::Namespace;
use crate::process::{Program, Running};
use crate::successor;

/// Where the relay of a test listens for RTSP.
pub const RTSP_PORT: u16 = 8554;
/// Where it listens for HTTP.
pub const HTTP_PORT: u16 = 8080;
/// Name of its configuration file.
const CONFIGURATION: &str = "outflow.toml";
/// How long anything may take that the relay should do at once, on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(30);
/// How often a condition that is waited for is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// The listening addresses that every configuration here begins with.
pub fn listen() -> String {
    format!("[listen]\nrtsp = \"0.0.0.0:{RTSP_PORT}\"\nhttp = \"0.0.0.0:{HTTP_PORT}\"\n")
}

/// Whether relays print their log when they end.
static SHOWS_LOG: AtomicBool = AtomicBool::new(false);

/// Has relays print their log when they end.
pub fn show_logs() {
    SHOWS_LOG.store(true, Ordering::Relaxed);
}

/// What became of an upgrade.
#[derive(Debug)]
pub enum Upgrade {
    /// Another process goes on. The relay stood still for this long, as it says itself.
    Done {
        /// In milliseconds.
        gap_ms: f64,
    },
    /// The relay goes on as if nothing had been.
    Refused {
        /// Of the answer.
        status: u16,
        /// Its text.
        why: String,
    },
}

/// `outflow run` in a namespace.
#[derive(Debug)]
pub struct Relay<'n> {
    namespace: &'n Namespace,
    program: Program,
    process: Running,
    folder: TempDir,
    token: Option<String>,
}

impl<'n> Relay<'n> {
    /// Starts a relay with this configuration and waits until it is ready.
    pub fn start(namespace: &'n Namespace, configuration: &str) -> Result<Self> {
        Self::start_on(namespace, configuration, None)
    }

    /// The same, kept on one processor.
    pub fn start_on(namespace: &'n Namespace, configuration: &str, cpu: Option<usize>) -> Result<Self> {
        Self::start_as(namespace, configuration, |program| match cpu {
            Some(cpu) => program.on_cpu(cpu),
            None => program,
        })
    }

    /// The same; `place` says where and how the program runs.
    pub fn start_as(
        namespace: &'n Namespace,
        configuration: &str,
        place: impl FnOnce(Program) -> Program,
    ) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let file = folder.path().join(CONFIGURATION);
        write(&file, configuration)?;
        let program = Program::new(binary()?.display().to_string())
            .args(["run", &file.display().to_string()])
            .within(namespace);
        let program = place(program);
        let process = program.start()?;
        let mut relay = Self { namespace, program, process, folder, token: None };
        relay.become_ready()?;
        Ok(relay)
    }

    /// Starts it again, with the configuration that its file has now, and waits until it is ready.
    pub fn restart(&mut self) -> Result<()> {
        self.process = self.program.start()?;
        self.become_ready()
    }

    /// Gives this token with what is asked of the API.
    pub fn with_token(mut self, token: &str) -> Self {
        self.token = Some(token.to_owned());
        self
    }

    fn become_ready(&mut self) -> Result<()> {
        let until = Instant::now() + PATIENCE;
        loop {
            if !self.process.alive() {
                bail!("the relay ended: {}", self.process.account());
            }
            if self.get("/readyz").is_ok() {
                return Ok(());
            }
            if Instant::now() > until {
                bail!("the relay is not ready: {}", self.process.account());
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }

    /// Its configuration file.
    pub fn configuration_file(&self) -> PathBuf {
        self.folder.path().join(CONFIGURATION)
    }

    /// Its process.
    pub fn process(&mut self) -> &mut Running {
        &mut self.process
    }

    /// Asks the API; the answer's text.
    pub fn get(&self, path: &str) -> Result<String> {
        self.ask("GET", path, None)
    }

    /// Asks the API; the answer's JSON.
    pub fn json(&self, path: &str) -> Result<Value> {
        let text = self.get(path)?;
        serde_json::from_str(&text).with_context(|| format!("{path} did not answer JSON: {text}"))
    }

    /// Posts a JSON body; the answer's text.
    pub fn post(&self, path: &str, body: &Value) -> Result<String> {
        self.ask("POST", path, Some(body))
    }

    /// Puts a JSON body in place of what was there; the answer's text.
    pub fn put(&self, path: &str, body: &Value) -> Result<String> {
        self.ask("PUT", path, Some(body))
    }

    /// Changes something by a JSON body; the answer's text.
    pub fn patch(&self, path: &str, body: &Value) -> Result<String> {
        self.ask("PATCH", path, Some(body))
    }

    /// Deletes; the answer's text.
    pub fn delete(&self, path: &str) -> Result<String> {
        self.ask("DELETE", path, None)
    }

    fn ask(&self, method: &str, path: &str, body: Option<&Value>) -> Result<String> {
        let (status, text) = self.exchange(method, path, body, PATIENCE)?;
        ensure!((200..300).contains(&status), "{method} {path}: {status} {text}");
        Ok(text)
    }

    /// Asks the API, which may be out of order; the answer's status, `None` if there is no answer in this time.
    pub fn status(&self, method: &str, path: &str, within: Duration) -> Option<u16> {
        self.answer(method, path, within).ok().map(|(status, _)| status)
    }

    /// The same with the answer's text.
    ///
    /// # Errors
    /// There is no answer in this time, and why.
    pub fn answer(&self, method: &str, path: &str, within: Duration) -> Result<(u16, String)> {
        self.exchange(method, path, None, within)
    }

    /// Status and text of an answer.
    fn exchange(
        &self,
        method: &str,
        path: &str,
        body: Option<&Value>,
        within: Duration,
    ) -> Result<(u16, String)> {
        let url = format!("http://{}{path}", SocketAddr::from((Ipv4Addr::LOCALHOST, HTTP_PORT)));
        let authorization = self.token.as_ref().map(|token| format!("Bearer {token}"));
        let bytes = body.map(Value::to_string).unwrap_or_default();
        let answer = self.namespace.run(|| -> Result<(u16, String)> {
            let agent: ureq::Agent = ureq::Agent::config_builder()
                .timeout_global(Some(within))
                .http_status_as_error(false)
                .build()
                .into();
            let mut request = ureq::http::Request::builder().method(method).uri(&url);
            if let Some(authorization) = authorization {
                request = request.header("authorization", authorization);
            }
            if body.is_some() {
                request = request.header("content-type", "application/json");
            }
            let mut answer = agent.run(request.body(bytes)?)?;
            Ok((answer.status().as_u16(), answer.body_mut().read_to_string()?))
        });
        answer.with_context(|| format!("{method} {url}"))
    }

    /// The state of one stream, as the API shows it.
    pub fn stream(&self, name: &str) -> Result<Value> {
        self.json(&format!("/api/v1/streams/{name}"))
    }

    /// Waits until a stream's state satisfies `condition`; `what` says which in the error.
    pub fn wait_stream(&self, name: &str, what: &str, condition: impl Fn(&Value) -> bool) -> Result<Value> {
        let until = Instant::now() + PATIENCE;
        loop {
            let state = self.stream(name)?;
            if condition(&state) {
                return Ok(state);
            }
            if Instant::now() > until {
                bail!("{name} is not {what} after {PATIENCE:?}: {state:#}\n{}", self.process.account());
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }

    /// Waits until packets of a stream come in.
    pub fn wait_up(&self, name: &str) -> Result<Value> {
        self.wait_stream(name, "up", |state| {
            state["source"]["up"] == true && state["ring_packets"].as_u64() > Some(0)
        })
    }

    /// Waits until a stream has this many receivers.
    pub fn wait_receivers(&self, name: &str, count: usize) -> Result<Value> {
        self.wait_stream(name, &format!("having {count} receivers"), |state| {
            state["receivers"].as_array().map(Vec::len) == Some(count)
        })
    }

    /// Writes another configuration and has it loaded by SIGHUP; does not wait.
    pub fn reload(&self, configuration: &str) -> Result<()> {
        write(&self.configuration_file(), configuration)?;
        self.process.signal(Signal::SIGHUP)
    }

    /// Has what now lies where its program lay take over, and is about that process then.
    ///
    /// # Errors
    /// It does not answer, or no other process is there although it says so.
    pub fn upgrade(&mut self) -> Result<Upgrade> {
        let (status, text) = self.exchange("POST", "/api/v1/upgrade", None, PATIENCE)?;
        if status != 200 {
            return Ok(Upgrade::Refused { status, why: text });
        }
        let answer: Value = serde_json::from_str(&text)?;
        let gap_ms = answer["gap_ms"].as_f64().with_context(|| format!("no gap_ms in {text}"))?;
        let (before, processes) = (self.process.pid(), self.processes()?);
        let successor = processes.last().copied().filter(|pid| *pid != before);
        self.process.follow(successor.with_context(|| format!("no other process than {before}: {text}"))?);
        Ok(Upgrade::Done { gap_ms })
    }

    /// The processes that are this relay, the one that was started last at the end: those before may have something to
    /// bring to its end.
    pub fn processes(&self) -> Result<Vec<u32>> {
        let argument = self.configuration_file().display().to_string();
        successor::all(Path::new(self.program.name()), &argument)
    }

    /// Its resident memory in bytes.
    pub fn resident(&self) -> Result<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.pid()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
        let kilobytes: u64 = line.trim().trim_end_matches(" kB").parse()?;
        Ok(kilobytes * 1024)
    }

    /// Fails if the relay has died or panicked.
    pub fn healthy(&mut self) -> Result<()> {
        ensure!(self.process.alive(), "the relay died: {}", self.process.account());
        let log = self.process.stdout() + &self.process.stderr();
        ensure!(!log.contains("panicked at"), "the relay panicked: {}", self.process.account());
        Ok(())
    }
}

impl Drop for Relay<'_> {
    /// Tests keep what is printed to themselves unless they fail: then the log is wanted.
    fn drop(&mut self) {
        if SHOWS_LOG.load(Ordering::Relaxed) {
            eprintln!("{}", self.process.account());
        }
    }
}

/// Writes a configuration to its file. A last line without an end would be taken for half written.
fn write(file: &Path, configuration: &str) -> std::io::Result<()> {
    std::fs::write(file, format!("{}\n", configuration.trim_end()))
}

/// The `outflow` binary: what OUTFLOW_BIN names, or built now in the profile of this program.
pub fn binary() -> Result<PathBuf> {
    static BUILT: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let built = BUILT.get_or_init(|| find_or_build().map_err(|error| format!("{error:#}")));
    built.clone().map_err(anyhow::Error::msg)
}

fn find_or_build() -> Result<PathBuf> {
    if let Some(given) = std::env::var_os("OUTFLOW_BIN") {
        return Ok(given.into());
    }
    let ours = std::env::current_exe()?;
    let folder = ours
        .ancestors()
        .find(|folder| folder.ends_with("debug") || folder.ends_with("release"))
        .context("set OUTFLOW_BIN: this program does not run from a build folder")?;
    // As users build them: apart, or the compiler of plug-ins would be in both.
    let relay = ["--workspace", "--exclude", "outflow-plugin-compiler", "--bin", "outflow"];
    for program in [&relay[..], &["--package", "outflow-plugin-compiler"]] {
        let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo.args(["build", "--quiet"]).args(program).stdin(Stdio::null());
        cargo.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
        if folder.ends_with("release") {
            cargo.arg("--release");
        }
        ensure!(cargo.status().context("cannot run cargo")?.success(), "cargo could not build outflow");
    }
    Ok(folder.join("outflow"))
}
