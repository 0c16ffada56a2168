// The status page: draws each overview that the relay sends (GET /api/v1/events).

const query = location.search;
const host = location.hostname;
const HISTORY = 120;
const UP_TO_DATE_MS = 5000;

const $ = (selector, root = document) => root.querySelector(selector);

const make = (tag, properties = {}, ...children) => {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
};

const setText = (element, text) => {
  if (element.textContent !== text) element.textContent = text;
};

// Numbers for people.
const scaled = (value, units, base = 1000) => {
  let step = 0;
  while (value >= base && step < units.length - 1) {
    value /= base;
    step += 1;
  }
  const digits = step === 0 || value >= 100 ? 0 : value >= 10 ? 1 : 2;
  return `${value.toFixed(digits)} ${units[step]}`;
};
const rate = (bps) => scaled(bps, ["bit/s", "kbit/s", "Mbit/s", "Gbit/s"]);
const bytes = (count) => scaled(count, ["B", "kB", "MB", "GB"]);
const count = (n) => n.toLocaleString("en");
const span = (ms) => {
  if (ms < 1000) return `${ms} ms`;
  const seconds = Math.floor(ms / 1000);
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  const hours = Math.floor(seconds / 3600);
  if (hours < 48) return `${hours} h ${Math.floor((seconds % 3600) / 60)} min`;
  return `${Math.floor(hours / 24)} d ${hours % 24} h`;
};
const total = (drops) => Object.values(drops).reduce((sum, n) => sum + n, 0);
const reasons = (drops) => Object.entries(drops).map(([reason, n]) => `${reason} ${count(n)}`);

// Definition lists: [term, value] pairs, each made once and then kept up to date.
const figures = (list, pairs) => {
  const wanted = pairs.filter(([, value]) => value !== null);
  while (list.children.length > wanted.length) list.lastChild.remove();
  wanted.forEach(([term, value], index) => {
    let item = list.children[index];
    if (!item) {
      item = make("div", {}, make("dt"), make("dd"));
      list.append(item);
    }
    setText(item.firstChild, term);
    setText(item.lastChild, value);
  });
};

// Keeps the children of `parent` in step with `items`, so that what is clicked stays there.
const keep = (parent, items, key, create, update) => {
  const known = new Map([...parent.children].map((child) => [child.dataset.key, child]));
  items.forEach((item, index) => {
    const name = String(key(item));
    let child = known.get(name);
    known.delete(name);
    if (!child) {
      child = create(item);
      child.dataset.key = name;
    }
    if (parent.children[index] !== child) parent.insertBefore(child, parent.children[index] ?? null);
    update(child, item);
  });
  known.forEach((child) => child.remove());
};

const draw = (line, values, peak) => {
  const left = HISTORY - values.length;
  const point = (value, index) =>
    `${(((left + index) / (HISTORY - 1)) * 300).toFixed(1)},${(46 - (value / peak) * 43).toFixed(1)}`;
  line.setAttribute("points", values.map(point).join(" "));
};

const path = (name) => name.split("/").map(encodeURIComponent).join("/");

// The pages of a stream, its addresses at all listeners, and how to publish there while it waits for a publisher.
const addresses = (stream, { addresses: listeners, pages }) => {
  const url = ({ scheme, port, usual_port, suffix }) =>
    `${scheme}://${host}${port === usual_port ? "" : `:${port}`}/${path(stream.name)}${suffix}`;
  const waits = stream.source.url === "push" && !stream.source.up;
  const commands = listeners.filter((listener) => waits && listener.publish);
  const open = pages.filter(({ publishes }) => waits || !publishes);
  return [
    ...open.map((page) => [page.label, `${location.origin}${page.path}${path(stream.name)}`, true]),
    ...listeners.map((listener) => [listener.label, url(listener)]),
    ...commands.map((listener) => ["publish", listener.publish.replace("URL", () => url(listener))]),
  ];
};

const copy = async (button, text) => {
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "copied";
  } catch {
    const range = document.createRange();
    range.selectNodeContents(button.previousSibling);
    getSelection().removeAllRanges();
    getSelection().addRange(range);
    button.textContent = "selected";
  }
  setTimeout(() => (button.textContent = "copy"), 1500);
};

