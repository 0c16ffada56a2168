//! Publishers: ANNOUNCE, SETUP, RECORD.

use bytes::Bytes;
use outflow_control::{Control, Heard, PublishOptions, Publisher, Push, UdpPorts};
use outflow_door::{Right, StreamName};
use outflow_engine::system::random_u32;
use outflow_media::{Codec, Format};
use outflow_relay::Feedback;
use outflow_rtp::sdp::MediaDescription;
use outflow_rtp::{rtcp, sdp};
use outflow_rtsp::{Lower, Pair, Request, StatusCode, Transport, headers, interleaved_prefix};
use url::Url;

use super::connection::{Connection, News, Role, out_of_order};
use super::reply::Reply;
use super::target::{Target, is_control};

/// The name under which the relay asks.
const CNAME: &str = "outflow";

/// A session that publishes, or will.
pub(super) struct Publication {
    stream: StreamName,
    announced: Url,
    media: Vec<MediaDescription>,
    setups: Vec<Option<Transport>>,
    udp: Option<UdpPorts>,
    publisher: Option<Publisher>,
    feedback: Heard,
    /// Of the last packet of each track within the connection.
    ssrcs: Vec<Option<u32>>,
    /// The one that the relay asks in the name of.
    own_ssrc: u32,
    /// Key frames that were asked for; it wraps.
    requests: u8,
    /// Packets of the stream as they were counted when last looked at.
    packets: u64,
}

impl Connection {
    pub(super) async fn announce(&mut self, request: &Request) -> Result<Reply, Reply> {
        let target = self.target(Right::Publish, request)?;
        if !matches!(self.role, Role::None) {
            return Err(out_of_order("there is a session already: tear it down first"));
        }
        let description = sdp::parse(request.body())
            .map_err(|error| Reply::error(StatusCode::UnsupportedMediaType, error.to_string()))?;
        let is_ts = |media: &MediaDescription| media.track.codec == Codec::Mp2t;
        if description.media.len() > 1 && description.media.iter().any(is_ts) {
            let why = "a transport stream is published alone";
            return Err(Reply::error(StatusCode::UnsupportedMediaType, why));
        }
        // What would fail at RECORD is better told now.
        self.control.takes_publisher(&target.request.stream)?;
        let tracks = description.media.len();
        self.role = Role::Publisher(Box::new(Publication {
            stream: target.request.stream,
            announced: request.request_uri().cloned().ok_or_else(|| out_of_order("no URL"))?,
            setups: vec![None; description.media.len()],
            media: description.media,
            udp: None,
            publisher: None,
            feedback: Heard::default(),
            ssrcs: vec![None; tracks],
            own_ssrc: random_u32(),
            requests: 0,
            packets: 0,
        }));
        Ok(Reply::ok())
    }

    pub(super) fn setup_publisher(&mut self, request: &Request) -> Result<Reply, Reply> {
        let (control, from) = (self.control.clone(), self.peer.ip());
        let local = self.local.ip().to_canonical();
        let Role::Publisher(publication) = &mut self.role else { return Err(out_of_order("announce first")) };
        if publication.publisher.is_some() {
            return Err(out_of_order("tracks cannot be added while recording"));
        }
        let track = publication.track(request.request_uri())?;
        let offered = request.header(&headers::TRANSPORT).map_or("", |value| value.as_str());
        let lower = publication.lower();
        let usable = |t: &Transport| !t.multicast && lower.is_none_or(|lower| lower == t.lower);
        let chosen = Transport::parse_all(offered).into_iter().find(usable).ok_or_else(|| {
            let why =
                "tracks are published over RTP/AVP/TCP or unicast RTP/AVP, all of a session the same way";
            Reply::error(StatusCode::UnsupportedTransport, why)
        })?;
        let mut transport = match chosen.lower {
            Lower::Tcp => Transport::tcp(publication.channels(track, chosen.interleaved)?),
            Lower::Udp => {
                let Some(client_port) = chosen.client_port else {
                    return Err(Reply::error(StatusCode::BadRequest, "client_port= is missing"));
                };
                let server_port = publication.udp_ports(&control, from, track)?;
                let source = Some(local.to_string());
                Transport { server_port: Some(server_port), source, ..Transport::udp(client_port) }
            }
        };
        transport.record = true;
        publication.setups[track] = Some(transport.clone());
        Ok(Reply::ok().with(headers::TRANSPORT, transport.to_string()))
    }

    pub(super) async fn record(&mut self) -> Result<Reply, Reply> {
        let Role::Publisher(publication) = &mut self.role else { return Err(out_of_order("announce first")) };
        if publication.publisher.is_some() {
            return Ok(Reply::ok());
        }
        let Some(lower) = publication.lower() else { return Err(out_of_order("set a track up first")) };
        let format = Format::Rtp(publication.media.iter().map(|media| media.track.clone()).collect());
        let peer = format!("RTSP from {}", self.peer);
        let options = PublishOptions { format, peer, configured: false };
        let stream = &publication.stream;
        let mut publisher = match (lower, publication.udp.take()) {
            (Lower::Udp, Some(ports)) => self.control.publish_udp(stream, options, ports).await?,
            _ => self.control.publish(stream, options).await?,
        };
        publication.feedback = publisher.take_feedback();
        publication.publisher = Some(publisher);
        Ok(Reply::ok())
    }
}

