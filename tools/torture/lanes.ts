/**
 * Limits and resources under kill -9: workers that give up their tasks without a word and hubs that are killed at random,
 * on SQLite and on PostgreSQL with two hubs. At no moment do more tasks of a key run than its limit allows, nor does a node
 * hold tasks that require more than it has; at the end every task is completed.
 *
 * The seed repeats the moments, though not the machine's timing.
 */
import { tmpdir } from "node:os";
import { HubUnreachable, LuxHub, LuxHubError } from "../../src/client/luxhub.ts";
import { ADMIN_KEY, Hub, SECRET, TempDir, until } from "../../test/e2e/program.ts";
import { OWN_HOST, freePorts } from "../../test/support/keeper.ts";
import { POSTGRES_PROGRAMS, PostgresServer } from "../../test/support/postgres.ts";
import { randomFrom } from "./random.ts";
import { type Figure, type Section, notRun } from "./section.ts";

const LIMITS: Readonly<Record<string, number>> = { openai: 2, t: 3 };
const RESOURCES: Readonly<Record<string, number>> = { w0: 1, w1: 2, w2: 2, w3: 3 };
/** One of these keeps a task, and says nothing more. */
const GIVES_UP = 0.15;
const TIMEOUT_S = 1;
const KILL_AFTER_MS = { least: 300, most: 2_000 };
/** Then the hubs live on, so that the work comes to its end on a slow machine too. */
const TASKS_PER_KILL = 10;
const RESULT = { problem: "p", improvement: "i", lesson: "none" };

export type LanesReport = {
  /** What was found wrong. */
  readonly words: string[];
  hubsKilled: number;
  looks: number;
  /** The most tasks of each key that ran at once. */
  readonly most: Record<string, number>;
  givenUp: number;
};

/** Runs so many tasks to their end. */
export async function runLanes(
  tasks: number,
  seed: number,
  onPostgres: boolean,
  progress: (line: string) => void,
): Promise<LanesReport> {
  const random = randomFrom(seed);
  const report: LanesReport = { words: [], hubsKilled: 0, looks: 0, most: {}, givenUp: 0 };
  using dir = new TempDir();
  const postgres = onPostgres ? await PostgresServer.start(tmpdir()) : null;
  const ports = freePorts(postgres ? 2 : 1, OWN_HOST);
  const hubs: Hub[] = [];
  const startHub = async (i: number): Promise<void> => {
    const env: Record<string, string> = { LUXHUB_PORT: String(ports[i]) };
    if (postgres) env["LUXHUB_DATABASE"] = postgres.url;
    hubs[i] = await Hub.start({ data: dir.join(`hub-${i}`), host: OWN_HOST, env });
  };
  const clients = ports.map(
    (port) => new LuxHub({ url: `http://${OWN_HOST}:${port}`, secret: SECRET, adminKey: ADMIN_KEY }),
  );
  const client = (): LuxHub => {
    const one = clients[Math.floor(random() * clients.length)] ?? clients[0];
    if (!one) throw new Error("there is no hub");
    return one;
  };
  try {
    for (const i of ports.keys()) await startHub(i);
    const register = (node_id: string): Promise<unknown> =>
      client().nodes.register({ node_id, name: node_id, resources: { gpu: RESOURCES[node_id] ?? 0 } });
    for (const node_id of Object.keys(RESOURCES)) await register(node_id);
    for (const [key, running] of Object.entries(LIMITS)) await client().limits.set({ key, running });
    for (let i = 0; i < tasks; i++) {
      await client().tasks.create({
        title: `task ${i}`,
        description: "d",
        timeout_s: TIMEOUT_S,
        max_attempts: 100,
        backoff_s: 0,
        ...(i % 3 === 0 && { limit_key: "openai" }),
        ...(i % 3 === 1 && { task_type: "t" }),
        ...(i % 2 === 0 && { requires: { resources: { gpu: 1 } } }),
      });
    }
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
    const watch = (async () => {
      while (!isOver) await look(client(), report);
    })();
    const work = async (node_id: string): Promise<void> => {
      while (!isOver) {
        try {
          const { task } = await client().tasks.next({ node_id, wait: 1 });
          if (task === null) continue;
          if (random() < GIVES_UP) report.givenUp++;
          else await client().tasks.complete({ task_id: task.task_id, node_id, result: RESULT });
        } catch (error) {
          // The task was taken back; or the hub is gone, and what it handed out is taken back after its timeout.
          if (error instanceof HubUnreachable) await Bun.sleep(50);
          else if (!(error instanceof LuxHubError)) throw error;
        }
      }
    };
    const workers = Object.keys(RESOURCES).flatMap((node_id) => [work(node_id), work(node_id)]);
    try {
      await until(async () => {
        const { by_status } = await client().tasks.stats({});
        return by_status.completed === tasks;
      }, 240_000);
      progress(`${tasks} tasks completed, ${report.hubsKilled} hubs killed`);
    } finally {
      isOver = true;
      await Promise.all([chaos, watch, ...workers]);
    }
  } finally {
    for (const hub of hubs) await hub[Symbol.asyncDispose]();
    await postgres?.remove();
  }
  return report;
}

