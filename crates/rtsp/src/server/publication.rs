//! A session that publishes: its tracks, and whether it records.

use bytes::Bytes;
use outflow_media::{Codec, Track};
use outflow_rtp::sdp::MediaDescription;
use outflow_rtp::{rtcp, sdp};
use rtsp_types::{StatusCode, headers};
use url::Url;

use super::address::{Address, is_control, path_of};
use super::offer::{check_channels, offered};
use super::reply::{Reply, out_of_order};
use super::save::{SavedMedia, SavedPublication, Unfit};
use crate::{Lower, Pair, Request, Transport, interleaved_prefix};

/// The name under which the relay asks.
const CNAME: &str = "outflow";

/// A session that publishes, or will.
#[derive(Debug)]
pub(super) struct Publication {
    announced: Url,
    media: Vec<Media>,
    is_recording: bool,
    /// Key frames that were asked for; it wraps.
    requests: u8,
}

/// One of its tracks.
#[derive(Debug)]
struct Media {
    /// `a=control` of its description.
    control: Option<String>,
    setup: Option<Transport>,
    /// Of the last packet within the connection.
    ssrc: Option<u32>,
}

impl Publication {
    /// What an ANNOUNCE describes, and its tracks.
    ///
    /// # Errors
    /// It cannot be taken.
    pub(super) fn of(request: &Request) -> Result<(Self, Vec<Track>), Reply> {
        let unsupported = |why: String| Reply::error(StatusCode::UnsupportedMediaType, why);
        let description = sdp::parse(request.body()).map_err(|error| unsupported(error.to_string()))?;
        let is_ts = |media: &MediaDescription| media.track.codec == Codec::Mp2t;
        if description.media.len() > 1 && description.media.iter().any(is_ts) {
            return Err(unsupported("a transport stream is published alone".to_owned()));
        }
        let announced = request.request_uri().cloned().ok_or_else(|| out_of_order("no URL"))?;
        let media = |media: MediaDescription| {
            (media.track, Media { control: media.control, setup: None, ssrc: None })
        };
        let (tracks, media) = description.media.into_iter().map(media).unzip();
        Ok((Publication { announced, media, is_recording: false, requests: 0 }, tracks))
    }

    /// What goes on in another process.
    pub(super) fn save(&self) -> SavedPublication {
        let media = |media: &Media| SavedMedia {
            control: media.control.clone(),
            setup: media.setup.as_ref().map(Transport::to_string),
            ssrc: media.ssrc,
        };
        SavedPublication {
            announced: self.announced.to_string(),
            media: self.media.iter().map(media).collect(),
            is_recording: self.is_recording,
            requests: self.requests,
        }
    }

    /// Goes on from what another process has saved.
    ///
    /// # Errors
    /// What cannot be taken up.
    pub(super) fn restore(saved: SavedPublication) -> Result<Self, Unfit> {
        let SavedPublication { announced, media, is_recording, requests } = saved;
        let announced =
            Url::parse(&announced).map_err(|_| Unfit::new("it was announced by what is no URL"))?;
        let track = |SavedMedia { control, setup, ssrc }| match setup {
            Some(text) => Some(Media { control, setup: Some(Transport::parse(&text)?), ssrc }),
            None => Some(Media { control, setup: None, ssrc }),
        };
        let media = media.into_iter().map(track).collect::<Option<_>>();
        let media = media.ok_or(Unfit::new("how a track is carried is not known here"))?;
        Ok(Publication { announced, media, is_recording, requests })
    }

    /// The URL that it was announced by.
    pub(super) fn announced(&self) -> &Url {
        &self.announced
    }

    /// The track that a SETUP is about, and the first usable transport that it offers.
    ///
    /// # Errors
    /// It comes too late, there is no such track, or no usable transport.
    pub(super) fn choose(&self, request: &Request) -> Result<(u8, Transport), Reply> {
        if self.is_recording {
            return Err(out_of_order("tracks cannot be added while recording"));
        }
        let track = self.track(request.request_uri())?;
        let lower = self.lower();
        let usable = |t: &Transport| !t.multicast && lower.is_none_or(|lower| lower == t.lower);
        let chosen = offered(request).into_iter().find(usable).ok_or_else(|| {
            let why =
                "tracks are published over RTP/AVP/TCP or unicast RTP/AVP, all of a session the same way";
            Reply::error(StatusCode::UnsupportedTransport, why)
        })?;
        Ok((track, chosen))
    }

