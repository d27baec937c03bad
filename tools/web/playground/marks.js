// SPDX-License-Identifier: BSD-3-Clause
// What figures are made of, and where their axes end: report/figure.py.

const MARGIN = 0.05, PX_PER_IN = 125, LEAST_PX = 150;

export const most = (values) => values.reduce((high, v) => v > high ? v : high, 0);

export function axis(label, low = null, high = null, isTime = false) {
  return { label, low, high, scale: "linear", linear_to: 1, reversed: false, ticks: [], whole: false, is_time: isTime };
}

export function lineOf(x, y, style) {
  return { kind: "Line", x, y, style, steps: "", markers: 0, width: 1.1 };
}

// x and y of a mark that the axes have to show.
export function reach(mark) {
  if (mark.kind === "Line") return [[...mark.x], [...mark.y]];
  if (mark.kind === "Points") return [[...mark.x], mark.at_edge ? [] : [...mark.y]];
  if (mark.kind === "Band") return [[...mark.x], [...mark.low, ...mark.high]];
  if (mark.kind === "Label") return [[mark.x], [mark.y]];
  if (mark.kind === "Bars") {
    const across = [...mark.at].flatMap((at, i) => [at - mark.width[i] / 2, at + mark.width[i] / 2]), along = [...mark.low, ...mark.high];
    return mark.lying ? [along, across] : [across, along];
  }
  return mark.upright ? [[mark.at], []] : [[], [mark.at]];
}

// Where an axis begins and ends: as it says, else at the data with a margin.
export function ends({ low, high }, values) {
  const known = values.filter(Number.isFinite);
  const [least, largest] = known.length ? [known.reduce((a, b) => Math.min(a, b)), most(known)] : [0, 1];
  const room = largest > least ? MARGIN * (largest - least) : MARGIN * Math.abs(largest) || MARGIN;
  const begin = low ?? least - room, end = high ?? largest + room;
  return begin < end ? [begin, end] : [begin, begin + 1];
}

export function figure(name, panels, across, inches, caption) {
  for (const { x, y, marks } of panels) {
    const reached = marks.map(reach);
    [x.low, x.high] = ends(x, reached.flatMap(([values]) => values));
    [y.low, y.high] = ends(y, reached.flatMap(([, values]) => values));
  }
  const height = Math.floor(Math.max(LEAST_PX, PX_PER_IN * inches));
  const [title] = caption.split(". "), text = caption.slice(title.length + 2);
  return { name, title: title.replace(/\.$/, ""), text, across, panels: panels.map((panel) => ({ title: "", alone: "", height, ...panel })) };
}
