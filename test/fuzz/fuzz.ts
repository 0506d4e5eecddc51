/**
 * Sends requests one after the other to a hub in this process. After each, the oracle checks that the endpoint declares
 * the answer, and that a refused request or a read has changed nothing. Each run starts a new hub, so that a failure can
 * be reproduced and shrunk.
 */
import { Database } from "bun:sqlite";
import { join } from "node:path";
import fc from "fast-check";
import { ADMIN_KEY, type TestHub, startHub } from "../support/hub.ts";
import { faultOf } from "./oracle.ts";
import { IdPool } from "./id-pool.ts";
import { type FuzzRequest, MAX_FILE_BYTES, TARGETS, anyRequest } from "./requests.ts";
import { addKeys, furnish } from "./scene.ts";
import { type Sent, objectOf, resolve, withBody } from "./sent.ts";
import { Wire, type WireAnswer } from "./wire.ts";

/** The most requests in a run; on average half as many. */
const RUN_MAX = 100;

/** Each smaller run starts a hub: without a bound the test's own deadline would come before its report. */
const SHRINK_MAX_MS = 60_000;

export const SUCCESS = [200, 206, 304];

export const runOfRequests = fc.array(anyRequest, { minLength: 1, maxLength: RUN_MAX, size: "max" });

export class Tally {
  total = 0;
  readonly #counts = new Map<string, number>();

  count({ target, variant }: FuzzRequest, status: number): void {
    this.total++;
    const key = `${variant} ${target.method} ${target.path} ${status}`;
    this.#counts.set(key, (this.#counts.get(key) ?? 0) + 1);
  }

  of(statuses: readonly number[], endpoint = ""): number {
    const counted = this.#counts.entries().filter(([key]) => {
      const [variant, method, path, status] = key.split(" ");
      return statuses.includes(Number(status)) && `${variant} ${method} ${path}`.includes(endpoint);
    });
    return counted.reduce((sum, [, count]) => sum + count, 0);
  }

  neverServed(): readonly string[] {
    return TARGETS.map(({ method, path }) => `${method} ${path}`).filter(
      (endpoint) =>
        !endpoint.endsWith("/message/redrive") && // a message is parked only after three minutes of silence
        !endpoint.endsWith("/answer-by-token") && // only the message of a webhook has such a token
        ["A", "B"].every((variant) => this.of(SUCCESS, `${variant} ${endpoint}`) === 0),
    );
  }
}

/** Fuzzes until `requests` are answered. Throws with seed, path and the smallest failing run that was found in time. */
export async function fuzzInProcess(requests: number, seed: number): Promise<Tally> {
  const tally = new Tally();
  let shrinkUntil = Number.POSITIVE_INFINITY;
  const property = fc.asyncProperty(runOfRequests, async (run) => {
    if (performance.now() > shrinkUntil) return; // the smallest so far is reported
    try {
      await fireRun(run, tally);
    } catch (error) {
      shrinkUntil = Math.min(shrinkUntil, performance.now() + SHRINK_MAX_MS);
      throw error;
    }
  });
  for (let part = 0; tally.total < requests; part++) {
    const numRuns = Math.ceil(Math.min(requests - tally.total, 5_000) / (RUN_MAX / 2));
    await fc.assert(property, { seed: seed + part, numRuns });
  }
  return tally;
}

async function fireRun(run: readonly FuzzRequest[], tally: Tally): Promise<void> {
  await using hub = await startHub({ maxFileBytes: MAX_FILE_BYTES });
  const ids = new IdPool();
  await addKeys(hub.dataDir);
  await hub.sweep();
  await furnish(ids, async (path, body, variant = "A") => {
    const answer = await hub.post(path, body, { variant, headers: { "X-Admin-Key": ADMIN_KEY } });
    return answer.body;
  });
  using watch = new StateWatch(join(hub.dataDir, "luxhub.db"));
  const wires = { A: new Wire(hub.port("A")), B: new Wire(hub.port("B")) };
  try {
    for (const request of run) {
      const sent = resolve(request, ids);
      const { version } = watch;
      const answer = await fireOne(sent, wires[request.variant], watch);
      const hasWritten = watch.version !== version; // else the answer is not stored: a repeat gets a new response
      tally.count(request, answer.status);
      if (answer.status === 200) ids.learn(objectOf(answer.body.toString()) ?? {});
      if (hasWritten) await watch.untilQuiet();
      if (hasWritten && isRepeatable(sent, answer)) await repeat(sent, answer, wires[request.variant], watch);
    }
  } finally {
    wires.A.close();
    wires.B.close();
  }
  await checkLog(hub);
}

/** Meanwhile the hub may save the numbers of the minute. */
const WAITS: ReadonlySet<string> = new Set([
  "/api/v1/poll",
  "/api/v1/task/wait",
  "/api/v1/task/:task_id",
  "/api/v1/task/:task_id/output",
  "/api/v1/task/:task_id/questions",
  "/api/v1/group/:group",
]);

