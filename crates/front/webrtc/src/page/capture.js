// What the page that publishes sends: a camera or a screen, and a microphone, as its user has chosen.

import { $ } from "/assets/webrtc.js";

const devices = navigator.mediaDevices;
const PICTURES_A_SECOND = 30;

export const KINDS = ["video", "audio"];

// What is open, and shown.
const media = new MediaStream();

// What is to be done when a track has ended by itself; it is told why.
let ended = () => {};

// What went wrong, and what to do.
const UNOPENED = {
  NotAllowedError:
    "Camera or microphone are not allowed to this page: allow them beside its address, and in the settings of the " +
    "system, and try again",
  NotFoundError: "There is no such camera or microphone: plug one in, or choose another one or a screen",
  NotReadableError:
    "Camera or microphone cannot be opened: another program may have them; end that, and try again",
  OverconstrainedError: "This camera or microphone is not there any more: choose another one",
};
const UNSHARED =
  "No screen was shared: choose one, and allow the browser to see it in the settings of the system";
const INSECURE = () =>
  "Browsers give camera, microphone and screen to pages by HTTPS alone, and to those of the same machine. Have the " +
  "relay listen for HTTPS ([listen] https), or a proxy before it, and open this page that way. On the relay's own " +
  `machine, open http://localhost${location.port && `:${location.port}`}${location.pathname}`;

const isScreen = () => $("from-screen").checked;

export const opened = (kind) => media.getTracks().find((track) => track.kind === kind);

// Sizes are those of a camera; a screen is made smaller.
const bounds = () => {
  const [width, height] = $("size").value.split("x").map(Number);
  const bound = isScreen() ? "max" : "ideal";
  return { width: { [bound]: width }, height: { [bound]: height }, frameRate: { [bound]: PICTURES_A_SECOND } };
};

const chosen = (id) => ($(id).value ? { deviceId: { exact: $(id).value } } : {});

const show = () => {
  $("video").srcObject = media.active ? media : null;
};

export const close = (kinds = KINDS) => {
  for (const track of kinds.map(opened).filter(Boolean)) {
    track.stop();
    media.removeTrack(track);
  }
  show();
};

const gone = (track) => {
  // One that was closed, or that another one is in the place of, has nothing to say.
  if (opened(track.kind) !== track) return;
  close([track.kind]);
  if (track.kind === "audio") return ended("The microphone is gone: choose another one");
  const text = isScreen() ? "The screen is shared no longer" : "The camera is gone: choose another one";
  ended(text);
};

const put = (track) => {
  track.onended = () => gone(track);
  media.addTrack(track);
};

const openNow = async (kinds) => {
  const got = [];
  const take = async (asked) => got.push(...(await asked).getTracks());
  const lacks = (kind) =>
    kinds.includes(kind) && (kind === "video" || $("sound").checked) && !got.some((track) => track.kind === kind);
  let isAsked = false;
  try {
    if (lacks("video") && isScreen()) {
      isAsked = true;
      // With its sound, if the user shares that; a microphone otherwise.
      await take(devices.getDisplayMedia({ video: bounds(), audio: lacks("audio") }));
      isAsked = false;
    }
    const video = lacks("video") && { ...bounds(), ...chosen("camera") };
    const audio = lacks("audio") && !$("microphone").disabled && chosen("microphone");
    // Phones have one camera open at a time.
    if (video) close(["video"]);
    // Both together: the user is asked once.
    if (video || audio) await take(devices.getUserMedia({ video, audio }));
  } catch (error) {
    got.forEach((track) => track.stop());
    const text = isAsked && error.name === "NotAllowedError" ? UNSHARED : UNOPENED[error.name];
    throw new Error(text ?? error.message);
  }
  close(kinds);
  got.forEach(put);
  show();
  await list();
};

// Opens what is chosen of these kinds, in place of what is open; one call after the other, however fast they come.
let turn = Promise.resolve();
export const open = (kinds) => {
  turn = turn.catch(() => {}).then(() => openNow(kinds));
  return turn;
};

// Gives the picture another size.
export const resize = () => opened("video")?.applyConstraints(bounds());

// What there is to choose. Devices have names once the user has allowed one.
const list = async () => {
  const all = await devices.enumerateDevices();
  const fill = (id, kind, label) => {
    const some = all.filter((one) => one.kind === `${kind}input`);
    // A screen is none of them.
    const known = (device) => some.some((one) => one.deviceId === device);
    const current = [opened(kind)?.getSettings().deviceId, $(id).value].find(known);
    const options = some.map((one, index) => new Option(one.label || `${label} ${index + 1}`, one.deviceId));
    $(id).replaceChildren(...(options.length ? options : [new Option("none found", "")]));
    if (current) $(id).value = current;
    $(id).disabled = !options.length;
  };
  fill("camera", "video", "Camera");
  fill("microphone", "audio", "Microphone");
};

// Answers why nothing can be opened, if that is so.
export const prepare = (whenEnded) => {
  ended = whenEnded;
  // Browsers take them away from pages that others on the way could have changed.
  if (!devices?.getUserMedia) return INSECURE();
  $("from-screen").parentElement.hidden = !devices.getDisplayMedia;
  devices.ondevicechange = list;
  list();
  return null;
};
