// SPDX-License-Identifier: BSD-3-Clause
// Numbers as people read them: base/units.py, which the test compares.

const RATES = [[1e12, "Tbit/s"], [1e9, "Gbit/s"], [1e6, "Mbit/s"], [1e3, "kbit/s"], [1, "bit/s"]];
const TIMES = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]];
export const NONE = "–";

const known = (v) => v !== null && v !== undefined && Number.isFinite(v);
const signed = (text) => text.replace(/^-/, "−");
const grouped = (text) => text.replace(/^(-?\d+)/, (whole) => whole.replace(/\B(?=(\d{3})+$)/g, ","));

// The divisor and unit in which a value reads best.
const step = (steps) => (v) => known(v) ? steps.find(([least]) => Math.abs(v) >= least * 0.9995) ?? steps.at(-1) : steps.at(-1);
export const rateStep = step(RATES), timeStep = step(TIMES);

export function number(v, digits = 3) {
  if (!known(v)) return NONE;
  if (v === 0) return "0";
  const exponent = Number(v.toExponential(digits - 1).split("e")[1]);
  const decimals = Math.max(0, digits - 1 - exponent);
  if (decimals > 6) return signed(v.toExponential(digits - 1).replace(/e([+-])(\d)$/, "e$10$2"));
  return signed(grouped(v.toFixed(decimals)));
}

function scaled(v, find) {
  if (!known(v)) return NONE;
  const [divisor, unit] = find(v);
  return `${number(v / divisor)} ${unit}`;
}

export const rate = (bps) => scaled(bps, rateStep);
export const time = (ns) => scaled(ns, timeStep);
export const count = (v) => known(v) ? signed(grouped(String(Math.round(v)))) : NONE;
export const percent = (v, decimals = 2) => known(v) ? signed(`${(100 * v).toFixed(decimals)} %`) : NONE;
export const ratio = (v) => known(v) ? v.toFixed(4) : NONE;
