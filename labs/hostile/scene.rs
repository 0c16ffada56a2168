//! The relay's streams, and what the one without a plug-in notices.

use std::net::UdpSocket;
use std::ops::Range;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use outflow_labs::figures::quantile;
use outflow_labs::media::{Pulse, Pulses, monotonic_nanos, rtp, wall_nanos};
use outflow_labs::net::{PLAYER, Paths, RELAY_IN};
use outflow_labs::process::{be_background, be_preferred};
use outflow_labs::receive::Numbered;
use outflow_labs::relay::{PATIENCE, Relay};
use outflow_labs::stolen::stolen_ticks;
use serde_json::json;

use super::plugins::{HARMLESS, Plugin, SLOW_CALLS, SLOW_TURNS};

pub(crate) const VICTIM: &str = "victim";
/// Of the source; receivers are a thousand above.
pub(crate) const FIRST_PORT: u16 = 5000;
const PLAYERS: u16 = 1000;
/// What the victim gets, at times by chance: often enough for a 99th percentile of a short time.
const STEADY: Pulses = Pulses { payload: 1000, packets: 1, per_second: 2000.0 };
/// What goes through a plug-in.
const BESIDE: Pulses = Pulses { payload: 1000, packets: 4, per_second: 200.0 };
/// A relay that has just begun, and a machine that has to do something again, take longer.
const SETTLE: Duration = Duration::from_secs(3);
/// Between two attempts to bring in what is refused.
const ASK_EVERY: Duration = Duration::from_millis(50);

/// A stream of the configuration, its receiver behind the plug-in.
pub(crate) fn stream(folder: &Path, name: &str, port: u16, plugin: Option<&Plugin>) -> Result<String> {
    let sdp = folder.join(format!("{name}.sdp"));
    std::fs::write(&sdp, rtp::description(port))?;
    let mut text = format!(
        "[streams.{name}]\nsource = \"rtp://0.0.0.0:{port}\"\nsdp = \"{}\"\n\
         [[sinks]]\nstream = \"{name}\"\nto = \"rtp://{PLAYER}:{}\"\n",
        sdp.display(),
        port + PLAYERS
    );
    if let Some(plugin) = plugin {
        let file = folder.join(format!("{name}.wasm"));
        std::fs::write(&file, plugin.code()?)?;
        text += &format!(
            "branch = \"out\"\n[streams.{name}.elements.plugin]\nelement = \"wasm\"\nfile = \"{}\"\n\
             [streams.{name}.branches.out]\ninput = \"plugin\"\n",
            file.display()
        );
    }
    Ok(text)
}

/// Packets on their way, and what came of those of the victim.
pub(crate) struct Scene {
    receiver: Numbered,
    /// Of receivers that are not measured.
    _others: Vec<UdpSocket>,
    victim: Pulse,
    sent: u64,
    periods: Vec<Period>,
}

/// Some time with something beside the victim.
struct Period {
    name: &'static str,
    /// By the source's clock.
    within: Range<u64>,
    /// The host took time from the machine.
    is_disturbed: bool,
}

/// What the victim noticed of a period.
pub(crate) struct Noticed {
    pub(crate) name: &'static str,
    /// The 99th percentile of its delay, in microseconds; `None` if the host took time from the machine.
    pub(crate) p99_us: Option<f64>,
}

impl Scene {
    pub(crate) fn open(paths: &Paths, ports: impl Iterator<Item = u16>, seed: u64) -> Result<Self> {
        let bind = |port: u16| paths.players.run(|| UdpSocket::bind((PLAYER, port + PLAYERS)));
        Ok(Scene {
            receiver: Numbered::start(bind(FIRST_PORT)?)?,
            _others: ports.map(bind).collect::<Result<_, _>>()?,
            victim: Pulse::new(&paths.source, (RELAY_IN, FIRST_PORT).into(), STEADY)?.by_chance(seed),
            sent: 0,
            periods: Vec::new(),
        })
    }

