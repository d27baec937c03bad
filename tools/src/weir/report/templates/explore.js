// SPDX-License-Identifier: BSD-3-Clause
// The page of weir explore: lists the runs, and asks the server for the figures of those that are chosen.
"use strict";

const explore = (() => {
  const SHOWN = 200; // rows at first, and more at each press of a button
  const WAIT_MS = 200; // after a choice, as another may follow
  const READ_MS = 1000; // at least, between two tables while runs are read
  const ENABLED = { time: ["name"], numbers: ["x", "y", "by", "facet", "logx", "logy"], pantheon: ["by"],
    box: ["y", "by"], cdf: ["y", "by"] };
  const SORTED = { goodput: 0, delay: 1, flows: 2 }; // columns of numbers, by their place in `sorts`
  const token = new URLSearchParams(location.search).get("token");
  const place = (id) => document.getElementById(id);
  const runs = []; // {id, cells, sorts, text}, by their numbers; null: it has gone
  const chosen = new Set();
  const state = { columns: ["run"], key: "run", down: false, shown: SHOWN, fit: 0, asked: 0, drawn: "" };

  function address(path, values) {
    const query = new URLSearchParams(values);
    if (token) query.set("token", token);
    return `${path}?${query}`;
  }

  async function ask(path, values) {
    const answer = await fetch(address(path, values));
    if (!answer.ok) throw new Error(await answer.text());
    return answer.json();
  }

  function element(name, text, attributes = {}) {
    const made = document.createElement(name);
    if (text !== undefined) made.textContent = text;
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    return made;
  }

  // The table

  function value(run) {
    if (state.key in SORTED) return run.sorts?.[SORTED[state.key]] ?? null;
    return run.cells[state.columns.indexOf(state.key)] ?? "";
  }

  function found() {
    const words = place("search").value.toLowerCase().split(/\s+/).filter(Boolean);
    const fit = runs.filter((run) => run && words.every((word) => run.text.includes(word)));
    const way = state.down ? -1 : 1;
    return fit.map((run) => [value(run), run]).sort(([a], [b]) => // what is not known stands last
      (a === null) - (b === null) || way * (a < b ? -1 : a > b ? 1 : 0)).map(([, run]) => run);
  }

  function head() {
    document.querySelector("#runs thead tr").replaceChildren(element("td"), ...state.columns.map((name) => {
      const sorted = name === state.key ? (state.down ? "descending" : "ascending") : "none";
      const cell = element("th", undefined, { class: name in SORTED ? "r" : "l", "aria-sort": sorted, scope: "col" });
      const button = cell.appendChild(element("button", name, { type: "button" }));
      button.addEventListener("click", () => {
        state.down = state.key === name && !state.down;
        state.key = name;
        table();
        [...document.querySelectorAll("#runs th button")].find((one) => one.textContent === name).focus();
      });
      return cell;
    }));
  }

  function row(run) {
    const made = element("tr");
    const box = element("input", undefined, {
      type: "checkbox", tabindex: "-1", "aria-label": run.cells[0], "data-run": run.id,
    });
    box.checked = chosen.has(run.id);
    box.addEventListener("focus", () => step(made, false));
    box.addEventListener("change", () => {
      chosen[box.checked ? "add" : "delete"](run.id);
      changed();
    });
    made.appendChild(element("td")).append(box);
    run.cells.forEach((text, n) =>
      made.append(element("td", text, { class: state.columns[n] in SORTED ? "r" : "l", title: text })));
    return made;
  }

  // One row is reached by the Tab key, the others from it by the arrow keys.
  function step(row, focus = true) {
    document.querySelector("#runs tbody [tabindex='0']")?.setAttribute("tabindex", "-1");
    const box = row?.querySelector("input");
    box?.setAttribute("tabindex", "0");
    if (focus) box?.focus();
  }

  function table() {
    const fit = found(), { run: focused } = document.activeElement.dataset;
    const body = document.querySelector("#runs tbody");
    head();
    body.replaceChildren(...fit.slice(0, state.shown).map(row));
    const before = focused && body.querySelector(`[data-run="${focused}"]`)?.closest("tr");
    step(before || body.firstElementChild, Boolean(before));
    place("more").hidden = fit.length <= state.shown;
    state.fit = fit.length;
    said();
  }

  function said() {
    const all = runs.filter(Boolean);
    const read = all.filter((run) => run.sorts).length;
    const reading = read < all.length ? `, ${read} of them read` : "";
    place("state").textContent = `${state.fit} of ${all.length} runs${reading}, ${chosen.size} chosen`;
  }

  async function read() {
    let from = 0, next = 0;
    do {
      const got = await ask("/runs", { from });
      state.columns = ["run", ...got.columns];
      if (got.names) runs.length = 0;
      got.names?.forEach((name, id) => runs.push(name && { id, cells: [name], text: name.toLowerCase() }));
      got.rows.forEach((cells, n) => {
        const run = runs[from + n];
        if (!run || !cells) {
          runs[from + n] = null;
          return;
        }
        run.cells = [run.cells[0], ...cells];
        run.sorts = got.sorts[n];
        run.text = run.cells.join("\n").toLowerCase();
      });
      from += got.rows.length;
      if (got.names || from >= runs.length || Date.now() > next) {
        table();
        next = Date.now() + READ_MS;
      } else {
        said();
      }
    } while (from < runs.length);
    for (const id of chosen) if (!runs[id]) chosen.delete(id);
    said();
  }

  async function load() {
    place("again").disabled = true;
    try {
      await read();
      state.drawn = ""; // a run may have gone on
      await draw();
    } catch (error) {
      place("error").textContent = error.message;
    }
    place("again").disabled = false;
  }

  // The figures

  function asked() {
    const kind = place("kind").value;
    const values = { runs: [...chosen].sort((a, b) => a - b).join(), kind };
    for (const id of ENABLED[kind]) {
      const field = place(id);
      if (field.type === "checkbox" ? field.checked : field.value) values[id] = field.value;
    }
    return values;
  }

  // The values of a field, of which the chosen one stays if it is still there.
  function fill(id, values, first) {
    const field = place(id), before = field.value;
    const options = first === undefined ? values : [["", first], ...values];
    field.replaceChildren(...options.map(([name, text]) => element("option", text, { value: name })));
    if (options.some(([name]) => name === before)) field.value = before;
    return field.value !== before;
  }

  async function draw() {
    const turn = ++state.asked;
    const kind = place("kind").value;
    for (const id of Object.values(ENABLED).flat()) place(id).disabled = !ENABLED[kind].includes(id);
    if (kind === "numbers") // three different keys
      for (const [id, other] of [["by", "x"], ["facet", "x"], ["facet", "by"]])
        if (place(id).value === place(other).value) place(id).value = "";
    place("error").textContent = place("command").textContent = "";
    if (chosen.size === 0) {
      place("figures").removeAttribute("src");
      place("pdf").removeAttribute("href");
      place("alone").removeAttribute("href");
      state.drawn = "";
      return;
    }
    let got;
    try {
      got = await ask("/choices", asked());
    } catch (error) {
      got = { error: error.message, figures: [], keys: [], numbers: [], command: "" };
    }
    if (turn !== state.asked) return; // something else was chosen meanwhile
    const named = (names) => names.map((name) => [name, name]);
    const lost = [
      got.error && kind === "time" ? false : kind === "time" && fill("name", got.figures, "all"),
      fill("x", named(got.keys)), fill("y", named(got.numbers), "goodput"),
      fill("by", named(got.keys), kind === "numbers" ? "none" : "cc"), fill("facet", named(got.keys), "none"),
    ].some(Boolean);
    if (lost) {
      await draw();
      return;
    }
    place("command").textContent = got.command;
    place("error").textContent = got.error ?? "";
    const one = !got.error && (kind !== "time" || place("name").value);
    const [venue, width] = place("paper").value.split(",");
    if (one) place("pdf").href = address("/paper", { ...asked(), venue, width });
    else place("pdf").removeAttribute("href");
    const shown = got.error ? "" : address("/figures", asked());
    if (shown && shown !== state.drawn) place("figures").src = shown;
    if (shown) place("alone").href = shown;
    else for (const [id, name] of [["figures", "src"], ["alone", "href"]]) place(id).removeAttribute(name);
    state.drawn = shown;
  }

  let waiting = 0;
  function changed() {
    said();
    clearTimeout(waiting);
    waiting = setTimeout(draw, WAIT_MS);
  }

  function choose(which) {
    chosen.clear();
    which.forEach((run) => chosen.add(run.id));
    table();
    changed();
  }

  place("search").addEventListener("input", () => { state.shown = SHOWN; table(); });
  place("more").addEventListener("click", () => { state.shown += SHOWN; table(); });
  place("all").addEventListener("click", () => choose(found()));
  place("none").addEventListener("click", () => choose([]));
  place("asked").addEventListener("change", draw);
  place("copy").addEventListener("click", () => navigator.clipboard.writeText(place("command").textContent));
  for (const form of document.forms) form.addEventListener("submit", (event) => event.preventDefault());
  place("again").addEventListener("click", load);
  document.querySelector("#runs tbody").addEventListener("keydown", (event) => {
    const row = event.target.closest("tr");
    const next = { ArrowDown: row.nextElementSibling, ArrowUp: row.previousElementSibling }[event.key];
    if (next) {
      event.preventDefault();
      step(next);
    }
  });
  load();
  return { runs, chosen };
})();
