/**
 * Generates values for a field from its zod schema: accepted ones, ones at the limits, and ones just outside. Must not
 * know the hub, but for fields whose values nobody can guess: then a new field or endpoint is fuzzed as soon as it is
 * declared.
 *
 * A value is JSON text, not a JavaScript value: it can contain 1e400, -0, a lone surrogate or a duplicate name. It can
 * contain placeholders for ids (id-pool.ts).
 */
import fc from "fast-check";
import type * as z from "zod/mini";
import { EVENT_KINDS } from "../../src/domain/event.ts";
import { encodeCursor, encodeNodeCursor, encodeOpenCursor } from "../../src/api/request-fields.ts";
import { NODE_ORDERS } from "../../src/service/node-lists.ts";
import { type IdKind, placeholder } from "./id-pool.ts";

type Schema = z.core.$ZodType;
export type JsonText = string;

/** Limits above this are tried rarely: the hub stores and returns each such text. */
const LONG_CHARS = 2_000;
const LONG_MAX_CHARS = 2 ** 19;
/** In a row; without a bound, a field whose values nobody can guess would hang the fuzz test. */
const MISSES_MAX = 10_000;

/** Times that fields accept: one before the test runs, and one that no test reaches. */
const PAST = "2020-01-31T12:00:00Z";
const SOON = new Date(Date.now() + 3_600_000).toISOString();

const json = (value: unknown): JsonText => JSON.stringify(value) ?? "null";

const HOSTILE: readonly JsonText[] = [
  ...["null", "true", "false", "0", "-0", "-1", "1.5", "1e400", "-1e400", "1e-400", "9007199254740993"],
  ...[
    "0.1234567",
    "99999999999999999999",
    '""',
    '" "',
    '"0"',
    '"null"',
    "[]",
    "{}",
    "[[]]",
    '[""]',
    "[null]",
  ],
  ...['"\\u0000"', '"a\\u0000b"', '"\\ud800"', '"\\udc00\\ud800"', '"\\u202e"', '"\\ufeff"', '"\\r\\n"'],
  ...['{"__proto__":{"a":1}}', '{"constructor":{"prototype":{"a":1}}}', '{"toString":1}', '{"length":5}'],
  ...['"__proto__"', '"constructor"', '"../../etc/passwd"', '"\' OR 1=1 --"', '"%00"', '"𝒳é漢"'],
];

export const hostile = fc.constantFrom(...HOSTILE);

/** Names that are not fields; some are properties that every JavaScript object inherits. */
export const strangeName: fc.Arbitrary<JsonText> = fc.constantFrom(
  ...["__proto__", "constructor", "toString", "hasOwnProperty", "", "a.b", "\0", "𝒳", "length"].map(json),
);

export function taken(schema: Schema, name: string): fc.Arbitrary<JsonText> {
  let misses = 0;
  return around(schema, name).filter((text) => {
    const isTaken = takes(schema, text);
    misses = isTaken ? 0 : misses + 1;
    if (misses > MISSES_MAX) throw new Error(`derive() makes no value that the field ${name} accepts`);
    return isTaken;
  });
}

export function around(schema: Schema, name: string): fc.Arbitrary<JsonText> {
  let arbitrary = made.get(schema);
  if (!arbitrary) {
    arbitrary = derive(schema, name);
    made.set(schema, arbitrary);
  }
  const kind = idKindOf(name);
  if (kind === null || !takes(schema, json(placeholder(kind, 0)))) return arbitrary;
  const known = fc.nat({ max: 9 }).map((n) => json(placeholder(kind, n)));
  return fc.oneof({ weight: 100, arbitrary: known }, arbitrary);
}

export function takes(schema: Schema, text: JsonText): boolean {
  return (schema as z.ZodMiniType).safeParse(JSON.parse(text)).success; // every schema of zod/mini is one
}

export function fieldsOf(schema: Schema): readonly (readonly [string, Schema])[] {
  const def = defOf(schema);
  return def.type === "object" ? Object.entries(def.shape) : [];
}

