//! Streams that come by UDP without a request: transport streams and RTP.

use std::collections::VecDeque;
use std::net::SocketAddr;

use bytes::Bytes;
use outflow_media::{Codec, Format, Time};
use outflow_rtp::sdp::MediaDescription;
use outflow_rtp::{RtpHeader, sdp};
use tokio::time::sleep_until;
use url::Url;

use crate::socket::{Datagrams, Place};
use crate::track::RtpTrack;
use crate::udp::UdpTrack;
use crate::{Error, Options, Packet, Received, RtpStamp, address, socket, udp};

/// Transport stream packets in datagrams.
#[derive(Debug)]
pub(crate) struct TsDatagrams {
    datagrams: Datagrams,
    options: Options,
    pub(crate) malformed: u64,
}

impl TsDatagrams {
    pub(crate) fn bind(url: &Url, options: &Options) -> Result<TsDatagrams, Error> {
        let place = address::parse(url)?;
        let mut datagrams = Datagrams::new(socket::bind(&place, options.receive_buffer)?);
        datagrams.only_from = place.source;
        Ok(TsDatagrams { datagrams, options: options.clone(), malformed: 0 })
    }

    pub(crate) fn strangers(&self) -> u64 {
        self.datagrams.strangers
    }

    pub(crate) async fn advance(&mut self, queue: &mut VecDeque<Received>) -> Result<(), Error> {
        self.datagrams.socket().readable().await.map_err(Error::system("receiving"))?;
        let arrived = self.options.clock.now();
        let malformed = &mut self.malformed;
        let received = self.datagrams.receive(|bytes, _| match ts_packet(bytes, arrived) {
            Some(packet) => queue.push_back(Received::Packet(packet)),
            None => *malformed += 1,
        });
        received.map_err(Error::system("receiving"))
    }
}

/// A datagram that holds transport stream packets, bare or behind an RTP header: senders of both
/// kinds are met under `udp://` URLs.
fn ts_packet(bytes: Bytes, arrived: Time) -> Option<Packet> {
    let is_ts = |bytes: &[u8]| !bytes.is_empty() && bytes.len().is_multiple_of(188) && bytes[0] == 0x47;
    if is_ts(&bytes) {
        return Some(Packet { track: 0, bytes, arrived, rtp: None });
    }
    let header = RtpHeader::new_checked(&bytes).ok().filter(|header| is_ts(header.payload()))?;
    let payload = header.payload_offset()..header.payload_offset() + header.payload().len();
    let (sequence, timestamp, ssrc) = (header.sequence(), header.timestamp(), header.ssrc());
    let rtp = Some(RtpStamp { sequence, timestamp, ssrc });
    Some(Packet { track: 0, bytes: bytes.slice(payload), arrived, rtp })
}

/// RTP tracks on ports that were agreed on before.
#[derive(Debug)]
pub(crate) struct RtpDatagrams {
    tracks: Vec<RtpTrack>,
    udp: Vec<UdpTrack>,
    options: Options,
}

impl RtpDatagrams {
    /// Binds as the URL and, if there is one, the session description say: ports are those of the
    /// description, or from the URL's on, two a track, where it names none.
    pub(crate) fn bind(url: &Url, options: &Options) -> Result<(RtpDatagrams, Format), Error> {
        let place = address::parse(url)?;
        let mut bound = RtpDatagrams { tracks: Vec::new(), udp: Vec::new(), options: options.clone() };
        let Some(text) = &options.sdp else {
            bound.add(&place, RtpTrack::transport_stream(options.seed))?;
            return Ok((bound, Format::Ts));
        };
        let description = sdp::parse(text.as_bytes()).map_err(|e| Error::Description(e.to_string()))?;
        let format = description.format();
        for (index, media) in description.media.iter().enumerate() {
            if format == Format::Ts && media.track.codec != Codec::Mp2t {
                continue;
            }
            let track = u8::try_from(bound.tracks.len()).unwrap_or(u8::MAX);
            let track = RtpTrack::new(track, &media.track, options.seed);
            bound.add(&place_of(&place, media, index)?, track)?;
        }
        Ok((bound, format))
    }

