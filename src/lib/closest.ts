/** Suggestions ("did you mean") by edit distance. */

/** Letters inserted, deleted, replaced or swapped with a neighbour. */
export function editDistance(a: string, b: string): number {
  // Optimal string alignment: a row for each prefix of `a`, a column for each prefix of `b`.
  const rows = Array.from({ length: a.length + 1 }, (_, i) => [i]);
  const distanceAt = (i: number, j: number): number => rows[i]?.[j] ?? Math.max(i, j);
  for (let i = 1; i <= a.length; i++) {
    for (let j = 1; j <= b.length; j++) {
      const replaced = distanceAt(i - 1, j - 1) + (a[i - 1] === b[j - 1] ? 0 : 1);
      const isSwap = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      const swapped = isSwap ? distanceAt(i - 2, j - 2) + 1 : Number.POSITIVE_INFINITY;
      rows[i]?.push(Math.min(distanceAt(i - 1, j) + 1, distanceAt(i, j - 1) + 1, replaced, swapped));
    }
  }
  return distanceAt(a.length, b.length);
}

/**
 * The first of equals. If more than a third of the letters would have to change, the only known word that begins so, or
 * null.
 */
export function closest(word: string, known: readonly string[]): string | null {
  const longest = Math.max(...known.map((other) => other.length));
  if (word.length > 2 * longest) return null; // cannot be close
  let best: { readonly word: string; readonly edits: number } | null = null;
  for (const other of known) {
    const edits = editDistance(word.toLowerCase(), other);
    const most = Math.max(1, Math.floor(Math.max(word.length, other.length) / 3));
    if (edits <= most && edits < (best?.edits ?? Number.POSITIVE_INFINITY)) best = { word: other, edits };
  }
  if (best) return best.word;
  const beginnings = known.filter((other) => other.startsWith(word.toLowerCase()));
  const [only = null, ...others] = beginnings;
  return others.length === 0 ? only : null;
}

/** ` (did you mean WORD?)`, or nothing. */
export function didYouMean(word: string, known: readonly string[]): string {
  const meant = closest(word, known);
  return meant === null ? "" : ` (did you mean ${meant}?)`;
}
