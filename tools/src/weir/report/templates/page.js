// SPDX-License-Identifier: BSD-3-Clause
// What BokehJS lacks: panels drawn when they come into view, one time axis for all of them, values at a
// cursor, keys, legend buttons, colours for a dark page. Without this script the page shows SVG figures.
"use strict";

const weir = (() => {
  const plots = []; // {plot, box, say, home}
  const hidden = new Map(); // figure -> names that the reader switched off
  const dark = matchMedia("(prefers-color-scheme: dark)");
  let times = null; // the window that all time axes show
  let linking = false;
  let cursor = null;

  const number = (v) => !Number.isFinite(v) ? "–" :
    Math.abs(v) >= 1e5 || (v !== 0 && Math.abs(v) < 1e-3) ? v.toExponential(2) : String(+v.toPrecision(4));

  // Dark colours are made light on a dark page: the same hue, mixed with white.
  function seen(colour) {
    if (!dark.matches || !/^#[0-9a-f]{6}$/i.test(colour)) return colour;
    const rgb = [1, 3, 5].map((i) => parseInt(colour.slice(i, i + 2), 16));
    const light = (0.3 * rgb[0] + 0.59 * rgb[1] + 0.11 * rgb[2]) / 255;
    const mix = light < 0.55 ? (0.62 - light) / (1 - light) : 0;
    return "#" + rgb.map((v) => Math.round(v + (255 - v) * mix).toString(16).padStart(2, "0")).join("");
  }

  const first = new WeakMap(); // the colours a model came with
  function recolour(model, names) {
    if (!first.has(model)) first.set(model, Object.fromEntries(names.map((n) => [n, model[n]])));
    for (const name of names) {
      const own = first.get(model)[name];
      const value = own !== null && typeof own === "object" && "value" in own ? own.value : own;
      if (typeof value === "string") model[name] = typeof own === "object" ? { value: seen(value) } : seen(value);
    }
  }

  function paint(plot) {
    const css = getComputedStyle(document.body);
    const ink = css.getPropertyValue("--ink").trim();
    const grid = css.getPropertyValue("--grid").trim();
    for (const axis of [...plot.below, ...plot.left]) {
      if (!("axis_label_text_color" in axis)) continue;
      axis.setv({ axis_label_text_color: ink, major_label_text_color: ink, axis_line_color: ink,
        major_tick_line_color: ink });
    }
    for (const model of plot.center) {
      if ("grid_line_color" in model) model.grid_line_color = grid;
      else if (model.name === "cursor") model.line_color = ink;
      else if ("line_color" in model) recolour(model, ["line_color"]);
    }
    if (plot.title) plot.title.text_color = ink;
    for (const r of plot.renderers) {
      const names = ["line_color", "fill_color", "text_color"].filter((n) => n in r.glyph);
      if (r.name === "text") r.glyph.text_color = { value: ink };
      else recolour(r.glyph, names);
    }
  }

  function paintPage() {
    plots.forEach(({ plot }) => paint(plot));
    document.querySelectorAll(".legend svg").forEach((s) => { s.style.color = seen(s.dataset.colour); });
  }

  function link(entry) {
    const range = entry.plot.x_range;
    const follow = () => {
      if (linking) return;
      linking = true;
      times = [range.start, range.end];
      for (const other of plots) {
        if (other !== entry && other.plot.tags.includes("time"))
          other.plot.x_range.setv({ start: times[0], end: times[1] });
      }
      linking = false;
    };
    range.change.connect(follow);
    if (times) range.setv({ start: times[0], end: times[1] });
  }

  function nearest(xs, x) {
    let low = 0, high = xs.length - 1;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (xs[middle] <= x) low = middle; else high = middle;
    }
    return x - xs[low] <= xs[high] - x ? low : high;
  }

  // The values at x, those nearest to y first if there are many; before them the total of a stack, all of it.
  function values(plot, x, y) {
    const found = new Map();
    const stack = [];
    for (const r of plot.renderers) {
      const data = r.data_source.data;
      const get = (name) => typeof data.get === "function" ? data.get(name) : data[name];
      const xs = get("x"), vs = get("value");
      if (!xs || !vs || xs.length === 0) continue;
      const i = nearest(xs, x);
      const stacked = r.glyph.tags.includes("stacked"); // Bokeh gives them to the glyph
      if (stacked) stack.push(vs[i]);
      if (!r.visible) continue;
      const band = "y1" in r.glyph && !stacked;
      if (!band && !(x < xs[0] - 1e-9 && xs.length < 3)) found.set(r.name, vs[i]);
    }
    const rows = [...found];
    if (rows.length > 8 && Number.isFinite(y)) rows.sort((a, b) => Math.abs(a[1] - y) - Math.abs(b[1] - y));
    const total = stack.length > 1 ? [["total", stack.reduce((sum, v) => sum + v)]] : [];
    return [...total, ...rows.slice(0, 8)];
  }

  function show(entry, x, y) {
    cursor = { x, time: entry.plot.tags.includes("time") };
    for (const other of plots) {
      const span = other.plot.center.find((m) => m.name === "cursor");
      const here = other === entry || (cursor.time && other.plot.tags.includes("time"));
      span.setv({ visible: here, location: here ? x : span.location });
    }
    const [axis] = entry.plot.below;
    const rows = values(entry.plot, x, y).map(([name, v]) => `${name ? name + " " : ""}${number(v)}`);
    entry.say.textContent = `${axis.axis_label || "x"} ${number(x)}: ${rows.join(", ") || "no value"}`;
    entry.x = x;
  }

  function hover(plot, geometry) {
    const entry = plots.find((e) => e.plot === plot);
    // BokehJS calls after each redraw, too: a pointer that rests leaves the cursor to the keys.
    const at = `${geometry.sx} ${geometry.sy}`;
    if (!entry || !Number.isFinite(geometry.x) || entry.at === at) return;
    entry.at = at;
    show(entry, geometry.x, geometry.y);
  }

  function zoom(entry, factor) {
    const { x_range: r } = entry.plot;
    const at = entry.x >= r.start && entry.x <= r.end ? entry.x : (r.start + r.end) / 2;
    r.setv({ start: at - (at - r.start) * factor, end: at + (r.end - at) * factor });
  }

  function home(entry) {
    const [x0, x1, y0, y1] = entry.home;
    entry.plot.y_range.setv({ start: y0, end: y1 });
    entry.plot.x_range.setv({ start: x0, end: x1 });
  }

  function key(entry, event) {
    const { x_range: r } = entry.plot;
    const width = r.end - r.start;
    const right = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    if (right && event.shiftKey) r.setv({ start: r.start + right * width / 10, end: r.end + right * width / 10 });
    else if (right) {
      const from = entry.x >= r.start && entry.x <= r.end ? entry.x : r.start;
      show(entry, Math.min(r.end, Math.max(r.start, from + right * width / 50)), NaN);
    } else if (event.key === "+" || event.key === "=") zoom(entry, 0.5);
    else if (event.key === "-") zoom(entry, 2);
    else if (event.key === "Home" || event.key === "0") home(entry);
    else return;
    event.preventDefault();
  }

  function toggled(figure) {
    const off = hidden.get(figure);
    for (const entry of plots) {
      if (entry.figure !== figure) continue;
      for (const r of entry.plot.renderers) r.visible = !(r.name && off.has(r.name));
    }
  }

  function legend(figure) {
    const off = new Set();
    hidden.set(figure, off);
    for (const button of figure.querySelectorAll(".legend button")) {
      button.addEventListener("click", () => {
        const on = button.getAttribute("aria-pressed") !== "true";
        button.setAttribute("aria-pressed", String(on));
        if (on) off.delete(button.dataset.name); else off.add(button.dataset.name);
        toggled(figure);
      });
    }
  }

  async function draw(box) {
    const figure = box.closest("figure");
    const item = JSON.parse(box.querySelector("script").textContent);
    const canvas = box.querySelector(".canvas");
    const views = await Bokeh.embed.embed_item({ ...item, target_id: canvas.id }, canvas.id);
    const view = [...views].find((v) => v.model.type === "Figure" || v.model.x_range);
    const { model: plot } = view;
    const entry = { plot, box, figure, say: box.querySelector("output"), x: NaN,
      home: [plot.x_range.start, plot.x_range.end, plot.y_range.start, plot.y_range.end] };
    plots.push(entry);
    paint(plot);
    toggled(figure);
    if (plot.tags.includes("time")) link(entry);
    if (matchMedia("(pointer: fine)").matches) {
      for (const tool of plot.toolbar.tools) if (tool.type === "BoxZoomTool") tool.active = true;
    }
    box.addEventListener("keydown", (event) => key(entry, event));
    box.classList.add("drawn");
  }

  function start() {
    if (typeof Bokeh === "undefined") return;
    document.documentElement.classList.add("live");
    document.querySelectorAll("figure").forEach(legend);
    const near = new IntersectionObserver((seenNow) => {
      for (const { isIntersecting, target } of seenNow) {
        if (!isIntersecting) continue;
        near.unobserve(target);
        draw(target).catch((error) => {
          console.error(error);
          target.closest("figure").classList.add("failed");
        });
      }
    }, { rootMargin: "400px" });
    document.querySelectorAll(".panel").forEach((box) => near.observe(box));
    paintPage();
    dark.addEventListener("change", paintPage);
  }

  document.addEventListener("DOMContentLoaded", start);
  return { hover, plots };
})();
