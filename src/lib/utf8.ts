/** Reads text as UTF-8 without loss: invalid bytes are an error, not replacement characters. */

const UTF8 = new TextDecoder("utf-8", { fatal: true });

/** Without a byte order mark. @throws {TypeError} */
export function decodeUtf8(bytes: Uint8Array): string {
  return UTF8.decode(bytes);
}
