/**
 * The reads, writes and facts of the output of tasks, and the statements that remove it.
 */
import type { Change } from "../../domain/change.ts";
import type { OutputAttempt, OutputBlock } from "../../domain/model.ts";
import { soundAttempt, soundBlock } from "../../domain/sound.ts";
import type { Query } from "../store.ts";
import { keyOf } from "./conflict-keys.ts";
import { byKey, many } from "./query.ts";
import { customStatement, text, whole } from "./write-statement.ts";
import type { ConflictKey } from "./conflict-keys.ts";
import { OUTPUTS, OUTPUT_BLOCKS } from "./tables.ts";
import type { Writes } from "./write.ts";
import { add, update } from "./write-statement.ts";
import type { Fact } from "./fact.ts";

const toAttempt = OUTPUTS.reader("epoch", "node_id", "bytes", "kept_bytes", "begun_at", "at").to(
  soundAttempt,
);
const toBlock = OUTPUT_BLOCKS.reader("n", "start", "data").to(soundBlock);

const ATTEMPTS = byKey(
  ["text"],
  `SELECT ${toAttempt.list} FROM outputs WHERE task_id = $1 ORDER BY epoch`,
  true,
);

/** Oldest first. */
export function attemptsOf(taskId: string): Query<readonly OutputAttempt[]> {
  return many(ATTEMPTS, [taskId], toAttempt, [keyOf.outputs(taskId)]);
}

/** From number `first` on. */
export function outputBlocks(
  taskId: string,
  epoch: number,
  first: number,
  limit: number,
): Query<readonly OutputBlock[]> {
  const sql = `
    SELECT ${toBlock.list} FROM output_blocks
    WHERE task_id = $1 AND epoch = $2 AND n >= $3 ORDER BY n LIMIT $4`;
  return many(sql, [taskId, epoch, first, limit], toBlock, [keyOf.outputs(taskId)]);
}

type Of<K extends Change["kind"]> = Change & { readonly kind: K };
type UpTo = { readonly taskId: string; readonly upTo: number };

export const CUT_OUTPUT = customStatement<Of<"output.cut">, "output_blocks">(
  "output_blocks",
  `DELETE FROM output_blocks WHERE task_id = $1 AND epoch = $2 AND n >= $3 AND n < $4`,
  [
    text(({ taskId }) => taskId),
    whole(({ epoch }) => epoch),
    whole(({ first }) => first),
    whole(({ end }) => end),
  ],
);

const UP_TO = [text(({ taskId }: UpTo) => taskId), whole(({ upTo }: UpTo) => upTo)];

export const REFUND_OUTPUT = customStatement<UpTo, "quota_usage">(
  "quota_usage",
  `UPDATE quota_usage SET bytes = quota_usage.bytes - freed.bytes FROM (
    SELECT node_id AS payer, CAST(sum(kept_bytes) AS BIGINT) AS bytes FROM outputs
    WHERE task_id = $1 AND epoch <= $2 AND kept_bytes > 0 GROUP BY node_id) AS freed
    WHERE quota_usage.node_id = freed.payer`,
  UP_TO,
);

export const REMOVE_OUTPUT = customStatement<UpTo, "outputs">(
  "outputs",
  `DELETE FROM outputs WHERE task_id = $1 AND epoch <= $2`,
  UP_TO,
);

export const ERASE_OUTPUT = customStatement<UpTo, "output_blocks">(
  "output_blocks",
  `DELETE FROM output_blocks WHERE task_id = $1 AND epoch <= $2`,
  UP_TO,
);

const ofOutput = ({ taskId }: { readonly taskId: string }): ConflictKey => keyOf.outputs(taskId);

export const OUTPUT_WRITES = {
  "output.begun": {
    row: ofOutput,
    statement: add(OUTPUTS, ({ taskId, attempt }) => ({ taskId, ...attempt })),
  },
  "output.grown": {
    row: ofOutput,
    statement: update(
      "outputs",
      OUTPUTS.set((change) => change, "task_id", "epoch"),
      OUTPUTS.set((change) => change, "bytes", "kept_bytes", "at"),
    ),
  },
  "output.appended": {
    row: ofOutput,
    statement: add(
      OUTPUT_BLOCKS,
      (change) => change,
      ` ON CONFLICT (task_id, epoch, n) DO UPDATE SET data = output_blocks.data || excluded.data`,
    ),
  },
  "output.cut": { row: ofOutput, frees: true, statement: CUT_OUTPUT },
  "output.refunded": { cache: (rows) => rows.clearUsage(), isSweep: true, statement: REFUND_OUTPUT },
  "output.removed": { row: ofOutput, frees: true, statement: REMOVE_OUTPUT },
  "output.erased": { row: ofOutput, frees: true, statement: ERASE_OUTPUT },
} satisfies Partial<Writes>;

export const OUTPUT_FACTS: readonly Fact[] = [
  {
    name: "output",
    holds:
      "every attempt's output has its last block, which ends where it says; only a task that says so has output",
    sql: `
      SELECT 'the output of task ' || o.task_id || ' (' || o.epoch || ') has ' || o.bytes
        || ' bytes, and its last block ends elsewhere' FROM outputs o
      WHERE o.bytes <> coalesce((
        SELECT b.start + octet_length(b.data) FROM output_blocks b
        WHERE b.task_id = o.task_id AND b.epoch = o.epoch ORDER BY b.n DESC LIMIT 1), 0)
      UNION ALL
      SELECT 'output of task ' || task_id || ' (' || epoch || ') has no record' FROM output_blocks b
      WHERE NOT EXISTS (SELECT 1 FROM outputs o WHERE o.task_id = b.task_id AND o.epoch = b.epoch)
      UNION ALL
      SELECT 'output of task ' || o.task_id || ' has no task that says so' FROM outputs o
      LEFT JOIN task_rows t ON t.task_id = o.task_id WHERE coalesce(t.has_output, 0) = 0
      UNION ALL
      SELECT 'task ' || task_id || ' has no output, and says that it has some' FROM task_rows
      WHERE has_output = 1 AND task_id NOT IN (SELECT task_id FROM outputs)`,
  },
];
