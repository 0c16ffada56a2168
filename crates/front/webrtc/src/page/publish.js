// Publishes a camera or a screen as the stream that this page's address names, by WHIP (RFC 9725).

import { KINDS, close, open, opened, prepare, resize } from "/assets/capture.js";
import { $, Refused, change, draw, end, keep, name, rate, reports, restart, say, session } from "/assets/webrtc.js";

// From the wish to publish to its end.
let wanted = false;
// Whether the relay has taken this page as the publisher since then.
let came = false;
// Whether there is a preview without that.
let looking = false;
let awake = null;
// What the figures were a second ago.
let before = {};

const show = (state, text) => {
  say(state, text);
  $("go").textContent = wanted ? "End" : "Publish";
  $("go").classList.toggle("end", wanted);
  $("look").textContent = looking ? "Close preview" : "Preview";
  $("look").hidden = wanted;
  document.title = `${state === "publishing" ? "● " : ""}${name}`;
};

const GOES_WELL = { preview: "nothing is sent yet", publishing: "on air" };

// What the relay's refusals mean, and what to do; its own words follow.
const REFUSALS = {
  400: "The relay does not understand this browser: try another one",
  401: "Publishing needs a token that the relay knows: add ?token=TOKEN to the address of this page",
  403: "This may not be published from here: the token is for something else, or a proxy before the relay has changed the Host of this page",
  404: "There is no stream of this name: correct the address of this page, or add the stream to the configuration",
  409: "This stream has another publisher, or takes none",
  415: "The relay takes no offers of this page: load it again",
  422: "The relay takes no codec of this browser: try another one",
  429: "Too many wrong tokens have come from here",
  503: "The relay takes no publisher now",
};

// The same request would be refused again.
const FINAL = [400, 401, 403, 404, 413, 415, 422];

// The place of a session that was lost is free after a while.
const isFinal = (why) => FINAL.includes(why.status) || (why.status === 409 && !came);

const describe = (why) => {
  if (!(why instanceof Refused)) return why.message;
  return `${REFUSALS[why.status] ?? "The relay refuses"} (${why.status}: ${why.message})`;
};

const most = () => Number($("most").value);

// H.264 goes first: receivers of all protocols of the relay play it, browsers if it has no B pictures (they show
// pictures in the order in which they come). Constrained Baseline (profile-level-id 42e0…) has none. Of its packets,
// those of mode 1 (RFC 6184) are what players want. Then VP8, which every browser has.
const preference = ({ mimeType, sdpFmtpLine = "" }) => {
  if (/vp8$/i.test(mimeType)) return 3;
  if (!/h264$/i.test(mimeType)) return 4;
  if (!sdpFmtpLine.includes("packetization-mode=1")) return 2;
  return /profile-level-id=42e0/i.test(sdpFmtpLine) ? 0 : 1;
};

const prefer = (transceiver) => {
  const codecs = RTCRtpSender.getCapabilities("video")?.codecs ?? [];
  codecs.sort((one, other) => preference(one) - preference(other));
  transceiver.setCodecPreferences?.(codecs);
};

// The picture in several sizes, the best first. The relay takes as many as the stream has renditions, one at least.
const LAYERS = ["h", "m", "l"].map((rid, index) => ({ rid, scaleResolutionDownBy: 2 ** index }));

// A size has bits by its area, and all together no more than is chosen.
const share = (encodings) => {
  const areas = encodings.map(({ scaleResolutionDownBy: by = 1 }) => 1 / by ** 2);
  const all = areas.reduce((sum, area) => sum + area, 0);
  return encodings.map((encoding, index) => ({ ...encoding, maxBitrate: Math.round((most() * areas[index]) / all) }));
};

const carry = (pc) => {
  for (const kind of KINDS.filter(opened)) {
    const encodings = kind === "video" ? { sendEncodings: share(LAYERS) } : {};
    const transceiver = pc.addTransceiver(opened(kind), { direction: "sendonly", ...encodings });
    if (kind === "video") prefer(transceiver);
  }
  pc.addEventListener("connectionstatechange", () => {
    if (pc.connectionState === "connected") show("publishing", GOES_WELL.publishing);
  });
};

const sender = (kind) =>
  session?.pc.getTransceivers().find((one) => one.receiver.track.kind === kind)?.sender;

// Has the session send what is open and chosen now.
const follow = async () => {
  if (!session) return;
  // What there is besides the picture is agreed on at the beginning.
  if (opened("audio") && !sender("audio")) return restart();
  for (const kind of KINDS) await sender(kind)?.replaceTrack(opened(kind) ?? null);
  const parameters = sender("video").getParameters();
  const taken = share(parameters.encodings.filter(({ active }) => active));
  for (const encoding of taken) Object.assign(parameters.encodings.find(({ rid }) => rid === encoding.rid), encoding);
  await sender("video").setParameters(parameters);
};

const begun = () => {
  came = true;
  before = {};
  follow().catch(() => {});
};

