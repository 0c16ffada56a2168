//! One peer says more than it may: that is bounded and counted, and others do not notice.

use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use outflow_engine::system::rss_bytes;
use outflow_rtp::rtcp;

use super::feedback::{player, publisher, send};
use super::*;

/// How much more memory the relay may take because of one peer, with what tests beside this one take.
const GROWTH_BYTES_MAX: u64 = 64 << 20;

/// Reports on channel 5: estimates (REMB), requests for key frames, and one longer than any datagram.
fn reports() -> Vec<u8> {
    let remb =
        [0x8f, 206, 0, 5, 0, 0, 0, 99, 0, 0, 0, 0, b'R', b'E', b'M', b'B', 1, 0x0f, 0xd0, 0x90, 0, 0, 0, 7];
    let estimate = [&rtcp::receiver_report(99, &[], "player")[..], &remb].concat();
    let request = rtcp::key_frame_request(99, 7, 1, "player");
    let framed = |packet: &[u8]| [&interleaved_prefix(5, packet.len() as u16)[..], packet].concat();
    let few = [framed(&estimate), framed(&request)].concat();
    [few.repeat(20), framed(&estimate.repeat(100))].concat()
}

/// Writes as fast as the relay takes it, until told to stop.
struct Flood {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Flood {
    fn start(client: Client) -> Flood {
        let mut tcp = client.tcp.into_std().expect("a socket");
        tcp.set_nonblocking(false).expect("set");
        tcp.set_write_timeout(Some(Duration::from_millis(100))).expect("set");
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let (reports, mut at) = (reports(), 0);
            while !stopped.load(Ordering::Relaxed) {
                // What is not taken is tried again.
                at = (at + tcp.write(&reports[at..]).unwrap_or(0)) % reports.len();
            }
        });
        Flood { stop, thread }
    }

    fn stop(self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().expect("it has stopped");
    }
}

/// The sequence numbers of the next packets.
async fn sequences(mut player: Client, count: usize) -> Vec<u16> {
    let mut got = Vec::new();
    while got.len() < count {
        let (channel, packet) = player.next_media().await;
        if channel == 4 {
            got.push(u16::from_be_bytes([packet[2], packet[3]]));
        }
    }
    got
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_player_that_floods_its_channel_of_reports_disturbs_no_other() {
    const PACKETS: u16 = 200;
    let server = Server::start("[limits]\nworkers = 1\n").await;
    let mut publisher = publisher(&server).await;
    let (undisturbed, flooding) = (player(&server).await, player(&server).await);
    let before = rss_bytes();
    let flood = Flood::start(flooding);
    let got = tokio::spawn(sequences(undisturbed, PACKETS.into()));
    for sequence in 101..101 + PACKETS {
        send(&mut publisher, sequence).await;
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(got.await.expect("all of them"), (101..101 + PACKETS).collect::<Vec<_>>());
    let grown = rss_bytes().saturating_sub(before);
    assert!(grown <= GROWTH_BYTES_MAX, "{} MB more", grown >> 20);
    let counted = |reason: &'static str| {
        move |state: &Arc<outflow_engine::message::RelayState>| {
            let stream = state.stream("push").expect("there");
            stream.receivers.iter().any(|receiver| receiver.rtcp_drops.contains_key(reason))
        }
    };
    let mut states = server.relay.control().watch();
    for reason in ["rtcp-rate", "rtcp-size"] {
        let told = timeout(PATIENCE, states.wait_for(counted(reason))).await.expect(reason);
        assert!(told.is_ok(), "{reason}");
    }
    flood.stop();
}

#[tokio::test]
async fn requests_beyond_the_rate_wait_and_are_answered() {
    const REQUESTS: u32 = 80;
    let server = Server::start("").await;
    let mut client = server.connect().await;
    let request = |cseq| format!("OPTIONS {} RTSP/1.0\r\nCSeq: {cseq}\r\n\r\n", client.base);
    let all: String = (1..=REQUESTS).map(request).collect();
    client.tcp.write_all(all.as_bytes()).await.expect("sent");
    for cseq in 1..=REQUESTS {
        let Some(Item::Response(response)) = client.next().await else { panic!("no answer to {cseq}") };
        let answered = response.header(&headers::CSEQ).map(|cseq| cseq.as_str().to_owned());
        assert_eq!(answered, Some(cseq.to_string()));
    }
}
