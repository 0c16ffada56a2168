//! What a publisher has of the relay: a stream that takes its packets.

use bytes::Bytes;
use outflow_control::{Control, Heard, PublishOptions, Publisher, Push, UdpPorts};
use outflow_door::StreamName;
use outflow_engine::message::ControlError;
use outflow_media::{Format, Track};
use outflow_relay::Feedback;
use outflow_rtsp::server::Answer;
use outflow_rtsp::{Lower, Pair};

use super::connection::{Connection, News};
use super::refusal::Refusal;
use super::target::Wanted;

/// What a session that publishes, or will, has of the relay.
pub(super) struct Publication {
    stream: StreamName,
    tracks: Vec<Track>,
    udp: Option<UdpPorts>,
    publisher: Option<Publisher>,
    feedback: Heard,
    /// Packets of the stream as they were counted when last looked at.
    packets: u64,
}

impl Connection {
    pub(super) fn announce(&mut self, wanted: Wanted, tracks: Vec<Track>) -> Result<Answer<Wanted>, Refusal> {
        self.control.takes_publisher(&wanted.stream)?;
        self.publication = Some(Box::new(Publication {
            stream: wanted.stream,
            tracks,
            udp: None,
            publisher: None,
            feedback: Heard::default(),
            packets: 0,
        }));
        Ok(Answer::Done)
    }

    pub(super) fn ports(&mut self, track: u8) -> Result<Answer<Wanted>, Refusal> {
        let publication = self.publication.as_mut().ok_or(ControlError::StreamGone)?;
        if publication.udp.is_none() {
            let tracks = publication.tracks.len();
            publication.udp = Some(UdpPorts::bind(&self.control, tracks, self.peer.ip())?);
        }
        let ports = publication.udp.as_ref().and_then(|udp| udp.ports.get(usize::from(track)));
        let (rtp, rtcp) = *ports.ok_or(ControlError::StreamGone)?;
        Ok(Answer::Ports(Pair { rtp, rtcp }))
    }

    pub(super) async fn record(&mut self, lower: Lower) -> Result<Answer<Wanted>, Refusal> {
        let publication = self.publication.as_mut().ok_or(ControlError::StreamGone)?;
        let format = Format::Rtp(publication.tracks.clone());
        let peer = format!("RTSP from {}", self.peer);
        let options = PublishOptions { format, peer, configured: false };
        let stream = &publication.stream;
        let mut publisher = match (lower, publication.udp.take()) {
            (Lower::Udp, Some(ports)) => self.control.publish_udp(stream, options, ports).await?,
            _ => self.control.publish(stream, options).await?,
        };
        publication.feedback = publisher.take_feedback();
        publication.publisher = Some(publisher);
        Ok(Answer::Done)
    }
}

impl Publication {
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
        let Some(publisher) = &self.publisher else { return std::future::pending().await };
        loop {
            tokio::select! {
                () = publisher.closed() => return News::Ended("its stream was taken away".to_owned()),
                said = self.feedback.next() => {
                    if let Feedback::KeyFrame { track } = said {
                        return News::KeyFrame(track);
                    }
                }
            }
        }
    }

    /// Of a publisher over UDP, packets are signs of life.
    pub(super) fn shows_life(&mut self, control: &Control) -> bool {
        let state = control.state();
        let stream = state.streams.iter().find(|state| state.name == *self.stream);
        let packets = stream.map_or(0, |stream| stream.source.packets);
        let news = self.publisher.is_some() && packets != self.packets;
        self.packets = packets;
        news
    }
}
