//! Players: DESCRIBE, SETUP, PLAY, PAUSE.

mod group;

use std::io;
use std::net::{IpAddr, SocketAddr};

use bytes::Bytes;
use outflow_control::{Control, Playing};
use outflow_door::{Right, StreamName};
use outflow_engine::message::{
    ControlError, Delivery, Described, Ends, Framing, Receiver, TrackAddress, TrackChannel, UdpSite,
    read_level, read_view,
};
use outflow_front_groups::{GroupSettings, Seat};
use outflow_media::Format;
use outflow_relay::{Carriage, Selection};
use outflow_rtp::sdp;
use outflow_rtsp::header::RtpInfo;
use outflow_rtsp::{Lower, Pair, Request, StatusCode, Transport, headers};

use super::connection::{Connection, Role, out_of_order};
use super::reply::Reply;
use super::target::{TRACK, Target, base};

/// A session that plays, or will.
pub(super) struct Player {
    stream: StreamName,
    wanted: Selection,
    /// The URL that tracks are named below of.
    base: String,
    setups: Vec<(u8, Transport)>,
    /// The site that serves it over UDP.
    site: Option<UdpSite>,
    /// By which group, if it takes part in one; it has no place of its own then.
    seat: Option<Seat>,
    place: Option<Playing>,
    stage: Stage,
    /// Receiver reports as they were when they were last looked at.
    reports: Vec<[u64; 4]>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Setup,
    /// There is a place; the answer to PLAY is on its way.
    Starting,
    Playing,
    Paused,
    /// There is an answer to PLAY after PAUSE on its way.
    Resuming,
}

impl Stage {
    /// Whether the next PLAY begins something.
    fn is_at_rest(self) -> bool {
        matches!(self, Stage::Setup | Stage::Paused)
    }
}

impl Connection {
    pub(super) async fn describe(&mut self, request: &Request) -> Result<Reply, Reply> {
        let target = self.target(Right::Play, request)?;
        let Described { format, levels } =
            self.control.describe(&target.request.stream, target.request.selection.clone()).await?;
        if let Some(what) = without_rtp(&format) {
            let text = format!("{what} have no RTP form: send them to a udp:// address");
            return Err(ControlError::Unsupported(text).into());
        }
        let session = sdp::Session {
            name: &target.request.stream,
            id: name_hash(&target.request.stream),
            version: 1,
            origin: self.local.ip().to_canonical(),
            destination: unspecified(self.peer.ip()),
            ttl: None,
            ports: &[],
            controls: true,
            levels,
        };
        let mut reply = Reply::ok().with(headers::CONTENT_TYPE, "application/sdp");
        if let Some(url) = request.request_uri() {
            reply = reply.with(headers::CONTENT_BASE, base(url));
        }
        reply.body = sdp::emit(&format, &session);
        Ok(reply)
    }

    pub(super) async fn setup_player(&mut self, request: &Request) -> Result<Reply, Reply> {
        let fresh = matches!(self.role, Role::None);
        let result = self.set_up_track(request).await;
        if fresh && result.is_err() {
            self.role = Role::None;
        }
        result
    }

    async fn set_up_track(&mut self, request: &Request) -> Result<Reply, Reply> {
        let target = self.target(Right::Play, request)?;
        let tracks = self.tracks_of(&target).await?;
        let track = match target.track {
            Some(track) if track < tracks => track,
            None if tracks == 1 => 0,
            _ => {
                let why =
                    format!("no such track: name one as {TRACK}0 to {TRACK}{}", tracks.saturating_sub(1));
                return Err(Reply::error(StatusCode::NotFound, why));
            }
        };
        let player = self.player(request, &target)?;
        let (way, channel) = (player.way(), player.free_channel());
        let offered = request.header(&headers::TRANSPORT).map_or("", |value| value.as_str());
        let offered = Transport::parse_all(offered);
        let groups = self.control.config().section::<GroupSettings>().groups.is_some();
        let is_possible = |t: &&Transport| {
            !t.record && (groups || !t.multicast) && way.is_none_or(|way| way == (t.lower, t.multicast))
        };
        let chosen = offered.iter().find(is_possible).ok_or_else(|| {
            let why = "tracks are played over RTP/AVP/TCP or unicast RTP/AVP, and by multicast where \
                       groups are configured for that, all of a session the same way";
            Reply::error(StatusCode::UnsupportedTransport, why)
        })?;
        let transport = match chosen.lower {
            _ if chosen.multicast => self.group_transport(&target, track)?,
            Lower::Tcp => Transport::tcp(chosen.interleaved.unwrap_or(channel)),
            Lower::Udp => self.udp_transport(&target.request.stream, chosen)?,
        };
        let Role::Player(player) = &mut self.role else { return Err(out_of_order("no player")) };
        player.set_up(u8::try_from(track).unwrap_or(u8::MAX), transport.clone())?;
        Ok(Reply::ok().with(headers::TRANSPORT, transport.to_string()))
    }

