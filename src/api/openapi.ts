/**
 * Makes the OpenAPI 3.1 document of a variant from the declarations that validate requests and answers.
 *
 * Loaded on demand, to save an idle hub its memory.
 */
import * as z from "zod/mini";
import * as limit from "../domain/limits.ts";
import type { VariantName } from "../domain/model.ts";
import { must } from "../lib/assert.ts";
import { DAY_FORM, INSTANT_FORM } from "../lib/duration.ts";
import type { Variant } from "../variant/variant.ts";
import type { Declared, Endpoint } from "./endpoint.ts";
import * as field from "./request-fields.ts";
import recorded from "../../tools/recorded/openapi-examples.json" with { type: "json" };
import { ABOUT, ERRORS, type ErrorCode, FIELDS, RESOURCES } from "./openapi-texts.ts";
import * as schemas from "./response-schemas.ts";
import { invitationSchema } from "./invitations.ts";
import { foundNoteSchema, noteHeadSchema, noteSchema } from "./notes.ts";
import {
  checkpointSchema,
  contextSchema,
  inputFileSchema,
  inputSchema,
  lessonSchema,
} from "./task-context.ts";
import { OUTPUT_STREAM_QUERY, outputAttemptSchema } from "./output.ts";
import { openQuestionSchema } from "./questions.ts";
import { pendingReviewSchema } from "./reviews.ts";
import { scheduleSchema } from "./schedules.ts";
import { webhookSchema } from "./webhooks.ts";
import { budgetSchema } from "./budgets.ts";
import { limitSchema, pauseSchema, reasonSchema } from "./limits.ts";
import { failureGroupSchema, heldStatsSchema, typeStatsSchema } from "./stats.ts";
import { LOG_STREAM_QUERY } from "./stream.ts";
import { durationsSchema, eventBatchSchema, minuteSchema, minutesTotalSchema } from "./system.ts";
import { requiresSchema } from "./task-fields.ts";
import { taskAnswer } from "./tasks.ts";

/** The subset of JSON Schema (2020-12) that the documents use. */
export type Schema = {
  $ref?: string;
  description?: string;
  type?: string | string[];
  format?: string;
  pattern?: string;
  const?: unknown;
  enum?: unknown[];
  default?: unknown;
  minimum?: number;
  maximum?: number;
  minLength?: number;
  maxLength?: number;
  minItems?: number;
  maxItems?: number;
  properties?: Record<string, Schema>;
  required?: string[];
  additionalProperties?: Schema;
  items?: Schema;
  anyOf?: Schema[];
  allOf?: Schema[];
  contentSchema?: Schema;
};

type Ref = { readonly $ref: string };

export type Parameter = {
  readonly name: string;
  readonly in: "query" | "path" | "header";
  readonly required?: boolean;
  readonly description: string;
  readonly schema: Schema;
  readonly example?: unknown;
};

export type Media = {
  readonly schema: Schema;
  readonly encoding?: Readonly<Record<string, { readonly contentType: string }>>;
  readonly example?: unknown;
};

export type Content = Readonly<Record<string, Media>>;

export type Answer = {
  readonly description: string;
  readonly headers?: Readonly<
    Record<string, { readonly description: string; readonly schema: Schema } | Ref>
  >;
  readonly content?: Content;
};

export type Operation = {
  readonly operationId: string;
  readonly tags: readonly string[];
  readonly summary: string;
  readonly security: readonly Readonly<Record<string, readonly string[]>>[];
  readonly parameters?: readonly (Parameter | Ref)[];
  readonly requestBody?: { readonly required: boolean; readonly content: Content };
  readonly responses: Readonly<Record<string, Answer | Ref>>;
};

export type OperationMethod = "get" | "post" | "delete";

export type OpenApiDocument = {
  readonly openapi: "3.1.1";
  readonly info: Readonly<Record<string, unknown>>;
  readonly servers: readonly { readonly url: string; readonly description: string }[];
  readonly tags: readonly { readonly name: string; readonly description: string }[];
  readonly paths: Readonly<Record<string, Partial<Record<OperationMethod, Operation>>>>;
  readonly components: {
    readonly schemas: Readonly<Record<string, Schema>>;
    readonly parameters: Readonly<Record<string, Parameter>>;
    readonly headers: Readonly<Record<string, { readonly description: string; readonly schema: Schema }>>;
    readonly responses: Readonly<Record<string, Answer>>;
    readonly securitySchemes: Readonly<Record<string, Readonly<Record<string, string>>>>;
  };
};

