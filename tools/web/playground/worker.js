// SPDX-License-Identifier: BSD-3-Clause
// A worker that checks or runs one config at a time, and says how far it is.

import make from "./weir-sim.js";
import { simulate } from "./sim.js";

let module = null, stop = () => {};

async function run({ id, argv, inputs }) {
  module ??= await WebAssembly.compile(await (await fetch("weir-sim.wasm")).arrayBuffer());
  const said = (line) => postMessage({ id, progress: JSON.parse(line) });
  try {
    const done = await simulate({ make, module, argv, inputs, said, stops: (end) => { stop = end; } });
    postMessage({ id, done }, Object.values(done.files).map(({ buffer }) => buffer));
  } catch (error) {
    postMessage({ id, done: { rc: 1, out: "", err: `weir-sim: ended: ${error.message}`, files: {} } });
  }
}

onmessage = ({ data }) => {
  if (data.stop) stop();
  else run(data);
};
