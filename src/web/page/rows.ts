/** How the rows of a list keep their places when they are loaded again: what is read does not move. */
import { useEffect, useRef, useState } from "preact/hooks";
import type { Arranged } from "./list-page.tsx";

/** What a row is called, and by what the list is ordered, from the highest down. */
type Order<T> = { readonly keyOf: (row: T) => string; readonly placeOf: (row: T) => string };

/** Shown rows stay, also those that the filters no longer select; new ones wait until the user asks for them. */
export function useHeldRows<T>(rows: readonly T[] | null, key: string, order: Order<T>): Arranged<T> {
  const { keyOf, placeOf } = order;
  const [held, setHeld] = useState<{ key: string; rows: readonly T[] }>({ key: "", rows: [] });
  const isNew = rows !== null && (held.key !== key || held.rows.length === 0);
  useEffect(() => {
    if (isNew && rows.length > 0) setHeld({ key, rows });
  }, [key, isNew, rows]);
  if (rows === null || isNew) {
    const shown = rows ?? (held.key === key ? held.rows : []);
    return { shown, isGone: () => false, unseen: 0, showAll: () => {} };
  }
  const current = new Map(rows.map((row) => [keyOf(row), row]));
  const known = new Set(held.rows.map(keyOf));
  const lowestOf = (list: readonly T[]): string => {
    const lowest = list.at(-1);
    return lowest === undefined ? "" : placeOf(lowest);
  };
  const [lowestHeld, lowest] = [lowestOf(held.rows), lowestOf(rows)];
  return {
    shown: held.rows.map((row) => current.get(keyOf(row)) ?? row),
    // New rows move the last ones to the next page; these have not changed.
    isGone: (row) => !current.has(keyOf(row)) && placeOf(row) >= lowest,
    unseen: rows.filter((row) => !known.has(keyOf(row)) && placeOf(row) >= lowestHeld).length,
    showAll: () => setHeld({ key, rows }),
  };
}

/** A row that comes to the page takes the place of one that left it. */
export function useKeptPlaces<T>(
  rows: readonly T[] | null,
  key: string,
  keyOf: (row: T) => string,
): Arranged<T> {
  const shown = useRef<{ key: string; ids: readonly string[] }>({ key, ids: [] });
  const current = new Map((rows ?? []).map((row) => [keyOf(row), row]));
  const before = shown.current.key === key ? shown.current.ids : [];
  const known = new Set(before);
  const come = [...current.keys()].filter((id) => !known.has(id));
  const kept = before.flatMap((id) => (current.has(id) ? id : come.splice(0, 1)));
  shown.current = { key, ids: [...kept, ...come] };
  const placed = shown.current.ids.flatMap((id) => current.get(id) ?? []);
  return { shown: placed, isGone: () => false, unseen: 0, showAll: () => {} };
}
