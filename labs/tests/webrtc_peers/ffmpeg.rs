//! ffmpeg, of which Debian 12 has none that publishes by WHIP: `scripts/setup` brings one.

use anyhow::{Context, Result, ensure};
use nix::sys::signal::Signal;
use outflow_labs::programs::{ffmpeg, newer_ffmpeg};
use outflow_labs::relay::Relay;
use outflow_labs::scene::{PATIENCE, ends_clean, ffmpeg_rtsp, plays, skipped};

use crate::film::{Coding, RATE, sound};
use crate::pion::{Stage, count, got};
use crate::{LIVE, configuration, whip};

const H264: Coding = Coding { size: (320, 240), key_frames: RATE, length: 4 * RATE, is_h264: true };

#[test]
fn ffmpeg_publishes_and_each_picture_comes_to_viewers() -> Result<()> {
    let test = "ffmpeg by WHIP";
    let Some(stage) = Stage::new(test)? else { return Ok(()) };
    let (film, sung) = (stage.film(H264)?, sound(stage.folder.path())?);
    let joined = stage.file("film.mkv").display().to_string();
    let (picture, sound) = (film.file.display(), sung.display());
    ffmpeg(&format!("-framerate {RATE} -i {picture} -i {sound} -c copy -shortest {joined}"))
        .finish(PATIENCE)?;
    // The relay waits for the peer (ICE lite), which is to begin.
    let output = format!("-f whip -whip_flags dtls_active {}", whip("live"));
    let Some(program) = newer_ffmpeg(&format!("-re -stream_loop -1 -i {joined} -c copy {output}")) else {
        skipped(test, "ffmpeg 9 is not there");
        return Ok(());
    };
    let mut relay = Relay::start(&stage.paths.relay, &configuration(LIVE))?;
    let mut publisher = program.within(&stage.paths.source).start()?;
    relay.wait_up("live")?;
    let by_rtsp = plays(&stage.paths, &ffmpeg_rtsp("live", "tcp", 2 * RATE as u32))?;
    let file = stage.file("viewed.h264");
    let got = got(stage.plays("", "live", &file, 2 * RATE)?)?;
    ensure!(got["lost"] == 0 && count(&got, "sound")? > 0, "{got}");
    film.found_in(&file)?;
    ends_clean(by_rtsp)?;
    ensure!(publisher.alive(), "it ended: {}", publisher.account());
    publisher.signal(Signal::SIGINT)?;
    publisher.wait(PATIENCE).context("it is told to end")?;
    relay.wait_stream("live", "down", |state| state["source"]["up"] == false)?;
    relay.healthy()
}
