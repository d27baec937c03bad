// SPDX-License-Identifier: BSD-3-Clause
// What the playground shows of run folders, as JSON: node shown.mjs LOOKS FOLDER...
import { readFileSync, readdirSync } from "node:fs";

const from = (name) => import(new URL(`../../../tools/web/playground/${name}`, import.meta.url));
const [{ Figures }, { thinned }, { Theme }, { lines, tables }] = await Promise.all(["figures.js", "html.js", "theme.js", "summary.js"].map(from));
const [theme, ...folders] = process.argv.slice(2);
const table = new Theme(JSON.parse(readFileSync(theme, "utf8")));
console.log(JSON.stringify(folders.map((folder) => {
  const names = readdirSync(folder).filter((name) => /\.(ring|json|yaml)$/.test(name));
  const files = Object.fromEntries(names.map((name) => [name, new Uint8Array(readFileSync(`${folder}/${name}`))]));
  const summary = JSON.parse(readFileSync(`${folder}/summary.json`, "utf8"));
  const figures = new Figures(files, table).all();
  for (const panel of figures.flatMap(({ panels }) => panels)) panel.marks = panel.marks.map(thinned);
  return { tables: tables(summary), lines: lines(summary), figures };
}), (key, value) => value instanceof Float64Array ? Array.from(value) : value));
