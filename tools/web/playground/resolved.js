// SPDX-License-Identifier: BSD-3-Clause
// Reads a config as weir-sim prints it, in the run folder: maps and lists of one line for each value.

const TIMES = { ns: 1, us: 1e3, ms: 1e6, s: 1e9, min: 6e10, h: 3.6e12 };

// The nanoseconds of a time such as 1h30m; a number alone is in seconds.
export function timeNs(text) {
  if (/^[0-9.eE+-]+$/.test(text)) return Number(text) * 1e9;
  const parts = [...String(text).matchAll(/([0-9.]+(?:e[+-]?\d+)?) ?([a-zµ]+)/g)];
  return parts.reduce((sum, [, value, unit]) => sum + Number(value) * (TIMES[unit === "m" ? "min" : unit] ?? NaN), 0);
}

function value(text) {
  if (text === "{}") return {};
  if (text.startsWith("[")) return text.slice(1, -1).split(",").map((one) => one.trim()).filter(Boolean);
  return text.replace(/^(["'])(.*)\1$/, "$2");
}

// Maps and lists as objects and arrays, all else as texts.
export function parse(text) {
  const lines = text.split("\n").filter((line) => line.trim() && !line.trim().startsWith("#"))
    .map((line) => ({ indent: line.search(/\S/), text: line.trim() }));
  let at = 0;
  const block = (indent) => {
    const made = lines[at].text.startsWith("- ") ? [] : {};
    while (at < lines.length && lines[at].indent === indent) {
      const line = lines[at];
      if (Array.isArray(made)) {
        if (!line.text.startsWith("- ")) break;
        lines[at] = { indent: indent + 2, text: line.text.slice(2) };
        made.push(/^[^\s:]+:( |$)/.test(lines[at].text) ? block(indent + 2) : value(lines[at++].text));
        continue;
      }
      const [, key, rest] = line.text.match(/^([^:]+):\s*(.*)$/);
      at += 1;
      const next = lines[at];
      const deeper = next && (next.indent > indent || (next.indent === indent && next.text.startsWith("- ")));
      made[key] = rest === "" && deeper ? block(next.indent) : value(rest);
    }
    return made;
  };
  return lines.length ? block(lines[0].indent) : {};
}
