//! Janus with its streaming plugin: how it is started, and how a viewer asks it. It offers, and the viewer answers.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::place::SOURCE_PORT;
use crate::net::RELAY_OUT;
use crate::process::Program;
use crate::receive::Told;

/// Where its API is.
pub const PORT: u16 = 8088;
/// The number of the stream.
const ID: u32 = 1;
const PLUGIN: &str = "janus.plugin.streaming";

/// Janus with one stream, as its own configuration has it; `folder` is where that is written to. It is ICE lite, as
/// Outflow is, and has one event loop, as there is one core.
///
/// # Errors
/// Nothing can be written there.
pub fn janus(folder: &Path) -> Result<Program> {
    let files = [
        (
            "janus.jcfg",
            "general: { session_timeout = 0\n debug_level = 3\n event_loops = 1 }\n\
             nat: { ice_lite = true\n ice_enforce_list = \"out0\" }\n"
                .to_owned(),
        ),
        (
            "janus.transport.http.jcfg",
            format!("general: {{ json = \"compact\"\n http = true\n port = {PORT}\n https = false }}\n"),
        ),
        (
            "janus.plugin.streaming.jcfg",
            format!(
                "live: {{ type = \"rtp\"\n id = {ID}\n media = ( {{ type = \"video\"\n mid = \"0\"\n\
                 label = \"picture\"\n port = {SOURCE_PORT}\n pt = 96\n codec = \"h264\"\n\
                 fmtp = \"profile-level-id=42e01f;packetization-mode=1\" }} ) }}\n"
            ),
        ),
    ];
    for (name, text) in files {
        std::fs::write(folder.join(name), text)?;
    }
    Ok(Program::new("janus").args(["-F", &folder.display().to_string()]))
}

/// Asks for the stream with this description as the answer to what it offers.
pub(super) fn ask(agent: &ureq::Agent, answer: &str) -> Result<Told> {
    let session = number(&say(agent, "", &json!({ "janus": "create" }))?)?;
    let path = format!("/{session}");
    let handle = number(&say(agent, &path, &json!({ "janus": "attach", "plugin": PLUGIN }))?)?;
    let of_handle = format!("{path}/{handle}");
    let watch = json!({ "janus": "message", "body": { "request": "watch", "id": ID } });
    say(agent, &of_handle, &watch)?;
    let offer = loop {
        let event = hear(agent, &path)?;
        if let Some(offer) = event["jsep"]["sdp"].as_str() {
            break offer.to_owned();
        }
        ensure!(event["janus"] == "event" && event["plugindata"]["data"]["error"].is_null(), "{event}");
    };
    let mid = offer.lines().find_map(|line| line.trim_end().strip_prefix("a=mid:")).unwrap_or("0");
    let answer = answer.replace("a=mid:0", &format!("a=mid:{mid}"));
    let answer = answer.replace("a=group:BUNDLE 0", &format!("a=group:BUNDLE {mid}"));
    let jsep = json!({ "type": "answer", "sdp": answer });
    say(agent, &of_handle, &json!({ "janus": "message", "body": { "request": "start" }, "jsep": jsep }))?;
    Told::read(&offer)
}

fn number(said: &Value) -> Result<u64> {
    said["data"]["id"].as_u64().with_context(|| format!("no id in {said}"))
}

fn say(agent: &ureq::Agent, path: &str, what: &Value) -> Result<Value> {
    let mut what = what.clone();
    what["transaction"] = json!("lab");
    let url = format!("http://{RELAY_OUT}:{PORT}/janus{path}");
    let mut said = agent.post(&url).send(what.to_string())?;
    let said: Value = serde_json::from_str(&said.body_mut().read_to_string()?)?;
    ensure!(said["janus"] == "success" || said["janus"] == "ack", "Janus: {said}");
    Ok(said)
}

/// The next event of a session, which is waited for.
fn hear(agent: &ureq::Agent, path: &str) -> Result<Value> {
    let url = format!("http://{RELAY_OUT}:{PORT}/janus{path}?maxev=1");
    let text = agent.get(&url).call()?.body_mut().read_to_string()?;
    // One event, or a list of one.
    match serde_json::from_str(&text)? {
        Value::Array(mut all) => all.pop().context("no event"),
        one => Ok(one),
    }
}
