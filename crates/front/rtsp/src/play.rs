//! What a player has of the relay: a place with a worker, or a seat in a group.

use std::io;
use std::net::{IpAddr, SocketAddr};

use bytes::Bytes;
use outflow_control::{Control, Playing, Upgrade};
use outflow_engine::message::{
    CloseReason, ControlError, Delivery, Described, Ends, Framing, Receiver, TrackAddress, TrackChannel,
    UdpSite, WriteSide, read_level, read_view,
};
use outflow_front_groups::{GroupSettings, Seat};
use outflow_graph::View;
use outflow_media::Format;
use outflow_relay::Encapsulation;
use outflow_rtp::sdp;
use outflow_rtsp::server::{Answer, Notice, TrackStart};
use outflow_rtsp::{Pair, StatusCode, server};

use super::publish::News;
use super::refusal::Refusal;
use super::save::{SavedPlaying, SavedSite, unfit};
use super::target::Wanted;

/// What a session that plays, or will, has of the relay.
pub(super) struct Player {
    wanted: Wanted,
    /// The site that serves it over UDP.
    site: Option<UdpSite>,
    /// By which group, if it takes part in one; it has no place of its own then.
    seat: Option<Seat>,
    place: Option<Playing>,
    /// Receiver reports as they were when they were last looked at.
    reports: Vec<[u64; 4]>,
}

/// What a stream is like, as a player is told that asks from `peer` at `local`.
pub(super) async fn describe(
    control: &Control,
    (peer, local): (IpAddr, IpAddr),
    wanted: &Wanted,
) -> Result<Answer<Wanted>, Refusal> {
    let Described { format, levels } =
        control.describe(wanted.stream(), wanted.selection.clone(), Encapsulation::Rtp).await?;
    if let Some(what) = without_rtp(&format) {
        let text = format!("{what} have no RTP form: send them to a udp:// address");
        return Err(ControlError::Unsupported(text).into());
    }
    let session = sdp::Session {
        name: wanted.stream(),
        id: name_hash(wanted.stream()),
        version: 1,
        origin: local.to_canonical(),
        destination: unspecified(peer),
        ttl: None,
        ports: &[],
        controls: true,
        levels,
    };
    Ok(Answer::Described(sdp::emit(&format, &session)))
}

/// How many tracks a stream has, and whether it goes to groups.
pub(super) async fn tracks(control: &Control, wanted: &Wanted) -> Result<Answer<Wanted>, Refusal> {
    let count =
        match control.describe(wanted.stream(), wanted.selection.clone(), Encapsulation::Rtp).await?.format {
            // Images and data have no RTP form: no player is told that they have.
            Format::Ts | Format::Images | Format::Data => 1,
            Format::Rtp(tracks) => tracks.len(),
        };
    let groups = !control.config().section::<GroupSettings>().groups.is_empty();
    Ok(Answer::Tracks { count, groups })
}

/// Whether a group can be sent this.
pub(super) fn check_group(wanted: &Wanted) -> Result<(), Refusal> {
    if wanted.selection.branch.is_some() || wanted.selection.view != View::default() {
        let why = "only streams as they come in go to groups, and levels of them: ask for unicast";
        return Err(Refusal::new(StatusCode::UnsupportedTransport, why));
    }
    Ok(())
}

impl Player {
    /// The one that is there, else one that wants this.
    pub(super) fn of(player: &mut Option<Box<Self>>, wanted: Wanted) -> &mut Self {
        player.get_or_insert_with(|| {
            Box::new(Player { wanted, site: None, seat: None, place: None, reports: Vec::new() })
        })
    }

    /// What another process needs to go on with it.
    pub(super) fn save(&self) -> SavedPlaying {
        SavedPlaying {
            grant: self.wanted.grant.save(),
            selection: self.wanted.words(),
            site: self.site.map(SavedSite::from),
            receiver: self.place.as_ref().map(Playing::id),
            seat: self.seat.as_ref().map(Seat::save),
        }
    }

