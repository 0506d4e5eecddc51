/** Quoting for a POSIX shell, for commands that a person pastes. */

const PLAIN = /^[\w./:@%+,=-]+$/;

/** `'it'\''s here'` */
export function shellWord(word: string): string {
  return PLAIN.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}
