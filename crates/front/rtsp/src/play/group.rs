//! Players that take part in a group: nothing is sent to them alone, and what they ask for is one wish of many.

use std::time::Duration;

use outflow_engine::message::read_level;
use outflow_front_groups::Seat;
use outflow_graph::View;
use outflow_rtsp::{Pair, StatusCode, Transport};

use super::super::connection::{Connection, Role, out_of_order};
use super::super::limits::{GROUP_SESSION_TIMEOUT, SESSION_TIMEOUT};
use super::super::reply::Reply;
use super::super::target::Target;
use super::Player;

impl Connection {
    /// The group that a track goes to.
    pub(super) fn group_transport(&mut self, target: &Target, track: usize) -> Result<Transport, Reply> {
        if target.request.selection.branch.is_some() || target.request.selection.view != View::default() {
            let why = "only streams as they come in go to groups, and levels of them: ask for unicast";
            return Err(Reply::error(StatusCode::UnsupportedTransport, why));
        }
        let Role::Player(player) = &mut self.role else { return Err(out_of_order("no player")) };
        let seat = match &mut player.seat {
            Some(seat) => seat,
            none => none.insert(Seat::take(&self.control, &target.request.stream, self.peer.ip())?),
        };
        let group = seat.group();
        let above = u16::try_from(2 * track).ok().and_then(|above| group.to.port().checked_add(above));
        let ports = above.and_then(|rtp| Some(Pair { rtp, rtcp: rtp.checked_add(1)? }));
        let port =
            ports.ok_or_else(|| Reply::error(StatusCode::NotFound, "there is no port for such a track"))?;
        Ok(Transport {
            multicast: true,
            destination: Some(group.to.ip().to_string()),
            source: Some(group.source.to_string()),
            port: Some(port),
            ttl: Some(group.ttl),
            ..Transport::default()
        })
    }
}

impl Player {
    /// What one of a group wants from now on.
    pub(super) fn set_of_group(&mut self, name: &str, value: &str) -> Result<(), Reply> {
        if name != "level" {
            let why = format!("members of a group have no '{name}': possible is level");
            return Err(Reply::error(StatusCode::ParameterNotUnderstood, why));
        }
        self.wanted.level = read_level(value)?;
        if !self.stage.is_at_rest() {
            self.seat.iter().for_each(|seat: &Seat| seat.set_level(self.wanted.level));
        }
        Ok(())
    }

    /// How long it may show no sign of life. A member of a group shows it on the connection alone, and keeps
    /// the stream coming for no receiver if it has gone without a word.
    pub(in super::super) fn timeout(&self) -> Duration {
        if self.seat.is_some() { GROUP_SESSION_TIMEOUT } else { SESSION_TIMEOUT }
    }
}
