/** The reads of the numbers by minute (service/minutes.ts), and the removal of old ones. */
import type { Query } from "../store.ts";
import { count, many } from "./query.ts";
import { customStatement, whole } from "./write-statement.ts";

/** The numbers of one run of a hub in a minute, as JSON; `at` is when the minute begins. */
export type MinuteRow = { readonly at: number; readonly hub: string; readonly numbers: string };

/** The minutes from `first` to `last`, both inclusive. */
export function minutesBetween(first: number, last: number): Query<readonly MinuteRow[]> {
  const sql = `SELECT at, hub, numbers FROM minutes WHERE at >= $1 AND at <= $2`;
  const of: Parameters<typeof many<MinuteRow>>[2] = ({ at, hub, numbers }) => ({
    at: Number(at),
    hub: String(hub),
    numbers: String(numbers),
  });
  return many(sql, [first, last], of, ["minutes"]);
}

/** Minutes outside of a range: before `first`, and after `last`, which a wrong clock has dated. */
export type OldMinutes = { readonly first: number; readonly last: number };

const OLD = `FROM minutes WHERE at < $1 OR at > $2`;

export function oldMinutes({ first, last }: OldMinutes): Query<number> {
  return count(`SELECT count(*) AS n ${OLD}`, [first, last], ["minutes"]);
}

export const PRUNE_MINUTES = customStatement<OldMinutes>("minutes", `DELETE ${OLD}`, [
  whole(({ first }: OldMinutes) => first),
  whole(({ last }: OldMinutes) => last),
]);
