/**
 * `luxhub export DIR`: all that the API gives, in files that other programs read. settings.json, the file of `luxhub apply`,
 * is written last: a directory without it is incomplete.
 *
 * Invariant: creates every file anew, and none outside of DIR.
 */
import { createHash } from "node:crypto";
import { mkdirSync, readdirSync } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { join } from "node:path";
import { type FileRecord, type LuxHub, LuxHubError, HubUnreachable } from "../client/luxhub.ts";
import { ENTRIES_MAX, EVENTS_MAX } from "../domain/limits.ts";
import { printableJson } from "../lib/printable.ts";
import { EXIT, Failure } from "./exit-codes.ts";
import { usableName } from "./file.ts";
import type { ClientRuns, Remote } from "./remote.ts";
import { rowsOf } from "./resource.ts";
import { settingsOf } from "./settings-file.ts";
import { writeLine } from "./standard-output.ts";

export const RUNS: ClientRuns = { export: exportTo };

const ALL = Number.POSITIVE_INFINITY;
const NAME_MAX_BYTES = 255;

async function exportTo({ hub, json, words: [dir = ""] }: Remote): Promise<number> {
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  if (readdirSync(dir).length > 0)
    throw new Failure(EXIT.CONFLICT, `${dir} is not empty: name a new directory, or empty this one`);
  const settings = await settingsOf(hub);
  const filesDir = join(dir, "files");
  mkdirSync(filesDir);
  const lists: Readonly<Record<string, AsyncIterable<object>>> = {
    nodes: rowsOf(hub, "node/list", {}, ALL),
    tasks: rowsOf(hub, "task/list", {}, ALL),
    files: downloaded(hub, filesDir),
    notes: notesOf(hub),
    messages: messagesOf(hub),
    events: eventsOf(hub),
    ledger: ledgerOf(hub),
  };
  const counts: Record<string, number> = {};
  for (const [name, rows] of Object.entries(lists))
    counts[name] = await writeNew(join(dir, `${name}.jsonl`), linesOf(rows));
  await writeNew(join(dir, "settings.json"), [`${printableJson(settings, 2)}\n`]);
  const text = Object.entries(counts).map(([name, count]) => `${count} ${name}`);
  return writeLine(json ? printableJson(counts, 2) : `${dir}  ${text.join(", ")}`);
}

async function* linesOf(rows: AsyncIterable<object>): AsyncGenerator<string, void, undefined> {
  for await (const row of rows) yield `${printableJson(row)}\n`;
}

/** Returns how many pieces. */
async function writeNew(
  path: string,
  pieces: AsyncIterable<string | Uint8Array> | string[],
): Promise<number> {
  const file: FileHandle = await open(path, "wx", 0o600);
  let count = 0;
  try {
    for await (const piece of pieces) {
      await file.appendFile(piece);
      count++;
    }
  } finally {
    await file.close();
  }
  return count;
}

/** Each with the `path` of its bytes below DIR. A file that was deleted meanwhile is gone from the hub too. */
async function* downloaded(hub: LuxHub, dir: string): AsyncGenerator<object, void, undefined> {
  const taken = new Set<string>();
  for await (const file of rowsOf(hub, "file/list", {}, ALL)) {
    const name = nameFor(file, taken);
    if (await download(hub, file, join(dir, name))) yield { ...file, path: `files/${name}` };
  }
}

/** Some file systems do not tell upper case from lower case, or two forms of a letter. */
function nameFor({ file_id, name }: FileRecord, taken: Set<string>): string {
  const given = usableName(name, file_id);
  for (let i = 0; ; i++) {
    const candidate = i === 0 ? given : i === 1 ? `${file_id}-${given}` : `${file_id}-${i}`;
    const key = candidate.normalize("NFC").toLowerCase();
    if (taken.has(key) || Buffer.byteLength(candidate) > NAME_MAX_BYTES) continue;
    taken.add(key);
    return candidate;
  }
}

async function download(hub: LuxHub, file: FileRecord, path: string): Promise<boolean> {
  const { file_id } = file;
  try {
    const { body } = await hub.files.download({ file_id });
    const hash = createHash("sha256");
    const pieces = async function* () {
      for await (const piece of body ?? []) {
        hash.update(piece);
        yield piece;
      }
    };
    await writeNew(path, pieces());
    if (hash.digest("hex") !== file.sha256)
      throw new HubUnreachable(`the download of the file ${file_id} broke off, or its bytes are damaged`);
    return true;
  } catch (error) {
    if (error instanceof LuxHubError && error.code === "file_not_found") return false;
    throw error;
  }
}

async function* notesOf(hub: LuxHub): AsyncGenerator<object, void, undefined> {
  for await (const { key } of rowsOf(hub, "note/list", {}, ALL)) {
    try {
      yield (await hub.notes.get({ key })).note;
    } catch (error) {
      if (!(error instanceof LuxHubError && error.code === "note_not_found")) throw error; // deleted meanwhile
    }
  }
}

/** Those that each node got: a broadcast is one for each. */
async function* messagesOf(hub: LuxHub): AsyncGenerator<object, void, undefined> {
  for await (const { node_id } of rowsOf(hub, "node/list", {}, ALL))
    yield* rowsOf(hub, "agent/messages", { node_id }, ALL);
}

async function* eventsOf(hub: LuxHub): AsyncGenerator<object, void, undefined> {
  for (let since = 0; ;) {
    const { events, cursor } = await hub.call("events", { since, limit: EVENTS_MAX });
    yield* events;
    if (cursor === since) return;
    since = cursor;
  }
}

export async function* ledgerOf(hub: LuxHub): AsyncGenerator<object, void, undefined> {
  for (let since = 0; ;) {
    const { entries } = await hub.lux.entries({ since, limit: ENTRIES_MAX });
    yield* entries;
    const last = entries.at(-1);
    if (!last) return;
    since = last.seq;
  }
}
