/**
 * Group commit on PostgreSQL compared with SQLite: the same concurrent requests in the same order must get the same
 * answers and leave the same rows. SQLite loads, decides and writes one transaction after the other; PostgreSQL loads and
 * writes many together. So this finds a missing conflict key and a wrong batch.
 */
import { SQL } from "bun";
import { Database } from "bun:sqlite";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Rejection } from "../../src/domain/decision.ts";
import type { Clock } from "../../src/lib/clock.ts";
import { EmbeddedMail } from "../../src/mail/embedded.ts";
import { Takes } from "../../src/service/blocked-calls.ts";
import { LuxService } from "../../src/service/lux.ts";
import { MessageService } from "../../src/service/messages.ts";
import { NodeService } from "../../src/service/nodes.ts";
import { TaskService } from "../../src/service/tasks.ts";
import { Waiters } from "../../src/service/waiters.ts";
import { openPostgres } from "../../src/store/postgres/engine.ts";
import { openSqlite } from "../../src/store/sqlite/engine.ts";
import type { Store } from "../../src/store/store.ts";
import { NOW, STEADY, UNSCHEDULED } from "../domain/samples.ts";
import { dice } from "../support/dice.ts";
import { cases } from "../support/long.ts";
import { POSTGRES_MISSING, newSchema, sharedServer } from "../support/postgres.ts";

const reason = POSTGRES_MISSING === null ? "" : ` (skipped: ${POSTGRES_MISSING})`;
const suite = POSTGRES_MISSING === null ? describe : describe.skip;
if (POSTGRES_MISSING === null) await sharedServer();

const ROUNDS = cases(6, 12);
const AT_ONCE = 80;
const TABLES: Readonly<Record<string, string>> = {
  nodes: "node_id",
  tasks: "seq",
  task_totals: "one",
  ledger: "node_id, n",
  messages: "seq",
  deliveries: "to_node, seq",
  events: "id",
};

/** The use cases over one store, with a clock that stands and ids that count, so that two of them do the same. */
class World {
  readonly store: Store;
  readonly #tasks: TaskService;
  readonly #nodes: NodeService;
  readonly #messages: MessageService;
  readonly #lux: LuxService;
  #time = 0;
  #ids = 0;

  constructor(store: Store) {
    const clock: Clock = {
      now: () => NOW + this.#time,
      steady: () => STEADY + this.#time,
      machine: () => STEADY + this.#time,
      timers: () => this.#time,
      work: () => 0,
    };
    const newId = (): string => `id-${String(this.#ids++).padStart(6, "0")}`;
    this.store = store;
    this.#tasks = new TaskService(store, clock, newId);
    this.#nodes = new NodeService(store, clock, this.#tasks);
    const takes = new Takes(store, clock);
    this.#messages = new MessageService(store, new EmbeddedMail(store), clock, newId, new Waiters(), takes);
    this.#lux = new LuxService(store, clock, newId);
  }

  /** One request, of a kind and about things that the dice choose; what is known of the ids so far is `made`. */
  ask(roll: (sides: number) => number, made: readonly string[]): Promise<unknown> {
    this.#time++;
    const { transact } = this.store;
    const nodeId = `n${roll(6)}`;
    const taskId = made[roll(Math.max(1, made.length))] ?? "none";
    const taskType = ["", "x", "y"][roll(3)] ?? "";
    switch (roll(12)) {
      case 0:
      case 1:
      case 2: {
        const draft = {
          ...UNSCHEDULED,
          title: "t",
          description: "d'\\\"{}",
          taskType,
          creatorVerified: false,
          creatorKey: null,
          schedule: null,
        } as const;
        return this.#tasks.create(transact, { ...draft, luxRewardMicro: roll(3), balanced: roll(2) === 0 });
      }
      case 3:
      case 4:
        return this.#tasks.take(transact, "claim", { taskId, nodeId });
      case 5:
      case 6: {
        const result = { problem: "p", improvement: "NULL", lesson: "", extra: '{"n":12345678901234567890}' };
        return this.#tasks.complete(transact, {
          taskId,
          nodeId,
          result,
          epoch: null,
          claimOnComplete: roll(2) === 0,
        });
      }
      case 7: {
        const toNode = roll(4) === 0 ? null : nodeId;
        const type = toNode === null ? "broadcast" : "text";
        const message = {
          fromNode: "n0",
          toNode,
          type,
          content: "ü\n,{}",
          requireAck: roll(2) === 0,
          replyTo: null,
          thread: null,
          verified: false,
        } as const;
        return this.#messages.send(transact, message);
      }
      case 8: {
        const patience = { waitMs: 0, signal: new AbortController().signal, repeatable: false };
        return this.#messages.receive(transact, nodeId, 1 + roll(3), patience);
      }
      case 9:
        return this.#messages.acknowledge(transact, { messageId: taskId, nodeId });
      case 10:
        return roll(2) === 0
          ? this.#nodes.heartbeat(transact, nodeId, () => 90_000)
          : this.#lux.signIn(transact, nodeId);
      default:
        return roll(2) === 0
          ? this.#tasks.remove(transact, taskId)
          : this.#tasks.assignAll(transact, [
              { taskId, nodeId },
              { taskId, nodeId: "n1" },
            ]);
    }
  }

  register(nodeId: string, capabilities: readonly string[]): Promise<unknown> {
    const profile = {
      nodeId,
      name: nodeId,
      host: null,
      port: null,
      capabilities,
      maxTasks: null,
      autoAssign: true,
    };
    return this.#nodes.register(this.store.transact, { ...profile, variant: "B" }, 90_000);
  }
}

