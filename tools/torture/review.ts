/**
 * Held rewards under kill -9: results are passed, rejected, judged by two at once, by an agent, or by their deadline,
 * while the hubs are killed at random. At the end the ledger has to have settled each hold exactly once: paid, or given
 * back. Of a task with a quorum, two of three copies agree and share the reward.
 *
 * The seed repeats the moments, though not the machine's timing.
 */
import { tmpdir } from "node:os";
import { LuxHub, LuxHubError } from "../../src/client/luxhub.ts";
import { Hub, SECRET, TempDir, run, until } from "../../test/e2e/program.ts";
import { HANG_MS } from "../../test/support/hang.ts";
import { OWN_HOST, freePorts } from "../../test/support/keeper.ts";
import { POSTGRES_PROGRAMS, PostgresServer } from "../../test/support/postgres.ts";
import { randomFrom } from "./random.ts";
import { type Figure, type Section, notRun } from "./section.ts";

/** What becomes of a result. */
const WAYS = [
  "pass",
  "reject",
  "both at once",
  "agent",
  "deadline: pay",
  "deadline: reject",
  "quorum",
] as const;
type Way = (typeof WAYS)[number];

const WORKERS = 6;
const KILL_AFTER_MS = { least: 50, most: 600 };
/** Then the hubs live on, so that the work comes to its end on a slow machine too. */
const TASKS_PER_KILL = 2;
const DEADLINE_S = 1;
const REWARD = 2;
const RESULT = { problem: "p", improvement: "i", lesson: "none" };
const FINISHED: readonly string[] = ["completed", "failed"];

export type ReviewReport = {
  /** What was found wrong. */
  readonly words: string[];
  hubsKilled: number;
  /** Entries of the ledger by kind. */
  readonly entries: Record<string, number>;
  /** Tasks by the state of their last review. */
  readonly states: Record<string, number>;
};

/** A verdict that the hub has acknowledged. */
type Judged = { readonly taskId: string; readonly verdict: "pass" | "reject" };

/** Runs so many tasks to their end. */
export async function runReviews(
  tasks: number,
  seed: number,
  onPostgres: boolean,
  progress: (line: string) => void,
): Promise<ReviewReport> {
  const random = randomFrom(seed);
  const report: ReviewReport = { words: [], hubsKilled: 0, entries: {}, states: {} };
  using dir = new TempDir();
  const postgres = onPostgres ? await PostgresServer.start(tmpdir()) : null;
  const ports = freePorts(postgres ? 2 : 1, OWN_HOST);
  const hubs: Hub[] = [];
  const startHub = async (i: number): Promise<void> => {
    const env: Record<string, string> = { LUXHUB_PORT: String(ports[i]) };
    if (postgres) env["LUXHUB_DATABASE"] = postgres.url;
    hubs[i] = await Hub.start({ data: dir.join(`hub-${i}`), host: OWN_HOST, env });
  };
  // A pause as long as a killed hub lives would miss it each time.
  const retry = { forMs: HANG_MS, maxPauseMs: 500 };
  const clients = ports.map(
    (port) => new LuxHub({ url: `http://${OWN_HOST}:${port}`, secret: SECRET, retry }),
  );
  const client = (): LuxHub => clients[Math.floor(random() * clients.length)] ?? must(clients[0]);
  try {
    for (const i of ports.keys()) await startHub(i);
    for (const name of ["boss", "judge", ...Array.from({ length: WORKERS }, (_, i) => `w${i}`)])
      await client().nodes.register({ node_id: name, name, capabilities: name === "judge" ? ["judge"] : [] });
    let isOver = false;
    const chaos = (async () => {
      while (!isOver && report.hubsKilled < tasks / TASKS_PER_KILL) {
        const { least, most } = KILL_AFTER_MS;
        await Bun.sleep(least + random() * (most - least)); // the moment is what this is about
        const i = Math.floor(random() * hubs.length);
        await hubs[i]?.[Symbol.asyncDispose]();
        report.hubsKilled++;
        await startHub(i);
      }
    })();
    const judged: Judged[] = [];
    const ids: string[] = [];
    const agent = judge(client, () => isOver);
    try {
      await Promise.all(
        Array.from({ length: WORKERS }, async (_, w) => {
          for (let i = w; i < tasks; i += WORKERS) {
            const way = WAYS[i % WAYS.length] ?? "pass";
            if (way === "quorum") await runQuorum(client, w, report.words);
            else ids.push(await runTask(client, `w${w}`, way, judged));
          }
        }),
      );
      progress(`${tasks} tasks settled, ${report.hubsKilled} hubs killed`);
    } finally {
      isOver = true;
      await Promise.all([chaos, agent]);
    }
    await check(client(), ids, judged, report);
    for (const hub of hubs) await hub.stop();
    const env = { LUXHUB_SECRET: SECRET, ...(postgres && { LUXHUB_DATABASE: postgres.url }) };
    const { code, stdout, stderr } = await run(["doctor", "--data", dir.join("hub-0")], { env });
    if (code !== 0) report.words.push(`doctor: ${stdout}${stderr}`);
  } finally {
    for (const hub of hubs) await hub[Symbol.asyncDispose]();
    await postgres?.remove();
  }
  return report;
}

