/** Reads text as UTF-8 without loss: invalid bytes are an error, not replacement characters. */

const UTF8 = new TextDecoder("utf-8", { fatal: true });

/** Decodes bytes, without a byte order mark at their beginning. @throws {TypeError} when they are not UTF-8 */
export function decodeUtf8(bytes: Uint8Array): string {
  return UTF8.decode(bytes);
}
