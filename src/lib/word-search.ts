/**
 * Search by the beginnings of words, in any script. Case does not matter, nor how a letter is composed (NFKC). In scripts
 * that are written without spaces a word may begin at every letter.
 */
const WORD = /[\p{L}\p{N}\p{M}]+/gu;
const ENDS_IN_WORD = /[\p{L}\p{N}\p{M}]$/u;
const UNSPACED =
  /^[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]/u;

/** For matchesWords(). */
export function wordsOf(text: string): readonly string[] {
  return [...new Set(folded(text).match(WORD) ?? [])];
}

export function matchesWords(words: readonly string[], text: string): boolean {
  const searched = folded(text);
  return words.every((word) => hasWord(searched, word));
}

/** For hasWord(), of a text that is searched often. */
export function folded(text: string): string {
  return text.normalize("NFKC").toUpperCase(); // folds more than lower case does: ß is SS
}

/** `word` is of wordsOf(), `text` of folded(). */
export function hasWord(text: string, word: string): boolean {
  const anywhere = UNSPACED.test(word);
  for (let index = text.indexOf(word); index !== -1; index = text.indexOf(word, index + 1))
    if (anywhere || !ENDS_IN_WORD.test(text.slice(Math.max(0, index - 2), index))) return true;
  return false;
}
