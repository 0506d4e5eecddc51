/**
 * Writes the last part of src/client/luxhub.py, the records and endpoints, from the OpenAPI documents of both variants:
 * `bun run client-types`. A type has what either variant answers: Python's types do not follow the variant. A test holds
 * the file equal to what this writes.
 */
import { join } from "node:path";
import { type Schema, openApi } from "../../src/api/openapi.ts";
import { DECLARED } from "../../src/api/routes.ts";
import { EVENT_KINDS } from "../../src/domain/event.ts";
import { VARIANTS } from "../../src/variant/by-name.ts";
import { type Described, operations, shapeOf } from "./client-types.ts";
import { NOTES, methodsByResource } from "./methods.ts";

const FILE = join(import.meta.dir, "../../src/client/luxhub.py");
const A = openApi(VARIANTS.A, DECLARED);
const B = openApi(VARIANTS.B, DECLARED);
const ERROR_CODES = A.components.schemas["Problem"]?.properties?.["error"]?.enum ?? [];
/** What this writes begins after this line of the file. */
const MARK = "# ---- from here to the end: do not edit.\n";
const LINE_CHARS = 110;

/** Names of fields that cannot be written as an attribute of a class. */
const KEYWORDS: ReadonlySet<string> = new Set(["from", "in", "is", "not", "class", "global", "with", "as"]);

/** The classes that were needed so far, in the order in which they were. */
const classes = new Map<string, string>();

/** The Python type of a value whose schemas in A and B are these. `name` is for a class that it may need. */
function typeOf(a: Schema, b: Schema, name: string, isSent: boolean): string {
  if (a.$ref !== undefined && a.$ref === b.$ref) return a.$ref.split("/").at(-1) ?? "";
  if (a.items && b.items)
    return `${isSent ? "Sequence" : "list"}[${typeOf(a.items, b.items, singular(name), isSent)}]`;
  if (a.properties && b.properties) return classOf(a, b, name, isSent);
  if (a.anyOf && b.anyOf && a.anyOf.length === b.anyOf.length)
    return union(a.anyOf.map((one, i) => typeOf(one, b.anyOf?.[i] ?? {}, name, isSent)));
  return a === b
    ? scalarOf(a, name, isSent)
    : union([typeOf(a, a, name, isSent), typeOf(b, b, name, isSent)]);
}

/** Each member once, all literals as one, None last. No value of an enumeration has a comma or a bracket. */
function union(types: readonly string[]): string {
  const members = types.flatMap((type) => type.split(/ \| (?![^[]*\])/));
  const literals = members.flatMap((one) => /^Literal\[(.*)\]$/.exec(one)?.[1]?.split(", ") ?? []);
  const others = members.filter((one) => one !== "None" && !one.startsWith("Literal["));
  return [
    ...new Set([
      ...(literals.length > 0 ? [`Literal[${[...new Set(literals)].join(", ")}]`] : []),
      ...others,
      ...(members.includes("None") ? ["None"] : []),
    ]),
  ].join(" | ");
}

function singular(name: string): string {
  return name === "BatchAnswerAnswers" ? "BatchedAnswer" : name.replace(/s$/, "");
}

/** The beginning of the names of an operation's classes. */
function classNameOf(operation: string): string {
  return camel(operation.replace(/\{\w+\}/, "get"));
}

function scalarOf(schema: Schema, name: string, isSent: boolean): string {
  if ("const" in schema) return literal([schema.const]);
  if (schema.enum?.join() === EVENT_KINDS.join()) return "EventKind";
  if (schema.enum?.join() === ERROR_CODES.join()) return "ErrorCode";
  if (schema.enum) return literal(schema.enum);
  const types = [schema.type ?? []].flat();
  const words = types.map((type) =>
    type === "object" ? mappingOf(schema, name, isSent) : (SCALARS[type] ?? "Any"),
  );
  return words.length === 0 ? "Any" : union(words);
}

const SCALARS: Readonly<Record<string, string>> = {
  string: "str",
  integer: "int",
  number: "float",
  boolean: "bool",
  null: "None",
};

