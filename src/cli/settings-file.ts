/**
 * The file of `luxhub apply` and `luxhub export`: the schedules, limits, budgets, webhooks and keys of a hub, each with
 * the fields of the request that makes it, without secrets. Must not: change a hub.
 */
import type { LuxHub, Operation } from "../client/luxhub.ts";
import type { JsonEndpoint } from "../api/endpoint.ts";
import { faultsIn, parseInput, withoutAbsent } from "../api/input.ts";
import { ENDPOINTS } from "../api/routes.ts";
import { scheduleIn } from "../api/schedules.ts";
import { must } from "../lib/assert.ts";
import { didYouMean } from "../lib/closest.ts";
import { fieldsOf } from "./command.ts";
import { type Fields, failed, isFields, readFields } from "./pipeline-file.ts";
import { rowsOf } from "./resource.ts";

type Part = {
  readonly put: Operation & ("schedule/put" | "limit/set" | "budget/set" | "webhook/put" | "key/add");
  readonly list: Operation & ("schedule/list" | "limit/list" | "budget/list" | "webhook/list" | "key/list");
  readonly names: readonly string[];
  /** Fields of the request that no file has: secrets, and what is relative to the time of the request. */
  readonly without: readonly string[];
  /** Whether a listed record is a setting. */
  isSetting(record: Fields): boolean;
};

export const PARTS = {
  schedules: part("schedule/put", "schedule/list", ["name"]),
  // A hold without a limit is no setting.
  limits: part("limit/set", "limit/list", ["key"], [], ({ running, per_minute }) =>
    [running, per_minute].some((value) => value !== null),
  ),
  budgets: part("budget/set", "budget/list", ["scope", "value", "per"]),
  // The push configs of A2A belong to their tasks.
  webhooks: part(
    "webhook/put",
    "webhook/list",
    ["name"],
    ["secret"],
    ({ name }) => !/^a2a:/.test(String(name)),
  ),
  // The two keys of the first start have no time.
  keys: part(
    "key/add",
    "key/list",
    ["name"],
    ["secret", "expires_in_s"],
    ({ created_at, state }) => created_at !== null && state === "valid",
  ),
};

export type PartName = keyof typeof PARTS;
export const PART_NAMES = Object.keys(PARTS) as readonly PartName[]; // the keys of a literal are its names
export type Settings = { readonly [Name in PartName]?: readonly Fields[] };

function part(
  put: Part["put"],
  list: Part["list"],
  names: readonly string[],
  without: readonly string[] = [],
  isSetting: Part["isSetting"] = () => true,
): Part {
  return { put, list, names, without, isSetting };
}

export function fieldNamesOf({ put, without }: Part): readonly string[] {
  return fieldsOf(put)
    .map(({ name }) => name)
    .filter((name) => !without.includes(name));
}

export function nameOf(name: PartName, entry: Fields): string {
  return PARTS[name].names.flatMap((field) => entry[field] ?? []).join(" ");
}

/** As requests. @throws {Error} when the hub changed meanwhile, so that one may be missing */
export async function settingsOf(hub: LuxHub): Promise<Settings> {
  const read = PART_NAMES.map(async (name) => {
    const { list, isSetting } = PARTS[name];
    let total = 0;
    const rows: Fields[] = [];
    const onPage = (answer: object): void => void (total = Number(Object(answer).total));
    for await (const row of rowsOf<Operation>(hub, list, {}, Number.POSITIVE_INFINITY, onPage))
      rows.push(Object(row));
    if (rows.length !== total) throw new Error(`the ${name} changed meanwhile: run the command again`);
    return [name, rows.filter(isSetting).map((record) => requestOf(name, record))] as const;
  });
  return Object.fromEntries(await Promise.all(read));
}

/** Without nulls, and without the first task of a pipeline beside the pipeline. */
function requestOf(name: PartName, record: Fields): Fields {
  const fields = fieldNamesOf(PARTS[name]).filter(
    (field) => (record[field] ?? null) !== null && !(field === "task" && record["tasks"] !== undefined),
  );
  return Object.fromEntries(fields.map((field) => [field, withoutNulls(record[field])]));
}

function withoutNulls(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutNulls);
  if (!isFields(value)) return value;
  return Object.fromEntries(
    Object.entries(value).flatMap(([key, inner]) => (inner === null ? [] : [[key, withoutNulls(inner)]])),
  );
}

/** What a request says, with the defaults of the hub: equal if both save the same. @throws {Problem} 400 */
export function saidBy(name: PartName, entry: Fields): unknown {
  const present = withoutAbsent(entry, null);
  const path = `/api/v1/${PARTS[name].put}`;
  const endpoint = must(
    ENDPOINTS.find(
      (endpoint): endpoint is JsonEndpoint => endpoint.path === path && endpoint.kind === "json",
    ),
    "each part has an endpoint",
  );
  const input = parseInput(endpoint.input(), present);
  return name === "schedules" ? scheduleIn(present) : input;
}

/** A part that the file does not name is empty. @throws {FileError} with every fault and its place */
export function readSettings(text: string, path: string): Settings {
  const what = PART_NAMES.join(", ");
  const file = readFields(text, path, what);
  const faults = Object.keys(file)
    .filter((name) => !PART_NAMES.some((known) => known === name))
    .map((name) => `${name} is unknown${didYouMean(name, PART_NAMES)}: the file has ${what}`);
  const settings = PART_NAMES.map((name) => [name, entriesIn(name, file[name], faults)] as const);
  if (faults.length > 0) throw failed(faults, path);
  return Object.fromEntries(settings);
}

function entriesIn(name: PartName, list: unknown, faults: string[]): readonly Fields[] {
  const entries: readonly unknown[] = Array.isArray(list) ? list : [];
  if (!Array.isArray(list) && list !== undefined && list !== null) faults.push(`${name} must be a list`);
  const names = new Set<string>();
  return entries.flatMap((entry, i) => {
    if (!isFields(entry)) {
      faults.push(`${name}.${i} must have the fields of ${PARTS[name].put}`);
      return [];
    }
    const place = `${name}.${nameOf(name, entry) || i}`;
    if (names.has(place)) faults.push(`${place} is there twice`);
    names.add(place);
    faults.push(...faultsOf(name, entry).map((fault) => `${place}.${fault}`));
    return [entry];
  });
}

function faultsOf(name: PartName, entry: Fields): readonly string[] {
  const known = fieldNamesOf(PARTS[name]);
  const unknown = Object.keys(entry).filter((field) => !known.includes(field));
  const faults = unknown.map((field) =>
    PARTS[name].without.includes(field)
      ? `${field} must be left out: a file has no secrets and no times from now`
      : `${field} is unknown${didYouMean(field, known)}`,
  );
  const taskFields = fieldsOf("task/create").map((field) => field.name);
  const invalid = faultsIn(() => saidBy(name, entry)).map(({ path, message }) => {
    const isUnknown = message.endsWith("no such field here");
    return `${path} ${message}${isUnknown ? didYouMean(path.split(".").at(-1) ?? "", taskFields) : ""}`;
  });
  return [...faults, ...invalid];
}
