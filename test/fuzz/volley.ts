/**
 * Volleys: sends many requests at once to the real program, and measures its memory. The refused requests of a volley are
 * sent together once more, and must change nothing.
 */
import { join } from "node:path";
import fc from "fast-check";
import type { VariantName } from "../../src/domain/model.ts";
import { Hub, TempDir, memoryMib, until } from "../e2e/program.ts";
import { ADMIN_KEY, SECRET } from "../support/hub.ts";
import { Tally, StateWatch, changesNothing, describe } from "./fuzz.ts";
import { faultOf } from "./oracle.ts";
import { IdPool } from "./id-pool.ts";
import { type FuzzRequest, MAX_FILE_BYTES, anyRequest } from "./requests.ts";
import { addKeys, furnish } from "./scene.ts";
import { PINNED_SECRET, type Sent, objectOf, resolve } from "./sent.ts";
import { Wire, type WireAnswer } from "./wire.ts";

const VOLLEY_MAX = 512;
const WIRES_A_LISTENER = 16;
/** Periodic work also writes (nodes go offline, messages are redelivered): rarely in one volley, never in so many. */
const TRIES = 6;

const volleyOfRequests = fc.array(anyRequest, { minLength: 1, maxLength: VOLLEY_MAX, size: "max" });

class Stand implements AsyncDisposable {
  readonly #hub: Hub;
  readonly #dir: TempDir;
  readonly #watch: StateWatch;
  readonly #wires: Readonly<Record<VariantName, readonly Wire[]>>;
  readonly #ids = new IdPool();
  readonly #tally: Tally;
  #fired = 0;

  private constructor(hub: Hub, dir: TempDir, tally: Tally) {
    this.#hub = hub;
    this.#dir = dir;
    this.#watch = new StateWatch(join(dir.path, "data", "luxhub.db"));
    this.#tally = tally;
    const wires = (variant: VariantName) =>
      Array.from({ length: WIRES_A_LISTENER }, () => new Wire(portOf(hub, variant)));
    this.#wires = { A: wires("A"), B: wires("B") };
  }

