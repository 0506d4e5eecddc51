/**
 * A write-through cache of the rows that transactions read most: unfinished tasks and nodes by id, the nodes without a
 * gift, the best takers of a type, the best tasks of the backlog, what counts against quotas, the budgets and pauses, the
 * special lanes, and the newest entry of the ledger. Only the hub writes these rows. After a rollback, or a commit of
 * another process, the runner of groups clears the cache.
 *
 * Invariant: a cached result equals the result of its query. A cached list of best tasks or takers may be longer or
 * shorter than the query's list, but begins as that list does; cached lanes may be empty by now.
 *
 * Each write says what the cache does with its change (`cache` of store/sql/write.ts). To evict() is not enough for what
 * changes a budget, a pause, a limit, a sum of usage, the ledger or the usage of one node; nor for what makes a task ready
 * in a special lane, or gives a node a task.
 *
 * What each kind saves, in processor time of services and store (SQLite in memory, 32 callers; the lowest tenth of 60 to
 * 150 alternating rounds): tasks 9 of 54 us for a request of a task cycle, nodes 5 to 9 of 51 us, the backlog 190 us for a
 * task/next, quotas 10 of 41 us where one bound key is busy and 6 of 51 us where 32 are, the nodes without a gift 12 of the
 * 24 us that a task/next loads for (a read of tasks also ends the gathering of a group). Mailboxes saved 0 to 2 us.
 */
import type { Change } from "../../domain/change.ts";
import {
  CACHED_BACKLOGS,
  CACHED_CANDIDATES,
  CACHED_LANES_WRITES,
  CACHED_NODES,
  CACHED_TASKS,
  CACHED_TASKS_CHARS,
  CACHED_TASK_MAX_CHARS,
} from "../../domain/limits.ts";
import type { Gate, LedgerHead, Node, Task, Usage } from "../../domain/model.ts";
import { gateAfter } from "../../domain/gate.ts";
import { isSpecial } from "../../domain/lane.ts";
import { type Takers, patchTakers } from "../sql/balancer.ts";
import { EVERYTHING, keyOf } from "../sql/conflict-keys.ts";
import { type Lanes, patchLanes } from "../sql/lanes.ts";
import { patchNode } from "../sql/nodes.ts";
import { charsOf } from "../sql/rows.ts";
import { writeOf, writeSetOf } from "../sql/statements.ts";
import { patchUsage } from "../sql/usage.ts";
import type { CachedRows, Of } from "../sql/write.ts";
import type { Query } from "../store.ts";

/** The conflict keys of the rows, up to the id. */
const OF_TASK = [keyOf.task(""), keyOf.filesOfTask("")];
const OF_NODE = keyOf.node("");

type Backlog = { readonly query: Query<unknown>; readonly tasks: unknown };

type As = NonNullable<Query<unknown>["cached"]>["as"];

/** A task, a node and a gift are null if there is none. */
type Answers = {
  readonly task: Task | null;
  readonly node: Node | null;
  readonly ready: unknown;
  readonly candidates: Takers;
  readonly usage: Usage;
  readonly gate: Gate;
  readonly gift: unknown;
  readonly lanes: Lanes;
  readonly ledger: LedgerHead;
};

type Kind<V> = {
  readonly find: (id: string) => V | undefined;
  readonly keep: (id: string, value: V, query: Query<unknown>) => unknown;
};

export class RowCache implements CachedRows {
  readonly #read: <R>(query: Query<R>) => R;
  readonly #tasks = new Generations<Task>(CACHED_TASKS, CACHED_TASKS_CHARS, charsOf);
  readonly #nodes = new Generations<Node>(CACHED_NODES);
  readonly #giftless = new Generations<true>(CACHED_NODES);
  readonly #usage = new Generations<Usage>(CACHED_NODES);
  readonly #backlogs = new Map<string, Backlog>();
  readonly #candidates = new Map<string, Takers>();
  /** The special lanes. A lane stays among them when its last task has left. */
  #lanes: Lanes | null = null;
  /** How many tasks of special lanes were written since the lanes were read: each may have left its lane empty. */
  #laneWrites = 0;
  /** The budgets of one day, and the pauses. */
  #gate: { readonly id: string; readonly value: Gate } | null = null;
  #ledgerHead: LedgerHead | null = null;