export function openApi(variant: Variant, endpoints: readonly (Endpoint | Declared)[]): OpenApiDocument {
  const records = new Records(variant);
  const paths: Record<string, Partial<Record<OperationMethod, Operation>>> = {};
  for (const endpoint of endpoints) {
    const path = endpoint.path.replaceAll(/:(\w+)/g, "{$1}");
    const method = METHODS[endpoint.method];
    const id = operationId(endpoint);
    const bare = operation(endpoint, variant, records);
    paths[path] = { ...paths[path], [method]: withExample(bare, EXAMPLES[variant.name][id] ?? {}) };
  }
  return {
    openapi: "3.1.1",
    info: {
      title: `luxhub, variant ${variant.name}`,
      version: variant.version,
      summary: "A task queue and message hub for AI agents and other workers",
      description: ABOUT,
      license: { name: "MIT", identifier: "MIT" },
    },
    servers: [{ url: "/", description: "The hub that returns this document" }],
    tags: Object.entries(RESOURCES).map(([name, description]) => ({ name, description })),
    paths,
    components: {
      schemas: { ...records.schemas, Problem: PROBLEM },
      parameters: { IdempotencyKey: IDEMPOTENCY_KEY },
      headers: HEADERS,
      responses: Object.fromEntries(SHARED_ANSWERS.map(({ name, codes }) => [name, problemAnswer(codes)])),
      securitySchemes: {
        secret: { type: "apiKey", in: "header", name: "X-Matrix-Secret", description: "The hub's secret." },
        bearer: { type: "http", scheme: "bearer", description: "The hub's secret, as a bearer token." },
        ticket: {
          type: "apiKey",
          in: "query",
          name: "ticket",
          description: "The ticket of a presigned URL (file/download-url, file/upload-url).",
        },
        admin_key: {
          type: "apiKey",
          in: "header",
          name: "X-Admin-Key",
          description: "The administrator key.",
        },
      },
    },
  };
}

type Example = {
  readonly parameters?: Readonly<Record<string, unknown>>;
  readonly body?: unknown;
  readonly answer?: unknown;
};

/** From test/api/openapi.test.ts. */
const EXAMPLES: Readonly<Record<VariantName, Readonly<Record<string, Example | undefined>>>> = recorded;

function withExample(operation: Operation, { parameters = {}, body, answer }: Example): Operation {
  const { requestBody, responses } = operation;
  const success = responses["200"];
  const withIt = (content: Content, example: unknown): Content =>
    example === undefined ? content : mapped(content, (media) => ({ ...media, example }));
  return {
    ...operation,
    ...(operation.parameters
      ? {
          parameters: operation.parameters.map((declared) => {
            const example = "name" in declared ? parameters[declared.name] : undefined;
            return example === undefined ? declared : { ...declared, example };
          }),
        }
      : {}),
    ...(requestBody ? { requestBody: { ...requestBody, content: withIt(requestBody.content, body) } } : {}),
    responses:
      success && "description" in success && success.content
        ? { ...responses, 200: { ...success, content: withIt(success.content, answer) } }
        : responses,
  };
}

const encoded = new Map<VariantName, string>();

export function encodedOpenApi(variant: Variant, endpoints: readonly (Endpoint | Declared)[]): string {
  const text = encoded.get(variant.name) ?? JSON.stringify(openApi(variant, endpoints));
  encoded.set(variant.name, text);
  return text;
}

const METHODS = { GET: "get", POST: "post", DELETE: "delete" } as const;

/** The words of a GET that a POST has too. */
const WRITTEN_TOO: ReadonlySet<string> = new Set(["task_output"]);

/**
 * `task_create` for POST task/create. A path of one word and a parameter gets a verb, as does one whose words are those
 * of a POST: `task_get`.
 */
export function operationId({ method, path }: Pick<Declared, "method" | "path">): string {
  const words = path
    .replace("/api/v1/", "")
    .split("/")
    .filter((word) => !word.startsWith(":"));
  if (path.includes("/:") && words.length === 1) words.push(method === "DELETE" ? "remove" : "get");
  const id = words.join("_").replaceAll(/[^a-z]+/g, "_");
  return method === "GET" && WRITTEN_TOO.has(id) ? `${id}_get` : id;
}