/** Holds what is assigned at one moment against the limits and the resources. */
async function look(hub: LuxHub, report: LanesReport): Promise<void> {
  const { tasks, total } = await hub.tasks.list({ status: "assigned", per_page: 50 });
  if (Number(total) > tasks.length) report.words.push(`${total} tasks are assigned: more than a page`);
  const running = Map.groupBy(tasks, ({ limit_key, task_type }) => limit_key ?? task_type ?? "");
  for (const [key, all] of running) {
    report.most[key] = Math.max(report.most[key] ?? 0, all.length);
    const most = LIMITS[key] ?? Infinity;
    if (all.length > most) report.words.push(`${all.length} tasks of ${key} run, and ${most} may`);
  }
  const held = Map.groupBy(tasks, ({ assigned_node }) => assigned_node ?? "");
  for (const [node, all] of held) {
    const used = all.reduce((sum, { requires }) => sum + (requires?.resources["gpu"] ?? 0), 0);
    const has = RESOURCES[node] ?? 0;
    if (used > has) report.words.push(`${node} has ${has} gpu, and its tasks use ${used}`);
  }
  report.looks++;
}

const TASKS = 600;

function figuresOf(
  engine: string,
  { words, hubsKilled, looks, most, givenUp }: LanesReport,
): readonly Figure[] {
  const peaks = Object.entries(LIMITS).map(([key, limit]) => `${key} ${most[key] ?? 0} of ${limit}`);
  return [
    { what: `${engine}: hubs killed`, value: String(hubsKilled), goal: "some", held: hubsKilled > 0 },
    {
      what: `${engine}: tasks given up without a word`,
      value: String(givenUp),
      goal: "some",
      held: givenUp > 0,
    },
    {
      what: `${engine}: most tasks of a key at once, in ${looks} looks`,
      value: peaks.join("; "),
      goal: "within the limits",
      held: words.length === 0,
    },
    {
      what: `${engine}: found wrong`,
      value: words.slice(0, 3).join(" | ") || "nothing",
      goal: "nothing",
      held: words.length === 0,
    },
  ];
}

export const lanesSection: Section = {
  name: "lanes",
  title: "Limits and resources while workers and hubs are killed",
  limitMs: 10 * 60_000,
  run: async (scale, seed, progress) => {
    const count = Math.max(30, Math.round(TASKS * scale));
    const onSqlite = figuresOf("SQLite", await runLanes(count, seed, false, progress));
    if (POSTGRES_PROGRAMS === null) return [...onSqlite, notRun("PostgreSQL: limits", "it is not installed")];
    return [...onSqlite, ...figuresOf("PostgreSQL", await runLanes(count, seed, true, progress))];
  },
};
