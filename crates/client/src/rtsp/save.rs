//! A session that goes on in another process, on the same connection and sockets.

use std::net::TcpStream as StdTcpStream;
use std::os::fd::OwnedFd;

use bytes::BytesMut;
use minicbor::{Decode, Encode};
use outflow_rtsp::Lower;
use outflow_rtsp::client::{RtspClient, SavedClient};
use tokio::net::TcpStream;

use super::{Connection, RtspSession, client_options};
use crate::Options;
use crate::limits::UNSENT_BYTES;
use crate::track::{RtpTrack, SavedRtpTrack};
use crate::udp::{SavedUdpTrack, UdpTrack};

/// A session that plays. Its descriptors stand beside it: the connection's, then those of its sockets.
#[derive(Encode, Decode)]
#[cbor(map)]
pub(crate) struct SavedRtsp {
    #[n(0)]
    client: SavedClient,
    /// How it was to be asked for.
    #[n(1)]
    asked_for_udp: bool,
    #[n(2)]
    tracks: Vec<SavedRtpTrack>,
    #[n(3)]
    udp: Vec<SavedUdpTrack>,
    /// What was received, and is not a whole message.
    #[cbor(n(4), with = "minicbor::bytes")]
    input: Vec<u8>,
    /// What was not sent yet.
    #[cbor(n(5), with = "minicbor::bytes")]
    output: Vec<u8>,
}

impl RtspSession {
    /// What another process goes on with; its descriptors are put to the others. None if it cannot: over TLS, say.
    pub(crate) fn save(&self, descriptors: &mut Vec<OwnedFd>) -> Option<SavedRtsp> {
        let wire = self.wire.as_ref()?;
        descriptors.push(wire.io.plain()?.try_clone_to_owned().ok()?);
        let udp = self.udp.iter().map(|track| track.save(descriptors));
        Some(SavedRtsp {
            udp: udp.collect::<Option<_>>()?,
            client: self.client.save()?,
            asked_for_udp: self.options.transport == Lower::Udp,
            tracks: self.tracks.iter().map(RtpTrack::save).collect(),
            input: wire.input.to_vec(),
            output: wire.output.to_vec(),
        })
    }

    /// Goes on with what another process has saved of a session with this URL. None if that cannot be, or if it is to be
    /// asked for in another way now.
    pub(crate) fn restore(
        url: &str,
        options: &Options,
        saved: SavedRtsp,
        descriptors: Vec<OwnedFd>,
    ) -> Option<Self> {
        if saved.asked_for_udp != (options.transport == Lower::Udp) || saved.output.len() > UNSENT_BYTES {
            return None;
        }
        let mut descriptors = descriptors.into_iter();
        let tcp = StdTcpStream::from(descriptors.next()?);
        tcp.set_nonblocking(true).ok()?;
        let tcp = TcpStream::from_std(tcp).ok()?;
        let (peer, local) = (tcp.peer_addr().ok()?.ip().to_canonical(), tcp.local_addr().ok()?.ip());
        let client = RtspClient::restore(url, client_options(options), saved.client)?;
        let mut session = RtspSession::of(client, options);
        let udp = saved.udp.into_iter().map(|track| UdpTrack::restore(track, &mut descriptors));
        session.udp = udp.collect::<Option<_>>()?;
        session.tracks =
            (0..=u8::MAX).zip(saved.tracks).map(|(index, track)| RtpTrack::restore(index, track)).collect();
        let (input, output) = (BytesMut::from(&saved.input[..]), BytesMut::from(&saved.output[..]));
        session.wire = Some(Connection { io: Box::new(tcp), peer, local, input, output });
        session.playing = true;
        Some(session)
    }
}
