//! Peers of WebRTC that others have written publish to a relay, and play from it. What comes is decoded, and each picture
//! found in what was sent.

#[path = "webrtc_peers/ffmpeg.rs"]
mod ffmpeg;
#[path = "webrtc_peers/film.rs"]
mod film;
#[path = "webrtc_peers/gstreamer.rs"]
mod gstreamer;
#[path = "webrtc_peers/pion.rs"]
mod pion;

use outflow_labs::net::{RELAY_IN, RELAY_OUT};
use outflow_labs::relay::{HTTP_PORT, listen};

/// Where peers send their datagrams.
const WEBRTC_PORT: u16 = 8189;

/// A stream that is published.
const LIVE: &str = "[streams.live]\nsource = \"push\"\n";

/// With these streams.
fn configuration(streams: &str) -> String {
    format!("{}webrtc = \"0.0.0.0:{WEBRTC_PORT}\"\n{streams}", listen())
}

fn whip(stream: &str) -> String {
    format!("http://{RELAY_IN}:{HTTP_PORT}/publish/{stream}")
}

fn whep(stream: &str) -> String {
    format!("http://{RELAY_OUT}:{HTTP_PORT}/play/{stream}")
}
