/**
 * What a command is, and the short forms in which commands.ts declares it. A flag is declared as the help shows it:
 * `"-d description TEXT"`, `"tag WORD…"` (repeatable), `"once"` (a switch).
 */
import type { AnswerOf, Operation, RequestOf } from "../client/call.ts";
import { must } from "../lib/assert.ts";
import { ADMIN_CALLS, REQUESTS } from "./requests.ts";
import type { Cell } from "./table.ts";

export type Flag = {
  readonly value?: string;
  readonly help: string;
  readonly short?: string;
  readonly multiple?: boolean;
  readonly choices?: readonly string[];
  readonly isPath?: boolean;
};

export type Command = {
  readonly name: string;
  readonly words: string;
  readonly summary: string;
  readonly flags: Readonly<Record<string, Flag>>;
  readonly about?: string;
  /** Whether it is a client of a hub, on this machine or another. */
  readonly isRemote?: boolean;
  readonly resource?: Resource;
};

export type RowOf<Answer> = {
  [Name in keyof Answer]-?: Answer[Name] extends readonly (infer Row extends object)[] ? Row : never;
}[keyof Answer];

/**
 * How a command calls an operation, and what of the answer it prints. A list is printed as a table or as texts; of anything
 * else the line that `say` returns, or without it all fields. Methods, so that one type holds the commands of all operations.
 */
export type Resource<Part = PropertyKey, Shown = object, Row = object> = {
  readonly call: Operation;
  /** The fields that a switch sets, if it is no field itself. */
  readonly switches?: Readonly<Record<string, object>>;
  /** What is sent in any case. */
  readonly fixed?: object;
  /** The field whose argument - is standard input. */
  readonly input?: string;
  readonly part?: Part;
  say?(shown: Shown, word: string): string;
  /** The columns of a list: "HEAD field, TWO WORDS field.of_a_field". */
  readonly columns?: string;
  readonly head?: readonly string[];
  cells?(row: Row): readonly Cell[];
  text?(row: Row): string;
  readonly between?: string;
  /** Whether all rows are printed, each as a line of JSON. */
  readonly isExport?: boolean;
  readonly order?: "newest";
  readonly none?: string;
  isFailure?(shown: Shown): boolean;
};

type Texts = Readonly<Record<string, string | readonly [help: string, choices: readonly string[]]>>;

const LISTED = /^(?:[a-z]+(?:\|[a-z]+)+|A\|B)$/;

export function flagsOf(texts: Texts): Command["flags"] {
  return Object.fromEntries(
    Object.entries(texts).map(([form, text]) => {
      const [, short, name = "", value, more] = /^(?:-(\w) )?([\w-]+)(?: (\S*?)(…)?)?$/.exec(form) ?? [];
      const [help, choices] = typeof text === "string" ? [text] : text;
      const words = choices ?? (value !== undefined && LISTED.test(value) ? value.split("|") : undefined);
      const flag: Flag = {
        help,
        ...(value !== undefined && { value }),
        ...(short !== undefined && { short }),
        ...(more !== undefined && { multiple: true }),
        ...(words && { choices: words }),
        ...(/^(?:DIR|FILE)$/.test(value ?? "") && { isPath: true }),
      };
      return [name, flag];
    }),
  );
}

/** Splits "lease acquire NAME: take an advisory lease": the name of the command, its arguments, and the summary. */
function headOf(head: string): Pick<Command, "name" | "words" | "summary"> {
  const [form = "", summary = ""] = head.split(/: (.*)/);
  const [name = ""] = /^[a-z-]+(?: [a-z-]*[a-z](?= |$))*/.exec(form) ?? [];
  return { name, words: form.slice(name.length + 1), summary };
}

/** Most runs of the program need the flags of one command. */
function command(head: string, texts: Texts, about: string, more: Partial<Command> = {}): Command {
  let flags: Command["flags"] | undefined;
  return {
    ...headOf(head),
    ...(about !== "" && { about }),
    ...more,
    get flags() {
      return (flags ??= flagsOf(texts));
    },
  };
}