function literal(values: readonly unknown[]): string {
  const words = values.filter((value) => value !== null).map((value) => pythonOf(value));
  return [`Literal[${words.join(", ")}]`, ...(values.includes(null) ? ["None"] : [])].join(" | ");
}

function pythonOf(value: unknown): string {
  return value === true ? "True" : value === false ? "False" : JSON.stringify(value);
}

function mappingOf({ additionalProperties }: Schema, name: string, isSent: boolean): string {
  const value =
    typeof additionalProperties === "object"
      ? typeOf(additionalProperties, additionalProperties, name, isSent)
      : "Any";
  return `${isSent ? "Mapping" : "dict"}[str, ${value}]`;
}

/** An object with further keys has no class: a TypedDict cannot say it. */
function classOf(a: Schema, b: Schema, name: string, isSent: boolean): string {
  if (a.additionalProperties) return `${isSent ? "Mapping" : "dict"}[str, Any]`;
  const all = { ...b.properties, ...a.properties };
  const keywords: string[] = [];
  const fields = Object.entries(all).map(([field, schema]) => {
    const [ofA, ofB] = [a.properties?.[field] ?? schema, b.properties?.[field] ?? schema];
    const isRequired = a.required?.includes(field) && b.required?.includes(field);
    const type = typeOf(ofA, ofB, name + camel(field), isSent);
    const doc = field === "success" ? "" : comment(schema.description);
    const needed = isRequired ? type : `NotRequired[${type}]`;
    if (!KEYWORDS.has(field)) return `${doc}    ${field}: ${needed}\n`;
    keywords.push(`${doc}    "${field}": "${needed}",\n`);
    return "";
  });
  const base = keywords.length === 0 ? "TypedDict" : `_${name}Keywords`;
  const first = keywords.length === 0 ? "" : `${base} = TypedDict("${base}", {\n${keywords.join("")}})\n\n\n`;
  classes.set(name, `${first}class ${name}(${base}):\n${docOf(a.description)}${fields.join("")}`);
  return name;
}

function camel(name: string): string {
  return name
    .split(/[^A-Za-z]+/)
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join("");
}

function snake(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

function docOf(text: string | undefined): string {
  return text === undefined || text === "" ? "" : `    """${quotable(text)}"""\n\n`;
}

function comment(text: string | undefined): string {
  return text === undefined ? "" : wrapped(text, "    #: ");
}

/** Lines that begin with `start`; further ones with `indent` more. */
function wrapped(text: string, start: string, indent = ""): string {
  const lines: string[] = [];
  for (const word of text.split(/\s+/)) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + 1 + word.length <= LINE_CHARS)
      lines[lines.length - 1] = `${last} ${word}`;
    else lines.push(lines.length === 0 ? start + word : start + indent + word);
  }
  return lines.map((line) => `${line}\n`).join("");
}

