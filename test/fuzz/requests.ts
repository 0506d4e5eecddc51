/**
 * Generates requests to every endpoint of both variants from its declaration: mostly valid ones, some with one fault, a
 * few with many. All are well-formed HTTP.
 */
import fc from "fast-check";
import type * as z from "zod/mini";
import type { Endpoint } from "../../src/api/endpoint.ts";
import { invitationEndpoints } from "../../src/api/invitations.ts";
import { ENDPOINTS } from "../../src/api/routes.ts";
import { fileEndpoints } from "../../src/api/files.ts";
import { OUTPUT_STREAM } from "../../src/api/output.ts";
import { LOG_STREAM, NODE_STREAM } from "../../src/api/stream.ts";
import { JSON_BODY_MAX_BYTES } from "../../src/domain/limits.ts";
import { placeholder } from "./id-pool.ts";
import { multipart } from "./multipart.ts";
import { type Entry, around, entriesOf, hostile, strangeName, taken, toObject } from "./values.ts";

const PREFIX = "/api/v1/";
const BATCH = `${PREFIX}batch`;

export const MAX_FILE_BYTES = 8 * 1024;

/** The declaration of an endpoint; only a JSON endpoint has a schema. */
export type Target = Pick<Endpoint, "kind" | "method" | "path" | "auth" | "rejections"> & {
  readonly input?: z.ZodMiniType;
  readonly emptyBody?: boolean;
  /** Fields in which null is a value. */
  readonly clearable?: readonly string[];
};

const SSE: Target = { kind: "raw", ...NODE_STREAM };
const LOG: Target = { kind: "raw", ...LOG_STREAM };
const OUTPUT: Target = { kind: "raw", ...OUTPUT_STREAM };

const INVITATIONS = invitationEndpoints(() => ({ url: "http://hub", otherUrls: [], pin: null }));

export const TARGETS: readonly Target[] = [
  ...[...ENDPOINTS, ...fileEndpoints(MAX_FILE_BYTES), ...INVITATIONS].map((endpoint): Target =>
    endpoint.kind === "json" ? { ...endpoint, input: endpoint.input() } : endpoint,
  ),
  SSE,
  LOG,
  OUTPUT,
];

export const SECRETS = ["right", "bound", "pinned", "wrong", "missing"] as const;
export type Secret = (typeof SECRETS)[number];
export type AdminKey = "right" | "wrong" | "missing";

export type Header = readonly [name: string, value: string];

/** A request with placeholders for ids. */
export type FuzzRequest = {
  readonly target: Target;
  readonly variant: "A" | "B";
  readonly method: string;
  /** With its parameters, percent-encoded. */
  readonly path: string;
  /** Without the question mark. */
  readonly query: string;
  readonly secret: Secret;
  readonly adminKey: AdminKey;
  readonly headers: readonly Header[];
  /** null: none. Text is sent as UTF-8. */
  readonly body: string | Buffer | null;
};

const often = <T>(usual: T, weight: number, ...others: readonly T[]): fc.Arbitrary<T> =>
  fc.oneof(
    { weight, arbitrary: fc.constant(usual) },
    { weight: 1, arbitrary: fc.constantFrom(usual, ...others) },
  );

function requestTo(target: Target): fc.Arbitrary<FuzzRequest> {
  const inBody = target.method === "POST";
  const request = fc.record({
    target: fc.constant(target),
    variant: fc.constantFrom("A", "B"),
    method: often<string>(target.method, 20, "HEAD", "PUT", "PATCH", "OPTIONS", "DELETE", "POST", "GET"),
    path: pathOf(target.path),
    query: inBody ? often("", 30, "a=b", "node_id=_.node.0._&%00=%ff") : queryOf(target),
    secret: often<Secret>("right", 8, "bound", "pinned", "wrong", "missing"),
    adminKey: often<AdminKey>("right", 8, "wrong", "missing"),
    headers: headersOf(target),
    body: inBody ? bodyOf(target) : often<string | null>(null, 30, "{}"),
  });
  return request.map((made) => Object.assign(made, { [fc.toStringMethod]: () => inShort(made) }));
}

function inShort({ variant, method, path, query, secret, adminKey, headers, body }: FuzzRequest): string {
  return JSON.stringify({
    variant,
    method,
    path,
    query,
    secret,
    adminKey,
    headers,
    body: body?.slice(0, 200).toString(),
  });
}

// ---- Path and query

