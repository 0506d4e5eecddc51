/** Parses a request by its zod schema. The error names the invalid fields and what to send instead. */
import * as z from "zod/mini";
import type { JsonObject } from "../http/json-body.ts";
import { type FieldError, Problem, invalidRequest } from "../http/problem.ts";
import { must } from "../lib/assert.ts";
import {
  COMPILE_INPUT_AFTER,
  ERRORS_MAX,
  IGNORED_FIELDS_MAX,
  IGNORED_FIELD_MAX_CHARS,
  JSON_BODY_DEADLINE_MS,
  JSON_BODY_MAX_BYTES,
  JSON_VALUES_MAX,
} from "../domain/limits.ts";

z.config({ customError: (issue) => messageOf(issue) });

export const JSON_BODY_LIMITS = {
  maxBytes: JSON_BODY_MAX_BYTES,
  maxValues: JSON_VALUES_MAX,
  deadlineMs: JSON_BODY_DEADLINE_MS,
};

/** @throws {Problem} 400 that names every invalid field once */
export function parseInput<In>(schema: z.ZodMiniType<In>, raw: unknown): In {
  const parsed = schema.safeParse(raw);
  if (parsed.success) return parsed.data;
  const errors = new Map<string, FieldError>();
  for (const { path: place, message } of parsed.error.issues.flatMap(placesOf)) {
    const path = place.join(".");
    if (!errors.has(path)) errors.set(path, { path, message });
    if (errors.size >= ERRORS_MAX) break;
  }
  throw invalidRequest([...errors.values()]);
}

/** What is wrong with a request that `parse` reads; none: it is valid. */
export function faultsIn(parse: () => unknown): readonly FieldError[] {
  try {
    parse();
    return [];
  } catch (error) {
    if (error instanceof Problem) return must(error.extras.errors, "an invalid request has errors");
    throw error;
  }
}

export function invalidField(path: string, message: string): Problem {
  return invalidRequest([{ path, message }]);
}

type Place = Pick<z.core.$ZodIssue, "path" | "message">;

/**
 * Zod has all unknown fields of an object as one issue, and what is wrong with a field's name as issues within one that
 * does not say it.
 */
function placesOf(issue: z.core.$ZodIssue): readonly Place[] {
  if (issue.code === "invalid_key") return issue.issues.map(({ message }) => ({ path: issue.path, message }));
  if (issue.code !== "unrecognized_keys") return [issue];
  const message = "must be left out: there is no such field here";
  return namesOfIgnored(issue.keys).map((key) => ({ path: [...issue.path, key], message }));
}

/**
 * Null in a body and an empty text in a query mean the same as leaving them out. So a client can send a record back as
 * the hub answered it.
 */
export function withoutAbsent(raw: JsonObject, absent: null | "", kept: readonly string[] = []): JsonObject {
  if (!Object.values(raw).includes(absent)) return raw;
  return Object.fromEntries(
    Object.entries(raw).filter(([name, value]) => value !== absent || kept.includes(name)),
  );
}

/**
 * The schema is made at the first call, to save an idle hub its memory, and compiled at call COMPILE_INPUT_AFTER:
 * compiling takes a few milliseconds, and makes parsing five times as fast. Invalid input goes to the original schema,
 * so the messages are the same.
 */
export function inputParser<In>(makeSchema: () => z.ZodMiniType<In>): (raw: unknown) => In {
  let schema: z.ZodMiniType<In> | null = null;
  let uses = 0;
  return (raw) => {
    schema ??= makeSchema();
    if (++uses === COMPILE_INPUT_AFTER) schema = z.compile(schema);
    return parseInput(schema, raw);
  };
}

type ReadFields =
  | { readonly fields: ReadonlyMap<string, ReadFields | null>; readonly elements?: never }
  | { readonly elements: ReadFields; readonly fields?: never };

const NONE: readonly string[] = [];

/**
 * Names have dots (`requests.0.pth`). A value that its schema keeps whole, such as the `result` of a task, has none.
 * @param known names that are not reported although the schema does not read them
 */
export function ignoredFieldsFinder(
  makeSchema: () => z.ZodMiniType,
  known: readonly string[] = [],
): (raw: JsonObject) => readonly string[] {
  let read: ReadFields | null | undefined;
  return (raw) => {
    read ??= readFieldsOf(makeSchema(), known);
    const names = read === null ? NONE : ignoredIn(raw, read);
    return names.length === 0 ? NONE : namesOfIgnored(names);
  };
}

export function namesOfIgnored(names: Iterable<string>): readonly string[] {
  return Iterator.from(names)
    .take(IGNORED_FIELDS_MAX)
    .map((name) => name.slice(0, IGNORED_FIELD_MAX_CHARS).toWellFormed())
    .toArray();
}

function readFieldsOf(schema: z.core.$ZodType, known: readonly string[] = []): ReadFields | null {
  if (schema instanceof z.ZodMiniOptional || schema instanceof z.ZodMiniNullable)
    return readFieldsOf(schema.def.innerType);
  if (schema instanceof z.ZodMiniPipe) return readFieldsOf(schema.def.in);
  if (schema instanceof z.ZodMiniArray) {
    const elements = readFieldsOf(schema.def.element);
    return elements && { elements };
  }
  if (!(schema instanceof z.ZodMiniObject) || schema.def.catchall !== undefined) return null;
  const fields = new Map<string, ReadFields | null>(known.map((name) => [name, null]));
  for (const [name, part] of Object.entries(schema.def.shape)) fields.set(name, readFieldsOf(part));
  return { fields };
}

/** Called for every request: allocates only for a field that it finds. Object.entries() takes 3 times as long. */
function ignoredIn(value: unknown, { fields, elements }: ReadFields): readonly string[] {
  if (typeof value !== "object" || value === null) return NONE;
  const parts = value as Readonly<Record<string, unknown>>; // any object or list has parts by name
  let names: string[] | null = null;
  for (const name in parts) {
    const inner = fields ? fields.get(name) : elements;
    if (inner === null) continue;
    if (inner === undefined) (names ??= []).push(name);
    else for (const deeper of ignoredIn(parts[name], inner)) (names ??= []).push(`${name}.${deeper}`);
    if (names !== null && names.length >= IGNORED_FIELDS_MAX) break;
  }
  return names ?? NONE;
}

/** Zod's words for types that have another in JSON. */
const EXPECTED: ReadonlyMap<string, string> = new Map([
  ["int", "whole number"],
  ["record", "object"],
]);

function messageOf(issue: z.core.$ZodRawIssue): string | undefined {
  switch (issue.code) {
    case "invalid_type": {
      const expected = article(EXPECTED.get(issue.expected) ?? issue.expected);
      return issue.input === undefined ? `is required, and must be ${expected}` : `must be ${expected}`;
    }
    case "invalid_value":
      return `must be ${issue.values.length > 1 ? "one of " : ""}${issue.values.join(", ")}`;
    case "too_small":
      return issue.origin === "array"
        ? `must hold at least ${issue.minimum}`
        : `must be at least ${issue.minimum}`;
    case "too_big":
      return issue.origin === "array"
        ? `must hold at most ${issue.maximum}`
        : `must be at most ${issue.maximum}`;
    default:
      return undefined;
  }
}

function article(noun: string): string {
  return `${/^[aeiou]/.test(noun) ? "an" : "a"} ${noun}`;
}
