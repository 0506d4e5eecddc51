/** New ids: UUIDv7, which sort by age. Callers treat them as opaque. */
export type NewId = () => string;

export const newId: NewId = () => Bun.randomUUIDv7();

/** Unique ids at less cost than a UUID each: one random prefix, then a counter. */
export function countingIds(): NewId {
  let prefix: string | null = null; // made with the first id: the generator costs 0.2 MiB, which an idle hub saves
  let count = 0;
  return () => `${(prefix ??= Bun.randomUUIDv7())}-${(count++).toString(36)}`;
}
