/**
 * Random sequences of what decides which tasks may be handed out: requirements, resources, limits and pauses, with
 * restarts between. The oracle looks at every task and knows no lanes. Time does not pass.
 */
import { expect } from "bun:test";
import fc from "fast-check";
import { ok } from "../api/scene.ts";
import { Real } from "./real.ts";
import { NODES as ALL_NODES, commandsOf } from "./world.ts";

const COMMANDS_MAX = 80;
const START = Date.UTC(2027, 4, 1, 12);
const NODES = ALL_NODES.slice(0, 2);
/** Has every word, and enough of everything. */
const LAST_NODE = {
  node_id: "last",
  name: "last",
  capabilities: ["x", "word"],
  resources: { gpu: 1_000 },
};

type Task = {
  readonly id: string;
  readonly type: string;
  readonly priority: number;
  readonly words: readonly string[];
  readonly gpu: number;
  readonly key: string;
  readonly creator: string | null;
  node: string;
};
type Node = { readonly capabilities: readonly string[]; readonly gpu: number };

class State {
  tasks: Task[] = [];
  handedOut = 0;
  /** How often a task that was open was kept back. */
  keptBack = 0;
  readonly nodes = new Map<string, Node>();
  readonly limits = new Map<string, number>();
  readonly pauses = new Set<string>();

  held(which: (task: Task) => boolean): readonly Task[] {
    return this.tasks.filter((task) => task.node !== "" && which(task));
  }

  open(): readonly Task[] {
    return this.tasks.filter(({ node }) => node === "");
  }

  mayHave(nodeId: string, task: Task): boolean {
    const node = this.nodes.get(nodeId);
    if (!node) return false;
    const takesType =
      task.type === "" || node.capabilities.length === 0 || node.capabilities.includes(task.type);
    const used = this.held(({ node: holder }) => holder === nodeId).reduce((sum, { gpu }) => sum + gpu, 0);
    const running = this.held(({ key }) => key === task.key).length;
    const subjects = [{}, { type: task.type }, { limit_key: task.key }, { creator_node: task.creator }];
    return (
      takesType &&
      task.words.every((word) => node.capabilities.includes(word)) &&
      (task.gpu === 0 || used + task.gpu <= node.gpu) &&
      running < (this.limits.get(task.key) ?? Number.POSITIVE_INFINITY) &&
      !subjects.some((subject) => this.pauses.has(JSON.stringify(subject)))
    );
  }
}

const command = commandsOf<State>();

const node = fc.constantFrom(...NODES);
const key = fc.constantFrom("x", "k");

const register = command(
  "register",
  fc.record({ node, capabilities: fc.subarray(["x", "word"]), gpu: fc.constantFrom(0, 1, 2) }),
  async ({ nodes }, { hub }, { node, capabilities, gpu }) => {
    const resources = gpu === 0 ? {} : { gpu };
    await ok(
      hub.post("/node/register", {
        node_id: node,
        name: node,
        capabilities,
        resources,
        auto_assign: false,
      }),
    );
    nodes.set(node, { capabilities, gpu });
  },
);

const create = command(
  "create",
  fc.record({
    type: fc.constantFrom("", "x"),
    priority: fc.constantFrom(0, 1, 2),
    words: fc.subarray(["word"]),
    gpu: fc.constantFrom(0, 0, 0.5, 1),
    limitKey: fc.constantFrom(null, "k"),
    creator: fc.constantFrom(null, ...NODES),
  }),
  async (state, { hub }, { type, priority, words, gpu, limitKey, creator }) => {
    const requires = { capabilities: words, resources: gpu === 0 ? {} : { gpu } };
    const { task_id } = await ok(
      hub.post("/task/create", {
        ...{ title: "t", description: "d", priority },
        ...(type !== "" && { task_type: type }),
        ...((words.length > 0 || gpu > 0) && { requires }),
        ...(limitKey !== null && { limit_key: limitKey }),
        ...(creator !== null && { creator_node: creator }),
      }),
    );
    const id = String(task_id);
    state.tasks.push({ id, type, priority, words, gpu, key: limitKey ?? type, creator, node: "" });
  },
);