/** A command that calls no hub. */
export function local(head: string, flags: Texts = {}, about = ""): Command {
  return command(head, flags, about);
}

const JSON_FLAG = { json: "print JSON" };
export const DATA = { "data DIR": "the data directory (LUXHUB_DATA, or else ./luxhub-data)" };
const PLACE = {
  "url URL":
    "the URL of the hub, or those of the hub and its copies, separated by commas (LUXHUB_URL); default: the hub that runs on --data",
  "secret-file FILE": "a file with the secret (or LUXHUB_SECRET)",
  ...DATA,
};
export const REMOTE_FLAGS = flagsOf({ ...JSON_FLAG, ...PLACE });

/** Clients without --json, because they print no record, or only JSON. */
const NO_JSON: readonly string[] = ["file get ", "lux export:", "worker ", "mcp:", "mcp-config "];

export function remote(head: string, flags: Texts = {}, about = "", spec?: Resource): Command {
  const json = NO_JSON.some((name) => head.startsWith(name)) ? {} : JSON_FLAG;
  const more = { isRemote: true, ...(spec && { resource: spec }) };
  return command(head, { ...flags, ...json, ...PLACE }, about, more);
}

export const ADMIN_ABOUT = "Needs the administrator key (from LUXHUB_ADMIN_KEY or the data directory).";

type FieldsOf<O extends Operation> = keyof RequestOf<O> & string;
type ShownOf<O extends Operation, Part> = object &
  (Part extends keyof AnswerOf<O> ? AnswerOf<O>[Part] : AnswerOf<O>);

/**
 * A client that makes one call: its arguments and flags are fields of the request, whose declaration says what is valid,
 * and what must be given.
 */
export function resource<const O extends Operation, const Part extends keyof AnswerOf<O> | "" = "">(
  call: O,
  head: string,
  spec: Omit<Resource<Part, ShownOf<O, Part>, RowOf<AnswerOf<O>>>, "call"> & {
    readonly switches?: Readonly<Record<string, Partial<RequestOf<O>>>>;
    readonly fixed?: Partial<RequestOf<O>>;
    readonly input?: FieldsOf<O>;
  },
  texts: Texts = {},
  about = "",
): Command {
  const notes = [about, ADMIN_CALLS.includes(call) ? ADMIN_ABOUT : ""].filter((note) => note !== "");
  return remote(head, texts, notes.join("\n"), { call, ...spec });
}

export function choicesOf({ flags, resource: spec }: Command, name: string): readonly string[] {
  const { value, choices } = must(flags[name], "the command has the flag");
  return choices ?? (spec && value !== undefined ? fieldOf(spec.call, name)?.words : undefined) ?? [];
}

export type Field = {
  readonly name: string;
  readonly kind: string;
  readonly words?: readonly string[];
  readonly min: number;
  readonly isList: boolean;
  readonly isRequired: boolean;
};

export function fieldsOf(call: Operation): readonly Field[] {
  const texts = must(REQUESTS[call], "requests.ts has every operation");
  return (texts === "" ? [] : texts.split(", ")).map((text) => {
    const [, name = "", kind = "", of, list, optional] =
      /^(\w+) (\w+)(?: ([^…?]+))?(…)?(\?)?$/.exec(text) ?? [];
    return {
      name,
      kind,
      ...(kind === "word" && { words: of?.split("|") ?? [] }),
      min: kind === "whole" ? Number(of) : 0,
      isList: list !== undefined,
      isRequired: optional === undefined,
    };
  });
}

/** The rest of a field's name after that of its flag. */
const ENDINGS = ["", "_s", "_id", "_node", "_at", "s"];

export function fieldOf(call: Operation, flag: string): Field | undefined {
  const base = flag.replace(/-env$/, "").replaceAll("-", "_");
  const names = [...ENDINGS.map((ending) => base + ending), `task_${base}`];
  return fieldsOf(call).find(({ name }) => names.includes(name));
}
