//! The ways out that another process goes on with.

use std::io;
use std::os::fd::OwnedFd;

use super::Paths;
use crate::message::{
    Framing, Moved, ReceiverId, SavedOut, SavedPorts, TrackChannel, WriteSide, saved_addresses,
};
use crate::worker::sink::Out;
use crate::worker::watch::Watch;

impl Paths {
    /// The worker's UDP ports, as they are saved.
    pub(in crate::worker) fn save_ports(&self, watch: &Watch) -> io::Result<Moved<Vec<SavedPorts>>> {
        self.ports.save(watch)
    }

    /// Serves from these UDP ports from now on. Answers the numbers of the worker's own pair.
    pub(in crate::worker) fn take_ports(
        &mut self,
        watch: &mut Watch,
        saved: Moved<Vec<SavedPorts>>,
    ) -> io::Result<Option<(u16, u16)>> {
        let ports = self.ports.take(watch, saved);
        self.fanout.receivers_changed();
        ports
    }

    /// How a receiver is reached, as it is saved.
    pub(in crate::worker) fn save_out(
        &self,
        out: &Out,
        descriptors: &mut Vec<OwnedFd>,
    ) -> io::Result<SavedOut> {
        Ok(match out {
            Out::Udp { route, rtcp, .. } => SavedOut::Udp {
                from: self.ports.save_from(route, descriptors)?,
                media: saved_addresses(&route.media),
                rtcp: saved_addresses(rtcp),
            },
            Out::Stream { connection, framing, unsent } => {
                let (mut descriptor, mut unsent) = (None, &unsent[..]);
                if let Some((connection, _)) = connection {
                    (descriptor, unsent) = (Some(descriptors.len() as u32), connection.unsent());
                    descriptors.push(connection.copied()?);
                }
                let channel = |channel: &TrackChannel| (channel.track, channel.rtp, channel.rtcp);
                let channels = match framing {
                    Framing::Raw => None,
                    Framing::Interleaved(channels) => Some(channels.iter().map(channel).collect()),
                };
                SavedOut::Stream { descriptor, unsent: unsent.to_vec(), channels }
            }
            Out::Peer { place, overhead } => {
                let value = place.and_then(|place| self.peers.save(place));
                SavedOut::Peer { overhead: *overhead as u64, value }
            }
        })
    }

    /// The way to a receiver as it was before, and its connection, if that is the worker's alone.
    pub(in crate::worker) fn take_out(
        &mut self,
        watch: &mut Watch,
        receiver: ReceiverId,
        saved: SavedOut,
        descriptors: &mut [Option<OwnedFd>],
    ) -> io::Result<(Out, Option<WriteSide>)> {
        Ok(match saved {
            SavedOut::Udp { from, media, rtcp } => {
                let out = self.ports.take_out(watch, receiver, from, [&media, &rtcp], descriptors)?;
                (out, None)
            }
            SavedOut::Stream { descriptor, unsent, channels } => {
                let channel = |(track, rtp, rtcp)| TrackChannel { track, rtp, rtcp };
                let framing = channels.map_or(Framing::Raw, |channels| {
                    Framing::Interleaved(channels.into_iter().map(channel).collect())
                });
                let place = descriptor.and_then(|place| descriptors.get_mut(place as usize));
                let connection = place.and_then(Option::take).map(WriteSide::Own);
                (Out::Stream { connection: None, framing, unsent }, connection)
            }
            SavedOut::Peer { overhead, .. } => (Out::Peer { place: None, overhead: overhead as usize }, None),
        })
    }
}
