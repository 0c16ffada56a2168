// What the pages that play and that publish have in common: a session with the relay that is kept up, and its figures.

export const $ = (id) => document.getElementById(id);

// The endpoint of WHEP, or WHIP, is the page's own address. A token is in its query.
const endpoint = location.pathname + location.search;
export const name = decodeURIComponent(location.pathname.replace(/^\/(play|publish)\//, ""));

const AGAIN_AFTER_MS = [500, 1000, 2000, 5000];
const LOST_AFTER_MS = 3000;
const ANSWERED_WITHIN_MS = 15000;
const LEFT_WITHIN_MS = 2000;

// The session that there is: its connection, where it is ended, where its level is asked for.
export let session = null;
let failures = 0;

// What the page wants of it, and what ends the wait for anything else.
let told = null;
let wake = () => {};

export const say = (state, text = state) => {
  document.body.dataset.state = state;
  if ($("state").textContent !== text) $("state").textContent = text;
};

// An offer that the relay does not take, and why.
export class Refused extends Error {
  constructor(response, text) {
    super(text);
    this.status = response.status;
    this.waitMs = 1000 * (Number(response.headers.get("Retry-After")) || 0);
  }
}

const refusal = async (response) => {
  const body = await response.json().catch(() => null);
  return new Refused(response, body?.error ?? `${response.status} ${response.statusText}`);
};

const silent = () => {
  throw new Error("the relay does not answer");
};

const begin = async (prepare, edit) => {
  const pc = new RTCPeerConnection();
  try {
    await prepare(pc);
    const offer = await pc.createOffer();
    await pc.setLocalDescription({ type: "offer", sdp: edit(offer.sdp) });
    const headers = { "Content-Type": "application/sdp" };
    const body = pc.localDescription.sdp;
    const signal = AbortSignal.timeout(ANSWERED_WITHIN_MS);
    const response = await fetch(endpoint, { method: "POST", headers, body, signal }).catch(silent);
    if (!response.ok) throw await refusal(response);
    session = { pc, at: response.headers.get("Location"), levels: response.headers.get("Outflow-Session") };
    await pc.setRemoteDescription({ type: "answer", sdp: await response.text() });
  } catch (error) {
    pc.close();
    throw error;
  }
};

const waiting = (start) =>
  new Promise((done) => {
    wake = done;
    start(done);
  });

// The session goes on by another way, if the relay knows it still (RFC 9725, section 4.4): both ends get other names.
const goOn = async ({ pc, at }, edit) => {
  const offer = await pc.createOffer({ iceRestart: true });
  await pc.setLocalDescription({ type: "offer", sdp: edit(offer.sdp) });
  const names = /^a=ice-(?:ufrag|pwd):.*$/gm;
  const body = [...new Set(pc.localDescription.sdp.match(names))].map((line) => `${line}\r\n`).join("");
  const headers = { "Content-Type": "application/trickle-ice-sdpfrag" };
  const signal = AbortSignal.timeout(LOST_AFTER_MS);
  const response = await fetch(at, { method: "PATCH", headers, body, signal }).catch(silent);
  if (!response.ok) throw await refusal(response);
  const theirs = (await response.text()).match(names) ?? [];
  const newest = (line) => theirs.find((other) => other.split(":")[0] === line.split(":")[0]) ?? line;
  await pc.setRemoteDescription({ type: "answer", sdp: pc.remoteDescription.sdp.replace(names, newest) });
};

// Waits until a session is over, and answers why. One that is lost, or whose network is another one, goes on first.
const over = (session, edit) =>
  waiting((done) => {
    const { pc } = session;
    let lost = null;
    const isOver = (text) => done(new Error(text));
    const isLost = () => {
      lost ??= setTimeout(isOver, LOST_AFTER_MS, "the connection is lost");
      goOn(session, edit).catch((error) => isOver(error.message));
    };
    pc.onconnectionstatechange = () => {
      const { connectionState: state } = pc;
      if (state === "connected") {
        failures = 0;
        clearTimeout(lost);
        lost = null;
      }
      if (["disconnected", "failed"].includes(state) && lost === null) isLost();
      if (state === "closed") isOver("the connection has ended");
    };
  });

const leave = async () => {
  if (!session) return;
  const { pc, at } = session;
  session = null;
  pc.close();
  const signal = AbortSignal.timeout(LEFT_WITHIN_MS);
  await fetch(at, { method: "DELETE", keepalive: true, signal }).catch(() => {});
};

// Has a session, and another one when it is over, after waits that grow. `prepare` gives a connection what it is to
// carry, `edit` changes the offer, `begun` is told of an answer. Answers what `end` says, or what `isFinal` calls such.
export const keep = async ({
  prepare,
  edit = (sdp) => sdp,
  begun,
  isFinal = () => false,
  describe = (why) => why.message,
}) => {
  told = null;
  failures = 0;
  for (;;) {
    let why = null;
    try {
      await begin(prepare, edit);
      begun();
      why = told ? null : await over(session, edit);
    } catch (error) {
      why = error;
    }
    await leave();
    if (!told) {
      if (isFinal(why)) return why;
      const wait = AGAIN_AFTER_MS[Math.min(failures, AGAIN_AFTER_MS.length - 1)];
      failures += 1;
      say("waiting", `${describe(why)}; trying again`);
      await waiting((done) => setTimeout(done, Math.max(wait, why.waitMs ?? 0)));
    }
    if (told && !told.again) return told.why;
    told = null;
  }
};

const tell = (what) => {
  told = what;
  wake();
};

// Ends what is kept.
export const end = (why) => tell({ why, again: false });

// Has another session in place of this one, at once.
export const restart = () => tell({ again: true });

addEventListener("pagehide", leave);
// A browser may have kept the page, but not its session.
addEventListener("pageshow", (event) => event.persisted && location.reload());

// Figures, for people.
export const rate = (bps) => (bps >= 1e6 ? `${(bps / 1e6).toFixed(1)} Mbit/s` : `${Math.round(bps / 1e3)} kbit/s`);

export const reports = async () => [...(await session.pc.getStats()).values()];

// How much a figure of a report changes a second.
export const change = (before, now, key) => {
  const seconds = before ? (now.timestamp - before.timestamp) / 1000 : 0;
  return seconds > 0 ? (now[key] - before[key]) / seconds : 0;
};

export const draw = (pairs) => {
  const items = pairs.map(([term, value]) => {
    const item = document.createElement("div");
    item.append(Object.assign(document.createElement("dt"), { textContent: term }));
    item.append(Object.assign(document.createElement("dd"), { textContent: value }));
    return item;
  });
  $("figures").replaceChildren(...items);
};

document.title = name;
$("name").textContent = name;