    /// How its tracks are carried, if it is to record now; nothing if it does.
    ///
    /// # Errors
    /// It has no tracks.
    pub(super) fn record(&self) -> Result<Option<Lower>, Reply> {
        if self.is_recording {
            return Ok(None);
        }
        self.lower().map(Some).ok_or_else(|| out_of_order("set a track up first"))
    }

    /// It records.
    pub(super) const fn recorded(&mut self) {
        self.is_recording = true;
    }

    /// Which track a SETUP is about. The right to set it up was shown when the stream was announced.
    fn track(&self, url: Option<&Url>) -> Result<u8, Reply> {
        // A URL that only names a track as it was announced need not be that of a stream.
        let is_it = |media: &Media| match (&media.control, url) {
            (Some(control), Some(url)) => is_control(url, &self.announced, control),
            _ => false,
        };
        let alone = || {
            let is_own = |url: &&Url| path_of(url) == path_of(&self.announced);
            url.filter(is_own).filter(|_| self.media.len() == 1).map(|_| 0)
        };
        let numbered = || Address::of(url?).track.filter(|track| *track < self.media.len());
        let found = self.media.iter().position(is_it).or_else(numbered).or_else(alone);
        let found = found.and_then(|track| u8::try_from(track).ok());
        found.ok_or_else(|| Reply::error(StatusCode::NotFound, "no media with this URL was announced"))
    }

    fn lower(&self) -> Option<Lower> {
        self.media.iter().find_map(|media| Some(media.setup.as_ref()?.lower))
    }

    /// The channels of a track: those that are asked for, or its own.
    ///
    /// # Errors
    /// Another track has them.
    pub(super) fn channels(&self, track: u8, asked: Option<Pair<u8>>) -> Result<Pair<u8>, Reply> {
        let own = track.checked_mul(2).unwrap_or(u8::MAX - 1);
        let channels = asked.unwrap_or(Pair { rtp: own, rtcp: own + 1 });
        let others = (0..=u8::MAX).zip(&self.media).filter(|(other, _)| *other != track);
        check_channels(channels, others.filter_map(|(_, media)| media.setup.as_ref()?.interleaved))?;
        Ok(channels)
    }

    /// One of its tracks is carried so. Returns the answer.
    pub(super) fn set_up(&mut self, track: u8, transport: Transport) -> Reply {
        let transport = Transport { record: true, ..transport };
        let reply = Reply::ok().with(headers::TRANSPORT, transport.to_string());
        if let Some(media) = self.media.get_mut(usize::from(track)) {
            media.setup = Some(transport);
        }
        reply
    }

    /// Of which track a packet within the connection is, and whether it is RTCP.
    pub(super) fn on_media(&mut self, channel: u8, bytes: &[u8]) -> Option<(u8, bool)> {
        let media = self.media.iter_mut().filter(|_| self.is_recording);
        for (track, media) in (0..=u8::MAX).zip(media) {
            let Some(pair) = media.setup.as_ref().and_then(|setup| setup.interleaved) else { continue };
            if pair.rtp == channel {
                media.ssrc = outflow_rtp::ssrc(bytes);
                return Some((track, false));
            }
            if pair.rtcp == channel {
                return Some((track, true));
            }
        }
        None
    }

    /// Asks for a key frame of a track, within the connection (RFC 2326, section 10.12).
    pub(super) fn key_frame_request(&mut self, from: u32, track: u8) -> Option<Bytes> {
        self.requests = self.requests.wrapping_add(1);
        let media = self.media.get(usize::from(track))?;
        let channel = media.setup.as_ref()?.interleaved?.rtcp;
        let request = rtcp::key_frame_request(from, media.ssrc?, self.requests, CNAME);
        let prefix = interleaved_prefix(channel, u16::try_from(request.len()).ok()?);
        Some([&prefix[..], &request].concat().into())
    }
}
