/**
 * Batches of 500 of whatever a key that is bound to a node may write, each kind beside what makes it dear: how long another
 * client waits meanwhile, at the same hub on SQLite, and at another hub of the same PostgreSQL, whose write lock the
 * batches hold while they are decided.
 */
import { tmpdir } from "node:os";
import { Hub, TempDir, listOf } from "../../test/e2e/program.ts";
import { POSTGRES_PROGRAMS, PostgresServer } from "../../test/support/postgres.ts";
import { type Beat, DELAY_MAX_MS, type Scene, delayAt, measureDelays, withScene } from "./fairness.ts";
import { type Figure, type Section, notRun } from "./section.ts";

const KIND_MS = 3_000;
const BATCH = 500;
/** Of what lies beside: as many as a machine that others use decides in the time of one batch. */
const SEED_BATCH = 50;

type Request = { readonly path: string; readonly body: object };
type Kind = {
  readonly path: string;
  readonly body: (i: number, ids: readonly string[]) => object;
  /** What there is before. With their ids, if they are tasks. */
  readonly beside?: readonly [count: number, request: (i: number) => Request];
};

const task = (more: object = {}): Request => ({
  path: "task/create",
  body: { title: "t", description: "d", group: "g", ...more },
});
const greedy = { node_id: "greedy" };
const list = <T>(count: number, item: (i: number) => T): readonly T[] =>
  Array.from({ length: count }, (_, i) => item(i));
let fresh = 0;

/** By name. Each was dear once: a walk over all of something for each request. */
export const KINDS: Readonly<Record<string, Kind>> = {
  "task/create": { path: "task/create", body: () => task().body },
  "task/create in new lanes": { path: "task/create", body: () => task({ limit_key: `k${fresh++}` }).body },
  "task/next": { path: "task/next", body: () => greedy, beside: [2_000, () => task()] },
  "task/next in 490 lanes": {
    path: "task/next",
    body: () => greedy,
    beside: [490, (i) => task({ limit_key: `k${i}` })],
  },
  "task/next of 64 types": {
    path: "task/next",
    body: (i) => ({ ...greedy, task_types: list(64, (j) => `type ${j} ${i}`) }),
  },
  "task/update to other lanes": {
    path: "task/update",
    body: (i, ids) => ({ task_id: ids[i % ids.length], limit_key: `k${fresh++ % 490}`, priority: i % 3 }),
    beside: [500, () => task()],
  },
  "group/cancel": {
    path: "group/cancel",
    body: () => ({ group: "g" }),
    beside: [500, () => task()],
  },
  "group/cancel and group/retry": {
    path: "group/retry",
    body: () => ({ group: "g" }),
    beside: [500, () => task()],
  },
  "note/put": {
    path: "note/put",
    body: () => ({ key: `n${fresh++ % 900}`, text: String(fresh) }),
    beside: [900, (i) => ({ path: "note/put", body: { key: `n${i}`, text: "x" } })],
  },
  "lease/acquire of globs": {
    path: "lease/acquire",
    body: () => ({ ...greedy, name: `${"*a".repeat(95)}Z`, shared: false }),
    beside: [
      90,
      (i) => ({ path: "lease/acquire", body: { ...greedy, name: `${"*a".repeat(95)}${i}`, ttl_s: 3_600 } }),
    ],
  },
  "node/register with 64 capabilities": {
    path: "node/register",
    body: () => ({ ...greedy, name: `n${fresh}`, capabilities: list(64, (j) => `c${j}-${fresh++}`) }),
  },
  "message/send": {
    path: "message/send",
    body: () => ({ from_node: "greedy", to_node: "greedy", content: "c" }), // whoever has many counts them at each heartbeat
  },
  "schedule/put": {
    path: "schedule/put",
    body: () => ({ name: "s", cron: `${fresh++ % 60} 0 29 2 *`, tz: "America/Santiago", task: task().body }),
  },
};

