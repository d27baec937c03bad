// SPDX-License-Identifier: BSD-3-Clause
// Tables and figures as HTML, as templates/macros.html.j2 writes them.

const SHAPES = { o: "M10 5a4 4 0 1 0 8 0a4 4 0 1 0-8 0z", s: "M10.5 1.5h7v7h-7z", "^": "M14 1l4 8h-8z", v: "M14 9l4-8h-8z",
  D: "M14 .5L18.5 5L14 9.5L9.5 5z", x: "M10.5 1.5l7 7m0-7l-7 7", X: "M10.5 1.5l7 7m0-7l-7 7", P: "M14 1v8m-4-4h8",
  "*": "M14 .5v9M10 3l8 4m0-4l-8 4", "|": "M14 1v8" };

export const escape = (text) => String(text).replace(/[&<>"]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c]);

export function table({ columns, left, rows }) {
  const side = (n) => n < left ? "l" : "r";
  const cells = (row, kind) => row.map((text, n) => `<${kind} class="${side(n)}">${escape(text)}</${kind}>`).join("");
  const body = rows.map((row) => `<tr>${cells(row, "td")}</tr>`).join("");
  return `<div class="scroll" tabindex="0"><table><thead><tr>${cells(columns, "th")}</tr></thead><tbody>${body}</tbody></table></div>`;
}

function swatch({ kind, style, opacity, hollow }) {
  if (kind === "Band" || kind === "Bars") return `<path fill="currentColor" fill-opacity="${opacity ?? 1}" d="M0 0h28v10H0z"/>`;
  const dash = typeof style.dash === "string" ? "" : style.dash[1].map((part) => 1.8 * part).join(" ");
  const line = kind === "Points" ? "" : `<path stroke-dasharray="${dash}" d="M0 5h28"/>`;
  return line + (kind === "Points" && SHAPES[style.marker] ? `<path fill="${hollow ? "none" : "currentColor"}" d="${SHAPES[style.marker]}"/>` : "");
}

// The first mark of each label; of a line and the band around it the line.
function keys({ panels }) {
  const found = new Map();
  for (const mark of panels.flatMap(({ marks }) => marks)) {
    const { label } = mark.style, known = found.get(label);
    if (label && (!known || (known.kind === "Band" && !known.stacked))) found.set(label, mark);
  }
  return [...found.values()];
}

function base64(column) {
  const bytes = new Uint8Array(column.buffer, column.byteOffset, column.byteLength);
  let text = "";
  for (let i = 0; i < bytes.length; i += 0x8000) text += String.fromCharCode(...bytes.subarray(i, i + 0x8000));
  return btoa(text);
}

const POINTS = 4000; // of a mark: each stretch keeps its smallest and largest value

function places(y) {
  const length = Math.ceil(y.length / (POINTS / 2 - 1)), kept = new Set([0, y.length - 1]);
  for (let from = 0; from < y.length; from += length) {
    let [low, high] = [from, from];
    for (let i = from; i < Math.min(from + length, y.length); i += 1) {
      if (y[i] < y[low]) low = i;
      if (y[i] > y[high]) high = i;
    }
    kept.add(low).add(high);
  }
  return [...kept].sort((a, b) => a - b);
}

// As many points of a line as can be seen.
export function thinned(mark) {
  if (mark.kind !== "Line" || mark.y.length <= POINTS) return mark;
  const kept = places(mark.y), chosen = (column) => Float64Array.from(kept, (i) => column[i]);
  return { ...mark, x: chosen(mark.x), y: chosen(mark.y) };
}

// As JSON for page.js: columns are numbers of their places.
function embedded({ name, across, panels }) {
  const columns = [];
  const shown = panels.map((panel) => ({ ...panel, marks: panel.marks.map(thinned).map((mark) => {
    const refs = Object.keys(mark).filter((key) => mark[key] instanceof Float64Array);
    return { ...mark, refs, ...Object.fromEntries(refs.map((key) => [key, columns.push(["d", base64(mark[key])]) - 1])) };
  }) }));
  return JSON.stringify({ name, across, panels: shown, columns, links: [] }).replaceAll("<", "\\u003c");
}

export function figure(made, number) {
  const legend = keys(made).map((mark) => `<button type="button" aria-pressed="true" data-name="${escape(mark.style.label)}">`
    + `<svg width="28" height="10" aria-hidden="true" data-colour="${mark.style.colour}">${swatch(mark)}</svg>${escape(mark.style.label)}</button>`).join("");
  const panels = made.panels.map(({ height }, n) => `<div class="panel" style="--order: ${n}" tabindex="0" role="group" aria-roledescription="chart"`
    + ` aria-label="${escape(made.title)}"><div class="canvas" style="min-height: ${height}px"></div><output aria-live="polite"></output></div>`).join("");
  return `<figure><div class="legend live-only" role="group" aria-label="Key of figure ${number}">${legend}</div>`
    + `<div class="live-only"><div class="panels" style="--across: ${made.across}">${panels}</div></div>`
    + `<script type="application/json">${embedded(made)}</script>`
    + `<figcaption><b>Figure ${number}. ${escape(made.title)}.</b> ${escape(made.text)}</figcaption></figure>`;
}
