/** New ids (UUIDv7, which sort by age; callers treat them as opaque) and new secrets. */
export type NewId = () => string;

export const newId: NewId = () => Bun.randomUUIDv7();

/** Unique ids that cost less than a UUID each: one random prefix and a counter. */
export function countingIds(): NewId {
  let prefix: string | null = null; // made with the first id: the UUID generator takes 0.2 MiB, which an idle hub saves
  let count = 0;
  return () => `${(prefix ??= Bun.randomUUIDv7())}-${(count++).toString(36)}`;
}

const SECRET_BYTES = 24;

/** One word that needs no quoting in a shell or a header. */
export function makeSecret(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(SECRET_BYTES));
  return bytes.toBase64({ alphabet: "base64url" }).replace(/^-/, "x"); // a leading dash would look like a flag
}
