/**
 * The JSON of TASK_FIELDS (domain/task/fields.ts): what a request may send of each kind of value, what a record shows,
 * and the encoding between them.
 */
import * as z from "zod/mini";
import { toLux } from "../domain/lux.ts";
import {
  type FieldValue,
  type KindValues,
  type Requirements,
  type Resources,
  type TaskTerms,
  PRIORITIES,
} from "../domain/model.ts";
import { RESOURCE_UNITS } from "../domain/limits.ts";
import { toUsd } from "../domain/task/facet/spending.ts";
import { type TaskPatch, PATCH_FIELDS } from "../domain/task/creator.ts";
import {
  type FieldName,
  type FieldsWith,
  type KindOf,
  type Kinds,
  type TaskField,
  type TaskFields,
  TASK_FIELDS,
} from "../domain/task/fields.ts";
import { TEMPLATE_FIELDS, type TemplateField, isUnset } from "../domain/task/template.ts";
import { isoTime, SECOND_MS } from "../lib/clock.ts";
import type { Variant } from "../variant/variant.ts";
import type { JsonAnswer } from "./answer.ts";
import { about } from "./about.ts";
import * as field from "./request-fields.ts";

type KindOfValue<I extends keyof Kinds> = {
  readonly sent: (kind: KindOf<I>) => z.ZodMiniType<KindValues[I]>;
  readonly schema: (variant: Variant, kind: KindOf<I>) => z.ZodMiniType;
  readonly encode: (value: NonNullable<KindValues[I]>, variant: Variant) => unknown;
};

const asItIs = <T>(value: T): T => value;
const string = () => z.string();
const number = () => z.number();

const KINDS: { readonly [I in keyof Kinds]: KindOfValue<I> } = {
  line: { sent: ({ max }) => field.line(max), schema: string, encode: asItIs },
  text: { sent: ({ max }) => field.text(max), schema: string, encode: asItIs },
  type: {
    sent: () => field.taskType(),
    schema: () => z.nullable(z.string()),
    encode: (type) => (type === "" ? null : type),
  },
  node: { sent: () => field.nodeId(), schema: string, encode: asItIs },
  priority: {
    sent: () => field.priority(),
    schema: (variant) =>
      z.literal([...new Set(PRIORITIES.map((priority) => variant.priorityWord(priority)))]),
    encode: (priority, variant) => variant.priorityWord(priority),
  },
  lux: { sent: () => field.luxReward(), schema: number, encode: toLux },
  usd: { sent: () => field.costLimit(), schema: number, encode: toUsd },
  whole: {
    sent: ({ min, max }) => z.int().check(z.minimum(min), z.maximum(max)),
    schema: () => z.int().check(z.minimum(0)),
    encode: asItIs,
  },
  seconds: {
    sent: ({ min, max }) => field.seconds(min, max),
    schema: number,
    encode: (ms) => ms / SECOND_MS,
  },
  moment: { sent: () => field.date(), schema: () => z.iso.datetime({ precision: 3 }), encode: isoTime },
  word: {
    sent: ({ words }) => field.word(words),
    schema: (_, { words }) => z.enum(words),
    encode: asItIs,
  },
  ids: { sent: ({ max }) => field.ids(max), schema: () => z.array(z.string()), encode: asItIs },
  group: { sent: () => field.group(), schema: string, encode: asItIs },
  tags: { sent: () => field.tags(), schema: () => z.array(z.string()), encode: asItIs },
  requires: { sent: () => field.requires(), schema: () => requiresSchema(), encode: encodeRequires },
  limitKey: {
    sent: () =>
      z.pipe(
        field.limitKey(),
        z.transform((key: string) => (key === "" ? null : key)),
      ),
    schema: string,
    encode: asItIs,
  },
  reviewer: { sent: () => field.reviewer(), schema: string, encode: asItIs },
  quorum: {
    sent: () => field.quorum(),
    schema: () =>
      z.strictObject({
        results: z.int().check(z.minimum(0)),
        of: z.int().check(z.minimum(0)),
        compare: z.string(),
      }),
    encode: asItIs,
  },
  traceparent: { sent: () => field.traceparent(), schema: string, encode: asItIs },
  tracestate: { sent: () => field.tracestate(), schema: string, encode: asItIs },
};

function kindOf<I extends keyof Kinds>({ is }: KindOf<I>): KindOfValue<I> {
  return KINDS[is];
}

// ---- Requests

type Sent<N extends FieldName> = z.ZodMiniType<FieldValue<TaskFields[N]["kind"]>>;
type Required<N extends FieldName> = N & FieldsWith<{ readonly required: true }>;
type Request<N extends FieldName> = { readonly [F in Required<N>]: Sent<F> } & {
  readonly [F in Exclude<N, Required<N>>]: z.ZodMiniOptional<Sent<F>>;
};

function request<N extends FieldName>(isSent: (declared: TaskField) => boolean, of?: "create"): Request<N> {
  const sent = Object.entries<TaskField>(TASK_FIELDS).filter(([, declared]) => isSent(declared));
  const schemas = sent.map(([name, { kind, required, text, texts = {} }]) => {
    const schema: z.ZodMiniType = kindOf(kind).sent(kind);
    return [name, about(required ? schema : z.optional(schema), (of && texts[of]) ?? text)];
  });
  return Object.fromEntries(schemas) as Request<N>;
}

