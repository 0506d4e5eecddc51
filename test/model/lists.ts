/**
 * Random concurrent calls of the task use cases: the lists by node, the top nodes and the ledger must equal a plain
 * computation over all tasks and payments. The sequences are longer than those of the model.
 */
import { expect } from "bun:test";
import { Rejection, accept } from "../../src/domain/decision.ts";
import { type Clock, DAY_MS } from "../../src/lib/clock.ts";
import { BalancerRounds } from "../../src/service/balancer-rounds.ts";
import { LuxService } from "../../src/service/lux.ts";
import { NodeService } from "../../src/service/nodes.ts";
import { TaskService } from "../../src/service/tasks.ts";
import { oldEvents } from "../../src/store/sql/retention.ts";
import { nodeById } from "../../src/store/sql/nodes.ts";
import { strandedTasks } from "../../src/store/sql/tasks.ts";
import type { Query, Row, Store } from "../../src/store/store.ts";
import { NOW, STEADY, draft, profile } from "../domain/samples.ts";
import { type Dice, dice } from "../support/dice.ts";

const NODES = ["n0", "n1", "n2", "n3", "n4"] as const;
/** Requests that one step asks for at once, at most. */
const AT_ONCE_MAX = 40;
const LEASE_MS = 90_000;
const RESULT = { problem: "p", improvement: "i", lesson: "l", extra: null };

const STATES = [
  ["assigned"],
  ["completed"],
  ["open", "assigned"],
  ["open", "assigned", "completed"],
] as const;
/** How many a page holds, and which page. */
const PAGES = [
  [1_000, 1],
  [7, 1],
  [7, 3],
  [9, 8],
] as const;

type TaskRow = {
  readonly seq: number;
  readonly taskId: string;
  readonly status: string;
  readonly nodeId: string | null;
};
type Rank = { readonly nodeId: string; readonly completed: number; readonly earned: number };

/** One hub's use cases over its store. */
class Hub {
  readonly store: Store;
  readonly tasks: TaskService;
  readonly rounds: BalancerRounds;
  readonly nodes: NodeService;
  readonly lux: LuxService;

  constructor(store: Store, clock: Clock) {
    const newId = (): string => Bun.randomUUIDv7();
    this.store = store;
    this.tasks = new TaskService(store, clock, newId);
    this.rounds = new BalancerRounds(store, clock);
    this.nodes = new NodeService(store, clock, this.tasks);
    this.lux = new LuxService(store, clock, newId);
  }
}

export class Lists {
  readonly #hubs: readonly Hub[];
  readonly #roll: Dice;
  #passed = 0;
  readonly #ids: string[] = [];

  constructor(stores: readonly Store[], seed: number) {
    const clock: Clock = {
      now: () => NOW + this.#passed,
      steady: () => STEADY + this.#passed,
      timers: () => this.#passed,
    };
    this.#hubs = stores.map((store) => new Hub(store, clock));
    this.#roll = dice(seed);
  }

