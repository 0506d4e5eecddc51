/**
 * Compares the two forms of a result of MCP: reads the text, as its grammar has it, and finds each of its facts in the
 * structured content, and the other way round. What differs is only what a text cannot say: `none` is null or an empty
 * list, and a list of one is like its item.
 */
import { canonicalJson } from "../../src/lib/exact-json.ts";

/** A text that others wrote, by whom. */
type Quoted = { readonly text: string; readonly isJson: boolean; readonly by: Author | null };
type Author = { readonly node: string; readonly verified: boolean | null };
type Read = readonly Quoted[] | Fields | readonly Fields[];
type Fields = Map<string, Read>;

/** Returns the first difference; null: both forms say the same. */
export function differenceOf(text: string, structured: Readonly<Record<string, unknown>>): string | null {
  const { say, ...fields } = structured;
  const lines = text.split("\n");
  if (lines[0] !== say && lines[0] !== `${String(structured["error"])}: ${String(say)}`)
    return `the text begins with ${lines[0]}, and say is ${String(say)}`;
  if (structured["error"] !== undefined) return errorDifference(String(say), fields);
  const reader = new Reader(lines.slice(1));
  const read = reader.fields("");
  if (reader.rest !== undefined) return `this line has no form: ${reader.rest}`;
  return difference(read, fields, "");
}

/** A refusal is one sentence or more; what they name is in the fields. */
function errorDifference(say: string, { errors }: Readonly<Record<string, unknown>>): string | null {
  const named: readonly unknown[] = Array.isArray(errors) ? errors : [];
  const missing = named.find((one) => !say.includes(`${Object(one).path}: ${Object(one).message}`));
  return missing === undefined ? null : `the text does not have ${JSON.stringify(missing)}`;
}

const FIELD = /^(\w+)(?:, by ([\w.:-]+|an unnamed sender)(?: \(((?:not )?verified)\))?)?:(?: (.*))?$/;

class Reader {
  readonly #lines: readonly string[];
  #at = 0;

  constructor(lines: readonly string[]) {
    this.#lines = lines;
  }

  get rest(): string | undefined {
    return this.#lines[this.#at];
  }

  fields(indent: string): Fields {
    const fields: Fields = new Map();
    for (let line = this.rest; line?.startsWith(indent); line = this.rest) {
      const [, name, node, verified, value] = FIELD.exec(line.slice(indent.length)) ?? [];
      if (name === undefined) break;
      this.#at++;
      fields.set(
        name,
        value === undefined ? this.#nested(indent) : this.#value(value, authorOf(node, verified)),
      );
    }
    return fields;
  }

  #nested(indent: string): Fields | readonly Fields[] {
    if (!this.rest?.startsWith(`${indent}- `)) return this.fields(`${indent}  `);
    const rows: Fields[] = [];
    for (let line = this.rest; line?.startsWith(`${indent}- `); line = this.rest) {
      this.#at++;
      const row: Fields = new Map();
      for (const part of split(line.slice(indent.length + 2), "; ")) {
        const [, name = "", node, verified, value = ""] = FIELD.exec(part) ?? [];
        row.set(name, this.#value(value, authorOf(node, verified)));
      }
      for (const [name, value] of this.fields(`${indent}  `)) row.set(name, value);
      rows.push(row);
    }
    return rows;
  }

