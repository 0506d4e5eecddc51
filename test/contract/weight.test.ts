/**
 * What the steps of a task cost in SQLite, in figures that do not depend on the machine: the steps of its virtual machine,
 * and the pages of the write-ahead log, by the length of the prompt. A task that uses no feature pays for none.
 */
import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import type { Change, Notified } from "../../src/domain/change.ts";
import { statementsOf } from "../../src/store/sql/statements.ts";
import { SqliteStore } from "../../src/store/sqlite/engine.ts";
import { SQLITE_SCHEMA } from "../../src/store/sqlite/schema.ts";
import { ok } from "../api/scene.ts";
import { MeasuredDatabase, SQLITE_MISSING } from "../support/measured-database.ts";
import { TempDir } from "../e2e/program.ts";
import { type TestHub, startHub } from "../support/hub.ts";

type Cost = { readonly steps: number; readonly pages: number };

/** Runs the changes of a hub's commits in a database that counts. */
class Scale implements Disposable {
  readonly #dir = new TempDir();
  readonly #db: MeasuredDatabase;
  readonly #commits: (readonly Change[])[] = [];

  constructor() {
    const path = this.#dir.join("measured.db");
    using empty = new Database(path);
    empty.run(SQLITE_SCHEMA.create());
    this.#db = new MeasuredDatabase(path);
  }

  note(changes: readonly Notified[]): void {
    // Of its own commits, a hub hears the changes themselves.
    this.#commits.push(changes as readonly Change[]);
  }

  /** The cost of what was noted since the last call, as one commit. */
  weigh(): Cost {
    const before = this.#db.pages;
    let steps = 0;
    this.#db.run("BEGIN", []);
    for (const change of this.#commits.splice(0).flat())
      for (const { sql, params } of statementsOf(change).all)
        steps += this.#db.run(sql.replaceAll(/\$(\d+)/g, "?$1"), params(change));
    this.#db.run("COMMIT", []);
    return { steps, pages: this.#db.pages - before };
  }

  [Symbol.dispose](): void {
    this.#db[Symbol.dispose]();
    this.#dir[Symbol.dispose]();
  }
}

/** A hub, and the scale of its commits. */
async function weighedHub(): Promise<{ hub: TestHub; scale: Scale }> {
  const scale = new Scale();
  const { onCommit } = SqliteStore.prototype;
  const opened = new Set<SqliteStore>();
  SqliteStore.prototype.onCommit = function (this: SqliteStore, listener): void {
    if (opened.size === 0) onCommit.call(this, (changes) => scale.note(changes));
    opened.add(this);
    onCommit.call(this, listener);
  };
  try {
    return { hub: await startHub(), scale };
  } finally {
    SqliteStore.prototype.onCommit = onCommit;
  }
}

const PROMPTS = [200, 4_000, 16_000, 60_000];
const STEPS = ["create", "claim", "extend", "complete"] as const;
type Step = (typeof STEPS)[number];
/** Ceilings, a little above what is reached: what a new feature adds to a task that does not use it shows here. */
const CYCLE_STEPS_MAX = 935;
/** With a reward, each step in a commit of its own; tasks of one group that share a commit share its row. */
const GROUPED_CYCLE_STEPS_MAX = 2_060;
const CYCLES = 20;
const PAGES_MAX: Readonly<Record<Step, number>> = { create: 13, claim: 12, extend: 7, complete: 14 };
const PAGE_CHARS = 4_000;
const result = { problem: "p".repeat(700), improvement: "i".repeat(700), lesson: "l".repeat(600) };

async function cycle(
  hub: TestHub,
  scale: Scale,
  chars: number,
  terms: object = {},
): Promise<Record<Step, Cost>> {
  const of = async (answer: Promise<unknown>): Promise<Cost> => {
    await answer;
    return scale.weigh();
  };
  const draft = { title: "Summarise", description: "x".repeat(chars), ...terms };
  const created = await ok(hub.post("/task/create", draft));
  const create = scale.weigh();
  const held = { task_id: created["task_id"], node_id: "n1" };
  return {
    create,
    claim: await of(ok(hub.post("/task/claim", held))),
    extend: await of(ok(hub.post("/task/extend", { ...held, note: "page 3 of 9" }))),
    complete: await of(ok(hub.post("/task/complete", { ...held, result }))),
  };
}

function shown(cost: Record<Step, Cost>): string {
  return STEPS.map((step) => `${step} ${cost[step].steps} steps, ${cost[step].pages} pages`).join("; ");
}

describe.skipIf(SQLITE_MISSING !== null)(
  `weight${SQLITE_MISSING === null ? "" : ` (${SQLITE_MISSING})`}`,
  () => {
    test("of a plain cycle", async () => {
      const { hub, scale } = await weighedHub();
      await using _hub = hub;
      using _scale = scale;
      await hub.addNode("n1");
      for (let i = 0; i < 40; i++) await cycle(hub, scale, 200); // pages that later cycles share
      const costs = new Map<number, Record<Step, Cost>>();
      for (const chars of PROMPTS) costs.set(chars, await cycle(hub, scale, chars));
      for (const [chars, cost] of costs) {
        console.log(`a prompt of ${chars} characters: ${shown(cost)}`);
        const { create, claim, complete } = cost;
        expect(create.steps + claim.steps + complete.steps).toBeLessThanOrEqual(CYCLE_STEPS_MAX);
        // The prompt is written once, however long it is.
        expect(create.pages).toBeLessThanOrEqual(PAGES_MAX.create + Math.ceil(chars / PAGE_CHARS));
        for (const step of ["claim", "extend", "complete"] as const)
          expect([step, cost[step].pages]).toEqual([step, Math.min(cost[step].pages, PAGES_MAX[step])]);
      }
    });

    test("of a task with a group, whose totals are summed up in one row", async () => {
      const { hub, scale } = await weighedHub();
      await using _hub = hub;
      using _scale = scale;
      await hub.addNode("n1");
      const grouped = () => cycle(hub, scale, 200, { group: "g", lux_reward: 1 });
      for (let i = 0; i < 40; i++) await grouped();
      await hub.sweep();
      scale.weigh();
      // The look at a group that may have ended follows in a commit of its own: perhaps in the next step of the cycle.
      let steps = 0;
      let last = await grouped();
      for (let i = 0; i < CYCLES; i++, last = await grouped())
        for (const { steps: more } of Object.values(last)) steps += more;
      console.log(`a task with a group: ${steps / CYCLES} steps; ${shown(last)}`);
      steps /= CYCLES;
      expect(steps).toBeLessThanOrEqual(GROUPED_CYCLE_STEPS_MAX);
    });
  },
);
