// SPDX-License-Identifier: BSD-3-Clause
// The figure delay: delay_cdf of report/figures.py, of the distributions in summary.json.

import { axis, figure, lineOf } from "./marks.js";
import { time, timeStep } from "./units.js";

const BINS = 32, PART = [0, 0.25, 0.5, 0.75, 1], POINTS = 600, LEAST = 1e-12; // a logarithmic axis has no 0
const floats = (...values) => Float64Array.of(...values);

// A polygon through a distribution, which rises within its bins: analysis/metrics.py.
function withinBins(cdf, largest) {
  return cdf.flatMap(([end, share], n) => {
    const low = Math.min(end - 2 ** Math.max(0, Math.floor(Math.log2(Math.max(end, 1) / BINS))) + 1, largest), before = n ? cdf[n - 1][1] : 0;
    return PART.map((part) => [low + (Math.min(end, largest) - low) * part, before + (share - before) * part]);
  });
}

// As many points as can be seen: half by share, half by the logarithm of the tail.
function thin(points) {
  if (points.length <= 2 * POINTS) return points;
  const n = points.length, shares = points.map(([, share]) => share), kept = new Set([0, n - 1]), least = Math.max(1 - shares[n - 2], 1e-9);
  for (let i = 0; i < POINTS; i += 1) {
    const part = i / (POINTS - 1), last = i === POINTS - 1;
    for (const wanted of [last ? 1 : part, 1 - (last ? least : least ** part)]) {
      const at = shares.findIndex((share) => share >= wanted);
      kept.add(at < 0 ? n - 1 : at);
    }
  }
  return [...kept].sort((a, b) => a - b).map((i) => points[i]);
}

// The distribution of queueing delay and its tail; null: no link has one. run: of figures.js.
export function delay(run) {
  const { theme } = run, known = Object.entries(run.summary.links), own = run.busiest().map((n) => known[n]).filter(([, link]) => link.sojourn_cdf?.length);
  if (!own.length) return null;
  const several = own.length > 1, left = [], right = [], all = own.map(([, link]) => withinBins(link.sojourn_cdf, link.sojourn_max_ns ?? Infinity));
  const quantiles = own.map(([, link]) => [["median", link.sojourn_p50_ns, 0.5], ["p99", link.sojourn_p99_ns, 0.99]].filter(([, at]) => at !== null));
  const longest = Math.max(0, ...all.map((points) => points.at(-1)[0]), ...quantiles.flat().map(([, at]) => at)), [divisor, unit] = timeStep(longest);
  const dot = (style, label, x, y, hollow) => ({ kind: "Points", x, y, style: { ...style, label, marker: "o", dash: "-" }, size: 4.5, hollow, at_edge: false });
  own.forEach(([name], n) => {
    const style = { ...theme.style(several ? name : "", "", n), dash: theme.dashes[n % theme.dashes.length], label: several ? name : "" };
    const points = thin(all[n].map(([ns, share]) => [ns / divisor, share])), x = points.map(([at]) => at);
    left.push(lineOf(floats(x[0], ...x), floats(0, ...points.map(([, share]) => share)), style));
    right.push(lineOf(floats(0, ...x), floats(1, ...points.map(([, share]) => Math.max(1 - share, LEAST))), style));
    quantiles[n].forEach(([called, at, share], k) => {
      for (const [panel, y] of [[left, share], [right, 1 - share]]) panel.push(dot(style, several ? "" : `${called} ${time(at)}`, floats(at / divisor), floats(y), k > 0));
    });
  });
  if (several) ["median", "p99"].forEach((called, k) => left.push(dot(theme.text(), called, floats(), floats(), k > 0)));
  const above = all.flat().map(([, share]) => 1 - share).filter((share) => share > LEAST), least = Math.min(0.01, ...above) / 2;
  const x = () => longest > 0 ? axis(`queueing delay (${unit})`, 0, 1.05 * longest / divisor) : axis(`queueing delay (${unit})`);
  const panels = [{ x: x(), y: axis("share of packets", 0, 1.04), marks: left },
    { x: x(), y: { ...axis("share of packets above", Math.max(least, 1e-8), 1), scale: "log" }, marks: right }];
  return figure("delay", panels, 2, 2.35, `Distribution of queueing delay${run.warmup ? " after the warm-up" : ""}, and its tail. It has all packets; each delay is known to within 3 %.`);
}
