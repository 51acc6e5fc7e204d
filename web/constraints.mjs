// Writes what the server's description says of the fields of forms, so that a form tells what is wrong while one types.
// `npm run client` does it, beside the types of the routes.
import { readFileSync, writeFileSync } from "node:fs";

const [from, to] = process.argv.slice(2);
const described = JSON.parse(readFileSync(from, "utf8"));

const KEPT = [
  "type", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minLength", "maxLength", "pattern", "enum",
  "default", "maxItems", "maxProperties", "items", "propertyNames", "patternProperties",
];

function resolve(schema) {
  if (schema.$ref) return resolve(described.components.schemas[schema.$ref.split("/").at(-1)]);
  const real = schema.anyOf?.find((one) => one.type !== "null");
  return real ? { ...schema, ...resolve(real) } : schema;
}

function kept(schema) {
  const whole = resolve(schema);
  if (whole.items) whole.items = kept(whole.items);
  // of what variables and tags may be called the names alone are told
  if (whole.patternProperties) whole.patternProperties = mapped(whole.patternProperties, () => ({}));
  return Object.fromEntries(KEPT.filter((key) => key in whole).map((key) => [key, whole[key]]));
}

function mapped(parts, change) {
  return Object.fromEntries(Object.entries(parts).map(([name, part]) => [name, change(part)]));
}

/** The fields of a body by their names; those of a part of it as `part.field`. */
function fields(schema, prefix = "") {
  const whole = resolve(schema);
  return Object.entries(whole.properties).flatMap(([name, field]) => {
    const inner = resolve(field);
    return inner.properties ? fields(inner, `${prefix}${name}.`) : [[`${prefix}${name}`, kept(field)]];
  });
}

const submission = described.paths["/v1/jobs"].post.requestBody.content["multipart/form-data"].schema;
const bodies = {
  JOB: resolve(submission).properties.job,
  DATASET: described.components.schemas.DatasetRequest,
  ENVIRONMENT: described.components.schemas.EnvironmentRequest,
  ENDPOINT: described.components.schemas.EndpointPatch,
  SEARCH: described.components.schemas.SearchPatch,
};
const text = Object.entries(bodies).map(
  ([name, schema]) =>
    `export const ${name}: Readonly<Record<string, Constraint>> = ${JSON.stringify(Object.fromEntries(fields(schema)))};\n`,
);
writeFileSync(to, `// made by constraints.mjs\nimport type { Constraint } from "./violation";\n\n${text.join("\n")}`);