function operation(endpoint: Endpoint | Declared, variant: Variant, records: Records): Operation {
  const id = operationId(endpoint);
  const raw = RAW[id];
  const input = raw ? null : describeFields(inputOf(endpoint, variant), records);
  const isPost = endpoint.method === "POST";
  const inPath = [...endpoint.path.matchAll(/:(\w+)/g)].map(([, name = ""]) => name);
  const parameters: (Parameter | Ref)[] = [
    ...inPath.map((name) => parameter(name, "path", input?.properties?.[name] ?? { type: "string" }, true)),
    ...(raw?.parameters ?? []),
    ...(isPost ? [] : Object.entries(input?.properties ?? {}))
      .filter(([name]) => !inPath.includes(name))
      .map(([name, schema]) => parameter(name, "query", schema, input?.required?.includes(name) ?? false)),
    ...(isPost && !endpoint.answersSecret ? [{ $ref: "#/components/parameters/IdempotencyKey" }] : []),
  ];
  const body = isPost ? (raw?.body ?? bodyOf(endpoint, input)) : null;
  const answer = raw?.answer(records) ?? jsonAnswer(id, endpoint, variant, records);
  return {
    operationId: id,
    tags: [resourceOf(id)],
    summary: endpoint.summary,
    security: securityOf(endpoint, variant),
    ...(parameters.length > 0 ? { parameters } : {}),
    ...(body ? { requestBody: body } : {}),
    responses: { ...answer, ...errorAnswers(endpoint) },
  };
}

function resourceOf(id: string): string {
  const [word = ""] = id.split("_");
  if (Object.hasOwn(RESOURCES, word)) return word;
  if (word === "questions") return "task";
  if (word === "usage" || word === "budget") return "cost";
  return word === "signin" ? "lux" : "hub";
}

function securityOf({ auth, ticket }: Declared, variant: Variant): Operation["security"] {
  if (auth === "admin")
    return [
      { secret: [], admin_key: [] },
      { bearer: [], admin_key: [] },
    ];
  if (auth === "open") return [];
  const either = [{ secret: [] }, { bearer: [] }, ...(ticket ? [{ ticket: [] }] : [])];
  return auth === "public" && variant.publicEndpoints ? [{}, ...either] : either;
}

// ---- Schemas

function inputOf(endpoint: Endpoint | Declared, variant: Variant): Schema {
  if (!("kind" in endpoint) || endpoint.kind === "raw") return {};
  return toSchema(endpoint.inputOf?.(variant) ?? endpoint.input(), "input");
}

function propertiesOf(query: z.ZodMiniType): readonly (readonly [string, Schema])[] {
  return Object.entries(must(toSchema(query, "input").properties, "a query has fields"));
}

function toSchema(schema: z.ZodMiniType, io: "input" | "output"): Schema {
  const written = z.toJSONSchema(schema, {
    io,
    unrepresentable: "any",
    override: ({ zodSchema, jsonSchema }) => {
      const number = numberInText(zodSchema);
      if (!number) return;
      const { description } = jsonSchema;
      for (const key of Object.keys(jsonSchema)) delete jsonSchema[key];
      Object.assign(jsonSchema, number, description === undefined ? {} : { description });
    },
  });
  return simplified(written);
}

function stepsOf(schema: z.core.$ZodType): readonly z.core.$ZodType[] {
  const { def } = schema._zod;
  return isPipe(def) ? [...stepsOf(def.in), ...stepsOf(def.out)] : [schema];
}

function isPipe(def: z.core.$ZodTypeDef): def is z.core.$ZodPipeDef {
  return def.type === "pipe";
}

function numberInText(schema: z.core.$ZodType): Schema | null {
  const [text, ...others] = stepsOf(schema);
  const number = others.find((step) => step._zod.def.type === "number");
  if (text?._zod.def.type !== "string" || !number) return null;
  const { pattern } = simplified(z.toJSONSchema(text));
  const written = simplified(z.toJSONSchema(number));
  return pattern === "^\\d+$" ? { ...written, type: "integer" } : written;
}