impl Publication {
    /// Which track a SETUP is about. The right to set it up was shown when the stream was announced.
    fn track(&self, url: Option<&Url>) -> Result<usize, Reply> {
        // A URL that only names a track as it was announced need not be that of a stream.
        let target = url.and_then(|url| Target::of(url).ok());
        let is_own = |target: &&Target| target.request.stream == self.stream;
        let is_it = |media: &MediaDescription| match (&media.control, url) {
            (Some(control), Some(url)) => is_control(url, &self.announced, control),
            _ => false,
        };
        let alone = || target.as_ref().filter(is_own).filter(|_| self.media.len() == 1).map(|_| 0);
        let numbered = || target.as_ref()?.track.filter(|track| *track < self.media.len());
        let found = self.media.iter().position(is_it).or_else(numbered).or_else(alone);
        found.ok_or_else(|| Reply::error(StatusCode::NotFound, "no media with this URL was announced"))
    }

    fn lower(&self) -> Option<Lower> {
        self.setups.iter().flatten().map(|transport| transport.lower).next()
    }

    fn channels(&self, track: usize, asked: Option<Pair<u8>>) -> Result<Pair<u8>, Reply> {
        let own = u8::try_from(2 * track).unwrap_or(u8::MAX - 1);
        let channels = asked.unwrap_or(Pair { rtp: own, rtcp: own + 1 });
        let others = self.setups.iter().enumerate().filter(|(other, _)| *other != track);
        let taken = others.filter_map(|(_, setup)| setup.as_ref()?.interleaved);
        let mut taken = taken.flat_map(|pair| [pair.rtp, pair.rtcp]);
        if channels.rtp == channels.rtcp || taken.any(|c| c == channels.rtp || c == channels.rtcp) {
            return Err(Reply::error(StatusCode::BadRequest, "these channels are another track's"));
        }
        Ok(channels)
    }

    fn udp_ports(
        &mut self,
        control: &Control,
        from: std::net::IpAddr,
        track: usize,
    ) -> Result<Pair<u16>, Reply> {
        if self.udp.is_none() {
            self.udp = Some(UdpPorts::bind(control, self.media.len(), from)?);
        }
        let ports = self.udp.as_ref().and_then(|udp| udp.ports.get(track));
        let (rtp, rtcp) = ports.copied().ok_or_else(|| out_of_order("no ports for this track"))?;
        Ok(Pair { rtp, rtcp })
    }

    /// A packet within the connection. Returns whether the session goes on; waits while the worker
    /// is busy, which slows the publisher down.
    pub(super) async fn on_interleaved(&mut self, channel: u8, bytes: Bytes) -> bool {
        let Some(publisher) = &self.publisher else { return true };
        for (track, setup) in (0..=u8::MAX).zip(&self.setups) {
            let Some(pair) = setup.as_ref().and_then(|transport| transport.interleaved) else { continue };
            if pair.rtp == channel {
                let ssrc = outflow_rtp::ssrc(&bytes);
                self.ssrcs.get_mut(usize::from(track)).into_iter().for_each(|known| *known = ssrc);
                return publisher.send(track, bytes).await != Push::Closed;
            }
            if pair.rtcp == channel {
                return publisher.rtcp(track, bytes) != Push::Closed;
            }
        }
        // On a channel that was not agreed on: ignored.
        true
    }

    /// Waits for what the relay has to say: that it is over, or that receivers want something.
    pub(super) async fn news(&mut self) -> News {
        let Some(publisher) = &self.publisher else { return std::future::pending().await };
        loop {
            tokio::select! {
                () = publisher.closed() => return News::Ended("its stream was taken away".to_owned()),
                said = self.feedback.next() => {
                    let Feedback::KeyFrame { track } = said else { continue };
                    self.requests = self.requests.wrapping_add(1);
                    if let Some(request) = self.key_frame_request(track) {
                        return News::Say(request);
                    }
                }
            }
        }
    }

    /// Asks for a key frame of a track, within the connection (RFC 2326, section 10.12).
    fn key_frame_request(&self, track: u8) -> Option<Bytes> {
        let channel = self.setups.get(usize::from(track))?.as_ref()?.interleaved?.rtcp;
        let media = (*self.ssrcs.get(usize::from(track))?)?;
        let request = rtcp::key_frame_request(self.own_ssrc, media, self.requests, CNAME);
        let prefix = interleaved_prefix(channel, u16::try_from(request.len()).ok()?);
        Some([&prefix[..], &request].concat().into())
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
