/**
 * Runs a hub in the test process over real listeners: temporary data directory, system-chosen ports, a clock that the
 * test can move. Checks every answer in JSON against what its endpoint declares.
 */
import { describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Config, readConfig } from "../../src/config.ts";
import { makeDataDir } from "../../src/data-dir.ts";
import { BATCH_REQUESTS_MAX } from "../../src/domain/limits.ts";
import type { VariantName } from "../../src/domain/model.ts";
import type { Post } from "../../src/http/outbound.ts";
import { type Hub, openHub } from "../../src/hub.ts";
import { type Clock, HOUR_MS, systemClock } from "../../src/lib/clock.ts";
import { openLog } from "../../src/lib/log.ts";
import type { LoadServer } from "../../src/mcp/endpoint.ts";
import { RESULT, list, ok, record } from "../api/scene.ts";
import { answerFault } from "./answers.ts";
import { checkConsistency } from "./consistency-check.ts";
import { type Front, giveBack, takeFront } from "./front.ts";
import { firstStateOf, provideDatabase } from "./new-database.ts";
import "./row-cache-check.ts";
import { checkCopy } from "./same-rows.ts";
import { type Schema, takeSchema } from "./schemas.ts";

export const SECRET = "test-secret";
export const ADMIN_KEY = "test-admin-key";

/** The system clock plus offsets that a test sets. */
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

  machine(): number {
    return this.steady();
  }

  timers(): number {
    return this.#base.timers() + this.#timersShift;
  }

  workMs = 0;
  #worked = 0;

  work(): number {
    return (this.#worked += this.workMs);
  }

  /** Time passes while the hub works. */
  pass(ms: number): void {
    this.#wallShift += ms;
    this.#steadyShift += ms;
  }

  /** Only the wall clock jumps, as when the machine sleeps. */
  jump(ms: number): void {
    this.#wallShift += ms;
  }

  /** The process is stopped for this long and continues. */
  stop(ms: number): void {
    this.pass(ms);
    this.#timersShift += ms;
  }
}

export type Answer = {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Record<string, unknown>;
};

export type CallOptions = {
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string | null>>;
  readonly variant?: VariantName;
  /** The variant of the answer, where the key is pinned to another than the listener's. */
  readonly answeredIn?: VariantName;
  readonly signal?: AbortSignal;
};

type TestHubParts = {
  readonly hubs: readonly Hub[];
  readonly config: Config;
  readonly clock: TestClock;
  readonly logged: string[];
  readonly front: Front | null;
  readonly keepData: boolean;
  readonly isDamaged: boolean;
};

type Fields = Readonly<Record<string, unknown>>;

export class TestHub {
  readonly dataDir: string;
  readonly clock: TestClock;
  readonly logged: string[];
  /** The address of its PostgreSQL; null on SQLite. */
  readonly database: string | null;
  readonly #redis: string | null;
  /** More than one: they are behind the front, which nodes call. */
  readonly #hubs: readonly Hub[];
  readonly #front: Front | null;
  readonly #keepData: boolean;
  readonly #isDamaged: boolean;
  #turn = 0;
  #closed: Promise<void> | null = null;

  constructor({ hubs, config, clock, logged, front, keepData, isDamaged }: TestHubParts) {
    this.#hubs = hubs;
    this.#front = front;
    this.dataDir = config.dataDir;
    this.database = config.database;
    this.#redis = config.redis;
    this.clock = clock;
    this.logged = logged;
    this.#keepData = keepData;
    this.#isDamaged = isDamaged;
  }

  get engine(): EngineName {
    return this.database === null ? "sqlite" : "postgresql";
  }

  get transport(): string {
    return this.#redis === null ? this.engine : "redis";
  }

  base(variant: VariantName = "A"): string {
    return `http://127.0.0.1:${this.port(variant)}`;
  }

