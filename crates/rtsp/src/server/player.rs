//! Players: SETUP, PLAY, PAUSE, SET_PARAMETER.

use core::net::{IpAddr, SocketAddr};

use rtsp_types::{StatusCode, headers};

use super::address::TRACK;
use super::flow::{Next, Step, no_such_track};
use super::message::{Delivery, Output, Question, TrackStart};
use super::reply::{Reply, out_of_order};
use super::{Role, Session};
use crate::header::RtpInfo;
use crate::{Lower, Pair, Request, Transport};

/// A session that plays, or will.
#[derive(Debug)]
pub(super) struct Player<S> {
    selection: S,
    /// The URL that tracks are named below of.
    base: String,
    setups: Vec<(u8, Transport)>,
    stage: Stage,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Setup,
    Playing,
    Paused,
}

/// A SETUP on its way.
#[derive(Debug)]
pub(super) struct Setup<S> {
    pub(super) selection: S,
    pub(super) base: String,
    /// As the URL names it; once a transport is chosen, the one that is meant.
    pub(super) track: Option<usize>,
}

impl<S: Clone + PartialEq> Session<S> {
    /// Chooses one of the transports that are offered.
    pub(super) fn choose(
        &mut self,
        request: &Request,
        setup: Setup<S>,
        count: usize,
        groups: bool,
    ) -> Result<Next<S>, Reply> {
        let track = match setup.track {
            Some(track) if track < count => track,
            None if count == 1 => 0,
            _ => return Err(no_such_track(count)),
        };
        let setup = Setup { track: Some(track), ..setup };
        let player = self.player(&setup.selection)?;
        let way = player.and_then(Player::way);
        let channel = player.map_or(Pair { rtp: 0, rtcp: 1 }, Player::free_channel);
        let is_possible = |t: &Transport| {
            !t.record && (groups || !t.multicast) && way.is_none_or(|way| way == (t.lower, t.multicast))
        };
        let chosen = offered(request).into_iter().find(is_possible).ok_or_else(|| {
            let why = "tracks are played over RTP/AVP/TCP or unicast RTP/AVP, and by multicast where \
                       groups are configured for that, all of a session the same way";
            Reply::error(StatusCode::UnsupportedTransport, why)
        })?;
        let selection = setup.selection.clone();
        match chosen.lower {
            _ if chosen.multicast => Ok(Next::Ask(Question::Group(selection), Step::Joining(setup))),
            Lower::Tcp => self.set_up(setup, Transport::tcp(chosen.interleaved.unwrap_or(channel))),
            Lower::Udp => {
                let to = self.destination(&chosen)?;
                Ok(Next::Ask(Question::Site(selection), Step::Placing(setup, to)))
            }
        }
    }

    /// The session's player, if there is one yet.
    fn player(&self, selection: &S) -> Result<Option<&Player<S>>, Reply> {
        match &self.role {
            Role::None => Ok(None),
            Role::Player(player) if player.selection != *selection => {
                Err(out_of_order("a session has one stream: tear it down, or open another connection"))
            }
            Role::Player(player) if player.stage != Stage::Setup => {
                Err(out_of_order("tracks cannot be changed while playing: tear the session down first"))
            }
            Role::Player(player) => Ok(Some(player)),
            Role::Publisher(_) => Err(out_of_order("this session publishes")),
        }
    }

    /// Packets go nowhere but to the peer of the connection: any other destination could be a
    /// victim.
    fn destination(&self, asked: &Transport) -> Result<Pair<u16>, Reply> {
        let peer = self.options.peer;
        let elsewhere = asked.destination.as_ref().is_some_and(|to| to.parse::<IpAddr>().ok() != Some(peer));
        if elsewhere {
            let why = "packets are sent to the address that asks for them only: leave destination= out";
            return Err(Reply::error(StatusCode::Forbidden, why));
        }
        client_port(asked)
    }

    pub(super) fn set_up_datagrams(
        &mut self,
        setup: Setup<S>,
        to: Pair<u16>,
        from: Pair<u16>,
    ) -> Result<Next<S>, Reply> {
        let source = Some(self.options.local.to_string());
        self.set_up(setup, Transport { server_port: Some(from), source, ..Transport::udp(to) })
    }

