/** A request as it is sent: with ids instead of placeholders, short timeouts, and secrets. */
import { ADMIN_KEY, SECRET } from "../support/hub.ts";
import type { IdPool } from "./id-pool.ts";
import { MULTIPART_TYPE } from "./multipart.ts";
import type { AdminKey, FuzzRequest, Secret } from "./requests.ts";
import { fieldsOf, takes } from "./values.ts";

export const BOUND_SECRET = "fuzz-bound-secret";
export const PINNED_SECRET = "fuzz-pinned-secret";
export const BOUND_NODE = "n0";

const SECRET_TEXT: Readonly<Record<Secret, string | null>> = {
  right: SECRET,
  bound: BOUND_SECRET,
  pinned: PINNED_SECRET,
  wrong: `${SECRET}x`,
  missing: null,
};
const ADMIN_TEXT: Readonly<Record<AdminKey, string | null>> = {
  right: ADMIN_KEY,
  wrong: SECRET,
  missing: null,
};

export type Sent = {
  readonly request: FuzzRequest;
  readonly path: string;
  readonly query: string;
  readonly headers: ReadonlyMap<string, string>;
  readonly body: Buffer | null;
  readonly bytes: Buffer;
};

export function resolve(request: FuzzRequest, ids: IdPool): Sent {
  const path = ids.resolve(request.path);
  const query = impatient(request, ids.resolve(request.query));
  return compose(request, path, query, asBuffer(request, ids));
}

export function withBody({ request, path, query }: Sent, body: string): Sent {
  return compose(request, path, query, Buffer.from(body));
}

function compose(request: FuzzRequest, path: string, query: string, body: Buffer | null): Sent {
  const headers = new Map<string, string>([["host", "127.0.0.1"]]);
  const secret = SECRET_TEXT[request.secret];
  if (secret !== null) headers.set("x-matrix-secret", secret);
  const adminKey = ADMIN_TEXT[request.adminKey];
  if (adminKey !== null) headers.set("x-admin-key", adminKey);
  if (body) headers.set("content-type", request.target.kind === "raw" ? MULTIPART_TYPE : "application/json");
  for (const [name, value] of request.headers) headers.set(name.toLowerCase(), value);
  if (body || request.method === "POST") headers.set("content-length", String(body?.length ?? 0));
  const line = `${request.method} ${path}${query === "" ? "" : `?${query}`} HTTP/1.1`;
  const head = [line, ...[...headers].map(([name, value]) => `${name}: ${value}`)].join("\r\n");
  const bytes = Buffer.concat([Buffer.from(`${head}\r\n\r\n`, "latin1"), body ?? Buffer.alloc(0)]);
  return { request, path, query, headers, body, bytes };
}

/** Appends timeout=0 to a poll, and wait=0 to a read, that would wait: of two parameters with one name the last counts. */
function impatient({ target }: FuzzRequest, query: string): string {
  const wait = new URLSearchParams(query).getAll("wait").at(-1);
  if (wait !== undefined && takesAs(target, "wait", wait)) return `${query}&wait=0`;
  if (target.path !== "/api/v1/poll") return query;
  const timeout = new URLSearchParams(query).getAll("timeout").at(-1);
  const waits = timeout === undefined || target.input?.safeParse({ timeout }).success;
  return waits ? `${query}${query === "" ? "" : "&"}timeout=0` : query;
}

/** Appends a short wait to what would wait: of two JSON members with one name the last counts. */
function asBuffer({ target, body }: FuzzRequest, ids: IdPool): Buffer | null {
  if (typeof body !== "string") return body;
  const text = ids.resolve(body);
  const { wait } = text.endsWith("}") ? (objectOf(text) ?? {}) : {};
  if (wait !== undefined && takesAs(target, "wait", wait))
    return Buffer.from(`${text.slice(0, -1)},"wait":0.01}`);
  const waits =
    target.path === "/api/v1/message/receive" && /"blocking":\s*true/.test(text) && text.endsWith("}");
  if (!waits) return Buffer.from(text);
  const { timeout } = objectOf(text) ?? {};
  const short = timeout !== undefined && !target.input?.safeParse({ node_id: "n", timeout }).success;
  return Buffer.from(short ? text : `${text.slice(0, -1)},"timeout":0.01}`);
}

function takesAs({ input }: FuzzRequest["target"], field: string, value: unknown): boolean {
  const schema = input && fieldsOf(input).find(([name]) => name === field)?.[1];
  return schema !== undefined && takes(schema, JSON.stringify(value) ?? "null");
}

export function objectOf(text: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? { ...value } : null;
  } catch {
    return null;
  }
}
