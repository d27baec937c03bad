// SPDX-License-Identifier: BSD-3-Clause
// The colours, markers and dashes of things: report/theme.py, whose tables are in theme.json.

const MANY = 0.35; // of white, in the lightest shade of a group's flows

export class Theme {
  constructor(tables) { Object.assign(this, tables); } // styles, labels, cycle, free, dashes, ink, faint

  // The look of something known, or the next of the cycle.
  style(name, label, index = 0) {
    const [marker, dash] = this.free[index % this.free.length];
    const known = this.styles[name] ?? { label: this.labels[name] ?? name, colour: this.cycle[index % this.cycle.length], marker, dash, hatch: "" };
    return { ...known, label: label || known.label };
  }

  level(label) { return { label, colour: this.ink, marker: "", dash: [0, [4, 2]], hatch: "" }; }

  text() { return { label: "", colour: this.ink, marker: "", dash: "-", hatch: "" }; }

  moment(label) { return { label, colour: this.faint, marker: "", dash: [0, [1, 2]], hatch: "" }; }

  // Styles of flow groups that differ from each other; null: there are too many.
  groups(names, controls) {
    const labels = names.map((name, n) => name === "" || name === controls[n] ? this.style(controls[n]).label : name);
    const several = new Set(controls).size < controls.length;
    if (names.length > (several ? this.cycle : this.free).length) return null;
    const first = controls.map((cc, n) => cc in this.styles && controls.indexOf(cc) === n);
    const known = controls.map((cc, n) => first[n] ? this.styles[cc] : null);
    const used = this.cycle.map((colour) => known.filter((one) => one?.colour === colour).length);
    const taken = new Set(known.filter(Boolean).map(({ marker, dash }) => JSON.stringify([marker, dash])));
    const free = this.free.filter((form) => !taken.has(JSON.stringify(form)));
    return labels.map((label, n) => {
      if (known[n]) return { ...known[n], label };
      const place = used.indexOf(Math.min(...used)), [marker, dash] = free.shift();
      used[place] += 1;
      return { label, colour: this.cycle[place], marker, dash, hatch: "" };
    });
  }

  // Styles of flows by their numbers; flows: [flow, group] each, by rising flow. roles: what a flow
  // stands for.
  flows(flows, group, roles = new Map()) {
    const groups = [...new Set(flows.map(([, one]) => one))].sort((a, b) => a - b), found = new Map();
    for (const one of groups) {
      const base = group(one), ids = flows.filter(([, of]) => of === one).map(([id]) => id), several = ids.length > 1;
      const cycled = several && groups.length === 1 && ids.length <= this.cycle.length;
      ids.forEach((id, k) => {
        const role = roles.get(id), name = role ? `${role} (flow ${id})` : several ? `flow ${id}` : "";
        const parts = groups.length > 1 || !name ? [base.label, name] : [name];
        found.set(id, { label: parts.filter(Boolean).join(", "), colour: cycled ? this.cycle[k] : shade(base.colour, k, ids.length),
          marker: base.marker, dash: several ? this.dashes[k % this.dashes.length] : base.dash, hatch: "" });
      });
    }
    return found;
  }
}

export function even(v) { // Python's round: halves to the even number
  const low = Math.floor(v);
  return v - low === 0.5 ? low + (low % 2) : Math.round(v);
}

function shade(colour, k, n) {
  const mix = MANY * k / Math.max(1, n - 1), toward = mix > 0 ? 1 : 0;
  const parts = [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16) / 255);
  return "#" + parts.map((c) => even(255 * (c + (toward - c) * Math.abs(mix))).toString(16).padStart(2, "0")).join("");
}
