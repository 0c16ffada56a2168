//! The impaired path between two namespaces. All transports go through it at the same time, each through a world of
//! its own, in the same weather: bad times come at the same moments, and what else chance brings begins with the same
//! seed. They are told apart by their ports.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use bytes::Bytes;
use outflow_emulate::drive::Carry;
use outflow_labs::net::Namespace;
use outflow_labs::path::{BACK, Place, THERE, world};
use outflow_media::Time;
use outflow_sim::network::{Arrived, Impairments, LinkModel, Outages, World};

use crate::transport::Transport;

/// Where senders are.
pub(crate) const SOURCE: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);
/// Where receivers are.
pub(crate) const SINK: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 2);
const DEVICE: &str = "path0";

/// How long a bad time is on average.
const BURST: Duration = Duration::from_millis(30);
/// What is lost in one.
const IN_BURST: f64 = 0.5;

/// Lost packets of a transport that are kept until they are counted. Further ones are not known as units.
const LOST_MAX: usize = 100_000;

/// From the source to the sink, or back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Way {
    There,
    Back,
}

/// What has gone into the path of a flow, one way.
#[derive(Debug, Clone, Default)]
pub(crate) struct Count {
    pub(crate) packets: u64,
    /// With the header of IP.
    pub(crate) bytes: u64,
    pub(crate) lost: u64,
    /// Those that were lost on the way there since they were asked for before, and when.
    pub(crate) lost_packets: Vec<(Instant, Bytes)>,
}

/// Counts by flow and way, of those that have packets.
pub(crate) type Counts = BTreeMap<(Transport, Way), Count>;

/// The path, gone when this is dropped.
pub(crate) struct Path {
    path: outflow_labs::path::Path<Worlds>,
    pub(crate) source: Namespace,
    pub(crate) sink: Namespace,
    delay: Duration,
}

impl Path {
    /// A path that loses nothing yet and takes so long either way.
    pub(crate) fn new(delay: Duration, seed: u64) -> Result<Self> {
        let (source, sink) = (Namespace::new("source")?, Namespace::new("sink")?);
        let place = |namespace, address| Place { namespace, device: DEVICE, address };
        let path = outflow_labs::path::Path::new([place(&source, SOURCE), place(&sink, SINK)], move || {
            Worlds::new(delay, seed)
        })?;
        Ok(Self { path, source, sink, delay })
    }

    /// Begins to lose a share of all packets, 0 to 0.5, at a moment.
    pub(crate) fn storm(&self, share: f64, begins: Instant) -> Result<()> {
        let model = LinkModel { impairments: weather(share), ..link(self.delay)? };
        let begins = self.path.time_of(begins);
        self.path.with(move |worlds| worlds.change(begins, &model))?
    }

    /// What has been counted so far, and packets that were lost since the last time.
    pub(crate) fn counts(&self) -> Result<Counts> {
        let mut counts = Counts::new();
        for (transport, (links, lost)) in self.path.with(Worlds::counts)? {
            for (way, name) in [(Way::There, THERE), (Way::Back, BACK)] {
                let (_, link) = links.iter().find(|(link, _)| link == name).context("both are there")?;
                let of_way = lost.iter().filter(|lost| way == Way::There && links[lost.link].0 == name);
                // It was lost when it came in, and not at the end of the link.
                let moment = |at: Time| self.path.moment_of(at) - self.delay;
                let lost_packets = of_way.map(|lost| (moment(lost.at), lost.packet.clone())).collect();
                let (packets, bytes, lost) = (link.packets, link.bytes, link.lost);
                if packets > 0 {
                    counts.insert((transport, way), Count { packets, bytes, lost, lost_packets });
                }
            }
        }
        Ok(counts)
    }
}

/// A link that loses nothing, in the words of `outflow emulate`.
fn words(delay: Duration) -> String {
    format!("{} us", delay.as_micros())
}

fn link(delay: Duration) -> Result<LinkModel> {
    Ok(outflow_emulate::link(&words(delay))?)
}

/// What is done to packets so that a share of them is lost: half of it falls into bad times in which every other packet
/// is lost, the rest are single packets.
fn weather(share: f64) -> Impairments {
    if share == 0.0 {
        return Impairments::default();
    }
    let bad = share / 2.0 / IN_BURST;
    let loss = share / 2.0 / (1.0 - bad);
    // Single packets are lost in bad times, too.
    let in_burst = 1.0 - (1.0 - IN_BURST) / (1.0 - loss);
    let outages = Outages { share: bad, last: BURST, loss: in_burst };
    Impairments { loss, outages: Some(outages), ..Impairments::default() }
}

/// A world for each transport.
struct Worlds(BTreeMap<Transport, World>);

