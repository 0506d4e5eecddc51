/** The reads, writes and facts of the LUX ledger. */
import { EMPTY_LEDGER, GENESIS_HASH } from "../../domain/lux.ts";
import type { LedgerEntry, LedgerHead } from "../../domain/model.ts";
import type { Query, Row } from "../store.ts";
import { keyOf } from "./conflict-keys.ts";
import { byKey, many, one, query } from "./query.ts";
import { LEDGER_COLUMNS, toLedgerEntry } from "./rows.ts";
import { LEDGER } from "./tables.ts";
import type { Writes } from "./write.ts";
import { add } from "./write-statement.ts";
import { type Fact, SHOWN } from "./fact.ts";

/** null: it has no hash itself. */
export type ChainedEntry = LedgerEntry & { readonly prevHash: string | null };

/** `seq` - 1 has the hash before it. */
const ENTRIES = `
  SELECT ${LEDGER_COLUMNS}, p.hash AS prev_hash
  FROM ledger l LEFT JOIN ledger p ON p.seq = l.seq - 1`;

const LEDGER_PAGE = `${ENTRIES} WHERE l.node_id = $1 AND l.n >= $2 AND l.n <= $3 ORDER BY l.n DESC`;

/** Both inclusive, newest first. */
export function ledgerPage(nodeId: string, from: number, to: number): Query<readonly ChainedEntry[]> {
  return many(LEDGER_PAGE, [nodeId, from, to], toChained, [keyOf.ledger(nodeId)]);
}

/** null: nothing was paid. */
export function entryOfTask(taskId: string): Query<LedgerEntry | null> {
  const paid = `SELECT paid_seq FROM tasks WHERE task_id = $1`;
  return one(`${ENTRIES} WHERE l.seq = (${paid})`, [taskId], toLedgerEntry, [keyOf.task(taskId), "ledger"]);
}

/** After number `after`, oldest first. */
export function entriesAfter(after: number, limit: number): Query<readonly ChainedEntry[]> {
  return many(`${ENTRIES} WHERE l.seq > $1 ORDER BY l.seq LIMIT $2`, [after, limit], toChained, ["ledger"]);
}

function toChained(row: Row): ChainedEntry {
  const entry = toLedgerEntry(row);
  const before = row["prev_hash"];
  return {
    ...entry,
    prevHash: entry.hash === null ? null : typeof before === "string" ? before : GENESIS_HASH,
  };
}

/** Read from the end: where the next part begins, and its oldest entry. */
export type LedgerPart = {
  readonly next: number | null;
  readonly oldestAt: number | null;
  /** From a time on. */
  readonly earned: readonly {
    readonly nodeId: string;
    readonly amountMicro: bigint;
    readonly entries: number;
  }[];
};

/** Without entries before `since`. */
export function earnedBefore(before: number, since: number, limit: number): Query<LedgerPart> {
  const sql = `
    SELECT min(seq) AS oldest, min(at) AS at, count(*) AS looked, CASE WHEN at >= $2 THEN node_id END AS earner,
      CAST(sum(amount_micro) AS TEXT) AS amount
    FROM (SELECT seq, node_id, amount_micro, at FROM ledger WHERE seq < $1 ORDER BY seq DESC LIMIT $3) AS part
    GROUP BY CASE WHEN at >= $2 THEN node_id END`;
  const shape: Query<LedgerPart>["shape"] = (rows) => {
    const looked = rows.reduce((sum, row) => sum + Number(row["looked"]), 0);
    return {
      next: looked < limit ? null : Math.min(...rows.map((row) => Number(row["oldest"]))),
      oldestAt: rows.length === 0 ? null : Math.min(...rows.map((row) => Number(row["at"]))),
      earned: rows.flatMap((row) =>
        row["earner"] == null
          ? []
          : [
              {
                nodeId: String(row["earner"]),
                amountMicro: BigInt(row["amount"] ?? 0),
                entries: Number(row["looked"]),
              },
            ],
      ),
    };
  };
  return query(sql, [before, since, limit], shape, ["ledger"]);
}

const HEAD = `SELECT seq, hash FROM ledger ORDER BY seq DESC LIMIT 1`;

/** The hash chain goes on from it. */
const LEDGER_HEAD: Query<LedgerHead> = {
  ...query(
    HEAD,
    [],
    ([row]) =>
      row
        ? { seq: Number(row["seq"]), hash: row["hash"] == null ? null : String(row["hash"]) }
        : EMPTY_LEDGER,
    [keyOf.ledgerHead],
  ),
  patch: (head, change) =>
    change.kind === "lux.entered" ? { seq: change.entry.seq, hash: change.entry.hash } : head,
  cached: { as: "ledger", id: "" },
};

export function ledgerHead(): Query<LedgerHead> {
  return LEDGER_HEAD;
}

const LAST_SIGNIN = byKey(
  ["text", "bigint"],
  `SELECT at FROM ledger WHERE node_id = $1 AND kind = 'signin' AND (at / 86400000) < $2 / 86400000
    ORDER BY (at / 86400000) DESC LIMIT 1`,
);