  #value(value: string, by: Author | null): readonly Quoted[] {
    const [, fence] = /^<<<([0-9a-f]{12})$/.exec(value) ?? [];
    if (fence !== undefined) {
      const end = this.#lines.indexOf(`${fence}>>>`, this.#at);
      const text = this.#lines.slice(this.#at, end).join("\n");
      this.#at = end + 1;
      return [{ text, isJson: false, by }];
    }
    if (value === "none") return [];
    if (/^[{[]/.test(value)) return [{ text: value, isJson: true, by }];
    return split(value, ", ").map((item) =>
      item.startsWith('"')
        ? { text: String(JSON.parse(item)), isJson: false, by }
        : { text: item, isJson: false, by },
    );
  }
}

function authorOf(node: string | undefined, verified: string | undefined): Author | null {
  if (node === undefined) return null;
  return { node, verified: verified === undefined ? null : verified === "verified" };
}

/** Splits at a separator that is not within quotes, braces or brackets. */
function split(line: string, separator: string): readonly string[] {
  const parts: string[] = [];
  let [start, depth, isQuoted] = [0, 0, false];
  for (let i = 0; i < line.length; i++) {
    const char = line[i] ?? "";
    if (isQuoted && char === "\\") i++;
    else if (char === '"') isQuoted = !isQuoted;
    else if (!isQuoted && "{[".includes(char)) depth++;
    else if (!isQuoted && "}]".includes(char)) depth--;
    else if (!isQuoted && depth === 0 && line.startsWith(separator, i)) {
      parts.push(line.slice(start, i));
      start = i + separator.length;
    }
  }
  return [...parts, line.slice(start)];
}

function difference(read: Read, value: unknown, path: string): string | null {
  if (read instanceof Map) return ofFields(read, value, path);
  if (isRows(read)) {
    const rows: readonly unknown[] = Array.isArray(value) ? value : [];
    if (rows.length !== read.length) return `${path} has ${read.length} rows, and ${rows.length}`;
    return read.reduce<string | null>(
      (found, row, i) => found ?? ofFields(row, rows[i], `${path}.${i}`),
      null,
    );
  }
  const items: readonly unknown[] =
    value === null ? [] : Array.isArray(value) && !isJsonOf(read) ? value : [value];
  if (items.length !== read.length) return `${path} is ${JSON.stringify(read)}, and ${JSON.stringify(value)}`;
  for (const [i, { text, isJson }] of read.entries()) {
    const item = items[i];
    const isSame =
      typeof item === "object"
        ? canonicalJson(text) === canonicalJson(JSON.stringify(item))
        : !isJson && text === (typeof item === "string" ? item : JSON.stringify(item));
    if (!isSame) return `${path} is ${text}, and ${JSON.stringify(item)}`;
  }
  return null;
}

function isJsonOf(read: readonly Quoted[]): boolean {
  return read.length === 1 && (read[0]?.isJson === true || read[0]?.by !== null);
}

function isRows(read: Exclude<Read, Fields>): read is readonly Fields[] {
  return read[0] instanceof Map;
}

function ofFields(read: Fields, value: unknown, path: string): string | null {
  const fields: Readonly<Record<string, unknown>> = Object(value);
  const names = new Set([...read.keys(), ...Object.keys(fields)]);
  for (const name of names) {
    const part = read.get(name);
    if (part === undefined) return `the text has no ${path}.${name}`;
    if (!Object.hasOwn(fields, name)) return `the structured content has no ${path}.${name}`;
    const found =
      difference(part, fields[name], `${path}.${name}`) ?? authorDifference(part, fields, `${path}.${name}`);
    if (found !== null) return found;
  }
  return null;
}

/** Who wrote a text, and whether that is verified: the fields that say so, by the name of the text. */
const AUTHORS: Readonly<Record<string, readonly [node: string, verified: string]>> = {
  content: ["from_node", "verified"],
  lesson: ["node_id", "verified"],
  description: ["creator_node", "creator_verified"],
  result: ["assigned_node", "result_verified"],
};

/** `fields` has the text, or the record that has the text. */
function authorDifference(
  read: Read,
  fields: Readonly<Record<string, unknown>>,
  path: string,
): string | null {
  const [nodeField, verifiedField] = AUTHORS[path.split(".").at(-1) ?? ""] ?? [];
  if (nodeField === undefined || verifiedField === undefined) return null;
  const quoted = read instanceof Map ? [...read.values()] : [read];
  for (const one of quoted) {
    const by = one instanceof Map || isRows(one) ? null : (one[0]?.by ?? null);
    if (by === null || fields[verifiedField] === undefined) continue; // what the task of a task_wait shows, or a file
    const node = fields[nodeField] === undefined ? "an unnamed sender" : String(fields[nodeField]);
    if (by.node !== node || by.verified !== fields[verifiedField])
      return `${path} is by ${JSON.stringify(by)}, and by ${node} (${String(fields[verifiedField])})`;
  }
  return null;
}