  static async start(tally: Tally): Promise<Stand> {
    const dir = new TempDir();
    const data = dir.join("data");
    const env = { LUXHUB_SECRET: SECRET, LUXHUB_ADMIN_KEY: ADMIN_KEY };
    const args = ["--listen", "B:127.0.0.1:0", "--max-file", String(MAX_FILE_BYTES)];
    const hub = await Hub.start({ data, args, env });
    const stand = new Stand(hub, dir, tally);
    await addKeys(data);
    const secret = { headers: { "X-Matrix-Secret": PINNED_SECRET } };
    await until(async () => (await hub.get("/status", secret)).body["variant"] === "B");
    await furnish(stand.#ids, async (path, body, variant = "A") => {
      const init = {
        method: "POST",
        headers: { "X-Matrix-Secret": SECRET, "X-Admin-Key": ADMIN_KEY },
        body: body instanceof FormData ? body : JSON.stringify(body),
      };
      const url = `http://127.0.0.1:${portOf(hub, variant)}/api/v1${path}`;
      return objectOf(await (await fetch(url, init)).text()) ?? {};
    });
    return stand;
  }

  get ended(): boolean {
    return this.#hub.program.child.exitCode !== null || this.#hub.program.child.signalCode !== null;
  }

  get fired(): number {
    return this.#fired;
  }

  get memoryMib(): number {
    return memoryMib(this.#hub.pid, "VmRSS");
  }

  /** Throws if the hub has logged an error since the last call. */
  checkLog(): void {
    const { stdout, stderr } = this.#hub.program;
    this.#hub.program.stdout = ""; // a line for each request would be much to keep
    const errors = stdout.split("\n").filter((line) => /^\S+Z error /.test(line));
    if (errors.length > 0 || stderr !== "")
      throw new Error(`the hub logged errors: ${errors.join("\n")}${stderr}`);
  }

  async fire(volley: readonly FuzzRequest[]): Promise<void> {
    const sent = volley.map((request) => resolve(request, this.#ids));
    const answers = await this.#exchange(sent);
    for (const [i, answer] of answers.entries()) {
      const one = sent[i];
      if (one) this.#tally.count(one.request, answer.status); // what is fired once more is not counted again
      if (answer.status === 200 && one?.request.method === "POST")
        this.#ids.learn(objectOf(answer.body.toString()) ?? {});
    }
    const refused = sent.filter((one, i) => answers[i] !== undefined && changesNothing(one, answers[i]));
    for (let left = TRIES; left > 0; left--) {
      const { version } = this.#watch;
      const again = await this.#exchange(refused);
      // A request that now succeeds may write.
      const still = refused.every((one, i) => again[i] !== undefined && changesNothing(one, again[i]));
      if (!still || this.#watch.version === version) return;
    }
    throw new Error(`refusals and reads have written:\n${refused.map(describe).join("\n")}`);
  }

  /** Waits for all answers before it throws the first fault, so that no connection has a pending request afterwards. */
  async #exchange(all: readonly Sent[]): Promise<readonly WireAnswer[]> {
    const answers: WireAnswer[] = [];
    const faults: unknown[] = [];
    await Promise.all(
      (["A", "B"] as const).map(async (variant) => {
        const mine = all.entries().filter(([, { request }]) => request.variant === variant);
        const drain = async (wire: Wire): Promise<void> => {
          for (const [i, sent] of mine) {
            try {
              answers[i] = await this.#exchangeOne(sent, wire);
            } catch (error) {
              faults.push(error);
            }
          }
        };
        await Promise.all(this.#wires[variant].map(drain));
      }),
    );
    if (faults.length > 0) throw faults[0];
    return answers;
  }

  async #exchangeOne(sent: Sent, wire: Wire): Promise<WireAnswer> {
    const answer = await wire.exchange(sent.bytes, sent.request.method === "HEAD");
    this.#fired++;
    const fault = faultOf(sent, answer);
    if (fault === null) return answer;
    throw new Error(`${fault}\n${describe(sent)}\n${answer.status} ${answer.body.subarray(0, 500)}`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const wire of [...this.#wires.A, ...this.#wires.B]) wire.close();
    this.#watch[Symbol.dispose]();
    await this.#hub[Symbol.asyncDispose]();
    this.#dir[Symbol.dispose]();
  }
}

export type Volleys = {
  readonly tally: Tally;
  readonly fired: number;
  readonly memoryMib: readonly number[];
  readonly tookMs: number;
};

/**
 * Fires until `requests` are answered. Throws with seed, path and the smallest volley that fails. Starts the program
 * again if it has ended.
 */
export async function fireVolleys(
  requests: number,
  seed: number,
  progress: (line: string) => void,
): Promise<Volleys> {
  const tally = new Tally();
  const memory: number[] = [];
  const startedMs = performance.now();
  let stand = await Stand.start(tally);
  let fired = 0;
  const property = fc.asyncProperty(volleyOfRequests, async (volley) => {
    if (stand.ended) {
      fired += stand.fired;
      await stand[Symbol.asyncDispose]();
      stand = await Stand.start(tally);
    }
    await stand.fire(volley);
  });
  try {
    for (let part = 0; tally.total < requests; part++) {
      await fc.assert(property, { seed: seed + part, numRuns: 20 });
      stand.checkLog();
      memory.push(stand.memoryMib);
      if (part % 10 === 0) progress(`${tally.total} requests, ${memory.at(-1)?.toFixed(0)} MiB`);
    }
  } finally {
    await stand[Symbol.asyncDispose]();
  }
  fired += stand.fired;
  return { tally, fired, memoryMib: memory, tookMs: performance.now() - startedMs };
}

function portOf(hub: Hub, variant: VariantName): number {
  return hub.listeners.find((one) => one.variant === variant)?.port ?? 0;
}
