// SPDX-License-Identifier: BSD-3-Clause
// The figures goodput, rtt, queue, delay, shares, cwnd and fairness of a run, as templates/page.js draws them: the values
// of report/figures.py, which the test compares.

import { number, rate, rateStep, time, timeStep } from "./units.js";
import { groupNames } from "./summary.js";
import { axis, ends, figure, lineOf, most, reach } from "./marks.js";
import { delay } from "./delay.js";
import { fairness, shares } from "./shares.js";
import { columns } from "./ring.js";
import { even } from "./theme.js";
import { parse, timeNs } from "./resolved.js";

const FEW = 10, BANDS = 8, HIDING = 2.5, EVENTS = 150, LINKS = 4, CWND_FLOWS = 6;
const NS = 1e9;
const unique = (values) => Float64Array.from(new Set(values)).sort();
const where = (column, keep) => column.filter((_, i) => keep[i]);
const over = (column, divisor) => Float64Array.from(column, (v) => v / divisor);

// Records with length_ns and time_s, the middle of their interval.
function timed(records, { length, warmup, end }) {
  const n = records.ts_ns.length, lengths = new Float64Array(n), middles = new Float64Array(n);
  for (let i = 0; i < n; i += 1) {
    const ts = records.ts_ns[i];
    let begin = Math.floor((ts - 1) / length) * length;
    if (begin < warmup && warmup < ts) begin = warmup;
    const last = Math.min(ts, end);
    lengths[i] = Math.max(last - begin, 1);
    middles[i] = (last - lengths[i] / 2) / NS;
  }
  return { ...records, length_ns: lengths, time_s: middles };
}

// Spans in which there is no record between two that are.
function gaps({ time_s: times, length_ns: lengths }) {
  const halves = new Map();
  times.forEach((t, i) => halves.set(t, lengths[i] / (2 * NS)));
  const at = unique(times), found = [];
  for (let i = 1; i < at.length; i += 1) {
    const [first, last] = [at[i - 1] + halves.get(at[i - 1]), at[i] - halves.get(at[i])];
    if (last - first > 0.5 * halves.get(at[i])) found.push([first, last]);
  }
  return found;
}

function nearest(sorted, share) {
  return sorted[Math.round((sorted.length - 1) * share)];
}

export class Figures {
  // files: of the run folder. theme: of theme.js.
  constructor(files, theme) {
    const text = (name) => new TextDecoder().decode(files[name]);
    this.theme = theme;
    this.summary = JSON.parse(text("summary.json"));
    this.config = parse(text("config.yaml"));
    this.duration = this.summary.virtual_s;
    this.warmup = this.summary.warmup_s < this.duration ? this.summary.warmup_s : 0;
    this.intervalNs = timeNs(this.config.telemetry.interval);
    const span = { length: this.intervalNs, warmup: Math.round(this.warmup * NS), end: Math.round(this.duration * NS) };
    const read = (name) => files[name] && files[name].length > 4096 ? timed(columns(files[name]), span) : null;
    this.links = read("links.ring");
    this.flows = read("interval.ring");
    if (this.flows) this.rates(files);
    const { groups } = this.summary;
    this.groups = theme.groups(groupNames(this.summary), groups.map(({ cc }) => cc || ""));
  }

  // Goodput of each record, and the flows that began.
  rates(files) {
    const own = this.flows, group = new Map();
    own.goodput_bps = own.delivered_bytes.map((bytes, i) => bytes * 8 * NS / own.length_ns[i]);
    own.flow_id.forEach((flow, i) => group.set(flow, own.group[i]));
    const began = files["flows.ring"] ? columns(files["flows.ring"]) : { flow_id: [] };
    began.flow_id.forEach((flow, i) => { if (!group.has(flow)) group.set(flow, began.group[i]); });
    this.flowGroups = [...group].sort(([a], [b]) => a - b);
    this.few = this.flowGroups.length <= FEW;
    const measured = new Map(this.flowGroups.map(([flow]) => [flow, 0])), since = this.warmup * NS;
    own.flow_id.forEach((flow, i) => {
      if (own.ts_ns[i] > since) measured.set(flow, measured.get(flow) + own.delivered_bytes[i]);
    });
    this.typical = typical(this.flowGroups, measured);
    this.each = this.flowGroups.map(([flow, group]) => ({ flow, group, bps: measured.get(flow) * 8 / (this.duration - this.warmup) }));
    this.acks = files["cc.ring"] ? columns(files["cc.ring"]) : null;
  }

