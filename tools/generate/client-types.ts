/**
 * Writes src/client/types.ts from the OpenAPI documents of both variants: `bun run client-types`. A field that differs
 * between the variants becomes `By<V, of A, of B>`. A test holds the file equal to what this writes.
 */
import { join } from "node:path";
import { type Operation, type Schema, openApi } from "../../src/api/openapi.ts";
import { DECLARED } from "../../src/api/routes.ts";
import { EVENT_KINDS } from "../../src/domain/event.ts";
import { VARIANTS } from "../../src/variant/by-name.ts";
import { NOTES, methodsByResource } from "./methods.ts";

const FILE = join(import.meta.dir, "../../src/client/types.ts");
const A = openApi(VARIANTS.A, DECLARED);
const B = openApi(VARIANTS.B, DECLARED);

const HEAD = `/**
 * The records, requests and answers of the API. Generated from the declarations of the endpoints by
 * \`bun run client-types\`: do not edit. \`V\` is the variant in which the hub answers.
 */
export type Variant = "A" | "B";

/** What differs between the variants. */
export type By<V extends Variant, OfA, OfB> = V extends "A" ? OfA : OfB;
`;

const varying = new Set<string>();

/** The text of a type whose schemas in A and B are these; `isSent` for what a client sends. */
function typeOf(a: Schema, b: Schema, isSent = false): string {
  if (a.$ref !== undefined && a.$ref === b.$ref) return refer(a.$ref);
  if (a.items && b.items) return `${isSent ? "readonly " : ""}${grouped(typeOf(a.items, b.items, isSent))}[]`;
  if (a.properties && b.properties && namesOf(a) === namesOf(b)) return objectOf(a, b, isSent);
  if (a.anyOf && b.anyOf && a.anyOf.length === b.anyOf.length)
    return a.anyOf.map((one, i) => typeOf(one, b.anyOf?.[i] ?? {}, isSent)).join(" | ");
  if (a === b) return scalarOf(a, isSent);
  const [ofA, ofB] = [typeOf(a, a, isSent), typeOf(b, b, isSent)];
  return ofA === ofB ? ofA : `By<V, ${ofA}, ${ofB}>`;
}

function refer(ref: string): string {
  const name = ref.split("/").at(-1) ?? "";
  return varying.has(name) ? `${name}<V>` : name;
}

const grouped = (type: string): string => (/[| ]/.test(type) && !type.startsWith("{") ? `(${type})` : type);
const namesOf = ({ properties = {} }: Schema): string => Object.keys(properties).join();

function objectOf(a: Schema, b: Schema, isSent: boolean): string {
  const fields = Object.entries(a.properties ?? {}).map(([name, ofA]) => {
    const ofB = b.properties?.[name] ?? {};
    const isOptional = !a.required?.includes(name) || !b.required?.includes(name);
    const type = typeOf(ofA, ofB, isSent);
    const doc = name === "success" ? "" : docOf(ofA.description);
    return `${doc}${name}${isOptional ? "?" : ""}: ${type}${isOptional ? " | undefined" : ""};`;
  });
  if (fields.length === 0 && a.additionalProperties) return "Record<string, unknown>";
  if (a.additionalProperties) fields.push("[key: string]: unknown;");
  return fields.length === 0 ? "Record<never, never>" : `{\n${fields.join("\n")}\n}`;
}

function scalarOf(schema: Schema, isSent: boolean): string {
  if ("const" in schema) return JSON.stringify(schema.const);
  if (schema.enum) return schema.enum.join() === EVENT_KINDS.join() ? "EventKind" : wordsOf(schema.enum);
  if (schema.type === "object") return recordOf(schema, isSent);
  const types = [schema.type ?? []].flat();
  return types.map((type) => (type === "integer" ? "number" : type)).join(" | ") || "unknown";
}

function wordsOf(words: readonly unknown[]): string {
  return words.map((word) => JSON.stringify(word)).join(" | ");
}

function recordOf({ additionalProperties = {} }: Schema, isSent: boolean): string {
  return `Record<string, ${typeOf(additionalProperties, additionalProperties, isSent)}>`;
}

function docOf(text: string | undefined): string {
  if (text === undefined || text === "") return "";
  const lines = (text.match(/\S.{0,98}(?=\s|$)/g) ?? []).map((line) => line.trim());
  return lines.length === 1
    ? `/** ${lines[0]} */\n`
    : `/**\n${lines.map((line) => ` * ${line}\n`).join("")} */\n`;
}

function recordTypes(): string {
  return Object.entries(A.components.schemas)
    .map(([name, ofA]) => {
      const type = typeOf(ofA, B.components.schemas[name] ?? {});
      if (/\bV\b/.test(type)) varying.add(name);
      const parameters = varying.has(name) ? '<V extends Variant = "A">' : "";
      return `${docOf(ofA.description)}export interface ${name}${parameters} ${type}\n`;
    })
    .join("\n");
}

/** The schema of variant A that a reference names. */
export function schemaNamed(ref: string): Schema {
  return A.components.schemas[ref.split("/").at(-1) ?? ""] ?? {};
}

export type Described = {
  readonly name: string;
  readonly method: string;
  readonly summary: string;
  readonly request: readonly [Schema, Schema];
  readonly answer: readonly [Schema, Schema];
  readonly needsAdmin: boolean;
};