  /** How each kind of answer is found (undefined: it is not there) and kept. */
  readonly #kinds: { readonly [A in As]: Kind<Answers[A]> } = {
    task: { find: (id) => this.#tasks.get(id), keep: (_, task) => task && this.#keepTask(task) },
    node: { find: (id) => this.#nodes.get(id), keep: (id, node) => node && this.#nodes.set(id, node) },
    ready: {
      find: (id) => this.#backlogs.get(id)?.tasks,
      keep: (id, tasks, query) => this.#keepBacklog(id, { query, tasks }),
    },
    candidates: {
      find: (id) => this.#candidates.get(id),
      keep: (id, takers) => this.#keepCandidates(id, takers),
    },
    usage: { find: (id) => this.#usage.get(id), keep: (id, usage) => this.#usage.set(id, usage) },
    gate: {
      find: (id) => (this.#gate?.id === id ? this.#gate.value : undefined),
      keep: (id, gate) => this.#keepGate(id, gate),
    },
    gift: {
      find: (id) => this.#giftless.get(id) && null,
      keep: (id, gift) => gift === null && this.#giftless.set(id, true),
    },
    lanes: { find: () => this.#lanes ?? undefined, keep: (_, lanes) => this.#keepLanes(lanes) },
    ledger: {
      find: () => this.#ledgerHead ?? undefined,
      keep: (_, head) => {
        this.#ledgerHead = head;
      },
    },
  };

  constructor(read: <R>(query: Query<R>) => R) {
    this.#read = read;
  }

  load<R>(query: Query<R>): R {
    if (query.cached === undefined) return this.#read(query);
    const { as, id } = query.cached;
    const { find, keep } = this.#kinds[as];
    const cached = find(id);
    // `as` says which query it is, and so what R is.
    if (cached !== undefined) return cached as R;
    const value = this.#read(query);
    keep(id, value as never, query);
    return value;
  }

  /** After a change was written or gathered. `rowId`: of a new row. */
  apply(change: Change, rowId: number): void {
    writeOf(change).cache?.(this, change, rowId);
  }

  patchNode(change: Of<"node.beaten" | "node.tallied">): void {
    const node = this.#nodes.get(change.nodeId);
    const after = node && patchNode(node, change);
    if (after) this.#nodes.set(change.nodeId, after);
    else this.#nodes.delete(change.nodeId);
    if (this.#candidates.size > 0) this.#patchCandidates(change, after ?? null);
  }

  patchUsage(change: Of<"usage.tallied">): void {
    const usage = this.#usage.get(change.nodeId);
    const after = usage && patchUsage(change.nodeId, usage, change);
    if (after) this.#usage.set(change.nodeId, after);
  }

  patchSpending(change: Of<"spending.summed">): void {
    if (this.#gate) this.#gate = { ...this.#gate, value: gateAfter(this.#gate.value, change) };
  }

  setLedgerHead({ entry: { seq, hash } }: Of<"lux.entered">): void {
    this.#ledgerHead = { seq, hash };
  }

  clearTasks(): void {
    this.#tasks.clear();
  }

  clearGate(): void {
    this.#gate = null;
  }

  clearUsage(): void {
    this.#usage.clear();
  }

  clear(): void {
    this.#tasks.clear();
    this.#nodes.clear();
    this.#giftless.clear();
    this.#usage.clear();
    this.#backlogs.clear();
    this.#candidates.clear();
    this.#gate = null;
    this.#lanes = null;
    this.#ledgerHead = null;
  }

  writeTask(change: Change & { readonly task: Task }): void {
    this.#keepTask(change.task);
    const { status, assignedNode, startedAt } = change.task;
    if (status === "assigned" && startedAt === null && assignedNode !== null)
      this.#giftless.delete(assignedNode);
    if (this.#lanes && isSpecial(change.task.lane)) this.#patchLanes(this.#lanes, change);
    this.#patchBacklogs(change);
  }

  #keepLanes(lanes: Lanes): void {
    this.#lanes = lanes;
    this.#laneWrites = 0;
  }

  /** A lane stays when its last task has left. So the lanes are read again before most of them can be empty. */
  #patchLanes(lanes: Lanes, change: Change): void {
    this.#laneWrites++;
    const isStale = this.#laneWrites > lanes.size + CACHED_LANES_WRITES;
    this.#lanes = isStale ? null : (patchLanes(lanes, change) ?? null);
  }

  /** What limits leave changes with every dispatch, and with the time: it is read again. */
  #keepGate(id: string, value: Gate): void {
    this.#gate = value.limits.length === 0 ? { id, value } : null;
  }

  #keepTask(task: Task): void {
    const { taskId, status } = task;
    const isFinished = status === "completed" || status === "failed";
    if (isFinished || charsOf(task) > CACHED_TASK_MAX_CHARS) this.#tasks.delete(taskId);
    else this.#tasks.set(taskId, task);
  }

  #keepBacklog(id: string, backlog: Backlog): void {
    if (this.#backlogs.size >= CACHED_BACKLOGS) this.#backlogs.clear();
    this.#backlogs.set(id, backlog);
  }

  #keepCandidates(taskType: string, takers: Takers): void {
    if (this.#candidates.size >= CACHED_CANDIDATES) this.#candidates.clear();
    this.#candidates.set(taskType, takers);
  }

  #patchCandidates(change: Change, node: Node | null): void {
    if (change.kind === "node.beaten") return;
    for (const [taskType, takers] of this.#candidates) {
      const after = patchTakers(takers, change, { taskType }, node);
      if (after === undefined) this.#candidates.delete(taskType);
      else if (after !== takers) this.#candidates.set(taskType, after);
    }
  }

  #patchBacklogs(change: Change): void {
    for (const [id, { query, tasks }] of this.#backlogs) {
      const after = query.patch?.(tasks, change);
      if (after === undefined) this.#backlogs.delete(id);
      else if (after !== tasks) this.#backlogs.set(id, { query, tasks: after });
    }
  }

  evict(change: Change): void {
    const keys = writeSetOf(change);
    if (keys.includes(EVERYTHING)) return this.clear();
    for (const key of keys) {
      for (const prefix of OF_TASK) if (key.startsWith(prefix)) this.#tasks.delete(key.slice(prefix.length));
      if (key.startsWith(OF_NODE)) this.#nodes.delete(key.slice(OF_NODE.length));
      if (key === "nodes") this.#candidates.clear();
    }
    if (keys.includes("tasks") || keys.includes("files")) this.#patchBacklogs(change);
  }
}

/**
 * A bounded map: it keeps the rows that were used last, at least `most` and at most twice as many. Fewer if their texts
 * are longer than `mostChars`; those of a row that was used again, or is gone, count until the next generation.
 */
class Generations<V> {
  readonly #most: number;
  readonly #mostChars: number;
  readonly #charsOf: (row: V) => number;
  #chars = 0;
  #young = new Map<string, V>();
  #old = new Map<string, V>();

  constructor(most: number, mostChars = Infinity, charsOf: (row: V) => number = () => 0) {
    this.#most = most;
    this.#mostChars = mostChars;
    this.#charsOf = charsOf;
  }

  get(id: string): V | undefined {
    const young = this.#young.get(id);
    if (young !== undefined) return young;
    const old = this.#old.get(id);
    if (old !== undefined) this.set(id, old);
    return old;
  }

  set(id: string, row: V): void {
    if (!this.#young.has(id)) this.#chars += this.#charsOf(row);
    this.#young.set(id, row);
    if (this.#young.size < this.#most && this.#chars < this.#mostChars) return;
    this.#chars = 0;
    this.#old = this.#young;
    this.#young = new Map();
  }

  delete(id: string): void {
    this.#young.delete(id);
    this.#old.delete(id);
  }

  clear(): void {
    this.#young.clear();
    this.#old.clear();
  }
}
