// SPDX-License-Identifier: BSD-3-Clause
// Runs weir-sim, as WebAssembly, in a file system of its own in memory.

const FOLDER = "/run"; // of the run, as --out says

// Files below a folder, by their names.
function files(fs, folder) {
  const found = {};
  for (const name of fs.analyzePath(folder).exists ? fs.readdir(folder) : [])
    if (fs.isFile(fs.stat(`${folder}/${name}`).mode)) found[name] = fs.readFile(`${folder}/${name}`);
  return found;
}

function put(fs, path, data) {
  const folder = path.slice(0, path.lastIndexOf("/"));
  if (folder) fs.mkdirTree(folder);
  fs.writeFile(path, data);
}

// make: of weir-sim.js. module: of weir-sim.wasm, compiled. inputs: files by their paths. Returns
// the exit status, what was printed and the run folder's files. said: is called with each line of
// standard error, and stops(): with a function that ends the run early, as Ctrl-C does.
export async function simulate({ make, module, argv, inputs = {}, said = () => {}, stops = () => {} }) {
  const out = [], err = [];
  const program = await make({
    thisProgram: "weir-sim",
    instantiateWasm(imports, done) {
      WebAssembly.instantiate(module, imports).then(done);
      return {};
    },
    print: (line) => out.push(line),
    printErr(line) {
      if (line.startsWith("{")) said(line);
      else err.push(line);
    },
  });
  const { FS: fs } = program;
  for (const [path, data] of Object.entries(inputs)) put(fs, path, data);
  stops(() => { program.HEAP32[program._run_stop >> 2] = 2; }); // SIGINT
  let rc = program.callMain([...argv, "--out", FOLDER]);
  if (program.Asyncify.currData) {
    rc = await program.Asyncify.whenDone();
    await new Promise((done) => { setTimeout(done); }); // its streams are written out
  }
  return { rc, out: out.join("\n"), err: err.join("\n"), files: files(fs, FOLDER) };
}