function quotable(text: string): string {
  if (/"""|\\|"$/.test(text)) throw new Error(`cannot stand in a docstring: ${text}`);
  return text;
}

function records(): void {
  for (const [name, ofA] of Object.entries(A.components.schemas)) {
    const ofB = B.components.schemas[name] ?? {};
    const type = typeOf(ofA, ofB, name, false);
    if (type !== name)
      classes.set(name, `${comment(ofA.description).replaceAll("    #", "#")}${name} = Dict[str, Any]\n`);
  }
}

const PYTHON_WORDS: ReadonlySet<string> = new Set(["from"]);

function nameOf(field: string): string {
  return PYTHON_WORDS.has(field) ? `${field}_` : field;
}

function methodOf(method: string, { name, summary, request, answer }: Described): string {
  const [a, b] = request;
  const className = classNameOf(name);
  const all = { ...b.properties, ...a.properties };
  const fields = Object.entries(all).map(([field, schema]) => ({
    field,
    isRequired: Boolean(a.required?.includes(field) && b.required?.includes(field)),
    type: typeOf(
      a.properties?.[field] ?? schema,
      b.properties?.[field] ?? schema,
      className + camel(field),
      true,
    ),
    description: schema.description,
  }));
  const required = fields.filter(({ isRequired }) => isRequired);
  const optional = fields.filter(({ isRequired }) => !isRequired);
  const parameters = [
    "self",
    ...required.map(({ field, type }) => `${nameOf(field)}: ${type}`),
    "*",
    ...optional.map(({ field, type }) => `${nameOf(field)}: ${union([type, "None"])} = None`),
    "options: CallOptions | None = None",
  ];
  const result = typeOf(answer[0], answer[1], `${className}Answer`, false);
  const oneLine = `    def ${method}(${parameters.join(", ")}) -> ${result}:\n`;
  const head =
    oneLine.length <= LINE_CHARS
      ? oneLine
      : `    def ${method}(\n${parameters.map((one) => `        ${one},\n`).join("")}    ) -> ${result}:\n`;
  const about = [
    `${summary}.`,
    ...(NOTES[name] ? ["", NOTES[name]] : []),
    ...(fields.length > 0 ? [""] : []),
  ];
  const args = [...required, ...optional].map(({ field, description }) =>
    wrapped(quotable(`${nameOf(field)}: ${description}`), " ".repeat(8), "    "),
  );
  const doc =
    fields.length === 0 && about.length === 1
      ? `        """${quotable(about[0] ?? "")}"""\n`
      : `        """${about.map((line, i) => (i === 0 || line === "" ? line : `        ${line}`)).join("\n")}\n${args.join("")}        """\n`;
  const sent = [...required, ...optional].map(({ field }) => `"${field}": ${nameOf(field)}`);
  const inOne = `        fields = {${sent.join(", ")}}\n`;
  const body =
    sent.length === 0
      ? `        return cast("${result}", self._call("${name}", None, options))\n`
      : `${inOne.length <= LINE_CHARS ? inOne : `        fields = {\n${sent.map((one) => `            ${one},\n`).join("")}        }\n`}        return cast("${result}", self._call("${name}", fields, options))\n`;
  return head + doc + body;
}

export function pythonClient(): string {
  classes.clear();
  records();
  const all = operations();
  const find = (name: string): Described => {
    const found = all.find((one) => one.name === name);
    if (!found) throw new Error(`there is no operation ${name}`);
    return found;
  };
  const resources = [...methodsByResource()].map(([resource, methods]) => {
    const base = resource === "files" ? "_FileTransfer" : "_Resource";
    const texts = [...methods].map(([method, operation]) => methodOf(snake(method), operation));
    return `class ${camel(resource)}(${base}):\n${texts.join("\n")}`;
  });
  // Those that the methods which are written by hand answer.
  for (const name of ["status", "stats/minutes", "pg/diagnostic", "batch"]) {
    const { request, answer } = find(name);
    typeOf(answer[0], answer[1], `${classNameOf(name)}Answer`, false);
    if (name === "batch") typeOf(request[0], request[1], "Batch", true);
  }
  classes.delete("Batch"); // only its items are used
  const methods = all.map(({ name, method }) => `    "${name}": "${method}",\n`).join("");
  return `
EventKind = Literal[\n${EVENT_KINDS.map((kind) => `    "${kind}",\n`).join("")}]

ErrorCode = Literal[\n${ERROR_CODES.map((code) => `    ${JSON.stringify(code)},\n`).join("")}]


${[...classes.values(), ...resources].join("\n\n")}

#: The operations that take and answer JSON, and how each is called.
METHODS = {
${methods}}

#: The fields of each request, with those of the objects in it; 0: anything.
FIELDS: Dict[str, Any] = {
${all.map(({ name, request }) => `    "${name}": ${JSON.stringify(shapeOf(...request))},\n`).join("")}}
`;
}

export async function pythonFile(): Promise<string> {
  const text = await Bun.file(FILE).text();
  const end = text.indexOf(MARK) + MARK.length;
  if (end < MARK.length) throw new Error("luxhub.py has lost the line before its generated part");
  return text.slice(0, end) + pythonClient();
}

export async function writePythonClient(): Promise<void> {
  await Bun.write(FILE, await pythonFile());
}

if (import.meta.main) await writePythonClient();