    pub(super) fn set_up_group(
        &mut self,
        setup: Setup<S>,
        to: SocketAddr,
        source: IpAddr,
        ttl: u8,
    ) -> Result<Next<S>, Reply> {
        let above = setup.track.and_then(|track| u16::try_from(2 * track).ok());
        let rtp = above.and_then(|above| to.port().checked_add(above));
        let port = rtp.and_then(|rtp| Some(Pair { rtp, rtcp: rtp.checked_add(1)? }));
        let port =
            port.ok_or_else(|| Reply::error(StatusCode::NotFound, "there is no port for such a track"))?;
        let transport = Transport {
            multicast: true,
            destination: Some(to.ip().to_string()),
            source: Some(source.to_string()),
            port: Some(port),
            ttl: Some(ttl),
            ..Transport::default()
        };
        self.set_up(setup, transport)
    }

    fn set_up(&mut self, setup: Setup<S>, transport: Transport) -> Result<Next<S>, Reply> {
        let reply = Reply::ok().with(headers::TRANSPORT, transport.to_string());
        let track = setup.track.and_then(|track| u8::try_from(track).ok()).unwrap_or(u8::MAX);
        if let Role::Player(player) = &mut self.role {
            player.set_up(track, transport)?;
        } else {
            let Setup { selection, base, .. } = setup;
            let mut player = Player { selection, base, setups: Vec::new(), stage: Stage::Setup };
            player.set_up(track, transport)?;
            self.role = Role::Player(Box::new(player));
        }
        Ok(Next::Done(reply))
    }

    pub(super) fn play(&mut self) -> Result<Next<S>, Reply> {
        let Role::Player(player) = &self.role else { return Err(out_of_order("set a track up first")) };
        let question = match player.stage {
            // Some clients repeat it to keep the session alive.
            Stage::Playing => return Ok(Next::Done(Reply::ok())),
            Stage::Paused if !player.is_of_group() => Question::Resume,
            Stage::Setup | Stage::Paused => Question::Play(player.selection.clone(), player.delivery()?),
        };
        Ok(Next::Ask(question, Step::Playing))
    }

    pub(super) fn played(&mut self, starts: &[TrackStart]) -> Result<Next<S>, Reply> {
        let Role::Player(player) = &mut self.role else { return Err(out_of_order("set a track up first")) };
        let is_first = player.stage == Stage::Setup;
        player.stage = Stage::Playing;
        if player.is_of_group() {
            return Ok(Next::Done(Reply::ok()));
        }
        let infos = player.rtp_info(starts);
        let reply = match infos.is_empty() {
            true => Reply::ok(),
            false => Reply::ok().with(headers::RTP_INFO, infos),
        };
        Ok(Next::Start { reply, within: is_first && player.is_served_within() })
    }

    pub(super) fn pause(&mut self) -> Result<Next<S>, Reply> {
        match &mut self.role {
            Role::Player(player) if player.stage != Stage::Setup => {
                if player.stage == Stage::Playing {
                    player.stage = Stage::Paused;
                    self.out.push_back(Output::Pause);
                }
                Ok(Next::Done(Reply::ok()))
            }
            _ => Err(out_of_order("nothing is playing")),
        }
    }

    /// What a player wants from now on: `view: size=320x180` or `level: 3` in the body (RFC 2326, section
    /// 10.9). Without a body it keeps the session alive.
    pub(super) fn set_parameters(&mut self, request: &Request) -> Result<Next<S>, Reply> {
        let text = String::from_utf8_lossy(request.body());
        let parameter = |line: &str| {
            let (name, value) = line.split_once(':').unwrap_or((line, ""));
            (name.trim().to_ascii_lowercase(), value.trim().to_owned())
        };
        let parameters: Vec<_> = text.lines().filter(|line| !line.trim().is_empty()).map(parameter).collect();
        if parameters.is_empty() {
            return Ok(Next::Done(Reply::ok()));
        }
        match &self.role {
            Role::Player(player) if player.is_of_group() || player.stage != Stage::Setup => {
                Ok(Next::Ask(Question::Set(parameters), Step::Setting))
            }
            _ => Err(out_of_order("play first")),
        }
    }
}