type Counted = (Vec<(String, outflow_sim::network::LinkReport)>, Vec<outflow_sim::network::Lost>);

impl Worlds {
    fn new(delay: Duration, seed: u64) -> Result<Self> {
        let words = words(delay);
        let of = |transport| {
            let mut world = world(&words, &words, seed)?;
            world.keep_lost(LOST_MAX);
            Ok((transport, world))
        };
        Ok(Self(Transport::ALL.into_iter().map(of).collect::<Result<_>>()?))
    }

    fn change(&mut self, at: Time, model: &LinkModel) -> Result<()> {
        for world in self.0.values_mut() {
            for link in [THERE, BACK] {
                world.change(at, link, model)?;
            }
        }
        Ok(())
    }

    fn counts(&mut self) -> BTreeMap<Transport, Counted> {
        let of = |(transport, world): (&Transport, &mut World)| {
            (*transport, (world.report().links, world.lost().collect()))
        };
        self.0.iter_mut().map(of).collect()
    }
}

impl Carry for Worlds {
    fn handle(&mut self, now: Time, port: usize, packet: Bytes) {
        if let Some(world) = transport_of(&packet).and_then(|transport| self.0.get_mut(&transport)) {
            world.handle(now, port, packet);
        }
    }

    fn next_at(&mut self) -> Option<Time> {
        self.0.values_mut().filter_map(World::next_at).min()
    }

    fn advance(&mut self, now: Time) {
        self.0.values_mut().for_each(|world| world.advance(now));
    }

    fn arrived(&mut self, to: &mut Vec<Arrived>) {
        self.0.values_mut().for_each(|world| to.extend(world.arrived()));
    }

    /// How late it is shows in what is received.
    fn tell(&mut self, _: Option<Duration>) {}
}

/// Whose a packet is, by its ports.
fn transport_of(packet: &[u8]) -> Option<Transport> {
    let header = usize::from(packet.first()? & 0xf) * 4;
    let is_v4 = packet[0] >> 4 == 4 && matches!(packet.get(9)?, 6 | 17);
    let port = |at: usize| Some(u16::from_be_bytes(*packet.get(header + at..)?.first_chunk()?));
    let ports = [port(0)?, port(2)?];
    Transport::ALL.into_iter().find(|transport| is_v4 && ports.contains(&transport.port()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(protocol: u8, from: u16, to: u16) -> Vec<u8> {
        let mut packet = vec![0; 28];
        packet[0] = 0x45;
        packet[3] = 28;
        packet[9] = protocol;
        packet[20..22].copy_from_slice(&from.to_be_bytes());
        packet[22..24].copy_from_slice(&to.to_be_bytes());
        packet
    }

    #[test]
    fn flows_are_told_apart_by_their_ports_either_way() {
        let (tcp, srt) = (Transport::Tcp.port(), Transport::Srt.port());
        assert_eq!(transport_of(&packet(6, 40_000, tcp)), Some(Transport::Tcp));
        assert_eq!(transport_of(&packet(17, srt, 40_000)), Some(Transport::Srt));
        assert_eq!(transport_of(&packet(17, 40_000, 40_001)), None);
        assert_eq!(transport_of(&packet(1, 0, tcp)), None);
        assert_eq!(transport_of(&[0x45]), None);
    }

    #[test]
    fn the_wanted_share_is_lost_from_its_moment_on_and_alike_for_all() {
        let delay = Duration::from_millis(50);
        for share in [0.05, 0.1, 0.3, 0.5] {
            let mut worlds = Worlds::new(delay, 1).expect("valid");
            let model = LinkModel { impairments: weather(share), ..link(delay).expect("valid") };
            worlds.change(Time::from_millis(10_000), &model).expect("it may");
            let mut arrived = Vec::new();
            for number in 0..201_000 {
                for transport in [Transport::Udp, Transport::Srt] {
                    let sent = Bytes::from(packet(17, 40_000, transport.port()));
                    worlds.handle(Time::from_millis(10 * number), 0, sent);
                }
                worlds.arrived(&mut arrived);
            }
            let counts = worlds.counts();
            let lost = |transport| &counts[&transport].1;
            assert!(lost(Transport::Udp)[0].at >= Time::from_millis(10_000) + delay);
            let times = |transport| lost(transport).iter().map(|lost| lost.at).collect::<Vec<_>>();
            assert_eq!(times(Transport::Udp), times(Transport::Srt));
            let found = counts[&Transport::Udp].0.iter().map(|(_, link)| link.lost).sum::<u64>() as f64 / 2e5;
            assert!((found / share - 1.0).abs() < 0.1, "{found} instead of {share}");
        }
        assert_eq!(weather(0.0), Impairments::default());
    }
}