const newAddress = ([kind, address, isPage]) => {
  const button = make("button", { type: "button", textContent: "copy" });
  button.addEventListener("click", () => copy(button, address));
  const shown = make("code", { textContent: address });
  const link = isPage ? make("a", { href: address, target: "_blank", rel: "noopener" }, shown) : shown;
  return make("li", {}, make("span", { textContent: kind }), link, button);
};

const remove = async (button, receiver) => {
  if (!confirm(`End receiver ${receiver.name ?? receiver.to} of ${receiver.stream}?`)) return;
  button.disabled = true;
  const answer = await fetch(`/api/v1/receivers/${receiver.id}${query}`, { method: "DELETE" });
  if (!answer.ok && answer.status !== 404) {
    button.disabled = false;
    alert((await answer.json()).error);
  }
};

const COLUMNS = [
  ["", ""], ["kind", ""], ["", ""], ["rate", "n"], ["queue", "n"],
  ["loss", "n"], ["jitter", "n"], ["dropped", "wide"], ["since", "n"], ["", ""],
];

const newReceiver = (receiver) => {
  const row = make("tr");
  for (const [label, style] of COLUMNS) {
    const cell = make("td", { className: style });
    if (label) cell.dataset.label = label;
    row.append(cell);
  }
  const button = make("button", { type: "button", textContent: "end", title: "End this receiver" });
  button.addEventListener("click", () => remove(button, receiver));
  row.lastChild.append(button);
  row.cells[2].append(make("span", { className: "pill" }));
  return row;
};

const STATES = { live: "pill good", behind: "pill warn", waiting: "pill", paused: "pill" };

const showReceiver = (row, receiver) => {
  const worst = (value) => Math.max(...receiver.reports.map(value));
  const reported = receiver.reports.length > 0;
  const loss = reported ? worst((r) => r.fraction_lost) : 0;
  const queue = receiver.queue_packets ? `${count(receiver.queue_packets)} · ${receiver.queue_delay_ms} ms` : "0";
  const named = receiver.name && !receiver.name.includes(receiver.to);
  setText(row.cells[0], named ? `${receiver.name} (${receiver.to})` : receiver.name ?? receiver.to);
  setText(row.cells[1], receiver.priority === "normal" ? receiver.kind : `${receiver.kind}, ${receiver.priority}`);
  const state = row.cells[2].firstChild;
  setText(state, receiver.state);
  state.className = STATES[receiver.state] ?? "pill";
  setText(row.cells[3], rate(receiver.bps));
  setText(row.cells[4], queue);
  setText(row.cells[5], reported ? `${(loss * 100).toFixed(1)} %` : "");
  setText(row.cells[6], reported ? `${worst((r) => r.jitter_ms).toFixed(1)} ms` : "");
  setText(row.cells[7], reasons(receiver.drops).join(", "));
  setText(row.cells[8], span(receiver.age_ms));
  row.cells[5].classList.toggle("hot", loss > 0.02);
  row.cells[7].classList.toggle("hot", total(receiver.drops) > 0);
};

const newCard = () => {
  const section = $("#stream").content.firstElementChild.cloneNode(true);
  return Object.assign(section, { rates: { in: [], out: [] } });
};

