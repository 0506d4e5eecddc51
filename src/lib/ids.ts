/** Fresh ids: UUIDv7, so that they sort by age. Callers treat them as opaque. */
export type NewId = () => string;

export const newId: NewId = () => Bun.randomUUIDv7();

/** Ids that only have to be unique, cheaper than UUIDs: a random prefix and a counter. */
export function countingIds(): NewId {
  let start: string | null = null; // made with the first id: the generator takes 0.2 MiB, which an idle hub can save
  let count = 0;
  return () => `${(start ??= Bun.randomUUIDv7())}-${(count++).toString(36)}`;
}
