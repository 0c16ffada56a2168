//! A receiver with a state machine of its own, by what is public alone: a protocol of a few lines.

#![allow(clippy::disallowed_methods, reason = "a test of sockets and files")]

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use outflow_control::{Control, Playing, PublishOptions, Publisher, Relay};
use outflow_engine::message::{CloseReason, Delivery, Outlet, Peer, PeerEvent, PeerPath, PeerWake, Receiver};
use outflow_engine::{Packets, Recent};
use outflow_media::ecn::Mark;
use outflow_media::{Format, Time, Track};
use outflow_packet::TrackMask;
use outflow_relay::{Encapsulation, Report};
use outflow_rtp::{PlainHeader, RtpHeader};
use outflow_udp::{HandedOver, Options, Parcel, Udp};
use tokio::time::timeout;

/// Longer than anything here takes, so that a failure is one and no hang.
const PATIENCE: Duration = Duration::from_secs(20);

/// The protocol: each packet is a datagram behind a `P`, and goes when the receiver has said `next`. It ends with
/// a `C` and the reason, or when the receiver says `bye`.
#[derive(Debug)]
struct Slow {
    to: SocketAddr,
    credit: usize,
    sends: Vec<Bytes>,
    events: Vec<PeerEvent>,
}

impl Peer for Slow {
    fn write(
        &mut self,
        _: Time,
        packets: &mut Packets<'_>,
        _: Option<&mut dyn Outlet>,
        _: &mut dyn FnMut(Report),
    ) -> usize {
        let taken = packets.heads().len().min(self.credit);
        self.credit -= taken;
        self.sends.extend((0..taken).map(|index| packets.joined(index, b"P")));
        taken
    }

    fn write_rtcp(&mut self, _: Time, _: u8, _: &[u8]) {}

    fn handle_datagram(&mut self, _: Time, _: (SocketAddr, Mark), datagram: &mut [u8], _: &Recent) {
        if datagram == b"next" {
            self.credit += 1;
            self.events.push(PeerEvent::Report(Report::Writable));
        } else {
            self.events.push(PeerEvent::Closed("bye".to_owned()));
        }
    }

    fn poll_transmit(&mut self, _: Time, out: &mut Vec<u8>) -> Option<(SocketAddr, Mark)> {
        if self.sends.is_empty() {
            return None;
        }
        out.extend_from_slice(&self.sends.remove(0));
        Some((self.to, Mark::None))
    }

    fn next_timeout(&self) -> Option<(Time, PeerWake)> {
        None
    }

    fn handle_timeout(&mut self, _: Time, _: &Recent) {}

    fn poll_event(&mut self) -> Option<PeerEvent> {
        self.events.pop()
    }

    fn close(&mut self, _: Time, why: &str) {
        self.sends.push([b"C", why.as_bytes()].concat().into());
    }
}

async fn relay() -> Relay {
    let config = "[listen]\nrtsp = \"off\"\nhttp = \"off\"\nrtp_ports = \"46400-46599\"\n[streams.live]\n";
    let known = outflow_fronts::protocols();
    let config = outflow_config::Config::parse(config, "test", &known);
    let config = config.unwrap_or_else(|errors| panic!("{errors}"));
    Relay::start(config, None, outflow_fronts::all(), None).await.expect("started")
}

async fn camera(control: &Control) -> Publisher {
    let format = Format::Rtp(vec![Track::h264()]);
    let options = PublishOptions { format, peer: "test".to_owned(), configured: false };
    control.publish("live", options).await.expect("free")
}

fn key_frame(sequence: u16) -> BytesMut {
    let timestamp = u32::from(sequence) * 3_600;
    let header = PlainHeader { marker: true, payload_type: 96, sequence, timestamp, ssrc: 7 };
    let mut packet = BytesMut::from(&header.emit()[..]);
    packet.extend_from_slice(&[0x65, 0xb0]);
    packet
}

/// A receiver, and what it says to the worker.
struct Player {
    playing: Playing,
    wire: UdpSocket,
}

impl Player {
    async fn join(control: &Control) -> Player {
        let here = SocketAddr::from(([127, 0, 0, 1], 0));
        let wire = UdpSocket::bind(here).expect("a port");
        wire.set_read_timeout(Some(PATIENCE)).expect("set");
        let peer = wire.local_addr().expect("bound");
        let receiver = Receiver::new("slow", peer, Default::default());
        let playing = control
            .play("live", receiver, Delivery::Peer(Encapsulation::Rtp, 1, TrackMask::ALL))
            .await
            .expect("a place");
        let udp = Arc::new(Udp::bind(here, &Options::default()).expect("a port"));
        let slow = Slow { to: peer, credit: 0, sends: Vec::new(), events: Vec::new() };
        playing.start_peer(Box::new(slow), PeerPath { udp, peer, own: None });
        // Its worker has it when it answers what is asked after that; what comes before is lost, as any datagram may be.
        let _answered = control.set_view(playing.id(), Default::default()).await;
        Player { playing, wire }
    }

    fn says(&self, text: &[u8]) {
        let mut parcel = Parcel::default();
        let from = self.wire.local_addr().expect("bound");
        let (peer, bytes) = (self.playing.id(), &mut text.to_vec()[..]);
        parcel.add(&HandedOver { peer, from, to: None, mark: Mark::None, bytes });
        assert_eq!(self.playing.inbox().give(parcel), 0, "there is room");
    }

    fn hears(&self) -> Vec<u8> {
        let mut buffer = [0; 2000];
        let length = self.wire.recv(&mut buffer).expect("it was sent");
        buffer[..length].to_vec()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn packets_go_at_the_pace_of_the_receiver_from_where_it_joined() {
    let relay = relay().await;
    let camera = camera(relay.control()).await;
    camera.try_send(0, key_frame(0));
    let player = Player::join(relay.control()).await;
    for sequence in 0..5 {
        if sequence > 0 {
            camera.try_send(0, key_frame(sequence));
        }
        player.says(b"next");
        let heard = player.hears();
        assert_eq!(heard[0], b'P');
        assert_eq!(RtpHeader::new_checked(&heard[1..]).expect("RTP").sequence(), sequence);
    }
    relay.shut_down();
}

#[tokio::test(flavor = "multi_thread")]
async fn both_ends_learn_of_the_other_s_end() {
    let relay = relay().await;
    let _camera = camera(relay.control()).await;
    let mut leaving = Player::join(relay.control()).await;
    leaving.says(b"bye");
    let reason = timeout(PATIENCE, leaving.playing.closed()).await.expect("in time");
    assert_eq!(reason, CloseReason::PeerGone);

    let mut staying = Player::join(relay.control()).await;
    relay.shut_down();
    let reason = timeout(PATIENCE, staying.playing.closed()).await.expect("in time");
    assert_eq!(reason, CloseReason::ShuttingDown);
    assert_eq!(staying.hears(), format!("C{reason}").into_bytes());
}