  group(index) {
    return this.groups?.[index] ?? this.theme.style("", `group ${index}`, index);
  }

  // All figures for which there are records.
  all() {
    const made = [];
    if (this.flows?.ts_ns.length) {
      made.push(this.goodput());
      if (this.flows.rtt_samples.some((n) => n > 0)) made.push(this.rtt());
    }
    if (this.links?.out_bytes.some((bytes) => bytes > 0)) made.push(this.queue(), ...[delay(this)].filter(Boolean));
    if (this.flows?.ts_ns.length) {
      made.push(shares(this), this.cwnd());
      if (this.flowGroups.length > 1) made.push(fairness(this));
    }
    return made;
  }

  overTime(y, marks) {
    const ended = this.warmup > 0 ? [{ kind: "Rule", at: this.warmup, style: this.theme.moment("end of the warm-up"), upright: true, width: 0.8 }] : [];
    return { x: axis("time (s)", 0, this.duration, true), y: { ...y, low: y.low ?? 0 }, marks: [...marks, ...ended] };
  }

  // Cuts the y axis where the run settled, if its start would hide that, and marks the peak.
  steady(panel, times, values, [divisor, unit], base = 0) {
    const late = most(where(values, times.map((t) => t > this.warmup))) / divisor, peak = most(values) / divisor;
    if (this.warmup <= 0 || late <= base || peak - base < HIDING * (late - base)) return panel;
    const at = times[values.indexOf(most(values))];
    const style = { label: `peak ${number(peak)} ${unit}`, colour: this.theme.ink, marker: "^", dash: "-", hatch: "" };
    const mark = { kind: "Points", x: Float64Array.of(at), y: Float64Array.of(peak), style, size: 4.5, hollow: false, at_edge: true };
    return { ...panel, y: { ...panel.y, high: base + 1.5 * (late - base) }, marks: [...panel.marks, mark] };
  }

  // Per group and time: the 5th percentile, the median and the 95th of a column.
  spread({ time_s: times, group: groups }, column) {
    const found = new Map();
    times.forEach((t, i) => {
      const own = found.get(groups[i]) ?? found.set(groups[i], new Map()).get(groups[i]);
      (own.get(t) ?? own.set(t, []).get(t)).push(column[i]);
    });
    return [...found].sort(([a], [b]) => a - b).map(([group, own]) => {
      const at = unique(own.keys()), sorted = [...at].map((t) => Float64Array.from(own.get(t)).sort());
      const [low, median, high] = [0.05, 0.5, 0.95].map((share) => Float64Array.from(sorted, (values) => nearest(values, share)));
      return { group, time: at, low, median, high };
    });
  }

  bands(spread, divisor) {
    return spread.flatMap(({ group, time: x, low, median, high }) => {
      const style = this.group(group), line = lineOf(x, over(median, divisor), style);
      if (spread.length > BANDS) return [line];
      return [{ kind: "Band", x, low: over(low, divisor), high: over(high, divisor), style, stacked: false, opacity: 0.2 }, line];
    });
  }

  spreadPanel(spread, y, scale, base = 0) {
    const shown = spread.length <= BANDS ? "high" : "median";
    const times = spread.flatMap(({ time: at }) => [...at]), values = spread.flatMap((one) => [...one[shown]]);
    return { times, values, make: (marks) => this.steady(this.overTime(y, marks), times, values, scale, base) };
  }

