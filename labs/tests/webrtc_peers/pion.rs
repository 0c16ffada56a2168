//! pion (`labs/pion/peer`).

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use nix::sys::signal::Signal;
use outflow_labs::net::Paths;
use outflow_labs::pion;
use outflow_labs::process::{Program, Running};
use outflow_labs::relay::Relay;
use outflow_labs::scene::{PATIENCE, scene, skipped, wait_for};
use serde_json::Value;
use tempfile::TempDir;

use crate::film::{Coding, Film, RATE, sound};
use crate::{LIVE, configuration, whep, whip};

/// A network, a folder, and the peer.
pub(crate) struct Stage {
    pub(crate) paths: Paths,
    pub(crate) folder: TempDir,
    peer: Program,
}

impl Stage {
    pub(crate) fn new(test: &str) -> Result<Option<Stage>> {
        if let Some(why) = pion::lacking() {
            skipped(test, &why);
            return Ok(None);
        }
        let Some(paths) = scene(test, &["ffmpeg", "ffprobe"])? else { return Ok(None) };
        Ok(Some(Stage { paths, folder: tempfile::tempdir()?, peer: pion::program("peer")? }))
    }

    pub(crate) fn film(&self, coding: Coding) -> Result<Film> {
        Film::make(self.folder.path(), coding)
    }

    fn publishes(&self, flags: &str, stream: &str, films: &[&Film]) -> Result<Running> {
        let flags = flags.split_whitespace();
        let files = films.iter().map(|film| film.file.display().to_string());
        let program = self.peer.clone().arg("publish").args(flags).arg(whip(stream)).args(files);
        program.within(&self.paths.source).start()
    }