    /// Goes on from what another process has saved.
    ///
    /// # Errors
    /// What is not there.
    pub(super) fn restore(control: &Control, saved: SavedPlaying) -> io::Result<Self> {
        let SavedPlaying { grant, selection, site, receiver, seat } = saved;
        let wanted = Wanted::restore(control, grant, &selection);
        let wanted = wanted.ok_or_else(|| unfit("what it plays is not known here"))?;
        let site = site.map(UdpSite::try_from).transpose()?;
        let place = |receiver| control.shared::<Upgrade>().playing(receiver);
        let place = receiver.map(|receiver| place(receiver).ok_or_else(|| unfit("its receiver has left")));
        let level = wanted.selection.level;
        let seat = seat.map(|seat| Seat::restore(control, wanted.stream(), seat, level));
        let seat = seat.map(|seat| seat.ok_or_else(|| unfit("its group is not sent to any more")));
        let (place, seat) = (place.transpose()?, seat.transpose()?);
        Ok(Player { wanted, site, seat, place, reports: Vec::new() })
    }

    /// The ports that it is served from; `from` is the address that it has asked at.
    pub(super) fn site(&mut self, control: &Control, from: IpAddr) -> Result<Answer<Wanted>, Refusal> {
        let UdpSite { rtp, rtcp, .. } = match self.site {
            Some(site) => site,
            None => {
                let (stream, wanted) = (self.wanted.stream(), &self.wanted.selection);
                *self.site.insert(control.udp_site(stream, wanted, from)?)
            }
        };
        Ok(Answer::Ports(Pair { rtp, rtcp }))
    }

    /// The group that the tracks go to: nothing is sent to the player alone, and what it asks for is one wish of
    /// many.
    pub(super) fn group(&mut self, control: &Control, peer: IpAddr) -> Result<Answer<Wanted>, Refusal> {
        let seat = match &mut self.seat {
            Some(seat) => seat,
            none => none.insert(Seat::take(control, self.wanted.stream(), peer)?),
        };
        let group = seat.group();
        Ok(Answer::Group { to: group.to, source: group.source, ttl: group.ttl })
    }

    /// Takes its place.
    pub(super) async fn play(
        &mut self,
        control: &Control,
        peer: SocketAddr,
        delivery: server::Delivery,
    ) -> Result<Answer<Wanted>, Refusal> {
        let (kind, delivery) = match delivery {
            server::Delivery::Group => {
                let level = self.wanted.selection.level;
                self.seat.as_mut().ok_or(ControlError::StreamGone)?.begin(level).await?;
                return Ok(Answer::Playing(Vec::new()));
            }
            server::Delivery::Interleaved(channels) => {
                let channel = |(track, Pair { rtp, rtcp })| TrackChannel { track, rtp, rtcp };
                let framing = Framing::Interleaved(channels.into_iter().map(channel).collect());
                ("rtsp-tcp", Delivery::Bytes(Encapsulation::Rtp, framing))
            }
            server::Delivery::Datagrams(ports) => {
                // With the interface that an address of a link belongs to.
                let to = |port| {
                    let mut to = peer;
                    to.set_port(port);
                    to
                };
                let address =
                    |(track, Pair { rtp, rtcp })| TrackAddress { track, rtp: to(rtp), rtcp: to(rtcp) };
                let site = self.site.ok_or(ControlError::StreamGone)?;
                let ends = Ends::Negotiated(site, ports.into_iter().map(address).collect());
                ("rtsp-udp", Delivery::Datagrams(Encapsulation::Rtp, ends))
            }
        };
        let receiver = Receiver::new(kind, peer, self.wanted.selection.clone());
        let place = control.play(&self.wanted.grant, receiver, delivery).await?;
        Ok(starts(self.place.insert(place)))
    }

