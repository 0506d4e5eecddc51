/** The reads and writes of schedules. */
import type { Schedule } from "../../domain/model.ts";
import { soundSchedule } from "../../domain/sound.ts";
import type { HubCounts } from "../../domain/shares.ts";
import type { Query, Row } from "../store.ts";
import { keyOf } from "./conflict-keys.ts";
import { count, many, one, query } from "./query.ts";
import { keptOf } from "./rows.ts";
import { IN_REVIEW } from "./tasks.ts";
import { SCHEDULES } from "./tables.ts";
import type { Writes } from "./write.ts";
import { drop, save } from "./write-statement.ts";

const readSchedule = SCHEDULES.reader();
/** Of a schedule that was stored before there were groups, tags, mint limits and lanes. */
const NO_GROUP: Partial<Schedule["task"]> = {
  group: null,
  tags: [],
  creatorKey: null,
  requires: null,
  limitKey: null,
};

function toSchedule(row: Row): Schedule {
  const schedule = readSchedule(row);
  return soundSchedule({ ...schedule, task: { ...NO_GROUP, ...schedule.task }, ...keptOf(row) });
}

export function scheduleByName(name: string): Query<Schedule | null> {
  return one(`SELECT * FROM schedules WHERE name = $1`, [name], toSchedule, [keyOf.schedule(name)]);
}

export function schedulePage(limit: number, offset: number): Query<readonly Schedule[]> {
  return many(`SELECT * FROM schedules ORDER BY name LIMIT $1 OFFSET $2`, [limit, offset], toSchedule, [
    "schedules",
  ]);
}

export function scheduleCount(): Query<number> {
  return count(`SELECT count(*) AS n FROM schedules`, [], ["schedules"]);
}

export function scheduleCounts(creatorNode: string | null): Query<HubCounts> {
  const sql = `SELECT count(*) AS n, count(CASE WHEN creator_node = $1 THEN 1 END) AS own FROM schedules`;
  const toCounts = (rows: Parameters<Query<HubCounts>["shape"]>[0]): HubCounts => ({
    all: Number(rows[0]?.["n"]),
    ofNode: Number(rows[0]?.["own"]),
  });
  return query(sql, [creatorNode], toCounts, ["schedules"]);
}

/** The longest due first. */
export function dueSchedules(now: number, limit: number): Query<readonly Schedule[]> {
  return many(
    `SELECT * FROM schedules WHERE next_at <= $1 ORDER BY next_at LIMIT $2`,
    [now, limit],
    toSchedule,
    ["schedules"],
  );
}

/** There are at most SCHEDULES_MAX. */
export function schedulesAfter(at: number): Query<readonly Schedule[]> {
  return many(`SELECT * FROM schedules WHERE next_at > $1 ORDER BY next_at`, [at], toSchedule, ["schedules"]);
}

/**
 * Whether a task of the schedule has not ended: it is unfinished, or waits for its review. Read from the tasks: a count
 * that was too large would end the schedule silently. The words are those of the index.
 */
export function hasUnfinishedTask(name: string): Query<boolean> {
  const sql = `
    SELECT 1 AS one FROM task_features
    WHERE schedule = $1 AND (status IN ('open', 'assigned') OR ${IN_REVIEW}) LIMIT 1`;
  return query(sql, [name], (rows) => rows.length > 0, ["tasks"]);
}

export const SCHEDULE_WRITES = {
  "schedule.saved": {
    row: ({ schedule }) => keyOf.schedule(schedule.name),
    statement: save(SCHEDULES, ({ schedule }) => schedule, ["created_at"]),
  },
  "schedule.deleted": { row: ({ name }) => keyOf.schedule(name), statement: drop(SCHEDULES, ["name"]) },
} satisfies Partial<Writes>;