  /** Several hubs without a front take turns. */
  port(variant: VariantName = "A"): number {
    if (this.#front !== null) return this.#front.port(variant);
    const hub = this.#hubs[this.#turn++ % this.#hubs.length];
    const listener = hub?.listeners.find((one) => one.spec.variant === variant && !one.tls);
    if (!listener) throw new Error(`no listener speaks ${variant}`);
    return listener.port;
  }

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
    if (isJson && method !== "HEAD")
      checkAnswer(method, path, response, parsed, possibleVariants(headers, options));
    return { status: response.status, headers: response.headers, body: parsed };
  }

  post(path: string, body: unknown, options: CallOptions = {}): Promise<Answer> {
    return this.call("POST", path, { ...options, body });
  }

  get(path: string, options: CallOptions = {}): Promise<Answer> {
    return this.call("GET", path, options);
  }

  admin(path: string, body: unknown, options: CallOptions = {}): Promise<Answer> {
    return this.post(path, body, { ...options, headers: { "X-Admin-Key": ADMIN_KEY, ...options.headers } });
  }

  addNode(nodeId: string, fields: Fields = {}, variant: VariantName = "A"): Promise<Answer["body"]> {
    const asked = { node_id: nodeId, name: nodeId, auto_assign: true, ...fields };
    return ok(this.post("/node/register", asked, { variant }));
  }

  async addNodes(nodeIds: readonly string[]): Promise<void> {
    for (const nodeId of nodeIds) await this.addNode(nodeId);
  }

  async addTask(fields: Fields = {}, variant: VariantName = "A"): Promise<string> {
    const body = await ok(
      this.post("/task/create", { title: "t", description: "d", ...fields }, { variant }),
    );
    return String(body["task_id"]);
  }

  async addTasks(count: number, fields: Fields = {}, variant: VariantName = "A"): Promise<readonly string[]> {
    const bodies = Array.from({ length: count }, () => ({ title: "t", description: "d", ...fields }));
    return (await this.inBatches("task/create", bodies, variant)).map(({ task_id }) => String(task_id));
  }

  /** Posts these bodies to one path in as few requests as a batch allows; the answers, which all have to succeed. */
  async inBatches(
    path: string,
    bodies: readonly Fields[],
    variant: VariantName = "A",
  ): Promise<readonly Answer["body"][]> {
    const got: Answer["body"][] = [];
    for (let i = 0; i < bodies.length; i += BATCH_REQUESTS_MAX) {
      const requests = bodies.slice(i, i + BATCH_REQUESTS_MAX).map((body) => ({ path, body }));
      const answers = list(await ok(this.post("/batch", { requests }, { variant })), "answers");
      expect(answers.filter(({ status }) => status !== 200)).toEqual([]);
      got.push(...answers.map(({ body }) => record(body)));
    }
    return got;
  }

  async addTaskOf(nodeId: string, fields: Fields = {}): Promise<string> {
    const taskId = await this.addTask(fields);
    await ok(this.post("/task/assign", { task_id: taskId, node_id: nodeId }));
    return taskId;
  }

  complete(taskId: string, nodeId: string, options: CallOptions = {}): Promise<Answer> {
    return this.post("/task/complete", { task_id: taskId, node_id: nodeId, result: RESULT }, options);
  }

  async taskOf(taskId: string, variant: VariantName = "A"): Promise<Record<string, unknown>> {
    const body = await ok(this.get("/task/list?per_page=50", { variant }));
    const task = list(body, "tasks").find((one) => one["task_id"] === taskId);
    if (!task) throw new Error(`no task ${taskId} in the list`);
    return task;
  }

  async nodeOf(nodeId: string, variant: VariantName = "A"): Promise<Record<string, unknown>> {
    return record((await ok(this.get(`/node/${nodeId}`, { variant })))["node"]);
  }

  async send(from: string, to: string, fields: Fields = {}): Promise<string> {
    const body = await ok(
      this.post("/message/send", { from_node: from, to_node: to, content: "hello", ...fields }),
    );
    return String(body["message_id"]);
  }