async function fireOne(sent: Sent, wire: Wire, watch: StateWatch): Promise<WireAnswer> {
  const keyed = sent.headers.has("idempotency-key");
  const before = watch.look(keyed || WAITS.has(sent.request.target.path));
  const answer = await wire.exchange(sent.bytes, sent.request.method === "HEAD");
  const fault = faultOf(sent, answer) ?? watch.faultSince(before, changesNothing(sent, answer));
  if (fault !== null)
    throw new Error(`${fault}\n${describe(sent)}\n${answer.status} ${answer.body.subarray(0, 500)}`);
  return answer;
}

/** A next without a task has written its heartbeat alone: its answer is not stored. */
function isRepeatable({ request, headers }: Sent, { status, body }: WireAnswer): boolean {
  if (request.target.path === "/api/v1/task/next" && objectOf(body.toString())?.["task"] === null)
    return false;
  return request.method === "POST" && headers.has("idempotency-key") && status === 200;
}

/** Repeats a request with its Idempotency-Key: the answer is the same; with another body it is 422. Neither writes. */
async function repeat(sent: Sent, first: WireAnswer, wire: Wire, watch: StateWatch): Promise<void> {
  const { version } = watch;
  const again = await wire.exchange(sent.bytes, false);
  const same = again.status === first.status && again.body.equals(first.body);
  const replayed = again.headers.get("idempotent-replayed") === "true";
  const text = sent.body?.toString() ?? "";
  const other = withBody(
    sent,
    text.startsWith("{")
      ? text.replace("{", '{"and":[0],').replace(",}", "}")
      : text.replace('name="file"', 'name="file"; filename="another"'), // of two names the first counts
  );
  const refused =
    text.startsWith("{") || sent.request.target.kind === "raw"
      ? await wire.exchange(other.bytes, false)
      : null;
  // An answer that changed nothing is not stored: its repeat is answered like a new request.
  const isReused = !replayed || (refused?.status ?? 422) === 422;
  if (same && isReused && watch.version === version) return;
  const answers = [first, again, refused].map(
    (answer) => `${answer?.status} ${answer?.body.subarray(0, 500)}`,
  );
  throw new Error(`a repeat differs, or has written\n${describe(sent)}\n${answers.join("\n")}`);
}

export function changesNothing(sent: Sent, answer: WireAnswer): boolean {
  return answer.status >= 400 || sent.request.method === "GET" || sent.request.method === "HEAD";
}

export function describe({ bytes }: Sent): string {
  return bytes.subarray(0, 2_000).toString("latin1");
}

async function checkLog(hub: TestHub): Promise<void> {
  const errors = hub.logged
    .join("")
    .split("\n")
    .filter((line) => line.includes('"level":"error"'));
  if (errors.length > 0) throw new Error(`the hub logged errors:\n${errors.join("\n")}`);
}

/** Turns of the event loop, which the hub shares, after which a commit would have followed. */
const QUIET_TURNS = 8;

type Look = { readonly version: number; readonly digest: string | null };

/** Reads the hub's database on a connection of its own, to see whether the hub has committed anything. */
export class StateWatch implements Disposable {
  readonly #db: Database;

  constructor(path: string) {
    this.#db = new Database(path, { readonly: true });
  }

  get version(): number {
    return this.#db.query<{ data_version: number }, []>("PRAGMA data_version").get()?.data_version ?? 0;
  }

  /** Waits for the commits that follow a write: the end of a group, the copies of a quorum, what the balancer assigns. */
  async untilQuiet(): Promise<void> {
    for (let { version } = this, turns = 0; turns < QUIET_TURNS; turns++) {
      await new Promise(setImmediate);
      if (this.version !== version) [version, turns] = [this.version, 0];
    }
  }

  /** @param whole whether to hash the rows too: with an Idempotency-Key even a refusal stores its answer */
  look(whole: boolean): Look {
    // The attempts to deliver to a webhook are stored meanwhile.
    const delivers = this.#db.query("SELECT 1 FROM webhooks WHERE state <> 'suspended'").get() !== null;
    return { version: this.version, digest: whole || delivers ? this.#digest() : null };
  }

  faultSince(before: Look, unchanged: boolean): string | null {
    if (!unchanged || this.version === before.version) return null;
    if (before.digest === null) return "a refusal, or a read, has written";
    return this.#digest() === before.digest ? null : "a refusal has written more than its answer";
  }

  [Symbol.dispose](): void {
    this.#db.close();
  }

  /** All rows but those of stored answers and their totals, of the numbers of minutes, of webhooks, and of the change log. */
  #digest(): string {
    const tables = this.#db
      .query<{ name: string }, []>(
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT IN ('answers', 'answer_totals', 'minutes', 'webhooks', 'changes', 'change_texts')",
      )
      .all();
    return tables
      .map(({ name }) => JSON.stringify(this.#db.query(`SELECT * FROM ${name}`).values()))
      .join("\n");
  }
}
