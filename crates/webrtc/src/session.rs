//! One peer.

use std::collections::VecDeque;

use outflow_dtls::{Agreed, Scratch, Server};
use outflow_ice::{Agent, Check, Credentials, Path};
use outflow_media::{Malformed, Time};
use outflow_srtp::{Halves, Opener, Profile, Refused, Sealer};

#[cfg(test)]
mod tests;

/// The state machine of a peer.
///
/// After each call that is given `now` it is to be polled, until it says to wait.
// In this order: what each packet needs stands in front.
#[derive(Debug)]
#[repr(C)]
pub struct Session {
    keys: Option<Keys>,
    agent: Agent,
    /// None of one that has been agreed with elsewhere.
    dtls: Option<Server>,
    /// Where DTLS came from last, and goes to.
    at: Option<Path>,
    has_ended: bool,
    // bounded: what `agent` and `dtls` had to say after one call; all is taken out before the next.
    outputs: VecDeque<Output>,
}

/// A peer that there are keys for, for a [`Session`] that goes on with it elsewhere.
#[derive(Debug, Clone)]
pub struct Saved {
    /// Where it is.
    pub agent: outflow_ice::Saved,
    /// What media is sealed with, ...
    pub profile: Profile,
    /// ... by these keys.
    pub halves: Halves,
    /// The number of the next packet of RTCP to it.
    pub next_control: u32,
}

#[derive(Debug)]
#[repr(C)]
struct Keys {
    sealer: Sealer,
    opener: Opener,
    profile: Profile,
    halves: Halves,
}

/// What a [`Session`] wants done, or tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Output {
    /// A datagram is to be sent.
    Send(Path, Vec<u8>),
    /// The peer has been heard there: other datagrams from there are for it.
    Valid(Path),
    /// They are not any more.
    Invalid(Path),
    /// There are keys: media can be sent, and may come.
    Ready,
    /// The peer is gone. The last output but for waits.
    Ended(End),
    /// Nothing more, until [`Session::handle_timeout`] is called at this time, for this reason.
    Wait(Time, Wake),
    /// Nothing more.
    Nothing,
}

/// What is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Wake {
    /// See [`outflow_ice::Wake::Consent`].
    Consent,
    /// See [`outflow_ice::Wake::Ask`].
    Ask,
    /// Something of the handshake is sent again, or it takes too long.
    Handshake,
}

/// Why a peer is gone.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum End {
    /// It was never heard.
    #[error(
        "it never came: its network may let neither UDP nor TCP through, or the relay is not where it was told"
    )]
    NeverCame,
    /// It does not say any more that it wants to go on.
    #[error("nothing was heard of it for too long")]
    Silent,
    /// What DTLS has against it, or that it has gone.
    #[error("{0}")]
    Dtls(outflow_dtls::End),
}

/// What came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Received {
    /// A packet of RTP, of this many bytes, where the datagram was.
    Media(usize),
    /// The same of RTCP.
    Control(usize),
    /// Something of the session's own.
    Own,
}

/// Why a datagram was passed over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ignored {
    /// It is not of WebRTC.
    Unknown,
    /// It comes from where the peer has not been heard.
    Elsewhere,
    /// A message of STUN that is none.
    Check(Malformed),
    /// A check that is not the peer's.
    Ice(outflow_ice::Ignored),
    /// DTLS that is none, or comes late.
    Dtls(outflow_dtls::Ignored),
    /// A packet that comes before there are keys.
    TooEarly,
    /// A packet that is not the peer's, or came before.
    Srtp(Refused),
}

impl Session {
    /// A peer that is told the credentials of `agent`, and has said that its certificate is the one that `dtls` knows.
    pub fn new(agent: Agent, dtls: Server) -> Self {
        let (dtls, outputs) = (Some(dtls), VecDeque::new());
        Session { agent, dtls, keys: None, at: None, has_ended: false, outputs }
    }

    /// What another session needs to go on with the peer; none if it cannot.
    pub fn save(&self) -> Option<Saved> {
        let keys = self.keys.as_ref().filter(|_| !self.has_ended)?;
        let Keys { profile, halves, sealer, .. } = keys;
        let (agent, next_control) = (self.agent.save()?, sealer.next_control());
        Some(Saved { agent, profile: *profile, halves: halves.clone(), next_control })
    }