type CreateOnly = FieldsWith<{ readonly createOnly: true }>;
type Scheduled = FieldsWith<{ readonly shown: { readonly schedule: string } }>;

export const newTaskFields = () => request<Exclude<FieldName, CreateOnly>>(({ createOnly }) => !createOnly);
export const createFields = () => request<FieldName>(() => true, "create");
export const scheduledFields = () => request<Scheduled>(({ shown }) => shown?.schedule !== undefined);

type Patched = FieldsWith<{ readonly patch: string }>;
type Clearable = FieldsWith<{ readonly patch: "clearable" }>;
type PatchRequest = {
  readonly [N in Patched]: z.ZodMiniOptional<N extends Clearable ? z.ZodMiniNullable<Sent<N>> : Sent<N>>;
};

export function patchFields(): PatchRequest {
  const schemas = PATCH_FIELDS.map(({ name, kind, canClear }) => {
    const { text, texts = {} }: TaskField = TASK_FIELDS[name];
    const schema: z.ZodMiniType = kindOf(kind).sent(kind);
    const patched = z.optional(canClear ? z.nullable(schema) : schema);
    return [name, about(patched, texts.update ?? text)];
  });
  return Object.fromEntries(schemas) as PatchRequest; // PATCH_FIELDS are the fields of the type Patched
}

export const CLEARABLE = PATCH_FIELDS.filter(({ canClear }) => canClear).map(({ name }) => name);

type Parsed = { readonly [N in FieldName]?: unknown };

export function termsIn(input: Parsed): TaskTerms {
  const terms: Partial<Record<keyof TaskTerms, unknown>> = {};
  for (const { name, key, fallback } of TEMPLATE_FIELDS) terms[key] = input[name] ?? fallback;
  return terms as TaskTerms; // the schema of each field gives its type
}

export function patchIn(input: Parsed): TaskPatch {
  const sent = PATCH_FIELDS.filter(({ name }) => input[name] !== undefined);
  return Object.fromEntries(sent.map(({ name, key }) => [key, input[name]]));
}

// ---- Records

/** The fields that every record of a task names. Encoders write them out: from the table would take 20 times as long. */
export type ShownAlways = Record<string, unknown> & {
  readonly [N in FieldsWith<{ readonly shown: { readonly task: "always" } }>]: unknown;
};

export function shownFields(
  record: "task" | "summary" | "schedule",
  variant: Variant,
): z.core.$ZodLooseShape {
  const schemas = Object.entries<TaskField>(TASK_FIELDS).flatMap(([name, declared]) => {
    const { kind, shown = {}, fallback, text, texts = {} } = declared;
    const how = record === "summary" ? shown.summary && shown.task : shown[record];
    if (how === undefined) return [];
    const shape = kindOf(kind).schema(variant, kind);
    const isNull = how === "always" && fallback === null;
    const schema = how === "if set" ? z.optional(shape) : isNull ? z.nullable(shape) : shape;
    return [[name, about(schema, record === "schedule" ? text : (texts.task ?? text))]];
  });
  return Object.fromEntries(schemas);
}

const encodersOf = (isShown: (declared: TemplateField) => boolean) =>
  TEMPLATE_FIELDS.filter(isShown).map(({ name, key, kind }) => {
    // The values of `key` are those of the kind.
    const encode = kindOf(kind).encode as (value: unknown, variant: Variant) => unknown;
    return { name, key, encode };
  });
const OF_SCHEDULE = encodersOf(({ shown }) => shown?.schedule === "always");
const OF_FEW = {
  schedule: encodersOf(({ shown }) => shown?.schedule === "if set"),
  task: encodersOf(({ shown }) => shown?.task === "if set"),
  summary: encodersOf(({ shown }) => shown?.task === "if set" && shown.summary === true),
};

export function withFewTerms(
  record: keyof typeof OF_FEW,
  fields: Record<string, unknown>,
  terms: Partial<TaskTerms>,
  variant: Variant,
): JsonAnswer {
  for (const { name, key, encode } of OF_FEW[record]) {
    const value = terms[key];
    if (value !== undefined && !isUnset(value)) fields[name] = encode(value, variant);
  }
  return fields;
}

export function encodeTerms(terms: TaskTerms, variant: Variant): JsonAnswer {
  const always = OF_SCHEDULE.map(({ name, key, encode }) => {
    const value = terms[key];
    return [name, value === null ? null : encode(value, variant)];
  });
  return withFewTerms("schedule", Object.fromEntries(always), terms, variant);
}

// ---- Resources

export const resourcesSchema = () => z.record(z.string(), z.number());
export const requiresSchema = () =>
  z.strictObject({
    capabilities: about(z.array(z.string()), "Words that must all be among the capabilities of the node."),
    resources: about(resourcesSchema(), "Amounts by name, with three decimals."),
  });

export function encodeRequires({ capabilities, resources }: Requirements) {
  return { capabilities, resources: encodeResources(resources) };
}

export function encodeResources(resources: Resources): Readonly<Record<string, number>> {
  const amounts = Object.entries(resources);
  return Object.fromEntries(amounts.map(([name, amount]) => [name, amount / RESOURCE_UNITS]));
}
