// SPDX-License-Identifier: BSD-3-Clause
// A zip of files, stored as they are (APPNOTE.TXT 6.3.10 of PKWARE, 4.3).

const TABLE = Uint32Array.from({ length: 256 }, (_, n) => {
  for (let k = 0; k < 8; k += 1) n = n & 1 ? 0xedb88320 ^ (n >>> 1) : n >>> 1;
  return n;
});

function crc32(bytes) {
  let crc = 0xffffffff;
  for (const byte of bytes) crc = TABLE[(crc ^ byte) & 255] ^ (crc >>> 8);
  return (crc ^ 0xffffffff) >>> 0;
}

// Little-endian fields as [bytes, value].
function packed(fields) {
  const view = new DataView(new ArrayBuffer(fields.reduce((sum, [size]) => sum + size, 0)));
  let at = 0;
  for (const [size, v] of fields) {
    if (size === 2) view.setUint16(at, v, true);
    else view.setUint32(at, v, true);
    at += size;
  }
  return new Uint8Array(view.buffer);
}

// The date that a zip can say first: 1980-01-01.
const DATE = 0x21;

// files: bytes by their names. Returns the parts of a Blob.
export function zip(files) {
  const parts = [], list = [];
  let offset = 0;
  for (const [name, data] of Object.entries(files)) {
    const text = new TextEncoder().encode(name);
    const about = [[2, 20], [2, 0x800], [2, 0], [2, 0], [2, DATE], [4, crc32(data)], [4, data.length], [4, data.length], [2, text.length], [2, 0]];
    const head = packed([[4, 0x04034b50], ...about]);
    list.push(packed([[4, 0x02014b50], [2, 20], ...about, [2, 0], [2, 0], [2, 0], [4, 0], [4, offset]]), text);
    parts.push(head, text, data);
    offset += head.length + text.length + data.length;
  }
  const size = list.reduce((sum, part) => sum + part.length, 0), n = Object.keys(files).length;
  return [...parts, ...list, packed([[4, 0x06054b50], [2, 0], [2, 0], [2, n], [2, n], [4, size], [4, offset], [2, 0]])];
}