export function isOptional(schema: Schema): boolean {
  const { type } = defOf(schema);
  return type === "optional" || type === "default";
}

/** The kind of id in a field, by the field's name: random ids would not exist in the hub. */
function idKindOf(name: string): IdKind | null {
  if (name === "since" || name === "message_id") return "message";
  if (name === "task_id") return "task";
  if (name === "file_id") return "file";
  if (name === "question_id") return "question";
  if (name === "invitation_id") return "invitation";
  if (name === "token") return "token";
  return /(^|_)node(_id)?$/.test(name) ? "node" : null;
}

const made = new WeakMap<Schema, fc.Arbitrary<JsonText>>();

function derive(schema: Schema, name: string): fc.Arbitrary<JsonText> {
  const def = defOf(schema);
  // Few tasks have output, so any other offset is refused.
  if (name === "offset" && def.type === "number") return fc.constantFrom("0", "0", "1");
  // A random epoch is never the current one, which is mostly the first.
  if (name === "epoch" && def.type === "number")
    return fc.oneof({ weight: 4, arbitrary: fc.constantFrom("0", "1", "1", "1", "1", "2") }, numbers(schema));
  if (takes(schema, json(SOON)) && !takes(schema, '"words"'))
    return fc.oneof({ weight: 9, arbitrary: fc.constant(json(SOON)) }, fc.constant(json(PAST)), hostile);
  // Of notes and leases: a few, so that one is met again.
  if ((name === "if_version" || name === "fencing") && def.type === "number")
    return fc.oneof(fc.constantFrom("0", "1", "1", "2", "3"), numbers(schema));
  // At the deadline of a question the hub writes, which must not look like a write by a read.
  if (name === "within_s" && def.type === "number") return fc.constantFrom("0", "600", "86400", "604801");
  if (name === "task_ids")
    return fc.oneof(
      {
        weight: 9,
        arbitrary: fc
          .array(fc.nat({ max: 9 }), { minLength: 1, maxLength: 3 })
          .map((all) => json(all.map((n) => placeholder("task", n)).join())),
      },
      hostile,
    );
  // Of pauses: what is paused has one of these.
  if ((name === "type" || name === "limit_key") && def.type === "string" && takes(schema, '"k0"'))
    return fc.oneof({ weight: 3, arbitrary: fc.constantFrom('"k0"', '"k1"') }, strings(schema));
  if (name === "key" && def.type === "string")
    return fc.oneof({ weight: 9, arbitrary: fc.constantFrom('"k0"', '"k1"') }, strings(schema));
  if (name === "name" && def.type === "string" && takes(schema, '"a/*"') && !takes(schema, '"a//b"'))
    return fc.oneof({ weight: 9, arbitrary: fc.constantFrom('"a"', '"a/*"', '"**/b"') }, strings(schema));
  // The test waits for the answer: a longer wait is only one that is refused.
  if ((name === "wait" || name === "timeout") && (takes(schema, "1") || takes(schema, '"1"'))) {
    const [short, refused] = takes(schema, "1") ? [["0", "1"], "301"] : [['"0"', '"1"'], '"301"'];
    return fc.oneof({ weight: 9, arbitrary: fc.constantFrom(...short) }, fc.constant(refused));
  }
  if (name === "cron" && def.type === "string")
    return fc.oneof({ weight: 9, arbitrary: fc.constantFrom('"0 6 * * 1-5"', '"@daily"') }, strings(schema));
  if (name === "secret" && def.type === "string")
    return fc.oneof(
      { weight: 9, arbitrary: fc.constant(json(`whsec_${"ab12".repeat(8)}`)) },
      strings(schema),
    );
  if (name === "url" && takes(schema, '"http://h"'))
    return fc.oneof({ weight: 9, arbitrary: fc.constantFrom('"http://h"', '"https://[::1]:1/a/"') }, hostile);
  if (name === "group" && def.type === "string")
    return fc.oneof({ weight: 9, arbitrary: fc.constantFrom('"g0"', '"g1"') }, strings(schema));
  if (name === "compare")
    return fc.oneof({ weight: 9, arbitrary: fc.constantFrom('"output"', '"json:/lesson,/a~1b"') }, hostile);
  if (name === "review" && takes(schema, '"creator"'))
    return fc.oneof(
      { weight: 9, arbitrary: fc.constantFrom('"creator"', '"node:n1"', '"capability:x"') },
      hostile,
    );
  if (name === "key_hash")
    return fc.oneof({ weight: 9, arbitrary: fc.constant(json("0a".repeat(32))) }, hostile);
  if (name === "tz" && def.type === "string")
    return fc.oneof({ weight: 9, arbitrary: fc.constantFrom('"UTC"', '"Europe/Berlin"') }, strings(schema));
  if (name === "kind" && takes(schema, '"task.created,lux.paid"'))
    return fc.oneof(
      {
        weight: 9,
        arbitrary: fc
          .array(fc.constantFrom(...EVENT_KINDS), { minLength: 1, maxLength: 3 })
          .map((kinds) => json(kinds.join())),
      },
      hostile,
    );
  if (name === "failure_kind")
    return fc.oneof({ weight: 9, arbitrary: fc.constantFrom('"timeout"', '"cancelled, expired"') }, hostile);
  if (name === "traceparent")
    return fc.oneof(
      { weight: 9, arbitrary: fc.constant(json(`00-${"4b".repeat(16)}-${"a1".repeat(8)}-01`)) },
      hostile,
    );
  if (name === "cursor") {
    const ofTasks = fc.nat({ max: 60 }).map((before) => json(encodeCursor({ before })));
    const ofNodes = fc
      .tuple(
        fc.constantFrom(...NODE_ORDERS),
        fc.bigInt({ min: -1n, max: 9n }),
        fc.constantFrom("", "n1", "z"),
      )
      .map(([order, rank, nodeId]) => json(encodeNodeCursor(order, { rank, nodeId })));
    const ofQuestions = fc.nat({ max: 60 }).map((seq) => json(encodeOpenCursor({ until: 0, seq })));
    const ofParts = fc.nat({ max: 60 }).map((number) => json(String(number)));
    const arbitrary =
      [ofNodes, ofQuestions, ofParts].find((one) => fc.sample(one, 1).every((text) => takes(schema, text))) ??
      ofTasks;
    return fc.oneof({ weight: 9, arbitrary }, hostile);
  }
  // Of keys, schedules and webhooks, which are named by their maker: a few names, so that one is met again.
  if (name === "name" && def.type === "string")
    return fc.oneof(
      { weight: 9, arbitrary: fc.nat({ max: 5 }).map((n) => json(`spare-${n}`)) },
      { weight: takes(schema, '"a b"') ? 9 : 1, arbitrary: strings(schema) },
    );
  switch (def.type) {
    case "optional":
    case "default":
      return around(def.innerType, name);
    case "nullable":
      return fc.oneof({ weight: 9, arbitrary: around(def.innerType, name) }, fc.constant("null"));
    case "boolean":
      return fc.constantFrom("true", "false");
    case "enum":
      return fc.constantFrom(...Object.values(def.entries).map(json));
    case "literal":
      return fc.constantFrom(...def.values.map(json));
    case "union":
      return fc.oneof(...def.options.map((option) => around(option, name)));
    case "array":
      return fc.array(around(def.element, name), { maxLength: 4 }).map((items) => `[${items.join(",")}]`);
    case "object":
      return object(schema, taken);
    case "number":
      return numbers(schema);
    case "string":
      return strings(schema);
    case "pipe":
      return piped(def.in, def.out, name);
    default:
      return hostile; // unknown: anything
  }
}

