/**
 * Two indexes of the nodes by capability, on SQLite, for the node of a new task.
 *
 * `takers` has a row for each capability of each node, "" for a node without any. With it the node for a new task is found
 * in 0.05 ms among 10,000 nodes with 64 capabilities each. Without it, a type that no node takes costs 23 to 38 ms, because
 * every node is read (PostgreSQL reads them in its own process).
 *
 * `ranked` has the available takers of some types in the balancer's order. It is for a type that has many takers, which
 * all come after many other nodes: no other way to them is short. A type is ranked when the balancer first needs it
 * (rankTypes), and its rows then follow the nodes.
 *
 * Both are temporary tables, made when the database is opened and updated by triggers, also within a transaction and
 * after a rollback. They need no disk writes and no migration, because only the hub writes to the nodes.
 */
import type { Database } from "bun:sqlite";
import { RANKED_TYPES_MAX } from "../../domain/limits.ts";
import { AVAILABLE } from "../sql/balancer.ts";

/** Inserts the rows of one node. `capabilities` is an expression in the stored encoding (store/sql/rows.ts). */
const rowsOf = (seq: string, capabilities: string, from: string): string => `
  INSERT OR IGNORE INTO takers
    SELECT each.value, ${seq}
    FROM ${from} json_each('[' || replace(json_quote(trim(${capabilities}, ',')), ',', '","') || ']') AS each`;

const RANKED = [
  "online",
  "auto_assign",
  "draining",
  "max_tasks",
  "tasks_assigned",
  "idle_since",
  "capabilities",
];
/** Whether a node was available: as in AVAILABLE, but of a row of a trigger. */
const wasAvailable = (row: "NEW" | "OLD"): string =>
  AVAILABLE.replaceAll(/\b(online|auto_assign|draining|max_tasks|tasks_assigned)\b/g, `${row}.$1`);

/** Enters a node into the ranking of each ranked type that it takes. */
const ENTER_RANKING = `
  INSERT INTO ranked SELECT type, NEW.tasks_assigned, NEW.idle_since, NEW.node_id, NEW.seq FROM ranked_types
    WHERE ${wasAvailable("NEW")} AND CASE type WHEN '' THEN NEW.capabilities = ''
      ELSE instr(NEW.capabilities, ',' || type || ',') > 0 END`;

const STEPS = [
  `CREATE TEMP TABLE takers (
    capability TEXT NOT NULL,
    seq INTEGER NOT NULL,                    -- of the node
    PRIMARY KEY (capability, seq)
  ) STRICT, WITHOUT ROWID`,
  rowsOf("n.seq", "n.capabilities", "main.nodes n CROSS JOIN"),
  `CREATE TEMP TRIGGER takers_enter AFTER INSERT ON main.nodes BEGIN
    ${rowsOf("NEW.seq", "NEW.capabilities", "")};
  END`,
  `CREATE TEMP TRIGGER takers_change AFTER UPDATE OF capabilities ON main.nodes
  WHEN NEW.capabilities <> OLD.capabilities BEGIN
    DELETE FROM takers WHERE seq = OLD.seq AND capability IN (
      SELECT value FROM json_each('[' || replace(json_quote(trim(OLD.capabilities, ',')), ',', '","') || ']'));
    ${rowsOf("NEW.seq", "NEW.capabilities", "")};
  END`,
  `CREATE TEMP TABLE ranked_types (type TEXT PRIMARY KEY) STRICT, WITHOUT ROWID`,
  `CREATE TEMP TABLE ranked (
    type TEXT NOT NULL,
    tasks_assigned INTEGER NOT NULL,
    idle_since INTEGER NOT NULL,
    node_id TEXT NOT NULL,
    seq INTEGER NOT NULL,                    -- of the node
    PRIMARY KEY (type, tasks_assigned, idle_since, node_id)
  ) STRICT, WITHOUT ROWID`,
  `CREATE TEMP TRIGGER ranked_enter AFTER INSERT ON main.nodes
  WHEN EXISTS (SELECT 1 FROM ranked_types) BEGIN
    ${ENTER_RANKING};
  END`,
  `CREATE TEMP TRIGGER ranked_change AFTER UPDATE OF ${RANKED.join(", ")} ON main.nodes
  WHEN EXISTS (SELECT 1 FROM ranked_types) BEGIN
    DELETE FROM ranked WHERE type IN (SELECT type FROM ranked_types) AND tasks_assigned = OLD.tasks_assigned
      AND idle_since = OLD.idle_since AND node_id = OLD.node_id;
    ${ENTER_RANKING};
  END`,
];

export function createCapabilityIndex(db: Database): void {
  for (const step of STEPS) db.run(step);
}

/** The nodes with a capability are not ranked if they are no more than this: all of them are read. */
const UNRANKED_MAX = 16;
const RANK_TYPE = `
  INSERT OR IGNORE INTO ranked_types
  SELECT $1 WHERE (SELECT count(*) FROM (SELECT 1 FROM takers WHERE capability = $1 LIMIT ${UNRANKED_MAX} + 1) AS some) > ${UNRANKED_MAX}`;
const FILL_RANKING = `
  INSERT INTO ranked SELECT $1, tasks_assigned, idle_since, node_id, seq FROM nodes
  WHERE seq IN (SELECT seq FROM takers WHERE capability = $1) AND +${AVAILABLE}`;
const FORGET_OTHERS = [
  `DELETE FROM ranked_types WHERE type <> $1 AND (SELECT count(*) FROM ranked_types) > ${RANKED_TYPES_MAX}`,
  `DELETE FROM ranked WHERE type NOT IN (SELECT type FROM ranked_types)`,
] as const;

/**
 * Ranks the nodes with these capabilities, where they are many and not ranked yet: in some microseconds a node, once.
 * @param write runs a statement and returns how many rows it wrote
 */
export function rankTypes(
  types: readonly string[],
  write: (sql: string, params: readonly string[]) => number,
): void {
  for (const type of types) {
    if (write(RANK_TYPE, [type]) === 0) continue;
    if (write(FORGET_OTHERS[0], [type]) > 0) write(FORGET_OTHERS[1], []);
    write(FILL_RANKING, [type]);
  }
}
