//! Streams that are fetched while a host wants them: a host that joins their group does.

use super::*;

const POC: u16 = 7000;

fn of_tree(name: &str, address: Ipv4Addr, more: &str) -> String {
    format!(
        "poc = \"0.0.0.0:{POC}\"\n[poc]\nencryption = \"off\"\n[tree]\nname = \"{name}\"\n\
         address = \"{address}:{POC}\"\n{more}"
    )
}

#[test]
fn a_stream_is_fetched_while_hosts_want_its_group() -> Result<()> {
    let Some(scene) = Scene::new("a_stream_is_fetched_while_hosts_want_it", &["ffmpeg"])? else {
        return Ok(());
    };
    let source = of_tree("origin", SOURCE, "[streams.live]\nsource = \"demo://\"\n");
    let mut origin = Relay::start(&scene.paths.source, &(listen() + &source))?;
    origin.wait_up("live")?;
    let below = of_tree("edge", RELAY_IN, &format!("parents = [\"{SOURCE}:{POC}\"]\n"));
    let stream = "[streams.live]\nsource = \"tree\"\ngroup = \"udp://239.1.1.1:5200\"\n";
    let configuration = configuration(&["out0", "out1"], stream);
    let configuration = configuration.replacen("[multicast]", &(below + "[multicast]"), 1);
    let mut edge = Relay::start(&scene.paths.relay, &configuration)?;
    origin.wait_receivers("live", 0)?;
    let player = ffmpeg_decodes(&format!("-i udp://{GROUP}:{PORT}?localaddr={PLAYER}"), 100_000);
    let playing = player.within(&scene.paths.players).start()?;
    origin.wait_receivers("live", 1).context("it is fetched")?;
    let other = ffmpeg_decodes(&format!("-i udp://{GROUP}:{PORT}?localaddr={OTHER}"), 50);
    other.within(&scene.other).finish(PATIENCE)?;
    edge.wait_receivers("live", 1).context("one has left")?;
    origin.wait_receivers("live", 1)?;
    drop(playing);
    edge.wait_receivers("live", 0)?;
    origin.wait_receivers("live", 0).context("it is let go")?;
    let again = ffmpeg_decodes(&format!("-i udp://{GROUP}:{PORT}?localaddr={PLAYER}"), 50);
    again.within(&scene.paths.players).finish(PATIENCE).context("it is fetched again")?;
    origin.healthy()?;
    edge.healthy()
}
