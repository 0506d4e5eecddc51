/** `luxhub note …`: notes, the shared memory of the nodes. */
import type { Environment } from "../config.ts";
import type { AnswerOf } from "../client/luxhub.ts";
import { printable, printableJson } from "../lib/printable.ts";
import { EXIT } from "./exit-codes.ts";
import {
  PAGE,
  type Remote,
  type Run,
  collect,
  forEach,
  limitOf,
  readStandardInput,
  recordOf,
  runGroup,
} from "./remote.ts";
import { writeLine } from "./standard-output.ts";
import { plain, printJsonLine, printJsonList, printTable, timeText } from "./table.ts";

export function noteCommand(argv: readonly string[], env: Environment): Promise<number> {
  return runGroup("note", RUNS, argv, env);
}

const RUNS: Readonly<Record<string, Run>> = {
  "note put": put,
  "note get": get,
  "note list": list,
  "note search": search,
  "note delete": ({ hub, values, json, words }) =>
    forEach(words, async (key) => {
      const fields = { node_id: values.text("node"), if_version: values.whole("if-version") };
      const answer = recordOf(await hub.notes.delete({ key, ...fields }));
      if (json) printJsonLine(answer);
      else writeLine(`${printable(key)}  deleted`);
    }),
};

async function put({ hub, values, json, words: [key = "", word = ""] }: Remote): Promise<number> {
  const { note } = await hub.notes.put({
    key,
    text: word === "-" ? await readStandardInput() : word,
    node_id: values.text("node"),
    if_version: values.whole("if-version"),
  });
  return writeLine(json ? printableJson(note, 2) : `version ${note.version}`);
}

async function get({ hub, json, words: [key = ""] }: Remote): Promise<number> {
  const { note } = await hub.notes.get({ key });
  return writeLine(json ? printableJson(note, 2) : plain(note.text));
}

type Head = AnswerOf<"note/list">["notes"][number];

async function list(remote: Remote): Promise<number> {
  const { hub, values, json } = remote;
  const notes = pages(limitOf(remote), (page) => hub.notes.list({ prefix: values.text("prefix"), ...page }));
  if (json) await printJsonList(notes);
  else
    printTable(
      ["KEY", "VERSION", "BYTES", "NODE", "CHANGED"],
      (await collect(notes)).map((note: Head) => [
        note.key,
        note.version,
        note.bytes,
        note.node_id,
        timeText(note.updated_at),
      ]),
    );
  return EXIT.OK;
}

async function search(remote: Remote): Promise<number> {
  const { hub, values, json, words } = remote;
  const asked = { q: words.join(" "), prefix: values.text("prefix") };
  const notes = pages(limitOf(remote), (page) => hub.notes.search({ ...asked, ...page }));
  if (json) await printJsonList(notes);
  else
    printTable(
      ["KEY", "NODE", "TEXT"],
      (await collect(notes)).map(({ key, node_id, excerpt }) => [key, node_id, excerpt]),
    );
  return EXIT.OK;
}

type Paged<N> = { readonly notes: readonly N[]; readonly next_cursor: string | null };

async function* pages<N>(
  limit: number,
  load: (page: { readonly cursor: string | undefined; readonly per_page: number }) => Promise<Paged<N>>,
): AsyncGenerator<N, void, undefined> {
  let left = limit;
  for (let cursor: string | null | undefined; cursor !== null && left > 0;) {
    const { notes, next_cursor } = await load({ cursor, per_page: Math.min(left, PAGE) });
    yield* notes;
    left -= notes.length;
    cursor = next_cursor;
  }
}
