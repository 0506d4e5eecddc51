/** Parses the values of flags. An invalid one is refused in one line that says what is valid. */
import { must } from "../lib/assert.ts";
import { SECOND_MS, isoTime, systemClock } from "../lib/clock.ts";
import { didYouMean } from "../lib/closest.ts";
import { durationMs, momentMs } from "../lib/duration.ts";
import { parseRequirements } from "./resources.ts";
import { type Arguments, UsageError } from "./arguments.ts";
import type { Field } from "./command.ts";
import { commandNamed } from "./commands.ts";

/** A missing flag has the value undefined, or an empty list. */
export class Values {
  readonly #args: Arguments;
  readonly #command: string;

  constructor(args: Arguments, command: string) {
    this.#args = args;
    this.#command = command;
  }

  has(flag: string): boolean {
    return this.#args.flags[flag] !== undefined;
  }

  text(flag: string): string | undefined {
    return this.#args.flags[flag]?.at(-1);
  }

  texts(flag: string): readonly string[] {
    return this.#args.flags[flag] ?? [];
  }

  needed(flag: string): string {
    const text = this.text(flag);
    if (text !== undefined) return text;
    const placeholder = commandNamed(this.#command).flags[flag]?.value ?? "VALUE";
    throw new UsageError(`${this.#command} needs --${flag} ${placeholder}`, this.#command);
  }

  neededWhole(flag: string): number {
    this.needed(flag);
    return must(this.whole(flag), "the flag has a value");
  }

  whole(flag: string, min = 0): number | undefined {
    const text = this.text(flag);
    if (text === undefined) return undefined;
    if (/^\d{1,15}$/.test(text) && Number(text) >= min) return Number(text);
    throw this.#refusal(flag, text, `a whole number from ${min}`);
  }

  number(flag: string): number | undefined {
    const text = this.text(flag);
    if (text === undefined) return undefined;
    if (/^\d{1,15}(?:\.\d{1,9})?$/.test(text)) return Number(text);
    throw this.#refusal(flag, text, "a number");
  }

  seconds(flag: string): number | undefined {
    const text = this.text(flag);
    if (text === undefined) return undefined;
    const ms = spanOf(text);
    if (ms !== null) return ms / SECOND_MS;
    throw this.#refusal(flag, text, "a time such as 500ms, 10s, 5m, 2h or 1d");
  }

  requirements(flag: string): ReturnType<typeof parseRequirements> {
    const text = this.text(flag);
    if (text === undefined) return null;
    const requirements = parseRequirements(text);
    if (requirements !== null) return requirements;
    throw this.#refusal(flag, text, "a list such as gpu=2,vram_gib=24");
  }

  moment(flag: string): string | undefined {
    const text = this.text(flag);
    if (text === undefined) return undefined;
    const ms = momentMs(withUnit(text), systemClock().now());
    if (ms !== null) return isoTime(ms);
    throw this.#refusal(flag, text, "a time from now, such as 2h, or 2030-01-31T12:00:00Z");
  }

  /** A flag `-env` names an environment variable with the value. */
  field(flag: string, { kind, words = [], min, isList }: Field): unknown {
    if (flag.endsWith("-env")) return this.#variable(flag);
    switch (kind) {
      case "whole":
        return this.whole(flag, min);
      case "number":
        return this.number(flag);
      case "time":
        return this.seconds(flag);
      case "moment":
        return this.moment(flag);
      case "word":
        return isList ? this.choices(flag, words) : this.choice(flag, words);
      case "switch":
        return this.has(flag);
      default:
        return isList ? this.texts(flag) : this.text(flag);
    }
  }

  choice<const W extends string>(flag: string, words: readonly W[]): W | undefined {
    const text = this.text(flag);
    return text === undefined ? undefined : this.oneOf(`--${flag}`, text, words);
  }

  choices<const W extends string>(flag: string, words: readonly W[]): readonly W[] {
    return this.texts(flag).map((text) => this.oneOf(`--${flag}`, text, words));
  }

  /** In any case. `what` is the flag or the argument. @throws {UsageError} */
  oneOf<W extends string>(what: string, text: string, words: readonly W[]): W {
    const word = words.find((allowed) => allowed.toLowerCase() === text.toLowerCase());
    if (word !== undefined) return word;
    const hint = words.length > 10 ? "" : `; it must be ${words.join(", ")}`;
    throw new UsageError(
      `${what} is ${JSON.stringify(text)}${hint}${didYouMean(text, words)}`,
      this.#command,
    );
  }

  #variable(flag: string): string {
    const variable = this.needed(flag);
    const text = process.env[variable];
    if (text) return text;
    throw new UsageError(`the environment variable ${variable} of --${flag} is not set`, this.#command);
  }

  #refusal(flag: string, text: string, must: string): UsageError {
    return new UsageError(`--${flag} is ${JSON.stringify(text)}; it must be ${must}`, this.#command);
  }
}

function spanOf(text: string): number | null {
  return durationMs(withUnit(text));
}

function withUnit(text: string): string {
  return /^[\d.]+$/.test(text) ? `${text}s` : text;
}