function must<T>(value: T | undefined): T {
  if (value === undefined) throw new Error("there is no hub");
  return value;
}

/** Creates a task, does it, and waits until its review is settled. Returns its id. */
async function runTask(client: () => LuxHub, node_id: string, way: Way, judged: Judged[]): Promise<string> {
  const isLast = way === "deadline: reject";
  const { task_id } = await client().tasks.create({
    title: way,
    description: way,
    creator_node: "boss",
    lux_reward: REWARD,
    backoff_s: 0,
    max_attempts: isLast ? 1 : 5,
    review: way === "agent" ? "capability:judge" : "creator",
    review_within_s: way.startsWith("deadline") ? DEADLINE_S : 3_600,
    on_review_timeout: isLast ? "reject" : "pay",
  });
  for (let round = 0; ; round++) {
    await client().tasks.claim({ task_id, node_id });
    await client().tasks.complete({ task_id, node_id, result: RESULT });
    if (way === "pass" || (way === "reject" && round > 0)) await give(client(), task_id, "pass", judged);
    else if (way === "reject") await give(client(), task_id, "reject", judged);
    else if (way === "both at once")
      await Promise.all([give(client(), task_id, "pass", judged), give(client(), task_id, "reject", judged)]);
    let isOpen = false;
    await until(async () => {
      const { task } = await client().tasks.get({ task_id });
      isOpen = task.status === "open";
      return isOpen || (FINISHED.includes(task.status) && task.waiting_for === null);
    });
    if (!isOpen) return task_id;
  }
}

/** Three nodes do it, the first of them wrongly. Its copies are paid once, all of the reward together. */
async function runQuorum(client: () => LuxHub, w: number, words: string[]): Promise<void> {
  const quorum = { results: 2, of: 3 };
  const asked = { title: "quorum", description: "d", lux_reward: REWARD, backoff_s: 0, quorum };
  const { task_id } = await client().tasks.create(asked);
  const get = async () => (await client().tasks.get({ task_id })).task;
  for (let i = 0; i < 3; i++) {
    await until(async () => ((await get()).quorum?.copies.length ?? 0) > i);
    const copy = (await get()).quorum?.copies[i] ?? "";
    const node_id = `w${(w + i) % WORKERS}`;
    await client().tasks.claim({ task_id: copy, node_id });
    await client().tasks.complete({ task_id: copy, node_id, result: { ...RESULT, output: i === 0 } });
  }
  await until(async () => (await get()).status === "completed");
  const { quorum: decided, result } = await get();
  let paid = 0;
  for (const copy of decided?.copies ?? []) {
    const { task } = await client().tasks.get({ task_id: copy });
    paid += task.lux_reward;
  }
  const agreed = decided?.agreed.length ?? 0;
  if (paid !== REWARD || agreed !== 2 || result?.["output"] !== false)
    words.push(`quorum ${task_id}: ${agreed} agree, their copies have ${paid} LUX`);
}

async function give(
  hub: LuxHub,
  task_id: string,
  verdict: "pass" | "reject",
  judged: Judged[],
): Promise<void> {
  try {
    await hub.tasks.review({ task_id, verdict });
    judged.push({ taskId: task_id, verdict });
  } catch (error) {
    // The other one was first, and the task may be open again by now.
    const known = ["review_decided", "not_in_review"];
    if (!(error instanceof LuxHubError && known.includes(error.code))) throw error;
  }
}