    /// Goes on with a peer. What DTLS has agreed on stays elsewhere: the peer is not told when this ends, and that it
    /// goes is known by its silence. `secret` is 32 new bytes that cannot be guessed.
    pub fn resume(secret: [u8; 32], saved: Saved) -> Self {
        let Saved { agent, profile, halves, next_control } = saved;
        let heard = agent.heard;
        let agent = Agent::resume(secret, agent);
        let sealer = Sealer::new(profile, &halves.server).resume(next_control);
        let opener = Opener::new(profile, &halves.client);
        let keys = Some(Keys { profile, halves, sealer, opener });
        let mut session =
            Session { agent, dtls: None, keys, at: None, has_ended: false, outputs: VecDeque::new() };
        // Where it is, is told as at the beginning.
        session.drain_agent(heard, &mut Scratch::default());
        session
    }

    /// Where media goes: none before the peer has said so, and shown its certificate.
    pub fn path(&self) -> Option<Path> {
        self.agent.selected().filter(|_| self.keys.is_some() && !self.has_ended)
    }

    /// What media is sealed with, once there are keys.
    pub fn profile(&self) -> Option<Profile> {
        self.keys.as_ref().map(|keys| keys.profile)
    }

    /// The names by which checks are for this peer.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.agent.names()
    }

    /// Both ends have other credentials from now on (RFC 8445, section 9); media goes on.
    pub fn restart(&mut self, ours: Credentials, theirs: Credentials) {
        self.agent.restart(ours, theirs);
    }

    /// Seals a packet of RTP in place, which is what stands in `out` from `start` on. Its sequence numbers have come round
    /// so often.
    ///
    /// # Errors
    /// There are no keys, or it is no packet.
    pub fn seal(&self, out: &mut Vec<u8>, start: usize, rollovers: u32) -> Result<(), Ignored> {
        let keys = self.keys.as_ref().ok_or(Ignored::TooEarly)?;
        keys.sealer.seal(out, start, rollovers).map_err(Ignored::Srtp)
    }

    /// Reads what [`seal`](Self::seal) is about to need, so that it is at hand. What is answered says nothing.
    pub fn warm(&self) -> usize {
        self.keys.as_ref().map_or(0, |keys| keys.sealer.warm())
    }

    /// Seals a packet of RTCP in place.
    ///
    /// # Errors
    /// There are no keys, or it is no packet.
    pub fn seal_control(&mut self, packet: &mut Vec<u8>) -> Result<(), Ignored> {
        let keys = self.keys.as_mut().ok_or(Ignored::TooEarly)?;
        keys.sealer.seal_control(packet).map_err(Ignored::Srtp)
    }

    /// A datagram came by a path. A packet is opened in place.
    ///
    /// # Errors
    /// Why it was passed over.
    pub fn handle_datagram(
        &mut self,
        now: Time,
        path: Path,
        datagram: &mut [u8],
        scratch: &mut Scratch,
    ) -> Result<Received, Ignored> {
        if Check::is_stun(datagram) {
            let check = Check::new_checked(datagram).map_err(Ignored::Check)?;
            let handled = self.agent.handle(now, path, &check).map_err(Ignored::Ice);
            self.drain_agent(now, scratch);
            return handled.map(|()| Received::Own);
        }
        // What others send from elsewhere must not disturb (RFC 8827, section 4.2): no state is kept for it.
        if !self.agent.is_valid(path) {
            return Err(Ignored::Elsewhere);
        }
        if Server::is_dtls(datagram) {
            let dtls = self.dtls.as_mut().ok_or(Ignored::Dtls(outflow_dtls::Ignored::Ended))?;
            self.at = Some(path);
            let handled = dtls.handle_datagram(now, datagram, scratch).map_err(Ignored::Dtls);
            self.drain_dtls(now);
            return handled.map(|()| Received::Own);
        }
        let kind = Packet::of(datagram).ok_or(Ignored::Unknown)?;
        let keys = self.keys.as_mut().ok_or(Ignored::TooEarly)?;
        match kind {
            Packet::Media => keys.opener.open(datagram).map(Received::Media),
            Packet::Control => keys.opener.open_control(datagram).map(|length| {
                self.agent.handle_proof(now, path);
                Received::Control(length)
            }),
        }
        .map_err(Ignored::Srtp)
    }

    /// A path is no more: a connection was closed.
    pub fn handle_closed(&mut self, path: Path) {
        self.agent.handle_closed(path);
    }

    /// The time that [`Output::Wait`] said has come.
    pub fn handle_timeout(&mut self, now: Time, scratch: &mut Scratch) {
        self.agent.handle_timeout(now);
        self.drain_agent(now, scratch);
        self.dtls.iter_mut().for_each(|dtls| dtls.handle_timeout(now, scratch));
        self.drain_dtls(now);
    }

    /// The relay ends it, and says so.
    pub fn close(&mut self, now: Time, scratch: &mut Scratch) {
        self.has_ended = true;
        self.dtls.iter_mut().for_each(|dtls| dtls.close(now, scratch));
        self.drain_dtls(now);
    }

    /// What is next.
    pub fn poll(&mut self) -> Output {
        if let Some(output) = self.outputs.pop_front() {
            return output;
        }
        if self.has_ended {
            return Output::Nothing;
        }
        let agent = match self.agent.poll() {
            outflow_ice::Output::Wait(at, outflow_ice::Wake::Consent) => Some((at, Wake::Consent)),
            outflow_ice::Output::Wait(at, outflow_ice::Wake::Ask) => Some((at, Wake::Ask)),
            _ => None,
        };
        let dtls = match self.dtls.as_mut().map(Server::poll) {
            Some(outflow_dtls::Output::Wait(at)) => at.map(|at| (at, Wake::Handshake)),
            _ => None,
        };
        agent.into_iter().chain(dtls).min().map_or(Output::Nothing, |(at, why)| Output::Wait(at, why))
    }

    fn drain_agent(&mut self, now: Time, scratch: &mut Scratch) {
        loop {
            match self.agent.poll() {
                outflow_ice::Output::Send(path, bytes) => self.outputs.push_back(Output::Send(path, bytes)),
                outflow_ice::Output::Valid(path) => self.outputs.push_back(Output::Valid(path)),
                outflow_ice::Output::Invalid(path) => self.outputs.push_back(Output::Invalid(path)),
                // Where media goes is asked for each time.
                outflow_ice::Output::Selected(_) => {}
                outflow_ice::Output::Ended(why) => {
                    // One that is still there learns it.
                    self.dtls.iter_mut().for_each(|dtls| dtls.close(now, scratch));
                    self.drain_dtls(now);
                    self.end(match why {
                        outflow_ice::End::NeverCame => End::NeverCame,
                        outflow_ice::End::Silent => End::Silent,
                    });
                }
                outflow_ice::Output::Wait(..) | outflow_ice::Output::Nothing => return,
            }
        }
    }

    fn drain_dtls(&mut self, now: Time) {
        while let Some(dtls) = &mut self.dtls {
            match dtls.poll() {
                outflow_dtls::Output::Send(bytes) => {
                    let to = self.at.or(self.agent.selected());
                    self.outputs.extend(to.map(|path| Output::Send(path, bytes)));
                }
                outflow_dtls::Output::Agreed(agreed) => self.agree(now, &agreed),
                outflow_dtls::Output::Ended(why) => self.end(End::Dtls(why)),
                outflow_dtls::Output::Wait(_) => return,
            }
        }
    }

    fn agree(&mut self, now: Time, agreed: &Agreed) {
        let Agreed { profile, halves } = agreed;
        let (sealer, opener) = (Sealer::new(*profile, &halves.server), Opener::new(*profile, &halves.client));
        self.keys = Some(Keys { profile: *profile, halves: halves.clone(), sealer, opener });
        // It has signed what was sent to it there.
        if let Some(path) = self.at {
            self.agent.handle_proof(now, path);
        }
        self.outputs.push_back(Output::Ready);
    }

    fn end(&mut self, why: End) {
        if !core::mem::replace(&mut self.has_ended, true) {
            self.outputs.push_back(Output::Ended(why));
        }
    }
}

/// What is neither STUN nor DTLS.
enum Packet {
    Media,
    Control,
}

impl Packet {
    /// By its first bytes (RFC 7983, section 7; RFC 5761, section 4).
    fn of(datagram: &[u8]) -> Option<Self> {
        match datagram {
            [128..=191, 192..=223, ..] => Some(Packet::Control),
            [128..=191, _, ..] => Some(Packet::Media),
            _ => None,
        }
    }
}