  async receive(nodeId: string, fields: Fields = {}): Promise<readonly Record<string, unknown>[]> {
    return list(await ok(this.post("/message/receive", { node_id: nodeId, ...fields })), "messages");
  }

  async eventKinds(taskId?: string): Promise<unknown[]> {
    const events = list(await ok(this.get("/events?since=0&limit=1000")), "events");
    return events
      .filter((event) => taskId === undefined || event["task_id"] === taskId)
      .map((event) => event["kind"]);
  }

  startsOf(): readonly string[] {
    return Array.from({ length: this.size }, () => "hub.started");
  }

  /** Whether so many calls of callers with the secret wait, by the hub's own metrics. */
  async waits(count: number): Promise<boolean> {
    const answer = await fetch(`${this.base()}/metrics`, { headers: { "X-Matrix-Secret": SECRET } });
    return new RegExp(`^luxhub_waiting_calls\\{secret="valid"\\} ${count}$`, "m").test(await answer.text());
  }

  /** Runs the periodic work that is due now, instead of waiting for the hub's timer. */
  async sweep(): Promise<void> {
    for (const hub of this.#hubs) await hub.sweep();
  }

  get size(): number {
    return this.#hubs.length;
  }

  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async #close(): Promise<void> {
    await Promise.all(this.#hubs.map((hub) => hub.close()));
    if (this.database === null && !this.#isDamaged) {
      const path = join(this.dataDir, "luxhub.db");
      checkConsistency(path);
      const first = await firstStateOf(path);
      if (first !== null) checkCopy(first, path);
    }
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

export type EngineName = "sqlite" | "postgresql";

let engine: EngineName = "sqlite";
let inFleets = false;

/**
 * Starts hubs on this engine from now on; `fleets`: as two hubs on one database behind an nginx. The caller must restore
 * it: other test files may run in the same process.
 */
export function useEngine(name: EngineName, { fleets = false } = {}): void {
  engine = name;
  inFleets = fleets;
}

/** Takes whatever `test` and `describe` take, and defines nothing. */
const nowhere: unknown = new Proxy(() => nowhere, { get: () => nowhere });

type Once = { readonly test: typeof test; readonly describe: typeof describe };

/**
 * `test` and `describe` for what no store and no Redis can change: the refusal of a bad request, the form of an answer,
 * rules of the domain. A file of test/api that is imported again with a query, to run on those, defines nothing by them.
 */
export function onlyOnce(moduleUrl: string): Once {
  // `nowhere` can be called in every way that they can.
  return moduleUrl.includes("?") ? ({ test: nowhere, describe: nowhere } as Once) : { test, describe };
}

export const ALONE = {
  wrongSecrets: "each hub counts wrong secrets separately",
  firstCome: "each hub keeps its own queue of waiting callers",
  ownHead: "tests the head of a request or response, which a proxy rewrites",
} as const;

export type HubOptions = Partial<Omit<Config, "listen" | "dataDir">> & {
  readonly variants?: readonly VariantName[];
  /** An existing data directory; the hub does not remove it. */
  readonly dataDir?: string;
  /** Its files were damaged on purpose: they are not checked when it is closed. */
  readonly isDamaged?: boolean;
  readonly clock?: TestClock;
  /** The secret it is started with; call() and its kin send SECRET all the same. */
  readonly secret?: string;
  /** Sends webhooks instead of what does it in the program, which calls no loopback address. */
  readonly post?: Post;
  readonly loadMcp?: LoadServer;
  /** Run a single hub, not two behind a proxy. */
  readonly alone?: keyof typeof ALONE;
  readonly engine?: EngineName;
  /** How many hubs share the database; calls go to them in turn. */
  readonly size?: number;
};

export function newDataDir(): string {
  return mkdtempSync(join(tmpdir(), "luxhub-test-"));
}

/** On PostgreSQL each data directory has its own schema, as it has its own file on SQLite. */
const schemas = new Map<string, Promise<Schema>>();

async function databaseOf(path: string, engine: EngineName): Promise<string | null> {
  if (engine === "sqlite") return null;
  const schema = schemas.get(path) ?? takeSchema();
  schemas.set(path, schema);
  return (await schema).url;
}

let carrier: string | null = null;

/** Hubs of this file pass messages over this Redis from now on; null: through their store. */
export function carryMessagesBy(redis: string | null): void {
  carrier = redis;
}

/** Starts a hub; `await using hub = await startHub()` closes it. */
export async function startHub(options: HubOptions = {}): Promise<TestHub> {
  const {
    variants = ["A", "B"],
    dataDir,
    isDamaged = false,
    clock = new TestClock(),
    secret = SECRET,
    alone,
    loadMcp,
    post,
    engine: storeEngine = engine,
    size = 1,
    ...settings
  } = options;
  const path = dataDir ?? newDataDir();
  const isFleet = inFleets && alone === undefined && settings.database === undefined;
  const front = isFleet ? await takeFront() : null;
  const [listen = [], ...others] =
    front?.listens(variants) ??
    Array.from({ length: size }, () =>
      variants.map((variant) => ({ variant, host: "127.0.0.1", port: 0, tls: false })),
    );
  const config: Config = {
    ...readConfig({ flags: {}, env: front === null ? {} : { LUXHUB_TRUST_PROXY: "127.0.0.1" }, file: null }),
    redis: carrier,
    backupChangesMs: HOUR_MS, // each hub on SQLite keeps its change log: close() compares a copy with it
    ...settings,
    listen,
    dataDir: path,
    database: settings.database ?? (await databaseOf(path, storeEngine)),
  };
  if (config.database === null) await provideDatabase(makeDataDir(path).database);
  const logged: string[] = [];
  const log = openLog(
    { format: "json", level: settings.logLevel ?? "debug" },
    clock.now.bind(clock),
    (text) => logged.push(text),
  );
  const secrets = { secret, adminKey: ADMIN_KEY };
  const open = (one: Config): Promise<Hub> =>
    openHub({
      config: one,
      dir: makeDataDir(one.dataDir),
      secrets,
      clock,
      log,
      openBase: async () => new Blob(["an archive"]).stream(),
      ...(loadMcp ? { loadMcp } : {}),
      ...(post ? { post } : {}),
    });
  const beside = others.map((own, i) => ({ ...config, listen: own, dataDir: join(path, `hub-${i + 2}`) }));
  const hubs = await Promise.all([config, ...beside].map(open));
  await front?.lets(variants);
  return new TestHub({
    hubs,
    config,
    clock,
    logged,
    front,
    keepData: dataDir !== undefined,
    isDamaged,
  });
}

/** The listener's variant; a key of the test's own may be pinned to the other. */
function possibleVariants(
  headers: Headers,
  { variant = "A", answeredIn = variant }: CallOptions,
): readonly VariantName[] {
  const isPinned = headers.has("authorization") || ![null, SECRET].includes(headers.get("x-matrix-secret"));
  return isPinned ? ["A", "B"] : [answeredIn];
}

/** An answer must be as its endpoint declares in one of the variants: the schema of a success, the code of an error. */
function checkAnswer(
  method: string,
  path: string,
  response: Response,
  body: unknown,
  variants: readonly VariantName[],
): void {
  expect(response.headers.get("x-request-id")).toBeTruthy();
  expect(response.headers.get("cache-control")).toBe("no-store");
  expect(response.headers.get("vary")).toStartWith("X-Matrix-Secret");
  expect(response.headers.get("content-type")).toBe(
    response.ok ? "application/json" : "application/problem+json",
  );
  const full = `/api/v1${path.split("?")[0] ?? ""}`;
  const faults = variants.map((variant) => answerFault(variant, method, full, response.status, body));
  if (!faults.includes(null)) throw new Error(`${method} ${path} answers not as declared: ${faults[0]}`);
}
