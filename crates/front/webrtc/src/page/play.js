// Plays the stream that this page's address names, by WHEP: POST to the same address, DELETE at the end.

const $ = (id) => document.getElementById(id);
const video = $("video");
const endpoint = location.pathname + location.search;
const name = decodeURIComponent(location.pathname.replace(/^\/play\//, ""));

const AGAIN_AFTER_MS = [500, 1000, 2000, 5000];
const LOST_AFTER_MS = 3000;

let session = null;
let failures = 0;

const say = (state, text = state) => {
  document.body.dataset.state = state;
  if ($("state").textContent !== text) $("state").textContent = text;
};

const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

// Without this, Chromium plays one channel of two.
const stereo = (sdp) => {
  const number = sdp.match(/a=rtpmap:(\d+) opus\/48000\/2/i)?.[1];
  return number ? sdp.replace(`a=fmtp:${number} `, `a=fmtp:${number} stereo=1;`) : sdp;
};

const problem = async (response) => {
  const body = await response.json().catch(() => null);
  return body?.error ?? `${response.status} ${response.statusText}`;
};

// Answers a session: the connection, where it is ended, where its level is asked for.
const open = async () => {
  const pc = new RTCPeerConnection();
  const stream = new MediaStream();
  for (const kind of ["video", "audio"]) {
    stream.addTrack(pc.addTransceiver(kind, { direction: "recvonly" }).receiver.track);
  }
  const offer = await pc.createOffer();
  await pc.setLocalDescription({ type: "offer", sdp: stereo(offer.sdp) });
  const headers = { "Content-Type": "application/sdp" };
  const response = await fetch(endpoint, { method: "POST", headers, body: pc.localDescription.sdp });
  if (!response.ok) {
    pc.close();
    throw new Error(await problem(response));
  }
  const at = response.headers.get("Location");
  const levels = response.headers.get("Outflow-Session");
  await pc.setRemoteDescription({ type: "answer", sdp: await response.text() });
  video.srcObject = stream;
  return { pc, at, levels };
};

// Waits until a connection is over, and answers why.
const over = (pc) =>
  new Promise((done) => {
    let lost = null;
    pc.onconnectionstatechange = () => {
      clearTimeout(lost);
      if (pc.connectionState === "connected") failures = 0;
      if (pc.connectionState === "disconnected") lost = setTimeout(() => done("the connection is lost"), LOST_AFTER_MS);
      if (["failed", "closed"].includes(pc.connectionState)) done("the connection has ended");
    };
  });

const end = () => {
  if (!session) return;
  session.pc.close();
  fetch(session.at, { method: "DELETE", keepalive: true }).catch(() => {});
  session = null;
};

const run = async () => {
  for (;;) {
    let why;
    try {
      session = await open();
      showLevels();
      why = await over(session.pc);
    } catch (error) {
      why = error.message;
    }
    end();
    const wait = AGAIN_AFTER_MS[Math.min(failures, AGAIN_AFTER_MS.length - 1)];
    failures += 1;
    say("waiting", `${why}; trying again`);
    await sleep(wait);
  }
};

// Levels: only where there is something to choose.
const rate = (bps) => (bps >= 1e6 ? `${(bps / 1e6).toFixed(1)} Mbit/s` : `${Math.round(bps / 1e3)} kbit/s`);

const showLevels = async () => {
  const response = await fetch(session.levels + location.search).catch(() => null);
  const state = response?.ok ? await response.json() : { levels: [] };
  $("levels").hidden = state.levels.length < 2;
  const options = state.levels.map((bps, index) => new Option(`${index + 1}: ${rate(bps)}`, index + 1));
  $("level").replaceChildren(...options);
  $("level").value = state.level;
};

$("level").onchange = async () => {
  const body = JSON.stringify({ level: Number($("level").value) });
  const headers = { "Content-Type": "application/json" };
  const response = await fetch(session.levels + location.search, { method: "PATCH", headers, body });
  if (response.ok) $("level").value = (await response.json()).level;
};

// Statistics, once a second.
let before = null;

const figures = async () => {
  const reports = [...(await session.pc.getStats()).values()];
  const picture = reports.find((one) => one.type === "inbound-rtp" && one.kind === "video");
  const pair = reports.find((one) => one.type === "candidate-pair" && one.nominated);
  if (!picture) return [];
  const seconds = before ? (picture.timestamp - before.timestamp) / 1000 : 0;
  const change = (key) => (seconds > 0 ? (picture[key] - before[key]) / seconds : 0);
  const shown = change("jitterBufferEmittedCount");
  const waited = shown > 0 ? (1000 * change("jitterBufferDelay")) / shown : 0;
  const all = [
    ["Picture", `${picture.frameWidth ?? 0}×${picture.frameHeight ?? 0}`],
    ["Pictures a second", Math.round(change("framesDecoded"))],
    ["Rate", rate(8 * change("bytesReceived"))],
    ["Lost", `${picture.packetsLost} of ${picture.packetsLost + picture.packetsReceived}`],
    ["Round trip", `${Math.round(1000 * (pair?.currentRoundTripTime ?? 0))} ms`],
    ["Buffered", `${Math.round(waited)} ms`],
    ["Freezes", picture.freezeCount ?? 0],
  ];
  before = picture;
  return all;
};

const draw = async () => {
  if (!session || !$("more").open) return;
  const items = (await figures()).map(([term, value]) => {
    const item = document.createElement("div");
    item.append(Object.assign(document.createElement("dt"), { textContent: term }));
    item.append(Object.assign(document.createElement("dd"), { textContent: value }));
    return item;
  });
  $("figures").replaceChildren(...items);
};

document.title = name;
$("name").textContent = name;
video.onplaying = () => say("playing", "");
$("apart").hidden = !document.pictureInPictureEnabled;
$("apart").onclick = () =>
  document.pictureInPictureElement ? document.exitPictureInPicture() : video.requestPictureInPicture();
addEventListener("pagehide", end);
setInterval(() => draw().catch(() => {}), 1000);
say("connecting");
run();
