//! Levels that hosts say by unicast, which need no privileges for it.

use std::fmt::Display;

use super::*;
use outflow_labs::net::RELAY_OUT;
use outflow_labs::relay::HTTP_PORT;

/// What a host is answered that says a level, and the status.
pub(super) fn says(host: &Namespace, relay: impl Display, body: &str) -> Result<(Value, u16)> {
    let url = format!("http://{relay}:{HTTP_PORT}/api/v1/multicast/levels");
    let curl = Program::words("curl -sS -w %{http_code} -X PUT -d").args([body, &url]).within(host);
    let said = curl.finish(PATIENCE)?.stdout;
    let (json, status) = said.split_at(said.len().saturating_sub(3));
    Ok((serde_json::from_str(json).with_context(|| said.clone())?, status.parse()?))
}

#[test]
fn a_player_without_privileges_says_its_level_by_unicast() -> Result<()> {
    let Some(scene) = Scene::new("a_player_without_privileges", &["ffmpeg", "ffprobe", "curl"])? else {
        return Ok(());
    };
    let mut relay = scene.relay("[streams.cam]\ngroup = \"udp://239.1.1.1:5200\"\n")?;
    let _coding = codes("cam", &scene)?;
    relay.wait_up("cam")?;
    let wish = |level: u8| format!("{{\"group\":\"{GROUP}\",\"level\":{level}}}");
    let (answer, status) = says(&scene.other, OTHER_OUT, &wish(3))?;
    ensure!(status == 404 && answer["error"].to_string().contains("join the group first"), "{answer:#}");
    let player = scene.joins(true, None)?;
    wait_served(&relay, "out1", Some("relay"))?;
    let (answer, status) = says(&scene.other, OTHER_OUT, &wish(3))?;
    ensure!(status == 200 && answer["interface"] == "out1" && answer["best"] == 3, "{status} {answer:#}");
    relay.wait_stream("cam", "at level 3", |state| state["receivers"][0]["level"] == 3)?;
    // It takes longer than it is from one query to the next.
    let low = kinds(&scene.other, OTHER, 12)?;
    ensure!(low.chars().all(|kind| kind == 'I'), "{low}");
    let of = group(&relay, "out1")?.context("it is wanted")?;
    ensure!(of["level"] == 3, "plain reports leave it: {of:#}");
    let other = format!("{{\"group\":\"{GROUP}\",\"level\":1,\"host\":\"{OTHER}\"}}");
    let (answer, status) = says(&scene.paths.players, RELAY_OUT, &other)?;
    ensure!(status == 403, "of others only those that control the relay say it: {answer:#}");
    let body = serde_json::json!({ "group": GROUP, "level": 2, "host": OTHER });
    relay.put("/api/v1/multicast/levels", &body)?;
    relay.wait_stream("cam", "at level 2", |state| state["receivers"][0]["level"] == 2)?;
    player.leaves()?;
    wait_served(&relay, "out1", None)?;
    let _again = scene.joins(true, None)?;
    relay.wait_stream("cam", "at its best", |state| state["receivers"][0]["level"] == 1)?;
    relay.healthy()
}