/** Sends the requests as the key does, and returns the ids of the tasks that it created. @throws {Error} one was refused */
async function send({ hub, secret }: Scene, requests: readonly Request[]): Promise<readonly string[]> {
  const ids: string[] = [];
  for (let rest = requests; rest.length > 0;) {
    const headers = { "X-Matrix-Secret": secret };
    const { body } = await hub.post("/batch", { requests: rest.slice(0, SEED_BATCH) }, { headers });
    const answers = listOf(body["answers"]);
    const full = answers.findIndex(({ status }) => status === 503);
    const done = answers.slice(0, full < 0 ? answers.length : full);
    const refused = done.find(({ status }) => status !== 200);
    if (refused || done.length === 0) throw new Error(JSON.stringify(refused ?? body));
    ids.push(...done.map((answer) => String(Object(answer["body"]).task_id)));
    rest = rest.slice(done.length);
  }
  return ids;
}

/** The heartbeats of another client at `probed`, of all kinds together and of each. */
export async function measureDecisions(
  scene: Scene,
  probed: Hub,
  ms: number,
  progress: (line: string) => void,
): Promise<ReadonlyMap<string, readonly Beat[]>> {
  const found = new Map<string, readonly Beat[]>();
  for (const [name, { path, body, beside }] of Object.entries(KINDS)) {
    const ids = beside ? await send(scene, list(beside[0], beside[1])) : [];
    const requests = list(BATCH, (i) => ({ path, body: body(i, ids) }));
    const costly = { path: "batch", body: JSON.stringify({ requests }) };
    const { beats, requests: sent, statuses } = await measureDelays(scene, costly, 1, ms, probed);
    progress(`${name}: ${sent} batches ${JSON.stringify(statuses)}, ${words(beats)}`);
    found.set(name, beats);
    await cancelAll(scene); // the next kind finds no unfinished task
  }
  return found;
}

async function cancelAll({ hub, secret }: Scene): Promise<void> {
  for (let left = 1; left > 0;) {
    const init = { headers: { "X-Matrix-Secret": secret } };
    const { status, body } = await hub.post("/group/cancel", { group: "g" }, init);
    left = status === 200 ? Number(body["left"]) : 0; // no task was created yet
  }
}

/** The hub's own time, and the whole, which is longer on a machine that others use. */
function words(beats: readonly Beat[]): string {
  const at = (of: (beat: Beat) => number): string =>
    [0.5, 0.99, 1].map((share) => delayAt(beats, of, share).toFixed(0)).join(" / ");
  return `${at(({ cpuMs }) => cpuMs)}; ${at(({ tookMs }) => tookMs)} ms`;
}

function figure(where: string, found: ReadonlyMap<string, readonly Beat[]>): Figure {
  const p99Ms = delayAt([...found.values()].flat(), ({ cpuMs }) => cpuMs, 0.99);
  const slowest = [...found].toSorted(([, a], [, b]) => longest(b) - longest(a))[0];
  return {
    what: `Batches of ${BATCH} of ${found.size} kinds of requests of one bound key: the hub's own time while a heartbeat of another waits ${where}: p50 / p99 / longest; with the waits for a processor and for the database`,
    value: `${words([...found.values()].flat())}; longest: ${slowest?.[0] ?? ""}`,
    goal: `p99 <= ${DELAY_MAX_MS} ms`,
    held: p99Ms <= DELAY_MAX_MS,
  };
}

const longest = (beats: readonly Beat[]): number => delayAt(beats, ({ cpuMs }) => cpuMs, 1);

async function run(scale: number, _: number, progress: (line: string) => void): Promise<readonly Figure[]> {
  const ms = Math.max(500, KIND_MS * scale);
  const figures = [
    figure(
      "at the same hub, on SQLite",
      await withScene("A", (scene) => measureDecisions(scene, scene.hub, ms, progress)),
    ),
  ];
  const elsewhere = "Batches at one hub: a heartbeat at another hub of the same PostgreSQL";
  if (POSTGRES_PROGRAMS === null)
    return [...figures, notRun(elsewhere, "no PostgreSQL of our own can be started here")];
  await using postgres = await PostgresServer.start(tmpdir(), {});
  const env = { LUXHUB_DATABASE: postgres.url };
  using dir = new TempDir();
  const found = await withScene(
    "A",
    async (scene) => {
      await using other = await Hub.start({ data: dir.join("other"), env });
      const beats = await measureDecisions(scene, other, ms, progress);
      await other.stop();
      return beats;
    },
    [],
    env,
  );
  return [...figures, figure("at another hub of the same PostgreSQL", found)];
}

export const DECISIONS: Section = {
  name: "decisions",
  title: "Batches of one key that are dear to decide",
  limitMs: 300_000,
  run,
};
