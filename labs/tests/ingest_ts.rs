//! Transport streams come in over UDP, multicast, RTP and HTTP; players decode them.

use std::net::Ipv6Addr;

use anyhow::{Result, ensure};
use outflow_labs::media::{Sender, Shape};
use outflow_labs::net::{Paths, RELAY_IN, SOURCE, SOURCE_V6, STRANGER};
use outflow_labs::process::Program;
use outflow_labs::programs::{clip, ffmpeg_sends, gst};
use outflow_labs::relay::{HTTP_PORT, Relay, listen};
use outflow_labs::scene::{
    Sample, all_play_clean, ends_clean, ffmpeg_http, ffmpeg_rtsp, gst_rtsp_ts, plays, scene,
};

const PICTURES: u32 = 50;
/// Another address of the source's machine, of IPv6.
const STRANGER_V6: Ipv6Addr = Ipv6Addr::new(0xfd66, 0, 0, 1, 0, 0, 0, 3);

fn configuration(source: &str) -> String {
    format!("{}[streams.live]\nsource = \"{source}\"\n", listen())
}

/// The publisher's stream is taken and played by RTSP and HTTP.
fn comes_through(paths: &Paths, source: &str, publisher: &Program) -> Result<()> {
    let mut relay = Relay::start(&paths.relay, &configuration(source))?;
    let _publishing = publisher.clone().within(&paths.source).start()?;
    relay.wait_up("live")?;
    let players = [
        ffmpeg_rtsp("live", "tcp", PICTURES),
        ffmpeg_http("live", PICTURES),
        gst_rtsp_ts("live", "udp", PICTURES),
    ];
    all_play_clean(paths, &players)?;
    relay.healthy()
}

#[test]
fn ffmpeg_over_udp() -> Result<()> {
    let Some(paths) = scene("ffmpeg over UDP", &["ffmpeg", "gst-launch-1.0"])? else { return Ok(()) };
    let to = format!("-f mpegts udp://{RELAY_IN}:5000?pkt_size=1316");
    comes_through(&paths, "udp://0.0.0.0:5000", &ffmpeg_sends(&clip(), &to))
}

/// GStreamer coding a test picture and tone as a transport stream for this sink.
fn gst_sends(sink: &str) -> Program {
    gst(&format!(
        "videotestsrc is-live=true ! video/x-raw,width=320,height=180,framerate=25/1 \
         ! x264enc tune=zerolatency speed-preset=ultrafast key-int-max=25 ! h264parse config-interval=-1 \
         ! mpegtsmux alignment=7 name=mux ! {sink} \
         audiotestsrc is-live=true ! avenc_aac ! aacparse ! mux."
    ))
}

#[test]
fn gstreamer_over_udp() -> Result<()> {
    let Some(paths) = scene("GStreamer over UDP", &["ffmpeg", "gst-launch-1.0"])? else { return Ok(()) };
    let sink = format!("udpsink host={RELAY_IN} port=5000");
    comes_through(&paths, "udp://0.0.0.0:5000", &gst_sends(&sink))
}

#[test]
fn ffmpeg_over_multicast_of_any_source() -> Result<()> {
    let Some(paths) = scene("multicast in", &["ffmpeg", "gst-launch-1.0"])? else { return Ok(()) };
    let to = "-f mpegts udp://239.1.1.1:5000?pkt_size=1316&ttl=4";
    comes_through(&paths, "udp://239.1.1.1:5000?interface=in0", &ffmpeg_sends(&clip(), to))
}

#[test]
fn source_specific_multicast_takes_the_named_source_only() -> Result<()> {
    let Some(paths) = scene("source-specific multicast", &["ffmpeg", "gst-launch-1.0"])? else {
        return Ok(());
    };
    // The stranger's packets would be seen as a damaged stream.
    let stranger = format!("-f mpegts udp://232.1.1.1:5000?pkt_size=1316&ttl=4&localaddr={STRANGER}");
    let _stranger = ffmpeg_sends(&Sample::Mpeg2Ts.file()?, &stranger).within(&paths.source).start()?;
    let to = format!("-f mpegts udp://232.1.1.1:5000?pkt_size=1316&ttl=4&localaddr={SOURCE}");
    let source = format!("udp://232.1.1.1:5000?source={SOURCE}&interface=in0");
    comes_through(&paths, &source, &ffmpeg_sends(&clip(), &to))
}

