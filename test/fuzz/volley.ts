/**
 * Many requests at once against the real program: for how it bears up, and for its memory. What was refused in a volley
 * is fired once more together, and must change nothing.
 */
import { join } from "node:path";
import fc from "fast-check";
import { Hub, TempDir, memoryMib } from "../e2e/program.ts";
import { Tally, StateWatch, changesNothing, describe } from "./fuzz.ts";
import { faultOf } from "./judge.ts";
import { Known } from "./known.ts";
import { type FuzzRequest, MAX_FILE_BYTES, anyRequest } from "./requests.ts";
import { addKeys, furnish } from "./scene.ts";
import { type Sent, objectOf, settle } from "./sent.ts";
import { Wire, type WireAnswer } from "./wire.ts";

const VOLLEY_MAX = 512;
const WIRES_A_LISTENER = 16;
/** The hub works by itself, too: nodes go offline, messages come back. Rarely in one volley, never in so many. */
const TRIES = 6;

const volleyOfRequests = fc.array(anyRequest, { minLength: 1, maxLength: VOLLEY_MAX, size: "max" });

/** A running program and the connections to it. */
class Target implements AsyncDisposable {
  readonly #hub: Hub;
  readonly #dir: TempDir;
  readonly #watch: StateWatch;
  readonly #wires: Readonly<Record<"A" | "B", readonly Wire[]>>;
  readonly known = new Known();
  readonly tally: Tally;

  private constructor(hub: Hub, dir: TempDir, tally: Tally) {
    this.#hub = hub;
    this.#dir = dir;
    this.#watch = new StateWatch(join(dir.path, "data", "luxhub.db"));
    this.tally = tally;
    const wiresOf = (variant: string): readonly Wire[] => {
      const port = hub.listeners.find((one) => one.variant === variant)?.port ?? 0;
      return Array.from({ length: WIRES_A_LISTENER }, () => new Wire(port));
    };
    this.#wires = { A: wiresOf("A"), B: wiresOf("B") };
  }

  static async start(tally: Tally, secrets: Readonly<Record<string, string>>): Promise<Target> {
    const dir = new TempDir();
    const data = dir.join("data");
    const args = ["--listen", "B:127.0.0.1:0", "--max-file", String(MAX_FILE_BYTES), "--log", "json"];
    const hub = await Hub.start({ data, args: args.slice(0, 4), env: secrets });
    const target = new Target(hub, dir, tally);
    await addKeys(data);
    await furnish(target.known, async (path, body, variant = "A") => {
      const init = {
        method: "POST",
        headers: { "X-Matrix-Secret": hub.secret },
        body: body instanceof FormData ? body : JSON.stringify(body),
      };
      const port = hub.listeners.find((one) => one.variant === variant)?.port ?? 0;
      return objectOf(await (await fetch(`http://127.0.0.1:${port}/api/v1${path}`, init)).text()) ?? {};
    });
    await Bun.sleep(1_500); // the two keys are taken over by the next sweep
    return target;
  }

  get memoryMib(): number {
    return memoryMib(this.#hub.pid, "VmRSS");
  }

  async fire(volley: readonly FuzzRequest[]): Promise<void> {
    const sent = volley.map((request) => settle(request, this.known));
    const answers = await this.#exchange(sent);
    for (const answer of answers)
      if (answer.status === 200) this.known.learn(objectOf(answer.body.toString()) ?? {});
    const refused = sent.filter((one, i) => answers[i] !== undefined && changesNothing(one, answers[i]));
    for (let left = TRIES; left > 0; left--) {
      const { version } = this.#watch;
      const again = await this.#exchange(refused);
      // What has become possible meanwhile may change something.
      const still = refused.every((one, i) => again[i] !== undefined && changesNothing(one, again[i]));
      if (!still || this.#watch.version === version) return;
    }
    throw new Error(`refusals and reads have written:\n${refused.map(describe).join("\n")}`);
  }

  /** Every request is answered before a fault is told, so that the next volley begins with quiet connections. */
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
    this.tally.count(sent.request, answer.status);
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
  readonly memoryMib: readonly number[];
  readonly tookMs: number;
};

/**
 * Fires until `requests` are answered. Throws with seed, path and the smallest volley that fails; for each of those a
 * program that has ended is started anew.
 */
export async function fireVolleys(
  requests: number,
  seed: number,
  secrets: Readonly<Record<string, string>>,
  progress: (line: string) => void,
): Promise<Volleys> {
  const tally = new Tally();
  const memory: number[] = [];
  const startedMs = performance.now();
  await using target = await Target.start(tally, secrets);
  const property = fc.asyncProperty(volleyOfRequests, (volley) => target.fire(volley));
  for (let part = 0; tally.total < requests; part++) {
    await fc.assert(property, { seed: seed + part, numRuns: 20 });
    memory.push(target.memoryMib);
    if (part % 10 === 0) progress(`${tally.total} requests, ${memory.at(-1)?.toFixed(0)} MiB`);
  }
  return { tally, memoryMib: memory, tookMs: performance.now() - startedMs };
}