    pub(super) async fn resume(&mut self) -> Result<Answer<Wanted>, Refusal> {
        let place = self.place.as_mut().ok_or(ControlError::StreamGone)?;
        place.resume().await?;
        Ok(starts(place))
    }

    /// What it wants from now on.
    pub(super) async fn set_all(
        &mut self,
        control: &Control,
        parameters: &[(String, String)],
    ) -> Result<Answer<Wanted>, Refusal> {
        for (name, value) in parameters {
            self.set(control, name, value).await?;
        }
        Ok(Answer::Done)
    }

    async fn set(&mut self, control: &Control, name: &str, value: &str) -> Result<(), Refusal> {
        let selection = &mut self.wanted.selection;
        match (name, &self.seat, &self.place) {
            ("level", Some(seat), _) => {
                selection.level = read_level(value)?;
                seat.set_level(selection.level);
            }
            (_, Some(_), _) => {
                let why = format!("members of a group have no '{name}': possible is level");
                return Err(Refusal::new(StatusCode::ParameterNotUnderstood, why));
            }
            ("view", None, Some(place)) => {
                let view = read_view(value)?;
                control.set_view(place.id(), view).await?;
                selection.view = view;
            }
            ("level", None, Some(place)) => {
                let level = read_level(value)?;
                control.set_level(place.id(), level).await?;
                selection.level = level;
            }
            _ => {
                let why = format!("there is no parameter '{name}': possible are view and level");
                return Err(Refusal::new(StatusCode::ParameterNotUnderstood, why));
            }
        }
        Ok(())
    }

    /// Whether it has a place, and with it packets to send.
    pub(super) fn is_placed(&self) -> bool {
        self.place.is_some()
    }

    /// Packets may follow: by the connection's write side, if that is theirs from now on.
    pub(super) fn start(&self, writer: Option<WriteSide>) {
        if let Some(place) = &self.place {
            place.start(writer);
        }
    }

    pub(super) fn pause(&mut self) {
        self.place.iter().for_each(Playing::pause);
        self.seat.iter_mut().for_each(Seat::end);
    }

    /// Sends an answer through the worker.
    pub(super) fn inject(&self, bytes: &Bytes) {
        self.place.iter().for_each(|place| place.inject(bytes.clone()));
    }

    pub(super) async fn ended(&mut self, control: &Control) -> News {
        match (&mut self.place, &self.seat) {
            (Some(place), _) => place.closed().await.into(),
            (None, Some(seat)) => tokio::select! {
                () = seat.ended() => {
                    let why = "its group is no longer sent to".to_owned();
                    News::Ended { why, notice: Notice::SessionTerminated }
                }
                // It is one of those that share a receiver, which stays.
                () = Box::pin(control.door().over(&self.wanted.grant)) => {
                    control.door().count_revoked(1);
                    CloseReason::Revoked.into()
                }
            },
            (None, None) => std::future::pending().await,
        }
    }

    pub(super) fn on_rtcp(&mut self, bytes: &[u8]) {
        if let Some(place) = &mut self.place {
            place.rtcp(bytes);
        }
    }

    /// Of a player over UDP, receiver reports are signs of life.
    pub(super) fn shows_life(&mut self, control: &Control) -> bool {
        let Some(place) = &self.place else { return false };
        let reports = reports(control, self.wanted.stream(), place.id());
        let news = reports != self.reports;
        self.reports = reports;
        news
    }
}

fn starts(place: &Playing) -> Answer<Wanted> {
    let starts = place.starts().iter().map(|start| TrackStart {
        track: start.track,
        sequence: start.sequence,
        timestamp: start.timestamp,
    });
    Answer::Playing(starts.collect())
}

/// What a receiver's newest reports say, in a form that can be compared.
fn reports(control: &Control, stream: &str, receiver: u64) -> Vec<[u64; 4]> {
    let state = control.state();
    let stream = state.stream(stream);
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
