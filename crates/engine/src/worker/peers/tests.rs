//! Peers without a protocol, on real sockets.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use bytes::Bytes;
use outflow_media::ecn::Mark;
use outflow_packet::DropReason;
use outflow_udp::{HandedOver, Inbox, Options, Udp, inbox};

use super::*;
use crate::message::{Outlet, PeerWake};
use crate::send::Worth;

/// What a peer was told, and what it is to say.
#[derive(Debug, Default)]
struct Script {
    to: Option<SocketAddr>,
    /// Packets that it takes.
    room: usize,
    got: Vec<Bytes>,
    sends: VecDeque<Vec<u8>>,
    heard: Vec<(SocketAddr, Vec<u8>)>,
    due: Option<Time>,
    timeouts: usize,
    says: VecDeque<PeerEvent>,
    polled: usize,
    closed: Option<String>,
}

#[derive(Debug, Clone, Default)]
struct Fake(Arc<Mutex<Script>>);

impl Fake {
    fn script(&self) -> MutexGuard<'_, Script> {
        self.0.lock().expect("no panic")
    }
}

impl Peer for Fake {
    fn write(
        &mut self,
        _: Time,
        packets: &mut Packets<'_>,
        _: Option<&mut dyn Outlet>,
        tell: &mut dyn FnMut(Report),
    ) -> usize {
        let mut script = self.script();
        for index in 0..packets.heads().len() {
            if script.room == 0 {
                return index;
            }
            script.room -= 1;
            let packet = packets.joined(index, b"");
            if packet.starts_with(b"late") {
                tell(Report::GivenUp { reason: DropReason::Late, bytes: packet.len() as u64 });
            } else {
                script.sends.push_back(packet.to_vec());
                script.got.push(packet);
            }
        }
        packets.heads().len()
    }

    fn write_rtcp(&mut self, _: Time, track: u8, packet: &[u8]) {
        self.script().sends.push_back([&[track], packet].concat());
    }

    fn handle_datagram(&mut self, _: Time, (from, _): (SocketAddr, Mark), datagram: &mut [u8], _: &Recent) {
        self.script().heard.push((from, datagram.to_vec()));
    }

    fn poll_transmit(&mut self, _: Time, out: &mut Vec<u8>) -> Option<(SocketAddr, Mark)> {
        let mut script = self.script();
        script.polled += 1;
        out.extend(script.sends.pop_front()?);
        Some((script.to.expect("an address"), Mark::None))
    }

    fn next_timeout(&self) -> Option<(Time, PeerWake)> {
        self.script().due.map(|at| (at, PeerWake::Tell))
    }

    fn handle_timeout(&mut self, now: Time, _: &Recent) {
        let mut script = self.script();
        script.timeouts += 1;
        script.due = script.due.filter(|due| *due > now);
    }

    fn poll_event(&mut self) -> Option<PeerEvent> {
        self.script().says.pop_front()
    }

    fn close(&mut self, _: Time, why: &str) {
        let mut script = self.script();
        script.closed = Some(why.to_owned());
        script.sends.push_back(why.as_bytes().to_vec());
    }
}

/// Peers of a socket, and those that they are of.
struct Scene {
    peers: Peers,
    inbox: Inbox,
    udp: Arc<Udp>,
    receiver: UdpSocket,
}

impl Scene {
    fn new() -> Self {
        let here = SocketAddr::from(([127, 0, 0, 1], 0));
        let receiver = UdpSocket::bind(here).expect("a port");
        receiver.set_read_timeout(Some(Duration::from_secs(20))).expect("set");
        let (inbox, parcels) = inbox(8, Arc::new(|| ()));
        let udp = Arc::new(Udp::bind(here, &Options::default()).expect("a port"));
        Scene { peers: Peers::new(parcels), inbox, udp, receiver }
    }

    /// A peer of this number, which has had its first turn.
    fn add(&mut self, receiver: ReceiverId, class: Priority) -> (Fake, usize) {
        let peer = self.receiver.local_addr().expect("bound");
        let fake = Fake::default();
        (fake.script().to, fake.script().room) = (Some(peer), usize::MAX);
        let path = PeerPath { udp: Arc::clone(&self.udp), peer, own: None };
        let place = self.peers.add(Box::new(fake.clone()), path, (whose(receiver), class));
        assert!(!self.peers.transmit(Time::ZERO, (class, STREAM)));
        (fake, place)
    }

    /// Whether a peer of a class has something to do.
    fn is_ready(&mut self, class: Priority) -> bool {
        let ready = self.peers.ready.take((class, STREAM));
        self.peers.ready.put_back((class, STREAM), ready)
    }

    fn received(&self) -> Vec<u8> {
        let mut buffer = [0; 2000];
        let length = self.receiver.recv(&mut buffer).expect("it was sent");
        buffer[..length].to_vec()
    }
}

