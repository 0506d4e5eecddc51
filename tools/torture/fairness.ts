/**
 * Fairness: one key that is bound to a node sends the dearest requests that there are, from one connection and from
 * eight. What another client notices, which sends a heartbeat every 50 ms; whether the periodic work goes on; and how
 * many bytes of stored responses the key leaves behind.
 */
import { Database } from "bun:sqlite";
import { readFileSync } from "node:fs";
import {
  ANSWERS_OF_KEY_MAX_BYTES,
  DESCRIPTION_MAX_BYTES,
  RESULT_EXTRA_MAX_BYTES,
} from "../../src/domain/limits.ts";
import { Connection, encodeRequest } from "../bench/wire.ts";
import { Hub, TempDir, listOf, run as runProgram } from "../../test/e2e/program.ts";
import { forEach } from "./crowd.ts";
import type { Figure, Section } from "./section.ts";

const PROBE_EVERY_MS = 50;
/** A new hub is slower for some seconds, because its code is not compiled yet: these are reported apart. */
const COLD_MS = 1_000;
const WARM_UP_MS = 2_000;
const LOAD_MS = 20_000;
const CHORES_MS = 32_000;
const CALLERS = [1, 8] as const;
/** No request of one caller may delay the others by more than this. */
export const DELAY_MAX_MS = 100;
const DEPENDENCIES = 100;
const MIB = 1024 * 1024;

export type Beat = {
  /** When it was sent, from the start of the load. */
  readonly atMs: number;
  readonly tookMs: number;
  /** The processor time of the hub between the request and its response: on a machine that others use, the delay that the
   * hub itself causes. */
  readonly cpuMs: number;
};

/** One request of the load, ready to be sent. `key`: sent with an Idempotency-Key of its own each time. */
type Costly = { readonly path: string; readonly body: string; readonly withKey?: boolean };

/** Beyond its quota the load would only be refused, which costs little. */
const NO_QUOTA = ["--quota-tasks", "1000000", "--quota-bytes", "1000GiB"];

export type Scene = { readonly hub: Hub; readonly data: string; readonly secret: string };

export async function withScene<T>(
  variant: "A" | "B",
  part: (scene: Scene) => Promise<T>,
  args: readonly string[] = [],
  env: Readonly<Record<string, string>> = {},
): Promise<T> {
  using dir = new TempDir();
  const data = dir.join("data");
  await using hub = await Hub.start({ data, args: ["--variant", variant, ...NO_QUOTA, ...args], env });
  for (const nodeId of ["greedy", "probe"]) await hub.register(nodeId);
  const added = await runProgram(["keys", "add", "robot", "--node", "greedy", "--data", data], { env });
  const result = await part({ hub, data, secret: added.stdout.trim() });
  await hub.stop();
  return result;
}

export async function createTask({ hub }: Scene, more: object = {}): Promise<string> {
  const { status, body } = await hub.post("/task/create", { title: "t", description: "d", ...more });
  if (status !== 200) throw new Error(`create: ${JSON.stringify(body)}`);
  return String(body["task_id"]);
}

async function createTasks(scene: Scene, count: number, more: object = {}): Promise<readonly string[]> {
  const ids: string[] = [];
  await forEach(count, async (i) => void (ids[i] = await createTask(scene, more)));
  return ids;
}

type Asked = { readonly path: string; readonly body: object };

function batchOf(count: number, item: (i: number) => Asked): Costly {
  return {
    path: "batch",
    body: JSON.stringify({ requests: Array.from({ length: count }, (_, i) => item(i)) }),
  };
}

