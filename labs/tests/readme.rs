//! The README's recipes are run as they stand there: those after `<!-- recipe: … -->`.

use anyhow::{Context, Result, ensure};
use outflow_labs::net::{RELAY_IN, RELAY_OUT};
use outflow_labs::process::Program;
use outflow_labs::programs::missing;
use outflow_labs::relay::{Relay, listen};
use outflow_labs::scene::{Sample, scene, skipped};

const README: &str = include_str!("../../README.md");

/// The marked recipes: what the mark says, and the command.
fn recipes() -> Vec<(&'static str, &'static str)> {
    let after_marks = README.split("<!-- recipe: ").skip(1);
    after_marks
        .filter_map(|text| {
            let (mark, rest) = text.split_once(" -->")?;
            let command = rest.strip_prefix("\n```sh\n")?.split("\n```").next()?;
            Some((mark, command))
        })
        .collect()
}

/// The program of a command, or none where it is not installed.
fn program(command: &str, relay: &str, input: &str) -> Option<Program> {
    let line = command.replace("RELAY", relay).replace("input.mp4", input);
    let name = line.split_whitespace().next().unwrap_or_default();
    if let Some(why) = missing(name) {
        skipped(&format!("recipe `{command}`"), &why);
        return None;
    }
    Some(
        Program::words(&unattended(name, &line))
            .env("SDL_VIDEODRIVER", "dummy")
            .env("SDL_AUDIODRIVER", "dummy"),
    )
}

/// The command where there is no screen or speaker, and root runs it.
fn unattended(name: &str, line: &str) -> String {
    match name {
        // It refuses to be root, and wants a home.
        "vlc" => {
            let nobody = "setpriv --reuid 65534 --regid 65534 --clear-groups env HOME=/nonexistent";
            line.replacen("vlc", &format!("{nobody} vlc -I dummy --vout dummy --aout dummy"), 1)
        }
        "mpv" => line.replacen("mpv", "mpv --vo=null --ao=null", 1),
        _ => line.to_owned(),
    }
}

#[test]
fn all_marks_are_understood() {
    let marks = README.matches("<!-- recipe:").count();
    assert_eq!(recipes().len(), marks);
    assert!(recipes().iter().all(|(mark, _)| *mark == "play" || mark.starts_with("publish ")));
    assert!(marks > 8);
}

#[test]
fn publishing_recipes_publish() -> Result<()> {
    let Some(paths) = scene("README, sources", &["ffmpeg"])? else { return Ok(()) };
    let input = Sample::H264Mp4.file()?.display().to_string();
    for (mark, command) in recipes() {
        let Some(source) = mark.strip_prefix("publish ") else { continue };
        let Some(publisher) = program(command, &RELAY_IN.to_string(), &input) else { continue };
        let mut relay =
            Relay::start(&paths.relay, &format!("{}[streams.live]\nsource = \"{source}\"\n", listen()))?;
        let publishing = publisher.within(&paths.source).start()?;
        relay.wait_up("live").with_context(|| format!("`{command}`: {}", publishing.account()))?;
        relay.healthy()?;
    }
    Ok(())
}

#[test]
fn playing_recipes_play() -> Result<()> {
    let Some(paths) = scene("README, players", &["ffmpeg"])? else { return Ok(()) };
    let mut relay = Relay::start(&paths.relay, &(listen() + "[streams.live]\nsource = \"demo://\"\n"))?;
    relay.wait_up("live")?;
    for (_, command) in recipes().iter().filter(|(mark, _)| *mark == "play") {
        let Some(player) = program(command, &RELAY_OUT.to_string(), "") else { continue };
        let mut playing = player.within(&paths.players).start()?;
        let received = relay.wait_stream("live", "played", |state| {
            let packets = &state["receivers"][0]["packets"];
            packets.as_u64() > Some(100)
        });
        received.with_context(|| format!("`{command}`: {}", playing.account()))?;
        ensure!(playing.alive(), "`{command}` ended: {}", playing.account());
        drop(playing);
        relay.wait_receivers("live", 0)?;
    }
    relay.healthy()
}
