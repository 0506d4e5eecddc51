/**
 * One request after another against a hub in this process, each judged: the answer is what the endpoint declares, and
 * what was refused, or only read, has changed nothing. A run has a hub of its own, so that a failure repeats and shrinks.
 */
import { Database } from "bun:sqlite";
import { join } from "node:path";
import fc from "fast-check";
import { type TestHub, startHub } from "../support/hub.ts";
import { faultOf } from "./judge.ts";
import { Known } from "./known.ts";
import { type FuzzRequest, MAX_FILE_BYTES, anyRequest } from "./requests.ts";
import { addKeys, furnish } from "./scene.ts";
import { type Sent, objectOf, settle, withBody } from "./sent.ts";
import { Wire, type WireAnswer } from "./wire.ts";

/** As many requests as a run has at most; half as many on average. */
const RUN_MAX = 100;

export const runOfRequests = fc.array(anyRequest, { minLength: 1, maxLength: RUN_MAX, size: "max" });

/** How many requests were answered, and how often each endpoint in each variant with which status. */
export class Tally {
  total = 0;
  readonly #counts = new Map<string, number>();

  count({ target, variant }: FuzzRequest, status: number): void {
    this.total++;
    const key = `${variant} ${target.method} ${target.path} ${status}`;
    this.#counts.set(key, (this.#counts.get(key) ?? 0) + 1);
  }

  /** How often there was one of `statuses`, of an endpoint if given. */
  of(statuses: readonly number[], endpoint = ""): number {
    const counted = this.#counts.entries().filter(([key]) => {
      const [variant, method, path, status] = key.split(" ");
      return statuses.includes(Number(status)) && `${variant} ${method} ${path}`.includes(endpoint);
    });
    return counted.reduce((sum, [, count]) => sum + count, 0);
  }
}

/** Fuzzes until `requests` are answered. Throws with seed, path and the smallest run that fails. */
export async function fuzzInProcess(requests: number, seed: number): Promise<Tally> {
  const tally = new Tally();
  const property = fc.asyncProperty(runOfRequests, (run) => fireRun(run, tally));
  for (let part = 0; tally.total < requests; part++) {
    const numRuns = Math.ceil(Math.min(requests - tally.total, 5_000) / (RUN_MAX / 2));
    await fc.assert(property, { seed: seed + part, numRuns });
  }
  return tally;
}

async function fireRun(run: readonly FuzzRequest[], tally: Tally): Promise<void> {
  await using hub = await startHub({ maxFileBytes: MAX_FILE_BYTES });
  const known = new Known();
  await addKeys(hub.dataDir);
  await hub.sweep();
  await furnish(known, async (path, body, variant = "A") => (await hub.post(path, body, { variant })).body);
  using watch = new StateWatch(join(hub.dataDir, "luxhub.db"));
  const wires = { A: new Wire(hub.port("A")), B: new Wire(hub.port("B")) };
  try {
    for (const request of run) {
      const sent = settle(request, known);
      const answer = await fireOne(sent, wires[request.variant], watch);
      tally.count(request, answer.status);
      if (answer.status === 200) known.learn(objectOf(answer.body.toString()) ?? {});
      if (isRepeatable(sent, answer)) await repeat(sent, answer, wires[request.variant], watch);
    }
  } finally {
    wires.A.close();
    wires.B.close();
  }
  await checkLog(hub);
}

async function fireOne(sent: Sent, wire: Wire, watch: StateWatch): Promise<WireAnswer> {
  const keyed = sent.headers.has("idempotency-key");
  const before = watch.look(keyed);
  const answer = await wire.exchange(sent.bytes, sent.request.method === "HEAD");
  const fault = faultOf(sent, answer) ?? watch.faultSince(before, changesNothing(sent, answer));
  if (fault !== null)
    throw new Error(`${fault}\n${describe(sent)}\n${answer.status} ${answer.body.subarray(0, 500)}`);
  return answer;
}

function isRepeatable({ request, headers }: Sent, { status }: WireAnswer): boolean {
  return request.method === "POST" && headers.has("idempotency-key") && status === 200;
}

/** The same again, with its Idempotency-Key: the same answer. Something else with it: 422. Nothing is done. */
async function repeat(sent: Sent, first: WireAnswer, wire: Wire, watch: StateWatch): Promise<void> {
  const { version } = watch;
  const again = await wire.exchange(sent.bytes, false);
  const same = again.status === first.status && again.body.equals(first.body);
  const replayed = again.headers.get("idempotent-replayed") === "true";
  const text = sent.body?.toString() ?? "";
  const other = withBody(
    sent,
    text.startsWith("{") ? text.replace("{", '{"and":[0],').replace(",}", "}") : `${text}\r\n`,
  );
  const refused =
    text.startsWith("{") || sent.request.target.kind === "raw"
      ? await wire.exchange(other.bytes, false)
      : null;
  if (same && replayed && (refused?.status ?? 422) === 422 && watch.version === version) return;
  const answers = [first, again, refused].map(
    (answer) => `${answer?.status} ${answer?.body.subarray(0, 500)}`,
  );
  throw new Error(`a repeat differs, or does something\n${describe(sent)}\n${answers.join("\n")}`);
}

/** What was refused, or only read. */
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

type Look = { readonly version: number; readonly digest: string | null };

/** Looks at the database from beside the hub: whether anything was committed, and to what. */
export class StateWatch implements Disposable {
  readonly #db: Database;

  constructor(path: string) {
    this.#db = new Database(path, { readonly: true });
  }

  /** The number changes with every commit of the hub that writes anything. */
  get version(): number {
    return this.#db.query<{ data_version: number }, []>("PRAGMA data_version").get()?.data_version ?? 0;
  }

  /** @param whole whether what is stored is looked at, too: for a refusal that is stored for its repeat */
  look(whole: boolean): Look {
    return { version: this.version, digest: whole ? this.#digest() : null };
  }

  faultSince(before: Look, unchanged: boolean): string | null {
    if (!unchanged || this.version === before.version) return null;
    if (before.digest === null) return "a refusal, or a read, has written";
    return this.#digest() === before.digest ? null : "a refusal has written more than its answer";
  }

  [Symbol.dispose](): void {
    this.#db.close();
  }

  /** Every row of every table but the stored answers. */
  #digest(): string {
    const tables = this.#db
      .query<{ name: string }, []>(
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND name <> 'answers'",
      )
      .all();
    return tables
      .map(({ name }) => JSON.stringify(this.#db.query(`SELECT * FROM ${name}`).values()))
      .join("\n");
  }
}
