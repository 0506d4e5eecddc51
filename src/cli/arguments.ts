/**
 * The command line's grammar. node:util splits the line into tokens; this file decides what is refused, and with which
 * message. Nothing is ignored: an unknown flag, a word too many or a flag given twice is an error.
 */
import { type ParseArgsOptionDescriptor, parseArgs } from "node:util";
import { readPath } from "../config.ts";
import { must } from "../lib/assert.ts";
import { didYouMean } from "../lib/closest.ts";

export type Form = {
  readonly name: string;
  /**
   * The positional arguments, as the help shows them: "FILE", "NAME A|B|none", "" for none; "[VALUE]" may be left out,
   * "ID…" is one or more, "[COMMAND…]" any number; "-- " in front means that a program to run follows after "--", with
   * flags of its own.
   */
  readonly words: string;
  /** By name without dashes; `string` takes a value, `boolean` takes none, `multiple` may be repeated. */
  readonly flags: Readonly<Record<string, ParseArgsOptionDescriptor>>;
};

/**
 * A parsed command line: the values of each flag by name (one empty value for a flag that takes none), and the words.
 */
export type Arguments = {
  readonly flags: Readonly<Record<string, readonly string[] | undefined>>;
  readonly words: readonly string[];
  /** --help was given; then the rest is empty or incomplete. */
  readonly help: boolean;
};

export class UsageError extends Error {
  override readonly name = "UsageError";

  constructor(message: string, command: string) {
    super(`${message}; see luxhub ${command === "" ? "help" : `${command} --help`}`);
  }
}

const HELP: Form["flags"] = { help: { type: "boolean", short: "h" } };

/**
 * Parses flags, as --flag VALUE or --flag=VALUE, and words, in any order; everything after `--` is a word. A value that
 * begins with a dash is written --flag=-VALUE.
 * @throws {UsageError}
 */
export function readArguments(argv: readonly string[], form: Form): Arguments {
  const flags: Record<string, string[]> = {};
  const words: string[] = [];
  const known = { ...form.flags, ...HELP };
  const refuse: (message: string) => never = (message) => {
    throw new UsageError(message, form.name);
  };
  const tokens = tokensOf(argv, form.flags);
  const terminator = tokens.find(({ kind }) => kind === "option-terminator");
  // Otherwise the flags of the program to run would be parsed as our own.
  const wordsFrom = form.words.startsWith("-- ") ? (terminator?.index ?? Number.POSITIVE_INFINITY) : -1;
  for (const token of tokens) {
    if (token.kind === "positional") {
      if (token.index < wordsFrom)
        refuse(`unexpected ${JSON.stringify(token.value)}: the command must follow after --`);
      words.push(token.value);
    }
    if (token.kind !== "option") continue;
    const { name, rawName, value, inlineValue } = token;
    const flag = Object.hasOwn(known, name) ? known[name] : undefined;
    if (!flag) refuse(`unknown flag ${rawName}${didYouMean(rawName, namesOf(known))}`);
    if (flag.type === "boolean" && value !== undefined) refuse(`${rawName} takes no value`);
    if (name === "help") return { flags, words, help: true };
    if (flag.type === "string" && value === undefined) refuse(`${rawName} needs a value`);
    if (inlineValue === false && value.startsWith("-") && value !== "-")
      refuse(`${rawName} needs a value; a value that begins with a dash is written ${rawName}=…`);
    if (flags[name] && !flag.multiple) refuse(`${rawName} is given twice`);
    (flags[name] ??= []).push(value ?? "");
  }
  refuseWords(words, form);
  return { flags, words, help: false };
}

/**
 * Finds the command of a group by the first word, and parses its arguments, which may also precede that word. Null when
 * help was asked for, or the command line is empty.
 * @throws {UsageError}
 */
export function readSubcommand<T extends Form>(
  argv: readonly string[],
  group: string,
  forms: readonly T[],
): { readonly form: T; readonly args: Arguments } | null {
  const flags = Object.assign({}, ...forms.map((form) => form.flags)) as Form["flags"];
  const tokens = tokensOf(argv, flags);
  const first = tokens.find((token) => token.kind === "positional");
  const names = forms.map((form) => form.name.slice(group.length + 1));
  if (!first) {
    if (argv.length === 0 || readArguments(argv, { name: group, words: "", flags }).help) return null;
    throw new UsageError(`${group} needs ${names.join(", ")}`, group);
  }
  const form = forms[names.indexOf(first.value)];
  if (!form) {
    const unknown = `unknown command ${group} ${first.value}`;
    throw new UsageError(`${unknown}${didYouMean(first.value, names)}`, group);
  }
  const args = readArguments(argv.toSpliced(first.index, 1), form);
  return args.help ? null : { form, args };
}

function tokensOf(argv: readonly string[], flags: Form["flags"]) {
  const options = { ...flags, ...HELP };
  return parseArgs({ args: argv, options, strict: false, allowPositionals: true, tokens: true }).tokens;
}

function namesOf(flags: Form["flags"]): readonly string[] {
  return Object.keys(flags).map((name) => `--${name}`);
}

function refuseWords(words: readonly string[], { name, words: form }: Form): void {
  const placeholders = form.split(" ").filter((word) => word !== "" && word !== "--");
  const extra = words[placeholders.length];
  if (extra !== undefined && !/…\]?$/.test(form))
    throw new UsageError(`unexpected ${JSON.stringify(extra)}`, name);
  const needed = placeholders.filter((word) => !word.startsWith("["));
  if (words.length < needed.length) throw new UsageError(`${name} needs ${form}`, name);
}

export function wordAt({ words }: Pick<Arguments, "words">, index: number): string {
  return must(words[index], "the command line has the words of its form");
}

/**
 * Refuses a stream, because the command must be able to seek.
 * @throws {UsageError}
 */
export function fileOf(args: Pick<Arguments, "words">, name: string): string {
  const word = wordAt(args, 0);
  if (word === "-") throw new UsageError(`${name} needs a FILE, not - (a file of that name is ./-)`, name);
  const read = readPath(word);
  if ("value" in read) return read.value;
  throw new UsageError(`the FILE is ${JSON.stringify(word)}; it must be ${read.must}`, name);
}
