//! What the fuzzer calls: one function a parser, which takes any bytes and must not panic.
//!
//! A new parser is one function in a module here, one line in [`TARGETS`], and one or more seeds
//! in `fuzz/seeds/NAME/`; the tests of this crate say what else is missing. `cargo test` runs all
//! seeds and some thousands of mutations of each, and what the fuzzer has kept; `scripts/fuzz` runs the fuzzer itself.
//! Without the feature `whole`, the core's targets alone are there: they are built in a fraction of the time.

#[cfg(feature = "whole")]
mod capture;
mod codecs;
#[cfg(feature = "whole")]
mod config;
mod demux;
#[cfg(feature = "whole")]
mod directory;
#[cfg(feature = "whole")]
mod door;
mod dtls;
mod dvmrp;
#[cfg(feature = "whole")]
mod emulate;
mod flexfec;
#[cfg(feature = "whole")]
mod forwarded;
mod frames;
mod gmc;
mod hand_over;
#[cfg(feature = "whole")]
mod http;
mod ice;
mod image;
mod membership;
mod packets;
mod payload;
mod poc_connection;
mod poc_packet;
mod poc_restore;
mod poc_service;
#[cfg(feature = "whole")]
mod reload;
mod remux;
mod rtp;
mod rtsp;
mod rtsp_client;
mod rtsp_server;
#[cfg(feature = "whole")]
mod scenario;
mod sdp;
#[cfg(feature = "whole")]
mod sound;
mod srtp;
mod stream;
mod transport_cc;
#[cfg(feature = "whole")]
mod tree;
mod ts;
mod tspn;
#[cfg(feature = "whole")]
mod wavelet;

/// A target: its name, and what it runs.
pub type Target = (&'static str, fn(&[u8]));

/// All targets.
pub const TARGETS: &[Target] = &[
    ("rtp", rtp::rtp),
    ("rtcp", rtp::rtcp),
    ("transport_cc", transport_cc::transport_cc),
    ("estimate", transport_cc::estimate),
    #[cfg(feature = "whole")]
    ("capture", capture::capture),
    ("codecs", codecs::codecs),
    #[cfg(feature = "whole")]
    ("config", config::config),
    #[cfg(feature = "whole")]
    ("directory", directory::directory),
    #[cfg(feature = "whole")]
    ("reload", reload::reload),
    ("demux", demux::demux),
    ("dtls", dtls::dtls),
    ("dvmrp", dvmrp::dvmrp),
    #[cfg(feature = "whole")]
    ("emulate", emulate::emulate),
    ("flexfec", flexfec::flexfec),
    #[cfg(feature = "whole")]
    ("forwarded", forwarded::forwarded_packets),
    ("frames", frames::frames),
    ("gmc", gmc::gmc),
    ("h264", payload::h264),
    ("h265", payload::h265),
    ("mpeg_video", payload::mpeg_video),
    ("mpeg_audio", payload::mpeg_audio),
    ("aac", payload::aac),
    ("opus", payload::opus),
    ("av1", payload::av1),
    ("vp9", payload::vp9),
    ("vp8", payload::vp8),
    ("frame_marking", payload::frame_marking),
    ("jpeg2000", image::jpeg2000),
    ("jpeg2000_payload", image::jpeg2000_payload),
    ("ppm", image::ppm),
    ("ppm_bytes", image::ppm_bytes),
    ("raw_video", image::raw_video),
    #[cfg(feature = "whole")]
    ("http_request", http::http_request),
    #[cfg(feature = "whole")]
    ("http_answer", http::http_answer),
    ("remux", remux::remux),
    ("rtsp_messages", rtsp::rtsp_messages),
    ("rtsp_headers", rtsp::rtsp_headers),
    ("rtsp_client", rtsp_client::rtsp_client),
    ("rtsp_server", rtsp_server::rtsp_server),
    #[cfg(feature = "whole")]
    ("sound", sound::sound),
    ("srtp", srtp::srtp),
    ("stream", stream::stream),
    ("hand_over", hand_over::hand_over),
    #[cfg(feature = "whole")]
    ("door", door::door),
    #[cfg(feature = "whole")]
    ("scenario", scenario::scenario),
    ("sdp", sdp::sdp),
    ("offer", sdp::offer),
    ("ts_packet", ts::ts_packet),
    ("ts_psi", ts::ts_psi),
    ("ts_reader", ts::ts_reader),
    ("ts_frames", ts::ts_frames),
    ("ts_framer", ts::ts_framer),
    ("ts_loop", ts::ts_loop),
    #[cfg(feature = "whole")]
    ("tree_said", tree::tree_said),
    ("tspn", tspn::tspn),
    ("poc_packet", poc_packet::poc_packet),
    ("poc_service", poc_service::poc_service),
    ("poc_connection", poc_connection::poc_connection),
    ("poc_restore", poc_restore::poc_restore),
    ("ice", ice::ice),
    ("igmp", membership::igmp),
    ("mld", membership::mld),
    #[cfg(feature = "whole")]
    ("y4m", wavelet::y4m),
    #[cfg(feature = "whole")]
    ("wavelet_file", wavelet::wavelet_file),
    #[cfg(feature = "whole")]
    ("wavelet_packets", wavelet::wavelet_packets),
];

/// Runs the target of this name.
///
/// # Panics
///
/// If there is no such target, or if it finds something.
pub fn run(name: &str, data: &[u8]) {
    let target = TARGETS.iter().find(|(known, _)| *known == name);
    let (_, target) = target.unwrap_or_else(|| panic!("no fuzz target is named {name}"));
    target(data);
}
