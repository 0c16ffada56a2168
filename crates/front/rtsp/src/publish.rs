//! What a publisher has of the relay: a stream that takes its packets.

use std::net::{IpAddr, SocketAddr};

use bytes::Bytes;
use outflow_control::{Announced, Control, Heard, PublishOptions, Publisher, Push, UdpPorts};
use outflow_door::Grant;
use outflow_engine::message::{CloseReason, ControlError};
use outflow_media::{Format, Track};
use outflow_rtsp::server::{Answer, Notice};
use outflow_rtsp::{Lower, Pair};

use super::refusal::Refusal;
use super::target::Wanted;

/// What a session that publishes, or will, has of the relay.
pub(super) struct Publication {
    grant: Grant,
    tracks: Vec<Track>,
    udp: Option<UdpPorts>,
    /// Until it publishes.
    announced: Announced,
    publisher: Option<Publisher>,
    feedback: Heard,
    /// Packets of the stream as they were counted when last looked at.
    packets: u64,
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
        let announced = control.takes_publisher(wanted.stream())?;
        Ok(Publication {
            grant: wanted.grant,
            tracks,
            udp: None,
            announced,
            publisher: None,
            feedback: Heard::default(),
            packets: 0,
        })
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
        let mut publisher = match (lower, self.udp.take()) {
            (Lower::Udp, Some(ports)) => control.publish_udp(&self.grant, options, ports).await?,
            _ => control.publish(&self.grant, options).await?,
        };
        self.feedback = publisher.take_feedback();
        self.publisher = Some(publisher);
        Ok(Answer::Done)
    }

    /// Returns whether the session goes on.
    pub(super) async fn on_media(&self, track: u8, rtcp: bool, bytes: Bytes) -> bool {
        let Some(publisher) = &self.publisher else { return true };
        let pushed = match rtcp {
            true => publisher.rtcp(track, bytes),
            false => publisher.send(track, bytes).await,
        };
        pushed != Push::Closed
    }

    /// Waits for what the relay has to say: that it is over, or that receivers want something.
    pub(super) async fn news(&mut self) -> News {
        let Some(publisher) = &mut self.publisher else {
            return self.announced.over().await.into();
        };
        tokio::select! {
            why = publisher.closed() => why.into(),
            track = self.feedback.key_frame() => News::KeyFrame(track),
        }
    }

    /// Of a publisher over UDP, packets are signs of life.
    pub(super) fn shows_life(&mut self, control: &Control) -> bool {
        let state = control.state();
        let stream = state.stream(self.grant.stream());
        let packets = stream.map_or(0, |stream| stream.source.packets);
        let news = self.publisher.is_some() && packets != self.packets;
        self.packets = packets;
        news
    }
}
