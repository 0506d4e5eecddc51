/**
 * A hub in this process over real listeners, for tests: temporary data directory, ports chosen by the system, a clock
 * that the test may move. Every JSON success is checked against the answer that its endpoint declares.
 */
import { expect } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { AnswerSchema } from "../../src/api/endpoint.ts";
import { ENDPOINTS } from "../../src/api/routes.ts";
import { fileEndpoints } from "../../src/api/files.ts";
import { type Config, readConfig } from "../../src/config.ts";
import { makeDataDir } from "../../src/data-dir.ts";
import type { VariantName } from "../../src/domain/model.ts";
import { type Hub, openHub } from "../../src/hub.ts";
import { type Clock, systemClock } from "../../src/lib/clock.ts";
import { openLog } from "../../src/lib/log.ts";
import { type Front, giveBack, takeFront } from "./front.ts";
import { swiftFolder } from "./keeper.ts";
import { type Schema, takeSchema } from "./schemas.ts";

export const SECRET = "test-secret";
export const ADMIN_KEY = "test-admin-key";

/** A clock that stands where it is put, and runs on by itself from there. */
export class TestClock implements Clock {
  readonly #base = systemClock();
  #wallShift = 0;
  #steadyShift = 0;
  #timersShift = 0;

  now(): number {
    return this.#base.now() + this.#wallShift;
  }

  steady(): number {
    return this.#base.steady() + this.#steadyShift;
  }

  timers(): number {
    return this.#base.timers() + this.#timersShift;
  }

  /** Time passes while the hub is at work. */
  pass(ms: number): void {
    this.#wallShift += ms;
    this.#steadyShift += ms;
  }

  /** Only the wall clock jumps; so it does while the machine sleeps. */
  jump(ms: number): void {
    this.#wallShift += ms;
  }

  /** The process is stopped for so long, and goes on. */
  stop(ms: number): void {
    this.pass(ms);
    this.#timersShift += ms;
  }
}

/** What an answer held. `body` is the parsed JSON (an empty object when there was none). */
export type Answer = {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Record<string, unknown>;
};

export type CallOptions = {
  readonly body?: unknown;
  /** Headers to add; null removes one (the secret, for example). */
  readonly headers?: Readonly<Record<string, string | null>>;
  readonly variant?: VariantName;
  readonly signal?: AbortSignal;
};

type TestHubParts = {
  readonly hubs: readonly Hub[];
  readonly config: Config;
  readonly clock: TestClock;
  readonly logged: string[];
  readonly front: Front | null;
  readonly keepData: boolean;
};

export class TestHub {
  readonly dataDir: string;
  readonly clock: TestClock;
  readonly logged: string[];
  /** The address of its PostgreSQL; null: it has none. */
  readonly database: string | null;
  readonly #redis: string | null;
  /** Several are one behind the front, through which nodes call. */
  readonly #hubs: readonly Hub[];
  readonly #front: Front | null;
  readonly #keepData: boolean;
  #closed: Promise<void> | null = null;

  constructor({ hubs, config, clock, logged, front, keepData }: TestHubParts) {
    this.#hubs = hubs;
    this.#front = front;
    this.dataDir = config.dataDir;
    this.database = config.database;
    this.#redis = config.redis;
    this.clock = clock;
    this.logged = logged;
    this.#keepData = keepData;
  }

  /** The name of its store's engine, which is what carries its messages. */
  get engine(): EngineName {
    return this.database === null ? "sqlite" : "postgresql";
  }

  /** What its answers have to name as `transport`. */
  get transport(): string {
    return this.#redis === null ? this.engine : "redis";
  }

  /** The base of the listener that speaks a variant (the first of them). */
  base(variant: VariantName = "A"): string {
    return `http://127.0.0.1:${this.port(variant)}`;
  }

