//! Sent to a group, each host sees the video at the level that it wants: a relay that is a router leaves out the rest.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

use outflow_labs::membership::LevelProgram;
use outflow_labs::net::{Namespace, link};
use outflow_labs::process::Running;
use outflow_labs::relay::HTTP_PORT;
use outflow_routing::membership::Family;

use super::*;

const GROUP: Ipv4Addr = Ipv4Addr::new(239, 1, 1, 1);
/// Frames that a player takes: those of the file, and some that come before all is set up.
const PLAYED: usize = FRAMES + 15;

/// A host behind an interface of the router, and how it says which level it wants.
struct Viewer {
    host: Namespace,
    device: String,
    router: Ipv4Addr,
    level: usize,
}

impl Viewer {
    fn new(number: u8, level: usize, router: &Namespace) -> Result<Self> {
        let (host, device) = (Namespace::new(&format!("level{level}"))?, format!("lan{number}"));
        let [here, at_router] = [2, 1].map(|end| Ipv4Addr::new(10, 66, 10 + number, end));
        link(&host, ("eth0", here), router, (&device, at_router))?;
        host.ip(&["route", "add", "224.0.0.0/4", "dev", "eth0"])?;
        Ok(Viewer { host, device, router: at_router, level })
    }

    fn file(&self) -> String {
        format!("seen{}.y4m", self.level)
    }

    fn plays(&self, bench: &Bench) -> Result<Running> {
        let (from, count) = (format!("rtp://{GROUP}:{PORT}"), PLAYED.to_string());
        let play = bench.program(&["play", &from, &self.file(), "--json", "--frames", &count])?;
        let mut player = play.within(&self.host).start()?;
        wait_bound(&mut player, PORT)?;
        Ok(player)
    }

    /// Says its level by unicast, as a program without privileges does, once it is known as a member.
    fn asks(&self) -> Result<()> {
        let url = format!("http://{}:{HTTP_PORT}/api/v1/multicast/levels", self.router);
        let body = format!("{{\"group\": \"{GROUP}\", \"level\": {}}}", self.level);
        wait_for("its level is taken", || {
            let curl = Program::words("curl -sS -o /dev/null -w %{http_code} -X PUT -d").args([&body, &url]);
            Ok(curl.within(&self.host).finish(PATIENCE)?.stdout == "200")
        })
    }

    /// What was seen is what `decode` makes of this level: all frames of the file one after the other, wherever in it
    /// the player began.
    fn saw_its_level(&self, bench: &Bench, report: &Value) -> Result<()> {
        let counted = ["skipped", "undecodable"].map(|key| report[key].as_u64());
        ensure!(counted == [Some(0); 2], "{report:#}");
        bench.wavelet(&["decode", "clip.j2k", "decoded.y4m", "--level", &self.level.to_string()])?;
        let frames = |name: &str| bench.video(name)?.map(|frame| Ok(frame?)).collect::<Result<Vec<_>>>();
        let (seen, decoded) = (frames(&self.file())?, frames("decoded.y4m")?);
        // The first ones may not have been whole.
        let seen = seen.last_chunk::<FRAMES>().with_context(|| format!("{report:#}"))?;
        let first = decoded.iter().position(|frame| *frame == seen[0]);
        let first =
            first.with_context(|| format!("level {}: it is none of the level's frames", self.level))?;
        let expected = decoded.iter().cycle().skip(first);
        let wrong = seen.iter().zip(expected).position(|(seen, expected)| seen != expected);
        ensure!(wrong.is_none(), "level {}: frame {wrong:?} is seen otherwise than decoded", self.level);
        Ok(())
    }
}

/// The interfaces by which the group goes with less, and their levels.
fn thinned(router: &Relay<'_>) -> Result<BTreeSet<(String, u64)>> {
    let state = router.json("/api/v1/multicast")?;
    let flows = state["flows"].as_array().context("flows")?;
    let of = flows.iter().filter(|flow| flow["group"] == GROUP.to_string());
    let thinned = of.flat_map(|flow| flow["thinned"].as_array().into_iter().flatten());
    let read = |one: &Value| Some((one["interface"].as_str()?.to_owned(), one["level"].as_u64()?));
    thinned.map(|one| read(one).context("an interface and its level")).collect()
}

#[test]
fn each_host_sees_a_group_s_video_at_its_level_behind_a_router() -> Result<()> {
    let Some(paths) = scene("wavelet video by multicast", &["ffmpeg", "curl"])? else { return Ok(()) };
    let bench = Bench::new()?;
    let viewers = [1, 17, 33].into_iter().zip(0..);
    let viewers = viewers.map(|(level, number)| Viewer::new(number, level, &paths.relay));
    let viewers = viewers.collect::<Result<Vec<_>>>()?;
    let interfaces = "interfaces = [\"in0\", \"lan0\", \"lan1\", \"lan2\"]";
    let times = "query_interval = \"4 s\"\nquery_response = \"1 s\"\nlast_member_interval = \"300 ms\"\n";
    let mut router = Relay::start(&paths.relay, &format!("{}[multicast]\n{interfaces}\n{times}", listen()))?;
    // The middle one says its level by unicast, the last one by reports (RFC 9279).
    let players = viewers.iter().map(|viewer| viewer.plays(&bench)).collect::<Result<Vec<_>>>()?;
    viewers[1].asks()?;
    let program = LevelProgram::start(&viewers[2].host, Family::V4)?;
    program.says(GROUP, Some(33))?;
    let to = format!("rtp://{GROUP}:{PORT}?ttl=4&interface=eth0");
    let _sending = bench.program(&["send", "clip.j2k", &to, "--loop"])?.within(&paths.source).start()?;
    let wanted = viewers[1..].iter().map(|viewer| (viewer.device.clone(), viewer.level as u64));
    let wanted = wanted.collect::<BTreeSet<_>>();
    wait_for("each goes by its level", || Ok(thinned(&router)? == wanted))?;
    for (viewer, player) in viewers.iter().zip(players) {
        viewer.saw_its_level(&bench, &json(&player.succeed(PATIENCE)?)?)?;
    }
    router.healthy()
}
