/**
 * Limits and resources under kill -9: workers that give up their tasks without a word and hubs that are killed at random,
 * on SQLite and on PostgreSQL with two hubs. Meanwhile a limit is set, changed and deleted, a key is held, and a type is
 * paused, again and again. At no moment do more tasks of a key run than its limit allows, nor does a node hold tasks that
 * require more than it has; nothing starts that is held or paused; at the end every task is completed.
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
/** Its limit is set, lowered, raised and deleted meanwhile. */
const CHANGED_KEY = "changed";
const HELD_KEY = "held";
const PAUSED_TYPE = "paused";
const CHANGE_AFTER_MS = { least: 20, most: 300 };
/** Looks without a pause would take most of the processor time. A task that was given up is seen for TIMEOUT_S. */
const LOOK_EVERY_MS = 20;
/** How far the clocks of the hubs and of this process may be apart. */
const CLOCKS_APART_MS = 50;
const KINDS: readonly Readonly<Record<string, string>>[] = [
  { limit_key: "openai" },
  { task_type: "t" },
  {},
  { limit_key: CHANGED_KEY },
  { limit_key: HELD_KEY },
  { task_type: PAUSED_TYPE },
];
const RESULT = { problem: "p", improvement: "i", lesson: "none" };

export type LanesReport = {
  readonly words: string[];
  hubsKilled: number;
  looks: number;
  readonly most: Record<string, number>;
  givenUp: number;
  changes: number;
};

/** What is in force, as far as this process knows for certain. */
class Rules {
  /** Of CHANGED_KEY, and since when; null: perhaps none. */
  limit: { readonly running: number; readonly since: number } | null = null;
  /** By limit key or type: when nothing of it may start. `to`: Infinity while it is not known. */
  readonly closed = new Map<string, { readonly from: number; readonly to: number }>();
}

/**
 * What is wrong with tasks that all were assigned at one moment, by rules that were in force all the time from `asked`
 * on.
 */
function faultsOf(
  tasks: readonly Started[],
  { limit, closed }: Pick<Rules, "limit" | "closed">,
  asked: number,
): readonly string[] {
  const isBetween = ({ started_at }: Started, from: number, to: number): boolean => {
    const at = started_at === null ? 0 : Date.parse(started_at);
    return at > from + CLOCKS_APART_MS && at < to - CLOCKS_APART_MS;
  };
  const early = tasks.filter((task) => {
    const { from, to } = closed.get(keyOf(task)) ?? { from: 0, to: 0 };
    return isBetween(task, from, Math.min(to, asked));
  });
  const words = early.map(
    (task) => `a task of ${keyOf(task)} started at ${task.started_at}, when none might`,
  );
  const counted = tasks.filter((task) => keyOf(task) === CHANGED_KEY);
  // Those that ran before go on under a lower limit; but none starts until enough of them have ended.
  if (
    limit &&
    counted.length > limit.running &&
    counted.some((task) => isBetween(task, limit.since, Infinity))
  )
    words.push(
      `${counted.length} tasks run under a limit of ${limit.running}, and not all are older than it`,
    );
  return words;
}

type Started = {
  readonly started_at: string | null;
  readonly limit_key?: string | null | undefined;
  readonly task_type?: string | null | undefined;
};

function keyOf({ limit_key, task_type }: Started): string {
  return limit_key ?? task_type ?? "";
}

export async function runLanes(
  tasks: number,
  seed: number,
  onPostgres: boolean,
  progress: (line: string) => void,
): Promise<LanesReport> {
  const random = randomFrom(seed);
  const report: LanesReport = { words: [], hubsKilled: 0, looks: 0, most: {}, givenUp: 0, changes: 0 };
  const rules = new Rules();
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
        ...KINDS[i % KINDS.length],
        ...(i % 4 < 2 && { requires: { resources: { gpu: 1 } } }),
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
      while (!isOver) {
        await look(client(), report, rules);
        await Bun.sleep(LOOK_EVERY_MS);
      }
    })();
    const change = (async () => {
      while (!isOver) {
        await changeRules(client, rules, random);
        report.changes++;
      }
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
      await until(
        async () => {
          const { by_status } = await client().tasks.stats({});
          return by_status.completed === tasks;
        },
        240_000,
        50,
      );
      progress(`${tasks} tasks completed, ${report.hubsKilled} hubs killed`);
    } finally {
      isOver = true;
      await Promise.all([chaos, watch, change, ...workers]);
    }
  } finally {
    for (const hub of hubs) await hub[Symbol.asyncDispose]();
    await postgres?.remove();
  }
  return report;
}

async function changeRules(client: () => LuxHub, rules: Rules, random: () => number): Promise<void> {
  const wait = (): Promise<void> => {
    const { least, most } = CHANGE_AFTER_MS;
    return Bun.sleep(least + random() * (most - least)); // the moment is what this is about
  };
  const running = 1 + Math.floor(random() * 3);
  rules.limit = null;
  await surely(() => client().limits.set({ key: CHANGED_KEY, running }));
  rules.limit = { running, since: Date.now() };
  const held = await surely(() => client().limits.hold({ key: HELD_KEY, for_s: 1 }));
  const until = held?.limit.held_until ?? null;
  if (until !== null) rules.closed.set(HELD_KEY, { from: Date.now(), to: Date.parse(until) });
  await surely(() => client().limits.pause({ type: PAUSED_TYPE }));
  rules.closed.set(PAUSED_TYPE, { from: Date.now(), to: Infinity });
  await wait();
  rules.closed.delete(PAUSED_TYPE);
  await surely(() => client().limits.resume({ type: PAUSED_TYPE }));
  await wait();
  if (random() < 0.5) return;
  rules.limit = null;
  rules.closed.delete(HELD_KEY);
  await surely(() => client().limits.delete({ key: CHANGED_KEY }));
  await surely(() => client().limits.delete({ key: HELD_KEY }));
  await wait();
}

/** Asks until there is an answer. Null: it was done already, perhaps by a call whose answer was lost. */
async function surely<T>(ask: () => Promise<T>): Promise<T | null> {
  for (;;) {
    try {
      return await ask();
    } catch (error) {
      if (error instanceof LuxHubError && error.status === 404) return null;
      const isAway = error instanceof HubUnreachable || (error instanceof LuxHubError && error.status >= 500);
      if (!isAway) throw error;
      await Bun.sleep(50); // the hub starts again
    }
  }
}

/** Holds what is assigned at one moment against the rules and the resources. */
async function look(hub: LuxHub, report: LanesReport, rules: Rules): Promise<void> {
  const asked = Date.now();
  const { limit } = rules;
  const closed = new Map(rules.closed);
  const { tasks, total } = await hub.tasks.list({ status: "assigned", per_page: 50 });
  if (Number(total) > tasks.length) report.words.push(`${total} tasks are assigned: more than a page`);
  report.words.push(...faultsOf(tasks, { limit: limit === rules.limit ? limit : null, closed }, asked));
  const running = Map.groupBy(tasks, keyOf);
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
  { words, hubsKilled, looks, most, givenUp, changes }: LanesReport,
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
      what: `${engine}: times that a limit was changed, a key held and a type paused meanwhile`,
      value: String(changes),
      goal: "some",
      held: changes > 0,
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
