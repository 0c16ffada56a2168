//! The viewers: of all kinds, at every stream.

use std::thread::ScopedJoinHandle;
use std::time::Duration;

use anyhow::Result;

use crate::net::{Namespace, PLAYER, RELAY_OUT};
use crate::receive::{Crowd, How, Meter, PocCrowd, Receiver, Target};
use crate::trouble::places::{FRAGILE, Places, RELAY_FRAGILE};
use crate::trouble::scene::{COPIED, POC_PORT, STREAMS, TOWER};

/// Between two looks at sockets: what comes by TCP has the time of the last of it.
const NAP: Duration = Duration::from_millis(2);
/// Ports of those that are sent to without asking.
const FIRST_PORT: u16 = 20_000;
/// Viewers that ask again at the same time: each would have a machine of its own.
const ASK_AT_ONCE: usize = 8;
/// Of this many times all kinds at all streams, one is of fragile viewers.
const FRAGILE_ONE_IN: usize = 5;

/// How a viewer gets its stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// By sockets that a crowd reads.
    By(How),
    /// By the partial-order transport.
    Poc,
}

/// One viewer.
#[derive(Debug, Clone, Copy)]
pub struct Viewer {
    /// Its stream's place in [`STREAMS`].
    pub(crate) stream: usize,
    /// It is behind the network that fails.
    pub(crate) is_fragile: bool,
    /// It gets what another program has copied.
    pub(crate) is_copied: bool,
    pub(crate) kind: Kind,
}

impl Viewer {
    /// This many; those of the transport are last, and of them the fragile ones.
    pub fn all(count: usize) -> Vec<Viewer> {
        let copied = [How::Http, How::RtspTcp].map(|how| Viewer {
            stream: TOWER,
            is_fragile: false,
            is_copied: true,
            kind: Kind::By(how),
        });
        let mut all: Vec<_> =
            copied.into_iter().chain((0..count.saturating_sub(copied.len())).map(Self::of)).collect();
        all.sort_by_key(|viewer| (viewer.kind == Kind::Poc, viewer.kind == Kind::Poc && viewer.is_fragile));
        all
    }

    fn of(number: usize) -> Viewer {
        let kinds = 5;
        let kind = match number / STREAMS.len() % kinds {
            0 => Kind::By(How::Udp(FIRST_PORT + number as u16)),
            1 => Kind::By(How::RtspUdp),
            2 => Kind::By(How::RtspTcp),
            3 => Kind::By(How::Http),
            _ => Kind::Poc,
        };
        let turn = number / STREAMS.len() / kinds;
        let is_fragile = turn % FRAGILE_ONE_IN == FRAGILE_ONE_IN - 1;
        Viewer { stream: number % STREAMS.len(), is_fragile, is_copied: false, kind }
    }

    /// What the configuration has to say of it, if it is sent to without asking.
    pub(crate) fn sink(&self) -> Option<String> {
        let Kind::By(How::Udp(port)) = self.kind else { return None };
        let address = if self.is_fragile { FRAGILE } else { PLAYER };
        let stream = STREAMS[self.stream];
        Some(format!("[[sinks]]\nstream = \"{stream}\"\nto = \"udp://{address}:{port}\"\n"))
    }

    fn target(&self) -> Target {
        let mut target = Target::new(STREAMS[self.stream]);
        if self.is_fragile {
            target.relay = RELAY_FRAGILE;
        }
        if self.is_copied {
            target.query = format!("?branch={COPIED}");
        }
        target
    }
}

/// The viewers that are being read.
pub(crate) struct Audience {
    crowd: Crowd,
    transported: Vec<PocCrowd>,
}

