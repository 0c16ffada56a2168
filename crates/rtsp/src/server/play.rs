//! What players ask for: SETUP, PLAY, PAUSE, SET_PARAMETER.

use core::net::{IpAddr, SocketAddr};

use rtsp_types::{StatusCode, headers};

use super::address::TRACK;
use super::message::{Output, Question, TrackStart};
use super::offer::{client_port, offered};
use super::player::Player;
use super::reply::{Reply, out_of_order};
use super::step::{Next, Setup, Step};
use super::{Role, Session};
use crate::{Lower, Pair, Request, Transport};

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
            Role::Player(player) => player.check(selection).map(|()| Some(&**player)),
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
            let mut player = Player::new(selection, base);
            player.set_up(track, transport)?;
            self.role = Role::Player(Box::new(player));
        }
        Ok(Next::Done(reply))
    }

    pub(super) fn play(&mut self) -> Result<Next<S>, Reply> {
        let Role::Player(player) = &self.role else { return Err(out_of_order("set a track up first")) };
        let question = player.play()?;
        Ok(question.map_or(Next::Done(Reply::ok()), |question| Next::Ask(question, Step::Playing)))
    }

    pub(super) fn played(&mut self, starts: &[TrackStart]) -> Result<Next<S>, Reply> {
        let Role::Player(player) = &mut self.role else { return Err(out_of_order("set a track up first")) };
        Ok(match player.played(starts) {
            (reply, Some(within)) => Next::Start { reply, within },
            (reply, None) => Next::Done(reply),
        })
    }

    pub(super) fn pause(&mut self) -> Result<Next<S>, Reply> {
        let Role::Player(player) = &mut self.role else { return Err(out_of_order("nothing is playing")) };
        if player.pause()? {
            self.out.push_back(Output::Pause);
        }
        Ok(Next::Done(Reply::ok()))
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
            Role::Player(player) if player.is_of_group() || player.is_begun() => {
                Ok(Next::Ask(Question::Set(parameters), Step::Setting))
            }
            _ => Err(out_of_order("play first")),
        }
    }
}

/// The answer to a SETUP of a track that there is not.
fn no_such_track(count: usize) -> Reply {
    let why = format!("no such track: name one as {TRACK}0 to {TRACK}{}", count.saturating_sub(1));
    Reply::error(StatusCode::NotFound, why)
}
