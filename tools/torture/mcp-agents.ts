/**
 * Five agents share a hundred tasks that depend on each other, by MCP, while agents and the hub are killed with kill
 * -9. The agents are processes with the official client (mcp-agent.ts). In the end each task must be completed once,
 * with the result that follows from those before it.
 *
 * An agent that is killed either starts again at once, and goes on with its task, or stays away for longer than the time
 * limit of its task, so that another one gets it.
 */
import { join } from "node:path";
import { Hub, SECRET, TempDir, listOf, until } from "../../test/e2e/program.ts";
import { PROJECT } from "../../test/support/executable.ts";
import { OWN_HOST } from "../../test/support/keeper.ts";
import { ERAS } from "../../test/support/mcp.ts";
import { call, connect, sumFor } from "./mcp-agent.ts";
import { randomFrom } from "./random.ts";
import type { Section } from "./section.ts";

const AGENTS = 5;
const LAYER = 10;
const INPUTS = 3;
/** What a living agent keeps even on a slow machine. */
const TIMEOUT_S = 5;
const AWAY_MS = (TIMEOUT_S + 1) * 1_000;
/** How many completions there are between two kills. */
const KILL_AGENT_EVERY = 3;
const KILL_HUB_EVERY = 12;
/** Of the agents that are killed, one in so many stays away. */
const ONE_AWAY_IN = 4;
const MOMENT_MS = 100;

/** An agent that has lost its task is told so in these words. */
const LOST_ITS_TASK = new Set(["not_assigned_to_node", "stale_lease", "task_not_assigned", "task_completed"]);

export type AgentsReport = {
  readonly tasks: number;
  agentsKilled: number;
  hubsKilled: number;
  /** Hand-outs that agents got, repeated ones included. */
  begun: number;
  /** Completions that were refused, because another agent had the task meanwhile. */
  lostTheirTask: number;
  /** Tasks that are not completed in the end, or whose acknowledged completion is not there. */
  readonly missing: string[];
  /** Tasks that were completed more than once. */
  readonly twice: string[];
  /** Tasks whose result is not what follows from those before it. */
  readonly wrong: string[];
  /** Refusals that must not be. */
  readonly faults: string[];
};

/** A task by its id: what it depends on, and its right output. */
type Graph = Map<string, { readonly sum: number }>;

class Crowd implements AsyncDisposable {
  readonly #url: string;
  readonly #report: AgentsReport;
  readonly #agents: Bun.Subprocess<"ignore", "pipe", "inherit">[] = [];
  readonly #reading: Promise<void>[] = [];
  /** The node whose completion was acknowledged, by task. */
  readonly done = new Map<string, string>();

  constructor(url: string, report: AgentsReport) {
    this.#url = url;
    this.#report = report;
    for (let i = 0; i < AGENTS; i++) this.start(i);
  }

  start(i: number): void {
    const words = [join(PROJECT, "tools/torture/mcp-agent.ts"), this.#url, `agent-${i}`];
    const child = Bun.spawn([process.execPath, ...words, ERAS[i % ERAS.length] ?? ""], {
      env: { ...process.env, LUXHUB_SECRET: SECRET },
      stdin: "ignore",
      stdout: "pipe",
      stderr: "inherit",
    });
    this.#agents[i] = child;
    this.#reading.push(this.#read(child.stdout, `agent-${i}`));
  }

  async kill(i: number): Promise<void> {
    this.#agents[i]?.kill("SIGKILL");
    await this.#agents[i]?.exited;
  }

  async #read(stream: ReadableStream<Uint8Array>, nodeId: string): Promise<void> {
    const decoder = new TextDecoder();
    let text = "";
    for await (const chunk of stream) {
      text += decoder.decode(chunk, { stream: true });
      const lines = text.split("\n");
      text = lines.pop() ?? "";
      for (const line of lines) this.#take(line, nodeId);
    }
  }

  #take(line: string, nodeId: string): void {
    const [what, taskId = "", code = ""] = line.split(" ");
    if (what === "got") this.#report.begun++;
    else if (what === "done") {
      const before = this.done.get(taskId);
      if (before !== undefined && before !== nodeId) this.#report.twice.push(taskId);
      this.done.set(taskId, nodeId);
    } else if (what === "refused" && LOST_ITS_TASK.has(code)) this.#report.lostTheirTask++;
    else this.#report.faults.push(line);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const i of this.#agents.keys()) await this.kill(i);
    await Promise.all(this.#reading);
  }
}