const segment = fc.oneof(
  fc.constantFrom(
    "%00",
    "%ff",
    "%ed%a0%80",
    "..%2f..%2fetc%2fpasswd",
    "%2e%2e",
    "list",
    "a%20b",
    "%F0%9D%92%B3",
    "~",
    "%252f",
  ),
  fc.stringMatching(/^[A-Za-z0-9._~!$&'()*+,;=:@-]{1,140}$/),
);

function pathOf(path: string): fc.Arbitrary<string> {
  const [before = "", parameter, after = ""] = path.split(/:(\w+)/);
  if (parameter === undefined)
    return often(path, 40, `${path}/`, `${path}/x`, path.toUpperCase(), `${path}%20`);
  const kind = ({ file_id: "file", task_id: "task" } as const)[parameter] ?? "node";
  const known =
    parameter === "group" ? fc.constantFrom("g0", "g1") : fc.nat({ max: 9 }).map((n) => placeholder(kind, n));
  return fc
    .oneof({ weight: 5, arbitrary: known }, { weight: 1, arbitrary: segment })
    .map((value) => before + value + after);
}

function queryOf(target: Target): fc.Arbitrary<string> {
  const schema = target.input;
  const params = new Set([...target.path.matchAll(/:(\w+)/g)].map((match) => match[1]));
  if (!schema)
    return often(
      "node_id=_.node.0._",
      4,
      "",
      "node_id=_.node.1._&x=y",
      "node_id=%00",
      "node_id=a&node_id=_.node.2._",
    );
  const right = entriesOf(schema, taken);
  const rough = entriesOf(schema, around);
  const broken = fc
    .tuple(
      right,
      fc.array(fc.constantFrom("%zz=%", "=", "&&", "__proto__=1", "since=-1", "limit=1e3", "page=%30")),
    )
    .map(([entries, more]) => [asQuery(entries, params), ...more].join("&"));
  const asked = (entries: readonly Entry[]): string => asQuery(entries, params);
  return fc.oneof(
    { weight: 5, arbitrary: right.map(asked) },
    { weight: 2, arbitrary: wronged(right).map(asked) },
    { weight: 1, arbitrary: rough.map(asked) },
    { weight: 1, arbitrary: broken },
  );
}

function asQuery(entries: readonly Entry[], params: ReadonlySet<string | undefined>): string {
  const text = (json: string): string => {
    const value: unknown = JSON.parse(json);
    const words = typeof value === "string" ? value : json;
    // UTF-8 cannot encode a lone surrogate: sends the three bytes that it would have.
    return encodeURIComponent(words.replaceAll(/\p{Surrogate}/gu, "\u{1}")).replaceAll("%01", "%ED%A0%80");
  };
  return entries
    .filter(([name]) => !params.has(String(JSON.parse(name))))
    .map(([name, value]) => `${text(name)}=${text(value)}`)
    .join("&");
}

// ---- Headers

const idempotencyKey = fc.oneof(
  { weight: 6, arbitrary: fc.nat({ max: 2 }).map((n) => `key-${n}`) },
  {
    weight: 1,
    arbitrary: fc.constantFrom("", " ", "a b", "é", "x".repeat(255), "x".repeat(256), "~", '"quoted"'),
  },
);
const requestId = fc.constantFrom("mine", "a b", "x".repeat(128), "x".repeat(129), "é", "", "<script>");
const jsonType = fc.constantFrom(
  "application/json",
  "text/plain",
  "application/json; charset=utf-16",
  "",
  "multipart/form-data; boundary=x",
  "é",
);

const range = fc.constantFrom(
  ...[
    "bytes=0-",
    "bytes=0-0",
    "bytes=5-2",
    "bytes=-3",
    "bytes=99999-",
    "lines=1-2",
    "bytes=0-1,3-4",
    "bytes=-0",
  ],
);

/** Each header is optional: one in so many requests has it. */
function headersOf({ kind, method, path }: Target): fc.Arbitrary<readonly Header[]> {
  const header = (name: string, oneIn: number, value: fc.Arbitrary<string>): fc.Arbitrary<Header | null> =>
    fc.oneof(
      { weight: oneIn - 1, arbitrary: fc.constant(null) },
      { weight: 1, arbitrary: value.map((text): Header => [name, text]) },
    );
  const headers = [header("X-Request-Id", 8, requestId), header("Idempotency-Key", 6, idempotencyKey)];
  if (method === "POST") headers.push(header("Content-Type", kind === "json" ? 4 : 20, jsonType));
  if (path.includes("download")) {
    headers.push(
      header("Range", 2, range),
      header("If-None-Match", 4, fc.constantFrom("*", '"x"', "W/", "")),
    );
    headers.push(header("If-Range", 4, fc.constantFrom('"x"', "Thu, 01 Jan 1970 00:00:00 GMT", "never")));
  }
  if (path.includes("sse") || path.includes("stream")) {
    headers.push(header("Last-Event-ID", 2, fc.constantFrom("0", "1", "99999999", "-1", "x", "")));
  }
  return fc.tuple(...headers).map((all) => all.filter((one) => one !== null));
}

// ---- Bodies

/** Requests to other endpoints, which no schema declares. */
function batch(): fc.Arbitrary<string | Buffer | null> {
  const bodies = TARGETS.flatMap(({ method, path, input }) => {
    if (method !== "POST" || !input || path === BATCH) return [];
    const body = fc.oneof({ weight: 6, arbitrary: entriesOf(input, taken) }, entriesOf(input, around));
    return [body.map((entries) => `{"path":"${path.slice(PREFIX.length)}","body":${toObject(entries)}}`)];
  });
  const item = fc.oneof({ weight: 60, arbitrary: fc.oneof(...bodies) }, hostile);
  const items = fc.array(item, { minLength: 1, maxLength: 8 });
  return fc.oneof(
    { weight: 60, arbitrary: items.map((all) => `{"requests":[${all.join(",")}]}`) },
    { weight: 3, arbitrary: noObject },
  );
}

function bodyOf(target: Target): fc.Arbitrary<string | Buffer | null> {
  const schema = target.input;
  if (!schema) return multipart(MAX_FILE_BYTES);
  if (target.path === BATCH) return batch();
  const right = entriesOf(schema, taken);
  return fc.oneof(
    { weight: 40, arbitrary: right.map(toObject) },
    { weight: 15, arbitrary: wronged(right).map(toObject) },
    { weight: 4, arbitrary: entriesOf(schema, around).map(toObject) },
    { weight: 3, arbitrary: noObject },
    ...(target.emptyBody ? [{ weight: 10, arbitrary: listedBatch }] : []),
  );
}

/** The schema declares any value for A's batch-assign, because B ignores it. */
const listedBatch = fc
  .array(
    fc.oneof(
      {
        weight: 8,
        arbitrary: fc
          .tuple(fc.nat({ max: 9 }), fc.nat({ max: 9 }))
          .map(([t, n]) => `{"task_id":"${placeholder("task", t)}","node_id":"${placeholder("node", n)}"}`),
      },
      { weight: 1, arbitrary: hostile },
    ),
    { maxLength: 5 },
  )
  .map((items) => `{"assignments":[${items.join(",")}]}`);

const noObject: fc.Arbitrary<string | Buffer | null> = fc.oneof(
  hostile,
  fc.constantFrom(
    null,
    "",
    "{",
    "}{",
    "{}{}",
    "{'a':1}",
    "\ufeff{}",
    '{"a":01}',
    '{"node_id":"_.node.0._",}',
    "NaN",
    "[".repeat(2_000),
    "plain",
  ),
  fc.constantFrom(
    Buffer.from([0xff, 0xfe, 0x7b]),
    Buffer.from('{"node_id":"\xff\xfe"}', "latin1"),
    Buffer.from("{}", "utf16le"),
  ),
  fc
    .constantFrom(70, 5_000)
    .map((depth) => `{"node_id":"_.node.0._","x":${"[".repeat(depth)}${"]".repeat(depth)}}`),
  rarely(fc.constant(`{"node_id":"${"x".repeat(JSON_BODY_MAX_BYTES)}"}`)),
);

function rarely<T>(arbitrary: fc.Arbitrary<T>): fc.Arbitrary<T | null> {
  return fc.oneof({ weight: 5, arbitrary: fc.constant(null) }, { weight: 1, arbitrary });
}

function wronged(right: fc.Arbitrary<readonly Entry[]>): fc.Arbitrary<readonly Entry[]> {
  return fc
    .tuple(right, fc.nat(), fc.constantFrom("drop", "spoil", "double", "add"), hostile, strangeName)
    .map(([entries, at, what, value, name]): readonly Entry[] => {
      const index = at % Math.max(entries.length, 1);
      const [field] = entries[index] ?? [name];
      if (what === "drop") return entries.toSpliced(index, 1);
      if (what === "spoil")
        return entries.length === 0 ? [[name, value]] : entries.with(index, [field, value]);
      if (what === "double") return [...entries, [field, value]];
      return [...entries, [name, value]];
    });
}

export const anyRequest: fc.Arbitrary<FuzzRequest> = fc.oneof(...TARGETS.map(requestTo));
