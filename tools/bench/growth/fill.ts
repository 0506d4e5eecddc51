// Fills a data directory like that of a hub that has worked for some days: `bun fill.ts DIR TASKS NODES`. It uses the
// store's port and the rules of the domain, so that the rows are those that a hub's own requests write. To take a
// minute instead of an hour, a thousand requests share a commit, and the running totals are summed once a commit.
import type { Change } from "../../../src/domain/change.ts";
import { type Decision, accept } from "../../../src/domain/decision.ts";
import { acknowledge, receive, send } from "../../../src/domain/message.ts";
import { register } from "../../../src/domain/node.ts";
import { complete, create, take } from "../../../src/domain/task/core.ts";
import { makeDataDir } from "../../../src/data-dir.ts";
import { EMPTY_LEDGER } from "../../../src/domain/lux.ts";
import type { LedgerHead, Node, Task } from "../../../src/domain/model.ts";
import { UNSCHEDULED } from "../../../test/domain/samples.ts";
import { openSqlite } from "../../../src/store/sqlite/engine.ts";
import type { Store } from "../../../src/store/store.ts";
import { MESSAGE, RESULT, TASK } from "../scenarios.ts";
import { TASK_TYPES, capabilitiesOf, nodeName, spread } from "./fleet.ts";

const DAY_MS = 86_400_000;
/** Within the retention time: no row expires while the bench runs. */
const HISTORY_MS = 5 * DAY_MS;
/** Tasks, or messages, in one commit. */
const STEP = 1_000;
/** Of the tasks and the messages, this share at the end is still under way. */
const UNFINISHED = 0.04;
const UNREAD = 0.02;
/** One message in so many asks for an ACK, and got it. */
const ACKED_EVERY = 10;

type Tally = Extract<Change, { kind: "node.tallied" }>;
type Totals = Extract<Change, { kind: "tasks.tallied" }>;

class Commit {
  readonly #changes: Change[] = [];
  readonly #nodes = new Map<string, Tally>();
  #totals: Totals = { kind: "tasks.tallied", open: 0, assigned: 0, completed: 0, failed: 0 };

  add(changes: readonly Change[]): void {
    for (const change of changes) {
      if (change.kind === "tasks.tallied") this.#addTotals(change);
      else if (change.kind === "node.tallied") this.#addTally(change);
      else this.#changes.push(change);
    }
  }

  changes(): readonly Change[] {
    return [...this.#changes, ...this.#nodes.values(), this.#totals];
  }

  #addTotals({ open, assigned, completed }: Totals): void {
    const all = this.#totals;
    this.#totals = {
      ...all,
      open: all.open + open,
      assigned: all.assigned + assigned,
      completed: all.completed + completed,
    };
  }

  #addTally(tally: Tally): void {
    const before = this.#nodes.get(tally.nodeId);
    const sum = before && {
      ...tally,
      assigned: before.assigned + tally.assigned,
      completed: before.completed + tally.completed,
      luxEarnedMicro: before.luxEarnedMicro + tally.luxEarnedMicro,
      entries: before.entries + tally.entries,
      balanceMicro: before.balanceMicro + tally.balanceMicro,
    };
    this.#nodes.set(tally.nodeId, sum ?? tally);
  }
}

type Known = Omit<Node, Moving> & Pick<Mutable<Node>, Moving>;
type Moving = "tasksAssigned" | "entries" | "balanceMicro";
type Mutable<T> = { -readonly [K in keyof T]: T[K] };

function keepUp(node: Known, decision: Decision<unknown>): void {
  for (const change of decision.kind === "accepted" ? decision.changes : []) {
    if (change.kind !== "node.tallied") continue;
    node.tasksAssigned += change.assigned;
    node.entries += change.entries;
    node.balanceMicro += BigInt(change.balanceMicro);
  }
}

class History {
  readonly #store: Store;
  readonly #tasks: number;
  readonly #nodes: Known[] = [];
  readonly #startedAt = Date.now() - HISTORY_MS;
  #head: LedgerHead = EMPTY_LEDGER;

  constructor(store: Store, tasks: number) {
    this.#store = store;
    this.#tasks = tasks;
  }