impl Audience {
    /// All of them join.
    pub(crate) fn open(places: &Places, viewers: &[Viewer]) -> Result<Self> {
        let mut receivers = Vec::new();
        for viewer in viewers {
            if let Kind::By(how) = viewer.kind {
                receivers.push(ask(places, viewer, how)?);
            }
        }
        let crowd = Crowd::start(receivers, NAP)?;
        let transported = |namespace: &Namespace, relay, is_fragile| {
            let wanted =
                viewers.iter().filter(|viewer| viewer.kind == Kind::Poc && viewer.is_fragile == is_fragile);
            let streams = wanted.map(|viewer| STREAMS[viewer.stream].to_owned()).collect();
            PocCrowd::start(namespace, (relay, POC_PORT).into(), streams)
        };
        let transported = vec![
            transported(&places.paths.players, RELAY_OUT, false)?,
            transported(&places.fragile, RELAY_FRAGILE, true)?,
        ];
        Ok(Self { crowd, transported })
    }

    /// Those that had asked for their streams ask again, as the relay that they had asked is gone: in the viewers' order.
    pub(crate) fn ask_again(&mut self, places: &Places, viewers: &[Viewer]) -> Result<()> {
        let had_asked = |(place, viewer): (usize, &Viewer)| match viewer.kind {
            Kind::By(How::Udp(_)) | Kind::Poc => None,
            Kind::By(how) => Some((place, *viewer, how)),
        };
        let asking: Vec<_> = viewers.iter().enumerate().filter_map(had_asked).collect();
        let share = asking.len().div_ceil(ASK_AT_ONCE).max(1);
        let (crowd, transported) = (&self.crowd, &mut self.transported);
        std::thread::scope(|scope| {
            let one = |part: &[(usize, Viewer, How)]| -> Result<()> {
                part.iter()
                    .try_for_each(|(place, viewer, how)| crowd.replace(*place, ask(places, viewer, *how)?))
            };
            let threads: Vec<_> = asking.chunks(share).map(|part| scope.spawn(move || one(part))).collect();
            let namespaces = [&places.paths.players, &places.fragile];
            transported.iter_mut().zip(namespaces).try_for_each(|(crowd, at)| crowd.ask_again(at))?;
            let join = |thread: ScopedJoinHandle<'_, Result<()>>| {
                thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            };
            threads.into_iter().try_for_each(join)
        })
    }

    /// What each has got since the last split, in the viewers' order.
    pub(crate) fn split(&self) -> Result<Vec<Meter>> {
        let mut meters = self.crowd.split()?.meters;
        meters.extend(self.transported.iter().flat_map(|crowd| crowd.split().meters));
        Ok(meters)
    }
}

/// A viewer asks for its stream.
fn ask(places: &Places, viewer: &Viewer, how: How) -> Result<Receiver> {
    let namespace = if viewer.is_fragile { &places.fragile } else { &places.paths.players };
    namespace.run(|| Receiver::open(how, &viewer.target()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn viewers_are_of_all_kinds_at_every_stream() {
        for count in [100, 500] {
            let all = Viewer::all(count);
            assert_eq!(all.len(), count);
            for stream in 0..STREAMS.len() {
                for is_fragile in [false, true] {
                    let here = || {
                        let of_stream = all.iter().filter(move |viewer| viewer.stream == stream);
                        of_stream.filter(move |viewer| viewer.is_fragile == is_fragile)
                    };
                    let is = |kind: &dyn Fn(&Viewer) -> bool| here().any(kind);
                    for how in [How::RtspUdp, How::RtspTcp, How::Http] {
                        assert!(is(&|viewer| viewer.kind == Kind::By(how)), "{how:?}");
                    }
                    assert!(is(&|viewer| viewer.kind == Kind::Poc) && is(&|viewer| viewer.sink().is_some()));
                }
            }
            let transported = all.iter().skip_while(|viewer| viewer.kind != Kind::Poc);
            let fragile: Vec<_> = transported.clone().map(|viewer| viewer.is_fragile).collect();
            assert!(transported.clone().all(|viewer| viewer.kind == Kind::Poc) && fragile.is_sorted());
            assert_eq!(all.iter().filter(|viewer| viewer.is_copied).count(), 2);
        }
    }
}
