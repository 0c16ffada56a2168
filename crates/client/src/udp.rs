//! RTP tracks that come by UDP, each with its RTCP beside it.

use core::task::Poll;
use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;

use minicbor::{Decode, Encode};
use outflow_media::Time;
use outflow_rtp::{PlainHeader, is_rtcp};
use tokio::net::UdpSocket;

use crate::socket::{self, Datagrams};
use crate::track::RtpTrack;
use crate::{Error, Received};

/// The sockets of one track.
#[derive(Debug)]
pub(crate) struct UdpTrack {
    rtp: Datagrams,
    /// There is none if its port was taken: RTP is received all the same.
    rtcp: Option<Datagrams>,
    /// Where reports go: as agreed on, or where the sender's come from.
    reports_to: Option<SocketAddr>,
    /// Reports go where the sender's come from. Not so for groups, where all would send them.
    learns: bool,
}

/// The sockets of a track as another process goes on with them. Their descriptors stand beside it, RTP's first.
#[derive(Debug, Encode, Decode)]
#[cbor(map)]
pub(crate) struct SavedUdpTrack {
    #[n(0)]
    has_rtcp: bool,
    #[n(1)]
    only_from: Option<String>,
    #[n(2)]
    reports_to: Option<String>,
    #[n(3)]
    learns: bool,
    #[n(4)]
    strangers: u64,
}

impl UdpTrack {
    /// What another process goes on with; its descriptors are put to the others.
    pub(crate) fn save(&self, descriptors: &mut Vec<OwnedFd>) -> Option<SavedUdpTrack> {
        let sockets = [Some(&self.rtp), self.rtcp.as_ref()];
        for socket in sockets.into_iter().flatten() {
            descriptors.push(socket.copied()?);
        }
        Some(SavedUdpTrack {
            has_rtcp: self.rtcp.is_some(),
            only_from: self.rtp.only_from.map(|from| from.to_string()),
            reports_to: self.reports_to.map(|to| to.to_string()),
            learns: self.learns,
            strangers: self.strangers(),
        })
    }

    /// Goes on with what another process has saved; none if that cannot be.
    pub(crate) fn restore(
        saved: SavedUdpTrack,
        descriptors: &mut impl Iterator<Item = OwnedFd>,
    ) -> Option<Self> {
        let mut next = || socket::taken(descriptors.next()?).ok();
        let (rtp, rtcp) = (next()?, if saved.has_rtcp { Some(next()?) } else { None });
        let mut track = UdpTrack::new(rtp, rtcp, saved.learns);
        track.rtp.strangers = saved.strangers;
        track.reports_to = saved.reports_to.map(|to| to.parse()).transpose().ok()?;
        let only_from = saved.only_from.map(|from| from.parse()).transpose().ok()?;
        only_from.into_iter().for_each(|from| track.hear_only(from));
        Some(track)
    }

    pub(crate) fn new(rtp: UdpSocket, rtcp: Option<UdpSocket>, learns: bool) -> Self {
        UdpTrack { rtp: Datagrams::new(rtp), rtcp: rtcp.map(Datagrams::new), reports_to: None, learns }
    }

    /// Only `from` is heard from now on.
    pub(crate) fn hear_only(&mut self, from: IpAddr) {
        self.rtp.only_from = Some(from);
        if let Some(rtcp) = &mut self.rtcp {
            rtcp.only_from = Some(from);
        }
    }

    /// Reports go to `rtcp`. Sends a packet there and to `rtp`, so that what translates addresses
    /// in between lets the answers through.
    pub(crate) fn greet(&mut self, rtp: SocketAddr, rtcp: SocketAddr, ssrc: u32) {
        self.reports_to = Some(rtcp);
        self.learns = false;
        let header = PlainHeader { marker: false, payload_type: 127, sequence: 0, timestamp: 0, ssrc }.emit();
        let _ = self.rtp.socket().try_send_to(&header, rtp);
        self.send(&outflow_rtp::rtcp::receiver_report(ssrc, &[], "outflow"));
    }

    /// Reports are a courtesy: if one cannot be sent, the next one will do.
    pub(crate) fn send(&self, report: &[u8]) {
        if let (Some(rtcp), Some(to)) = (&self.rtcp, self.reports_to) {
            let _ = rtcp.socket().try_send_to(report, to);
        }
    }

    pub(crate) fn strangers(&self) -> u64 {
        self.rtp.strangers + self.rtcp.as_ref().map_or(0, |rtcp| rtcp.strangers)
    }

    fn receive(
        &mut self,
        track: &mut RtpTrack,
        now: Time,
        queue: &mut VecDeque<Received>,
    ) -> Result<(), Error> {
        let received = self.rtp.receive(|bytes, _| {
            if is_rtcp(&bytes) {
                track.control(&bytes, now, queue);
            } else {
                track.media(bytes, now, queue);
            }
        });
        received.map_err(Error::system("receiving RTP"))?;
        let Some(rtcp) = &mut self.rtcp else { return Ok(()) };
        let (learns, reports_to) = (self.learns, &mut self.reports_to);
        let received = rtcp.receive(|bytes, from| {
            if learns {
                *reports_to = Some(from);
            }
            track.control(&bytes, now, queue);
        });
        received.map_err(Error::system("receiving RTCP"))
    }
}

/// Waits until one of the sockets has something; for ever if there are none.
pub(crate) async fn readable(all: &[UdpTrack]) {
    core::future::poll_fn(|cx| {
        let sockets = all.iter().flat_map(|track| [Some(&track.rtp), track.rtcp.as_ref()]).flatten();
        let mut ready = false;
        for socket in sockets {
            ready |= socket.socket().poll_recv_ready(cx).is_ready();
        }
        if ready { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}

/// Takes what is there from the sockets of all tracks.
pub(crate) fn receive(
    all: &mut [UdpTrack],
    tracks: &mut [RtpTrack],
    now: Time,
    queue: &mut VecDeque<Received>,
) -> Result<(), Error> {
    for (udp, track) in all.iter_mut().zip(tracks) {
        udp.receive(track, now, queue)?;
    }
    Ok(())
}