/** Drops bounds that hold for every number, and a pattern that a format expresses. */
function simplified(written: z.core.JSONSchema._JSONSchema): Schema {
  if (typeof written === "boolean") return {};
  const { $schema: _, additionalProperties, properties, items, anyOf, propertyNames, ...rest } = written;
  const schema = rest as Schema; // its other keywords are those of Schema: see the test of the document
  if (Number(schema.maximum) >= Number.MAX_SAFE_INTEGER) delete schema.maximum;
  if (Number(schema.minimum) <= Number.MIN_SAFE_INTEGER) delete schema.minimum;
  if (schema.format === "date-time") delete schema.pattern;
  const format =
    schema.pattern === INSTANT_FORM.source ? "date-time" : schema.pattern === DAY_FORM.source ? "date" : null;
  if (format !== null) {
    schema.format = format;
    delete schema.pattern;
  }
  if (schema.type === "number" && schema.enum?.every(Number.isInteger)) schema.type = "integer";
  // An answer may get further fields in a later version, and the hub ignores unknown ones in a request.
  if (typeof additionalProperties === "object") {
    const value = simplified(additionalProperties);
    const names = typeof propertyNames === "object" ? propertyNames.enum : undefined;
    if (names) schema.properties = Object.fromEntries(names.map((name) => [String(name), value]));
    else schema.additionalProperties = value;
  }
  if (properties) schema.properties = mapped(properties, simplified);
  if (items !== undefined && !Array.isArray(items)) schema.items = simplified(items);
  if (anyOf) schema.anyOf = anyOf.map(simplified);
  return schema;
}

function mapped<T, U>(
  record: Readonly<Record<string, T>>,
  change: (value: T, key: string) => U,
): Record<string, U> {
  return Object.fromEntries(Object.entries(record).map(([key, value]) => [key, change(value, key)]));
}

class Records {
  readonly schemas: Record<string, Schema> = {};
  readonly #names = new Map<string, string>();

  constructor(variant: Variant) {
    // A schema that contains another one comes after it.
    this.#add("Lease", schemas.leaseSchema());
    this.#add("Failure", schemas.failureSchema());
    this.#add("TaskResult", schemas.resultSchema());
    this.#add("Spending", schemas.spendingSchema());
    this.#add("Budget", budgetSchema());
    this.#add("Pause", pauseSchema());
    this.#add("Limit", limitSchema());
    this.#add("Reason", reasonSchema());
    this.#add("Requirements", requiresSchema());
    this.#add("InputFile", inputFileSchema());
    this.#add("TaskInput", inputSchema(variant));
    this.#add("Checkpoint", checkpointSchema());
    this.#add("Lesson", lessonSchema());
    this.#add("OutputAttempt", outputAttemptSchema());
    this.#add("Question", schemas.questionSchema());
    this.#add("OpenQuestion", openQuestionSchema());
    this.#add("Review", schemas.reviewSchema());
    this.#add("Quorum", schemas.quorumSchema());
    this.#add("PendingReview", pendingReviewSchema());
    this.#add("Context", contextSchema(variant));
    this.#add("Task", schemas.taskSchema(variant));
    this.#add("TaskSummary", schemas.taskSummarySchema(variant));
    this.#add("TaskDetails", schemas.waitingTaskSchema(variant));
    this.#add("Node", schemas.nodeSchema(variant));
    this.#add("Message", schemas.messageSchema());
    this.#add("ReceivedMessage", schemas.deliverySchema());
    this.#add("HistoryMessage", schemas.fateSchema());
    this.#add("NoteHead", noteHeadSchema());
    this.#add("Note", noteSchema());
    this.#add("FoundNote", foundNoteSchema());
    this.#add("AdvisoryLease", schemas.advisoryLeaseSchema());
    this.#add("LedgerEntry", schemas.entrySchema());
    this.#add("LedgerHead", schemas.ledgerHeadSchema());
    this.#add("Receipt", schemas.receiptSchema());
    this.#add("FileRecord", schemas.fileSchema());
    this.#add("Schedule", scheduleSchema(variant));
    this.#add("Webhook", webhookSchema());
    this.#add("Key", schemas.keySchema());
    this.#add("Invitation", invitationSchema());
    this.#add("Event", schemas.eventSchema());
    this.#add("Durations", durationsSchema());
    this.#add("TypeStats", typeStatsSchema());
    this.#add("HeldStats", heldStatsSchema());
    this.#add("FailureGroup", failureGroupSchema());
    this.#add("Minute", minuteSchema());
    this.#add("MinutesTotal", minutesTotalSchema());
    this.#add("TaskAnswer", jsonSuccessOf(toSchema(taskAnswer(variant), "output")));
    this.#add("EventBatch", jsonSuccessOf(toSchema(eventBatchSchema(), "output")));
  }

  #add(name: string, made: z.ZodMiniType | Schema): void {
    const schema = "_zod" in made ? toSchema(made, "output") : made;
    const referring = mapParts(schema, (part) => this.refer(part));
    this.schemas[name] = described(referring);
    this.#names.set(JSON.stringify(schema), name);
  }

  refer(schema: Schema): Schema {
    const { description, ...bare } = schema;
    const name = this.#names.get(JSON.stringify(bare));
    if (name === undefined) return mapParts(schema, (part) => this.refer(part));
    return description === undefined ? referTo(name) : { ...referTo(name), description };
  }
}