/// The stream that all are of.
const STREAM: usize = 0;

fn whose(receiver: ReceiverId) -> Whose {
    Whose { stream: STREAM, sink: SinkKey(receiver as usize), receiver }
}

fn piece(seq: u64, body: &[u8]) -> Piece<'_> {
    let (track, layer, ends, header, is_preamble) = (0, None, None, &[][..], false);
    Piece { seq, track, layer, ends, header, body, bytes: None, is_preamble, worth: Worth::most(Time::ZERO) }
}

#[tokio::test]
async fn an_order_goes_to_each_as_far_as_it_takes_it_in_the_same_bytes() {
    let mut scene = Scene::new();
    let fakes = [0, 1].map(|number| scene.add(number, Priority::Normal));
    fakes[1].0.script().room = 2;
    let pieces = [piece(5, b"one"), piece(6, b"late"), piece(7, b"two")];
    let place_of = |key: SinkKey| fakes.get(key.0).map(|(_, place)| *place);
    let mut reports = Vec::new();
    // The third is none of them.
    let members = [0, 1, 2].map(SinkKey);
    scene.peers.send(Time::ZERO, &pieces, &members, place_of, |key, report| reports.push((key.0, report)));
    let late = Report::GivenUp { reason: DropReason::Late, bytes: 4 };
    assert_eq!(reports, [(0, late), (1, late), (1, Report::Blocked { next: 7 })]);
    let [one, other] = [0, 1].map(|at: usize| fakes[at].0.script().got.clone());
    assert_eq!((&one[..], &other[..]), (&[&b"one"[..], b"two"].map(Bytes::from)[..], &one[..1]));
    assert_eq!(one[0].as_ptr(), other[0].as_ptr(), "put together once");

    assert!(!scene.peers.transmit(Time::ZERO, (Priority::Normal, STREAM)));
    let sent = [(); 3].map(|()| scene.received());
    assert_eq!(sent, [&b"one"[..], b"two", b"one"].map(<[u8]>::to_vec));
}

#[tokio::test]
async fn only_those_have_a_turn_to_which_something_has_happened() {
    let mut scene = Scene::new();
    let [(one, _), (other, at)] = [0, 1].map(|number| scene.add(number, Priority::Normal));
    let polled = one.script().polled;
    scene.peers.write_rtcp(Time::ZERO, at, 3, b"report");
    assert!(scene.is_ready(Priority::Normal) && !scene.is_ready(Priority::High));
    scene.peers.transmit(Time::ZERO, (Priority::Normal, STREAM));
    assert_eq!((scene.received(), one.script().polled), (b"\x03report".to_vec(), polled));
    other.script().says.push_back(PeerEvent::Closed("gone".to_owned()));
    scene.peers.write_rtcp(Time::ZERO, at, 3, b"report");
    scene.peers.transmit(Time::ZERO, (Priority::Normal, STREAM));
    let event = PeerEvent::Closed("gone".to_owned());
    assert_eq!(scene.peers.heard, [Heard { whose: whose(1), event }]);
}

#[tokio::test]
async fn deadlines_wake_those_whose_they_are() {
    let mut scene = Scene::new();
    let fakes = [0, 1, 2].map(|number| scene.add(number, Priority::Normal));
    for (at, (fake, place)) in fakes.iter().enumerate().take(2) {
        fake.script().due = Some(Time::from_millis(10 + 10 * at as u64));
        scene.peers.make_ready(*place);
    }
    scene.peers.transmit(Time::ZERO, (Priority::Normal, STREAM));
    let before = fakes.each_ref().map(|(fake, _)| fake.script().timeouts);
    let soon = Time::from_millis(15);
    assert_eq!(scene.peers.due(), Some(Time::from_millis(10)));
    scene.peers.wake(soon);
    assert_eq!(scene.peers.due(), Some(Time::from_millis(20)));
    scene.peers.transmit(soon, (Priority::Normal, STREAM));
    let after = fakes.each_ref().map(|(fake, _)| fake.script().timeouts);
    assert_eq!([0, 1, 2].map(|at: usize| after[at] - before[at]), [1, 0, 0]);
    scene.peers.remove(soon, fakes[1].1, None);
    assert_eq!(scene.peers.due(), None, "one that has left has no deadline");
}