/** An object with a value from `field` for every field; optional fields may be missing. */
export function object(
  schema: Schema,
  field: (schema: Schema, name: string) => fc.Arbitrary<JsonText>,
): fc.Arbitrary<JsonText> {
  return entriesOf(schema, field).map(toObject);
}

export type Entry = readonly [name: JsonText, value: JsonText];

/** So many optional fields of a schema are there, in the middle: with many more, some would not go together. */
const OPTIONAL_TOGETHER = 4;

export function entriesOf(
  schema: Schema,
  field: (schema: Schema, name: string) => fc.Arbitrary<JsonText>,
): fc.Arbitrary<readonly Entry[]> {
  const fields = fieldsOf(schema);
  const optional = fields.filter(([, inner]) => isOptional(inner)).length;
  const without = {
    weight: Math.max(OPTIONAL_TOGETHER, optional - OPTIONAL_TOGETHER),
    arbitrary: fc.constant(null),
  };
  const entries = fields.map(([name, inner]) => {
    const entry = field(inner, name).map((value): Entry | null => [json(name), value]);
    return isOptional(inner) ? fc.oneof({ weight: OPTIONAL_TOGETHER, arbitrary: entry }, without) : entry;
  });
  return fc.tuple(...entries).map((all) => all.filter((entry) => entry !== null));
}

