//! Relays of a tree: what comes from a parent goes on, also where the stream is in no file, and what children take.

use std::net::{SocketAddr, TcpStream, UdpSocket};

use super::pulled::Camera;
use super::{Folder, PROGRAM, Sink, answer, ask, end, own_host, wait_until};

/// A relay of a tree.
struct Relay {
    folder: Folder,
    http: String,
    /// Where other relays reach it.
    at: SocketAddr,
}

impl Relay {
    fn start(name: &str, ports: &str, parent: Option<&Relay>, streams: &str) -> Self {
        let free = UdpSocket::bind((own_host(), 0)).expect("a port");
        let at = free.local_addr().expect("bound");
        drop(free);
        let parents: String = parent.iter().map(|parent| format!("\"{}\"", parent.at)).collect();
        let tree = format!("[tree]\nname = \"{name}\"\naddress = \"{at}\"\nparents = [{parents}]\n");
        let all_else = format!("[poc]\nencryption = \"off\"\nlatency = \"5s\"\n{tree}{streams}");
        let folder = Folder::new();
        let http = folder.configure(&format!("rtp_ports = \"{ports}\"\npoc = \"{at}\""), &all_else);
        // What it has handed over ends by itself, and all the others at the end.
        drop(folder.relay(PROGRAM).spawn().expect("it can be run"));
        wait_until("it does not listen", || TcpStream::connect(&http).is_ok());
        Relay { folder, http, at }
    }
}

#[test]
fn no_packet_is_missing_where_a_relay_of_a_tree_goes_on_elsewhere() {
    let (mut sink, camera) = (Sink::new(), Camera::start());
    let pulled = format!("[streams.cam]\nsource = \"rtsp://{}/yard\"\ntransport = \"tcp\"\n", camera.at);
    let origin = Relay::start("origin", "47660-47679", None, &pulled);
    let middle = Relay::start("middle", "47680-47699", Some(&origin), "");
    let sent = format!(
        "[streams.cam]\nsource = \"tree\"\n[[sinks]]\nstream = \"cam\"\nto = \"rtp://{}\"\n",
        sink.at()
    );
    let edge = Relay::start("edge", "47700-47719", Some(&middle), &sent);
    sink.go_on("the start");
    for (relay, what) in [(&origin, "origin"), (&edge, "edge"), (&middle, "middle")] {
        for upgrade in ["an upgrade", "another one"] {
            assert_eq!(ask(&relay.http, "POST /api/v1/upgrade"), Some(200), "{what}");
            sink.go_on(&format!("{upgrade} of {what}"));
        }
    }
    // What goes on without being taken again does so for 10 s at most. By now another relay may be nearer.
    wait_until("it is taken of none", || {
        let tree = answer(&edge.http, "GET /api/v1/tree", "");
        tree.is_some_and(|tree| tree.contains("\"parent\":{\"name\":"))
    });
    sink.go_on("all is as it was");
    for relay in [edge, middle, origin] {
        end(&relay.folder.file());
    }
}
