//! The viewers: of each kind as many, at every stream.

use std::time::Duration;

use anyhow::Result;
use clap::ValueEnum;
use outflow_labs::net::{PLAYER, Paths, RELAY_OUT};
use outflow_labs::receive::{Crowd, How, Meter, PocCrowd, Receiver, Target};

use crate::scene::{POC_PORT, STREAMS};

/// Between two looks at sockets: what comes by TCP has the time of the last of it.
const NAP: Duration = Duration::from_millis(2);
/// Ports of those that are sent to without asking; two for each, as RTP wants it.
const FIRST_PORT: u16 = 20_000;
/// There are ports for no more.
pub(crate) const VIEWERS_MAX: usize = 5_000;

/// How a viewer gets its stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
#[value(rename_all = "snake_case")]
pub(crate) enum Kind {
    /// RTSP, RTP over UDP.
    RtspUdp,
    /// RTSP, RTP on the same connection.
    RtspTcp,
    /// MPEG-TS over HTTP.
    Http,
    /// Sent to without asking: transport packets, or RTP, by turns.
    UdpPush,
    /// The partial-order transport.
    Poc,
}

impl Kind {
    /// What it is called by `--kinds` and in figures.
    pub(crate) fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }
}

/// One viewer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Viewer {
    pub(crate) kind: Kind,
    /// Its stream's place in [`STREAMS`].
    pub(crate) stream: usize,
    /// Where it gets packets that it has not asked for.
    push: How,
}

impl Viewer {
    /// This many; those of the partial-order transport are last.
    pub(crate) fn all(count: usize, kinds: &[Kind]) -> Vec<Viewer> {
        let mut all: Vec<_> = (0..count).map(|number| Self::of(number, kinds)).collect();
        all.sort_by_key(|viewer| viewer.kind == Kind::Poc);
        all
    }

    fn of(number: usize, kinds: &[Kind]) -> Viewer {
        let turn = number / STREAMS.len();
        let port = FIRST_PORT + 2 * number as u16;
        let push = if (turn / kinds.len()).is_multiple_of(2) { How::Udp(port) } else { How::Rtp(port) };
        Viewer { kind: kinds[turn % kinds.len()], stream: number % STREAMS.len(), push }
    }

    /// How it is read, unless it is one of the partial-order transport.
    fn how(&self) -> Option<How> {
        match self.kind {
            Kind::RtspUdp => Some(How::RtspUdp),
            Kind::RtspTcp => Some(How::RtspTcp),
            Kind::Http => Some(How::Http),
            Kind::UdpPush => Some(self.push),
            Kind::Poc => None,
        }
    }

    /// What the configuration has to say of it, if it is sent to without asking.
    pub(crate) fn sink(&self) -> Option<String> {
        let (scheme, port) = match self.how()? {
            How::Udp(port) => ("udp", port),
            How::Rtp(port) => ("rtp", port),
            _ => return None,
        };
        let stream = STREAMS[self.stream];
        Some(format!("[[sinks]]\nstream = \"{stream}\"\nto = \"{scheme}://{PLAYER}:{port}\"\n"))
    }
}

/// The viewers that are being read.
pub(crate) struct Audience {
    crowd: Crowd,
    transported: PocCrowd,
}

impl Audience {
    /// All of them join.
    pub(crate) fn open(paths: &Paths, viewers: &[Viewer]) -> Result<Self> {
        let ask = |viewer: &Viewer| {
            let how = viewer.how()?;
            Some(paths.players.run(|| Receiver::open(how, &Target::new(STREAMS[viewer.stream]))))
        };
        let receivers = viewers.iter().filter_map(ask).collect::<Result<Vec<_>>>()?;
        let transported = viewers.iter().filter(|viewer| viewer.kind == Kind::Poc);
        let streams = transported.map(|viewer| STREAMS[viewer.stream].to_owned()).collect();
        Ok(Self {
            crowd: Crowd::start(receivers, NAP)?,
            transported: PocCrowd::start(&paths.players, (RELAY_OUT, POC_PORT).into(), streams)?,
        })
    }

    /// What each has got since the last split, in the viewers' order.
    pub(crate) fn split(&self) -> Result<Vec<Meter>> {
        let mut meters = self.crowd.split()?.meters;
        meters.extend(self.transported.split().meters);
        Ok(meters)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn viewers_are_of_each_kind_as_many_at_every_stream() {
        for kinds in [Kind::value_variants(), &[Kind::Poc, Kind::Http]] {
            let all = Viewer::all(VIEWERS_MAX, kinds);
            for kind in kinds {
                for stream in 0..STREAMS.len() {
                    let here = all.iter().filter(|one| one.kind == *kind && one.stream == stream).count();
                    let share = VIEWERS_MAX / kinds.len() / STREAMS.len();
                    assert!(here.abs_diff(share) <= 1, "{here} of {kind:?} at {stream}");
                }
            }
            assert!(all.iter().map(|viewer| viewer.kind == Kind::Poc).is_sorted());
        }
    }

    #[test]
    fn those_that_do_not_ask_have_ports_of_their_own_and_get_both_forms() {
        let all = Viewer::all(VIEWERS_MAX, &[Kind::UdpPush, Kind::RtspTcp]);
        let sinks: std::collections::BTreeSet<_> = all.iter().filter_map(Viewer::sink).collect();
        assert_eq!(sinks.len(), all.iter().filter(|viewer| viewer.kind == Kind::UdpPush).count());
        let of = |scheme: &str| sinks.iter().filter(|sink| sink.contains(scheme)).count();
        assert!(of("\"udp://").abs_diff(of("\"rtp://")) <= STREAMS.len());
    }
}