    async fn tracks_of(&self, target: &Target) -> Result<usize, Reply> {
        let asked = &target.request;
        Ok(match self.control.describe(&asked.stream, asked.selection.clone()).await?.format {
            // Images and data have no RTP form: no player is told that they have.
            Format::Ts | Format::Images | Format::Data => 1,
            Format::Rtp(tracks) => tracks.len(),
        })
    }

    /// The session's player, made if there is none yet.
    fn player(&mut self, request: &Request, target: &Target) -> Result<&Player, Reply> {
        if matches!(self.role, Role::None) {
            let base = request.request_uri().map(base).unwrap_or_default();
            self.role = Role::Player(Box::new(Player {
                stream: target.request.stream.clone(),
                wanted: target.request.selection.clone(),
                base,
                setups: Vec::new(),
                site: None,
                seat: None,
                place: None,
                stage: Stage::Setup,
                reports: Vec::new(),
            }));
        }
        match &self.role {
            Role::Player(player)
                if (&player.stream, &player.wanted)
                    != (&target.request.stream, &target.request.selection) =>
            {
                Err(out_of_order("a session has one stream: tear it down, or open another connection"))
            }
            Role::Player(player) if player.stage != Stage::Setup => {
                Err(out_of_order("tracks cannot be changed while playing: tear the session down first"))
            }
            Role::Player(player) => Ok(player),
            _ => Err(out_of_order("this session publishes")),
        }
    }

    /// Packets go nowhere but to the peer of the connection: any other destination could be a
    /// victim.
    fn udp_transport(&mut self, stream: &str, asked: &Transport) -> Result<Transport, Reply> {
        let peer = self.peer.ip();
        let elsewhere = asked.destination.as_ref().is_some_and(|to| to.parse::<IpAddr>().ok() != Some(peer));
        if elsewhere {
            let why = "packets are sent to the address that asks for them only: leave destination= out";
            return Err(Reply::error(StatusCode::Forbidden, why));
        }
        let Some(client_port) = asked.client_port else {
            return Err(Reply::error(StatusCode::BadRequest, "client_port= is missing"));
        };
        let from = self.local.ip().to_canonical();
        let Role::Player(player) = &mut self.role else { return Err(out_of_order("no player")) };
        // All tracks are sent from the same ports.
        let UdpSite { rtp, rtcp, .. } = match player.site {
            Some(site) => site,
            None => *player.site.insert(self.control.udp_site(stream, &player.wanted, from)?),
        };
        let mut transport = Transport::udp(client_port);
        transport.server_port = Some(Pair { rtp, rtcp });
        transport.source = Some(from.to_string());
        Ok(transport)
    }

    pub(super) async fn play(&mut self) -> Result<Reply, Reply> {
        let peer = self.peer;
        let Role::Player(player) = &mut self.role else {
            return Err(out_of_order("set a track up first"));
        };
        if let Some(seat) = player.seat.as_mut().filter(|_| player.stage.is_at_rest()) {
            seat.begin(player.wanted.level).await?;
            player.stage = Stage::Playing;
        }
        match (player.stage, &mut player.place) {
            // Some clients repeat it to keep the session alive.
            (Stage::Starting | Stage::Playing | Stage::Resuming, _) => return Ok(Reply::ok()),
            (Stage::Paused, Some(place)) => {
                place.resume().await?;
                player.stage = Stage::Resuming;
            }
            (Stage::Setup | Stage::Paused, _) => {
                let (kind, delivery) = player.delivery(peer.ip())?;
                let receiver = Receiver::new(kind, peer, player.wanted.clone());
                player.place = Some(self.control.play(&player.stream, receiver, delivery).await?);
                player.stage = Stage::Starting;
            }
        }
        let infos = player.rtp_info();
        let reply = Reply::ok();
        Ok(if infos.is_empty() { reply } else { reply.with(headers::RTP_INFO, infos) })
    }

