//! Relays that a stream comes through by the partial-order transport: what is published, played and pulled by it goes on,
//! in the same connections.

use std::net::{TcpStream, UdpSocket};

use super::pulled::Camera;
use super::{Folder, PROGRAM, Sink, answer, ask, end, own_host, wait_until};

/// A relay, and where it listens for HTTP.
struct Relay {
    folder: Folder,
    http: String,
}

impl Relay {
    fn start(listen: &str, stream: &str) -> Self {
        let folder = Folder::new();
        let all_else = format!("[poc]\nencryption = \"off\"\nlatency = \"5s\"\n[streams.cam]\n{stream}");
        let http = folder.configure(listen, &all_else);
        // What it has handed over ends by itself, and all the others at the end.
        drop(folder.relay(PROGRAM).spawn().expect("it can be run"));
        wait_until("it does not listen", || TcpStream::connect(&http).is_ok());
        Relay { folder, http }
    }
}

fn sent_to(place: &str) -> String {
    format!("[[sinks]]\nstream = \"cam\"\nto = \"{place}\"\n")
}

/// What publishes a relay's stream.
fn publisher(relay: &Relay) -> String {
    let stream = answer(&relay.http, "GET /api/v1/streams/cam", "").expect("it listens");
    let peer = stream.split_once("POC from ").and_then(|(_, rest)| rest.split('"').next());
    peer.unwrap_or_else(|| panic!("nothing is published: {stream}")).to_owned()
}

#[test]
fn no_packet_is_missing_where_either_end_of_a_connection_goes_on_elsewhere() {
    let free = UdpSocket::bind((own_host(), 0)).expect("a port");
    let at = free.local_addr().expect("bound");
    drop(free);
    let (mut sink, camera) = (Sink::new(), Camera::start());
    let middle = Relay::start(&format!("rtp_ports = \"47600-47619\"\npoc = \"{at}\""), "source = \"push\"\n");
    let pulls = format!("source = \"poc://{at}/cam\"\n{}", sent_to(&format!("rtp://{}", sink.at())));
    let last = Relay::start("rtp_ports = \"47620-47639\"", &pulls);
    let publishes = format!("source = \"rtsp://{}/yard\"\ntransport = \"tcp\"\n", camera.at);
    let publishes = publishes + &sent_to(&format!("poc://{at}/cam"));
    let first = Relay::start("rtp_ports = \"47640-47659\"", &publishes);
    sink.go_on("the start");
    let connection = publisher(&middle);
    let ends = [
        (&middle, "where it is published and played"),
        (&last, "where it is pulled"),
        (&first, "that it is sent from"),
    ];
    for (relay, what) in ends {
        for upgrade in ["an upgrade", "another one"] {
            assert_eq!(ask(&relay.http, "POST /api/v1/upgrade"), Some(200));
            sink.go_on(&format!("{upgrade} {what}"));
            assert_eq!(publisher(&middle), connection, "it is not the same after {upgrade} {what}");
        }
    }
    for relay in [first, last, middle] {
        end(&relay.folder.file());
    }
}
