/**
 * Globs over names and paths, and whether two of them overlap: whether some name matches both.
 *
 * A name is segments with a slash between them, as `src/api/tasks.ts`; no segment is empty. In a glob, `*` stands for any
 * characters within a segment, none included, and a segment `**` for any number of segments, none included. Every other
 * character stands for itself. A name without `*` is the glob that matches only itself.
 */

const ANY_SEGMENTS = "**";
const ANY_CHARACTERS = "*";

export function isGlob(name: string): boolean {
  return name.includes(ANY_CHARACTERS);
}

/** Whether some name matches both globs. Takes as many steps as the product of their lengths, at most. */
export function overlap(a: string, b: string): boolean {
  if (!isGlob(a) && !isGlob(b)) return a === b;
  return meet(a.split("/"), b.split("/"), ANY_SEGMENTS, segmentsOverlap);
}

function segmentsOverlap(a: string, b: string): boolean {
  if (!isGlob(a) && !isGlob(b)) return a === b;
  return meet([...a], [...b], ANY_CHARACTERS, (one, other) => one === other);
}

/**
 * Whether two patterns, lists of units in which `wild` stands for any number of units, match a common list. `same` says
 * whether two units that are not wild do.
 *
 * meets[j] says it of the rest of `a` from i on and the rest of `b` from j on; it is computed from the ends.
 */
function meet(
  a: readonly string[],
  b: readonly string[],
  wild: string,
  same: (a: string, b: string) => boolean,
): boolean {
  let meets: readonly boolean[] = [];
  for (let i = a.length; i >= 0; i--) {
    const later = meets;
    const now = new Array<boolean>(b.length + 1).fill(false);
    for (let j = b.length; j >= 0; j--) {
      const [ofA, ofB] = [a[i], b[j]];
      if (ofA === undefined && ofB === undefined) now[j] = true;
      else if (ofA === wild || ofB === wild)
        // The wild one stands for nothing more, or for one more unit of the other.
        now[j] = (ofA !== undefined && later[j] === true) || (ofB !== undefined && now[j + 1] === true);
      else now[j] = ofA !== undefined && ofB !== undefined && later[j + 1] === true && same(ofA, ofB);
    }
    meets = now;
  }
  return meets[0] === true;
}
