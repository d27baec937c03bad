// SPDX-License-Identifier: BSD-3-Clause
// Draws a page's figures from the columns that each embeds. uPlot has axes, zoom and cursor; the marks of
// report/figure.py are drawn here, each by the function of its name. Without this script the page says so.
"use strict";

const weir = (() => {
  const POINT = 4 / 3; // in pixels
  const PRINT_DENSITY = 4; // pixels of a canvas for one of the page
  const PRINT_PX = 660; // the width of a printed page
  const TYPE = '"STIX Two Text", STIXGeneral, "Times New Roman", "Liberation Serif", "Nimbus Roman", serif';
  const SHAPES = {
    o: [], // an arc
    s: [[-0.9, -0.9, 0.9, -0.9, 0.9, 0.9, -0.9, 0.9]],
    D: [[0, -1.2, 1.2, 0, 0, 1.2, -1.2, 0]],
    "^": [[0, -1.1, 1, 0.9, -1, 0.9]],
    v: [[0, 1.1, 1, -0.9, -1, -0.9]],
    x: [[-0.9, -0.9, 0.9, 0.9], [-0.9, 0.9, 0.9, -0.9]],
    P: [[-1, 0, 1, 0], [0, -1, 0, 1]],
    "*": [[0, -1.1, 0, 1.1], [-1, -0.6, 1, 0.6], [-1, 0.6, 1, -0.6]],
    "|": [[0, -1.2, 0, 1.2]],
  };
  SHAPES.X = SHAPES.x;
  const links = []; // groups of addresses: what all begin with, what all end in, of each its own
  const charts = []; // {panel, figure, box, canvas, say, plot}
  const dark = matchMedia("screen and (prefers-color-scheme: dark)");
  const narrow = matchMedia("screen and (max-width: 830px)"); // a row has one panel, as in page.css
  let printed = null; // uPlot at the density of paper, while the page is printed
  let times = null; // the window that all time axes show
  let moving = false; // a chart follows another

  // Text

  const SUPERSCRIPT = "⁰¹²³⁴⁵⁶⁷⁸⁹";
  function power(v) {
    const n = Math.round(Math.log10(v));
    if (n >= -3 && n <= 4) return String(+v.toPrecision(6));
    const raised = String(n).replace("-", "⁻").replace(/\d/g, (d) => SUPERSCRIPT[d]);
    const factor = +(v / 10 ** n).toPrecision(6);
    return factor === 1 ? `10${raised}` : `${factor}·10${raised}`;
  }
  const number = (v) => !Number.isFinite(v) ? "–" :
    (Math.abs(v) >= 1e5 || (v !== 0 && Math.abs(v) < 1e-3) ? v.toExponential(2) : String(+v.toPrecision(4))).replaceAll("-", "−");
  const labels = (names, at) => at.map((v) => names.find(([place]) => place === v)[1]);

  function decimals(at) {
    const digits = Math.max(0, ...at.map((v) => (String(+v.toPrecision(12)).split(".")[1] ?? "").length));
    return at.map((v) => v.toFixed(Math.min(12, digits)).replace("-", "−"));
  }

  function logTicks(low, high) {
    const factors = high / low > 100 ? [1] : high / low > 10 ? [1, 2, 5] : [1, 1.5, 2, 3, 4, 5, 6, 7, 8];
    const every = Math.ceil(Math.log10(high / low) / 8) || 1;
    const found = [];
    for (let n = Math.floor(Math.log10(low)); n <= Math.log10(high); n += 1)
      if (n % every === 0) found.push(...factors.map((f) => +`${f}e${n}`));
    return found.filter((v) => v >= low && v <= high);
  }

  // Colours: on a dark page dark ones are mixed with white.

  const INK = "#222222"; // as theme.py
  const isDark = () => dark.matches && !printed;
  function seen(colour) {
    if (colour === INK) return ink();
    if (!isDark()) return colour;
    const rgb = [1, 3, 5].map((i) => parseInt(colour.slice(i, i + 2), 16));
    const light = (0.3 * rgb[0] + 0.59 * rgb[1] + 0.11 * rgb[2]) / 255;
    const mix = light < 0.55 ? (0.62 - light) / (1 - light) : 0;
    return "#" + rgb.map((v) => Math.round(v + (255 - v) * mix).toString(16).padStart(2, "0")).join("");
  }
  const ink = () => isDark() ? "#e6e6e6" : INK;
  const paper = () => isDark() ? "#16191d" : "#ffffff";
  const grid = () => isDark() ? "#343a41" : "#e4e4e4";

  // Axes

  const ruler = document.createElement("canvas").getContext("2d");
  function wide(texts) {
    ruler.font = `13px ${TYPE}`;
    return Math.ceil(Math.max(0, ...texts.map((text) => ruler.measureText(text ?? "").width)));
  }

  // The room that turned names take below a panel; 0: they fit side by side.
  function turned(panel, width) {
    const widest = wide(panel.x.ticks.map(([, name]) => name));
    const left = 44 + wide(panel.y.ticks.map(([, name]) => name));
    return (widest + 8) * panel.x.ticks.length > width - left ? widest : 0;
  }

  // Panels one below the other begin at the same place: the widest numbers of theirs decide.
  function gutter(chart, needed) {
    const { figure, place, panel } = chart;
    if (panel.y.ticks.length) return needed; // names, for which other panels need no room
    const across = narrow.matches && !printed ? 1 : figure.across, column = `${across}:${place % across}`;
    if (needed > (figure.gutters[column] ?? 0)) {
      figure.gutters[column] = needed;
      queueMicrotask(() => charts.forEach((one) => one !== chart && one.figure === figure && one.plot?.redraw(false, true)));
    }
    return figure.gutters[column];
  }

  // room: of turned names; length: of the panel along the axis, in pixels.
  function axis(chart, side, room, length) {
    const flat = side === "x", own = chart.panel[side];
    const names = flat ? wide(chart.panel.y.ticks.map(([, name]) => name)) : 0; // at the left of the axis
    const fits = Math.floor(Math.max(9, Math.min(15, 13 * (length - 20 - names) / wide([own.label])))); // whole: uPlot scales no others
    const named = own.ticks.length > 0;
    const made = {
      scale: side, label: own.label || null, font: `13px ${TYPE}`, labelFont: `${fits}px ${TYPE}`, labelSize: 22, gap: 4,
      stroke: ink, grid: { show: !flat && !(named && own.grid === false), stroke: grid, width: 1 },
      ticks: { stroke: ink, width: 1, size: named ? 0 : 4 }, border: { show: true, stroke: ink, width: 1 },
      space: flat ? Math.max(24, Math.min(60, (length - 65) / 3)) : 32, filter: (u, at) => at,
      size: (u, texts) => flat ? room + (room ? 10 : 26) : gutter(chart, wide(texts ?? []) + 12), rotate: () => room ? -90 : 0,
      values: (u, at) => named ? labels(own.ticks, at) : own.scale === "linear" ? decimals(at) : at.map((v) =>
        v === 0 ? "0" : v < 0 ? `−${power(-v)}` : power(v)),
    };
    if (own.whole) made.incrs = [1, 2, 5].flatMap((n) => [n, 10 * n, 100 * n, 1000 * n]).sort((a, b) => a - b);
    const within = (low, high) => (v) => v >= low && v <= high;
    if (named) made.splits = (u, i, low, high) => own.ticks.map(([place]) => place).filter(within(low, high));
    else if (own.scale === "log") made.splits = (u, i, low, high) => logTicks(low, high);
    else if (own.scale === "symlog") made.splits = (u, i, low, high) => {
      const far = logTicks(own.linear_to, Math.max(own.linear_to * 10, -low, high));
      return [...far.map((v) => -v).reverse(), 0, ...far].filter(within(low, high));
    };
    return made;
  }

  const scale = (own, window) => ({ time: false, dir: own.reversed ? -1 : 1, asinh: own.linear_to,
    distr: { linear: 1, log: 3, symlog: 4 }[own.scale], range: window });

  // Marks: functions of a canvas, a mark and a view with X and Y (from values to pixels) and k (pixels of the
  // canvas for one of the page).

  const ratio = (u) => u.ctx.canvas.width / u.width;
  function view(u, panel) {
    const { left, top, width, height } = u.bbox;
    const along = (own, { min, max }, start, length, flipped) => {
      const f = own.scale === "log" ? Math.log10 : own.scale === "symlog" ? (v) => Math.asinh(v / own.linear_to) : (v) => v;
      const [low, high] = [f(min), f(max)];
      const back = flipped !== own.reversed;
      return (v) => start + length * (back ? high - f(v) : f(v) - low) / (high - low);
    };
    return { left, top, width, height, k: ratio(u), X: along(panel.x, u.scales.x, left, width, false),
      Y: along(panel.y, u.scales.y, top, height, true) };
  }

  function pen(ctx, style, width, k) {
    ctx.strokeStyle = ctx.fillStyle = seen(style.colour);
    ctx.lineWidth = Math.max(1, width * POINT * k);
    ctx.setLineDash(typeof style.dash === "string" ? [] : style.dash[1].map((part) => part * ctx.lineWidth));
    ctx.lineJoin = "round";
  }

  function stamp(ctx, shape, x, y, r, hollow) {
    if (shape.startsWith("$")) return write(ctx, shape.slice(1, -1), x, y, 7, r / 2.7, "center");
    ctx.beginPath();
    if (shape === "o") ctx.arc(x, y, r, 0, 2 * Math.PI);
    for (const path of SHAPES[shape] ?? []) {
      for (let i = 0; i < path.length; i += 2) ctx.lineTo(x + path[i] * r, y + path[i + 1] * r, i || ctx.moveTo(x + path[0] * r, y + path[1] * r));
      if (path.length > 4) ctx.closePath();
    }
    if (!hollow && !"xXP*|".includes(shape)) ctx.fill();
    ctx.stroke();
  }

  function stamps(ctx, mark, v, size, hollow, every = 1, at = (y) => y) {
    ctx.setLineDash([]);
    ctx.lineWidth = 1.2 * v.k;
    for (let i = 0; i < mark.x.length; i += every) {
      const x = v.X(mark.x[i]), y = at(v.Y(mark.y[i]));
      if (x >= v.left - 9 && x <= v.left + v.width + 9 && Number.isFinite(y)) stamp(ctx, mark.style.marker, x, y, size * v.k, hollow);
    }
  }

  // The corners of a line of which each value holds up to its x (pre), or from it (post). Those
  // within a column of pixels are one stroke over all of them.
  function trace(ctx, xs, ys, v, steps) {
    let down = false, before = 0, from = 0, low = 0, high = 0, many = false;
    const join = () => {
      if (many) for (const y of [low, high, before]) ctx.lineTo(from, y);
      many = false;
    };
    ctx.beginPath();
    for (let i = 0; i < xs.length; i += 1) {
      const x = v.X(xs[i]), y = v.Y(ys[i]), known = Number.isFinite(x) && Number.isFinite(y);
      if (known && down && Math.floor(x) === Math.floor(from)) {
        [low, high] = many ? [Math.min(low, y), Math.max(high, y)] : [Math.min(before, y), Math.max(before, y)];
        [many, before] = [true, y];
        continue;
      }
      join();
      if (!known) { down = false; continue; }
      if (down && steps === "post") ctx.lineTo(x, before);
      if (down && steps === "pre") ctx.lineTo(from, y);
      if (down) ctx.lineTo(x, y); else ctx.moveTo(x, y);
      [down, before, from] = [true, y, x];
    }
    join();
  }

  function rectangles(mark, v) {
    return Array.from(mark.at, (at, i) => {
      const half = mark.width[i % mark.width.length] / 2;
      const [xs, ys] = [[at - half, at + half], [mark.low[i], mark.high[i]]];
      const [x0, x1] = (mark.lying ? ys : xs).map(v.X), [y0, y1] = (mark.lying ? xs : ys).map(v.Y);
      return [Math.min(x0, x1), Math.min(y0, y1), Math.abs(x1 - x0), Math.abs(y1 - y0)];
    });
  }

  const draw = {
    Line(ctx, mark, v) {
      pen(ctx, mark.style, mark.width, v.k);
      trace(ctx, mark.x, mark.y, v, mark.steps);
      ctx.stroke();
      if (mark.markers) stamps(ctx, mark, v, 2.7, false, mark.markers);
    },
    Band(ctx, mark, v) {
      ctx.fillStyle = seen(mark.style.colour);
      ctx.globalAlpha = mark.opacity;
      const n = mark.x.length;
      const known = (i) => i < n && Number.isFinite(v.Y(mark.low[i])) && Number.isFinite(v.Y(mark.high[i]));
      for (let i = 0; i < n; i += 1) {
        if (!known(i)) continue;
        let end = i;
        ctx.beginPath();
        for (; known(end); end += 1) ctx.lineTo(v.X(mark.x[end]), v.Y(mark.high[end]));
        for (let j = end - 1; j >= i; j -= 1) ctx.lineTo(v.X(mark.x[j]), v.Y(mark.low[j]));
        ctx.fill();
        i = end;
      }
      ctx.globalAlpha = 1;
    },
    Points(ctx, mark, v) {
      pen(ctx, mark.style, 1, v.k);
      const r = mark.size * 0.67;
      stamps(ctx, mark, v, r, mark.hollow, 1, (y) => mark.at_edge ? Math.max(y, v.top + r * v.k) : y);
    },
    Strokes(ctx, mark, v) {
      pen(ctx, mark.style, mark.width, v.k);
      ctx.globalAlpha = mark.opacity;
      ctx.beginPath();
      for (let i = 0; i < mark.at.length; i += 1) {
        const [from, to] = [mark.low[i], mark.high[i]].map((end) => mark.lying
          ? [v.X(end), v.Y(mark.at[i])] : [v.X(mark.at[i]), v.Y(end)]);
        ctx.moveTo(...from);
        ctx.lineTo(...to);
      }
      ctx.stroke();
      ctx.globalAlpha = 1;
    },
    Bars(ctx, mark, v) {
      pen(ctx, mark.style, 0.5, v.k); // an edge, so that the narrowest are seen
      ctx.setLineDash([]);
      for (const box of rectangles(mark, v)) { ctx.fillRect(...box); ctx.strokeRect(...box); }
    },
    Box(ctx, mark, v) {
      const q = mark.quartiles;
      pen(ctx, mark.style, 0.9, v.k);
      ctx.setLineDash([]);
      const [x0, x, x1] = [mark.at - mark.width / 2, mark.at, mark.at + mark.width / 2].map(v.X);
      const [end0, low, median, high, end1] = q.map(v.Y);
      ctx.globalAlpha = 0.25;
      ctx.fillRect(x0, high, x1 - x0, low - high);
      ctx.globalAlpha = 1;
      ctx.strokeRect(x0, high, x1 - x0, low - high);
      ctx.beginPath();
      for (const [a, b, c, d] of [[x, high, x, end1], [x, low, x, end0], [(x0 + x) / 2, end1, (x1 + x) / 2, end1],
        [(x0 + x) / 2, end0, (x1 + x) / 2, end0]]) { ctx.moveTo(a, b); ctx.lineTo(c, d); }
      ctx.stroke();
      ctx.beginPath();
      ctx.lineWidth *= 2;
      ctx.moveTo(x0, median);
      ctx.lineTo(x1, median);
      ctx.stroke();
      stamps(ctx, { x: mark.outliers.map(() => mark.at), y: mark.outliers, style: { ...mark.style, marker: "o" } }, v, 2, true);
    },
    Rule(ctx, mark, v) {
      pen(ctx, mark.style, mark.width, v.k);
      const at = mark.upright ? v.X(mark.at) : v.Y(mark.at);
      ctx.beginPath();
      if (mark.upright) { ctx.moveTo(at, v.top); ctx.lineTo(at, v.top + v.height); }
      else { ctx.moveTo(v.left, at); ctx.lineTo(v.left + v.width, at); }
      ctx.stroke();
    },
    Span(ctx, mark, v) {
      ctx.fillStyle = seen(mark.style.colour);
      ctx.globalAlpha = 0.15;
      const [a, b] = [mark.low, mark.high].map(mark.upright ? v.X : v.Y);
      if (mark.upright) ctx.fillRect(a, v.top, b - a, v.height); else ctx.fillRect(v.left, b, v.width, a - b);
      ctx.globalAlpha = 1;
    },
    Polygon(ctx, mark, v) {
      pen(ctx, mark.style, 1, v.k);
      trace(ctx, mark.x, mark.y, v, "");
      ctx.closePath();
      ctx.globalAlpha = 0.2;
      ctx.fill();
      ctx.globalAlpha = 1;
      ctx.stroke();
    },
    Field(ctx, mark, v) {
      for (let i = 0; i < mark.values.length; i += 1) {
        const value = mark.values[i];
        if (!Number.isFinite(value)) continue;
        const column = i % mark.columns, row = Math.floor(i / mark.columns);
        const part = Math.min(1, Math.max(0, (value - mark.low) / (mark.high - mark.low || 1)));
        ctx.fillStyle = mark.colours[Math.round(part * (mark.colours.length - 1))];
        const [x0, x1, y0, y1] = [v.X(column), v.X(column + 1), v.Y(row), v.Y(row + 1)].map(Math.round);
        ctx.fillRect(x0, y1, x1 - x0, y0 - y1);
        if (!mark.written) continue;
        ctx.fillStyle = part < 0.6 ? "#ffffff" : "#000000";
        const text = String(+value.toPrecision(3));
        if (wide([text]) * 0.8 * v.k < x1 - x0) write(ctx, text, (x0 + x1) / 2, (y0 + y1) / 2, 8, v.k, "center");
      }
    },
    Label(ctx, mark, v) { // whole, and with paper around it
      const [right, up] = mark.away.map((part) => part * POINT * v.k);
      const most = v.left + v.width - wide(mark.text.split("\n")) * mark.size * POINT / 13 * v.k;
      ctx.fillStyle = seen(mark.style.colour);
      ctx.strokeStyle = paper();
      write(ctx, mark.text, Math.min(v.X(mark.x) + right, most), v.Y(mark.y) - up, mark.size, v.k, "left", 3);
    },
  };

  function write(ctx, text, x, y, size, k, align, around = 0) {
    ctx.font = `${size * POINT * k}px ${TYPE}`;
    ctx.textAlign = align;
    ctx.textBaseline = "middle";
    ctx.lineWidth = around * k;
    text.split("\n").forEach((line, i) => {
      const below = y + i * size * POINT * k * 1.2;
      if (around) ctx.strokeText(line, x, below);
      ctx.fillText(line, x, below);
    });
  }

  function marks(u, chart) {
    const { panel, figure } = chart;
    const v = view(u, panel);
    u.ctx.save();
    u.ctx.beginPath();
    u.ctx.rect(v.left, v.top, v.width, v.height);
    u.ctx.clip();
    for (const mark of panel.marks) if (!figure.off.has(mark.style.label)) draw[mark.kind](u.ctx, mark, v);
    u.ctx.restore();
  }

  // Values at the cursor

  function nearest(xs, x, steps) {
    let low = 0, high = xs.length - 1;
    if (x < xs[0] && steps === "post") return -1;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (xs[middle] <= x) low = middle; else high = middle;
    }
    if (steps) return steps === "post" ? (x >= xs[high] ? high : low) : x <= xs[low] ? low : high;
    return x - xs[low] <= xs[high] - x ? low : high;
  }

  const read = { // a value of a mark at x and, with a pointer, y
    Line: (m, x) => m.x.length ? m.y[nearest(m.x, x, m.steps)] : NaN,
    Band: (m, x) => m.stacked && m.x.length ? m.high[nearest(m.x, x)] - m.low[nearest(m.x, x)] : NaN,
    Bars(m, x, y) {
      const i = m.at.findIndex((at, n) => {
        const half = m.width[n % m.width.length] / 2;
        return m.lying ? Math.abs(y - at) <= half && x >= m.low[n] && x <= m.high[n] : Math.abs(x - at) <= half;
      });
      return i < 0 ? NaN : m.high[i] - m.low[i];
    },
    Box: (m, x) => Math.abs(x - m.at) <= m.width / 2 ? m.quartiles[2] : NaN,
    Field: (m, x, y) => m.values[Math.floor(y) * m.columns + Math.floor(x)],
    Points: (m, x, y, near) => {
      let found = NaN, least = near;
      m.x.forEach((at, i) => { if (Math.abs(at - x) < least) { least = Math.abs(at - x); found = m.y[i]; } });
      return found;
    },
  };

  // The values at x, those nearest to y first if there are many; before them the total of a stack, all of it.
  function values(chart, x, y) {
    const { panel, figure, plot } = chart;
    const near = (plot.scales.x.max - plot.scales.x.min) / 50;
    const rows = [], stack = [];
    for (const mark of panel.marks) {
      const value = read[mark.kind]?.(mark, x, y, near) ?? NaN;
      if (!Number.isFinite(value)) continue;
      if (mark.stacked) stack.push(value);
      if (!figure.off.has(mark.style.label)) rows.push([mark.style.label, value]);
    }
    if (rows.length > 8 && Number.isFinite(y)) rows.sort((a, b) => Math.abs(a[1] - y) - Math.abs(b[1] - y));
    const total = stack.length > 1 ? [["total", stack.reduce((sum, v) => sum + v)]] : [];
    return [...total, ...rows.slice(0, 8)];
  }

  function show(chart, x, y) {
    const { panel, plot } = chart;
    const [place] = panel.x.ticks.filter(([at]) => Math.abs(at - x) <= 0.5);
    const where = place ? place[1] : `${panel.x.label || (panel.x.is_time ? "time (s)" : "x")} ${number(x)}`;
    const rows = values(chart, x, y).map(([name, v]) => `${name ? name + " " : ""}${number(v)}`);
    chart.say.textContent = `${where}: ${rows.join(", ") || "no value"}`;
    chart.x = x;
    aim(chart, x, y);
    moving = true;
    for (const other of charts) {
      const here = other !== chart && panel.x.is_time && other.panel.x.is_time && other.plot;
      if (here) other.plot.setCursor({ left: other.plot.valToPos(x, "x"), top: -10 });
    }
    if (!Number.isFinite(y)) plot.setCursor({ left: plot.valToPos(x, "x"), top: -10 });
    moving = false;
  }

  // Links from points to what they are made of

  // The points that are shown and have addresses.
  function linked({ panel, figure }) {
    const own = panel.marks.filter((mark) => mark.links && !figure.off.has(mark.style.label));
    return own.flatMap((mark) => mark.links.map((group, i) => mark.kind !== "Field"
      ? { name: mark.style.label, x: mark.x[i], y: mark.y[i], group }
      : { name: "", x: i % mark.columns + 0.5, y: Math.floor(i / mark.columns) + 0.5, group })
    ).filter(({ y, group }) => group >= 0 && Number.isFinite(y));
  }

  function least(points, distance) {
    let found = null, best = Infinity;
    for (const point of points) {
      const far = distance(point);
      if (far < best) [found, best] = [point, far];
    }
    return found;
  }

  // Marks the linked point that is nearest to x and y.
  function aim(chart, x, y) {
    const { plot } = chart, left = (v) => plot.valToPos(v, "x"), top = (v) => plot.valToPos(v, "y");
    if (!Number.isFinite(y)) return;
    const point = chart.point = least(linked(chart), (p) => Math.hypot(left(p.x) - left(x), top(p.y) - top(y)));
    if (!point) return;
    const ring = plot.over.querySelector(".aim") ?? plot.over.appendChild(document.createElement("i"));
    ring.className = "aim";
    ring.style.translate = `${left(point.x)}px ${top(point.y)}px`;
    const n = links[point.group].length - 2;
    chart.say.textContent += ` – a click or Enter lists ${n} run${n > 1 ? "s" : ""}${point.name && " of "}${point.name}`;
  }

  // Moves to the next linked point, across to one of another x, or up at the same x.
  function step(chart, across, up) {
    const points = linked(chart), from = points.find(({ x, y }) => x === chart.point?.x && y === chart.point.y);
    const { min, max } = chart.plot.scales.y;
    const next = !from ? least(points, ({ x }) => across < 0 ? -x : x) : least(points.filter(({ x, y }) =>
      across ? (x - from.x) * across > 0 : x === from.x && (y - from.y) * up > 0), ({ x, y }) => {
      const rank = new Set(points.map((p) => p.x).filter((v) => (v - from.x) * across > 0 && (x - v) * across > 0)).size;
      return rank + Math.abs(y - from.y) / (2 * (max - min));
    });
    if (!next) return;
    show(chart, next.x, next.y);
    moving = true;
    chart.plot.setCursor({ left: chart.plot.valToPos(next.x, "x"), top: chart.plot.valToPos(next.y, "y") });
    moving = false;
  }

  // Lists the runs of the marked point below the panel.
  function list(chart) {
    const { box, point } = chart;
    const place = box.querySelector(".runs") ?? box.appendChild(Object.assign(document.createElement("p"), { className: "runs" }));
    if (!point) return place.replaceChildren();
    const [head, end, ...own] = links[point.group];
    const parts = own.map((name) => Object.assign(document.createElement("a"),
      { href: head + name + end, textContent: decodeURIComponent(name).replace(/\/$/, "") }));
    place.replaceChildren(`${point.name && point.name + ", "}${number(point.x)}: `, ...parts.flatMap((a) => [a, " "]));
    return parts[0];
  }

  function pointed(chart, u) {
    const { left, top } = u.cursor;
    if (!moving && left >= 0) show(chart, u.posToVal(left, "x"), top >= 0 ? u.posToVal(top, "y") : NaN);
  }

  // Zoom

  function set(chart, low, high) {
    chart.plot.setScale("x", { min: Math.min(low, high), max: Math.max(low, high) });
  }

  function scaled(chart, u, name) {
    const { min, max } = u.scales[name];
    chart.windows[name] = [min, max];
    if (name !== "x" || moving || !chart.panel.x.is_time || !chart.plot) return;
    times = [min, max];
    moving = true;
    for (const other of charts) if (other !== chart && other.panel.x.is_time && other.plot) set(other, min, max);
    queueMicrotask(() => { moving = false; }); // uPlot calls back after this function
  }

  // Sets the window from and to shares of the present one.
  function look(chart, from, to) {
    const { plot } = chart, { clientWidth: width } = plot.over;
    set(chart, plot.posToVal(from * width, "x"), plot.posToVal(to * width, "x"));
  }
  const shift = (chart, part) => look(chart, part, 1 + part);
  function zoom(chart, factor) {
    const { plot } = chart, place = plot.valToPos(chart.x, "x") / plot.over.clientWidth;
    const at = place >= 0 && place <= 1 ? place : 0.5;
    look(chart, at - at * factor, at + (1 - at) * factor);
  }

  function home({ plot, panel }) {
    plot.setScale("y", { min: panel.y.low, max: panel.y.high });
    plot.setScale("x", { min: panel.x.low, max: panel.x.high });
  }

  function key(chart, event) {
    if (event.ctrlKey || event.altKey || event.metaKey || !chart.plot) return;
    if (event.target.closest("a")) return;
    const right = { ArrowRight: 1, ArrowLeft: -1 }[event.key], up = { ArrowUp: 1, ArrowDown: -1 }[event.key];
    const { min, max } = chart.plot.scales.x;
    if (right && event.shiftKey) shift(chart, right / 10);
    else if ((right || up) && linked(chart).length) step(chart, right ?? 0, up ?? 0);
    else if (event.key === "Enter" && chart.point) list(chart).focus();
    else if (right) {
      const from = chart.x >= min && chart.x <= max ? chart.x : min;
      show(chart, Math.min(max, Math.max(min, from + right * (max - min) / 50)), NaN);
    } else if (event.key === "+" || event.key === "=") zoom(chart, 0.5);
    else if (event.key === "-") zoom(chart, 2);
    else if (event.key === "Home" || event.key === "0") home(chart);
    else if (event.key === "s") save(chart);
    else return;
    event.preventDefault();
  }

  // Two fingers zoom around their middle.
  function pinched(chart) {
    let before = 0;
    const apart = ({ touches: [a, b] }) => b ? Math.hypot(a.clientX - b.clientX, a.clientY - b.clientY) : 0;
    chart.box.addEventListener("touchstart", (event) => { before = apart(event); }, { passive: true });
    chart.box.addEventListener("touchmove", (event) => {
      const now = apart(event);
      if (!now || !before || !chart.plot) return;
      event.preventDefault();
      const [a, b] = event.touches, { left } = chart.plot.over.getBoundingClientRect();
      chart.x = chart.plot.posToVal((a.clientX + b.clientX) / 2 - left, "x");
      zoom(chart, before / now);
      before = now;
    }, { passive: false });
  }

  function dragged(chart, start) {
    let last = start.clientX;
    const move = (event) => {
      shift(chart, (last - event.clientX) / chart.plot.over.clientWidth);
      last = event.clientX;
    };
    addEventListener("mousemove", move);
    addEventListener("mouseup", () => removeEventListener("mousemove", move), { once: true });
  }

  function save(chart) {
    const from = chart.plot.ctx.canvas, whole = Object.assign(document.createElement("canvas"),
      { width: from.width, height: from.height });
    const ctx = whole.getContext("2d");
    ctx.fillStyle = paper();
    ctx.fillRect(0, 0, whole.width, whole.height);
    ctx.drawImage(from, 0, 0);
    Object.assign(document.createElement("a"), { href: whole.toDataURL(), download: `${chart.figure.name || "figure"}.png` }).click();
  }

  // The page

  function make(chart) {
    const { panel, canvas } = chart;
    chart.plot?.destroy();
    chart.plot = null;
    const width = printed ? (PRINT_PX - 16 * (chart.figure.across - 1)) / chart.figure.across : canvas.clientWidth;
    const { x, y } = panel;
    const whole = { x: [x.low, x.high], y: [y.low, y.high] };
    chart.windows = times && x.is_time && !printed ? { ...whole, x: times } : whole;
    const room = turned(panel, width);
    const height = panel.height * (printed ? 0.8 : 1) + room;
    const plot = new (printed ?? uPlot)({
      width, height, title: (narrow.matches ? panel.alone : panel.title) || undefined, legend: { show: false }, padding: [8, 18, 0, 4],
      scales: { x: scale(x, (u, low, high) => [low, high]), y: scale(y, () => chart.windows.y) },
      axes: [axis(chart, "x", room, width), axis(chart, "y", 0, height - room)], series: [{}, {}],
      cursor: { points: { show: false }, drag: { x: true, y: true, uni: 30 }, y: false, bind: {
        dblclick: () => () => home(chart),
        mousedown: (u, over, zooming) => (event) => event.shiftKey ? dragged(chart, event) : zooming(event),
      } },
      hooks: { draw: [(u) => marks(u, chart)], setScale: [(u, name) => scaled(chart, u, name)],
        setCursor: [(u) => pointed(chart, u)] },
    }, [chart.windows.x, [null, null]], canvas);
    chart.plot = plot;
    plot.over.addEventListener("click", () => { if (chart.point) list(chart); });
    chart.box.classList.add("drawn");
  }

  const redraw = () => charts.forEach((chart) => chart.plot?.redraw());
  function colour() {
    document.querySelectorAll(".legend svg").forEach((s) => { s.style.color = seen(s.dataset.colour); });
  }

  // Columns are float32 or float64, in base64; a mark has their numbers in place of them.
  function column([kind, text]) {
    const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
    return Array.from(kind === "d" ? new Float64Array(bytes.buffer) : new Float32Array(bytes.buffer));
  }

  function legend(figure, element) {
    const buttons = [...element.querySelectorAll(".legend button")];
    const press = (button, on) => {
      button.setAttribute("aria-pressed", String(on));
      figure.off[on ? "delete" : "add"](button.dataset.name);
    };
    for (const button of buttons) button.addEventListener("click", (event) => {
      const alone = buttons.every((one) => (one === button) === (one.getAttribute("aria-pressed") === "true"));
      if (event.shiftKey) buttons.forEach((one) => press(one, alone || one === button));
      else press(button, button.getAttribute("aria-pressed") !== "true");
      redraw();
    });
  }

  function start(element) {
    const data = JSON.parse(element.querySelector("script").textContent);
    const columns = data.columns.map(column);
    links.push(...data.links);
    const figure = { name: data.name, across: data.across, off: new Set(), gutters: {} };
    legend(figure, element);
    element.querySelectorAll(".panel").forEach((box, n) => {
      const panel = data.panels[n];
      for (const mark of panel.marks)
        for (const name of mark.refs) mark[name] = columns[mark[name]];
      const chart = { panel, figure, place: n, box, canvas: box.querySelector(".canvas"), say: box.querySelector("output"), x: NaN };
      charts.push(chart);
      box.addEventListener("keydown", (event) => key(chart, event));
      box.addEventListener("wheel", (event) => {
        if (!event.ctrlKey || !chart.plot) return; // a pinch, too
        event.preventDefault();
        zoom(chart, event.deltaY > 0 ? 1.25 : 0.8);
      }, { passive: false });
      pinched(chart);
      near.observe(box);
    });
  }

  const near = new IntersectionObserver((found) => {
    for (const { isIntersecting, target } of found) {
      const chart = charts.find(({ box }) => box === target);
      if (!isIntersecting) continue;
      near.unobserve(target);
      make(chart);
      new ResizeObserver(() => {
        const width = chart.canvas.clientWidth;
        if (!printed && width && width !== chart.plot.width) make(chart);
      }).observe(target);
    }
  }, { rootMargin: "400px" });

  // Print has all panels, whatever the screen showed, dark on white and at the density of paper.
  function print(begins) {
    if (begins === Boolean(printed)) return;
    const source = document.getElementById("uplot").textContent;
    printed = begins ? new Function("devicePixelRatio", `${source}; return uPlot`)(PRINT_DENSITY) : null;
    charts.forEach((chart) => { if (begins || chart.plot) make(chart); });
    colour();
  }

  addEventListener("DOMContentLoaded", () => {
    document.documentElement.classList.add("live");
    document.querySelectorAll("figure:has(.panel)").forEach(start);
    colour();
    dark.addEventListener("change", () => { colour(); redraw(); });
    addEventListener("beforeprint", () => print(true));
    addEventListener("afterprint", () => print(false));
    matchMedia("print").addEventListener("change", (event) => print(event.matches));
  });
  return { charts, seen };
})();
