/**
 * Webhooks whose hubs and whose receiver are killed at random: the receiver also fails, hangs up, is late, asks to wait,
 * and is away. At the end it has each event of the log that its webhooks want at least once, in order and under one
 * webhook-id, and nothing else. Then a receiver that is away for a day of jumping clocks: its webhook is suspended, and
 * resumes where it was.
 *
 * The seed repeats the moments, though not the machine's timing.
 */
import { existsSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { LuxHub } from "../../src/client/luxhub.ts";
import { type EventData, type LoggedEvent, isEventKind } from "../../src/domain/event.ts";
import type { WebhookFilter } from "../../src/domain/model.ts";
import { passes } from "../../src/domain/webhook.ts";
import { ADMIN_KEY, Hub, Program, SECRET, TempDir, listOf, run, until } from "../../test/e2e/program.ts";
import { NO_SHIFTED_CLOCK, ShiftedClock } from "../../test/e2e/shifted-clock.ts";
import { OWN_HOST, freePorts } from "../../test/support/keeper.ts";
import { POSTGRES_PROGRAMS, PostgresServer } from "../../test/support/postgres.ts";
import { randomFrom } from "./random.ts";
import { type Figure, type Section, notRun } from "./section.ts";
import { type Received, type ReceiverPlan, THIRDS } from "./webhook-receiver.ts";

type Row = Readonly<Record<string, unknown>>;

const RECEIVER = `${import.meta.dir}/webhook-receiver.ts`;
const KEY = `whsec_${Buffer.alloc(32, "k").toString("base64")}`;
const ANY: WebhookFilter = { kinds: [], taskId: null, nodeId: null, creatorNode: null, group: null };
const GROUP = "g";
/** By name, which is also the path of the URL. */
const HOOKS: Readonly<Record<string, WebhookFilter>> = {
  [THIRDS]: { ...ANY, kinds: ["task.created"] },
  all: ANY,
  payments: { ...ANY, kinds: ["lux.paid", "task.completed"] },
  group: { ...ANY, group: GROUP },
  boss: { ...ANY, creatorNode: "boss" },
};
/** Messages from one kill to the next, and how long after them. */
const MESSAGES_MOST = 30;
const MOMENT_MOST_MS = 100;
const START_TRIES = 50;
const START_AGAIN_MS = 200;
const AWAY_MS = { least: 100, most: 3_000 };
const PAUSE_MOST_MS = 150;
/** New tasks wait while the slowest webhook is so far behind, so that hubs are killed as long as there is work. */
const BEHIND_MOST = 5;
/** What a receiver can be behind at the end, with a backoff of some attempts. */
const CATCH_UP_MS = 600_000;
const RESULT = { problem: "p", improvement: "i", lesson: "none" };

export type WebhookReport = {
  /** What was found wrong. */
  readonly words: string[];
  hubsKilled: number;
  receiversKilled: number;
  /** Events of the log that the webhooks want, together. */
  events: number;
  messages: number;
  repeats: number;
  /** How the receiver responded. */
  readonly did: Record<string, number>;
};

/** The receiver, with the same address whenever it starts again. */
class Away implements AsyncDisposable {
  readonly #plan: ReceiverPlan;
  readonly #env: Readonly<Record<string, string>>;
  #program: Program | null = null;
  #starts = 0;

  constructor(ledger: string, seed: number, env: Readonly<Record<string, string>> = {}) {
    const host = "127.0.0.1";
    this.#plan = { host, port: freePorts(1, host)[0] ?? 0, ledger, secret: KEY, seed };
    this.#env = env;
  }

  urlOf(hook: string): string {
    return `http://${this.#plan.host}:${this.#plan.port}/${hook}`;
  }

  async start(): Promise<void> {
    const plan: ReceiverPlan = { ...this.#plan, seed: this.#plan.seed + this.#starts++ };
    for (let left = START_TRIES; ; left--) {
      this.#program = new Program([JSON.stringify(plan)], {
        command: [process.execPath, RECEIVER],
        env: { ...this.#env },
      });
      try {
        await this.#program.printed(/listening/);
        return;
      } catch (error) {
        if (left === 0) throw error;
        await Bun.sleep(START_AGAIN_MS); // another connection of this machine may have its port
      }
    }
  }

  async kill(): Promise<void> {
    await this.#program?.[Symbol.asyncDispose]();
  }

  /** Whole lines: it may have been killed in the middle of one, which nobody was told of. */
  received(): readonly Received[] {
    if (!existsSync(this.#plan.ledger)) return [];
    const lines = readFileSync(this.#plan.ledger, "utf8").split("\n").slice(0, -1);
    return lines.map((line) => JSON.parse(line) as Received); // webhook-receiver.ts wrote it
  }

  /** The messages of a webhook that it has taken. */
  took(name: string): number {
    return this.received().filter(({ hook, did }) => hook === name && did === "took").length;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.kill();
  }
}

const between = ({ least, most }: { least: number; most: number }, random: () => number): number =>
  least + random() * (most - least);

/** Runs so many tasks to their end, and looks at what the receiver got. */
export async function runWebhooks(
  tasks: number,
  seed: number,
  onPostgres: boolean,
  progress: (line: string) => void,
): Promise<WebhookReport> {
  const random = randomFrom(seed);
  const report: WebhookReport = {
    ...{ words: [], hubsKilled: 0, receiversKilled: 0, events: 0, messages: 0, repeats: 0, did: {} },
  };
  using dir = new TempDir();
  const postgres = onPostgres ? await PostgresServer.start(tmpdir()) : null;
  await using receiver = new Away(dir.join("received"), Math.floor(random() * 2 ** 31));
  const ports = freePorts(postgres ? 2 : 1, OWN_HOST);
  const hubs: Hub[] = [];
  const startHub = async (i: number): Promise<void> => {
    const env: Record<string, string> = { LUXHUB_PORT: String(ports[i]) };
    if (postgres) env["LUXHUB_DATABASE"] = postgres.url;
    hubs[i] = await Hub.start({
      data: dir.join(`hub-${i}`),
      host: OWN_HOST,
      args: ["--webhook-allow", "127.0.0.1"],
      env,
    });
  };
  const clients = ports.map(
    (port) => new LuxHub({ url: `http://${OWN_HOST}:${port}`, secret: SECRET, adminKey: ADMIN_KEY }),
  );
  const [first] = clients;
  if (!first) throw new Error("there is no hub");
  const client = (): LuxHub => clients[Math.floor(random() * clients.length)] ?? first;
  try {
    await receiver.start();
    for (const i of ports.keys()) await startHub(i);
    for (const node_id of ["boss", "w"]) await first.nodes.register({ node_id, name: node_id });
    const cursors = new Map<string, number>();
    for (const [name, filter] of Object.entries(HOOKS))
      cursors.set(name, await put(first, name, receiver.urlOf(name), filter));
    let isOver = false;
    // By what was received, and not by the time: on a slow machine each of them gets to work too.
    const chaos = (async () => {
      for (let turn = 0; !isOver; turn++) {
        const enough = receiver.received().length + 1 + Math.floor(random() * MESSAGES_MOST);
        await until(() => isOver || receiver.received().length >= enough, CATCH_UP_MS, 20);
        await Bun.sleep(random() * MOMENT_MOST_MS); // the moment is what this is about
        if (turn % 2 === 0) {
          await receiver.kill();
          report.receiversKilled++;
          await Bun.sleep(between(AWAY_MS, random)); // the hub finds nobody there
          await receiver.start();
          continue;
        }
        const i = Math.floor(random() * hubs.length);
        await hubs[i]?.[Symbol.asyncDispose]();
        report.hubsKilled++;
        await startHub(i);
      }
    })();
    try {
      for (let i = 0; i < tasks; i++) {
        await work(client, i);
        await Bun.sleep(random() * PAUSE_MOST_MS); // so that some come while a delivery fails
        await until(() => receiver.took(THIRDS) >= i - BEHIND_MOST, CATCH_UP_MS, 50);
        if (i % 10 === 9)
          progress(
            `${i + 1} tasks, ${report.hubsKilled} hubs and ${report.receiversKilled} receivers killed`,
          );
      }
    } finally {
      isOver = true;
      await chaos;
    }
    const [hub] = hubs;
    if (!hub) throw new Error("there is no hub");
    await catchUp(first, hub, receiver, cursors);
    await check(hub, receiver.received(), cursors, report);
    for (const one of hubs) await one.stop();
    const env = { LUXHUB_SECRET: SECRET, ...(postgres && { LUXHUB_DATABASE: postgres.url }) };
    const { code, stdout, stderr } = await run(["doctor", "--data", dir.join("hub-0")], { env });
    if (code !== 0) report.words.push(`doctor: ${stdout}${stderr}`);
  } finally {
    for (const hub of hubs) await hub[Symbol.asyncDispose]();
    await postgres?.remove();
  }
  return report;
}

/** Returns the cursor of the new webhook. */
async function put(client: LuxHub, name: string, url: string, filter: WebhookFilter): Promise<number> {
  const { kinds, creatorNode: creator_node, group } = filter;
  const { webhook } = await client.webhooks.put({
    name,
    url,
    secret: KEY,
    kinds: [...kinds],
    ...(creator_node !== null && { creator_node }),
    ...(group !== null && { group }),
  });
  return webhook.cursor;
}

/** A task that is completed; some are of a group, and some of a creator. */
async function work(client: () => LuxHub, i: number): Promise<void> {
  const { task_id } = await client().tasks.create({
    title: `task ${i}`,
    description: "d",
    lux_reward: 1,
    ...(i % 2 === 0 && { group: GROUP }),
    ...(i % 3 === 0 && { creator_node: "boss" }),
  });
  await client().tasks.claim({ task_id, node_id: "w" });
  await client().tasks.complete({ task_id, node_id: "w", result: RESULT });
}

/** Waits until the last event that each webhook wants has been taken. */
async function catchUp(
  client: LuxHub,
  hub: Hub,
  receiver: Away,
  cursors: ReadonlyMap<string, number>,
): Promise<void> {
  const events = await logOf(hub);
  const lastOf = new Map(
    [...cursors.keys()].map((name) => [name, wanted(events, name, cursors).at(-1)?.id ?? 0] as const),
  );
  const isThere = async (): Promise<boolean> => {
    const { webhooks } = await client.webhooks.list({});
    return webhooks.every(
      ({ name, cursor, attempts }) => attempts === 0 && cursor >= (lastOf.get(name) ?? 0),
    );
  };
  const shown = () => receiver.received().length;
  try {
    await until(isThere, CATCH_UP_MS, 200);
  } catch (cause) {
    const { webhooks } = await client.webhooks.list({});
    throw new Error(`after ${shown()} messages: ${JSON.stringify(webhooks)}`, { cause });
  }
}

function wanted(
  events: readonly LoggedEvent[],
  name: string,
  cursors: ReadonlyMap<string, number>,
): readonly LoggedEvent[] {
  const after = cursors.get(name) ?? 0;
  return events.filter((event) => event.id > after && passes(event, HOOKS[name] ?? ANY));
}

/** The whole log. */
async function logOf(hub: Hub): Promise<readonly LoggedEvent[]> {
  const events: LoggedEvent[] = [];
  for (let since = 0; ;) {
    const page = listOf((await hub.get(`/events?since=${since}&limit=1000`)).body["events"]);
    events.push(...page.map(toEvent));
    if (page.length === 0) return events;
    since = Number(page.at(-1)?.["id"]);
  }
}

function toEvent({ id, kind, at, node_id, task_id, data }: Row): LoggedEvent {
  if (!isEventKind(kind)) throw new Error(`the log has ${kind}`);
  const maybe = (value: unknown): string | null => (typeof value === "string" ? value : null);
  const ids = { nodeId: maybe(node_id), taskId: maybe(task_id) };
  return {
    id: Number(id),
    kind,
    at: Date.parse(String(at)),
    ...ids,
    data: data as EventData,
    verified: false,
  };
}

/** Holds what the receiver wrote down against the log. */
async function check(
  hub: Hub,
  received: readonly Received[],
  cursors: ReadonlyMap<string, number>,
  report: WebhookReport,
): Promise<void> {
  const { words } = report;
  const events = await logOf(hub);
  for (const { did, isSigned, hook } of received) {
    report.did[did] = (report.did[did] ?? 0) + 1;
    if (!isSigned) words.push(`${hook}: a message is not signed`);
    if (!cursors.has(hook)) words.push(`${hook}: nobody asked for it`);
  }
  for (const name of cursors.keys()) {
    const messages = received.filter(({ hook }) => hook === name);
    const expected = wanted(events, name, cursors);
    report.events += expected.length;
    report.messages += messages.length;
    report.repeats += messages.length - expected.length;
    // The hooks that are put after this one are events of it too, and all is there that came later.
    const ids = new Map<number, string>();
    let next = 0;
    for (const { event, webhookId } of messages) {
      const id = Number(event["id"]);
      const isRepeat = id === expected[next - 1]?.id;
      if (id === expected[next]?.id) next++;
      else if (!isRepeat) words.push(`${name}: event ${id} instead of ${expected[next]?.id}`);
      if ((ids.get(id) ?? webhookId) !== webhookId)
        words.push(`${name}: event ${id} with another webhook-id`);
      ids.set(id, webhookId);
      const logged = expected.find((one) => one.id === id);
      const found = toEvent(event);
      if (!Bun.deepEquals(found, logged)) words.push(`${name}: event ${id} is ${JSON.stringify(found)}`);
    }
    if (next !== expected.length)
      words.push(
        `${name}: ${next} of ${expected.length} events came; then ${expected[next]?.kind} is missing`,
      );
    if (new Set(ids.values()).size !== ids.size) words.push(`${name}: two events with the same webhook-id`);
  }
}

// ---- A day away

/** Jumps of the clock, in seconds; the hub tries again after each that is long enough. */
const JUMPS_S = [3_600, 7_200, -172_800, 10_800, 10_800, 10_800, 10_800, 10_800, 10_800, 10_800];
const DAY_S = 86_400;

/** Returns what was found wrong. */
export async function awayForADay(progress: (line: string) => void): Promise<readonly string[]> {
  const words: string[] = [];
  using dir = new TempDir();
  const clock = new ShiftedClock(dir);
  await using receiver = new Away(dir.join("received"), 0, clock.env);
  const start = (): Promise<Hub> =>
    Hub.start({ data: dir.join("data"), args: ["--webhook-allow", "127.0.0.1"], env: clock.env });
  let hub = await start();
  try {
    const post = async (path: string, body: object): Promise<Row> => {
      const answer = await hub.admin(path, body);
      if (answer.status !== 200) throw new Error(`${path}: ${JSON.stringify(answer.body)}`);
      return answer.body;
    };
    const webhook = async (): Promise<Row> => {
      const headers = { "X-Admin-Key": ADMIN_KEY };
      const { body } = await hub.get("/webhook/list", { headers });
      return listOf(body["webhooks"])[0] ?? {};
    };
    const create = (title: string): Promise<Row> => post("/task/create", { title, description: "d" });
    const kinds = ["task.created"];
    await post("/webhook/put", { name: "away", url: receiver.urlOf("away"), secret: KEY, kinds });
    for (const title of ["a", "b", "c"]) await create(title);
    await until(async () => Number((await webhook())["attempts"]) > 0);
    let shift = 0;
    for (const jump of JUMPS_S) {
      const before = Number((await webhook())["attempts"]);
      await clock.shiftTo(hub, (shift += jump));
      await until(async () => Number((await webhook())["attempts"]) > before);
      progress(`the clock jumped by ${jump} s, ${(await webhook())["attempts"]} attempts`);
      if ((await webhook())["state"] !== "active") words.push(`suspended after ${shift} s`);
    }
    await clock.shiftTo(hub, (shift += 3 * DAY_S));
    await until(async () => (await webhook())["state"] === "suspended");
    const { body } = await hub.get("/events?kind=webhook.suspended&since=0");
    if (listOf(body["events"]).length !== 1) words.push(`suspended as ${JSON.stringify(body["events"])}`);
    await create("d");
    await receiver.start();
    hub.program.child.kill("SIGKILL");
    await hub.program.ended;
    clock.set((shift += DAY_S));
    hub = await start();
    await create("e");
    if ((await webhook())["state"] !== "suspended") words.push("a restart has resumed it");
    if (receiver.received().length > 0) words.push("it was called while it was suspended");
    await post("/webhook/resume", { name: "away" });
    const titlesOf = (): readonly unknown[] =>
      receiver.received().map(({ event }) => Object(event["data"])["title"]);
    await until(() => titlesOf().includes("e"));
    const titles = [...new Set(titlesOf())].join("");
    if (titles !== "abcde") words.push(`it got ${titles}`);
    if (receiver.received().some(({ isSigned }) => !isSigned)) words.push("a message is not signed");
    await until(async () => (await webhook())["state"] === "active" && (await webhook())["attempts"] === 0);
  } finally {
    await hub[Symbol.asyncDispose]();
  }
  return words;
}

// ---- The long form

const TASKS = 250;

function figuresOf(engine: string, report: WebhookReport): readonly Figure[] {
  const { words, hubsKilled, receiversKilled, events, messages, repeats, did } = report;
  return [
    {
      what: `${engine}: hubs killed; receivers killed`,
      value: `${hubsKilled}; ${receiversKilled}`,
      goal: "some of both",
      held: Math.min(hubsKilled, receiversKilled) > 0,
    },
    {
      what: `${engine}: responses with 500; with Retry-After; late; hung up`,
      value: ["500", "busy", "late", "hung up"].map((one) => did[one] ?? 0).join("; "),
      goal: "",
      held: true,
    },
    {
      what: `${engine}: events wanted; messages; of them repeats`,
      value: `${events}; ${messages}; ${repeats}`,
      goal: "",
      held: true,
    },
    {
      what: `${engine}: events missed, out of order, altered, with two ids; messages of no event`,
      value: String(words.length),
      goal: "0",
      held: words.length === 0,
    },
  ];
}

export const webhooksSection: Section = {
  name: "webhooks",
  title: "Webhooks while hubs and receivers are killed",
  limitMs: 40 * 60_000,
  async run(scale, seed, progress) {
    const tasks = Math.max(10, Math.round(TASKS * scale));
    const figures: Figure[] = [];
    for (const onPostgres of [false, true]) {
      const engine = onPostgres ? "two hubs on PostgreSQL" : "SQLite";
      if (onPostgres && POSTGRES_PROGRAMS === null) {
        figures.push(notRun(engine, "no PostgreSQL of our own can be started here"));
        continue;
      }
      const report = await runWebhooks(tasks, seed, onPostgres, (line) => progress(`${engine}: ${line}`));
      for (const words of report.words.slice(0, 20)) progress(words);
      figures.push(...figuresOf(engine, report));
    }
    const what = "Away for a day of jumping clocks: not suspended once, or resumed with something missed";
    if (NO_SHIFTED_CLOCK !== null) return [...figures, notRun(what, NO_SHIFTED_CLOCK)];
    const words = await awayForADay(progress);
    for (const line of words) progress(line);
    return [...figures, { what, value: String(words.length), goal: "0", held: words.length === 0 }];
  },
};