/** The kinds of load by name: each prepares the hub and returns the request that is then repeated. */
export const LOADS: readonly {
  readonly name: string;
  readonly variant: "A" | "B";
  readonly prepare: (scene: Scene) => Promise<Costly>;
}[] = [
  {
    name: `batch of 250 x (cancel, retry) of tasks with ${DEPENDENCIES} dependencies`,
    variant: "A",
    prepare: async (scene) => {
      const dependsOn = await createTasks(scene, DEPENDENCIES);
      const ids = await createTasks(scene, 250, { depends_on: dependsOn, creator_node: "greedy" });
      return batchOf(500, (i) => ({
        path: i % 2 ? "task/retry" : "task/cancel",
        body: { task_id: ids[i >> 1] },
      }));
    },
  },
  {
    name: `batch of 200 x create with ${DEPENDENCIES} dependencies`,
    variant: "A",
    prepare: async (scene) => {
      const dependsOn = await createTasks(scene, DEPENDENCIES);
      return batchOf(200, () => ({
        path: "task/create",
        body: { title: "t", description: "d", depends_on: dependsOn },
      }));
    },
  },
  {
    name: "batch of 120 x claim of tasks of 64 KiB, with an Idempotency-Key",
    variant: "A",
    prepare: async (scene) => {
      const ids = await createTasks(scene, 120, { description: "z".repeat(DESCRIPTION_MAX_BYTES) });
      // The heartbeat is a change, so that the answer is stored each time.
      const claims = batchOf(121, (i) =>
        i === 0
          ? { path: "node/heartbeat", body: { node_id: "greedy" } }
          : { path: "task/claim", body: { task_id: ids[i - 1], node_id: "greedy" } },
      );
      return { ...claims, withKey: true };
    },
  },
  {
    name: "batch of 16 x repeat of complete with an exponent of 64,000 digits",
    variant: "A",
    prepare: async (scene) => {
      const ids = await createTasks(scene, 16);
      for (const id of ids) await scene.hub.post("/task/claim", { task_id: id, node_id: "greedy" });
      const completeAll = (e: "e" | "E"): string => {
        const number = `1${e}${"9".repeat(RESULT_EXTRA_MAX_BYTES - 1_000)}`;
        const items = ids.map(
          (id) =>
            `{"path":"task/complete","body":{"task_id":"${id}","node_id":"greedy",` +
            `"result":{"problem":"p","improvement":"i","lesson":"l","n":${number}}}}`,
        );
        return `{"requests":[${items.join()}]}`;
      };
      const done = await scene.hub.call("POST", "/batch", { body: completeAll("E") });
      if (done.status !== 200) throw new Error(`batch: ${JSON.stringify(done.body)}`);
      return { path: "batch", body: completeAll("e") }; // the same values in other words
    },
  },
  {
    name: "batch of 500 x create of a type whose 20 takers are the busiest of 10,000 nodes",
    variant: "B",
    prepare: async (scene) => {
      await busyTakers(scene, 10_000);
      return batchOf(500, () => ({
        path: "task/create",
        body: { title: "t", description: "d", task_type: "rare" },
      }));
    },
  },
];

/** Registers `nodes` idle nodes of another type, and 20 busy ones that take the type `rare`. */
async function busyTakers({ hub }: Scene, nodes: number): Promise<void> {
  const batch = async (requests: readonly Asked[]): Promise<void> => {
    const { status, body } = await hub.post("/batch", { requests });
    if (status !== 200) throw new Error(`batch: ${JSON.stringify(body)}`);
  };
  for (let at = 0; at < nodes; at += 100)
    await batch(
      Array.from({ length: Math.min(100, nodes - at) }, (_, i) => ({
        path: "node/register",
        body: { node_id: `n${at + i}`, name: "n", capabilities: "common" },
      })),
    );
  await batch(
    Array.from({ length: 20 }, (_, i) => ({
      path: "node/register",
      body: { node_id: `r${i}`, name: "r", capabilities: "rare" },
    })),
  );
  await batch(
    Array.from({ length: 100 }, () => ({
      path: "task/create",
      body: { title: "t", description: "d", task_type: "rare" },
    })),
  );
}

export async function measureRareCreates(scene: Scene, nodes: number, count: number): Promise<number> {
  await busyTakers(scene, nodes);
  const tookMs: number[] = [];
  for (let i = 0; i < count; i++) {
    const startedMs = performance.now();
    await createTask(scene, { task_type: "rare" });
    tookMs.push(performance.now() - startedMs);
  }
  return tookMs.toSorted((a, b) => a - b)[count >> 1] ?? Number.NaN;
}

export type LoadReport = {
  readonly beats: readonly Beat[];
  readonly requests: number;
  /** How the load's own requests, and those within their batches, were answered: each status and its count. */
  readonly statuses: Readonly<Record<string, number>>;
};