  port(variant: VariantName = "A"): number {
    if (this.#front !== null) return this.#front.port(variant);
    const listener = this.listeners.find((one) => one.spec.variant === variant && !one.tls);
    if (!listener) throw new Error(`no listener speaks ${variant}`);
    return listener.port;
  }

  /** Of the first hub. */
  get listeners(): Hub["listeners"] {
    return this.#hubs[0]?.listeners ?? [];
  }

  /** One request, as a node would send it. `path` is what follows /api/v1. */
  async call(method: string, path: string, options: CallOptions = {}): Promise<Answer> {
    const headers = new Headers({ "X-Matrix-Secret": SECRET });
    for (const [name, value] of Object.entries(options.headers ?? {})) {
      if (value === null) headers.delete(name);
      else headers.set(name, value);
    }
    const { body } = options;
    const raw =
      body === undefined || typeof body === "string" || body instanceof FormData || body instanceof Blob;
    if (!raw) headers.set("Content-Type", "application/json");
    const response = await fetch(`${this.base(options.variant)}/api/v1${path}`, {
      method,
      headers,
      keepalive: false,
      ...(body === undefined ? {} : { body: raw ? body : JSON.stringify(body) }),
      ...(options.signal ? { signal: options.signal } : {}),
    });
    const text = await response.text();
    const isJson = /json/.test(response.headers.get("content-type") ?? "");
    const parsed = isJson && text !== "" ? JSON.parse(text) : {};
    if (isJson && method !== "HEAD") checkAnswer(method, path, response, parsed);
    return { status: response.status, headers: response.headers, body: parsed };
  }

  post(path: string, body: unknown, options: CallOptions = {}): Promise<Answer> {
    return this.call("POST", path, { ...options, body });
  }

  get(path: string, options: CallOptions = {}): Promise<Answer> {
    return this.call("GET", path, options);
  }

  /** A POST with the administrator key. */
  admin(path: string, body: unknown, options: CallOptions = {}): Promise<Answer> {
    return this.post(path, body, { ...options, headers: { "X-Admin-Key": ADMIN_KEY, ...options.headers } });
  }

  /** Does the periodic work that is due now, without waiting for the hub's own next second. */
  async sweep(): Promise<void> {
    for (const hub of this.#hubs) await hub.sweep();
  }

  /** How many hubs it really is. */
  get size(): number {
    return this.#hubs.length;
  }

  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async #close(): Promise<void> {
    await Promise.all(this.#hubs.map((hub) => hub.close()));
    if (this.#front !== null) giveBack(this.#front);
    if (!this.#keepData) rmSync(this.dataDir, { recursive: true, force: true });
    if (this.#keepData) return;
    (await schemas.get(this.dataDir))?.giveBack();
    schemas.delete(this.dataDir);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

/** The engines that the tests of the API run on. */
export type EngineName = "sqlite" | "postgresql";

let engine: EngineName = "sqlite";
let inFleets = false;

/**
 * From here on, hubs are started on this engine; `fleets`: each as two on one database behind an nginx. Whoever changes
 * it puts it back: other files may come in the same process.
 */
export function useEngine(name: EngineName, { fleets = false } = {}): void {
  engine = name;
  inFleets = fleets;
}

/** Why a test wants a single hub where the others have two behind a proxy. */
export const ALONE = {
  wrongSecrets: "each hub counts wrong secrets for itself",
  firstCome: "who has waited longest is known to each hub for its own callers",
  ownHead:
    "it is about the head of a request or an answer as the hub itself has it, which a proxy words anew",
} as const;

export type HubOptions = Partial<Omit<Config, "listen" | "dataDir">> & {
  /** The variants to listen for, a port each; A and B if not given. */
  readonly variants?: readonly VariantName[];
  /** An existing data directory to open; it is then kept. */
  readonly dataDir?: string;
  readonly clock?: TestClock;
  /** Never two behind a proxy. */
  readonly alone?: keyof typeof ALONE;
};

/** Of three files at a time: their hubs hold at most some 80 MiB. */
const TEMP = process.env["TMPDIR"] ?? swiftFolder(256 * 2 ** 20);

/**
 * A data directory of its own, for a test that opens a hub in it more than once and removes it at the end. What a crash
 * leaves on a disk is not for these tests, and they are many.
 */
export function newDataDir(): string {
  return mkdtempSync(join(TEMP, "luxhub-test-"));
}

/** On PostgreSQL a data directory has a schema that goes with it, as SQLite's file does. */
const schemas = new Map<string, Promise<Schema>>();

async function databaseOf(path: string): Promise<string | null> {
  if (engine === "sqlite") return null;
  const schema = schemas.get(path) ?? takeSchema();
  schemas.set(path, schema);
  return (await schema).url;
}

let carrier: string | null = null;

/** From here on hubs of this file have their messages carried by this Redis; null: by their store. */
export function carryMessagesBy(redis: string | null): void {
  carrier = redis;
}

/** Starts a hub; `await using hub = await startHub()` closes it. */
export async function startHub(options: HubOptions = {}): Promise<TestHub> {
  const { variants = ["A", "B"], dataDir, clock = new TestClock(), alone, ...settings } = options;
  const path = dataDir ?? newDataDir();
  const isFleet = inFleets && alone === undefined && settings.database === undefined;
  const front = isFleet ? await takeFront() : null;
  const [listen = [], ...others] = front?.listens(variants) ?? [
    variants.map((variant) => ({ variant, host: "127.0.0.1", port: 0, tls: false })),
  ];
  const config: Config = {
    ...readConfig({ flags: {}, env: front === null ? {} : { LUXHUB_TRUST_PROXY: "127.0.0.1" }, file: null }),
    redis: carrier,
    ...settings,
    listen,
    dataDir: path,
    database: settings.database ?? (await databaseOf(path)),
  };
  const logged: string[] = [];
  const log = openLog("json", clock.now.bind(clock), (text) => logged.push(text));
  const secrets = { secret: SECRET, adminKey: ADMIN_KEY };
  const open = (one: Config): Promise<Hub> =>
    openHub({ config: one, dir: makeDataDir(one.dataDir), secrets, clock, log });
  const beside = others.map((own, i) => ({ ...config, listen: own, dataDir: join(path, `hub-${i + 2}`) }));
  const hubs = await Promise.all([config, ...beside].map(open));
  await front?.lets(variants);
  return new TestHub({ hubs, config, clock, logged, front, keepData: dataDir !== undefined });
}

const DECLARED = [...ENDPOINTS, ...fileEndpoints(1)].map((endpoint) => ({
  endpoint,
  pattern: new RegExp(`^${endpoint.path.replace("/api/v1", "").replaceAll(/:[a-z_]+/g, "[^/]+")}$`),
}));

/** Made once, when it is needed: that takes longer than to hold many an answer against it. */
const answerSchemas = new Map<AnswerSchema, ReturnType<AnswerSchema>>();

function schemaOf(declared: AnswerSchema): ReturnType<AnswerSchema> {
  const schema = answerSchemas.get(declared) ?? declared();
  answerSchemas.set(declared, schema);
  return schema;
}

/** A success is what its endpoint declares; an error is a problem (RFC 9457) of the hub's form. */
function checkAnswer(method: string, path: string, response: Response, received: unknown): void {
  // A copy: toMatchObject of Bun 1.4.5 writes its expect.any() into what it is given, and a test that then compares
  // the body with anything would hold.
  const body: unknown = structuredClone(received);
  expect(response.headers.get("x-request-id")).toBeTruthy();
  if (!response.ok) {
    expect(response.headers.get("content-type")).toBe("application/problem+json");
    expect(body).toMatchObject({ success: false, status: response.status, error: expect.any(String) });
    expect(body).toMatchObject({
      type: expect.any(String),
      title: expect.any(String),
      detail: expect.any(String),
    });
    return;
  }
  expect(body).toMatchObject({ success: true });
  const bare = path.split("?")[0] ?? "";
  const candidates = DECLARED.filter(
    ({ endpoint, pattern }) => endpoint.method === method && pattern.test(bare),
  );
  const declared = candidates.find(({ endpoint }) => !endpoint.path.includes(":")) ?? candidates[0];
  if (declared?.endpoint.kind !== "json") return;
  const { success: _, ...fields } = { ...(body as object), success: true };
  const checked = schemaOf(declared.endpoint.answer).safeParse(fields);
  if (!checked.success)
    throw new Error(`${method} ${path} answers not as declared: ${checked.error.message}`);
}