#[test]
fn source_specific_multicast_of_ipv6_takes_the_named_source_only() -> Result<()> {
    let Some(paths) = scene("source-specific multicast of IPv6", &["ffmpeg", "gst-launch-1.0"])? else {
        return Ok(());
    };
    let paths = paths.with_ipv6()?;
    paths.source.ip(&["address", "add", &format!("{STRANGER_V6}/64"), "dev", "eth0", "nodad"])?;
    let to = |from| format!("-f mpegts udp://[ff35::8000:1]:5000?pkt_size=1316&ttl=4&localaddr={from}");
    let stranger = to(STRANGER_V6);
    let _stranger = ffmpeg_sends(&Sample::Mpeg2Ts.file()?, &stranger).within(&paths.source).start()?;
    let source = format!("udp://[ff35::8000:1]:5000?source={SOURCE_V6}&interface=in0");
    comes_through(&paths, &source, &ffmpeg_sends(&clip(), &to(SOURCE_V6)))
}

#[test]
fn ffmpeg_over_rtp() -> Result<()> {
    let Some(paths) = scene("ffmpeg over RTP", &["ffmpeg", "gst-launch-1.0"])? else { return Ok(()) };
    let to = format!("-f rtp_mpegts rtp://{RELAY_IN}:5004");
    comes_through(&paths, "rtp://0.0.0.0:5004", &ffmpeg_sends(&clip(), &to))
}

#[test]
fn gstreamer_over_rtp() -> Result<()> {
    let Some(paths) = scene("GStreamer over RTP", &["ffmpeg", "gst-launch-1.0"])? else { return Ok(()) };
    let sink = format!("rtpmp2tpay ! udpsink host={RELAY_IN} port=5004");
    comes_through(&paths, "rtp://0.0.0.0:5004", &gst_sends(&sink))
}

#[test]
fn ffmpeg_over_http_put() -> Result<()> {
    let Some(paths) = scene("ffmpeg over HTTP", &["ffmpeg", "gst-launch-1.0"])? else { return Ok(()) };
    let to = format!("-f mpegts -method PUT http://{RELAY_IN}:{HTTP_PORT}/live.ts");
    comes_through(&paths, "push", &ffmpeg_sends(&clip(), &to))
}

#[test]
fn gstreamer_over_http_post() -> Result<()> {
    let Some(paths) = scene("GStreamer over HTTP", &["ffmpeg", "gst-launch-1.0"])? else { return Ok(()) };
    let sink =
        format!("curlhttpsink use-content-length=false location=http://{RELAY_IN}:{HTTP_PORT}/live.ts");
    comes_through(&paths, "push", &gst_sends(&sink))
}

#[test]
fn the_built_in_clip_plays_across_its_seam() -> Result<()> {
    let Some(paths) = scene("built-in clip", &["ffmpeg"])? else { return Ok(()) };
    let mut relay = Relay::start(&paths.relay, &configuration("demo://"))?;
    relay.wait_up("live")?;
    // 200 pictures are one round: the seam is in any 225.
    all_play_clean(&paths, &[ffmpeg_http("live", 225), ffmpeg_rtsp("live", "udp", 225)])?;
    relay.healthy()
}

#[test]
fn other_codecs_in_transport_streams() -> Result<()> {
    let Some(paths) = scene("H.265 and MPEG-2 in TS", &["ffmpeg"])? else { return Ok(()) };
    for sample in [Sample::H265Ts, Sample::Mpeg2Ts] {
        let mut relay = Relay::start(&paths.relay, &configuration("udp://0.0.0.0:5000"))?;
        let to = format!("-f mpegts udp://{RELAY_IN}:5000?pkt_size=1316");
        let _publishing = ffmpeg_sends(&sample.file()?, &to).within(&paths.source).start()?;
        relay.wait_up("live")?;
        all_play_clean(&paths, &[ffmpeg_http("live", PICTURES), ffmpeg_rtsp("live", "tcp", PICTURES)])?;
        relay.healthy()?;
    }
    Ok(())
}

#[test]
fn a_second_sender_to_the_same_port_is_no_part_of_the_stream() -> Result<()> {
    let Some(paths) = scene("second sender", &["ffmpeg"])? else { return Ok(()) };
    let source = format!("udp://0.0.0.0:5000?source={SOURCE}");
    let mut relay = Relay::start(&paths.relay, &configuration(&source))?;
    let to = format!("-f mpegts udp://{RELAY_IN}:5000?pkt_size=1316&localaddr={SOURCE}");
    let _publishing = ffmpeg_sends(&clip(), &to).within(&paths.source).start()?;
    relay.wait_up("live")?;
    let _stranger = Sender::start_from(
        &paths.source,
        (STRANGER, 0).into(),
        (RELAY_IN, 5000).into(),
        Shape::of_rate(1_000_000),
    )?;
    let player = plays(&paths, &ffmpeg_http("live", PICTURES))?;
    ends_clean(player)?;
    let drops = relay.stream("live")?["source"]["drops"].clone();
    ensure!(
        drops.as_object().is_some_and(|drops| !drops.is_empty()),
        "the stranger's packets are not counted"
    );
    relay.healthy()
}
