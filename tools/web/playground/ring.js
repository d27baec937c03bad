// SPDX-License-Identifier: BSD-3-Clause
// The records of a .ring file, as columns of numbers: analysis/header.py has the format.

const HEADER = 4096, SCHEMA = 512;
const READERS = { u1: "getUint8", u2: "getUint16", u4: "getUint32", u8: "getBigUint64",
  i4: "getInt32", i8: "getBigInt64", f4: "getFloat32", f8: "getFloat64" };

// Columns by their names; NaN is not known. A file without records has empty ones.
export function columns(bytes) {
  const end = bytes.indexOf(0, SCHEMA);
  const { record_size: size, fields } = JSON.parse(new TextDecoder().decode(bytes.subarray(SCHEMA, end)));
  const view = new DataView(bytes.buffer, bytes.byteOffset + HEADER, bytes.byteLength - HEADER);
  const n = Math.floor(view.byteLength / size), found = {};
  for (const { name, dtype, offset, unknown } of fields) {
    const read = view[READERS[dtype.slice(1)]].bind(view), column = found[name] = new Float64Array(n);
    for (let i = 0; i < n; i += 1) {
      const v = Number(read(i * size + offset, true));
      column[i] = unknown !== undefined && v === Number(unknown) ? NaN : v;
    }
  }
  return found;
}
