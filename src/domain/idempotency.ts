/** The first answer to a request with an Idempotency-Key, kept to be given again (decisions.md Envelope). */

export type StoredAnswer = {
  /** Whose it is: key id, path and Idempotency-Key together. */
  readonly scope: string;
  /** The variant, and the hex SHA-256 of what was asked: of the JSON value, or of a multipart body byte for byte. */
  readonly asked: string;
  readonly status: number;
  readonly body: string;
  readonly storedAt: number;
};