  async register(count: number): Promise<void> {
    const commit = new Commit();
    for (let index = 0; index < count; index++) {
      const profile = {
        nodeId: nodeName(index),
        name: `Bench ${nodeName(index)}`,
        host: null,
        port: null,
        capabilities: capabilitiesOf(index),
        variant: "A",
        maxTasks: null,
        autoAssign: true,
      } as const;
      const beat = { now: this.#startedAt, steady: 0, leaseMs: 0 };
      const { answer, changes } = register(profile, null, [], beat);
      this.#nodes.push(answer.node);
      commit.add(changes);
    }
    await this.#write(commit);
  }

  /** The cycles of the tasks, one after the other; the last tasks stay open or assigned. */
  async work(): Promise<void> {
    await this.#inSteps((index, commit) => {
      const now = this.#at(index);
      const taskType = TASK_TYPES[index % TASK_TYPES.length] ?? "";
      const { lux_reward, ...texts } = TASK;
      const draft = { ...texts, taskType, priority: 1, luxRewardMicro: lux_reward * 1_000_000 } as const;
      const made = create(
        {
          ...UNSCHEDULED,
          ...draft,
          creatorNode: null,
          creatorVerified: false,
          creatorKey: null,
          schedule: null,
          balanced: false,
        },
        uuidAt(now),
        [],
        {
          now,
          steady: now,
        },
      );
      commit.add(made.changes);
      const isUnfinished = index >= this.#tasks * (1 - UNFINISHED);
      if (isUnfinished && index % 2 === 0) return;
      const node = this.#nodeFor(index);
      const asked = { taskId: made.answer.taskId, nodeId: node.nodeId };
      const stored = { ...made.answer, seq: index + 1 }; // a new table counts from 1
      const taken = take(stored, node, { ...asked, by: "claim" }, { now, steady: now });
      const held = this.#accepted(commit, taken);
      keepUp(node, taken);
      if (!isUnfinished) this.#complete(commit, held, node, now);
    });
  }

  /** As many messages as tasks, each to one node; the last of them wait to be read. */
  async talk(): Promise<void> {
    await this.#inSteps((index, commit) => {
      const now = this.#at(index);
      const node = this.#nodeFor(index);
      const message = {
        messageId: uuidAt(now),
        fromNode: this.#nodeFor(index + 1).nodeId,
        toNode: node.nodeId,
        type: "text",
        content: MESSAGE,
        requireAck: index % ACKED_EVERY === 0,
        replyTo: null,
        thread: null,
        verified: false,
        sentAt: now,
      } as const;
      this.#accepted(commit, send(message, node, node.nodeId));
      if (index >= this.#tasks * (1 - UNREAD)) return;
      const seq = index + 1; // a new table counts from 1
      const queued = { seq, toNode: node.nodeId, state: "waiting", deliveries: 0, leaseUntil: null } as const;
      const taken = receive(node, node.nodeId, [{ ...queued, message }], 0);
      if (taken.kind !== "accepted") throw new Error("a message was not received");
      commit.add(taken.changes);
      const [delivery] = taken.answer;
      if (!message.requireAck || delivery === undefined) return;
      const asked = { nodeId: node.nodeId, messageId: message.messageId };
      const { messageId, fromNode } = message;
      const stub = { ...delivery, messageId, fromNode, broadcast: false };
      this.#accepted(commit, acknowledge(message, stub, node, asked, now));
    });
  }

  #complete(commit: Commit, task: Task, node: Known, now: number): void {
    const asked = {
      taskId: task.taskId,
      nodeId: node.nodeId,
      result: { ...RESULT, extra: null },
      epoch: null,
      claimOnComplete: false,
      entryId: uuidAt(now),
      head: this.#head,
      paid: null,
    };
    const done = complete(task, node, asked, { now, steady: now });
    this.#accepted(commit, done);
    if (done.kind === "accepted")
      for (const change of done.changes) if (change.kind === "lux.entered") this.#head = change.entry;
    keepUp(node, done);
  }

  #accepted<A>(commit: Commit, decision: Decision<A>): A {
    if (decision.kind !== "accepted") throw new Error(`refused: ${decision.detail}`);
    commit.add(decision.changes);
    return decision.answer;
  }

  #nodeFor(index: number): Known {
    const node = this.#nodes[spread(index, this.#nodes.length)];
    if (node === undefined) throw new Error("a fleet without nodes");
    return node;
  }

  #at(index: number): number {
    return Math.floor(this.#startedAt + (index / this.#tasks) * HISTORY_MS);
  }

  async #inSteps(write: (index: number, commit: Commit) => void): Promise<void> {
    for (let start = 0; start < this.#tasks; start += STEP) {
      const commit = new Commit();
      for (let index = start; index < Math.min(start + STEP, this.#tasks); index++) write(index, commit);
      await this.#write(commit);
    }
  }

  async #write(commit: Commit): Promise<void> {
    await this.#store.transact({}, () => accept(null, commit.changes()));
  }
}

/** An id as the hub makes them, of a moment in the past: the order of the ids is that of the rows. */
function uuidAt(at: number): string {
  return Bun.randomUUIDv7("hex", at);
}

const [directory = "", tasks, nodes] = process.argv.slice(2);
const store = openSqlite(makeDataDir(directory).database, (error) => {
  throw error;
});
const history = new History(store, Number(tasks));
await history.register(Number(nodes));
await history.work();
await history.talk();
await store.close();
