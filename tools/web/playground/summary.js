// SPDX-License-Identifier: BSD-3-Clause
// The tables and lines of a run in virtual time from its summary.json, as the command prints them:
// analysis/summary.py, which the test compares.

import { NONE, count, number, percent, rate, ratio, time } from "./units.js";

export function groupNames({ groups = [] }) {
  const names = groups.map((group, n) => group.name || group.cc || String(n));
  return names.map((name, n) => names.filter((one) => one === name).length > 1 ? `${name}, group ${n}` : name);
}

const GROUPS = ["group", "cc", "flows", "goodput", "share", "JFI", "mean RTT", "drops", "retransmits", "bytes resent", "window reductions"];
const LINKS = ["link", "rate", "used", "mean queue", "delay", "p99 delay", "drops", "marks"];

function groupRows(summary) {
  const names = groupNames(summary), parts = [];
  (summary.groups ?? []).forEach((group, n) => {
    parts.push([names[n], group, false]);
    if (group.back) parts.push([`${names[n]}, back`, group.back, true]);
  });
  const goodputs = parts.map(([, part]) => part.goodput_bps);
  const total = goodputs.some((v) => v === null || v === undefined) ? 0 : goodputs.reduce((a, b) => a + b, 0);
  return parts.map(([name, part, back]) => [
    name, part.cc || NONE, count(back ? null : part.flows), rate(part.goodput_bps),
    percent(total ? part.goodput_bps / total : null, 1), ratio(back ? null : part.jfi), time(part.rtt_mean_ns || null),
    count(part.drops), count(part.retransmits), percent(part.rtx_overhead), count(back ? null : part.cwnd_reductions),
  ]);
}

function linkRate({ rate_min_bps: low, rate_max_bps: high, rate_bps: now }) {
  return low && high && low !== high ? `${rate(low)} to ${rate(high)}` : rate(high || now);
}

function linkRows({ links = {} }) {
  return Object.entries(links).map(([name, link]) => [
    name, linkRate(link), percent(link.utilisation), link.queue_mean_pkts === null ? NONE : `${number(link.queue_mean_pkts)} pkt`,
    time(link.queue_mean_ns), time(link.sojourn_p99_ns), count(link.drops), count(link.marks),
  ]);
}

// Tables as {columns, left, rows}, of which the first `left` columns are names.
export function tables(summary) {
  const rows = groupRows(summary), plain = rows.every(([name, cc]) => name === cc);
  const without = (cells) => cells.filter((_, n) => n !== 1);
  return [
    plain ? { columns: without(GROUPS), left: 1, rows: rows.map(without) } : { columns: GROUPS, left: 2, rows },
    { columns: LINKS, left: 1, rows: linkRows(summary) },
  ].filter((table) => table.rows.length);
}

function stopped({ metric, settled, at_s, interval, moved, over_s }) {
  const end = settled ? "settled at" : "had not settled by";
  const found = interval ? `known to ${percent(interval.half_width)} with ${percent(interval.confidence)} confidence`
    : `moved by ${percent(moved)} in ${number(over_s)} s`;
  return `${metric} ${end} ${number(at_s)} s: ${found}`;
}

function ledger([name, path]) {
  const twice = path.duplicated.pkts ? ` + ${count(path.duplicated.pkts)} duplicated` : "";
  const lost = Object.entries(path.drops).filter(([, { pkts, bytes }]) => pkts || bytes);
  const gone = lost.length ? lost.map(([reason, { pkts }]) => ` + ${count(pkts)} ${reason}`).join("") : " + 0 dropped";
  return `ledger ${name}: ${count(path.in.pkts)} in${twice} = ${count(path.out.pkts)} out + ${count(path.inside.pkts)} inside${gone}`;
}

function seed({ seed, seed_used: used }) {
  return used === false ? `${seed} (nothing random was drawn: any other gives the same run)` : String(seed);
}

function speed(summary) {
  const { wall_s: wall, virtual_s: virtual } = summary;
  if (!wall || !virtual) return [];
  return [`${number(virtual)} s of virtual time in ${number(wall)} s (${number(virtual / wall)} times real time), seed ${seed(summary)}`];
}

// The lines below the tables.
export function lines(summary) {
  const { jfi, stop, why = [], limits, ledger: account, warmup_s: warmup, faults = [], verdicts = [] } = summary;
  const made = [];
  if (groupRows(summary).length > 1 && jfi !== null && jfi !== undefined) made.push(`JFI of all flows that have begun ${ratio(jfi)}`);
  if (stop) made.push(stopped(stop));
  made.push(...why.map((fact) => `why: ${fact.sentence}${limits ? `; ${limits.sentence}` : ""}`));
  made.push(...Object.entries(account.paths).map(ledger));
  made.push(`ledger: ${account.balanced ? "balanced" : "NOT BALANCED"}`);
  if (warmup) made.push(`The ledger counts the whole run, the tables what came after ${time(1e9 * warmup)} of warm-up.`);
  made.push(...speed(summary), ...faults.map((fact) => `fault: ${fact.sentence}`));
  const more = verdicts.length > 1 ? ` (and ${verdicts.length - 1} more: see the report)` : "";
  if (verdicts.length) made.push(`verdict: ${verdicts[0].sentence}${more}`);
  return made;
}
