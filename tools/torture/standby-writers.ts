/**
 * Writers at the first hub of a pair, and what was acknowledged to them, with the moment. A check says what of it a
 * database has.
 */
import { Database } from "bun:sqlite";
import { join } from "node:path";
import { FACTS } from "../../src/store/sql/consistency.ts";
import type { Hub } from "../../test/e2e/program.ts";

export const WRITERS = 16;
const REWARD = 0.5;

type Acknowledged = {
  readonly kind: "task" | "completion" | "message";
  readonly id: string;
  readonly ms: number;
};

export class Work {
  readonly acknowledged: Acknowledged[] = [];
  /** Responses to writes that are neither 200 nor the refusal of a hub that is not the first. */
  readonly faults: string[] = [];
  readonly #hub: Hub;
  #working: Promise<unknown> = Promise.resolve();
  #isOver = false;

  constructor(hub: Hub) {
    this.#hub = hub;
  }

  async start(names: readonly string[]): Promise<void> {
    for (const name of names) await this.#hub.register(name);
    this.#working = Promise.all(
      names.map((name, i) => this.#write(name, names[(i + 1) % names.length] ?? "")),
    );
  }

  /** When each of them has no call that runs. */
  async end(): Promise<void> {
    this.#isOver = true;
    await this.#working;
  }

  async #write(name: string, other: string): Promise<void> {
    for (let step = 0; !this.#isOver; step++) {
      const taskId = await this.#call("task", "/task/create", {
        ...{ title: `${name} ${step}`, description: "d", lux_reward: REWARD },
      });
      if (taskId === null) continue;
      const held = { task_id: taskId, node_id: name };
      if ((await this.#call(null, "/task/claim", held)) === null) continue;
      const result = { problem: "p", improvement: "i", lesson: name };
      await this.#call("completion", "/task/complete", { ...held, result });
      await this.#call("message", "/message/send", { from_node: name, to_node: other, content: taskId });
    }
  }

  /** Returns the id of what was written; null when the hub is gone, or not the first any more. */
  async #call(kind: Acknowledged["kind"] | null, path: string, body: object): Promise<string | null> {
    const answer = await this.#hub.post(path, body).catch(() => null);
    if (answer === null || answer.status !== 200) {
      const isGone = answer === null || [500, 503].includes(answer.status);
      // A claim or completion may be of a task whose creation had no known outcome: none of these is sent.
      if (!isGone) this.faults.push(`${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
      if (answer?.status === 500 && answer.body["error"] !== "outcome_unknown")
        this.faults.push(`${path}: ${JSON.stringify(answer.body)}`);
      await Bun.sleep(1); // a hub that refuses at once
      return null;
    }
    const id = String(answer.body["message_id"] ?? answer.body["task_id"]);
    if (kind !== null) this.acknowledged.push({ kind, id, ms: performance.now() });
    return id;
  }
}

type Row = Readonly<Record<string, string | number | null>>;

const KNOWN = {
  task: "SELECT task_id AS id FROM tasks",
  completion: "SELECT task_id AS id FROM ledger WHERE kind = 'reward'",
  message: "SELECT message_id AS id FROM messages",
};

export type Check = {
  /** Acknowledged, and not there. */
  readonly missing: readonly Acknowledged[];
  /** Tasks paid twice, totals that are not their count, damage. */
  readonly faults: readonly string[];
};

/** Of a database while its hub runs, or of one that was set aside. */
export function checkWork(acknowledged: readonly Acknowledged[], data: string, file = "luxhub.db"): Check {
  using db = new Database(join(data, file), { readonly: true });
  db.run("BEGIN"); // one moment
  const rows = (sql: string): readonly Row[] => db.query<Row, []>(sql).all();
  const ids = {
    task: idsOf(rows(KNOWN.task)),
    completion: idsOf(rows(KNOWN.completion)),
    message: idsOf(rows(KNOWN.message)),
  };
  const twice = rows(`SELECT task_id, count(*) AS times FROM ledger WHERE kind = 'reward'
    GROUP BY task_id HAVING count(*) > 1`);
  const broken = FACTS.flatMap(({ name, sql }) => rows(sql).map((row) => `${name}: ${JSON.stringify(row)}`));
  const integrity = rows("PRAGMA integrity_check").map((row) => Object.values(row)[0]);
  return {
    missing: acknowledged.filter(({ kind, id }) => !ids[kind].has(id)),
    faults: [
      ...twice.map((row) => `paid twice: ${JSON.stringify(row)}`),
      ...broken,
      ...(integrity.join() === "ok" ? [] : [`integrity_check: ${integrity.join()}`]),
    ],
  };
}

const idsOf = (rows: readonly Row[]): ReadonlySet<unknown> => new Set(rows.map(({ id }) => id));
