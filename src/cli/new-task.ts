/** The fields of TASK_FIELDS, from the flags of `luxhub task add`, `schedule put` and `task update`. */
import type { RequestOf } from "../client/luxhub.ts";
import { type KindOf, type Kinds, TASK_FIELDS, type TaskField } from "../domain/task/fields.ts";
import { flagsOf } from "./command.ts";
import { UsageError } from "./arguments.ts";
import { readStandardInput } from "./remote.ts";
import type { Values } from "./values.ts";

/** The words of the API, and the numbers that tables show. */
const PRIORITIES = ["p0", "p1", "p2", "p5", "high", "medium", "low", "0", "1", "2"] as const;

function priorityOf(values: Values): RequestOf<"task/create">["priority"] {
  const word = values.choice("priority", PRIORITIES);
  return word === "0" || word === "1" || word === "2" ? (`p${word}` as const) : word;
}

async function textOf(values: Values, flag: string): Promise<string | undefined> {
  const given = values.text(flag);
  return given === "-" ? readStandardInput() : given;
}

function quorumOf(values: Values) {
  const given = values.text("quorum");
  const compare = values.text("compare");
  if (given === undefined) return undefined;
  const [, results, of] = /^(\d+)(?:\/(\d+))?$/.exec(given) ?? [];
  if (results === undefined) throw new UsageError("--quorum must be N or N/M, for example 2/3", "task add");
  return { results: Number(results), of: of === undefined ? undefined : Number(of), compare };
}

function requiresOf(values: Values, flag: string) {
  const required = values.requirements(flag);
  return required === null ? undefined : { capabilities: [...required.words], resources: required.amounts };
}

type Parser<I extends keyof Kinds> = (values: Values, flag: string, kind: KindOf<I>) => unknown;

const text = (values: Values, flag: string) => values.text(flag);
const number = (values: Values, flag: string) => values.number(flag);
const texts = (values: Values, flag: string) => (values.has(flag) ? [...values.texts(flag)] : undefined);

const PARSERS: { readonly [I in keyof Kinds]: Parser<I> } = {
  line: text,
  text: textOf,
  type: text,
  node: text,
  priority: priorityOf,
  lux: number,
  usd: number,
  whole: (values, flag, { min }) => values.whole(flag, min),
  seconds: (values, flag) => values.seconds(flag),
  moment: (values, flag) => values.moment(flag),
  word: (values, flag, { words }) => values.choice(flag, words),
  ids: texts,
  group: text,
  tags: texts,
  requires: requiresOf,
  limitKey: text,
  reviewer: text,
  quorum: quorumOf,
  traceparent: text,
  tracestate: text,
};

function parserOf<I extends keyof Kinds>({ is }: KindOf<I>): Parser<I> {
  return PARSERS[is];
}

/** The fields that the flags give, without `files`: of `--file` the paths are uploaded first. */
export async function newTaskOf(title: string, values: Values) {
  const fields: Record<string, unknown> = {};
  for (const [name, { kind, required, flags = {} }] of Object.entries<TaskField>(TASK_FIELDS)) {
    const [flag] = Object.keys(flagsOf(flags));
    if (flag === undefined || name === "files") continue;
    if (required && name !== "description") values.needed(flag);
    fields[name] = await parserOf(kind)(values, flag, kind);
  }
  const { description = title, ...others }: Partial<RequestOf<"task/create">> = fields;
  return { title, description, ...others };
}

/** The word none takes a value away. */
export async function patchOf(values: Values): Promise<Omit<RequestOf<"task/update">, "task_id">> {
  const fields: Record<string, unknown> = {};
  for (const [name, { kind, patch, flags, updated = flags }] of Object.entries<TaskField>(TASK_FIELDS)) {
    const [flag] = Object.keys(flagsOf(updated ?? {}));
    if (patch === undefined || flag === undefined || !values.has(flag)) continue;
    const isNone = values.text(flag) === "none";
    if (kind.is === "tags") fields[name] = values.texts(flag).filter((word) => word !== "none");
    else if (isNone && patch === "clearable") fields[name] = null;
    else fields[name] = await parserOf(kind)(values, flag, kind);
  }
  return fields;
}
