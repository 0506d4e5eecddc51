/**
 * The file of `luxhub run`: tasks by name, each with the fields of task/create, `needs`, `matrix` and `files`
 * (docs/pipelines.md). Every fault is named with its place, before anything is created. Must not: call a hub.
 */
import { basename, dirname, extname, resolve } from "node:path";
import type { RequestOf } from "../client/luxhub.ts";
import { faultsOfNewTask } from "../api/tasks.ts";
import { didYouMean } from "../lib/closest.ts";
import { parseExact } from "../lib/exact-json.ts";
import { reasonOf } from "../lib/reason.ts";
import { fieldsOf } from "./command.ts";

export type Fields = Readonly<Record<string, unknown>>;

export type Step = {
  readonly name: string;
  /** Without the fields that follow from the rest. */
  readonly task: RequestOf<"task/create">;
  /** Names of steps. */
  readonly needs: readonly string[];
  readonly files: readonly string[];
};

export type Pipeline = {
  readonly group: string;
  /** Each after those that it needs. */
  readonly steps: readonly Step[];
};

export class FileError extends Error {
  override readonly name = "FileError";
}

export const STEPS_MAX = 10_000;
/** Fields of task/create that a pipeline sets itself. */
const OWN_FIELDS: readonly string[] = ["depends_on", "group", "unique_key", "unique_for_s", "for_node"];
const STEP_FIELDS = ["needs", "matrix", "files"] as const;
const TASK_FIELDS: readonly string[] = fieldsOf("task/create")
  .map(({ name }) => name)
  .filter((name) => !OWN_FIELDS.includes(name) && name !== "files");
const KNOWN_FIELDS = [...TASK_FIELDS, ...STEP_FIELDS];
/** `1..150`: whole numbers. */
const RANGE = /^(-?\d{1,9})\.\.(-?\d{1,9})$/;
/** Leaves room for the time of the run. */
const GROUP_NAME_CHARS = 64;
const STEP_NAME = /^[A-Za-z][\w-]{0,63}$/;

/** @throws {FileError} */
export function readPipeline(text: string, path: string): Pipeline {
  const file = readFields(text, path, "tasks by name");
  const faults: string[] = [];
  for (const name of Object.keys(file).filter((key) => key !== "group" && key !== "tasks"))
    faults.push(`${name} is unknown: a pipeline has group and tasks`);
  const { group = groupOfFile(path), tasks } = file;
  if (typeof group !== "string") faults.push("group must be a text");
  if (!isFields(tasks) || Object.keys(tasks).length === 0)
    throw failed([...faults, "tasks must have the tasks by name"], path);
  const steps: Step[] = [];
  const instances = new Map<string, readonly string[]>();
  for (const [name, fields] of Object.entries(tasks)) {
    const made = instancesOf(name, fields, dirname(path), faults);
    instances.set(
      name,
      made.map((step) => step.name),
    );
    for (const step of made.filter((made) => made.name !== name)) instances.set(step.name, [step.name]);
    steps.push(...made);
    if (steps.length > STEPS_MAX) throw failed([`a pipeline has at most ${STEPS_MAX} tasks`], path);
  }
  const known = [...instances.keys()];
  for (const { name, needs } of steps)
    for (const needed of needs.filter((other) => !instances.has(other)))
      faults.push(`tasks.${name}.needs: there is no task ${needed}${didYouMean(needed, known)}`);
  if (faults.length > 0) throw failed([...new Set(faults)], path);
  const resolved = steps.map((step) => ({
    ...step,
    needs: step.needs.flatMap((name) => instances.get(name) ?? []),
  }));
  for (const step of resolved) faults.push(...faultsOfTask(step));
  if (faults.length > 0) throw failed([...new Set(faults)], path);
  return { group: String(group), steps: inOrder(resolved, path) };
}

/** The name of a file may have characters that a group may not have. */
function groupOfFile(path: string): string {
  const name = basename(path, extname(path)).replaceAll(/[^A-Za-z0-9._:-]+/g, "-");
  return name.replaceAll(/^-+|-+$/g, "").slice(0, GROUP_NAME_CHARS) || "pipeline";
}

export function failed(faults: readonly string[], path: string): FileError {
  return new FileError(faults.map((fault) => `${path}: ${fault}`).join("\n"));
}

/** YAML, or JSON if the name of the file says so. @throws {FileError} */
export function readFields(text: string, path: string, what: string): Fields {
  let value: unknown;
  try {
    value = extname(path) === ".json" ? parseExact(text) : Bun.YAML.parse(text);
    JSON.stringify(value); // an alias may have itself
  } catch (error) {
    throw failed([`is not ${extname(path) === ".json" ? "JSON" : "YAML"}: ${reasonOf(error)}`], path);
  }
  if (isFields(value)) return value;
  throw failed([`must have ${what}`], path);
}

