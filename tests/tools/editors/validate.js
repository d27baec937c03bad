// SPDX-License-Identifier: BSD-3-Clause
// What ajv, the validator of most editors and web tools, says of a schema and of documents.
// Standard input: {schema, documents: {name: value}}. Output: {name: null or its complaints}.
const fs = require("fs");
const Ajv = require("ajv");

const asked = JSON.parse(fs.readFileSync(0, "utf8"));
const ajv = new Ajv({ strict: true, allErrors: true, strictRequired: false, strictTuples: false, allowUnionTypes: true });
ajv.addVocabulary(["errorMessage", "patternErrorMessage", "enumDescriptions"]); // editors' own words
const check = ajv.compile(asked.schema);
const said = {};
for (const [name, value] of Object.entries(asked.documents))
	said[name] = check(value) ? null : ajv.errorsText(check.errors);
console.log(JSON.stringify(said));