const showStream = (card, stream, relay) => {
  const { source } = stream;
  setText($("h2", card), stream.name);
  const state = $(".state", card);
  setText(state, source.up ? `on for ${span(source.since_ms)}` : source.starts ? `away for ${span(source.since_ms)}` : "no source yet");
  state.className = `pill state ${source.up ? "good" : source.starts ? "bad" : "warn"}`;
  setText($(".format", card), source.format);
  const peer = source.peer ? ` — ${source.peer}` : "";
  const starts = source.starts > 1 ? ` — came ${count(source.starts)} times` : "";
  const advice = source.advice ? ` — ${source.advice}` : "";
  setText($(".source", card), `${source.url}${peer}${starts}${advice}`);
  figures($("dl", card), [
    ["in", rate(source.bps)],
    ["out", rate(stream.out_bps)],
    ["receivers", count(stream.receiver_count)],
    ["key frames every", source.key_interval_ms ? span(source.key_interval_ms) : "–"],
    ["lost before here", count(source.lost)],
    ["jitter", source.jitter_ms ? `${source.jitter_ms.toFixed(1)} ms` : null],
    ["ring", `${bytes(stream.ring_bytes)} of ${bytes(stream.ring_bytes_max)}`],
    ["joins", count(stream.joins)],
  ]);
  card.rates.in = [...card.rates.in, source.bps].slice(-HISTORY);
  card.rates.out = [...card.rates.out, stream.out_bps].slice(-HISTORY);
  const peak = Math.max(1000, ...card.rates.in, ...card.rates.out);
  draw($("polyline.in", card), card.rates.in, peak);
  draw($("polyline.out", card), card.rates.out, peak);
  setText($(".peak", card), `peak ${rate(peak)}`);
  const drops = [
    ...reasons(source.drops).map((text) => `source: ${text}`),
    ...reasons(stream.out_drops).map((text) => `receivers: ${text}`),
  ];
  keep($(".drops", card), drops, (text) => text, (text) => make("span", { className: "pill bad", textContent: text }), () => {});
  keep($(".addresses", card), addresses(stream, relay), ([, address]) => address, newAddress, () => {});
  $(".receivers", card).hidden = stream.receivers.length === 0;
  const hidden = stream.receiver_count - stream.receivers.length;
  $("h3", card).replaceChildren("Receivers ", make("small", { textContent: hidden > 0 ? `those that fare worst; ${count(hidden)} more` : "" }));
  keep($("tbody", card), stream.receivers, (receiver) => receiver.id, newReceiver, showReceiver);
};

// A link: what it carries, what waits there, and what it gave up.
const newLink = () => make("section", { className: "stream" },
  make("div", { className: "head" }, make("h2"), make("span", { className: "format" })),
  make("dl", { className: "figures" }), make("div", { className: "drops" }));

const showLink = (card, link) => {
  setText($("h2", card), `link ${link.name}`);
  setText($(".format", card), `${link.policy}, ${link.scheduler}, by ${link.unit}`);
  figures($("dl", card), [
    [link.follows ? "rate, as receivers report" : "rate", rate(link.rate_bps)],
    ["offered", rate(link.offered_bps)],
    ["sent", rate(link.sent_bps)],
    ["waiting", `${bytes(link.waiting_bytes)} · ${count(link.waiting_packets)} packets`],
    ["delay", `${link.delay_p50_ms.toFixed(1)} ms, 99 %: ${link.delay_p99_ms.toFixed(1)} ms`],
    ["flows", count(link.flows)],
  ]);
  const drops = link.applications.flatMap((of) => reasons(of.drops).map((text) => `${of.name}: ${text}`));
  keep($(".drops", card), drops, (text) => text, (text) => make("span", { className: "pill bad", textContent: text }), () => {});
};

const show = (relay) => {
  setText($("#version"), relay.version);
  figures($("#totals"), [
    ["in", rate(relay.streams.reduce((sum, s) => sum + s.source.bps, 0))],
    ["out", rate(relay.streams.reduce((sum, s) => sum + s.out_bps, 0))],
    ["receivers", count(relay.streams.reduce((sum, s) => sum + s.receiver_count, 0))],
    ["CPU", `${relay.cpu_percent.toFixed(0)} %`],
    ["memory", bytes(relay.rss_bytes)],
    ["connections", count(relay.connections.open)],
    ["up", span(relay.uptime_ms)],
  ]);
  keep($("#streams"), relay.streams, (stream) => stream.name, newCard, (card, stream) => showStream(card, stream, relay));
  keep($("#links"), relay.links, (link) => link.name, newLink, showLink);
  $("#none").hidden = relay.streams.length > 0;
};

const link = (text, style) => {
  setText($("#link"), text);
  $("#link").className = `pill ${style}`;
  document.body.classList.toggle("stale", style === "bad");
};

let silent;
const events = new EventSource(`/api/v1/events${query}`);
events.addEventListener("message", (event) => {
  clearTimeout(silent);
  silent = setTimeout(() => link("no news from the relay", "bad"), UP_TO_DATE_MS);
  link("live", "good");
  show(JSON.parse(event.data));
});
events.addEventListener("error", () => {
  link("not connected; trying again", "bad");
  if (events.readyState === EventSource.CLOSED) setTimeout(() => location.reload(), UP_TO_DATE_MS);
});

for (const anchor of document.querySelectorAll("footer a")) anchor.href += query;