#[tokio::test]
async fn what_comes_is_given_to_whose_it_is() {
    let mut scene = Scene::new();
    let [(one, _), (other, place)] = [3, 4].map(|number| scene.add(number, Priority::Low));
    let from = SocketAddr::from(([192, 0, 2, 1], 4000));
    let mut parcel = Parcel::default();
    for peer in [4, 5, 3, 4] {
        let to = Some(IpAddr::from([127, 0, 0, 1]));
        parcel.add(&HandedOver { peer, from, to, mark: Mark::Ce, bytes: &mut [peer as u8] });
    }
    assert_eq!(scene.inbox.give(parcel), 0);
    let mut parcel = scene.peers.parcels.take().expect("it was given");
    scene.peers.take(Time::ZERO, &mut parcel);
    assert_eq!(one.script().heard, [(from, vec![3])]);
    assert_eq!(other.script().heard, [(from, vec![4]), (from, vec![4])]);
    assert!(scene.is_ready(Priority::Low));
    // It comes late for one that has left.
    scene.peers.remove(Time::ZERO, place, None);
    scene.peers.take(Time::ZERO, &mut parcel);
    assert_eq!(other.script().heard.len(), 2);
}

#[tokio::test]
async fn classes_are_served_apart_and_as_they_are_now() {
    let mut scene = Scene::new();
    let (high, first) = scene.add(0, Priority::High);
    let (low, second) = scene.add(1, Priority::Low);
    for (fake, place) in [(&high, first), (&low, second)] {
        fake.script().sends.push_back(vec![1]);
        scene.peers.make_ready(place);
    }
    scene.peers.transmit(Time::ZERO, (Priority::High, STREAM));
    assert!(high.script().sends.is_empty() && !low.script().sends.is_empty());
    scene.peers.transmit(Time::ZERO, (Priority::Low, STREAM));
    scene.peers.set_class(second, Priority::High);
    scene.peers.make_ready(second);
    assert!(scene.is_ready(Priority::High) && !scene.is_ready(Priority::Low));
}

#[tokio::test]
async fn so_much_goes_at_once_that_others_have_their_turn() {
    let mut scene = Scene::new();
    let (fake, place) = scene.add(0, Priority::Normal);
    fake.script().sends.extend((0..=DATAGRAMS_A_TURN).map(|number| vec![number as u8; 100]));
    scene.peers.make_ready(place);
    assert!(scene.peers.transmit(Time::ZERO, (Priority::Normal, STREAM)), "there is more");
    assert_eq!(fake.script().sends.len(), 1);
    assert!(!scene.peers.transmit(Time::ZERO, (Priority::Normal, STREAM)));
    assert!((0..=DATAGRAMS_A_TURN).all(|number| scene.received()[0] == number as u8), "in order");
}

#[tokio::test]
async fn one_that_is_ended_is_told_why_and_its_socket_is_let_go_with_the_last() {
    let mut scene = Scene::new();
    let [(one, first), (other, second)] = [0, 1].map(|number| scene.add(number, Priority::Normal));
    assert!(scene.peers.remove(Time::ZERO, first, Some("removed")).is_none(), "the other one needs it");
    assert_eq!((one.script().closed.as_deref(), scene.received()), (Some("removed"), b"removed".to_vec()));
    scene.peers.make_ready(second);
    let port = scene.peers.remove(Time::ZERO, second, None).expect("it is not needed any more");
    assert!(Arc::ptr_eq(&port.udp, &scene.udp) && other.script().closed.is_none());
    drop(port);
    assert_eq!((Arc::strong_count(&scene.udp), Arc::strong_count(&one.0)), (1, 1), "nothing is left of them");
    // What stands in the queue of one that has left is passed over.
    assert!(!scene.peers.transmit(Time::ZERO, (Priority::Normal, STREAM)));
}

#[tokio::test]
async fn one_that_waits_for_a_full_socket_is_not_woken_before_there_is_room() {
    let mut scene = Scene::new();
    let (fake, place) = scene.add(0, Priority::Normal);
    fake.script().due = Some(Time::from_millis(1));
    scene.peers.make_ready(place);
    scene.peers.transmit(Time::ZERO, (Priority::Normal, STREAM));
    scene.peers.ports.fill(0);
    let (port, _) = scene.peers.ports.filled().expect("it is to be waited for");
    assert!(scene.peers.ports.filled().is_none(), "once");
    let now = Time::from_millis(2);
    let timeouts = fake.script().timeouts;
    for _ in 0..3 {
        fake.script().sends.push_back(vec![7]);
        scene.peers.wake(now);
        scene.peers.write_rtcp(now, place, 0, &[]);
        scene.peers.transmit(now, (Priority::Normal, STREAM));
    }
    let left = |fake: &Fake| {
        let script = fake.script();
        (script.sends.len(), script.timeouts)
    };
    assert_eq!((scene.peers.due(), left(&fake)), (None, (6, timeouts)));
    let waited = scene.peers.ports.writable(port);
    assert_eq!(waited, [place], "once");
    scene.peers.go_on(waited);
    scene.peers.transmit(now, (Priority::Normal, STREAM));
    assert_eq!(left(&fake), (0, timeouts + 1));
}