    /// Plays this number of pictures into a file.
    pub(crate) fn plays(&self, flags: &str, stream: &str, file: &Path, pictures: usize) -> Result<Running> {
        let program = self.peer.clone().arg("play").args(flags.split_whitespace()).arg(whep(stream));
        let program = program.args([file.display().to_string(), pictures.to_string()]);
        program.within(&self.paths.players).start()
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

/// What a publisher has said last of how it goes.
fn heard(publisher: &mut Running) -> Result<Value> {
    let mut last = Value::Null;
    wait_for("it publishes", || {
        ensure!(publisher.alive(), "it ended: {}", publisher.account());
        let said = publisher.stdout();
        let whole = said.rfind('\n').and_then(|end| said[..end].lines().next_back());
        last = whole.map(serde_json::from_str).transpose()?.unwrap_or(Value::Null);
        Ok(!last.is_null())
    })?;
    Ok(last)
}

pub(crate) fn count(of: &Value, key: &str) -> Result<usize> {
    let number = of[key].as_u64().with_context(|| format!("no {key} in {of}"))?;
    Ok(usize::try_from(number)?)
}

/// What a viewer says at its end.
pub(crate) fn got(viewer: Running) -> Result<Value> {
    Ok(serde_json::from_str(&viewer.succeed(PATIENCE)?.stdout)?)
}

/// It ends its session, and the stream is down at once.
pub(crate) fn ends(publisher: Running, relay: &Relay<'_>, stream: &str) -> Result<()> {
    publisher.signal(Signal::SIGTERM)?;
    publisher.succeed(PATIENCE)?;
    relay.wait_stream(stream, "down", |state| state["source"]["up"] == false).map(drop)
}

/// A stream that is published in sizes.
const SIZES: &str = "[streams.high]\n[streams.middle]\n[streams.low]\n\
     [streams.cam]\nsource = [\"high\", \"middle\", \"low\"]\n";

const VP8: Coding = Coding { size: (640, 360), key_frames: RATE, length: 3 * RATE, is_h264: false };

#[test]
fn pion_publishes_in_three_sizes_and_viewers_have_the_one_of_their_level() -> Result<()> {
    let Some(stage) = Stage::new("pion's sizes")? else { return Ok(()) };
    let mut relay = Relay::start(&stage.paths.relay, &configuration(SIZES))?;
    let sizes = [(640, 360), (320, 180), (160, 90)];
    let films = sizes.map(|size| stage.film(Coding { size, ..VP8 }));
    let films = films.into_iter().collect::<Result<Vec<_>>>()?;
    let sung = sound(stage.folder.path())?;
    // The best comes first (RFC 8853), or last, as from browsers.
    for order in [[0, 1, 2], [2, 1, 0]] {
        let flags = format!("-rids a,b,c -sound {}", sung.display());
        let mut publisher = stage.publishes(&flags, "cam", &order.map(|at| &films[at]))?;
        relay.wait_stream("cam", "all", |state| state["source"]["format"] == "3 of 3 renditions")?;
        for (level, film) in (1..).zip(&films) {
            let file = stage.file(&format!("level-{level}.ivf"));
            let viewer = stage.plays("", &format!("cam?level={level}"), &file, 2 * RATE)?;
            let got = got(viewer)?;
            ensure!(got["codec"] == "video/VP8" && count(&got, "sound")? > 0, "level {level}: {got}");
            ensure!(got["lost"] == 0, "level {level}: {got}");
            let found = film.found_in(&file).with_context(|| format!("level {level} of {order:?}"))?;
            ensure!(found.len() == 2 * RATE, "{} pictures", found.len());
        }
        let heard = heard(&mut publisher)?;
        ensure!(count(&heard, "transport")? > 0 && count(&heard, "reports")? > 0, "{heard}");
        ends(publisher, &relay, "cam")?;
    }
    relay.healthy()
}

const H264: Coding = Coding { size: (320, 240), key_frames: RATE, length: 4 * RATE, is_h264: true };

#[test]
fn what_pion_loses_on_either_side_is_repaired() -> Result<()> {
    let Some(stage) = Stage::new("pion loses packets")? else { return Ok(()) };
    let mut relay = Relay::start(&stage.paths.relay, &configuration(&format!("{LIVE}{SIZES}")))?;
    let (picture, large) = (stage.film(H264)?, stage.film(VP8)?);
    let small = stage.film(Coding { size: (160, 90), ..VP8 })?;
    for (stream, flags, films) in
        [("live", "", vec![&picture]), ("live", "", vec![&large]), ("cam", "-rids a,b", vec![&large, &small])]
    {
        let mut publisher = stage.publishes(&format!("-lose 20 {flags}"), stream, &films)?;
        relay.wait_up(stream)?;
        let file = stage.file(if films[0].coding.is_h264 { "viewed.h264" } else { "viewed.ivf" });
        let got = got(stage.plays("-lose 20", stream, &file, 8 * RATE)?)?;
        ensure!(got["lost"] == 0 && count(&got, "repaired")? > 0, "{stream}: {got}");
        films[0].found_in(&file).with_context(|| format!("{stream} {flags}"))?;
        let heard = heard(&mut publisher)?;
        ensure!(count(&heard, "lost")? > 0, "{stream}: {heard}");
        ends(publisher, &relay, stream)?;
    }
    relay.healthy()
}

/// With a key frame every four seconds.
const SELDOM: Coding = Coding { key_frames: 4 * RATE, length: 20 * RATE, ..H264 };

#[test]
fn a_viewer_begins_at_the_kept_key_frame_of_a_publisher_that_gives_none_when_asked() -> Result<()> {
    let Some(stage) = Stage::new("pion gives no key frames")? else { return Ok(()) };
    let mut relay = Relay::start(&stage.paths.relay, &configuration(LIVE))?;
    let film = stage.film(SELDOM)?;
    let mut publisher = stage.publishes("-deaf", "live", &[&film])?;
    relay.wait_up("live")?;
    let steady = stage.file("steady.h264");
    let steady_viewer = stage.plays("-asks", "live", &steady, 12 * RATE)?;
    // On a busy machine the next key frame may have come until a viewer is there: that shows nothing then.
    let file = stage.file("late.h264");
    wait_for("one begins in the middle", || {
        let mut before = 0;
        wait_for("the middle comes", || {
            before = count(&heard(&mut publisher)?, "at")?;
            Ok((RATE..2 * RATE).contains(&(before % SELDOM.key_frames)))
        })?;
        got(stage.plays("", "live", &file, RATE)?)?;
        let first = *film.found_in(&file)?.first().context("no picture")?;
        // It had been sent before the viewer was started.
        Ok((before + SELDOM.length - first) % SELDOM.length < SELDOM.key_frames)
    })?;
    let got = got(steady_viewer)?;
    ensure!(got["lost"] == 0, "{got}");
    let heard = heard(&mut publisher)?;
    ensure!(count(&heard, "key_frames")? > 0, "it was asked for none: {heard}");
    let found = film.found_in(&steady)?;
    let is_whole = found.windows(2).all(|pair| pair[1] == (pair[0] + 1) % SELDOM.length);
    ensure!(is_whole, "the publisher was disturbed: {found:?}");
    ends(publisher, &relay, "live")?;
    relay.healthy()
}
