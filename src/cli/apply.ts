/** `luxhub apply FILE`: makes the settings of a hub those of a file. What the file does not name stays. */
import type { Operation } from "../client/luxhub.ts";
import { printableJson } from "../lib/printable.ts";
import { readTextFile } from "../text-file.ts";
import { EXIT } from "./exit-codes.ts";
import { FileError, type Fields, failed, isFields } from "./pipeline-file.ts";
import { type ClientRuns, type Remote, printError, readStandardInput } from "./remote.ts";
import {
  PARTS,
  PART_NAMES,
  type PartName,
  type Settings,
  fieldNamesOf,
  nameOf,
  readSettings,
  saidBy,
  settingsOf,
} from "./settings-file.ts";
import { writeLine } from "./standard-output.ts";
import { plain } from "./table.ts";

export const RUNS: ClientRuns = { apply };

type Change = {
  readonly part: PartName;
  readonly name: string;
  readonly change: "add" | "change";
  readonly fields: Readonly<Record<string, { readonly from: unknown; readonly to: unknown }>>;
  readonly entry: Fields;
};

async function apply({ hub, values, json, words: [path = ""] }: Remote): Promise<number> {
  const text = path === "-" ? await readStandardInput() : readTextFile(path);
  const shownPath = path === "-" ? "standard input" : path;
  let changes: readonly Change[];
  try {
    const wanted = readSettings(text, shownPath);
    changes = changesTo(wanted, await settingsOf(hub), shownPath);
  } catch (error) {
    if (!(error instanceof FileError)) throw error;
    for (const line of error.message.split("\n")) printError(line);
    return EXIT.USAGE;
  }
  const isTrial = values.has("dry-run");
  for (const { entry, ...change } of changes) {
    const { part, name } = change;
    const answer = isTrial
      ? {}
      : await hub.call<Operation>(PARTS[part].put, Object(entry)).catch((error: unknown) => {
          printError(`${part} ${name} was not saved`);
          throw error;
        });
    // Only this response has the secret of a new key or webhook: a line that cannot be written is an error.
    const { secret } = Object(answer);
    writeLine(json ? printableJson({ ...change, secret }) : plain(textOf(change, secret)));
  }
  if (changes.length === 0 && !json) writeLine("nothing to change");
  return EXIT.OK;
}

function textOf({ part, name, change, fields }: Omit<Change, "entry">, secret: unknown): string {
  const lines = Object.entries(fields).map(
    ([field, { from, to }]) =>
      `    ${field}: ${change === "add" ? "" : `${JSON.stringify(from) ?? "-"} -> `}${JSON.stringify(to) ?? "-"}`,
  );
  const head = `${change === "add" ? "+" : "~"} ${part} ${name}${secret === undefined ? "" : `  ${secret}`}`;
  return [head, ...lines].join("\n");
}

/** @throws {FileError} for a key that would have to change, which no request can do */
function changesTo(wanted: Settings, current: Settings, path: string): readonly Change[] {
  const faults: string[] = [];
  const changes = PART_NAMES.flatMap((part) => {
    const byName = new Map((current[part] ?? []).map((entry) => [nameOf(part, entry), entry]));
    return (wanted[part] ?? []).flatMap((entry): readonly Change[] => {
      const name = nameOf(part, entry);
      const before = byName.get(name);
      if (before && Bun.deepEquals(saidBy(part, before), saidBy(part, entry))) return [];
      if (before && part === "keys")
        faults.push(
          `keys.${name} differs from the key of the hub, and keys do not change: choose another name`,
        );
      return [
        {
          part,
          name,
          change: before ? "change" : "add",
          fields: differencesOf(part, before ?? {}, entry),
          entry,
        },
      ];
    });
  });
  if (faults.length > 0) throw failed(faults, path);
  return changes;
}

/** Of a task its fields; without what is only written otherwise, or is a default in one and missing in the other. */
function differencesOf(part: PartName, before: Fields, after: Fields): Change["fields"] {
  const isNew = Object.keys(before).length === 0;
  const differences: Record<string, { from: unknown; to: unknown }> = {};
  const note = (field: string, from: unknown, to: unknown, other: Fields): void => {
    if (from === to || (!isNew && isSame(part, other, after))) return;
    differences[field] = { from, to };
  };
  for (const field of fieldNamesOf(PARTS[part])) {
    if (isNew && PARTS[part].names.includes(field)) continue;
    const [from, to] = [before[field], after[field]];
    if (isFields(from) && isFields(to))
      for (const name of new Set([...Object.keys(from), ...Object.keys(to)])) {
        const other = { ...after, [field]: { ...to, [name]: from[name] } };
        note(`${field}.${name}`, from[name], to[name], other);
      }
    else note(field, from, to, { ...after, [field]: from });
  }
  return differences;
}

function isSame(part: PartName, one: Fields, other: Fields): boolean {
  try {
    return Bun.deepEquals(saidBy(part, one), saidBy(part, other));
  } catch {
    return false; // a request that cannot be, such as with two timings
  }
}
