// SPDX-License-Identifier: BSD-3-Clause
// Which of the playground's examples weir-sim refuses, as JSON: node checks.mjs BUILD
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

globalThis.self = { location: { href: "" } }; // as in a worker
const [build] = process.argv.slice(2);
const { default: make } = await import(pathToFileURL(`${build}/weir-sim.js`));
const { simulate } = await import(pathToFileURL(`${build}/playground/sim.js`));
const module = await WebAssembly.compile(readFileSync(`${build}/weir-sim.wasm`));
const refused = {};
for (const { name, text, files, native } of JSON.parse(readFileSync(`${build}/playground/examples.json`))) {
  const inputs = { ...files, "config.yaml": text };
  const { rc } = await simulate({ make, module, argv: ["config.yaml", "--check"], inputs });
  if (rc) refused[name] = native;
}
console.log(JSON.stringify(refused));
