/** Fresh ids: UUIDv7, so that they sort by age. Callers treat them as opaque. */
export type NewId = () => string;

export const newId: NewId = () => Bun.randomUUIDv7();
