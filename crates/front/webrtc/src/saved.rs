//! What another process is told of the port and of viewers, so that it goes on with them. There are keys in it: it goes
//! through the pipe between the two, and nowhere else. Numbers of fields are never given to something else.

use minicbor::bytes::ByteVec;
use minicbor::{Decode, Encode};
use outflow_ice::{Credentials, Path};
use outflow_media::Time;
use outflow_srtp::{Halves, Profile};
use outflow_webrtc::Saved;

/// The port.
#[derive(Debug, Encode, Decode)]
#[cbor(map)]
pub(crate) struct SavedPort {
    /// The certificate that peers know the relay by, in DER.
    #[n(0)]
    pub(crate) certificate: ByteVec,
    /// Its key, in PKCS #8 in DER.
    #[n(1)]
    pub(crate) key: ByteVec,
    /// The receivers that have come to it.
    #[n(2)]
    pub(crate) viewers: Vec<u64>,
}

/// A viewer.
#[derive(Debug, Encode, Decode)]
#[cbor(map)]
pub(crate) struct SavedViewer {
    #[n(0)]
    pub(crate) session: SavedSession,
    #[n(1)]
    pub(crate) tracks: Vec<SavedTrack>,
    /// The number of its next packet among all of the transport, and what its way carries, in bits a second.
    #[n(2)]
    pub(crate) way: Option<(u16, u64)>,
    /// What its session was told to be known by.
    #[n(3)]
    pub(crate) token: String,
    /// Of one that takes repair packets: by which payload type and SSRC they go, for which SSRC, and the number of the next.
    #[n(4)]
    pub(crate) protection: Option<(u8, u32, u32, u32)>,
}

/// Where a peer is, and what is sealed for it by what.
#[derive(Encode, Decode)]
#[cbor(map)]
pub(crate) struct SavedSession {
    /// The own name and password.
    #[n(0)]
    ours: (String, String),
    #[n(1)]
    theirs: (String, String),
    /// Its address.
    #[n(2)]
    at: String,
    /// When it was heard of last, in nanoseconds of the relay's clock.
    #[n(3)]
    heard: u64,
    /// The number of the profile of SRTP.
    #[n(4)]
    profile: u16,
    #[n(5)]
    material: ByteVec,
    #[n(6)]
    next_control: u32,
    /// The gateway by which it comes, by its port; none where it comes by UDP.
    #[n(7)]
    gateway: Option<u32>,
}

/// A track as it goes to a viewer.
#[derive(Debug, Encode, Decode)]
#[cbor(map)]
pub(crate) struct SavedTrack {
    /// Its number in the stream.
    #[n(0)]
    pub(crate) number: u8,
    #[n(1)]
    pub(crate) payload_type: u8,
    #[n(2)]
    pub(crate) ssrc: u32,
    #[n(3)]
    pub(crate) is_video: bool,
    #[n(4)]
    pub(crate) repair: Option<(u8, u32)>,
    #[n(5)]
    pub(crate) delay: Option<u8>,
    #[n(6)]
    pub(crate) transport: Option<u8>,
    #[n(7)]
    pub(crate) splitter: u8,
    #[n(8)]
    pub(crate) source: Option<u32>,
    #[n(9)]
    pub(crate) sets: Option<ByteVec>,
    #[n(10)]
    pub(crate) key_at: Option<u32>,
    #[n(11)]
    pub(crate) first: u32,
    #[n(12)]
    pub(crate) newest: Option<(u16, u32)>,
    #[n(13)]
    pub(crate) given: u64,
    #[n(14)]
    pub(crate) next_repair: u32,
    /// Of the dependency descriptor: the stream's number of the extension, and the viewer's.
    #[n(15)]
    pub(crate) descriptor: Option<(u8, u8)>,
    /// What is added to the stream's numbers of frames, and the newest.
    #[n(16)]
    pub(crate) frames: Option<(u16, u16)>,
}

impl From<Saved> for SavedSession {
    fn from(Saved { agent, profile, halves, next_control }: Saved) -> Self {
        let pair = |Credentials { ufrag, password }| (ufrag, password);
        SavedSession {
            ours: pair(agent.ours),
            theirs: pair(agent.theirs),
            at: agent.selected.peer.to_string(),
            heard: agent.heard.as_nanos(),
            profile: profile as u16,
            material: halves.material().into(),
            next_control,
            gateway: Some(agent.selected.own).filter(|own| *own > 0),
        }
    }
}

impl SavedSession {
    /// None if it cannot be read.
    pub(crate) fn read(self) -> Option<Saved> {
        let of = |(ufrag, password)| Credentials { ufrag, password };
        let profile = Profile::of(self.profile)?;
        let agent = outflow_ice::Saved {
            ours: of(self.ours),
            theirs: of(self.theirs),
            selected: Path { own: self.gateway.unwrap_or(0), peer: self.at.parse().ok()? },
            heard: Time::from_nanos(self.heard),
        };
        let halves = Halves::new(profile, &self.material)?;
        Some(Saved { agent, profile, halves, next_control: self.next_control })
    }
}

/// It has keys.
impl core::fmt::Debug for SavedSession {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("SavedSession").field("at", &self.at).finish_non_exhaustive()
    }
}

/// As it is handed over.
pub(crate) fn encode(value: &impl Encode<()>) -> Vec<u8> {
    // Nothing that is written to memory fails.
    minicbor::to_vec(value).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_viewer_goes_on_by_the_path_that_it_had_be_that_a_gateway_or_not() {
        let credentials = || Credentials { ufrag: "name".to_owned(), password: "password".to_owned() };
        let profile = Profile::ALL[0];
        for own in [0, 40_000] {
            let selected = Path { own, peer: ([192, 0, 2, 1], 50_000).into() };
            let (ours, theirs, heard) = (credentials(), credentials(), Time::from_nanos(7));
            let agent = outflow_ice::Saved { ours, theirs, selected, heard };
            let halves = Halves::new(profile, &vec![7; Halves::bytes(profile)]).expect("as many bytes");
            let saved: SavedSession = Saved { agent: agent.clone(), profile, halves, next_control: 3 }.into();
            let read: SavedSession = minicbor::decode(&encode(&saved)).expect("it is read");
            assert_eq!(read.read().map(|saved| saved.agent), Some(agent));
        }
    }
}
