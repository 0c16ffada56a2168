//! What a process that ends hands over to the one that goes on.

use bytes::Bytes;
use outflow_media::Time;
use outflow_relay::save::SavedStream;
use outflow_relay::{Output, Stream, StreamOptions};
use outflow_rtsp::server::{Options, SavedSession, Session};

use crate::rtsp_client::restored;
use crate::stream::play;

/// How often a stream asks in a row at most.
const OUTPUTS_MAX: usize = 20_000;

/// A byte that says what, and behind it: a stream as it is handed over, an RTSP session, an RTSP client, or the steps of
/// a stream that goes on in another process, each time that this number of them was taken.
pub(crate) fn hand_over(data: &[u8]) {
    match data {
        [0, saved @ ..] => stream(saved),
        [1, saved @ ..] => session(saved),
        [2, saved @ ..] => restored(saved),
        [every, steps @ ..] => {
            let mut left = *every;
            play(steps, |scene| {
                left -= 1;
                if left == 0 {
                    left = *every;
                    scene.go_on_elsewhere();
                }
            });
        }
        [] => {}
    }
}

fn stream(saved: &[u8]) {
    let Ok(saved) = minicbor::decode::<SavedStream>(saved) else { return };
    let mut stream = Stream::new(StreamOptions::default());
    let mut now = Time::from_millis(1_000);
    if stream.restore(now, saved).is_err() {
        return;
    }
    for round in 0..4_u8 {
        now = Time::from_millis(1_000 + 700 * u64::from(round));
        let waits = (0..OUTPUTS_MAX).any(|_| match stream.poll(now) {
            Output::Order(order) => {
                for key in stream.members(&order).to_vec() {
                    let share = stream.share(&order, key);
                    assert!(stream.packets(&order, share).count() as u64 <= order.to - order.from);
                }
                false
            }
            output => matches!(output, Output::Wait { .. }),
        });
        assert!(waits, "a stream asks without an end");
        stream.handle_media(
            now,
            round & 1,
            Bytes::from_static(&[0x80, 96, 0, 1, 0, 0, 0, 0, 0, 0, 0, 7, 0x65]).into(),
        );
    }
    // What was taken up can be handed over again.
    let again = minicbor::to_vec(stream.save()).expect("memory does not fail");
    let again = minicbor::decode(&again).expect("what was written");
    Stream::new(StreamOptions::default()).restore(now, again).expect("what was saved fits");
}

fn session(saved: &[u8]) {
    let Ok(saved) = minicbor::decode::<SavedSession>(saved) else { return };
    let [peer, local] = [[127, 0, 0, 2], [127, 0, 0, 1]].map(core::net::IpAddr::from);
    let options =
        Options { id: String::new(), nonce: String::new(), ssrc: 1, is_encrypted: false, peer, local };
    let Ok(mut session) = Session::<String>::restore(saved, options, |words| Some(words.to_owned())) else {
        return;
    };
    session.buffer().extend_from_slice(b"OPTIONS * RTSP/1.0\r\nCSeq: 1\r\n\r\n");
    let is_open = |output| {
        use outflow_rtsp::server::Output as Said;
        !matches!(output, Said::Wait(_) | Said::Ask(_) | Said::Close { .. })
    };
    while is_open(session.poll(Time::from_millis(1))) {}
}
