//! The relay with two workers, its three streams and their sources, and the viewers.

use std::net::SocketAddrV4;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use tempfile::TempDir;

use crate::media::{Sender, Shape};
use crate::nats::Nats;
use crate::net::{RELAY_IN, RELAY_OUT, SOURCE};
use crate::process::Program;
use crate::programs::missing;
use crate::relay::{HTTP_PORT, PATIENCE, Relay, listen};
use crate::supervisor::Supervisor;
use crate::trouble::audience::{Audience, Viewer};
use crate::trouble::clock::Clock;
use crate::trouble::logs::{Log, LogTo};
use crate::trouble::places::Places;

/// The streams: two come by UDP, the one in the middle is published.
pub const STREAMS: [&str; 3] = ["field", "studio", "tower"];
/// The one that is published.
pub(crate) const STUDIO: usize = 1;
/// The one that another program copies ...
pub(crate) const TOWER: usize = 2;
/// ... into this branch.
pub(crate) const COPIED: &str = "copied";
/// The other program.
pub(crate) const COPIER: &str = "cat";
pub(crate) const POC_PORT: u16 = 7000;
pub(crate) const HTTPS_PORT: u16 = 8443;
const FIRST_SOURCE_PORT: u16 = 5000;
/// Some 48 datagrams a second to each viewer.
pub(crate) const SHAPE: Shape = Shape::of_rate(512_000);
/// Of the right to control the relay.
pub(crate) const CONTROL: &str = "control-of-chaos";
/// User and password of the right to publish.
const PUBLISHER: &str = "YW55OnB1Ymxpc2g=";
const PUBLISH: &str = "publish";

/// How long a relay may take to end when something has failed in it (docs/operations.md: 3 seconds, or 6).
const ENDS_WITHIN: Duration = Duration::from_secs(10);
/// How long another process may take to go on with a relay of which something has ended.
const RECOVERS_WITHIN: Duration = Duration::from_secs(3);
/// How long systemd waits until it starts a program again (RestartSec=).
const RESTARTS_AFTER: Duration = Duration::from_millis(100);
/// Packets that are kept of a stream, for longer than any fault takes. All together are far less than half of the
/// relay's memory, which a reload may give it as its limit.
const RING: &str = "4 MB";

/// All that is there.
pub struct Scene<'p> {
    pub(crate) places: &'p Places,
    pub(crate) viewers: Vec<Viewer>,
    pub(crate) audience: Audience,
    /// None while a stream has no source.
    pub(crate) senders: [Option<Sender>; STREAMS.len()],
    /// The relay.
    pub relay: Relay<'p>,
    pub(crate) log: Log,
    pub(crate) clock: Clock,
    supervisor: Supervisor,
    /// When another process has gone on with a relay of which something had ended.
    recovered: Option<Instant>,
    pub(crate) nats: Option<Nats<'p>>,
    configuration: String,
    folder: TempDir,
}

impl<'p> Scene<'p> {
    /// Starts everything, and waits until each viewer gets its stream.
    pub(crate) fn open(places: &'p Places, viewers: &[Viewer], to: LogTo) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let nats_at = SocketAddrV4::new([127, 0, 0, 1].into(), 4222);
        let nats = missing("nats-server").is_none().then(|| Nats::start(&places.paths.relay, nats_at));
        let nats = nats.transpose()?;
        make_certificate(folder.path())?;
        let mut configuration = configuration(folder.path(), viewers);
        if nats.is_some() {
            configuration += &format!(
                "[tree]\nname = \"chaos\"\naddress = \"{RELAY_OUT}:{POC_PORT}\"\ndirectory = \"nats://{nats_at}\"\n"
            );
        }
        let (log, clock, supervisor) = (Log::new(to)?, Clock::new()?, Supervisor::new(folder.path())?);
        let relay = Relay::start_as(&places.paths.relay, &configuration, |program| {
            // What a panic says of where it happened takes seconds to find out.
            let program = supervisor.of(clock.of(program)).env("RUST_BACKTRACE", "0");
            program.on_any_cpu().preferred().stderr_to(log.file())
        })?;
        let relay = relay.with_token(CONTROL);
        let by_udp = |stream: usize| {
            let to = (RELAY_IN, source_port(stream)).into();
            Sender::start_from(&places.paths.source, (SOURCE, 0).into(), to, SHAPE)
        };
        let senders = [Some(by_udp(0)?), Some(put(places, 0)?), Some(by_udp(TOWER)?)];
        for stream in STREAMS {
            relay.wait_up(stream)?;
        }
        let audience = Audience::open(places, viewers)?;
        let viewers = viewers.to_vec();
        let scene = Self {
            places,
            viewers,
            audience,
            senders,
            relay,
            log,
            clock,
            supervisor,
            recovered: None,
            nats,
            configuration,
            folder,
        };
        scene.all_watch()?;
        Ok(scene)
    }

