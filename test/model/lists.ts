/**
 * Random concurrent calls of the task use cases: the lists by node and by filter, the top nodes and the ledger must equal a
 * plain computation over all tasks and payments. A list that is read by cursor meanwhile shows each task once. The
 * sequences are longer than those of the model.
 */
import { expect } from "bun:test";
import { Rejection, accept } from "../../src/domain/decision.ts";
import { type Clock, DAY_MS } from "../../src/lib/clock.ts";
import { BalancerRounds } from "../../src/service/balancer-rounds.ts";
import { LuxService } from "../../src/service/lux.ts";
import { NodeService } from "../../src/service/nodes.ts";
import type { Position } from "../../src/service/list-pages.ts";
import type { TaskQuery } from "../../src/service/task-lists.ts";
import { TaskService } from "../../src/service/tasks.ts";
import { oldEvents } from "../../src/store/sql/retention.ts";
import { nodeById } from "../../src/store/sql/nodes.ts";
import { strandedTasks } from "../../src/store/sql/tasks.ts";
import type { Query, Row, Store } from "../../src/store/store.ts";
import { ANY_TASK } from "../../src/service/task-lists.ts";
import { NOW, STEADY, draft, profile } from "../domain/samples.ts";
import { type Dice, dice } from "../support/dice.ts";

const NODES = ["n0", "n1", "n2", "n3", "n4"] as const;
const AT_ONCE_MAX = 40;
const LEASE_MS = 90_000;
const RESULT = { problem: "p", improvement: "i", lesson: "l", extra: null };

const STATES = [
  ["assigned"],
  ["completed"],
  ["open", "assigned"],
  ["open", "assigned", "completed"],
] as const;
const PAGES = [
  [1_000, 1],
  [7, 1],
  [7, 3],
  [9, 8],
] as const;

const CREATORS = ["c0", "c1", "n0"] as const;
const TYPES = ["coding", "research"] as const;
const TITLES = ["Fix the login page", "Übersicht: Login", "Index pages of a book"] as const;
const SEARCHES = [
  [["LOGIN"], [0, 1]],
  [["PAGE"], [0, 2]],
  [["PAGE", "THE"], [0]],
  [["ÜBER"], [1]],
  [["OGIN"], []],
] as const;

type TaskRow = {
  readonly seq: number;
  readonly taskId: string;
  readonly status: string;
  readonly nodeId: string | null;
  readonly creatorNode: string | null;
  readonly taskType: string;
  readonly title: string;
};