/** Runs it with so many tasks; kills go with their number. */
export async function runAgents(
  tasks: number,
  seed: number,
  progress: (line: string) => void,
): Promise<AgentsReport> {
  const report: AgentsReport = {
    ...{ tasks, agentsKilled: 0, hubsKilled: 0, begun: 0, lostTheirTask: 0 },
    ...{ missing: [], twice: [], wrong: [], faults: [] },
  };
  const random = randomFrom(seed);
  using data = new TempDir();
  const start = (port: number): Promise<Hub> =>
    Hub.start({ data: data.path, host: OWN_HOST, env: { LUXHUB_PORT: String(port) } });
  let hub = await start(0);
  const { port } = hub;
  const url = `http://${OWN_HOST}:${port}`;
  try {
    const graph = await createTasks(url, tasks, random);
    {
      await using crowd = new Crowd(url, report);
      const away = new Map<number, Promise<void>>();
      for (let kills = 1; kills * KILL_AGENT_EVERY < tasks; kills++) {
        const after = kills * KILL_AGENT_EVERY;
        // As the hub has it: an agent that is killed may not have heard of its last completion.
        let ended = 0;
        await until(async () => (ended = await completedAt(hub)) >= after);
        await Bun.sleep(random() * MOMENT_MS); // so that every moment of a task is met
        if (after % KILL_HUB_EVERY === 0) {
          await hub[Symbol.asyncDispose](); // kill -9
          hub = await start(port);
          report.hubsKilled++;
        }
        const alive = Array.from({ length: AGENTS }, (_, i) => i).filter((i) => !away.has(i));
        const i = alive[Math.floor(random() * alive.length)] ?? 0;
        await crowd.kill(i);
        report.agentsKilled++;
        // The first one always comes back at once, so that somebody works.
        if (i === 0 || random() >= 1 / ONE_AWAY_IN) crowd.start(i);
        else {
          const back = Bun.sleep(AWAY_MS).then(() => {
            away.delete(i);
            crowd.start(i);
          });
          away.set(i, back);
        }
        progress(`${ended} of ${tasks} tasks; ${report.agentsKilled} agents killed`);
      }
      await until(async () => (await completedAt(hub)) === tasks);
      await Promise.all(away.values());
      await check(hub, graph, crowd.done, report);
    }
    return report;
  } finally {
    await hub[Symbol.asyncDispose]();
  }
}

/** Layers of tasks, each of which depends on some of the layer before. Created by MCP too. */
async function createTasks(url: string, tasks: number, random: () => number): Promise<Graph> {
  const boss = await connect(url, "boss", ERAS[0], SECRET);
  const graph: Graph = new Map();
  let before: readonly string[] = [];
  while (graph.size < tasks) {
    const layer: string[] = [];
    for (let i = 0; i < Math.min(LAYER, tasks - graph.size - layer.length); i++) {
      const depends_on = before.toSorted(() => random() - 0.5).slice(0, INPUTS);
      const title = `task ${graph.size + i}`;
      const draft = { title, description: "Add.", depends_on, timeout_s: TIMEOUT_S, max_attempts: 100 };
      const made = await call(boss, "task_create", draft);
      layer.push(String(made["task_id"]));
      graph.set(String(made["task_id"]), { sum: sumFor(depends_on.map((id) => graph.get(id)?.sum ?? 0)) });
    }
    before = layer;
  }
  await boss.close();
  return graph;
}

async function completedAt(hub: Hub): Promise<number> {
  const { body } = await hub.get("/task/stats");
  return Number(Object(body["by_status"]).completed);
}

async function check(
  hub: Hub,
  graph: Graph,
  done: ReadonlyMap<string, string>,
  { missing, twice, wrong }: AgentsReport,
): Promise<void> {
  const found = new Map<string, Readonly<Record<string, unknown>>>();
  for (const taskId of graph.keys()) {
    const { body } = await hub.get(`/task/${taskId}`);
    found.set(taskId, Object(body["task"]));
  }
  for (const [taskId, { sum }] of graph) {
    const task = found.get(taskId);
    const result: unknown = task?.["result"];
    if (task?.["status"] !== "completed") missing.push(taskId);
    else if (Object(Object(result).output).sum !== sum) wrong.push(taskId);
    const doer = done.get(taskId);
    if (doer !== undefined && doer !== task?.["assigned_node"]) missing.push(taskId);
  }
  const { body: stats } = await hub.get("/task/stats");
  if (stats["total"] !== graph.size)
    wrong.push(`${String(stats["total"])} tasks, created were ${graph.size}`);
  const ended = new Set<unknown>();
  for (let cursor = 0; ;) {
    const { body } = await hub.get(`/events?since=${cursor}&kind=task.completed&limit=1000`);
    const events = listOf(body["events"]);
    if (events.length === 0) return;
    for (const { task_id } of events) {
      if (ended.has(task_id)) twice.push(String(task_id));
      ended.add(task_id);
    }
    cursor = Number(body["cursor"]);
  }
}

const TASKS = 100;

/** The long form. */
export const mcpAgentsSection: Section = {
  name: "mcp-agents",
  title: "MCP agents that are killed",
  limitMs: 10 * 60_000,
  async run(scale, seed, progress) {
    const tasks = Math.max(2 * LAYER, Math.round(TASKS * scale));
    const report = await runAgents(tasks, seed, progress);
    const { missing, twice, wrong, faults } = report;
    for (const word of [...missing, ...twice, ...wrong, ...faults].slice(0, 40)) progress(word);
    const counts = [missing, twice, wrong, faults].map(({ length }) => length).join("; ");
    return [
      {
        what: `${tasks} dependent tasks, ${AGENTS} agents: agents killed; hubs killed; hand-outs; lost to another agent`,
        value: [report.agentsKilled, report.hubsKilled, report.begun, report.lostTheirTask].join("; "),
        goal: "",
        held: true,
      },
      {
        what: "tasks missing; completed twice; with a wrong result; refusals that must not be",
        value: counts,
        goal: "0; 0; 0; 0",
        held: counts === "0; 0; 0; 0",
      },
    ];
  },
};
