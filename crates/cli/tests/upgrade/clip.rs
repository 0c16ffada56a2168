//! The built-in clip goes on where it was.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use super::{Folder, PATIENCE, PROGRAM, ask, end, wait_until};

const PACKET_BYTES: usize = 188;

/// Packets that are looked at after each step: some seconds of the clip.
const SOME: usize = 1000;

/// A player of a transport stream that looks at the counters of its packets.
struct Player {
    connection: TcpStream,
    /// The last counter of each PID.
    last: BTreeMap<u16, u8>,
}

impl Player {
    fn play(http: &str) -> Self {
        let mut connection = TcpStream::connect(http).expect("it listens");
        connection.set_read_timeout(Some(PATIENCE)).expect("set");
        write!(connection, "GET /demo.ts HTTP/1.0\r\nHost: {http}\r\n\r\n").expect("sent");
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            connection.read_exact(&mut byte).expect("an answer");
            head.push(byte[0]);
        }
        Player { connection, last: BTreeMap::new() }
    }

    /// The counters of the next packet of a PID, if it has a payload, and of the one before it, if there was one.
    fn next(&mut self, after: &str) -> Option<(u8, u8)> {
        let mut packet = [0; PACKET_BYTES];
        self.connection.read_exact(&mut packet).unwrap_or_else(|_| panic!("no packets after {after}"));
        let [sync, high, low, flags, ..] = packet;
        assert_eq!(sync, 0x47, "out of step after {after}");
        let (pid, counter) = (u16::from(high & 0x1f) << 8 | u16::from(low), flags & 0x0f);
        let counts = flags & 0x10 != 0 && pid != 0x1fff;
        counts.then(|| self.last.insert(pid, counter).map(|last| (last, counter))).flatten()
    }

    /// What a join begins with: tables stand before the key frame that they are of, and once more in their places.
    fn begin(&mut self) {
        for _ in 0..SOME {
            self.next("the start");
        }
    }

    /// Some packets more: in each PID every one with a payload has the next counter (ISO/IEC 13818-1, 2.4.3.3).
    fn go_on(&mut self, after: &str) {
        let pairs = (0..SOME).filter_map(|_| self.next(after));
        let breaks: Vec<_> = pairs.filter(|(last, counter)| *counter != (last + 1) & 0x0f).collect();
        assert_eq!(breaks, [], "packets are missing, or twice there, after {after}");
    }
}

#[test]
fn the_clip_goes_on_where_it_was() {
    let folder = Folder::new();
    let streams = "[streams.demo]\nsource = \"demo://\"\n";
    let http = folder.configure("rtp_ports = \"47740-47759\"", streams);
    let mut relay = folder.relay(PROGRAM).spawn().expect("it can be run");
    wait_until("it has no stream", || ask(&http, "GET /readyz") == Some(200));
    let mut player = Player::play(&http);
    player.begin();
    for upgrade in ["an upgrade", "another one"] {
        assert_eq!(ask(&http, "POST /api/v1/upgrade"), Some(200));
        player.go_on(upgrade);
    }
    assert!(relay.wait().expect("it ends").success());
    end(&folder.file());
}