function referTo(name: string): Schema {
  return { $ref: `#/components/schemas/${name}` };
}

function mapParts(schema: Schema, change: (part: Schema) => Schema): Schema {
  return {
    ...schema,
    ...(schema.properties ? { properties: mapped(schema.properties, change) } : {}),
    ...(schema.items ? { items: change(schema.items) } : {}),
    ...(schema.anyOf ? { anyOf: schema.anyOf.map(change) } : {}),
  };
}

function successOf({ properties = {}, required = [], ...rest }: Schema): Schema {
  const success: Schema = { const: true };
  return { ...rest, properties: { success, ...properties }, required: ["success", ...required] };
}

function jsonSuccessOf(schema: Schema): Schema {
  const { properties, ...rest } = successOf(schema);
  const ignored: Schema = { type: "array", items: { type: "string" }, maxItems: limit.IGNORED_FIELDS_MAX };
  return { ...rest, properties: { ...properties, ignored } };
}

function described(schema: Schema): Schema {
  const { properties } = schema;
  const parts = mapParts(schema, (part) => described(part));
  if (!properties) return parts;
  return {
    ...parts,
    properties: mapped(must(parts.properties, "they are mapped"), (part, name) => {
      const { description = FIELDS[name], ...bare } = part;
      return description === undefined ? bare : { ...bare, description };
    }),
  };
}

function describeFields(schema: Schema, records: Records): Schema {
  return schema.properties ? described(records.refer(writtenByHand(schema))) : schema;
}

/** `within`: the path of the field that has the schema, and a dot. */
function writtenByHand(schema: Schema, within = ""): Schema {
  const parts = mapParts(schema, (part) => writtenByHand(part, within));
  if (!schema.properties) return parts;
  const written = mapped(schema.properties, (part, name) => {
    const { description } = part;
    const byHand = PARSED_BY_HAND[within + name];
    if (byHand === undefined) return writtenByHand(part, `${name}.`);
    return description === undefined ? byHand : { ...byHand, description };
  });
  return { ...parts, properties: written };
}

const PARSED_BY_HAND: Readonly<Record<string, Schema>> = {
  capabilities: wordsUpTo(limit.CAPABILITIES_MAX),
  "requires.capabilities": wordsUpTo(limit.REQUIRED_WORDS_MAX),
  result: {
    type: "object",
    properties: mapped({ problem: 0, improvement: 0, lesson: 0 }, () => ({
      type: "string",
      maxLength: limit.RESULT_TEXT_MAX_BYTES,
      pattern: "\\S",
    })),
    required: ["problem", "improvement", "lesson"],
    additionalProperties: {},
  },
};

function wordsUpTo(maxItems: number): Schema {
  const items: Schema = { type: "string", maxLength: limit.CAPABILITY_MAX_CHARS, pattern: "^[^,]*$" };
  return { anyOf: [{ type: "string" }, { type: "array", items, maxItems }] };
}

// ---- Parameters, bodies, answers

function parameter(name: string, place: Parameter["in"], schema: Schema, required: boolean): Parameter {
  const { description = must(FIELDS[name], `${name} has a text`), ...bare } = schema;
  return { name, in: place, ...(required ? { required } : {}), description, schema: bare };
}

function bodyOf(endpoint: Endpoint | Declared, input: Schema | null): Operation["requestBody"] | null {
  const { properties = {}, required: needed = [] } = input ?? {};
  if (!input || Object.keys(properties).length === 0) return null;
  const required = needed.length > 0 || !("emptyBody" in endpoint);
  return { required, content: { "application/json": { schema: input } } };
}

function jsonAnswer(
  id: string,
  endpoint: Endpoint | Declared,
  variant: Variant,
  records: Records,
): Operation["responses"] {
  if (!("answer" in endpoint)) throw new Error(`${id} answers no JSON and is not described in RAW`);
  const schema = records.refer(jsonSuccessOf(toSchema(endpoint.answer(variant), "output")));
  return { 200: success(described(schema)) };
}

function success(schema: Schema): Answer {
  const headers = { "X-Request-Id": { $ref: "#/components/headers/XRequestId" } };
  return { description: "Success", headers, content: { "application/json": { schema } } };
}

const HEADERS = {
  XRequestId: {
    description: "The id of the request in the hub's log: the caller's own `X-Request-Id`, if it sent one.",
    schema: { type: "string" },
  },
  RetryAfter: { description: "Seconds to wait before the next try.", schema: { type: "integer" } },
} as const;

