// Plays the stream that this page's address names, by WHEP: POST to the same address, DELETE at the end.

import { $, change, draw, keep, rate, reports, say, session } from "/assets/webrtc.js";

const video = $("video");

// Without this, Chromium plays one channel of two.
const stereo = (sdp) => {
  const number = sdp.match(/a=rtpmap:(\d+) opus\/48000\/2/i)?.[1];
  return number ? sdp.replace(`a=fmtp:${number} `, `a=fmtp:${number} stereo=1;`) : sdp;
};

// How its URI ends (AV1 RTP specification, appendix A).
const DESCRIPTOR = "#dependency-descriptor-rtp-header-extension";

// By this, pictures of several layers are known to be whole: Chromium knows it, and offers it when it is told to.
const described = (transceiver) => {
  const all = transceiver.getHeaderExtensionsToNegotiate?.();
  const wanted = (one) => (one.uri.endsWith(DESCRIPTOR) ? { ...one, direction: "sendrecv" } : one);
  if (all) transceiver.setHeaderExtensionsToNegotiate(all.map(wanted));
};

const prepare = (pc) => {
  described(pc.addTransceiver("video", { direction: "recvonly" }));
  pc.addTransceiver("audio", { direction: "recvonly" });
};

const begun = () => {
  video.srcObject = new MediaStream(session.pc.getReceivers().map((one) => one.track));
  showLevels();
};

// Levels: only where there is something to choose. The one that is chosen is the best that is sent; the viewer's network
// may carry less.
let chosen = Number(new URLSearchParams(location.search).get("level") ?? 1);

const levels = async (change) => {
  const response = await fetch(session.levels + location.search, change).catch(() => null);
  return response?.ok ? await response.json() : { levels: [] };
};

const showLevels = async () => {
  const state = await levels();
  $("levels").hidden = state.levels.length < 2;
  const named = (bps, index) => `${index > 0 ? `At most ${index + 1}` : "Best"}: ${rate(bps)}`;
  $("level").replaceChildren(...state.levels.map((bps, index) => new Option(named(bps, index), index + 1)));
  $("level").value = Math.min(chosen, state.levels.length);
};

$("level").onchange = async () => {
  chosen = Number($("level").value);
  const body = JSON.stringify({ level: chosen });
  await levels({ method: "PATCH", headers: { "Content-Type": "application/json" }, body });
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
  if (!$("levels").hidden) {
    const state = await levels();
    pairs.push(["Level", `${state.level} of ${state.levels.length}`]);
  }
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
