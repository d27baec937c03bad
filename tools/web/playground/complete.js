// SPDX-License-Identifier: BSD-3-Clause
// What can be written at a place of a config, by its JSON Schema.

const MOST = 40;

// The keys above a line, by indentation; "-" is an item of a list.
export function place(lines, at) {
  const keys = [];
  const text = lines[at];
  let indent = text.search(/[^\s-]|$/);
  for (let n = at - (text.trim() === "" || !/^\s*-/.test(text) ? 1 : 0); n >= 0 && indent >= 0; n -= 1) {
    const line = lines[n];
    if (!line.trim() || line.trim().startsWith("#")) continue;
    const item = line.match(/^(\s*)- /), key = line.match(/^\s*(?:- )*([A-Za-z0-9_-]+):/);
    const own = line.search(/[^\s-]|$/);
    if (own < indent && key && n !== at) {
      keys.unshift(key[1]);
      indent = own;
    }
    if (item && item[1].length < indent) {
      keys.unshift("-");
      indent = item[1].length;
    }
  }
  return keys;
}

// All schemas that may hold: references, and the members of anyOf and oneOf.
function* alternatives(schema, root) {
  if (!schema || typeof schema !== "object") return;
  if (schema.$ref) yield* alternatives(root.definitions[schema.$ref.split("/").at(-1)], root);
  else yield schema;
  for (const one of [...(schema.anyOf ?? []), ...(schema.oneOf ?? []), ...(schema.allOf ?? [])]) yield* alternatives(one, root);
}

function within(schemas, key, root) {
  const found = [];
  for (const schema of schemas) {
    if (key === "-") {
      for (const one of [schema.items, schema.additionalItems].flat()) found.push(...alternatives(one, root));
      continue;
    }
    const next = schema.properties?.[key]
      ?? (typeof schema.additionalProperties === "object" ? schema.additionalProperties : null)
      ?? Object.values(schema.patternProperties ?? {})[0];
    if (next) found.push(...alternatives(next, root));
  }
  return found;
}

const said = ({ description, markdownDescription }) => (description ?? markdownDescription ?? "").split("\n")[0];

// Completions of the word before a position in a text: {from, words: [{word, about}]}.
export function complete(root, text, position) {
  const before = text.slice(0, position), lines = before.split("\n"), line = lines.at(-1);
  const valued = line.match(/^\s*(?:- )*([A-Za-z0-9_-]+):\s+([A-Za-z0-9_]*)$/), word = line.match(/[A-Za-z0-9_-]*$/)[0].replace(/^-+$/, "");
  let schemas = [...alternatives(root, root)];
  for (const key of place(lines, lines.length - 1)) schemas = within(schemas, key, root);
  const found = new Map();
  if (valued) {
    for (const schema of within(schemas, valued[1], root)) {
      for (const one of schema.enum ?? (schema.const !== undefined ? [schema.const] : [])) if (typeof one === "string") found.set(one, said(schema));
    }
  } else if (/^\s*(?:- )*[A-Za-z0-9_-]*$/.test(line)) {
    for (const schema of schemas) for (const [key, own] of Object.entries(schema.properties ?? {})) found.set(`${key}: `, said([...alternatives(own, root)].find(said) ?? own));
  }
  const start = valued ? valued[2] : word;
  const words = [...found].filter(([one]) => one.startsWith(start)).slice(0, MOST).map(([one, about]) => ({ word: one, about }));
  return { from: position - start.length, words };
}