export function operations(): readonly Described[] {
  return Object.entries(A.paths).flatMap(([path, methods]) =>
    Object.entries(methods).flatMap(([method, ofA]) => {
      const ofB = B.paths[path]?.[method === "get" ? "get" : method === "post" ? "post" : "delete"];
      const answers = [ofA, ofB].map((one) => one && answerOf(one));
      if (!ofB || !answers[0] || !answers[1] || isMultipart(ofA)) return [];
      return byFields({
        name: path.replace("/api/v1/", ""),
        method: method.toUpperCase(),
        summary: ofA.summary,
        request: [requestOf(ofA), requestOf(ofB)],
        answer: [answers[0], answers[1]],
        needsAdmin: ofA.security.every((scheme) => "admin_key" in scheme),
      });
    }),
  );
}

/**
 * Of an operation whose answer depends on `fields`: one for each word, so that each has its own records. The first word
 * is what the operation answers if `fields` is left out.
 */
function byFields(one: Described): readonly Described[] {
  const words = one.request[0].properties?.["fields"]?.enum;
  if (!words) return [one];
  return words.map((word, i) => ({
    ...one,
    ...(i > 0 && { name: `${one.name}?fields=${String(word)}` }),
    request: [withoutFields(one.request[0]), withoutFields(one.request[1])],
    answer: [withRecords(one.answer[0], i), withRecords(one.answer[1], i)],
  }));
}

function withoutFields({ properties, ...schema }: Schema): Schema {
  const { fields: _, ...others } = properties ?? {};
  return { ...schema, properties: others };
}

/** The answer with alternative `i` of the list that has alternatives. */
function withRecords({ properties = {}, ...schema }: Schema, i: number): Schema {
  const picked = Object.entries(properties).map(([name, part]) => {
    const alternative = part.anyOf?.every(({ items }) => items) ? part.anyOf[i] : undefined;
    return [name, alternative ? { ...alternative, description: part.description ?? "" } : part] as const;
  });
  return { ...schema, properties: Object.fromEntries(picked) };
}

function operationType({ name, summary, request, answer }: Described): string {
  const [sent, answered] = [typeOf(...request, true), typeOf(...answer)];
  return `${docOf(summary)}"${name}": { request: ${sent}; answer: ${answered} };`;
}

function isMultipart({ requestBody }: Operation): boolean {
  return requestBody !== undefined && "multipart/form-data" in requestBody.content;
}

function answerOf({ responses }: Operation): Schema | undefined {
  const success = responses["200"];
  return success && "content" in success ? success.content?.["application/json"]?.schema : undefined;
}

/** The body, or the parameters of path and query as one object. */
function requestOf({ requestBody, parameters = [] }: Operation): Schema {
  if (requestBody) return requestBody.content["application/json"]?.schema ?? {};
  const own = parameters.flatMap((one) => ("name" in one && one.in !== "header" ? [one] : []));
  return {
    type: "object",
    properties: Object.fromEntries(
      own.map(({ name, schema, description }) => [name, { ...schema, description }]),
    ),
    required: own.filter((one) => one.required).map(({ name }) => name),
  };
}

/** The fields of a request, with those of the objects in it; 0: anything. */
export type Shape = { readonly [field: string]: Shape } | 0;

/** What a request with these schemas in A and in B may have. Of a list it is that of its items. */
export function shapeOf(a: Schema, b: Schema): Shape {
  if (a.items && b.items) return shapeOf(a.items, b.items);
  const isClosed = (one: Schema): boolean => one.properties !== undefined && !one.additionalProperties;
  if (!isClosed(a) || !isClosed(b)) return 0;
  const names = Object.keys({ ...a.properties, ...b.properties });
  return Object.fromEntries(
    names.map((name) => {
      const [ofA, ofB] = [a.properties?.[name], b.properties?.[name]];
      return [name, shapeOf(ofA ?? ofB ?? {}, ofB ?? ofA ?? {})];
    }),
  );
}

function resourceNames(): string {
  const resources = [...methodsByResource()].map(([resource, methods]) => {
    const lines = [...methods].map(([method, { name, summary }]) => {
      const note = NOTES[name] === undefined ? "" : ` ${NOTES[name]}`;
      return `${docOf(`${summary}.${note}`)}${method}: "${name}",`;
    });
    return `${resource}: {\n${lines.join("\n")}\n},`;
  });
  return `/** The methods of the client, by resource, with their operations. */\nexport const RESOURCES = {\n${resources.join("\n")}\n} as const;\n`;
}

export function clientTypes(): string {
  const records = recordTypes();
  const all = operations();
  return [
    HEAD,
    `export type EventKind = ${wordsOf(EVENT_KINDS)};\n`,
    'export type ErrorCode = Problem["error"];\n',
    records,
    `/** What each operation takes and answers. */
export interface Operations<V extends Variant = "A"> {
${all.map(operationType).join("\n\n")}
}
`,
    `/** How the operations are called that are not a POST. */
export const METHODS = {
${all.flatMap(({ name, method }) => (method === "POST" ? [] : `"${name}": "${method}",`)).join("\n")}
} as const;
`,
    resourceNames(),
    `/** The fields of each request, with those of the objects in it; 0: anything. */
export type Shape = { readonly [field: string]: Shape } | 0;
export const FIELDS: { readonly [operation: string]: Shape } = {
${all.map(({ name, request }) => `"${name}": ${JSON.stringify(shapeOf(...request))},`).join("\n")}
};
`,
  ].join("\n");
}

/** Returns the text as the sources are formatted. */
export function formatted(text: string): string {
  const child = Bun.spawnSync([process.execPath, "fmt", "--stdin-filepath=text.ts"], {
    stdin: Buffer.from(text),
    cwd: import.meta.dir,
  });
  if (!child.success) throw new Error(`bun fmt failed: ${child.stderr.toString()}`);
  return child.stdout.toString();
}

if (import.meta.main) await Bun.write(FILE, formatted(clientTypes()));
