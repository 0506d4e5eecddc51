/**
 * Checks the row cache of every SQLite store in the test process: after each commit, the rows that its changes name are
 * read through the cache and from the database. A difference, and a task that cannot be, is an unhandled error, which fails
 * the test.
 */
import type { Notified } from "../../src/domain/change.ts";
import type { Task } from "../../src/domain/model.ts";
import { assertSound } from "../../src/domain/task/state.ts";
import { nodeById } from "../../src/store/sql/nodes.ts";
import { bestGift, taskById } from "../../src/store/sql/tasks.ts";
import { type ReadyTasks, bestReady } from "../../src/store/sql/ready-tasks.ts";
import { usageOf } from "../../src/store/sql/usage.ts";
import { SqliteStore } from "../../src/store/sqlite/engine.ts";
import type { CommitListener, Query } from "../../src/store/store.ts";

/** Its own, so that a test that counts or replaces the reads of a store does not meet these. */
const { onCommit, read } = SqliteStore.prototype;
const checked = new WeakSet<SqliteStore>();

/** With its first listener a store gets another one, which checks. */
SqliteStore.prototype.onCommit = function (this: SqliteStore, listener: CommitListener): void {
  if (!checked.has(this)) onCommit.call(this, (changes) => void checkRows(this, changes, true));
  checked.add(this);
  onCommit.call(this, listener);
};

/** @throws {Error} when the cache and the database differ, or a task cannot be (`isSound`: the rules have written it) */
export async function checkRows(
  store: SqliteStore,
  changes: readonly Notified[],
  isSound = false,
): Promise<void> {
  const ids = changes.flatMap(idsIn);
  const [tasks, nodes] = [true, false].map((isTask) => [
    ...new Set(ids.filter(([name]) => (name === "taskId") === isTask).map(([, id]) => id)),
  ]);
  const queries: readonly Query<unknown>[] = [
    ...(tasks ?? []).map(taskById),
    ...(nodes ?? []).flatMap((id): Query<unknown>[] => [nodeById(id), usageOf(id), bestGift(id)]),
    bestReady(null),
    bestReady(["x"]),
  ];
  // The reads of one query run in one go: nothing is written between them.
  const reads = queries.map((query) => {
    const { cached, ...uncached } = query;
    return Promise.all([cached, read.call(store, query), read.call(store, uncached)]);
  });
  for (const result of await Promise.allSettled(reads)) {
    if (result.status === "rejected") continue; // the database is damaged
    const [cached, kept, stored] = result.value;
    if (isSound && isTask(stored)) assertSound(stored);
    if (isReady(kept) && isReady(stored) && beginsAs(kept, stored)) continue;
    if (Bun.deepEquals(kept, stored, true)) continue;
    const what = `${cached?.as} ${cached?.id}`;
    throw new Error(`${what}: the cache holds ${Bun.inspect(kept)}, the database ${Bun.inspect(stored)}.`);
  }
}

function isTask(answer: unknown): answer is Task {
  return typeof answer === "object" && answer !== null && "revokedFrom" in answer;
}

function isReady(answer: unknown): answer is ReadyTasks {
  return typeof answer === "object" && answer !== null && "isAll" in answer;
}

/** Of the best tasks, the cache may hold more or fewer than are loaded, and not know that there are no others. */
function beginsAs(kept: ReadyTasks, stored: ReadyTasks): boolean {
  const length = Math.min(kept.tasks.length, stored.tasks.length);
  if (stored.isAll && kept.tasks.length > length) return false;
  if (kept.isAll && stored.tasks.length > length) return false;
  if (kept.tasks.length === 0 && !kept.isAll) return false;
  return Bun.deepEquals(kept.tasks.slice(0, length), stored.tasks.slice(0, length), true);
}

function idsIn(change: Notified): readonly (readonly [name: string, id: string])[] {
  const found: readonly (readonly [string, unknown])[] = Object.entries({
    ...change,
    ...("task" in change ? change.task : null),
    ...("node" in change ? change.node : null),
    ...("event" in change ? change.event : null),
    ...("file" in change ? change.file : null),
  });
  return found.flatMap(([name, id]) =>
    typeof id === "string" && /^(?:taskId|nodeId|assignedNode|creatorNode)$/.test(name)
      ? [[name, id] as const]
      : [],
  );
}
