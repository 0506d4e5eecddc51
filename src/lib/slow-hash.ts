/** A slow hash (PBKDF2), from which a guessed secret costs its reader much to check. */

const utf8 = new TextEncoder();

/** Returns hex. */
export async function slowHash(word: string, salt: string, rounds: number, bytes: number): Promise<string> {
  const key = await crypto.subtle.importKey("raw", utf8.encode(word), "PBKDF2", false, ["deriveBits"]);
  const way = { name: "PBKDF2", hash: "SHA-256", salt: utf8.encode(salt), iterations: rounds };
  return new Uint8Array(await crypto.subtle.deriveBits(way, key, bytes * 8)).toHex();
}
