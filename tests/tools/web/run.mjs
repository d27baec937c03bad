// SPDX-License-Identifier: BSD-3-Clause
// weir-sim of build-web, as a command: node run.mjs BUILD FOLDER ARGUMENT... The run folder's files
// are written to FOLDER. Paths of arguments are below the working folder.
import { mkdirSync, readFileSync, writeFileSync, existsSync, statSync } from "node:fs";
import { pathToFileURL } from "node:url";

globalThis.self = { location: { href: "" } }; // as in a worker
const [build, folder, ...argv] = process.argv.slice(2);
const { default: make } = await import(pathToFileURL(`${build}/weir-sim.js`));
const { simulate } = await import(new URL("../../../tools/web/playground/sim.js", import.meta.url));
const module = await WebAssembly.compile(readFileSync(`${build}/weir-sim.wasm`));
const inputs = {};
for (const one of [...argv, ...(process.env.INPUTS ?? "").split(":")])
  if (one && existsSync(one) && statSync(one).isFile()) inputs[one] = readFileSync(one);
const { rc, out, err, files } = await simulate({ make, module, argv, inputs });
if (out) console.log(out);
if (err) console.error(err);
mkdirSync(folder, { recursive: true });
for (const [name, data] of Object.entries(files)) writeFileSync(`${folder}/${name}`, data);
process.exitCode = rc;