// A phone that turns its screen off takes the camera away.
const stayAwake = async () => {
  if (!wanted || document.hidden) return;
  awake = await navigator.wakeLock?.request("screen").catch(() => null);
  if (!wanted) awake?.release();
};

const publish = async () => {
  wanted = true;
  came = false;
  let why = null;
  try {
    show("asking", "waiting for permission");
    await open(KINDS.filter((kind) => !opened(kind)));
    if (wanted) show("connecting", "connecting");
    stayAwake();
    if (wanted) why = await keep({ prepare: carry, begun, isFinal, describe });
  } catch (error) {
    why = error;
  }
  wanted = looking = false;
  awake?.release();
  close();
  draw([]);
  show(why ? "refused" : "ended", why ? describe(why) : "ended");
};

const look = async () => {
  show("asking", "waiting for permission");
  await open(KINDS);
  if (wanted) return;
  if (!looking) return close();
  show("preview", GOES_WELL.preview);
};

// A choice has changed. What is not open follows it later.
const choose = async (kinds) => {
  if (!opened("video")) return;
  await open(kinds);
  if (!wanted && !looking) close();
  await follow();
};

// What fails here ends what has no picture without it.
const attempt = async (job) => {
  try {
    await job();
    const { state } = document.body.dataset;
    if (state in GOES_WELL) show(state, GOES_WELL[state]);
  } catch (error) {
    complain(error);
  }
};

const complain = (error) => {
  if (opened("video")) return show(document.body.dataset.state, error.message);
  if (wanted) return end(error);
  looking = false;
  close();
  show("refused", error.message);
};

let running = false;
$("go").onclick = async () => {
  if (wanted) {
    wanted = false;
    close();
    say("ending");
    return end(null);
  }
  if (running) return;
  running = true;
  await publish();
  running = false;
};

$("look").onclick = () => {
  looking = !looking;
  if (looking) return attempt(look);
  close();
  show("off", "");
};

// What is open stays, and stays chosen, if the user shares no screen.
let from = $("from-camera");
$("from-camera").onchange = $("from-screen").onchange = ({ target }) =>
  attempt(async () => {
    $("cameras").hidden = target !== $("from-camera");
    try {
      await choose(["video"]);
      from = target;
    } catch (error) {
      if (opened("video")) from.checked = true;
      $("cameras").hidden = !$("from-camera").checked;
      throw error;
    }
  });

$("camera").onchange = () => attempt(() => choose(["video"]));
$("microphone").onchange = () => attempt(() => choose(["audio"]));
$("size").onchange = () => attempt(resize);
$("most").onchange = () => attempt(follow);
$("sound").onchange = () =>
  attempt(async () => {
    // What is sent to players goes on, in silence.
    if (opened("audio") && sender("audio")) opened("audio").enabled = $("sound").checked;
    else await choose(["audio"]);
  });

// Figures, once a second.
const figures = async () => {
  const all = await reports();
  // Of several sizes the largest that is sent.
  const width = ({ frameWidth = 0 }) => frameWidth;
  const of = (type) =>
    all.filter((one) => one.type === type && one.kind === "video").sort((one, other) => width(other) - width(one))[0];
  const picture = of("outbound-rtp");
  const heard = all.find((one) => one.id === picture?.remoteId);
  const pair = all.find((one) => one.type === "candidate-pair" && one.nominated);
  if (!picture) return [];
  const sent = all.filter((one) => one.type === "outbound-rtp");
  const now = { picture, bytes: { timestamp: picture.timestamp, all: sent.reduce((sum, one) => sum + one.bytesSent, 0) } };
  const codec = all.find((one) => one.id === picture.codecId)?.mimeType.split("/")[1];
  const trip = pair?.currentRoundTripTime ?? heard?.roundTripTime;
  const limit = { cpu: "this device", bandwidth: "the network" }[picture.qualityLimitationReason];
  const pairs = [
    ["Picture", `${picture.frameWidth ?? 0}×${picture.frameHeight ?? 0} ${codec ?? ""}`],
    ["Sizes", sent.filter((one) => one.kind === "video" && one.framesEncoded > 0).length],
    ["Pictures a second", Math.round(change(before.picture, picture, "framesEncoded"))],
    ["Rate", rate(8 * change(before.bytes, now.bytes, "all"))],
    ["Round trip", trip === undefined ? "–" : `${Math.round(1000 * trip)} ms`],
    ["Lost", heard ? `${heard.packetsLost} of ${picture.packetsSent}` : "–"],
    ["Sent again", picture.retransmittedPacketsSent ?? 0],
    ["Limited by", limit ?? "–"],
  ];
  before = now;
  return pairs;
};

setInterval(async () => {
  const pairs = session ? await figures().catch(() => []) : [];
  if (wanted) draw(pairs);
}, 1000);
document.addEventListener("visibilitychange", stayAwake);

$("watch").href = `/play/${location.pathname.replace(/^\/publish\//, "")}`;
const impossible = prepare((text) => complain(new Error(text)));
$("go").disabled = $("look").disabled = $("choices").hidden = impossible !== null;
show(impossible === null ? "off" : "impossible", impossible ?? "");
