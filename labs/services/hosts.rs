//! The programs that work on images: a plain C program for each work, one relay for all; the lanes through
//! them, and a program that wants all of their core.

use std::fmt::Write as _;

use anyhow::Result;
use outflow_labs::baseline;
use outflow_labs::net::Paths;
use outflow_labs::process::{Program, Running};
use outflow_labs::relay::{Relay, listen};

use super::lane::Lane;
use super::picture::{PICTURES, Picture};

/// The core of the program that works.
pub(crate) const CPU: usize = 0;
/// Two ports for each lane.
const PORTS: u16 = 2;
const FIRST_PORT: u16 = 20_000;

/// What is done to images.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Work {
    Gray,
    Forward,
}

/// Which program does it, and how images come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Way {
    /// The C program, whole images; gray keeps their size.
    Host,
    /// The C program, whole images; gray has one value a pixel.
    HostSmall,
    /// Outflow, whole images; gray has one value a pixel.
    Images,
    /// Outflow, raw video in RTP; gray keeps its size.
    Packets,
}

impl Work {
    pub(crate) const ALL: [Work; 2] = [Work::Gray, Work::Forward];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Work::Gray => "gray",
            Work::Forward => "forward",
        }
    }

    pub(crate) fn ways(self) -> &'static [Way] {
        match self {
            Work::Gray => &[Way::Host, Way::HostSmall, Way::Images, Way::Packets],
            Work::Forward => &[Way::Host, Way::Images, Way::Packets],
        }
    }
}

impl Way {
    pub(crate) fn is_outflow(self) -> bool {
        matches!(self, Way::Images | Way::Packets)
    }
}

/// A lane, and what goes along it.
pub(crate) struct Place {
    pub(crate) picture: Picture,
    pub(crate) work: Work,
    pub(crate) way: Way,
    pub(crate) lane: Lane,
    /// Of the process that works.
    pub(crate) pid: u32,
}

/// All of them, at work.
pub(crate) struct Hosts<'p> {
    pub(crate) places: Vec<Place>,
    relay: Relay<'p>,
    _programs: Vec<Running>,
}

/// A program that never rests, on the same core.
pub(crate) fn busy_program(paths: &Paths) -> Result<Running> {
    let forever = ["-c", "while :; do :; done"];
    Program::new("sh").args(forever).within(&paths.relay).on_cpu(CPU).start()
}

impl<'p> Hosts<'p> {
    /// Starts all; the relay's settings besides its streams are given.
    pub(crate) fn start(paths: &'p Paths, settings: &str) -> Result<Self> {
        let place = |program: Program| program.within(&paths.relay).on_cpu(CPU);
        let folder = tempfile::tempdir()?;
        let mut text = listen() + "[log]\nlevel = \"warn\"\n[limits]\nworkers = 1\n" + settings;
        let (mut programs, mut wanted) = (Vec::new(), Vec::new());
        let mut port = FIRST_PORT;
        for picture in PICTURES {
            for work in Work::ALL {
                for &way in work.ways() {
                    let pid = if way.is_outflow() {
                        let sdp = folder.path().join(format!("{port}.sdp"));
                        std::fs::write(&sdp, picture.description(port))?;
                        text += &stream(port, work, way, &sdp.display().to_string())?;
                        None
                    } else {
                        let name = if way == Way::HostSmall { "pgm" } else { work.name() };
                        programs.push(baseline::images(port, Lane::far_end(port), name, place)?);
                        programs.last().map(Running::pid)
                    };
                    wanted.push((picture, work, way, port, pid));
                    port += PORTS;
                }
            }
        }
        let mut relay = Relay::start_on(&paths.relay, &text, Some(CPU))?;
        let relays = relay.process().pid();
        let mut hosts = Hosts { places: Vec::new(), relay, _programs: programs };
        for (picture, work, way, port, pid) in wanted {
            let image = if way == Way::Packets { picture.packets() } else { picture.whole() };
            let mut lane = Lane::open(paths, port, image)?;
            lane.warm_up(|| format!("{work:?} {way:?} of {} bytes, {text}", picture.bytes))?;
            hosts.places.push(Place { picture, work, way, lane, pid: pid.unwrap_or(relays) });
        }
        Ok(hosts)
    }

    /// Fails if the relay has died.
    pub(crate) fn healthy(&mut self) -> Result<()> {
        self.relay.healthy()
    }
}

/// A stream of Outflow's with its sink.
fn stream(port: u16, work: Work, way: Way, sdp: &str) -> Result<String> {
    let mut text = format!("[streams.s{port}]\n");
    let to = Lane::far_end(port);
    let scheme = if way == Way::Packets {
        writeln!(text, "source = \"rtp://0.0.0.0:{port}\"\nsdp = \"{sdp}\"")?;
        "rtp"
    } else {
        writeln!(text, "source = \"udp://0.0.0.0:{port}?format=ppm\"")?;
        "udp"
    };
    let mut branch = "";
    if work == Work::Gray {
        branch = "branch = \"out\"\n";
        let memory = if way == Way::Packets { ", memory = \"fragments\"" } else { "" };
        writeln!(text, "[streams.s{port}.branches.out]\nservices = [{{ element = \"gray\"{memory} }}]")?;
    }
    write!(text, "[[sinks]]\nstream = \"s{port}\"\nto = \"{scheme}://{to}\"\n{branch}")?;
    Ok(text)
}