const IDEMPOTENCY_KEY: Parameter = {
  name: "Idempotency-Key",
  in: "header",
  description:
    "A key of your choice for this request. A repeat with the same key and body is not done again: it gets the stored response, for 24 hours.",
  schema: {
    type: "string",
    pattern: "^[\\x21-\\x7e]+$",
    minLength: 1,
    maxLength: limit.IDEMPOTENCY_KEY_MAX_CHARS,
  },
};

const TEXT: Schema = { type: "string" };

function header(name: string, schema: Schema, description: string): Parameter {
  return { name, in: "header", description, schema };
}

/** `schema`: of one event; OpenAPI 3.1 has no keyword for the items of a stream. */
function eventStream(description: string, schema: Schema): Answer {
  return { description, content: { "text/event-stream": { schema } } };
}

function lastEventId(description: string): Parameter {
  return header("Last-Event-ID", { type: "integer", minimum: 0 }, description);
}

/** Another hub accepts writes. */
const READ_ONLY = ["standby", "superseded", "no_standby"] as const;

const RAW: Readonly<
  Record<
    string,
    {
      readonly parameters?: readonly Parameter[];
      readonly body?: NonNullable<Operation["requestBody"]>;
      readonly errors?: readonly ErrorCode[];
      readonly answer: (records: Records) => Operation["responses"];
    }
  >
> = {
  file_upload: {
    body: {
      required: true,
      content: {
        "multipart/form-data": {
          schema: {
            type: "object",
            properties: {
              file: { type: "string", format: "binary", description: "The bytes, with a file name." },
              metadata: {
                type: "object",
                additionalProperties: {},
                description:
                  "Any JSON object. `task_id` and `node` in the object attach the file to a task and a node.",
              },
            },
            required: ["file"],
          },
          encoding: { metadata: { contentType: "application/json" } },
        },
      },
    },
    answer: () => ({
      200: success(described(successOf(toSchema(schemas.fileSchema(), "output")))),
    }),
  },
  file_download: {
    errors: ["range_not_satisfiable", "content_missing"],
    parameters: [
      header("Range", TEXT, "A range of bytes."),
      header(
        "If-Range",
        TEXT,
        "The ETag of the file for which the range is meant; if the ETag differs, the response has the whole file.",
      ),
      header("If-None-Match", TEXT, "The ETag of the file that the caller has."),
      header("If-Modified-Since", TEXT, "When the caller got its copy of the file."),
    ],
    answer: () => ({
      200: {
        description: "The whole file, with its own content type.",
        headers: FILE_HEADERS,
        content: BYTES,
      },
      206: {
        description: "The range of the file that was asked for.",
        headers: FILE_HEADERS,
        content: BYTES,
      },
      304: { description: "The file is the one that the caller has." },
    }),
  },
  copy_base: {
    answer: () => ({
      200: { description: "The archive, a tar file.", content: BYTES },
    }),
  },
  openapi_json: {
    answer: () => ({
      200: {
        description: "This document",
        content: { "application/json": { schema: { type: "object", additionalProperties: {} } } },
      },
    }),
  },
  events_stream: {
    errors: ["invalid_request", "too_many_calls"],
    parameters: [
      ...propertiesOf(LOG_STREAM_QUERY()).map(([name, schema]) => parameter(name, "query", schema, false)),
      lastEventId("The id of the last event read; overrides `since`."),
    ],
    answer: () => ({
      200: eventStream(
        "An endless stream of Server-Sent Events: each Event, named by its kind; `event: gap` says that events were missed (`after`, `resumed_at`).",
        { ...TEXT, contentSchema: referTo("Event") },
      ),
    }),
  },
  task_output_stream: {
    errors: ["invalid_request", "too_many_calls"],
    parameters: [
      ...propertiesOf(z.omit(OUTPUT_STREAM_QUERY(), { task_id: true })).map(([name, schema]) =>
        parameter(name, "query", schema, false),
      ),
      header(
        "Last-Event-ID",
        TEXT,
        "The `id` of the last event: the offset after the event, a dot, and the attempt.",
      ),
    ],
    answer: () => ({
      200: eventStream(
        "A stream of Server-Sent Events: `output` has `attempt`, `node_id`, `offset`, `next_offset`, `dropped` and `data`, as GET task/<task_id>/output; `end` has the `status` of the finished task, and the stream ends.",
        TEXT,
      ),
    }),
  },
  agent_sse: {
    errors: ["invalid_request", "too_many_calls"],
    parameters: [
      parameter("node_id", "query", toSchema(field.nodeId(), "input"), true),
      lastEventId("The id of the last event read; if left out, only new events."),
    ],
    answer: () => ({
      200: eventStream(
        "An endless stream of Server-Sent Events. `event: message` has a Message as its data, every other event the Event of that kind; `event: gap` says that events were missed (`after`, `resumed_at`).",
        { ...TEXT, contentSchema: { anyOf: [referTo("Message"), referTo("Event")] } },
      ),
    }),
  },
};