  /** Plays so many steps, and looks after each. */
  async play(steps: number): Promise<void> {
    for (let step = 0; step < steps; step++) {
      const asked = Array.from({ length: 1 + this.#roll(AT_ONCE_MAX) }, () => this.#ask());
      for (const end of await Promise.allSettled(asked))
        if (end.status === "rejected" && !(end.reason instanceof Rejection)) throw end.reason;
      if (this.#roll(4) === 0) await this.#sweep();
      await this.#compare();
    }
  }

  get #hub(): Hub {
    const hub = this.#hubs[this.#roll(this.#hubs.length)];
    if (!hub) throw new Error("no hub");
    return hub;
  }

  get #node(): string {
    return NODES[Math.min(this.#roll(NODES.length), this.#roll(NODES.length))] ?? "n0";
  }

  /** Young ones, so that requests meet. */
  get #task(): string {
    return this.#ids.at(-1 - this.#roll(60)) ?? "none";
  }

  async #ask(): Promise<unknown> {
    const { store, tasks, nodes, lux } = this.#hub;
    const { transact } = store;
    const [nodeId, taskId] = [this.#node, this.#task];
    this.#passed += this.#roll(3);
    switch (this.#roll(20)) {
      case 0:
      case 1:
      case 2:
      case 3: {
        const reward = this.#roll(3) * 1_000_000;
        const balanced = this.#roll(4) === 0;
        const { taskId: made } = await tasks.create(transact, draft({ luxRewardMicro: reward, balanced }));
        return this.#ids.push(made);
      }
      case 4:
      case 5:
      case 6:
      case 7:
      case 8:
        return tasks.take(transact, "claim", { taskId, nodeId });
      case 9:
        return tasks.take(transact, "assign", { taskId, nodeId });
      case 10: {
        const pairs = Array.from({ length: 4 }, () => ({ taskId: this.#task, nodeId: this.#node }));
        return tasks.assignAll(transact, pairs);
      }
      case 11:
      case 12:
      case 13:
      case 14: {
        const claimOnComplete = this.#roll(2) === 0;
        const holder = (await this.#holderOf(taskId)) ?? nodeId;
        return tasks.complete(transact, { taskId, nodeId: holder, result: RESULT, claimOnComplete });
      }
      case 15:
        return tasks.revoke(transact, { taskId, nodeId: this.#roll(2) === 0 ? null : nodeId, reason: null });
      case 16:
        return tasks.remove(transact, taskId);
      case 17:
        return nodes.register(
          transact,
          profile(nodeId, { maxTasks: this.#roll(2) === 0 ? 3 : null }),
          LEASE_MS,
        );
      case 18:
        return nodes.heartbeat(transact, nodeId, () => LEASE_MS);
      default:
        return this.#roll(3) === 0 ? tasks.runBalancer(transact) : lux.signIn(transact, nodeId);
    }
  }

  async #holderOf(taskId: string): Promise<string | null> {
    const row = (await this.#tasks()).find((task) => task.taskId === taskId);
    return row?.nodeId ?? null;
  }

  /** Time passes; who was silent goes offline, what is old is forgotten. */
  async #sweep(): Promise<void> {
    this.#passed += [1_000, LEASE_MS / 2, LEASE_MS, DAY_MS][this.#roll(4)] ?? 0;
    const { store, nodes, tasks, rounds } = this.#hub;
    const { signal } = new AbortController();
    await nodes.expireSome();
    if (this.#roll(3) > 0) await tasks.requeueStranded(signal);
    await rounds.run(true);
    if (this.#roll(3) > 0) return;
    const limits = { before: NOW + this.#passed, limit: 10_000, now: NOW + this.#passed };
    await store.transact({ old: oldEvents(limits) }, () =>
      accept(null, [{ kind: "events.pruned", ...limits }]),
    );
  }

  async #rows<R>(sql: string, of: (row: Row) => R): Promise<readonly R[]> {
    const rows: Query<readonly R[]> = { sql, params: [], shape: (found) => found.map(of), reads: [] };
    return this.#hub.store.read(rows);
  }

  /** Newest first. */
  #tasks(): Promise<readonly TaskRow[]> {
    return this.#rows(`SELECT seq, task_id, status, assigned_node FROM tasks ORDER BY seq DESC`, (row) => ({
      seq: Number(row["seq"]),
      taskId: String(row["task_id"]),
      status: String(row["status"]),
      nodeId: row["assigned_node"] == null ? null : String(row["assigned_node"]),
    }));
  }

  async #compare(): Promise<void> {
    const tasks = await this.#tasks();
    const payments = await this.#rows(
      `SELECT node_id, n, entry_id, kind, amount_micro FROM ledger ORDER BY n DESC`,
      (row) => ({
        nodeId: String(row["node_id"]),
        id: String(row["entry_id"]),
        reward: row["kind"] === "reward" ? Number(row["amount_micro"]) : 0,
      }),
    );
    await this.#compareTasks(null, tasks);
    const ranks: Rank[] = [];
    for (const nodeId of NODES) {
      if (!(await this.#hub.store.read(nodeById(nodeId)))) continue;
      const own = tasks.filter((task) => task.nodeId === nodeId);
      const paid = payments.filter((payment) => payment.nodeId === nodeId);
      await this.#compareTasks(nodeId, own);
      await this.#compareLedger(
        nodeId,
        paid.map(({ id }) => id),
      );
      const completed = own.filter(({ status }) => status === "completed").length;
      ranks.push({ nodeId, completed, earned: paid.reduce((sum, { reward }) => sum + reward, 0) });
    }
    await this.#compareTop(ranks);
    await this.#compareStranded(tasks);
  }

  /** `own`: the node's tasks, or all of them. */
  async #compareTasks(nodeId: string | null, own: readonly TaskRow[]): Promise<void> {
    for (const states of STATES) {
      const expected = own.filter(({ status }) => states.some((state) => state === status));
      const last = Math.max(1, Math.ceil(expected.length / 7));
      for (const [perPage, page] of [...PAGES, [7, last], [7, Math.max(1, last - 1)]] as const) {
        const found = await this.#hub.tasks.list(states, nodeId, { page, perPage });
        const ids = expected.slice((page - 1) * perPage, page * perPage).map(({ taskId }) => taskId);
        const told = { total: found.total, ids: found.rows.first.map(({ taskId }) => taskId) };
        expect({ nodeId, states, ...told }).toEqual({ nodeId, states, total: expected.length, ids });
      }
    }
  }

  /** `ids`: the node's payments, newest first. */
  async #compareLedger(nodeId: string, ids: readonly string[]): Promise<void> {
    for (const [perPage, page] of PAGES) {
      const found = await this.#hub.lux.ledger(nodeId, { page, perPage });
      const told = { total: found.total, ids: found.rows.first.map(({ id }) => id) };
      const expected = ids.slice((page - 1) * perPage, page * perPage);
      expect({ nodeId, ...told }).toEqual({ nodeId, total: ids.length, ids: expected });
    }
  }

  /** Not after every step: what is kept must hold over several, too. */
  async #compareTop(ranks: readonly Rank[]): Promise<void> {
    if (this.#roll(2) === 0) return;
    const best = ranks
      .filter(({ completed }) => completed > 0)
      .toSorted((a, b) => b.completed - a.completed || b.earned - a.earned || (a.nodeId < b.nodeId ? -1 : 1));
    for (const { tasks } of this.#hubs) {
      const { top } = await tasks.stats();
      const told = top.map(({ nodeId, tasksCompleted, luxEarnedMicro }) => {
        return { nodeId, completed: tasksCompleted, earned: Number(luxEarnedMicro) };
      });
      expect(told).toEqual(best);
    }
  }

  /** Whatever a node holds that is offline is found when it is to be taken back. */
  async #compareStranded(tasks: readonly TaskRow[]): Promise<void> {
    const offline = await this.#rows(`SELECT node_id FROM nodes WHERE online = 0`, (row) =>
      String(row["node_id"]),
    );
    const held = tasks.filter(
      ({ status, nodeId }) => status === "assigned" && offline.includes(nodeId ?? ""),
    );
    const found = await this.#hub.store.read(strandedTasks(tasks.length));
    expect(found.map(({ seq }) => seq).toSorted()).toEqual(held.map(({ seq }) => seq).toSorted());
  }
}
