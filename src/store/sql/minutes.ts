/** The numbers by minute (service/minutes.ts) and their sums by longer periods (service/history.ts). */
import type { Query, Row } from "../store.ts";
import { always, count, many } from "./query.ts";
import { customStatement, whole } from "./write-statement.ts";
import { keyOf } from "./conflict-keys.ts";
import { MINUTES, PERIODS } from "./tables.ts";
import type { Writes } from "./write.ts";
import { save } from "./write-statement.ts";

/** Of one run of a hub; `at` is when the minute begins. */
export type MinuteRow = { readonly at: number; readonly hub: string; readonly numbers: string };

/** Both inclusive. */
export function minutesBetween(first: number, last: number): Query<readonly MinuteRow[]> {
  const sql = `SELECT at, hub, numbers FROM minutes WHERE at >= $1 AND at <= $2`;
  return many(sql, [first, last], MINUTES.reader(), ["minutes"]);
}

const toTime = ({ at }: Row): number | null => (at == null ? null : Number(at));

export function firstMinute(): Query<number | null> {
  return always(`SELECT min(at) AS at FROM minutes`, [], toTime, ["minutes"]);
}

/** `at` is when the period begins. */
export type PeriodRow = { readonly at: number; readonly numbers: string };

/** Both inclusive. */
export function periodsBetween(stepMs: number, first: number, last: number): Query<readonly PeriodRow[]> {
  const sql = `SELECT at, numbers FROM periods WHERE step_ms = $1 AND at >= $2 AND at <= $3`;
  const of = ({ at, numbers }: Row): PeriodRow => ({ at: Number(at), numbers: String(numbers) });
  return many(sql, [stepMs, first, last], of, ["periods"]);
}

export function firstPeriod(stepMs: number): Query<number | null> {
  return always(`SELECT min(at) AS at FROM periods WHERE step_ms = $1`, [stepMs], toTime, ["periods"]);
}

/** Not after `now`. */
export function lastPeriod(stepMs: number, now: number): Query<number | null> {
  const sql = `SELECT max(at) AS at FROM periods WHERE step_ms = $1 AND at <= $2`;
  return always(sql, [stepMs, now], toTime, ["periods"]);
}

/** Before `first`, and from `last` on, which a wrong clock has dated. */
type OldPeriods = { readonly stepMs: number; readonly first: number; readonly last: number };

export const PRUNE_PERIODS = customStatement<OldPeriods, "periods">(
  "periods",
  `DELETE FROM periods WHERE step_ms = $1 AND (at < $2 OR at >= $3)`,
  [
    whole(({ stepMs }: OldPeriods) => stepMs),
    whole(({ first }: OldPeriods) => first),
    whole(({ last }: OldPeriods) => last),
  ],
);

/** Before `first`, and after `last`, which a wrong clock has dated. */
export type OldMinutes = { readonly first: number; readonly last: number };

const OLD = `FROM minutes WHERE at < $1 OR at > $2`;

export function oldMinutes({ first, last }: OldMinutes): Query<number> {
  return count(`SELECT count(*) AS n ${OLD}`, [first, last], ["minutes"]);
}

export const PRUNE_MINUTES = customStatement<OldMinutes, "minutes">("minutes", `DELETE ${OLD}`, [
  whole(({ first }: OldMinutes) => first),
  whole(({ last }: OldMinutes) => last),
]);

export const MINUTE_WRITES = {
  "minute.saved": {
    row: ({ at, hub }) => keyOf.minute(at, hub),
    statement: save(MINUTES, (change) => change),
  },
  "period.saved": {
    row: ({ stepMs, at }) => keyOf.period(stepMs, at),
    statement: save(PERIODS, (change) => change),
  },
  "periods.pruned": { isSweep: true, frees: true, statement: PRUNE_PERIODS },
  "minutes.pruned": { isSweep: true, frees: true, statement: PRUNE_MINUTES },
} satisfies Partial<Writes>;