impl<S> Player<S> {
    /// How the tracks set up so far are carried, and whether to a group.
    fn way(&self) -> Option<(Lower, bool)> {
        self.setups.first().map(|(_, transport)| (transport.lower, transport.multicast))
    }

    /// Whether it takes part in a group.
    pub(super) fn is_of_group(&self) -> bool {
        self.way().is_some_and(|(_, multicast)| multicast)
    }

    /// Whether packets go out within the connection, or did before a pause.
    pub(super) fn is_served_within(&self) -> bool {
        self.stage != Stage::Setup && self.way().is_some_and(|(lower, _)| lower == Lower::Tcp)
    }

    /// The lowest pair of channels that no track has.
    fn free_channel(&self) -> Pair<u8> {
        let taken = |channel: u8| self.channels().any(|(_, c)| c.rtp == channel || c.rtcp == channel);
        let rtp = (0..=u8::MAX - 1).step_by(2).find(|rtp| !taken(*rtp) && !taken(rtp + 1)).unwrap_or(0);
        Pair { rtp, rtcp: rtp + 1 }
    }

    fn channels(&self) -> impl Iterator<Item = (u8, Pair<u8>)> {
        self.setups.iter().filter_map(|(track, transport)| Some((*track, transport.interleaved?)))
    }

    /// Of which track a channel has the reports, once it plays: that is all that comes from a player.
    pub(super) fn track_of_reports(&self, channel: u8) -> Option<u8> {
        let mut channels = self.channels().filter(|_| self.stage != Stage::Setup);
        channels.find(|(_, pair)| pair.rtcp == channel).map(|(track, _)| track)
    }

    fn set_up(&mut self, track: u8, transport: Transport) -> Result<(), Reply> {
        self.setups.retain(|(known, _)| *known != track);
        if let Some(asked) = transport.interleaved {
            check_channels(asked, self.channels().map(|(_, pair)| pair))?;
        }
        self.setups.push((track, transport));
        self.setups.sort_by_key(|(track, _)| *track);
        Ok(())
    }

    fn delivery(&self) -> Result<Delivery, Reply> {
        let datagrams = |(track, transport): &(u8, Transport)| Some((*track, transport.client_port?));
        match self.way() {
            None => Err(out_of_order("set a track up first")),
            Some((_, true)) => Ok(Delivery::Group),
            Some((Lower::Tcp, _)) => Ok(Delivery::Interleaved(self.channels().collect())),
            Some((Lower::Udp, _)) => {
                Ok(Delivery::Datagrams(self.setups.iter().filter_map(datagrams).collect()))
            }
        }
    }

    fn rtp_info(&self, starts: &[TrackStart]) -> String {
        let infos = starts.iter().map(|start| {
            let url = format!("{}{TRACK}{}", self.base, start.track);
            RtpInfo { url, seq: Some(start.sequence), rtptime: Some(start.timestamp) }.to_string()
        });
        infos.collect::<Vec<_>>().join(",")
    }
}

/// The transports that a SETUP offers.
pub(super) fn offered(request: &Request) -> Vec<Transport> {
    Transport::parse_all(request.header(&headers::TRANSPORT).map_or("", |value| value.as_str()))
}

pub(super) fn client_port(asked: &Transport) -> Result<Pair<u16>, Reply> {
    asked.client_port.ok_or_else(|| Reply::error(StatusCode::BadRequest, "client_port= is missing"))
}

/// Refuses channels that are one and the same, or that another track has.
pub(super) fn check_channels(
    asked: Pair<u8>,
    mut others: impl Iterator<Item = Pair<u8>>,
) -> Result<(), Reply> {
    let is_asked = |channel: u8| channel == asked.rtp || channel == asked.rtcp;
    if asked.rtp == asked.rtcp || others.any(|other| is_asked(other.rtp) || is_asked(other.rtcp)) {
        return Err(Reply::error(StatusCode::BadRequest, "these channels are another track's"));
    }
    Ok(())
}
