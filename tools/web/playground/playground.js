// SPDX-License-Identifier: BSD-3-Clause
// The page: a config, its check while it is written, its run in a worker, and what came out.

import { complete } from "./complete.js";
import { Figures } from "./figures.js";
import { escape, figure, table } from "./html.js";
import { Theme } from "./theme.js";
import { lines, tables } from "./summary.js";
import { number } from "./units.js";
import { zip } from "./zip.js";

const CONFIG = "config.yaml", WAIT_MS = 400; // after a key, as another may follow
const place = (id) => document.getElementById(id);
const config = place("config"), words = place("words");
const get = async (name) => (await fetch(name)).json();
let examples = [], schema = null, theme = null, frame = "", ended = 0;

// Jobs of weir-sim, one at a time in a worker of their own kind.

class Jobs {
  constructor() {
    this.worker = new Worker("worker.js", { type: "module" });
    this.worker.onmessage = ({ data: { id, done, progress } }) => {
      if (id !== this.id) return;
      if (progress) this.said?.(progress);
      if (done) this.end(done);
    };
    this.id = 0;
  }

  ask(argv, said) {
    this.said = said;
    this.id += 1;
    this.worker.postMessage({ id: this.id, argv, inputs: { ...files(), [CONFIG]: config.value } });
    return new Promise((end) => { this.end = end; });
  }

  stop() { this.worker.postMessage({ stop: true }); }
}

const checks = new Jobs(), runs = new Jobs();
const given = () => [CONFIG, ...overrides(place("options").value).map((one) => `-o${one}`)];
const files = () => examples.find(({ name }) => name === place("example").value)?.files ?? {};