  goodput() {
    const own = this.flows, keys = this.few ? own.flow_id : own.group;
    const holes = gaps(own).flat(), x = Float64Array.from([...unique(own.time_s), ...holes]).sort();
    const place = new Map([...x].map((t, i) => [t, i])), series = new Map();
    keys.forEach((key, i) => {
      const values = series.get(key) ?? series.set(key, new Float64Array(x.length)).get(key);
      values[place.get(own.time_s[i])] += own.goodput_bps[i];
    });
    const order = [...series.keys()].sort((a, b) => a - b), byFlow = this.theme.flows(this.flowGroups, (n) => this.group(n));
    const rates = this.bottleneck(), fastest = rates ? most(rates.rate) : 0;
    const top = Math.max(most(x.map((_, i) => order.reduce((sum, key) => sum + series.get(key)[i], 0))), fastest);
    const [divisor, unit] = rateStep(top), marks = [];
    let low = new Float64Array(x.length);
    for (const key of order) {
      const high = low.map((v, i) => v + series.get(key)[i] / divisor);
      marks.push({ kind: "Band", x, low, high, style: this.few ? byFlow.get(key) : this.group(key), stacked: true, opacity: 0.85 });
      low = high;
    }
    if (rates && fastest > 0) {
      const slowest = Math.min(...rates.rate), said = slowest === fastest ? rate(fastest) : `${rate(slowest)} to ${rate(fastest)}`;
      marks.push({ ...lineOf(Float64Array.of(0, ...rates.end), over([rates.rate[0], ...rates.rate], divisor), this.theme.level(`link, ${said}`)), steps: "pre", width: 0.8 });
    }
    const panels = [this.overTime(axis(`goodput, stacked (${unit})`, null, top > 0 ? 1.1 * top / divisor : null), marks)];
    if (!this.few) panels.push(this.perFlow());
    const text = `Goodput over time. Each value is a mean of ${this.interval()}; the areas add up to the goodput of all flows.`;
    return figure("goodput", panels, panels.length, 2.35, text + (this.few ? "" : ` At the right is the goodput per flow. ${this.drawn()}`));
  }

  perFlow() {
    const spread = this.spread(this.flows, this.flows.goodput_bps), { values } = this.spreadPanel(spread);
    const scale = rateStep(most(values));
    return this.spreadPanel(spread, axis(`goodput per flow (${scale[1]})`), scale).make(this.bands(spread, scale[0]));
  }

  interval() { return time(this.intervalNs); }

  drawn() {
    const groups = new Set(this.flowGroups.map(([, group]) => group)).size;
    return `Line: median flow${groups <= BANDS ? "; band: 5th to 95th percentile" : ""}.`;
  }

  // The busiest link's rate at the end of each interval.
  bottleneck() {
    const links = Object.values(this.summary.links ?? {});
    if (!links.length || !this.links) return null;
    const used = links.map((link) => link.utilisation ?? 0), busiest = used.indexOf(Math.max(...used));
    const keep = this.links.link.map((link) => link === busiest);
    if (!keep.some(Boolean)) return null;
    return { end: over(where(this.links.ts_ns, keep), NS), rate: where(this.links.rate_bps, keep) };
  }