    /// What a player wants from now on: `view: size=320x180` or `level: 3` in the body (RFC 2326, section
    /// 10.9). Without a body it keeps the session alive.
    pub(super) async fn set_parameters(&mut self, request: &Request) -> Result<Reply, Reply> {
        let text = String::from_utf8_lossy(request.body());
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            let (name, value) = line.split_once(':').unwrap_or((line, ""));
            let (name, value) = (name.trim().to_ascii_lowercase(), value.trim());
            let Role::Player(player) = &mut self.role else { return Err(out_of_order("play first")) };
            if player.seat.is_some() {
                player.set_of_group(&name, value)?;
                continue;
            }
            let Some(place) = &player.place else { return Err(out_of_order("play first")) };
            match &name[..] {
                "view" => {
                    let view = read_view(value)?;
                    self.control.set_view(place.id(), view).await?;
                    player.wanted.view = view;
                }
                "level" => {
                    let level = read_level(value)?;
                    self.control.set_level(place.id(), level).await?;
                    player.wanted.level = level;
                }
                _ => {
                    let why = format!("there is no parameter '{name}': possible are view and level");
                    return Err(Reply::error(StatusCode::ParameterNotUnderstood, why));
                }
            }
        }
        Ok(Reply::ok())
    }

    /// The answer to PLAY is out: packets may follow.
    pub(super) fn begin_to_play(&mut self) -> io::Result<()> {
        let Role::Player(player) = &mut self.role else { return Ok(()) };
        let Some(place) = &player.place else { return Ok(()) };
        match player.stage {
            Stage::Starting if player.lower() == Some(Lower::Tcp) => {
                place.start(Some(self.wire.give_away()?))
            }
            Stage::Starting | Stage::Resuming => place.start(None),
            _ => return Ok(()),
        }
        player.stage = Stage::Playing;
        Ok(())
    }

    pub(super) fn pause(&mut self) -> Result<Reply, Reply> {
        match &mut self.role {
            Role::Player(player) if player.stage != Stage::Setup => {
                if player.stage == Stage::Playing {
                    player.place.iter().for_each(Playing::pause);
                    player.seat.iter_mut().for_each(Seat::end);
                    player.stage = Stage::Paused;
                }
                Ok(Reply::ok())
            }
            _ => Err(out_of_order("nothing is playing")),
        }
    }
}

impl Player {
    /// How the tracks set up so far are carried, and whether to a group.
    fn way(&self) -> Option<(Lower, bool)> {
        self.setups.first().map(|(_, transport)| (transport.lower, transport.multicast))
    }

    fn lower(&self) -> Option<Lower> {
        self.way().map(|(lower, _)| lower)
    }

    /// The lowest pair of channels that no track has.
    fn free_channel(&self) -> Pair<u8> {
        let taken = |channel: u8| self.channels().any(|c| c.rtp == channel || c.rtcp == channel);
        let rtp = (0..=u8::MAX - 1).step_by(2).find(|rtp| !taken(*rtp) && !taken(rtp + 1)).unwrap_or(0);
        Pair { rtp, rtcp: rtp + 1 }
    }

    fn channels(&self) -> impl Iterator<Item = TrackChannel> {
        self.setups.iter().filter_map(|(track, transport)| {
            let Pair { rtp, rtcp } = transport.interleaved?;
            Some(TrackChannel { track: *track, rtp, rtcp })
        })
    }

    fn set_up(&mut self, track: u8, transport: Transport) -> Result<(), Reply> {
        self.setups.retain(|(known, _)| *known != track);
        if let Some(asked) = transport.interleaved {
            let own = |c: u8| c == asked.rtp || c == asked.rtcp;
            if asked.rtp == asked.rtcp || self.channels().any(|c| own(c.rtp) || own(c.rtcp)) {
                let why = "these channels are another track's";
                return Err(Reply::error(StatusCode::BadRequest, why));
            }
        }
        self.setups.push((track, transport));
        self.setups.sort_by_key(|(track, _)| *track);
        Ok(())
    }