// KEY=VALUE of each option as it is typed in a shell: -o KEY=VALUE, with quotes around spaces.
// Nothing else is an option here: any other word is given to weir-sim as one, which refuses it.
function overrides(text) {
  const words = [...text.matchAll(/(?:'[^']*'|"[^"]*"|[^\s'"])+/g)].map(([word]) => word.replace(/'([^']*)'|"([^"]*)"/g, "$1$2"));
  return words.filter((word) => word !== "-o");
}

// What the config lacks, with its place marked.
function complain(err) {
  place("error").textContent = err.replace(/^weir-sim: /gm, "").replace(/ weir run$/, " run it with weir run");
  config.setAttribute("aria-invalid", String(Boolean(err)));
}

let waiting = 0;
function changed() {
  clearTimeout(waiting);
  waiting = setTimeout(async () => {
    const { rc, err } = await checks.ask([...given(), "--check"]);
    complain(rc ? err : "");
  }, WAIT_MS);
}

function go(err) {
  const at = err.match(/config\.yaml:(\d+):(\d+)/);
  if (!at) return;
  const before = config.value.split("\n").slice(0, at[1] - 1).join("\n").length + (at[1] > 1 ? 1 : 0);
  config.focus();
  config.setSelectionRange(before + Number(at[2]) - 1, before + (config.value.slice(before).search(/\n|$/)));
}

// Completions

let offered = { from: 0, words: [] }, chosen = 0;

function offer() {
  offered = schema ? complete(schema, config.value, config.selectionStart) : { from: 0, words: [] };
  chosen = 0;
  words.innerHTML = offered.words.map(({ word, about }, n) =>
    `<li role="option" id="word-${n}">${escape(word)}<span>${escape(about)}</span></li>`).join("");
  choose(0);
}

function choose(n) {
  const there = offered.words.length > 0;
  words.hidden = !there;
  config.removeAttribute("aria-activedescendant");
  if (!there) return;
  chosen = (n + offered.words.length) % offered.words.length;
  [...words.children].forEach((one, k) => one.setAttribute("aria-selected", String(k === chosen)));
  config.setAttribute("aria-activedescendant", `word-${chosen}`);
  words.children[chosen].scrollIntoView({ block: "nearest" });
}

function leave() {
  offered = { from: 0, words: [] };
  choose(0);
}

function take() {
  config.setRangeText(offered.words[chosen].word, offered.from, config.selectionStart, "end");
  leave();
  changed();
}

config.addEventListener("keydown", (event) => {
  const open = !words.hidden, step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (event.key === "Enter" && event.ctrlKey) run();
  else if (event.key === " " && event.ctrlKey) offer();
  else if (open && step) choose(chosen + step);
  else if (open && event.key === "Enter") take();
  else if (open && event.key === "Escape") leave();
  else return;
  event.preventDefault();
});
config.addEventListener("input", () => {
  if (!words.hidden) offer();
  changed();
});
place("options").addEventListener("input", changed);
words.addEventListener("mousedown", (event) => {
  const item = event.target.closest("li");
  event.preventDefault();
  choose([...words.children].indexOf(item));
  take();
});

// A run

function progressed({ virtual_s: virtual, duration_s: duration, wall_s: wall }) {
  const rest = virtual > 0 ? wall * (duration / virtual - 1) : NaN;
  place("progress").value = virtual / duration;
  place("state").textContent = `${number(virtual)} of ${number(duration)} s${Number.isFinite(rest) ? `, about ${number(rest, 2)} s left` : ""}`;
}

function running(on) {
  place("run").disabled = on;
  place("stop").disabled = !on;
  place("progress").hidden = !on;
  place("progress").removeAttribute("value");
}

async function run() {
  if (place("run").disabled) return;
  leave();
  complain("");
  running(true);
  place("state").textContent = "starting";
  const options = place("options").value.trim();
  const done = await runs.ask([...given(), "--progress", "--force"], progressed);
  running(false);
  place("state").textContent = "";
  if (done.rc && !done.files["summary.json"]) {
    complain(done.err);
    go(done.err);
  } else show(done, options);
}

function show({ files: made, err }, options) {
  const results = place("results"), own = document.createElement("section");
  const summary = JSON.parse(new TextDecoder().decode(made["summary.json"]));
  const title = escape([`Run ${++ended}`, summary.title].filter(Boolean).join(": ")), figures = new Figures(made, theme).all();
  const notes = err.split("\n").filter((line) => line.startsWith("weir-sim: warning: ")).map((line) => line.slice(19));
  own.innerHTML = `<h2>${title}${options && ` <code>${escape(options)}</code>`}</h2>${notes.map((note) => `<p class="note">${escape(note)}</p>`).join("")}`
    + tables(summary).map(table).join("") + `<pre>${escape(lines(summary).join("\n"))}\n\ntelemetry digest ${summary.digest}</pre>`
    + `<p><button type="button">Download the run folder</button> It is a zip; <code>weir open run</code> reads it once it is unpacked.</p>`
    + `<iframe title="Figures of ${title}"></iframe>`;
  own.querySelector("button").addEventListener("click", () => download(made));
  const shown = own.querySelector("iframe"), text = figures.map((one, n) => figure(one, n + 1)).join("");
  shown.addEventListener("load", () => {
    const body = shown.contentDocument.documentElement, fit = () => { shown.style.height = `${body.scrollHeight + 2}px`; };
    new ResizeObserver(fit).observe(shown.contentDocument.body);
  });
  shown.srcdoc = frame.replace("<main>", `<main>${text.replaceAll("$", "$$$$")}`);
  const before = place("beside").checked ? [...results.children].slice(-1) : [];
  results.replaceChildren(...before, own);
  own.firstElementChild.scrollIntoView({ block: "nearest" });
}

function download(made) {
  const parts = zip(Object.fromEntries(Object.entries(made).map(([name, data]) => [`run/${name}`, data])));
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob(parts, { type: "application/zip" }));
  link.download = "run.zip";
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

// A link has the config in its fragment, compressed.

async function through(stream, bytes) {
  return new Uint8Array(await new Response(new Blob([bytes]).stream().pipeThrough(stream)).arrayBuffer());
}

async function toFragment(text) {
  const bytes = await through(new CompressionStream("deflate-raw"), new TextEncoder().encode(text));
  return btoa(String.fromCharCode(...bytes)).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}

async function fromFragment(text) {
  const bytes = Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (c) => c.charCodeAt(0));
  return new TextDecoder().decode(await through(new DecompressionStream("deflate-raw"), bytes));
}

async function linked() {
  const kept = overrides(place("options").value);
  location.hash = new URLSearchParams([["config", await toFragment(config.value)], ...kept.map((one) => ["o", one])]);
  await navigator.clipboard?.writeText(location.href).catch(() => {});
  place("state").textContent = "The address of this page has the config now, and so has the clipboard.";
}

// The address: #config=... or #example=NAME, and o=KEY=VALUE for each option.
async function opened() {
  const asked = new URLSearchParams(location.hash.slice(1));
  const name = asked.get("example");
  if (examples.some((one) => one.name === name)) place("example").value = name;
  example();
  place("options").value = asked.getAll("o").map((one) => `-o ${/\s/.test(one) ? `'${one}'` : one}`).join(" ");
  if (!asked.has("config")) return;
  try {
    config.value = await fromFragment(asked.get("config"));
  } catch {
    complain("the address has no config that can be read");
  }
}

function example() {
  const { text, native } = examples.find(({ name }) => name === place("example").value);
  config.value = text;
  place("options").value = "";
  place("state").textContent = native;
  complain("");
}

async function start() {
  [examples, schema, theme] = await Promise.all([get("examples.json"), get("schema.json"), get("theme.json")]);
  theme = new Theme(theme);
  frame = await (await fetch("frame.html")).text();
  place("example").replaceChildren(...examples.map(({ name }) => new Option(name, name)));
  place("example").value = "first";
  await opened();
  document.documentElement.classList.add("ready");
}

place("asked").addEventListener("submit", (event) => { event.preventDefault(); run(); });
place("stop").addEventListener("click", () => runs.stop());
place("link").addEventListener("click", linked);
place("example").addEventListener("change", example);
addEventListener("hashchange", opened);
navigator.serviceWorker?.register("offline.js").catch(() => {}); // a page of a file has none
start();
