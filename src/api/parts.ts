/**
 * An answer in parts: a long list whose rows are loaded as the caller takes them. However large it is, one part of it is
 * in memory at once; api/response-backpressure.ts sees to how much that may be for all callers together.
 *
 * Each part is the JSON of the whole answer with some of the rows; what they have in common is sent once. So the answer
 * has one list, and beside it nothing that is written in brackets.
 */
import type { Budget } from "../lib/budget.ts";

/** The bytes of an answer: what is there already, and the pieces after it, each made when it is asked for. */
export type Pieces = { readonly first: Buffer; readonly rest: AsyncGenerator<Buffer> | null };

/**
 * The bytes of one answer whose first part is `first`, and whose other parts have the same form.
 * @param turn of which there is one: parts are loaded one after the other, and what else has arrived goes in between
 */
export function inParts(first: string, rest: AsyncGenerator<string>, turn: Budget): Pieces {
  const [start, end] = listIn(first);
  const rows = rowsOf(rest, start === end ? "" : ",", turn);
  return { first: Buffer.from(first.slice(0, end)), rest: endedBy(rows, Buffer.from(first.slice(end))) };
}

async function* endedBy(rows: AsyncGenerator<Buffer>, end: Buffer): AsyncGenerator<Buffer> {
  yield* rows;
  yield end;
}

async function* rowsOf(parts: AsyncGenerator<string>, before: string, turn: Budget): AsyncGenerator<Buffer> {
  for (let separator = before; ;) {
    await turn.take(1);
    const { done, value } = await parts.next().finally(() => setImmediate(() => turn.give(1)));
    if (done) return;
    const [from, to] = listIn(value);
    if (from === to) continue; // all rows of a part may have been deleted since the list was begun
    yield Buffer.from(separator + value.slice(from, to));
    separator = ",";
  }
}

/** Where the rows of the list begin and end. */
function listIn(json: string): readonly [number, number] {
  return [json.indexOf("[") + 1, json.lastIndexOf("]")];
}
