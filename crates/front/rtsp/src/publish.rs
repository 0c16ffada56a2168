//! What a publisher has of the relay: a stream that takes its packets.

use std::io;
use std::net::{IpAddr, SocketAddr};

use bytes::Bytes;
use outflow_control::{Announced, Control, Heard, PublishOptions, Publisher, Push, UdpPorts, Upgrade};
use outflow_door::Grant;
use outflow_engine::message::{CloseReason, ControlError};
use outflow_media::{Format, Track};
use outflow_rtp::save::SavedTrack;
use outflow_rtsp::server::{Answer, Notice};
use outflow_rtsp::{Lower, Pair};

use super::refusal::Refusal;
use super::save::{SavedPublishing, unfit};
use super::target::Wanted;

/// What a session that publishes, or will, has of the relay.
pub(super) struct Publication {
    grant: Grant,
    tracks: Vec<Track>,
    udp: Option<UdpPorts>,
    stage: Stage,
    /// Packets of the stream as they were counted when last looked at.
    packets: u64,
}

/// How far it is.
enum Stage {
    Announced(Announced),
    Publishing(Publisher, Heard),
}

impl Stage {
    fn publishing(mut publisher: Publisher) -> Self {
        let feedback = publisher.take_feedback();
        Stage::Publishing(publisher, feedback)
    }
}

/// What the relay has to say of a session.
pub(super) enum News {
    /// It is over.
    Ended {
        /// Why, for people.
        why: String,
        /// Why, for the peer.
        notice: Notice,
    },
    /// A key frame of this track is wanted.
    KeyFrame(u8),
}

impl From<CloseReason> for News {
    fn from(why: CloseReason) -> Self {
        let notice = match why {
            CloseReason::ShuttingDown => Notice::ShuttingDown,
            _ => Notice::SessionTerminated,
        };
        News::Ended { why: why.to_string(), notice }
    }
}

impl Publication {
    /// One of a stream that takes a publisher now.
    pub(super) fn announce(control: &Control, wanted: Wanted, tracks: Vec<Track>) -> Result<Self, Refusal> {
        let stage = Stage::Announced(control.takes_publisher(wanted.stream())?);
        Ok(Publication { grant: wanted.grant, tracks, udp: None, stage, packets: 0 })
    }

    /// What another process needs to go on with it; nothing if it has ports that no worker reads yet.
    pub(super) fn save(&self) -> Option<SavedPublishing> {
        if self.udp.is_some() {
            return None;
        }
        Some(SavedPublishing {
            grant: self.grant.save(),
            tracks: self.tracks.iter().map(SavedTrack::from).collect(),
            source: match &self.stage {
                Stage::Announced(_) => None,
                Stage::Publishing(publisher, _) => Some(publisher.id()),
            },
            packets: self.packets,
        })
    }

    /// Goes on from what another process has saved.
    ///
    /// # Errors
    /// What is not there.
    pub(super) fn restore(control: &Control, saved: SavedPublishing) -> io::Result<Self> {
        let SavedPublishing { grant, tracks, source, packets } = saved;
        let grant = control.door().restore(grant);
        let grant = grant.ok_or_else(|| unfit("what it publishes is not known here"))?;
        let stage = match source {
            None => {
                let announced = control.takes_publisher(grant.stream());
                Stage::Announced(announced.map_err(|error| unfit(&error.to_string()))?)
            }
            Some(source) => {
                let publisher = control.shared::<Upgrade>().publisher(control, source);
                Stage::publishing(publisher.ok_or_else(|| unfit("its turn is over"))?)
            }
        };
        let tracks = tracks.into_iter().map(Track::from).collect();
        Ok(Publication { grant, tracks, udp: None, stage, packets })
    }

    /// The ports that a track is to be sent to, from this address.
    pub(super) fn ports(
        &mut self,
        control: &Control,
        peer: IpAddr,
        track: u8,
    ) -> Result<Answer<Wanted>, Refusal> {
        if self.udp.is_none() {
            self.udp = Some(UdpPorts::bind(control, self.tracks.len(), peer)?);
        }
        let ports = self.udp.as_ref().and_then(|udp| udp.ports.get(usize::from(track)));
        let (rtp, rtcp) = *ports.ok_or(ControlError::StreamGone)?;
        Ok(Answer::Ports(Pair { rtp, rtcp }))
    }

    /// Begins.
    pub(super) async fn record(
        &mut self,
        control: &Control,
        peer: SocketAddr,
        lower: Lower,
    ) -> Result<Answer<Wanted>, Refusal> {
        let format = Format::Rtp(self.tracks.clone());
        let options = PublishOptions { format, peer: format!("RTSP from {peer}"), configured: false };
        let publisher = match (lower, self.udp.take()) {
            (Lower::Udp, Some(ports)) => control.publish_udp(&self.grant, options, ports).await?,
            _ => control.publish(&self.grant, options).await?,
        };
        self.stage = Stage::publishing(publisher);
        Ok(Answer::Done)
    }

    /// Returns whether the session goes on.
    pub(super) async fn on_media(&self, track: u8, rtcp: bool, bytes: Bytes) -> bool {
        let Stage::Publishing(publisher, _) = &self.stage else { return true };
        let pushed = match rtcp {
            true => publisher.rtcp(track, bytes),
            false => publisher.send(track, bytes).await,
        };
        pushed != Push::Closed
    }

    /// Waits for what the relay has to say: that it is over, or that receivers want something.
    pub(super) async fn news(&mut self) -> News {
        match &mut self.stage {
            Stage::Announced(announced) => announced.over().await.into(),
            Stage::Publishing(publisher, feedback) => tokio::select! {
                why = publisher.closed() => why.into(),
                track = feedback.key_frame() => News::KeyFrame(track),
            },
        }
    }

    /// Of a publisher over UDP, packets are signs of life.
    pub(super) fn shows_life(&mut self, control: &Control) -> bool {
        let state = control.state();
        let stream = state.stream(self.grant.stream());
        let packets = stream.map_or(0, |stream| stream.source.packets);
        let publishes = matches!(self.stage, Stage::Publishing(..));
        let news = publishes && packets != self.packets;
        self.packets = packets;
        news
    }
}
