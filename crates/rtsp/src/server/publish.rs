//! What publishers ask for: ANNOUNCE, SETUP, RECORD.

use super::message::Question;
use super::offer::client_port;
use super::publication::Publication;
use super::reply::{Reply, out_of_order};
use super::step::{Next, Step};
use super::{Role, Session};
use crate::{Lower, Pair, Request, Transport};

impl<S: Clone + PartialEq> Session<S> {
    pub(super) fn announce(&mut self, request: &Request, selection: S) -> Result<Next<S>, Reply> {
        if !matches!(self.role, Role::None) {
            return Err(out_of_order("there is a session already: tear it down first"));
        }
        let (publication, tracks) = Publication::of(request)?;
        // What would fail at RECORD is better told now.
        Ok(Next::Ask(Question::Announce(selection, tracks), Step::Announcing(Box::new(publication))))
    }

    pub(super) fn set_up_publisher(&mut self, request: &Request) -> Result<Next<S>, Reply> {
        let publication = self.publication()?;
        let (track, chosen) = publication.choose(request)?;
        match chosen.lower {
            Lower::Tcp => {
                let channels = publication.channels(track, chosen.interleaved)?;
                Ok(Next::Done(publication.set_up(track, Transport::tcp(channels))))
            }
            Lower::Udp => {
                let from = client_port(&chosen)?;
                Ok(Next::Ask(Question::Ports(track), Step::Opening(track, from)))
            }
        }
    }

    pub(super) fn opened(&mut self, track: u8, from: Pair<u16>, to: Pair<u16>) -> Result<Next<S>, Reply> {
        let source = Some(self.options.local.to_string());
        let transport = Transport { server_port: Some(to), source, ..Transport::udp(from) };
        Ok(Next::Done(self.publication()?.set_up(track, transport)))
    }

    pub(super) fn record(&mut self) -> Result<Next<S>, Reply> {
        let lower = self.publication()?.record()?;
        Ok(lower.map_or(Next::Done(Reply::ok()), |lower| Next::Ask(Question::Record(lower), Step::Recording)))
    }

    pub(super) fn recorded(&mut self) -> Result<Next<S>, Reply> {
        self.publication()?.recorded();
        Ok(Next::Done(Reply::ok()))
    }

    fn publication(&mut self) -> Result<&mut Publication, Reply> {
        match &mut self.role {
            Role::Publisher(publication) => Ok(publication),
            _ => Err(out_of_order("announce first")),
        }
    }
}