export function toObject(entries: readonly Entry[]): JsonText {
  return `{${entries.map(([name, value]) => `${name}:${value}`).join(",")}}`;
}

function piped(into: Schema, out: Schema, name: string): fc.Arbitrary<JsonText> {
  const first = around(into, name);
  if (defOf(out).type === "transform") return first;
  const last = around(out, name);
  return fc.oneof(
    first,
    last,
    last.map((text) => (text.startsWith('"') ? text : json(text))),
  );
}

function numbers(schema: Schema): fc.Arbitrary<JsonText> {
  let min = -1e9;
  let max = 1e9;
  for (const check of defOf(schema).checks ?? []) {
    const limit = check._zod.def as z.core.$ZodCheckLessThanDef | z.core.$ZodCheckGreaterThanDef;
    if (limit.check === "greater_than") min = Number(limit.value);
    else if (limit.check === "less_than") max = Number(limit.value);
  }
  const edges = [min - 1, min, min + 1, max - 1, max, max + 1].filter(Number.isFinite);
  const within = { min: Math.max(min, -1e15), max: Math.min(max, 1e15) };
  return fc.oneof(
    {
      weight: 4,
      arbitrary: fc.integer({ min: within.min, max: Math.min(within.max, within.min + 60) }).map(String),
    },
    { weight: 1, arbitrary: fc.integer(within).map(String) },
    { weight: 1, arbitrary: fc.double({ ...within, noNaN: true }).map(json) },
    { weight: 2, arbitrary: fc.constantFrom(...edges.map(json)) },
  );
}

const letters = fc.string({
  unit: fc.constantFrom("a", "B", "0", " ", ",", "é", "漢", "𝒳", '"', "\\", "\n"),
  maxLength: 24,
});

function strings(schema: Schema): fc.Arbitrary<JsonText> {
  const patterns = (defOf(schema).checks ?? []).flatMap((check) => {
    const { pattern } = check._zod.def as { pattern?: RegExp };
    return pattern ? [pattern] : [];
  });
  if (patterns.length > 0)
    return fc.oneof(...patterns.map((pattern) => fc.stringMatching(pattern).map(json)));
  const longest = longestTaken(schema);
  const edges = [longest, longest + 1, Math.floor(longest / 3), Math.ceil(longest / 3) + 1];
  const long = fc
    .tuple(fc.constantFrom(...edges), fc.constantFrom("x", "é", "漢"))
    .map(([length, unit]) => json(unit.repeat(length)));
  return fc.oneof(
    {
      weight: longest > LONG_CHARS ? 200 : 20,
      arbitrary: fc.oneof(letters, fc.constant("plain words")).map(json),
    },
    { weight: 1, arbitrary: long },
  );
}

function longestTaken(schema: Schema): number {
  let [low, high] = [0, LONG_MAX_CHARS];
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (takes(schema, json("x".repeat(middle)))) low = middle;
    else high = middle - 1;
  }
  return low;
}

function defOf(schema: Schema): z.core.$ZodTypes["_zod"]["def"] {
  return (schema as z.core.$ZodTypes)._zod.def; // every schema is one of them; the union is told apart by `type`
}