    fn delivery(&self, peer: IpAddr) -> Result<(&'static str, Delivery), Reply> {
        match self.lower() {
            None => Err(out_of_order("set a track up first")),
            Some(Lower::Tcp) => {
                let framing = Framing::Interleaved(self.channels().collect());
                Ok(("rtsp-tcp", Delivery::Bytes(Carriage::Rtp, framing)))
            }
            Some(Lower::Udp) => {
                let address = |(track, transport): &(u8, Transport)| {
                    let Pair { rtp, rtcp } = transport.client_port?;
                    let to = |port| SocketAddr::new(peer, port);
                    Some(TrackAddress { track: *track, rtp: to(rtp), rtcp: to(rtcp) })
                };
                let site = self.site.ok_or_else(|| out_of_order("set a track up first"))?;
                let ends = Ends::Negotiated(site, self.setups.iter().filter_map(address).collect());
                Ok(("rtsp-udp", Delivery::Datagrams(Carriage::Rtp, ends)))
            }
        }
    }

    fn rtp_info(&self) -> String {
        let starts = self.place.iter().flat_map(|place| place.starts());
        let infos = starts.map(|start| {
            let url = format!("{}{TRACK}{}", self.base, start.track);
            RtpInfo { url, seq: Some(start.sequence), rtptime: Some(start.timestamp) }.to_string()
        });
        infos.collect::<Vec<_>>().join(",")
    }

    /// Whether the worker has the connection's write side.
    pub(super) fn has_connection(&self) -> bool {
        let worker_writes = matches!(self.stage, Stage::Playing | Stage::Paused | Stage::Resuming);
        worker_writes && self.lower() == Some(Lower::Tcp)
    }

    /// Sends an answer through the worker, if that is the way.
    pub(super) fn inject(&self, bytes: &Bytes) -> bool {
        match &self.place {
            Some(place) if self.has_connection() => {
                place.inject(bytes.clone());
                true
            }
            _ => false,
        }
    }

    pub(super) async fn ended(&mut self) -> String {
        match (&mut self.place, &self.seat) {
            (Some(place), _) => place.closed().await.to_string(),
            (None, Some(seat)) => {
                seat.ended().await;
                "its group is no longer sent to".to_owned()
            }
            (None, None) => std::future::pending().await,
        }
    }

    /// What comes within the connection from a player is RTCP.
    pub(super) fn on_interleaved(&self, channel: u8, bytes: Bytes) {
        if let Some(place) = &self.place
            && self.channels().any(|c| c.rtcp == channel)
        {
            place.rtcp(bytes);
        }
    }

    /// A player within the connection lives as long as that takes packets, which the worker sees
    /// to. Of one over UDP, receiver reports are signs of life.
    pub(super) fn shows_life(&mut self, control: &Control) -> bool {
        if self.has_connection() {
            return true;
        }
        let Some(place) = &self.place else { return false };
        let reports = reports(control, &self.stream, place.id());
        let news = reports != self.reports;
        self.reports = reports;
        news
    }
}

/// What a receiver's newest reports say, in a form that can be compared.
fn reports(control: &Control, stream: &str, receiver: u64) -> Vec<[u64; 4]> {
    let state = control.state();
    let stream = state.streams.iter().find(|state| state.name == stream);
    let receiver = stream.and_then(|stream| stream.receivers.get(receiver));
    let numbers = |report: &outflow_engine::message::ReceiverReport| {
        let rtt = report.rtt_ms.map_or(0, f64::to_bits);
        [report.fraction_lost.to_bits(), report.lost as u64, report.jitter_ms.to_bits(), rtt]
    };
    receiver.map(|receiver| receiver.reports.iter().map(numbers).collect()).unwrap_or_default()
}

/// A number that is the same as long as the name is (FNV-1a).
fn name_hash(name: &str) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    // Some readers of descriptions take session ids for signed.
    name.bytes().fold(0xcbf2_9ce4_8422_2325, step) >> 1
}

fn unspecified(like: IpAddr) -> IpAddr {
    if like.is_ipv4() { IpAddr::from([0; 4]) } else { IpAddr::from([0; 16]) }
}

/// What of streams there is that RTP has no form for.
fn without_rtp(format: &Format) -> Option<&'static str> {
    match format {
        Format::Images => Some("images"),
        Format::Data => Some("opaque datagrams"),
        Format::Ts | Format::Rtp(_) => None,
    }
}