/** What was answered, as plain values; the transport is the one thing that may differ. */
async function told(promise: Promise<unknown>): Promise<unknown> {
  const plain = (name: string, value: unknown): unknown =>
    name === "transport" ? null : typeof value === "bigint" ? String(value) : value;
  return promise.then(
    (answer): unknown => JSON.parse(JSON.stringify(answer, plain)),
    (error: unknown) => (error instanceof Rejection ? error.code : String(error)),
  );
}

suite(`groups on PostgreSQL and on SQLite${reason}`, () => {
  const folder = mkdtempSync(join(tmpdir(), "luxhub-model-"));
  let remove: () => Promise<void>;
  let sql: SQL;
  let worlds: readonly [World, World];

  beforeAll(async () => {
    const schema = await newSchema();
    remove = schema.remove;
    sql = new SQL(schema.url, { max: 1 });
    const onFault = (error: unknown): never => {
      throw error;
    };
    const clock: Clock = {
      now: () => NOW,
      steady: () => STEADY,
      machine: () => STEADY,
      timers: () => 0,
      work: () => 0,
    };
    worlds = [
      new World(openSqlite(join(folder, "db"), onFault)),
      new World(await openPostgres(schema.url, clock, onFault)),
    ];
  });

  afterAll(async () => {
    for (const { store } of worlds) await store.close();
    await sql.close();
    await remove();
    rmSync(folder, { recursive: true });
  });

  /** The rows of a table as texts, for the drivers differ in how they give numbers. */
  async function rows(table: string, order: string): Promise<readonly [unknown, unknown]> {
    const db = new Database(join(folder, "db"), { readonly: true, safeIntegers: true });
    const ours = db.query<Record<string, unknown>, []>(`SELECT * FROM ${table} ORDER BY ${order}`).all();
    db.close();
    const theirs: readonly Record<string, unknown>[] = await sql.unsafe(
      `SELECT * FROM ${table} ORDER BY ${order}`,
    );
    const plain = (list: readonly Record<string, unknown>[]) =>
      list.map((row) =>
        Object.fromEntries(
          Object.entries(row).map(([name, value]) => [name, value === null ? null : String(value)]),
        ),
      );
    return [plain(ours), plain(theirs)];
  }

  for (const seed of [1, 2])
    test(`${ROUNDS} times ${AT_ONCE} requests at once (seed ${seed})`, async () => {
      for (const world of worlds)
        for (const [nodeId, capabilities] of [
          ["n0", []],
          ["n1", ["x"]],
          ["n2", ["x", "y"]],
          ["n3", ["y"]],
        ] as const)
          await world.register(nodeId, capabilities);
      const answered: unknown[][] = [[], []];
      for (let round = 0; round < ROUNDS; round++) {
        for (const [i, world] of worlds.entries()) {
          const roll = dice(seed * 1_000 + round);
          // About what is young: then they get into one another's way.
          const made = Array.from(
            { length: 40 },
            (_, back) => `id-${String(idsOf(answered[i]) - back).padStart(6, "0")}`,
          );
          const asked = Array.from({ length: AT_ONCE }, () => told(world.ask(roll, made)));
          answered[i]?.push(...(await Promise.all(asked)));
        }
        expect(answered[1]?.slice(-AT_ONCE)).toEqual(answered[0]?.slice(-AT_ONCE) ?? []);
      }
      for (const [table, order] of Object.entries(TABLES)) {
        const [ours, theirs] = await rows(table, order);
        expect([table, theirs]).toEqual([table, ours]);
      }
    });

  /** About how many ids have been given: the newest that an answer names. */
  function idsOf(answers: readonly unknown[] | undefined): number {
    const ids = JSON.stringify(answers?.slice(-AT_ONCE) ?? []).matchAll(/id-(\d{6})/g);
    return Math.max(0, ...Array.from(ids, ([, digits]) => Number(digits)));
  }
});
