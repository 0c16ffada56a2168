//! Wavelet video: what is coded, sent, relayed and played is what other programs decode, at every level.

#[path = "wavelet/multicast.rs"]
mod multicast;

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use outflow_labs::net::{Paths, RELAY_IN};
use outflow_labs::process::{Finished, Program};
use outflow_labs::programs::{clip, ffmpeg, gst_decodes, missing};
use outflow_labs::relay::{Relay, binary, listen};
use outflow_labs::scene::{PATIENCE, rtsp_url, scene, skipped, wait_bound, wait_for};
use outflow_wavelet::psnr::Mse;
use outflow_wavelet::y4m;
use serde_json::Value;
use tempfile::TempDir;

const PORT: u16 = 5010;
const FRAMES: usize = 30;
const LEVELS: [usize; 4] = [1, 2, 17, 33];

/// A folder with some frames of the clip, as raw video and as codestreams.
struct Bench {
    folder: TempDir,
}

impl Bench {
    fn new() -> Result<Self> {
        let bench = Bench { folder: tempfile::tempdir()? };
        let from = clip();
        let scaled = format!("-an -vf scale=352:288 -frames:v {FRAMES} -pix_fmt yuv420p");
        ffmpeg(&format!("-i {} {scaled} {}", from.display(), bench.path("clip.y4m").display()))
            .finish(PATIENCE)?;
        bench.wavelet(&["encode", "clip.y4m", "clip.j2k"])?;
        Ok(bench)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// `outflow wavelet`; words with a full stop in them are files of the folder.
    fn program(&self, words: &[&str]) -> Result<Program> {
        let is_file = |word: &str| word.contains('.') && !word.contains("://");
        let word = |word: &&str| match is_file(word) {
            true => self.path(word).display().to_string(),
            false => (*word).to_owned(),
        };
        Ok(Program::new(binary()?.display().to_string()).arg("wavelet").args(words.iter().map(word)))
    }

    fn wavelet(&self, words: &[&str]) -> Result<Finished> {
        self.program(words)?.finish(PATIENCE)
    }

    fn video(&self, name: &str) -> Result<y4m::Reader<BufReader<File>>> {
        Ok(y4m::Reader::new(BufReader::new(File::open(self.path(name))?))?)
    }

    /// How near two videos of as many frames are.
    fn psnr_db(&self, left: &str, right: &str) -> Result<f64> {
        let (left, right) = (self.video(left)?, self.video(right)?);
        let mut errors = Vec::new();
        for (left, right) in left.zip(right) {
            errors.push(Mse::between(&left?, &right?).context("they are alike")?);
        }
        ensure!(errors.len() == FRAMES, "{} frames", errors.len());
        Ok(Mse::mean(&errors).context("there are some")?.psnr_db())
    }
}

fn json(done: &Finished) -> Result<Value> {
    Ok(serde_json::from_str(done.stdout.trim())?)
}

#[test]
fn ffmpeg_decodes_what_is_written_and_agrees_on_how_near_it_is() -> Result<()> {
    if let Some(why) = missing("ffmpeg") {
        skipped("wavelet video and ffmpeg", &why);
        return Ok(());
    }
    let bench = Bench::new()?;
    let mut before = f64::INFINITY;
    for level in LEVELS {
        let level_text = level.to_string();
        bench.wavelet(&["encode", "clip.y4m", "level.j2k", "--level", &level_text])?;
        let decode = ["decode", "clip.j2k", "ours.y4m", "--reference", "clip.y4m", "--json", "--level"];
        let report = json(&bench.wavelet(&[&decode[..], &[&level_text]].concat())?)?;
        let psnr = report["psnr"]["db"].as_f64().context("a number")?;
        ensure!(psnr < before && psnr > 20.0, "level {level}: {psnr} dB after {before} dB");
        before = psnr;
        let [from, to, original] = ["level.j2k", "theirs.y4m", "clip.y4m"].map(|name| bench.path(name));
        // Its own decoder has room for 32 tile-parts.
        let decoder = if level == 1 { "-c:v libopenjpeg" } else { "-c:v jpeg2000" };
        let line = format!("-y -f j2k_pipe -framerate 25 {decoder} -i {} {}", from.display(), to.display());
        let done = ffmpeg(&line).finish(PATIENCE)?;
        ensure!(done.stderr.is_empty(), "level {level}: {}", done.stderr);
        let agreed = bench.psnr_db("ours.y4m", "theirs.y4m")?;
        ensure!(agreed > 70.0, "level {level}: the decoders are {agreed} dB apart");
        let ours = bench.path("ours.y4m");
        let said = filter_psnr(&ours, &original)?;
        ensure!((said - psnr).abs() < 0.01, "level {level}: {psnr} dB, and {said} dB by ffmpeg");
    }
    Ok(())
}

/// What ffmpeg's filter says.
fn filter_psnr(left: &Path, right: &Path) -> Result<f64> {
    let (left, right) = (left.display(), right.display());
    let line = format!("ffmpeg -hide_banner -nostdin -i {left} -i {right} -lavfi psnr -f null -");
    let said = Program::words(&line).finish(PATIENCE)?.stderr;
    let (_, average) = said.split_once("average:").context("it says an average")?;
    Ok(average.split_whitespace().next().unwrap_or_default().parse()?)
}

#[test]
fn gstreamer_decodes_every_level() -> Result<()> {
    let Some(paths) = scene("wavelet video and GStreamer", &["ffmpeg", "gst-launch-1.0"])? else {
        return Ok(());
    };
    let bench = Bench::new()?;
    let to = format!("rtp://{RELAY_IN}:{PORT}");
    for level in LEVELS {
        let caps = "application/x-rtp,media=video,clock-rate=90000,encoding-name=JPEG2000,\
                    sampling=YCbCr-4:2:0,payload=96";
        let pipeline = format!(
            "udpsrc port={PORT} buffer-size=4000000 caps={caps} ! rtpj2kdepay ! jpeg2000parse ! openjpegdec"
        );
        let mut player = gst_decodes(&pipeline, 40).within(&paths.relay).start()?;
        wait_bound(&mut player, PORT)?;
        let send = bench.program(&["send", "clip.j2k", &to, "--loop", "--level", &level.to_string()])?;
        let _sending = send.within(&paths.source).start()?;
        let done = player.succeed(PATIENCE).with_context(|| format!("level {level}"))?;
        ensure!(!done.stdout.contains("WARNING"), "level {level}: {}", done.stdout);
    }
    Ok(())
}

/// Sends a file to a player that is there already; what the player reports.
fn played(bench: &Bench, paths: &Paths, from: &str, level: usize) -> Result<Value> {
    let listen = format!("rtp://0.0.0.0:{PORT}");
    let play = bench.program(&["play", &listen, "seen.y4m", "--json", "--silence", "3s"])?;
    let mut player = play.within(&paths.relay).start()?;
    wait_bound(&mut player, PORT)?;
    let to = format!("rtp://{RELAY_IN}:{PORT}");
    let send = bench.program(&["send", from, &to, "--level", &level.to_string()])?;
    send.within(&paths.source).finish(PATIENCE)?;
    json(&player.succeed(PATIENCE)?)
}

#[test]
fn what_is_sent_is_what_is_seen() -> Result<()> {
    let Some(paths) = scene("wavelet video played", &["ffmpeg"])? else { return Ok(()) };
    let bench = Bench::new()?;
    // Raw video is coded on the way.
    for (from, level) in [("clip.j2k", 1), ("clip.j2k", 33), ("clip.y4m", 20)] {
        let report = played(&bench, &paths, from, level)?;
        let counted = |key: &str| report[key].as_u64();
        let expected = (Some(FRAMES as u64), Some(0), Some(0));
        ensure!((counted("shown"), counted("gaps"), counted("repeated")) == expected, "{report:#}");
        ensure!(report["layers"].as_f64() == Some((34 - level) as f64), "{report:#}");
        bench.wavelet(&["decode", "clip.j2k", "decoded.y4m", "--level", &level.to_string()])?;
        let [seen, decoded] = ["seen.y4m", "decoded.y4m"].map(|name| std::fs::read(bench.path(name)));
        ensure!(seen? == decoded?, "{from} at level {level} is seen otherwise than decoded");
    }
    Ok(())
}

#[test]
fn a_relay_takes_the_description_and_passes_the_video_on() -> Result<()> {
    let Some(paths) = scene("wavelet video relayed", &["ffmpeg"])? else { return Ok(()) };
    let bench = Bench::new()?;
    let to = format!("rtp://{RELAY_IN}:{PORT}");
    let send = bench.program(&["send", "clip.j2k", &to, "--loop", "--sdp", "clip.sdp"])?;
    let _sending = send.within(&paths.source).start()?;
    let sdp = bench.path("clip.sdp");
    wait_for("the sender has described its stream", || {
        Ok(std::fs::read_to_string(&sdp).is_ok_and(|text| text.ends_with('\n')))
    })?;
    let source = format!("source = \"rtp://0.0.0.0:{PORT}\"\nsdp = \"{}\"\n", sdp.display());
    let mut relay = Relay::start(&paths.relay, &format!("{}[streams.live]\n{source}", listen()))?;
    relay.wait_up("live")?;
    let play = bench.program(&["play", &rtsp_url("live"), "--json", "--frames", "40"])?;
    let report = json(&play.within(&paths.players).finish(PATIENCE)?)?;
    ensure!(report["shown"].as_u64() >= Some(39), "{report:#}");
    ensure!(report["gaps"].as_u64() <= Some(1) && report["layers"].as_f64() > Some(32.0), "{report:#}");
    relay.healthy()
}