/** On a day before `before`, which is a UTC midnight. */
export function lastSigninAt(nodeId: string, before: number): Query<number | null> {
  return one(LAST_SIGNIN, [nodeId, before], (row) => Number(row["at"]), [keyOf.ledger(nodeId)]);
}

export const LEDGER_WRITES = {
  "lux.entered": {
    cache: (rows, change) => rows.setLedgerHead(change),
    keys: ({ entry: { nodeId } }) =>
      nodeId === null ? [keyOf.ledgerHead] : [keyOf.ledgerHead, keyOf.ledger(nodeId)],
    statement: add(LEDGER, ({ entry }) => entry),
  },
} satisfies Partial<Writes>;

export const LEDGER_FACTS: readonly Fact[] = [
  {
    name: "ledger",
    holds: "every balance is the sum of its payments",
    sql: `
      SELECT 'node ' || node_id || ': entry ' || n || ' says ' || balance_micro || ', the sum is ' || total
      FROM (
        SELECT node_id, n, balance_micro, sum(amount_micro) OVER own AS total, row_number() OVER own AS place
        FROM ledger WHERE node_id IS NOT NULL
        WINDOW own AS (PARTITION BY node_id ORDER BY n ROWS UNBOUNDED PRECEDING))
      WHERE balance_micro <> total OR n <> place LIMIT ${SHOWN}`,
  },
  {
    name: "accounts",
    holds:
      "every entry of the ledger moves LUX from one account to another, none is missing, and what is held back are the rewards of results in review",
    sql: `
      SELECT 'of the entries 1 to ' || max(seq) || ' there are ' || count(*) FROM ledger
      HAVING count(*) > 0 AND (min(seq) <> 1 OR max(seq) <> count(*))
      UNION ALL
      SELECT 'entry ' || seq || ' moves ' || amount_micro || ' from ' || coalesce(from_account, 'treasury') || ' to '
        || coalesce(to_account, 'node:' || node_id) FROM ledger
      WHERE amount_micro <= 0 OR coalesce(from_account, 'treasury') = to_account
        OR from_account NOT LIKE 'held:%' OR (to_account <> 'treasury' AND to_account NOT LIKE 'held:%')
      UNION ALL
      SELECT 'entry ' || seq || ' has no hash, and an earlier one has one' FROM ledger
      WHERE hash IS NULL AND seq > (SELECT min(seq) FROM ledger WHERE hash IS NOT NULL)
      UNION ALL
      SELECT account || ' has ' || sum(amount) || ' millionths too many or too few' FROM (
        SELECT to_account AS account, amount_micro AS amount FROM ledger WHERE to_account LIKE 'held:%'
        UNION ALL SELECT from_account, -amount_micro FROM ledger WHERE from_account LIKE 'held:%'
        UNION ALL SELECT 'held:' || task_id, -lux_reward_micro FROM task_rows
          WHERE review_until IS NOT NULL AND coalesce(json_extract(review, '$.check.unpaid'), 0) = 0)
      GROUP BY account HAVING sum(amount) <> 0
      LIMIT ${SHOWN}`,
  },
  {
    name: "entries",
    holds: "every node's balance and number of payments are those of its newest payment",
    sql: `
      SELECT 'node ' || n.node_id || ': its balance or number of payments is not that of its newest payment' FROM nodes n
      LEFT JOIN (SELECT node_id, max(n) AS newest FROM ledger WHERE node_id IS NOT NULL GROUP BY node_id) c ON c.node_id = n.node_id
      LEFT JOIN ledger l ON l.node_id = n.node_id AND l.n = c.newest
      WHERE n.entries <> coalesce(c.newest, 0) OR n.balance_micro <> coalesce(l.balance_micro, 0) LIMIT ${SHOWN}`,
  },
  {
    name: "payments",
    holds: "every reward was paid once, to the node that completed the task, and after its review",
    sql: `
      SELECT 'task ' || task_id || ' was paid ' || count(*) || ' times' FROM ledger
      WHERE kind = 'reward' GROUP BY task_id HAVING count(*) > 1
      UNION ALL
      SELECT 'task ' || t.task_id || ' was not paid, or names an entry that did not pay it' FROM task_rows t
      LEFT JOIN ledger l ON l.seq = t.paid_seq
      WHERE (t.paid_seq IS NOT NULL AND (t.status <> 'completed' OR t.lux_reward_micro = 0))
        -- --self-reward off: it may have been a task of its own
        OR (t.status = 'completed' AND t.lux_reward_micro > 0 AND t.paid_seq IS NULL AND t.creator_key IS NULL
          AND t.review_until IS NULL AND t.quorum IS NULL
          AND t.creator_node IS NOT t.assigned_node)
        OR (t.paid_seq IS NOT NULL AND (l.task_id IS NOT t.task_id OR l.kind IS NOT 'reward'))
      UNION ALL
      SELECT 'task ' || t.task_id || ' differs from its payment' FROM ledger l
      JOIN task_rows t ON t.task_id = l.task_id
      WHERE l.kind = 'reward'
        AND (t.status <> 'completed' OR t.review_until IS NOT NULL OR t.assigned_node <> l.node_id OR t.lux_reward_micro <> l.amount_micro)
      LIMIT ${SHOWN}`,
  },
];
