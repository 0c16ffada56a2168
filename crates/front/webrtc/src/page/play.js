// Plays the stream that this page's address names, by WHEP: POST to the same address, DELETE at the end.

import { $, change, draw, keep, rate, reports, say, session } from "/assets/webrtc.js";

const video = $("video");

// Without this, Chromium plays one channel of two.
const stereo = (sdp) => {
  const number = sdp.match(/a=rtpmap:(\d+) opus\/48000\/2/i)?.[1];
  return number ? sdp.replace(`a=fmtp:${number} `, `a=fmtp:${number} stereo=1;`) : sdp;
};

const prepare = (pc) => {
  for (const kind of ["video", "audio"]) pc.addTransceiver(kind, { direction: "recvonly" });
};

const begun = () => {
  video.srcObject = new MediaStream(session.pc.getReceivers().map((one) => one.track));
  showLevels();
};

// Levels: only where there is something to choose.
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
  const all = await reports();
  const picture = all.find((one) => one.type === "inbound-rtp" && one.kind === "video");
  const pair = all.find((one) => one.type === "candidate-pair" && one.nominated);
  if (!picture) return [];
  const of = (key) => change(before, picture, key);
  const shown = of("jitterBufferEmittedCount");
  const waited = shown > 0 ? (1000 * of("jitterBufferDelay")) / shown : 0;
  const pairs = [
    ["Picture", `${picture.frameWidth ?? 0}×${picture.frameHeight ?? 0}`],
    ["Pictures a second", Math.round(of("framesDecoded"))],
    ["Rate", rate(8 * of("bytesReceived"))],
    ["Lost", `${picture.packetsLost} of ${picture.packetsLost + picture.packetsReceived}`],
    ["Round trip", `${Math.round(1000 * (pair?.currentRoundTripTime ?? 0))} ms`],
    ["Buffered", `${Math.round(waited)} ms`],
    ["Freezes", picture.freezeCount ?? 0],
  ];
  before = picture;
  return pairs;
};

const measure = async () => {
  if (session && $("more").open) draw(await figures());
};

video.onplaying = () => say("playing", "");
$("apart").hidden = !document.pictureInPictureEnabled;
$("apart").onclick = () =>
  document.pictureInPictureElement ? document.exitPictureInPicture() : video.requestPictureInPicture();
setInterval(() => measure().catch(() => {}), 1000);
say("connecting");
keep({ prepare, edit: stereo, begun });