    /// Waits until the victim gets packets, and a little more.
    pub(crate) fn warm_up(&mut self, relay: &mut Relay<'_>) -> Result<()> {
        let until = Instant::now() + PATIENCE;
        while self.receiver.count() == 0 {
            ensure!(Instant::now() < until, "nothing comes: {}", relay.process().account());
            self.sent += self.victim.run(Duration::from_millis(100));
        }
        self.sent += self.victim.run(SETTLE);
        Ok(())
    }

    /// So long, with this beside the victim.
    pub(crate) fn period(
        &mut self,
        name: &'static str,
        time: Duration,
        beside: impl FnOnce() + Send,
    ) -> Result<()> {
        let (began, stolen) = (monotonic_nanos(), stolen_ticks()?);
        let victim = &mut self.victim;
        self.sent += std::thread::scope(|scope| {
            scope.spawn(|| {
                be_preferred();
                beside();
            });
            let thread = scope.spawn(|| {
                be_preferred();
                victim.run(time)
            });
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        let (within, is_disturbed) = (began..monotonic_nanos(), stolen_ticks()? > stolen);
        self.periods.push(Period { name, within, is_disturbed });
        Ok(())
    }

    /// What the victim noticed of each period, and how many packets it lost in all of them.
    pub(crate) fn end(self) -> Result<(Vec<Noticed>, u64)> {
        let mut last = None;
        while last != Some(self.receiver.count()) {
            last = Some(self.receiver.count());
            std::thread::sleep(Duration::from_millis(300));
        }
        // The receiver's stamps are of another clock than the source's.
        let apart = wall_nanos() as i128 - i128::from(monotonic_nanos());
        let arrived = self.receiver.stop();
        let first = arrived.first().context("nothing came")?.number;
        let delays = |within: &Range<u64>| {
            let came = arrived.iter().filter(|one| within.contains(&one.sent));
            let nanos = came.map(|one| (i128::from(one.at) - i128::from(one.sent) - apart) as f64);
            quantile(&nanos.map(|nanos| nanos / 1e3).collect::<Vec<_>>(), 0.99)
        };
        let noticed = |period: &Period| Noticed {
            name: period.name,
            p99_us: (!period.is_disturbed).then(|| delays(&period.within)),
        };
        let noticed = self.periods.iter().map(noticed).collect();
        Ok((noticed, self.sent - u64::from(first) - arrived.len() as u64))
    }
}

/// A source of packets for a plug-in.
pub(crate) fn source(paths: &Paths, port: u16) -> Result<Pulse> {
    Pulse::new(&paths.source, (RELAY_IN, port).into(), BESIDE)
}

/// So long, as much work as the plug-in has that is slow now and then, in no plug-in, where plug-ins run: what the
/// machine alone makes of that.
pub(crate) fn work_sometimes(time: Duration) {
    be_background();
    let began = Instant::now();
    let every = Duration::from_secs_f64(f64::from(SLOW_CALLS) / BESIDE.per_second);
    for number in 1.. {
        (0..SLOW_TURNS).for_each(|turn| {
            std::hint::black_box(turn);
        });
        let next = every * number;
        if next >= time {
            break;
        }
        std::thread::sleep(next.saturating_sub(began.elapsed()));
    }
}

/// Asks for a plug-in again and again that is refused.
pub(crate) fn ask_in_vain(relay: &Relay<'_>, file: &Path, time: Duration) {
    let began = Instant::now();
    while began.elapsed() < time {
        // What was asked for before would be no change.
        let config = began.elapsed().as_nanos().to_string();
        let elements = json!({ "plugin": { "element": "wasm", "file": file, "config": config } });
        let services = json!({ "elements": elements, "branches": { "out": { "input": "plugin" } } });
        let answer = relay.put(&format!("/api/v1/streams/{}/services", HARMLESS.name), &services);
        let is_refused = answer.as_ref().is_err_and(|error| format!("{error:#}").contains("of the contract"));
        assert!(is_refused, "a plug-in of another contract was not refused: {answer:?}");
        std::thread::sleep(ASK_EVERY);
    }
}
