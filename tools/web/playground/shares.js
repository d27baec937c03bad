// SPDX-License-Identifier: BSD-3-Clause
// How flows share a link: the figures shares and fairness of report/figures.py and balance.py.

import { axis, figure, lineOf, most } from "./marks.js";
import { even } from "./theme.js";
import { count, rate, ratio, time } from "./units.js";

const NS = 1e9, FEW = 10, ROWS = 30, BINS = 60, BAND = 8, WINDOWS = 120;

// Jain's index of values; null: there is nothing to share.
function jfi(values) {
  const largest = most(values), scaled = values.map((v) => v / largest), sum = (column) => column.reduce((a, b) => a + b, 0);
  if (!values.length || largest === 0) return null;
  return Math.min(1, Math.max(1 / values.length, sum(scaled) ** 2 / (values.length * sum(scaled.map((v) => v * v)))));
}

const unique = (values) => [...new Set(values)].sort((a, b) => a - b);
const floats = (...values) => Float64Array.of(...values);

// Each flow's goodput over the mean of all. run: of figures.js.
export function shares(run) {
  const { each, theme } = run, mean = each.reduce((sum, { bps }) => sum + bps, 0) / each.length;
  const relative = each.map((one) => ({ ...one, share: one.bps / (mean || 1) }));
  const middle = { kind: "Rule", at: 1, style: theme.level("mean of all flows"), upright: true, width: 0.8 };
  const label = `goodput / mean goodput (mean: ${rate(mean)})`, alone = unique(each.map(({ group }) => group)).length === each.length;
  const [panels, inches] = each.length <= (alone ? ROWS : FEW) ? rows(run, relative, label, middle) : distribution(run, relative, label, middle);
  const text = `Shares of ${count(each.length)} flow${each.length === 1 ? "" : "s"}. Each flow's goodput${run.warmup ? " after the warm-up" : ""}`
    + ` is divided by the mean; Jain's index of the flows that have begun is ${ratio(jfi(each.map(({ bps }) => bps)))}.`;
  return figure("shares", panels, panels.length, inches, text);
}

function rows(run, relative, label, middle) {
  const styles = run.theme.flows(run.flowGroups, (n) => run.group(n)), marks = [];
  const ordered = [...relative].sort((a, b) => b.group - a.group || b.flow - a.flow);
  ordered.forEach(({ flow, bps, share }, row) => {
    const style = { ...styles.get(flow), label: "" };
    marks.push({ kind: "Bars", at: floats(row), width: floats(0.62), low: floats(0), high: floats(share), style, lying: true });
    marks.push({ kind: "Label", x: Math.max(share, 1), y: row, text: ` ${rate(bps)}`, size: 8, away: [0, 0], style: run.theme.text() });
  });
  const x = axis(label, 0, 1.2 * Math.max(1, most(ordered.map(({ share }) => share))));
  const y = { ...axis("", -0.6, ordered.length - 0.4), ticks: ordered.map(({ flow }, row) => [row, styles.get(flow).label]) };
  return [[{ x, y, marks: [...marks, middle] }], 0.95 + 0.24 * ordered.length];
}

function distribution(run, relative, label, middle) {
  const top = Math.max(most(relative.map(({ share }) => share)) * 1.0001, 1.1), left = [], right = [];
  const edges = Float64Array.from({ length: BINS + 1 }, (_, i) => i === BINS ? top : i * (top / BINS));
  const width = edges.slice(1).map((edge, i) => edge - edges[i]), at = width.map((wide, i) => edges[i] + wide / 2);
  let low = new Float64Array(BINS);
  for (const group of unique(relative.map((one) => one.group))) {
    const values = Float64Array.from(relative.filter((one) => one.group === group), ({ share }) => share).sort(), style = run.group(group);
    left.push({ ...lineOf(floats(values[0], ...values), Float64Array.from({ length: values.length + 1 }, (_, n) => n / values.length), style), steps: "post" });
    const high = Float64Array.from(low);
    for (const value of values) high[Math.min(BINS, edges.findLastIndex((edge) => edge <= value) + 1) - 1] += 1;
    right.push({ kind: "Bars", at, width, low, high, style, lying: false });
    low = high;
  }
  const x = axis(label, 0, 1.04 * top), whole = { ...axis("flows", 0), whole: true };
  return [[{ x, y: axis("share of flows", 0, 1.04), marks: [...left, middle] }, { x: { ...x }, y: whole, marks: [...right, middle] }], 2.35];
}

// The length of windows in s: whole intervals, 1 s at least if the run has 10 s.
function windowOf(run) {
  const interval = run.intervalNs / NS, wanted = Math.max(run.duration / WINDOWS, Math.min(1, run.duration / 10));
  return Math.max(1, even(wanted / interval)) * interval;
}

// Jain's index of the flows with records in each window.
export function fairness(run) {
  const own = run.flows, length = windowOf(run), bits = new Map(), series = [];
  own.time_s.forEach((at, i) => {
    const window = Math.floor(at / length), flows = bits.get(window) ?? bits.set(window, new Map()).get(window);
    const before = flows.get(own.flow_id[i]) ?? { group: own.group[i], bits: 0 };
    flows.set(own.flow_id[i], { ...before, bits: before.bits + own.goodput_bps[i] * (own.length_ns[i] / NS) });
  });
  const line = (style, of) => {
    const points = unique(bits.keys()).map((window) => {
      const begin = window * length, last = Math.min((window + 1) * length, run.duration);
      const flows = [...bits.get(window).values()].filter(({ group }) => of === null || group === of);
      return { at: (begin + last) / 2, flows: flows.map((flow) => flow.bits / (last - begin)) };
    }).filter(({ flows }) => flows.length);
    series.push(lineOf(Float64Array.from(points, ({ at }) => at), Float64Array.from(points, ({ flows }) => jfi(flows) ?? NaN), style));
  };
  const groups = unique(own.group), several = groups.filter((one) => new Set(own.flow_id.filter((_, i) => own.group[i] === one)).size > 1);
  if (groups.length > 1) line(run.theme.style("forward", "all flows"), null);
  for (const group of several.slice(0, BAND)) line(run.group(group), group);
  const panel = run.overTime(axis("Jain's index", 0, 1.04), series);
  return figure("fairness", [panel], 1, 2, `Jain's index of goodput over time. Each value is of the flows that were open in a window of ${time(length * NS)}.`);
}