  rtt() {
    const keep = this.flows.rtt_samples.map((n) => n > 0), own = {};
    for (const name of ["time_s", "length_ns", "rtt_mean_ns", "flow_id", "group"]) own[name] = where(this.flows[name], keep);
    const scale = timeStep(most(own.rtt_mean_ns)), [divisor, unit] = scale;
    let marks, times = own.time_s, values = own.rtt_mean_ns;
    if (this.few) {
      marks = [...this.theme.flows(this.flowGroups, (n) => this.group(n))].map(([flow, style]) => this.flowLine(own, flow, style, divisor));
    } else {
      const spread = this.spread(own, own.rtt_mean_ns);
      ({ times, values } = this.spreadPanel(spread));
      marks = this.bands(spread, divisor);
    }
    const baseNs = this.propagation(), base = baseNs / divisor;
    if (baseNs) marks.push({ kind: "Rule", at: base, style: this.theme.level(`propagation, ${time(baseNs)}`), upright: false, width: 0.8 });
    const panel = this.steady(this.overTime(axis(`RTT (${unit})`), marks), times, values, scale, base);
    const top = ends(panel.y, panel.marks.flatMap((mark) => reach(mark)[1]))[1];
    panel.y.low = Math.max(0, base - 0.2 * (top - base));
    const text = `Round-trip time over time. The senders measured it; each value is a mean of ${this.interval()}.`;
    return figure("rtt", [panel], 1, 2.1, text + (this.few ? "" : ` ${this.drawn()}`));
  }

  flowLine(own, flow, style, divisor) {
    const keep = own.flow_id.map((id) => id === flow);
    const part = { time_s: where(own.time_s, keep), length_ns: where(own.length_ns, keep), rtt: where(own.rtt_mean_ns, keep) };
    const points = [...part.time_s].map((t, i) => [t, part.rtt[i] / divisor]);
    points.push(...gaps(part).map(([first, last]) => [(first + last) / 2, NaN]));
    points.sort(([a], [b]) => a - b);
    return lineOf(Float64Array.from(points, ([t]) => t), Float64Array.from(points, ([, v]) => v), style);
  }

  // The constant delay of a round trip, if it is the same for all flows; 0: it is not.
  propagation() {
    const { flows, paths } = this.config;
    if (flows.some(({ base_rtt: own }) => typeof own === "object" || timeNs(own ?? "0") > 0)) return 0;
    const names = ({ path }, way) => [path?.[way] ?? way].flat();
    const delay = (name) => [paths[name] ?? []].flat().reduce((sum, stage) => sum + (stage.delay?.delay ? timeNs(stage.delay.delay) : 0), 0);
    const totals = new Set(flows.map((group) => [...names(group, "forward"), ...names(group, "reverse")].reduce((sum, name) => sum + delay(name), 0)));
    return totals.size === 1 ? [...totals][0] : 0;
  }

  // Numbers of links that carry more than a twentieth of what the busiest does, four at most.
  busiest() {
    const { link, out_bytes: bytes, rate_bps: rates } = this.links, loads = [...unique(link)].map((one) => {
      const keep = link.map((of) => of === one);
      return [one, where(bytes, keep).reduce((a, b) => a + b, 0) * 8 / Math.max(1, most(where(rates, keep)))];
    });
    const known = loads.filter(([, load]) => load > 0).sort(([, a], [, b]) => b - a);
    return known.filter(([, load]) => load > 0.05 * known[0][1]).slice(0, LINKS).map(([one]) => one);
  }

  // Their records.
  busy() {
    const kept = this.busiest(), keep = this.links.link.map((one) => kept.includes(one));
    return Object.fromEntries(Object.entries(this.links).map(([name, column]) => [name, where(column, keep)]));
  }

  queue() {
    const links = this.busy(), delay = timeStep(most(links.sojourn_max_ns));
    const panels = [this.queuePanel(links, "queue", "queue_mean_pkts", "queue_max_pkts", [1, "packets"]),
      this.queuePanel(links, "queueing delay", "sojourn_mean_ns", "sojourn_max_ns", delay)];
    return figure("queue", panels, 2, 2.35,
      `Queue and queueing delay over time. Lines are means of ${this.interval()}; the shade above reaches to the largest value in each.`);
  }