/** One of the best, or nothing. */
async function takes(state: State, { hub }: Real, node: string): Promise<boolean> {
  if (!state.nodes.has(node)) return false;
  const allowed = state.open().filter((task) => state.mayHave(node, task));
  state.keptBack += state.open().length - allowed.length;
  const { task } = await ok(hub.post("/task/next", { node_id: node }));
  const best = Math.min(...allowed.map(({ priority }) => priority));
  const ids = allowed.filter(({ priority }) => priority === best).map(({ id }) => id);
  if (task === null) expect(ids).toEqual([]);
  else expect(ids).toContain(String(Object(task).task_id));
  const taken = allowed.find(({ id }) => id === Object(task)?.task_id);
  if (!taken) return false;
  taken.node = node;
  state.handedOut++;
  return true;
}

const next = command("next", node, async (state, real, node) => void (await takes(state, real, node)));

const end = command(
  "end",
  fc.record({ which: fc.nat({ max: 5 }), completes: fc.boolean() }),
  async (state, { hub }, { which, completes }) => {
    const held = state.held(() => true);
    const task = held[which % Math.max(1, held.length)];
    if (!task) return;
    const asked = { task_id: task.id, node_id: task.node };
    const result = { problem: "p", improvement: "i", lesson: "l" };
    await ok(
      hub.post(completes ? "/task/complete" : "/task/release", completes ? { ...asked, result } : asked),
    );
    task.node = "";
    if (completes) state.tasks = state.tasks.filter((one) => one !== task);
  },
);

const setLimit = command(
  "limit",
  fc.record({ key, running: fc.constantFrom(1, 2) }),
  async ({ limits }, { hub }, { key, running }) => {
    await ok(hub.admin("/limit/set", { key, running }));
    limits.set(key, running);
  },
);

const deleteLimit = command("delete limit", key, async ({ limits }, { hub }, key) => {
  const { status } = await hub.admin("/limit/delete", { key });
  expect(status).toBe(limits.delete(key) ? 200 : 404);
});

const subject = fc.constantFrom(
  {},
  { type: "x" },
  { limit_key: "k" },
  ...NODES.map((id) => ({ creator_node: id })),
);

const pause = command("pause", subject, async ({ pauses }, { hub }, subject) => {
  await ok(hub.admin("/hub/pause", subject));
  pauses.add(JSON.stringify(subject));
});

const resume = command("resume", subject, async ({ pauses }, { hub }, subject) => {
  const { status } = await hub.admin("/hub/resume", subject);
  expect(status).toBe(pauses.delete(JSON.stringify(subject)) ? 200 : 404);
});

const restart = command("restart", fc.constant(null), (_, real) => real.restart());

const COMMANDS = [
  ...[register, register, create, create, create, create, next, next, next, next, next, next, end],
  ...[setLimit, setLimit, deleteLimit, pause, resume, resume, resume, restart],
];

/** When nothing is limited or paused any more, and a node has enough, all that is open is handed out. */
async function drain(state: State, real: Real): Promise<void> {
  const { hub } = real;
  for (const key of state.limits.keys()) await ok(hub.admin("/limit/delete", { key }));
  for (const subject of state.pauses) await ok(hub.admin("/hub/resume", JSON.parse(subject)));
  state.limits.clear();
  state.pauses.clear();
  await ok(hub.post("/node/register", LAST_NODE));
  state.nodes.set("last", { capabilities: LAST_NODE.capabilities, gpu: LAST_NODE.resources.gpu });
  while (await takes(state, real, "last"));
  expect(state.open()).toEqual([]);
}

export type LanesPlayed = { handedOut: number; keptBack: number };

/** Throws with seed, path and the shortest failing sequence. */
export async function playLanes(count: number, seed: number): Promise<LanesPlayed> {
  const played: LanesPlayed = { handedOut: 0, keptBack: 0 };
  const sequence = fc.commands(COMMANDS, { maxCommands: COMMANDS_MAX, size: "max" });
  const property = fc.asyncProperty(sequence, async (chosen) => {
    await using real = await Real.start(START);
    const state = new State();
    await fc.asyncModelRun(() => ({ model: state, real }), chosen);
    await drain(state, real);
    played.handedOut += state.handedOut;
    played.keptBack += state.keptBack;
  });
  await fc.assert(property, { seed, numRuns: count });
  return played;
}