    fn all_watch(&self) -> Result<()> {
        let until = Instant::now() + PATIENCE;
        loop {
            let meters = self.audience.split()?;
            let waiting = meters.iter().filter(|meter| meter.newest().is_none()).count();
            if waiting == 0 {
                return Ok(());
            }
            let first = meters.iter().zip(&self.viewers).find(|(meter, _)| meter.newest().is_none());
            ensure!(Instant::now() < until, "{waiting} viewers get nothing, such as {first:?}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// What the relay was started with.
    pub fn configuration(&self) -> &str {
        &self.configuration
    }

    /// The relay has another certificate from now on, once it reads it.
    pub(crate) fn exchange_certificate(&self) -> Result<()> {
        make_certificate(self.folder.path())
    }

    pub(crate) fn certificate(&self) -> PathBuf {
        self.folder.path().join("cert.pem")
    }

    /// How many datagrams each source has sent.
    pub(crate) fn sent(&self) -> [u32; STREAMS.len()] {
        let sent = |sender: &Option<Sender>| sender.as_ref().map_or(0, Sender::sent);
        std::array::from_fn(|stream| sent(&self.senders[stream]))
    }

    /// The relay's process ends; how it has, if it is a child of this one.
    pub(crate) fn ended(&mut self) -> Result<Option<ExitStatus>> {
        self.relay.process().ended(ENDS_WITHIN)
    }

    /// Waits until another process goes on with the relay, or it has ended. Whether another one does.
    pub(crate) fn goes_on_elsewhere(&mut self) -> bool {
        let process = self.relay.process();
        let Some(successor) = self.supervisor.wait(RECOVERS_WITHIN, || !process.alive()) else {
            return false;
        };
        process.follow(successor);
        self.recovered = Some(Instant::now());
        true
    }

    /// Whether that was so a while ago, and it has not been started again since.
    pub(crate) fn has_recovered_within(&self, time: Duration) -> bool {
        self.recovered.is_some_and(|recovered| recovered.elapsed() < time)
    }

    /// What a supervisor does (systemd's `Restart=on-failure`) when the relay has ended: it is started again, and the
    /// publisher and all viewers come back, as their programs would.
    pub(crate) fn revive(&mut self) -> Result<()> {
        std::thread::sleep(RESTARTS_AFTER);
        self.relay.restart()?;
        self.recovered = None;
        let sent = self.sent()[STUDIO];
        self.senders[STUDIO] = Some(self.publisher(sent)?);
        for stream in STREAMS {
            self.relay.wait_up(stream)?;
        }
        self.audience.ask_again(self.places, &self.viewers)
    }

    /// Another publisher tries to send the published stream from where the others have come to.
    pub(crate) fn publisher(&self, sent: u32) -> Result<Sender> {
        put(self.places, SHAPE.group_after(sent))
    }
}

fn put(places: &Places, group: u32) -> Result<Sender> {
    let to = (RELAY_IN, HTTP_PORT).into();
    let path = format!("/{}.ts", STREAMS[STUDIO]);
    Sender::put_from_group(&places.paths.source, to, &path, PUBLISHER, SHAPE, group)
}

fn source_port(stream: usize) -> u16 {
    FIRST_SOURCE_PORT + 2 * stream as u16
}

fn configuration(folder: &Path, viewers: &[Viewer]) -> String {
    let (folder, [field, studio, tower]) = (folder.display(), STREAMS);
    let source = |stream| format!("source = \"udp://0.0.0.0:{}?source={SOURCE}\"", source_port(stream));
    let (field_source, tower_source) = (source(0), source(TOWER));
    let sinks: String = viewers.iter().filter_map(Viewer::sink).collect();
    listen()
        + &format!(
            "https = \"0.0.0.0:{HTTPS_PORT}\"\npoc = \"0.0.0.0:{POC_PORT}\"\n\
             [poc]\nencryption = \"off\"\n\
             [tls]\ncertificate = \"{folder}/cert.pem\"\nkey = \"{folder}/key.pem\"\n\
             [access]\npublish = [\"{PUBLISH}\"]\ncontrol = [\"{CONTROL}\"]\n\
             [limits]\nworkers = 2\n\
             [streams.{field}]\nring = \"{RING}\"\n{field_source}\n\
             [streams.{studio}]\nring = \"{RING}\"\nsource = \"push\"\n\
             [streams.{tower}]\nring = \"{RING}\"\n{tower_source}\n\
             [streams.{tower}.elements.copy]\nelement = \"external\"\ncommand = [\"{COPIER}\"]\n\
             [streams.{tower}.branches.{COPIED}]\ninput = \"copy\"\n{sinks}"
        )
}

fn make_certificate(folder: &Path) -> Result<()> {
    let folder = folder.display();
    let line = format!(
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=relay \
         -keyout {folder}/key.pem -out {folder}/cert.pem"
    );
    Program::words(&line).finish(PATIENCE).context("no certificate can be made")?;
    Ok(())
}