/** The steps of one entry of `tasks`: one or, with `matrix`, one for each combination. */
function instancesOf(name: string, fields: unknown, dir: string, faults: string[]): readonly Step[] {
  const place = `tasks.${name}`;
  if (!STEP_NAME.test(name))
    faults.push(
      `${place}: a name has letters, digits, - and _, begins with a letter, and has at most 64 characters`,
    );
  if (!isFields(fields)) {
    faults.push(`${place} must have the fields of a task`);
    return [];
  }
  for (const field of Object.keys(fields).filter((key) => !KNOWN_FIELDS.includes(key)))
    faults.push(
      OWN_FIELDS.includes(field)
        ? `${place}.${field}: a pipeline sets this itself`
        : `${place}.${field} is unknown${didYouMean(field, KNOWN_FIELDS)}`,
    );
  const { needs, matrix, files, ...task } = fields;
  const rows = rowsOf(matrix, place, faults);
  return rows.map((row, i): Step => {
    const fill = (value: unknown): unknown => filled(value, row, place, faults);
    const ownName = matrix === undefined ? name : `${name}-${i + 1}`;
    return {
      name: ownName,
      task: Object({ title: ownName, description: ownName, ...Object(fill(task)) }), // faultsOfTask() checks it
      needs: wordsOf(fill(needs), `${place}.needs`, faults),
      files: wordsOf(fill(files), `${place}.files`, faults).map((file) => resolve(dir, file)),
    };
  });
}

/** Those of a list, or the product of several; without a matrix one empty combination. */
function rowsOf(matrix: unknown, place: string, faults: string[]): readonly Fields[] {
  if (matrix === undefined) return [{}];
  if (Array.isArray(matrix)) {
    if (matrix.length > 0 && matrix.every(isFields)) return matrix;
    faults.push(`${place}.matrix: a list has objects such as {doc: a.txt}`);
    return [];
  }
  const lists = isFields(matrix)
    ? Object.entries(matrix).map(([key, value]) => [key, valuesOf(value)] as const)
    : [];
  if (lists.length === 0 || lists.some(([, values]) => values === null || values.length === 0)) {
    faults.push(`${place}.matrix must be a list of objects, or have lists by name: {doc: [a, b], n: 1..9}`);
    return [];
  }
  let rows: readonly Fields[] = [{}];
  for (const [key, values] of lists) {
    if (rows.length * (values?.length ?? 0) > STEPS_MAX) {
      faults.push(`${place}.matrix has more than ${STEPS_MAX} combinations`);
      return [];
    }
    rows = rows.flatMap((row) => (values ?? []).map((value) => ({ ...row, [key]: value })));
  }
  return rows;
}

/** Null: neither a list nor a range. */
function valuesOf(value: unknown): readonly unknown[] | null {
  if (Array.isArray(value)) return value;
  const range = typeof value === "string" ? RANGE.exec(value) : null;
  if (range === null) return null;
  const [first, last] = [Number(range[1]), Number(range[2])];
  return last - first >= STEPS_MAX
    ? null
    : Array.from({ length: Math.max(0, last - first + 1) }, (_, i) => first + i);
}

/** A text that is nothing but `{{name}}` becomes the value itself. */
function filled(value: unknown, row: Fields, place: string, faults: string[]): unknown {
  if (typeof value === "string") {
    const valueOf = (name: string): unknown => {
      if (Object.hasOwn(row, name)) return row[name];
      faults.push(`${place}: there is no ${name} in its matrix${didYouMean(name, Object.keys(row))}`);
      return "";
    };
    const whole = /^\{\{\s*(\w+)\s*\}\}$/.exec(value);
    if (whole) return valueOf(whole[1] ?? "");
    return value.replaceAll(/\{\{\s*(\w+)\s*\}\}/g, (_, name: string) => {
      const item = valueOf(name);
      if (typeof item === "object")
        faults.push(`${place}: ${name} is not a text: {{${name}}} must stand alone`);
      return String(item);
    });
  }
  if (Array.isArray(value)) return value.map((item: unknown) => filled(item, row, place, faults));
  if (!isFields(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [key, filled(item, row, place, faults)]),
  );
}

function wordsOf(value: unknown, place: string, faults: string[]): readonly string[] {
  if (value === undefined || value === null) return [];
  const words: readonly unknown[] = Array.isArray(value) ? value : [value];
  if (words.every((word) => typeof word === "string")) return words;
  faults.push(`${place} must be a name, or a list of names`);
  return [];
}

function faultsOfTask({ name, task, needs, files }: Step): readonly string[] {
  const request = { ...task, depends_on: needs.map(() => "x"), files: files.map(() => "x") };
  return faultsOfNewTask(request).map(({ path, message }) => `tasks.${name}.${path} ${message}`);
}

/** @throws {FileError} that names a cycle */
function inOrder(steps: readonly Step[], path: string): readonly Step[] {
  const byName = new Map(steps.map((step) => [step.name, step]));
  const ordered = new Set<Step>();
  const open = new Set<string>();
  const visit = (step: Step): void => {
    if (ordered.has(step)) return;
    if (open.has(step.name)) {
      const cycle = [...open].slice([...open].indexOf(step.name));
      throw failed([`the tasks need each other: ${[...cycle, step.name].join(" -> ")}`], path);
    }
    open.add(step.name);
    for (const name of step.needs) {
      const needed = byName.get(name);
      if (needed) visit(needed);
    }
    open.delete(step.name);
    ordered.add(step);
  };
  for (const step of steps) visit(step);
  return [...ordered];
}

export function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
