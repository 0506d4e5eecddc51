/** Words as a shell reads them, in the commands that a person is told to paste. */

const PLAIN = /^[\w./:@%+,=-]+$/;

/** The word as it is where no shell finds anything in it, else in quotes: `'it'\''s here'`. */
export function shellWord(word: string): string {
  return PLAIN.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}