/** A list that is being read by cursor: what was there when it began, and what it has shown. */
type Reading = {
  readonly query: TaskQuery;
  readonly before: readonly TaskRow[];
  readonly shown: string[];
  next: Position | null;
};
type Rank = { readonly nodeId: string; readonly completed: number; readonly earned: number };

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
  #reading: Reading | null = null;

  constructor(stores: readonly Store[], seed: number) {
    const clock: Clock = {
      now: () => NOW + this.#passed,
      steady: () => STEADY + this.#passed,
      machine: () => STEADY + this.#passed,
      timers: () => this.#passed,
      work: () => 0,
    };
    this.#hubs = stores.map((store) => new Hub(store, clock));
    this.#roll = dice(seed);
  }

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
        const about = {
          creatorNode: CREATORS[this.#roll(6)] ?? null,
          taskType: TYPES[this.#roll(3)] ?? "",
          title: TITLES[this.#roll(TITLES.length)] ?? "",
        };
        const asked = draft({ luxRewardMicro: reward, balanced, ...about });
        const { taskId: made } = await tasks.create(transact, asked);
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
        return tasks.complete(transact, {
          taskId,
          nodeId: holder,
          result: RESULT,
          epoch: null,
          claimOnComplete,
        });
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
    await nodes.expireSome();
    if (this.#roll(3) > 0) while ((await tasks.requeueSome()) > 0);
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

  #tasks(): Promise<readonly TaskRow[]> {
    const text = (value: unknown): string | null => (value == null ? null : String(value));
    return this.#rows(`SELECT * FROM task_rows ORDER BY seq DESC`, (row) => ({
      seq: Number(row["seq"]),
      taskId: String(row["task_id"]),
      status: String(row["status"]),
      nodeId: text(row["assigned_node"]),
      creatorNode: text(row["creator_node"]),
      taskType: String(row["task_type"]),
      title: String(row["title"]),
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
    if (this.#roll(3) === 0) await this.#compareFiltered(tasks);
    await this.#readOn(tasks);
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
        const query = { ...ANY_TASK, statuses: states, nodeId };
        const found = await this.#hub.tasks.lists.page(query, { page, perPage });
        const ids = expected.slice((page - 1) * perPage, page * perPage).map(({ taskId }) => taskId);
        const told = { total: found.total, ids: found.rows.first.map(({ taskId }) => taskId) };
        expect({ nodeId, states, ...told }).toEqual({ nodeId, states, total: expected.length, ids });
      }
    }
  }

  /** Each part of the filter is left out as often as not. */
  #anyQuery(): TaskQuery {
    const maybe = <T>(values: readonly T[]): T | null => values[this.#roll(2 * values.length)] ?? null;
    return {
      ...ANY_TASK,
      statuses: maybe(STATES) ?? ANY_TASK.statuses,
      nodeId: maybe(NODES),
      creatorNode: maybe(CREATORS),
      taskType: maybe(TYPES),
      words: maybe(SEARCHES)?.[0] ?? [],
    };
  }

  async #compareFiltered(tasks: readonly TaskRow[]): Promise<void> {
    const query = this.#anyQuery();
    const expected = tasks.filter((task) => isOf(query, task)).map(({ taskId }) => taskId);
    const [perPage, page] = PAGES[this.#roll(PAGES.length)] ?? [7, 1];
    const found = await this.#hub.tasks.lists.page(query, { page, perPage });
    const told = { total: found.total, ids: found.rows.first.map(({ taskId }) => taskId) };
    const ids = expected.slice((page - 1) * perPage, page * perPage);
    expect({ query, ...told }).toEqual({ query, total: expected.length, ids });
    expect({ query, isLast: found.next === null }).toEqual({
      query,
      isLast: page * perPage >= expected.length,
    });
    const shown: string[] = [];
    const first = await this.#hub.tasks.lists.page(query, { page: 1, perPage: 7 });
    for (let part = first; ; part = await this.#hub.tasks.lists.after(query, part.next, 7 + this.#roll(30))) {
      shown.push(...part.rows.first.map(({ taskId }) => taskId));
      if (part.next === null) break;
    }
    expect({ query, shown }).toEqual({ query, shown: expected });
    await this.#compareUnfinishedFirst(query, tasks);
  }

  /** The first page begins with the unfinished tasks, and what it does not show comes after it. */
  async #compareUnfinishedFirst(query: TaskQuery, tasks: readonly TaskRow[]): Promise<void> {
    const expected = tasks.filter((task) => isOf(query, task));
    const isUnfinished = ({ status }: TaskRow): boolean => status === "open" || status === "assigned";
    const order = [...expected.filter(isUnfinished), ...expected.filter((task) => !isUnfinished(task))];
    const perPage = 1 + this.#roll(40);
    const page = await this.#hub.tasks.lists.page(query, { page: 1, perPage }, true);
    const shown = page.rows.first.map(({ taskId }) => taskId);
    const ids = order.slice(0, perPage).map(({ taskId }) => taskId);
    expect({ query, shown, total: page.total }).toEqual({ query, shown: ids, total: expected.length });
    const rest = page.next && (await this.#hub.tasks.lists.after(query, page.next, 1_000));
    const all = new Set([...shown, ...(rest?.rows.first ?? []).map(({ taskId }) => taskId)]);
    expect({ query, all: [...all].toSorted() }).toEqual({
      query,
      all: expected.map(({ taskId }) => taskId).toSorted(),
    });
  }

  /** Reads a list by cursor over many steps: what was there all the time is shown once, in order, whatever else changes. */
  async #readOn(tasks: readonly TaskRow[]): Promise<void> {
    if (this.#reading === null) {
      const query = { ...this.#anyQuery(), statuses: ANY_TASK.statuses, nodeId: null };
      const first = await this.#hub.tasks.lists.page(query, { page: 1, perPage: 5 });
      const shown = first.rows.first.map(({ taskId }) => taskId);
      this.#reading = { query, before: tasks, shown, next: first.next };
      return;
    }
    const { query, before, shown, next } = this.#reading;
    if (next !== null) {
      const part = await this.#hub.tasks.lists.after(query, next, 5 + this.#roll(20));
      shown.push(...part.rows.first.map(({ taskId }) => taskId));
      this.#reading.next = part.next;
      return;
    }
    const left = new Set(tasks.map(({ taskId }) => taskId));
    const expected = before.filter((task) => isOf(query, task)).map(({ taskId }) => taskId);
    expect(new Set(shown).size).toBe(shown.length);
    expect(shown.filter((taskId) => left.has(taskId))).toEqual(expected.filter((taskId) => left.has(taskId)));
    this.#reading = null;
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

function isOf({ statuses, nodeId, creatorNode, taskType, words }: TaskQuery, task: TaskRow): boolean {
  const titles = SEARCHES.find(([searched]) => searched === words)?.[1] ?? [0, 1, 2];
  return (
    statuses.some((status) => status === task.status) &&
    (nodeId === null || nodeId === task.nodeId) &&
    (creatorNode === null || creatorNode === task.creatorNode) &&
    (taskType === null || taskType === task.taskType) &&
    titles.some((title) => TITLES[title] === task.title)
  );
}