const FILE_HEADERS = {
  ETag: { description: "The SHA-256 of the bytes.", schema: TEXT },
  "Last-Modified": { description: "When the file was uploaded.", schema: TEXT },
};

const BYTES: Content = { "application/octet-stream": { schema: { type: "string", format: "binary" } } };

// ---- Errors

const PROBLEM_TYPE = "application/problem+json";

const PROBLEM: Schema = {
  type: "object",
  description: "An error (RFC 9457, problem details).",
  properties: {
    type: { type: "string", description: "`urn:luxhub:problem:` and the code." },
    title: { type: "string", description: "The error in a few words; the same for each error of this code." },
    status: { type: "integer", description: "The status of the response." },
    detail: { type: "string", description: "A sentence that says what to do." },
    success: { const: false, description: "Always false." },
    error: { type: "string", enum: Object.keys(ERRORS), description: "The code. Rely on it." },
    errors: {
      type: "array",
      description: "Of `invalid_request`: every field that is wrong.",
      items: {
        type: "object",
        properties: {
          path: { type: "string", description: "With dots, as `result.problem`; empty for the whole body." },
          message: { type: "string", description: "What to send instead." },
        },
        required: ["path", "message"],
      },
    },
    version: {
      type: "integer",
      description: "Of `note_version_conflict`: the current version of the note; 0: there is none.",
    },
    holders: {
      type: "array",
      description: "Of `lease_conflict`: the leases that are in the way, oldest first, at most 20.",
      items: { $ref: "#/components/schemas/AdvisoryLease" },
    },
    used: { type: "integer", description: "Of `quota_exceeded`: what is used, in tasks or in bytes." },
    allowed: { type: "integer", description: "Of `quota_exceeded`: what the quota allows." },
    expected: { type: "integer", description: "Of `wrong_offset`: where the output continues." },
  },
  required: ["type", "title", "status", "detail", "success", "error"],
};

const SHARED_ANSWERS: readonly { readonly name: string; readonly codes: readonly ErrorCode[] }[] = [
  { name: "InvalidRequest", codes: ["invalid_request"] },
  { name: "Unauthorized", codes: ["unauthorized"] },
  { name: "HostNotAllowed", codes: ["host_not_allowed"] },
  { name: "Forbidden", codes: ["host_not_allowed", "key_bound_to_other_node"] },
  { name: "NodeNotFound", codes: ["node_not_found"] },
  { name: "TaskNotFound", codes: ["task_not_found"] },
  { name: "TaskOrNodeNotFound", codes: ["task_not_found", "node_not_found"] },
  { name: "RequestTimeout", codes: ["request_timeout"] },
  { name: "BodyTooLarge", codes: ["body_too_large"] },
  { name: "UnsupportedMediaType", codes: ["unsupported_media_type"] },
  { name: "IdempotencyKeyReused", codes: ["idempotency_key_reused"] },
  { name: "TooManyWrongSecrets", codes: ["too_many_wrong_secrets"] },
  { name: "TooManyCalls", codes: ["too_many_calls", "too_many_wrong_secrets"] },
  { name: "TooManyRequests", codes: ["quota_exceeded", "too_many_calls", "too_many_wrong_secrets"] },
  { name: "InternalError", codes: ["internal_error"] },
  { name: "WriteFailed", codes: ["internal_error", "outcome_unknown"] },
  { name: "Unavailable", codes: ["database_unavailable", "overloaded"] },
  {
    name: "NotWritable",
    codes: ["database_unavailable", "no_standby", "overloaded", "standby", "superseded"],
  },
  { name: "InsufficientStorage", codes: ["insufficient_storage"] },
];

const OF_EVERY_REQUEST: readonly ErrorCode[] = [
  "unauthorized",
  "too_many_wrong_secrets",
  "host_not_allowed",
  "internal_error",
  "overloaded",
  "database_unavailable",
];
const OF_EVERY_WRITE: readonly ErrorCode[] = [
  "outcome_unknown",
  "insufficient_storage",
  "quota_exceeded",
  ...READ_ONLY,
];
const OF_EVERY_POST: readonly ErrorCode[] = [
  "invalid_request",
  "request_timeout",
  "body_too_large",
  "unsupported_media_type",
  "idempotency_key_reused",
  "too_many_calls", // a repeat waits for the first
];

