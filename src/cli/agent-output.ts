/**
 * Reads what an AI agent's program prints: lines of JSON, in which the places of its table (agents.ts) have the session,
 * the answer, the error and the usage.  Must not: know a program by its name, or hold more than one line and the last
 * value of each place.
 */

import { MODEL_MAX_CHARS } from "../domain/limits.ts";
import { must } from "../lib/assert.ts";

/**
 * `say`: what people see while it runs. `acted`: the model works, of a program that prints no usage when it fails.
 * `denied` has the permissions that the agent lacked.
 */
export const FIELDS = [
  "session",
  "model",
  "say",
  "answer",
  "acted",
  "denied",
  "error",
  "input_tokens",
  "output_tokens",
  "cached_tokens",
  "cost_usd",
] as const;
export type Field = (typeof FIELDS)[number];

export const TAKES = ["last", "sum", "join"] as const;

/** Paths have dots between the names of fields. */
export type Place = {
  readonly where: Readonly<Record<string, string>>;
  /** Numbers at several paths are added up; of texts the first counts. */
  readonly at: readonly string[];
  /**
   * Which line counts: the last one that fits; `sum`: all, added up; `join`: all that follow each other at the end, put
   * together.
   */
  readonly take: (typeof TAKES)[number];
  /** `session`: the number goes on counting when a session is resumed. */
  readonly over: "run" | "session";
  /** A step's number until the program prints the run's: added up, each step once by the id `by`. */
  readonly steps?: { readonly where: Place["where"]; readonly at: Place["at"]; readonly by: string };
};

export type Reads = Readonly<Partial<Record<Field, Place>>>;

/** `input_tokens` has the cached ones too; an unknown cost is left out. */
export type AgentUsage = {
  readonly model: string;
  readonly input_tokens: number;
  readonly output_tokens: number;
  readonly cached_tokens?: number;
  readonly cost_usd?: number;
};

export type Counters = Readonly<Partial<Record<(typeof NUMBERS)[number], number>>>;

const NUMBERS = ["input_tokens", "output_tokens", "cached_tokens", "cost_usd"] as const;
/** A longer line is ignored. */
const LINE_MAX_CHARS = 8 * 1024 * 1024;
/** Costs are rounded to a millionth of a dollar. */
const MICRO = 1_000_000;
/** How much is kept of lines that are no JSON, of objects that are shown as text, and of the ids of steps. */
const PLAIN_LINES = 20;
const SHOWN_MAX_CHARS = 1_000;
const STEPS_MAX = 10_000;

export class AgentOutput {
  readonly #reads: Reads;
  readonly #onSession: (session: string) => void;
  readonly #onSay: (text: string) => void;
  readonly #decoder = new TextDecoder();
  readonly #texts = new Map<Field, string>();
  readonly #numbers = new Map<Field, number>();
  readonly #steps = new Map<Field, Map<string, number>>();
  readonly #plain: string[] = [];
  /** The fields of `join` that the last line had. */
  #joining = new Set<Field>();
  #rest: string[] = [];
  #restChars = 0;

  /**
   * @param onSession called for each new name of the session @param onSay called with whole lines or the pieces of a
   * line
   */
  constructor(reads: Reads, onSession: (session: string) => void, onSay: (text: string) => void) {
    this.#reads = reads.say === undefined && reads.answer ? { ...reads, say: reads.answer } : reads;
    this.#onSession = onSession;
    this.#onSay = onSay;
  }

  add(bytes: Uint8Array): void {
    const lines = this.#decoder.decode(bytes, { stream: true }).split("\n");
    const last = must(lines.pop(), "a split text has a last part");
    for (const line of lines) {
      this.#keep(line);
      this.#endLine();
    }
    this.#keep(last);
  }

  /** The last line may lack its end. */
  end(): void {
    this.#endLine();
  }

  text(field: Field): string | null {
    return this.#texts.get(field) ?? null;
  }

  plainText(): string {
    return this.#plain.join("\n");
  }

  hasSpoken(before: Counters): boolean {
    const usage = this.usage(before, "");
    return usage === null ? this.#texts.has("answer") || this.#texts.has("acted") : usage.output_tokens > 0;
  }

