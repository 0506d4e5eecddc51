/**
 * Globs over names and paths, and whether two of them overlap: whether some name matches both.
 *
 * A name is segments with a slash between them, as `src/api/tasks.ts`; no segment is empty. In a glob, `*` stands for
 * any characters within a segment, and a segment `**` for any number of segments, none included.
 */

const ANY_SEGMENTS = "**";
const ANY_CHARACTERS = "*";

export function isGlob(name: string): boolean {
  return name.includes(ANY_CHARACTERS);
}

export function overlap(a: string, b: string): boolean {
  if (!isGlob(a) && !isGlob(b)) return a === b;
  return meet(a.split("/"), b.split("/"));
}

/**
 * Whether two lists of segments match a common list. Where both have a `**`, it can take whatever lies between the fixed
 * beginning and the fixed end of the other: so only those two can differ.
 */
function meet(a: readonly string[], b: readonly string[]): boolean {
  const [firstA, firstB] = [a.indexOf(ANY_SEGMENTS), b.indexOf(ANY_SEGMENTS)];
  if (firstA < 0 && firstB < 0) return a.length === b.length && areMet(a, 0, b, 0, a.length);
  if (firstA < 0) return finds(b, a);
  if (firstB < 0) return finds(a, b);
  const beginning = Math.min(firstA, firstB);
  const end = Math.min(endOf(a), endOf(b));
  return areMet(a, 0, b, 0, beginning) && areMet(a, a.length - end, b, b.length - end, end);
}

/** Segments after the last `**`. */
const endOf = (glob: readonly string[]): number => glob.length - 1 - glob.lastIndexOf(ANY_SEGMENTS);

/** `count` segments of both, from these places on, overlap in pairs. */
function areMet(
  a: readonly string[],
  atA: number,
  b: readonly string[],
  atB: number,
  count: number,
): boolean {
  for (let i = 0; i < count; i++) {
    const [ofA, ofB] = [a[atA + i], b[atB + i]];
    if (ofA === undefined || ofB === undefined || !segmentsOverlap(ofA, ofB)) return false;
  }
  return true;
}

/** Each run of segments is found behind the one before it. */
function finds(glob: readonly string[], segments: readonly string[]): boolean {
  const beginning = glob.indexOf(ANY_SEGMENTS);
  const end = endOf(glob);
  const last = segments.length - end;
  if (beginning > last || !areMet(glob, 0, segments, 0, beginning)) return false;
  if (!areMet(glob, glob.length - end, segments, last, end)) return false;
  let position = beginning; // in segments
  for (let from = beginning + 1; from < glob.length - end;) {
    const to = glob.indexOf(ANY_SEGMENTS, from);
    while (position + to - from <= last && !areMet(glob, from, segments, position, to - from)) position++;
    position += to - from;
    if (position > last) return false;
    from = to + 1;
  }
  return true;
}

/** As meet(), for the characters of two segments. A lease compares thousands of them: they are not copied without need. */
function segmentsOverlap(a: string, b: string): boolean {
  if (a === b) return true;
  const [firstA, firstB] = [a.indexOf(ANY_CHARACTERS), b.indexOf(ANY_CHARACTERS)];
  if (firstA < 0) return firstB >= 0 && segmentsOverlap(b, a);
  const lastA = a.lastIndexOf(ANY_CHARACTERS);
  const endA = a.length - 1 - lastA;
  if (firstB >= 0) {
    const endB = b.length - 1 - b.lastIndexOf(ANY_CHARACTERS);
    return isEqualAround(a, b, Math.min(firstA, firstB), Math.min(endA, endB));
  }
  if (firstA + endA > b.length || !isEqualAround(a, b, firstA, endA)) return false;
  return lastA === firstA || findsRuns(a.slice(firstA + 1, lastA), b.slice(firstA, b.length - endA));
}

/** So many characters are equal at both ends. */
function isEqualAround(a: string, b: string, first: number, last: number): boolean {
  for (let i = 0; i < first; i++) if (a.charCodeAt(i) !== b.charCodeAt(i)) return false;
  for (let i = 1; i <= last; i++) if (a.charCodeAt(a.length - i) !== b.charCodeAt(b.length - i)) return false;
  return true;
}

/** As finds(), between the first and the last `*` of a segment. */
function findsRuns(middle: string, text: string): boolean {
  let position = 0;
  for (const run of middle.split(ANY_CHARACTERS)) {
    const index = text.indexOf(run, position);
    if (index < 0) return false;
    position = index + run.length;
  }
  return true;
}
