/**
 * An answer in parts: a long list whose rows are loaded as the caller takes them. However large it is, and however many
 * ask for it, one part of it is in memory for each of them; a caller who takes nothing is cut like any other.
 *
 * Each part is the JSON of the whole answer with some of the rows; what they have in common is sent once. So the answer
 * has one list, and beside it nothing that is written in brackets.
 */

import type { Budget } from "../lib/budget.ts";

type Controller = ReadableStreamDefaultController<Uint8Array>;

/**
 * The bytes of one answer whose first part is `first`, and whose other parts have the same form.
 * @param turn of which there is one: parts are loaded one after the other, and what else has arrived goes in between
 */
export function inParts(
  first: string,
  rest: AsyncGenerator<string>,
  turn: Budget,
): ReadableStream<Uint8Array> {
  const [start, end] = listIn(first);
  let separator = start === end ? "" : ",";
  const source = {
    start: (controller: Controller) => controller.enqueue(Buffer.from(first.slice(0, end))),
    pull: async (controller: Controller) => {
      await turn.take(1);
      const { done, value } = await rest.next().finally(() => setImmediate(() => turn.give(1)));
      if (done) {
        controller.enqueue(Buffer.from(first.slice(end)));
        controller.close();
        return;
      }
      const [from, to] = listIn(value);
      // All rows of a part may have been deleted since the list was begun.
      controller.enqueue(Buffer.from(from === to ? " " : `${separator}${value.slice(from, to)}`));
      if (from !== to) separator = ",";
    },
    cancel: async () => void (await rest.return(undefined)),
  };
  return new ReadableStream(source, { highWaterMark: 0 });
}

/** Where the rows of the list begin and end. */
function listIn(json: string): readonly [number, number] {
  return [json.indexOf("[") + 1, json.lastIndexOf("]")];
}