  queuePanel(own, title, mean, largest, scale) {
    const [divisor, unit] = scale, indices = unique(own.link), several = indices.length > 1, marks = [];
    for (const index of indices) {
      const name = Object.keys(this.summary.links)[index] ?? `link ${index}`, keep = own.link.map((link) => link === index);
      const style = several ? this.theme.style(name, name, index) : this.theme.style("", "mean", 0);
      const x = where(own.time_s, keep), low = over(where(own[mean], keep), divisor);
      marks.push({ kind: "Band", x, low, high: over(where(own[largest], keep), divisor), style: several ? style : { ...style, label: "maximum" }, stacked: false, opacity: 0.2 });
      marks.push(lineOf(x, low, style));
    }
    if (!several) for (const kind of ["drops", "marks"]) marks.push(...this.eventsOn(own, kind, largest, divisor));
    return this.steady(this.overTime(axis(`${title} (${unit})`), marks), own.time_s, own[largest], scale);
  }

  // Windows after each ACK of the typical flows where they are recorded, else at the ends of intervals.
  cwnd() {
    const own = (records) => {
      const keep = records.flow_id.map((flow) => this.typical.has(flow));
      return Object.fromEntries(["ts_ns", "flow_id", "group", "cwnd_segs"].map((name) => [name, where(records[name], keep)]));
    };
    let part = this.acks && own(this.acks);
    if (!part || new Set(part.flow_id).size < this.typical.size) part = own(this.flows);
    const times = over(part.ts_ns, NS), group = new Map([...part.flow_id].map((flow, i) => [flow, part.group[i]]));
    const there = [...group].sort(([a], [b]) => a - b), styles = this.theme.flows(there, (n) => this.group(n), this.typical);
    const marks = [...styles].map(([flow, style]) => {
      const keep = part.flow_id.map((id) => id === flow);
      return { ...lineOf(where(times, keep), where(part.cwnd_segs, keep), style), width: 0.9 };
    });
    const panel = this.steady(this.overTime(axis("cwnd (segments)"), marks), times, part.cwnd_segs, [1, "segments"]);
    return figure("cwnd", [panel], 1, 2.1, `Congestion window over time.${this.chosen()}`);
  }

  chosen() {
    const groups = new Set(this.flowGroups.map(([, group]) => group)).size;
    if (groups > CWND_FLOWS) return ` Shown are the median flows of the first ${CWND_FLOWS} groups.`;
    return this.flowGroups.length <= CWND_FLOWS ? "" : " Each group is shown by its flows of median, least and best goodput.";
  }

  // The intervals with drops or CE marks, those with the most if there are many.
  eventsOn(own, kind, at, divisor) {
    const found = [...own[kind].keys()].filter((i) => own[kind][i] > 0);
    found.sort((a, b) => own[kind][b] - own[kind][a]);
    const shown = found.slice(0, EVENTS).sort((a, b) => own.time_s[a] - own.time_s[b]), style = this.theme.style(kind);
    if (!shown.length) return [];
    return [{ kind: "Points", x: Float64Array.from(shown, (i) => own.time_s[i]), y: Float64Array.from(shown, (i) => own[at][i] / divisor),
      style: { ...style, label: `intervals with ${style.label}` }, size: 3, hollow: false, at_edge: false }];
  }
}

// Flows that stand for the rest: per group the median, least and best served, with which it is.
function typical(flowGroups, goodput) {
  if (flowGroups.length <= CWND_FLOWS) return new Map(flowGroups.map(([flow]) => [flow, ""]));
  const groups = new Map(), chosen = new Map();
  for (const [flow, group] of flowGroups) (groups.get(group) ?? groups.set(group, []).get(group)).push(flow);
  const sorted = [...groups].sort(([a], [b]) => a - b).map(([, flows]) => flows.sort((a, b) => goodput.get(a) - goodput.get(b) || a - b));
  for (const [share, role] of [[0.5, "median"], [0, "least"], [1, "best"]])
    for (const flows of sorted) {
      const flow = flows[even(share * (flows.length - 1))];
      if (!chosen.has(flow) && chosen.size < CWND_FLOWS) chosen.set(flow, flows.length > 1 ? role : "");
    }
  return new Map([...chosen].sort(([a], [b]) => a - b));
}