  counters(): Counters {
    return Object.fromEntries(NUMBERS.flatMap((name) => pairOf(name, this.#numbers.get(name))));
  }

  /** Null when the program did not print it. @param before the counters at the end of the last run of the session */
  usage(before: Counters, model: string): AgentUsage | null {
    const of = (name: (typeof NUMBERS)[number]): number | undefined => {
      const now = this.#numbers.get(name);
      const steps = this.#steps.get(name);
      if (now === undefined && steps) return steps.values().reduce((a, b) => a + b, 0);
      const then = this.#reads[name]?.over === "session" ? (before[name] ?? 0) : 0;
      // A counter that is smaller than before has started again.
      return now === undefined || now < then ? now : now - then;
    };
    const [input, output, cached, cost] = NUMBERS.map(of);
    if (input === undefined || output === undefined) return null;
    return {
      model: (this.text("model") ?? model).slice(0, MODEL_MAX_CHARS),
      input_tokens: input,
      output_tokens: output,
      ...(cached !== undefined && { cached_tokens: cached }),
      ...(cost !== undefined && { cost_usd: Math.round(cost * MICRO) / MICRO }),
    };
  }

  #keep(part: string): void {
    this.#restChars += part.length;
    if (this.#restChars <= LINE_MAX_CHARS) this.#rest.push(part);
    else this.#rest = [];
  }

  #endLine(): void {
    const line = this.#rest.join("").trim();
    this.#rest = [];
    this.#restChars = 0;
    if (line.startsWith("{")) this.#read(line);
    else if (line !== "") {
      this.#plain.push(line.slice(0, SHOWN_MAX_CHARS));
      if (this.#plain.length > PLAIN_LINES) this.#plain.shift();
    }
  }

  #read(line: string): void {
    let value: unknown;
    try {
      value = JSON.parse(line);
    } catch {
      return;
    }
    const joined = new Set<Field>();
    for (const field of FIELDS) {
      const place = this.#reads[field];
      if (place?.steps && isNumber(field)) this.#step(field, place.steps, value);
      if (!place || !isOf(place, value)) continue;
      if (isNumber(field)) this.#count(field, place, value);
      else if (this.#say(field, place, value) && place.take === "join") joined.add(field);
    }
    if (this.#joining.has("say") && !joined.has("say")) this.#onSay("\n");
    this.#joining = joined;
  }

  #step(field: Field, place: NonNullable<Place["steps"]>, line: unknown): void {
    const id = valueAt(line, place.by);
    const sum = isOf(place, line) ? sumAt(place.at, line) : null;
    if (sum === null || typeof id !== "string") return;
    const steps = this.#steps.get(field) ?? new Map<string, number>();
    if (steps.size < STEPS_MAX) this.#steps.set(field, steps.set(id, sum));
  }

  #count(field: Field, { at, take }: Place, line: unknown): void {
    const sum = sumAt(at, line);
    if (sum === null) return;
    this.#numbers.set(field, take === "sum" ? (this.#numbers.get(field) ?? 0) + sum : sum);
  }

  #say(field: Field, { at, take }: Place, line: unknown): boolean {
    const text = at.map((path) => textOf(field, valueAt(line, path))).find((candidate) => candidate !== "");
    if (text === undefined) return false;
    const known = this.#texts.get(field);
    if (field === "session") {
      if (!isSessionId(text)) return false;
      if (text !== known) this.#onSession(text);
    }
    if (field === "say") this.#onSay(take === "join" ? text : `${text}\n`);
    const isMore = take !== "last" && (take === "sum" || this.#joining.has(field));
    this.#texts.set(field, isMore ? `${known ?? ""}${text}` : text);
    return true;
  }
}

/** It becomes an argument of the program, and must not be taken for a flag. */
export function isSessionId(text: string): boolean {
  return /^\w[\w.:-]{0,199}$/.test(text);
}

function isNumber(field: Field): field is (typeof NUMBERS)[number] {
  return NUMBERS.some((name) => name === field);
}

export function isCount(value: unknown): value is number {
  return typeof value === "number" && Number.isFinite(value) && value >= 0;
}

function sumAt(paths: Place["at"], line: unknown): number | null {
  const counts = paths.map((path) => valueAt(line, path)).filter(isCount);
  return counts.length === 0 ? null : counts.reduce((a, b) => a + b, 0);
}

/** Of models with their counts the one that has most, of permissions their JSON. Empty: there is none. */
function textOf(field: Field, value: unknown): string {
  if (typeof value === "string") return value;
  if (typeof value !== "object" || value === null) return "";
  const entries = Object.entries(value);
  if (entries.length === 0) return "";
  if (field === "denied") return JSON.stringify(value).slice(0, SHOWN_MAX_CHARS);
  const tokens = (of: unknown): number => Number(valueAt(of, "output_tokens") ?? 0);
  return field === "model" ? (entries.toSorted(([, a], [, b]) => tokens(b) - tokens(a))[0]?.[0] ?? "") : "";
}

function isOf({ where }: Pick<Place, "where">, line: unknown): boolean {
  return Object.entries(where).every(([path, value]) => String(valueAt(line, path)) === value);
}

function valueAt(value: unknown, path: string): unknown {
  for (const name of path.split(".")) {
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, name)) return undefined;
    value = Object.entries(value).find(([key]) => key === name)?.[1];
  }
  return value;
}

function pairOf<N extends string>(name: N, value: number | undefined): [N, number][] {
  return value === undefined ? [] : [[name, value]];
}
