//! A stream over the partial-order transport.

use core::time::Duration;
use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::time::Instant;

use bytes::Bytes;
use minicbor::{Decode, Encode};
use outflow_media::Time;
use outflow_poc::connection::{By, Event, Worth};
use outflow_poc::packet::Code;
use outflow_poc_socket::media::{Form, Packet as Unit};
use outflow_poc_socket::save::{Returning, SavedEnd};
use outflow_poc_socket::{Address, OpenError, PocSocket, look_up, media};
use outflow_rtp::sdp;
use tokio::time::{sleep, sleep_until, timeout};

use crate::described::Described;
use crate::track::{RtpTrack, SavedRtpTrack};
use crate::{Error, Options, Received};

/// How long a datagram may take to leave.
const GOODBYE: Duration = Duration::from_millis(20);

/// A connection that a stream comes by.
#[derive(Debug)]
pub(crate) struct PocSession {
    socket: PocSocket,
    tracks: Vec<RtpTrack>,
    strangers: u64,
}

/// A connection as it is handed over, beside the descriptor of its socket.
#[derive(Encode, Decode)]
#[cbor(map)]
pub(crate) struct SavedPoc {
    #[n(0)]
    end: SavedEnd,
    #[n(1)]
    tracks: Vec<SavedRtpTrack>,
}

impl PocSession {
    /// Asks for `url` until its description is there.
    pub(crate) async fn start(url: &str, options: &Options) -> Result<(PocSession, Described), Error> {
        let mut address: Address = url.parse().map_err(|e| Error::url(url, format!("{e}")))?;
        if let Some(token) = &options.token {
            address.resource = media::with_query(&address.resource, "token", token);
        }
        let sockets = options.poc.clone().ok_or_else(|| {
            Error::url(url, "say how it is encrypted: give the keys of both ends, or say that nothing is")
        })?;
        let unknown = |error| Error::Unknown { host: address.place.clone(), error };
        let place = look_up(&address).await.map_err(unknown)?;
        let request = media::to_receive(&address.resource, Form::Rtp, options.poc_latency);
        let connecting = PocSocket::connect(place, request, &sockets);
        let slow = |doing: &str| Error::Slow { doing: doing.to_owned(), after: options.patience };
        let connected = timeout(options.patience, connecting).await.map_err(|_| slow("connecting"))?;
        let socket = connected.map_err(|error| refused(&address, error))?;
        let described = timeout(options.patience, next(&socket)).await;
        let text = described.map_err(|_| slow("waiting for the description"))??;
        let description = sdp::parse(&text).map_err(|e| Error::Description(e.to_string()))?;
        let described = Described::of(&description);
        let tracks = (0..).zip(&description.media);
        let tracks = tracks.map(|(index, media)| RtpTrack::new(index, &media.track, options.seed)).collect();
        Ok((PocSession { socket, tracks, strangers: 0 }, described))
    }

    /// What another process goes on with; its descriptor is put to the others. It stands still then. None if it cannot.
    pub(crate) async fn save(&self, epoch: Instant, descriptors: &mut Vec<OwnedFd>) -> Option<SavedPoc> {
        let (end, socket) = self.socket.end().stand(epoch).await.ok()?;
        descriptors.push(socket);
        Some(SavedPoc { end, tracks: self.tracks.iter().map(RtpTrack::save).collect() })
    }

    /// It goes on here.
    pub(crate) fn go_on(&self) {
        self.socket.end().go_on();
    }

    /// It goes on elsewhere.
    pub(crate) fn vanish(&self) {
        self.socket.end().vanish();
    }

    /// Goes on with what another process has saved. None if that cannot be.
    pub(crate) fn restore(
        options: &Options,
        saved: SavedPoc,
        descriptors: Vec<OwnedFd>,
        epoch: Instant,
    ) -> Option<Self> {
        let socket = descriptors.into_iter().next()?;
        let socket = Returning::client(options.poc.clone()?, (&saved.end, socket), epoch).ok()?;
        let tracks = (0..=u8::MAX).zip(saved.tracks);
        let tracks = tracks.map(|(index, track)| RtpTrack::restore(index, track)).collect();
        Some(PocSession { socket, tracks, strangers: 0 })
    }

    pub(crate) fn malformed(&self) -> u64 {
        self.tracks.iter().map(|track| track.malformed).sum()
    }

    pub(crate) fn strangers(&self) -> u64 {
        self.strangers
    }

    /// Asks for a level, beside the media of a track.
    pub(crate) fn ask(&mut self, now: Time, track: u8, level: u8) {
        if let Some(track) = self.tracks.get_mut(usize::from(track)) {
            track.ask(now, level);
        }
    }

    /// Asks for a key frame of a track.
    pub(crate) fn ask_key_frame(&mut self, track: u8) {
        if let Some(track) = self.tracks.get_mut(usize::from(track)) {
            track.ask_key_frame();
        }
    }

    /// Says goodbye, and gives that a moment to go.
    pub(crate) async fn close(self) {
        self.socket.close(Code::DONE, "");
        sleep(GOODBYE).await;
    }

    /// Waits for something to happen, once. Nothing is lost if this is cancelled.
    pub(crate) async fn advance(
        &mut self,
        options: &Options,
        queue: &mut VecDeque<Received>,
    ) -> Result<(), Error> {
        let clock = options.clock;
        self.send_due(clock.now());
        let due = self.tracks.iter().filter_map(RtpTrack::rtcp_at).min();
        let due = clock.instant(due.unwrap_or_else(|| clock.now() + options.patience));
        let unit = tokio::select! {
            unit = next(&self.socket) => unit?,
            () = sleep_until(due) => return Ok(()),
        };
        self.take(unit, clock.now(), queue);
        Ok(())
    }

    /// Reports and wishes that are due. What there is no room for is due again soon enough.
    fn send_due(&mut self, now: Time) {
        for (index, track) in (0..).zip(&mut self.tracks) {
            while let Some(bytes) = track.rtcp(now) {
                _ = self.socket.try_send_unit(None, Unit::rtcp(index, &bytes), Worth::default());
            }
        }
    }

    fn take(&mut self, unit: Bytes, now: Time, queue: &mut VecDeque<Received>) {
        let packet = Unit::read(unit);
        let track = packet.as_ref().and_then(|packet| self.tracks.get_mut(usize::from(packet.track)));
        match (track, packet) {
            (Some(track), Some(packet)) if packet.is_rtcp => track.control(&packet.bytes, now, queue),
            (Some(track), Some(packet)) => track.media(packet.bytes, now, queue),
            _ => self.strangers += 1,
        }
    }
}

/// The next unit that is delivered. Nothing is lost if this is cancelled.
async fn next(socket: &PocSocket) -> Result<Bytes, Error> {
    loop {
        match socket.event().await {
            Event::Delivered { data, .. } => return Ok(data),
            Event::Closed(closed) if closed.by == By::Peer && closed.text.is_empty() => {
                return Err(Error::Ended);
            }
            Event::Closed(closed) => return Err(Error::Poc { text: closed.text, code: closed.code.0 }),
            _ => (),
        }
    }
}

fn refused(address: &Address, error: OpenError) -> Error {
    Error::Connect { to: address.place.clone(), error: std::io::Error::other(error) }
}