    fn add(&mut self, place: &Place, track: RtpTrack) -> Result<(), Error> {
        let rtp = socket::bind(place, self.options.receive_buffer)?;
        let above = place.at.port().checked_add(1);
        let rtcp = above.and_then(|port| {
            let at = SocketAddr::new(place.at.ip(), port);
            socket::bind(&Place { at, ..place.clone() }, 0).ok()
        });
        let mut udp = UdpTrack::new(rtp, rtcp, !place.at.ip().is_multicast());
        if let Some(source) = place.source {
            udp.hear_only(source);
        }
        self.udp.push(udp);
        self.tracks.push(track);
        Ok(())
    }

    pub(crate) fn malformed(&self) -> u64 {
        self.tracks.iter().map(|track| track.malformed).sum()
    }

    pub(crate) fn strangers(&self) -> u64 {
        self.udp.iter().map(UdpTrack::strangers).sum()
    }

    pub(crate) async fn advance(&mut self, queue: &mut VecDeque<Received>) -> Result<(), Error> {
        let clock = self.options.clock;
        let due = self.tracks.iter().filter_map(RtpTrack::rtcp_at).min();
        let due = clock.instant(due.unwrap_or_else(|| clock.now() + self.options.patience));
        tokio::select! {
            () = udp::readable(&self.udp) => {
                udp::receive(&mut self.udp, &mut self.tracks, clock.now(), queue)?;
            }
            () = sleep_until(due) => {}
        }
        for (udp, track) in self.udp.iter().zip(&mut self.tracks) {
            while let Some(bytes) = track.rtcp(clock.now()) {
                udp.send(&bytes);
            }
        }
        Ok(())
    }

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
}

fn place_of(place: &Place, media: &MediaDescription, index: usize) -> Result<Place, Error> {
    let mut at = place.at;
    let above = u16::try_from(2 * index).ok().and_then(|above| at.port().checked_add(above));
    let port = if media.port == 0 { above } else { Some(media.port) };
    at.set_port(port.ok_or_else(|| Error::Description("its ports exceed 65535".to_owned()))?);
    if let Some(group) = media.address.filter(|ip| ip.is_multicast() && at.ip().is_unspecified()) {
        at.set_ip(group);
    }
    let source = place.source.or(media.source).filter(|_| at.ip().is_multicast() || place.source.is_some());
    Ok(Place { at, source, interface: place.interface.clone() })
}

#[cfg(test)]
mod tests {
    use outflow_rtp::PlainHeader;

    use super::*;

    #[test]
    fn transport_streams_are_taken_bare_and_out_of_rtp() {
        let mut ts = vec![0; 1316];
        ts[0] = 0x47;
        let bare = ts_packet(ts.clone().into(), Time::ZERO).unwrap();
        assert_eq!((bare.bytes.len(), bare.rtp), (1316, None));
        let header = PlainHeader { marker: false, payload_type: 33, sequence: 9, timestamp: 5, ssrc: 1 };
        let wrapped = ts_packet([&header.emit()[..], &ts].concat().into(), Time::ZERO).unwrap();
        assert_eq!(wrapped.bytes, ts);
        assert_eq!(wrapped.rtp.unwrap().sequence, 9);
        for wrong in [&ts[..187], &ts[1..], &[]] {
            assert_eq!(ts_packet(Bytes::copy_from_slice(wrong), Time::ZERO), None);
        }
    }

    #[test]
    fn the_description_tells_ports_and_groups() {
        let text = b"v=0\r\no=- 0 0 IN IP4 127.0.0.1\r\ns=x\r\nc=IN IP4 239.1.2.3/4\r\nt=0 0\r\n\
            m=video 5000 RTP/AVP 96\r\na=rtpmap:96 H264/90000\r\n\
            m=audio 0 RTP/AVP 97\r\na=rtpmap:97 opus/48000/2\r\n";
        let description = sdp::parse(text).unwrap();
        let url = Url::parse("rtp://0.0.0.0:6000?interface=eth0").unwrap();
        assert!(address::parse(&url).is_err());
        let place = address::parse(&Url::parse("rtp://0.0.0.0:6000").unwrap()).unwrap();
        let places: Vec<_> =
            description.media.iter().enumerate().map(|(i, m)| place_of(&place, m, i).unwrap()).collect();
        assert_eq!(places[0].at, "239.1.2.3:5000".parse().unwrap());
        assert_eq!(places[1].at, "239.1.2.3:6002".parse().unwrap());
    }
}