/** Repeats a request from `callers` connections for a time, and measures the heartbeats of another client meanwhile. */
export async function measureDelays(
  { hub, secret }: Scene,
  { path, body, withKey = false }: Costly,
  callers: number,
  ms: number,
  probed = hub,
): Promise<LoadReport> {
  const statuses: Record<string, number> = {};
  const count = (status: string): void => void (statuses[status] = (statuses[status] ?? 0) + 1);
  const endMs = performance.now() + ms;
  let requests = 0;
  const caller = async (): Promise<void> => {
    for (let isFirst = true; performance.now() < endMs; isFirst = false) {
      const headers: Record<string, string> = { "X-Matrix-Secret": secret };
      if (withKey) headers["Idempotency-Key"] = Bun.randomUUIDv7();
      const response = await fetch(`${hub.api}/${path}`, { method: "POST", body, headers });
      const bytes = Buffer.from(await response.arrayBuffer());
      requests++;
      count(String(response.status));
      // Not of every response: this process also measures.
      if (isFirst)
        for (const [, status] of bytes.toString("latin1").matchAll(/\{"status":(\d+),"body"/g))
          count(`in ${status}`);
    }
  };
  const load = Promise.all(Array.from({ length: callers }, caller));
  const beats = await probe(probed, ms, hub.pid);
  await load;
  return { beats, requests, statuses };
}

/**
 * Sends a heartbeat each PROBE_EVERY_MS, without waiting for the one before it.
 * @param pid of the hub that has the load
 */
async function probe(hub: Hub, ms: number, pid: number): Promise<readonly Beat[]> {
  const heartbeat = encodeRequest("POST", "/api/v1/node/heartbeat", hub.secret, `{"node_id":"probe"}`);
  const beganMs = performance.now();
  const beats: Beat[] = [];
  const idle: Connection[] = [];
  const send = async (): Promise<void> => {
    const connection = idle.pop() ?? (await Connection.open(hub.port));
    const startedMs = performance.now();
    const startedCpuMs = mainThreadMs(pid);
    const { status } = await connection.exchange(heartbeat);
    beats.push({
      atMs: startedMs - beganMs,
      tookMs: performance.now() - startedMs,
      cpuMs: mainThreadMs(pid) - startedCpuMs,
    });
    if (status !== 200) throw new Error(`the heartbeat was answered ${status}`);
    idle.push(connection);
  };
  const sent: Promise<void>[] = [];
  for (const endMs = performance.now() + ms; performance.now() < endMs; await Bun.sleep(PROBE_EVERY_MS))
    sent.push(send());
  await Promise.all(sent);
  for (const connection of idle) connection.close();
  return beats;
}

function mainThreadMs(pid: number): number {
  return Number(readFileSync(`/proc/${pid}/task/${pid}/schedstat`, "utf8").split(" ")[0]) / 1e6;
}

export type ChoresReport = {
  /** The chores that were due and did not run for this long at some time, in seconds, the oldest first. */
  readonly oldestSeconds: number;
  readonly oldest: string;
  readonly created: number;
  /** The most bytes of stored responses that the key had at any time. */
  readonly storedBytes: number;
};

/** Chores that run in each sweep. The others have periods of their own. */
const EVERY_SWEEP = /^(database|files|clock|nodes|tasks|put-backs.*|messages|broadcasts|balance|answers)$/;

/**
 * The bound key creates tasks that expire at once, as fast as it can, and at the same time lets the hub store large
 * responses.
 */
export async function measureChores(scene: Scene, callers: number, ms: number): Promise<ChoresReport> {
  const { hub, data, secret } = scene;
  const storing = await LOADS[2]?.prepare(scene);
  if (!storing) throw new Error("there is no such load");
  const endMs = performance.now() + ms;
  let created = 0;
  const creator = async (): Promise<void> => {
    for (let aheadMs = 150; performance.now() < endMs || created === 0;) {
      const expiresAt = new Date(Date.now() + aheadMs).toISOString();
      const item = { path: "task/create", body: { title: "t", description: "d", expires_at: expiresAt } };
      const requests = Array.from({ length: 500 }, () => item);
      const init = { headers: { "X-Matrix-Secret": secret } };
      const { body } = await hub.post("/batch", { requests }, init);
      const accepted = listOf(body["answers"]).filter((one) => one["status"] === 200).length;
      if (accepted === 0) aheadMs *= 2; // on a busy machine that time has passed before the hub looks
      created += accepted;
    }
  };
  const storer = measureDelays(scene, storing, callers, ms);
  const load = Promise.all(Array.from({ length: callers }, creator));
  const db = new Database(`${data}/luxhub.db`, { readonly: true });
  let oldestSeconds = 0;
  let oldest = "";
  let storedBytes = 0;
  const lookAtAnswers = (): void => {
    const [row] = db
      .query<{ n: number | null }, []>(
        "SELECT max(n) AS n FROM (SELECT sum(bytes) AS n FROM answers GROUP BY key_id)",
      )
      .all();
    storedBytes = Math.max(storedBytes, row?.n ?? 0);
  };
  while (performance.now() < endMs) {
    await Bun.sleep(500);
    lookAtAnswers();
    for (const [name, seconds] of await choreAges(hub))
      if (EVERY_SWEEP.test(name) && seconds > oldestSeconds) [oldest, oldestSeconds] = [name, seconds];
  }
  await Promise.all([load, storer]);
  lookAtAnswers(); // a slow hub has stored its first one only now
  db.close();
  return { oldestSeconds, oldest, created, storedBytes };
}

async function choreAges(hub: Hub): Promise<readonly [string, number][]> {
  const response = await fetch(`http://127.0.0.1:${hub.port}/metrics`, {
    headers: { "X-Matrix-Secret": hub.secret },
    keepalive: false,
  });
  const lines = (await response.text()).matchAll(
    /luxhub_chore_last_success_timestamp_seconds\{chore="([^"]+)"\} ([\d.]+)/g,
  );
  return [...lines].map(([, name = "", at]) => [name, Date.now() / 1000 - Number(at)]);
}