/** The agent that reviews: every third result is rejected. */
async function judge(client: () => LuxHub, isOver: () => boolean): Promise<void> {
  for (let i = 0; !isOver(); i++) {
    const { task } = await client().tasks.next({ node_id: "judge", resume: true, task_types: ["judge"] });
    if (task === null) {
      await Bun.sleep(20);
      continue;
    }
    const verdict = i % 3 === 2 ? "reject" : "pass";
    try {
      const result = { ...RESULT, verdict };
      await client().tasks.complete({ task_id: task.task_id, node_id: "judge", result });
    } catch (error) {
      if (!(error instanceof LuxHubError)) throw error; // it is not needed any more
    }
  }
}

/** Holds the ledger against the tasks and the verdicts. */
async function check(
  hub: LuxHub,
  ids: readonly string[],
  judged: readonly Judged[],
  report: ReviewReport,
): Promise<void> {
  const kinds = new Map<string, string[]>(ids.map((id) => [id, []]));
  for (let since = 0; ;) {
    const { entries } = await hub.lux.entries({ since, limit: 1_000 });
    for (const { kind, task_id } of entries) {
      const ofTask = kinds.get(task_id ?? "");
      if (!ofTask) continue; // the copies of a quorum are paid without a hold
      ofTask.push(kind);
      report.entries[kind] = (report.entries[kind] ?? 0) + 1;
    }
    since = entries.at(-1)?.seq ?? since;
    if (entries.length === 0) break;
  }
  for (const task_id of ids) {
    const { task } = await hub.tasks.get({ task_id });
    const state = task.review?.state ?? "none";
    report.states[state] = (report.states[state] ?? 0) + 1;
    const of = (kind: string): number => (kinds.get(task_id) ?? []).filter((one) => one === kind).length;
    const [holds, rewards, returns] = [of("hold"), of("reward"), of("return")];
    const found = `${task.title} ${task_id}: ${state}, ${holds} holds, ${rewards} rewards, ${returns} returns`;
    if (holds !== rewards + returns) report.words.push(`not settled once: ${found}`);
    if (rewards !== Number(task.status === "completed")) report.words.push(`paid wrongly: ${found}`);
    if (returns !== task.attempts) report.words.push(`returned wrongly: ${found}, ${task.attempts} attempts`);
    const own = judged.filter(({ taskId }) => taskId === task_id);
    if (own.filter(({ verdict }) => verdict === "pass").length > rewards)
      report.words.push(`passed, and not paid: ${found}`);
    if (own.filter(({ verdict }) => verdict === "reject").length > returns)
      report.words.push(`rejected, and not given back: ${found}`);
  }
}

const TASKS = 240;

function figuresOf(engine: string, { words, hubsKilled, entries, states }: ReviewReport): readonly Figure[] {
  const counts = [entries["hold"], entries["reward"], entries["return"]].map((n) => n ?? 0);
  return [
    {
      what: `${engine}: hubs killed`,
      value: String(hubsKilled),
      goal: "some",
      held: hubsKilled > 0,
    },
    {
      what: `${engine}: tasks passed; rejected permanently`,
      value: `${states["passed"] ?? 0}; ${states["rejected"] ?? 0}`,
      goal: "",
      held: true,
    },
    {
      what: `${engine}: rewards held; paid; given back`,
      value: counts.join("; "),
      goal: "held = paid + given back",
      held: counts[0] === (counts[1] ?? 0) + (counts[2] ?? 0),
    },
    {
      what: `${engine}: rewards not settled once; verdicts lost`,
      value: String(words.length),
      goal: "0",
      held: words.length === 0,
    },
  ];
}

/** The long form. */
export const reviewSection: Section = {
  name: "review",
  title: "Rewards that are held for a review",
  limitMs: 20 * 60_000,
  async run(scale, seed, progress) {
    const tasks = Math.max(WAYS.length * 2, Math.round(TASKS * scale));
    const figures: Figure[] = [];
    for (const onPostgres of [false, true]) {
      const engine = onPostgres ? "two hubs on PostgreSQL" : "SQLite";
      if (onPostgres && POSTGRES_PROGRAMS === null) {
        figures.push(notRun(engine, "no PostgreSQL of our own can be started here"));
        continue;
      }
      const report = await runReviews(tasks, seed, onPostgres, (line) => progress(`${engine}: ${line}`));
      for (const words of report.words.slice(0, 20)) progress(words);
      figures.push(...figuresOf(engine, report));
    }
    return figures;
  },
};