export function errorCodes(endpoint: Endpoint | Declared): ReadonlySet<ErrorCode> {
  const { method, path, auth, rejections } = endpoint;
  const id = operationId(endpoint);
  const names = inputNames(endpoint);
  const waits = names.includes("wait") || names.includes("timeout");
  const hasQuery = method === "GET" && names.some((name) => !path.includes(`:${name}`));
  const isBound = "actsFor" in endpoint && endpoint.actsFor !== undefined;
  return new Set<ErrorCode>([
    ...OF_EVERY_REQUEST,
    ...rejections,
    ...(method === "GET" ? [] : OF_EVERY_WRITE),
    ...(method === "POST" ? OF_EVERY_POST : []),
    ...(hasQuery ? (["invalid_request"] as const) : []),
    ...(waits ? (["too_many_calls"] as const) : []),
    ...(isBound ? (["key_bound_to_other_node"] as const) : []),
    ...(endpoint.strict ? (["key_not_bound"] as const) : []),
    ...(method !== "GET" || endpoint.showsMessages ? (["viewer_not_allowed"] as const) : []),
    ...(auth === "admin" ? (["admin_key_required"] as const) : []),
    ...(auth === "standby" ? (["standby_key_required"] as const) : []),
    ...(RAW[id]?.errors ?? []),
  ]);
}

function inputNames(endpoint: Endpoint | Declared): readonly string[] {
  if (!("kind" in endpoint) || endpoint.kind === "raw") return [];
  const input = endpoint.input();
  return input instanceof z.ZodMiniObject ? Object.keys(input.shape) : [];
}

function errorAnswers(endpoint: Endpoint | Declared): Operation["responses"] {
  const codes = [...errorCodes(endpoint)].toSorted();
  const byStatus = Map.groupBy(codes, (code) => ERRORS[code].status);
  return Object.fromEntries(
    [...byStatus]
      .toSorted(([a], [b]) => a - b)
      .map(([status, ofStatus]) => {
        const shared = SHARED_ANSWERS.find((answer) => answer.codes.toSorted().join() === ofStatus.join());
        return [status, shared ? { $ref: `#/components/responses/${shared.name}` } : problemAnswer(ofStatus)];
      }),
  );
}

export function errorCodesOf(
  { components }: OpenApiDocument,
  { responses }: Operation,
): ReadonlyMap<number, readonly ErrorCode[]> {
  const codesByStatus = new Map<number, readonly ErrorCode[]>();
  for (const [status, answer] of Object.entries(responses)) {
    const whole = "$ref" in answer ? components.responses[nameIn(answer)] : answer;
    const parts = whole?.content?.[PROBLEM_TYPE]?.schema.allOf ?? [];
    const codes = parts.flatMap(({ properties }) => properties?.["error"]?.enum ?? []).filter(isErrorCode);
    if (codes.length > 0) codesByStatus.set(Number(status), codes);
  }
  return codesByStatus;
}

export function parametersOf(
  { components }: OpenApiDocument,
  { parameters = [] }: Operation,
): readonly Parameter[] {
  return parameters.flatMap((declared) =>
    "name" in declared
      ? [declared]
      : [must(components.parameters[nameIn(declared)], "a shared parameter is declared")],
  );
}

function nameIn({ $ref }: Ref): string {
  return $ref.slice($ref.lastIndexOf("/") + 1);
}

function isErrorCode(word: unknown): word is ErrorCode {
  return typeof word === "string" && Object.hasOwn(ERRORS, word);
}

function problemAnswer(codes: readonly ErrorCode[]): Answer {
  const lines = codes.map((code) => `\`${code}\`: ${ERRORS[code].when}`);
  const { status } = ERRORS[must(codes[0], "a refusal has a code")];
  const headers = { "Retry-After": { $ref: "#/components/headers/RetryAfter" } };
  return {
    description: lines.length === 1 ? lines.join() : lines.map((line) => `- ${line}`).join("\n"),
    ...(status === 429 || status === 503 ? { headers } : {}),
    content: {
      [PROBLEM_TYPE]: {
        schema: { allOf: [referTo("Problem"), { properties: { error: { enum: [...codes] } } }] },
      },
    },
  };
}
