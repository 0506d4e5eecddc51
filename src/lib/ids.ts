/** Fresh ids: UUIDv7, so that they sort by age. Callers treat them as opaque. */
export type NewId = () => string;

export const newId: NewId = () => Bun.randomUUIDv7();

/** Ids that only have to differ from one another, for less than a UUID costs: one random start, then a count. */
export function countingIds(): NewId {
  let start: string | null = null; // made with the first id: the generator costs 0.2 MiB, which an idle hub does without
  let count = 0;
  return () => `${(start ??= Bun.randomUUIDv7())}-${(count++).toString(36)}`;
}