/** The p99 of the hub's processor time while a heartbeat of another client waits, with so many callers. */
async function delays(
  { name, variant, prepare }: (typeof LOADS)[number],
  callers: number,
  ms: number,
  progress: (line: string) => void,
): Promise<Figure> {
  const { beats, requests, statuses } = await withScene(variant, async (scene) => {
    const costly = await prepare(scene);
    return measureDelays(scene, costly, callers, WARM_UP_MS + ms);
  });
  progress(`${callers} x ${name}: ${requests} requests ${JSON.stringify(statuses)}`);
  const cold = beats.filter(({ atMs }) => atMs < COLD_MS);
  const warm = beats.filter(({ atMs }) => atMs >= WARM_UP_MS);
  const p99Ms = delayAt(warm, ({ cpuMs }) => cpuMs, 0.99);
  return {
    what: `${name}; ${callers} at once: the hub's own time while a heartbeat of another waits: p50 / p99 / longest; p99 of the first second; p99 with the waits for a processor, ms`,
    value: [
      [delayAt(warm, ({ cpuMs }) => cpuMs, 0.5), p99Ms, delayAt(warm, ({ cpuMs }) => cpuMs, 1)],
      [delayAt(cold, ({ cpuMs }) => cpuMs, 0.99)],
      [delayAt(warm, ({ tookMs }) => tookMs, 0.99)],
    ]
      .map((numbers) => numbers.map((n) => n.toFixed(0)).join(" / "))
      .join("; "),
    goal: `p99 <= ${DELAY_MAX_MS}`,
    held: p99Ms <= DELAY_MAX_MS,
  };
}

/** The value below which this share of the heartbeats is; of 1: the highest. */
export function delayAt(beats: readonly Beat[], of: (beat: Beat) => number, share: number): number {
  const sorted = beats.map(of).toSorted((a, b) => a - b);
  return sorted[Math.min(Math.floor(sorted.length * share), sorted.length - 1)] ?? Number.NaN;
}

async function run(scale: number, _: number, progress: (line: string) => void): Promise<readonly Figure[]> {
  const figures: Figure[] = [];
  for (const load of LOADS)
    for (const callers of CALLERS)
      figures.push(await delays(load, callers, Math.max(1_000, LOAD_MS * scale), progress));
  for (const nodes of [10_000, 100_000].map((whole) => Math.ceil(whole * scale))) {
    const p50Ms = await withScene("B", (scene) => measureRareCreates(scene, nodes, 50));
    figures.push({
      what: `Create of a type whose 20 takers are the busiest of ${nodes} nodes, p50, ms`,
      value: p50Ms.toFixed(1),
      goal: "",
      held: true,
    });
  }
  const chores = await withScene("A", (scene) => measureChores(scene, 3, Math.max(4_000, CHORES_MS * scale)));
  figures.push(
    {
      what: `Tasks that expire at once, ${chores.created} of them: the longest time without a run of a chore, s`,
      value: `${chores.oldestSeconds.toFixed(1)} (${chores.oldest})`,
      goal: "<= 15",
      held: chores.oldestSeconds <= 15,
    },
    {
      what: "Meanwhile: the most bytes of stored responses of one key, MiB",
      value: (chores.storedBytes / MIB).toFixed(0),
      goal: `<= ${ANSWERS_OF_KEY_MAX_BYTES / MIB}`,
      held: chores.storedBytes <= ANSWERS_OF_KEY_MAX_BYTES,
    },
  );
  return figures;
}

export const FAIRNESS: Section = {
  name: "fairness",
  title: "Costly requests of one caller",
  limitMs: 900_000,
  run,
};
