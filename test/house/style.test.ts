/**
 * The rules that reading the sources can check: forbidden words, head comments, which file reads a clock, unused limits.
 * An exception stands in a table here with its reason.
 */
import { describe, expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { type Source, codeOf, sourcesIn } from "./source.ts";

/** `at` is a path. */
type Exception = { readonly at: string; readonly reason: string };

const CLOCK_READERS: readonly Exception[] = [
  { at: "src/lib/clock.ts", reason: "the one place where the clocks are read" },
  { at: "src/http/listener.ts", reason: "how long an answer took, for the log: shown, never decided on" },
  { at: "src/http/access-log.ts", reason: "how long an answer took, for the log: shown, never decided on" },
  { at: "src/client/http.ts", reason: "the client runs without the hub's sources, and has its own clock" },
  { at: "src/service/system.ts", reason: "pg/diagnostic shows how long a read takes" },
];

const LOSSY_READERS: readonly Exception[] = [
  { at: "src/client/http.ts", reason: "the default of its option parseJson" },
  { at: "src/client/joined.ts", reason: "its fields are texts" },
  { at: "src/client/events.ts", reason: "the format of event streams replaces invalid bytes" },
  { at: "src/cli/agent-output.ts", reason: "what an agent prints is shown, never a number of the hub" },
  { at: "src/cli/agent-task.ts", reason: "a command prints any bytes" },
  { at: "src/cli/worker-lock.ts", reason: "environments of processes are any bytes" },
  { at: "src/cli/worker-process.ts", reason: "a command prints any bytes" },
  { at: "src/cli/worker-report.ts", reason: "a command writes any bytes" },
  { at: "src/cli/worker-task.ts", reason: "a command prints any bytes" },
];

const DECIDED: readonly Exception[] = [
  { at: "src/store/store.ts", reason: "transactAlso keeps what the last decision carries" },
];

const SENDERS: readonly Exception[] = [
  { at: "src/client/http.ts", reason: "directFetch, which obeys no proxy" },
  { at: "src/client/joined.ts", reason: "the same, with a certificate" },
];

const SOURCES = sourcesIn("src");
/** What reads the texts and numbers of people and hubs, which must arrive as they are. */
const READERS = SOURCES.filter(({ path }) => /^src\/(?:cli|client|a2a)\//.test(path));
const TESTS = [...sourcesIn("test"), ...sourcesIn("tools")];

/** `path:line` of each match in the code. */
function places({ path, text }: Source, pattern: RegExp): readonly string[] {
  return text.split("\n").flatMap((line, i) => (pattern.test(line) ? [`${path}:${i + 1}`] : []));
}

const inCode = ({ path, text }: Source): Source => ({ path, text: codeOf(text) });
const excepted = (exceptions: readonly Exception[], at: string): boolean =>
  exceptions.some((e) => e.at === at);

const anyTypes = (source: Source): readonly string[] =>
  places(inCode(source), /(?<![.\w$"])any\b(?!\s*[(:])/);
const silenced = (source: Source): readonly string[] =>
  places(source, /@ts-(?:ignore|nocheck|expect-error)\b/);
const defaults = (source: Source): readonly string[] =>
  places(inCode(source), /\bexport\s+default\b|\bas\s+default\b/);
const clocks = (source: Source): readonly string[] =>
  excepted(CLOCK_READERS, source.path)
    ? []
    : places(inCode(source), /\bDate\.now\b|\bperformance\.now\b|\bnew Date\(\s*\)|\bDate\(\s*\)/);
/** JSON.parse rounds numbers, Date.parse accepts days that do not exist, and lenient readers replace bytes. */
const lossy = ({ path, text }: Source): readonly string[] =>
  excepted(LOSSY_READERS, path)
    ? []
    : places(
        { path, text: codeOf(text, "kept") },
        /\bJSON\.parse\b|\bDate\.parse\b|"utf-?8"\)|\bTextDecoder\(\)|\bstdin\.(?:text|json)\(|\bBun\.file\([^)]*\)\.(?:text|json)\(/,
      );
/** Bun's fetch sends the secret through the proxy that the environment names. */
const sends = (source: Source): readonly string[] =>
  excepted(SENDERS, source.path) ? [] : places(inCode(source), /(?<![.#\w])fetch\(|(?:=|\?\?) fetch\b/);

/** What a decision may still tell others while it is made: hints of the lanes that this hub knows. */
const HINTS = /^this\.(?:#\w+\.)*#?knownLanes\.(?:learn|served)\($/;
/** `(a, { b }) =>`, `a =>`, `const { a } =`, `let a`: names that a decision declares itself. */
const DECLARED =
  /\b(?:const|let|function)\s+([\w$]+|[{[][^=]*[}\]])|\(([^()]*)\)(?::[^=(){}]*)?\s*=>|([\w$]+)\s*=>/g;
/** `a = `, `a.b += `, `a++`, `++a`, `a.push(`. */
const WRITTEN =
  /(?<![.\w#$])(?:(?:\+\+|--)([\w$]+)|([A-Za-z_$][\w$]*)(?:\.#?[\w$]+|\[[^\]]*\])*(?:\s*(?:(?:[-+*/|&]|\?\?|\|\||&&)?=(?![=>])|\+\+|--)|\.(?:add|push|set|delete|learn\w*|served|unshift|splice|clear)\())/g;
/** An engine may decide a transaction several times, so a decision writes no variable that it has not declared itself. */
const writesInDecisions = (source: Source): readonly string[] => {
  if (excepted(DECIDED, source.path)) return [];
  const code = codeOf(source.text);
  return [...code.matchAll(/(?<![\w$])(transact|handOut|transactAlso)\(/g)].flatMap((call) => {
    const spans = argumentsAt(code, call.index + call[0].length);
    const [from, to] = spans[call[1] === "transactAlso" ? 2 : 1] ?? [0, 0];
    const decide = code.slice(from, to);
    const own = new Set([...decide.matchAll(DECLARED)].flatMap(([text]) => text.match(/[\w$]+/g) ?? []));
    return [...decide.matchAll(WRITTEN)]
      .filter(([text, first, second]) => !own.has(first ?? second ?? "") && !HINTS.test(text))
      .filter(({ index }) => !/:\s*$/.test(decide.slice(0, index))) // a type
      .map(({ index }) => `${source.path}:${code.slice(0, from + index).split("\n").length}`);
  });
};
/** From where to where each argument of a call reaches. */
function argumentsAt(code: string, start: number): readonly (readonly [number, number])[] {
  const spans: [number, number][] = [];
  let from = start;
  for (let at = start, depth = 0; depth >= 0 && at < code.length; at++) {
    const char = code.charAt(at);
    if ("([{".includes(char)) depth++;
    if (")]}".includes(char)) depth--;
    if (depth < 0 || (char === "," && depth === 0)) {
      spans.push([from, at]);
      from = at + 1;
    }
  }
  return spans;
}

const ROOT = join(import.meta.dir, "../..");
/** Pages that are cited (from the root) or imported, and not in the repository. */
const citesAbsent = ({ path, text }: Source): readonly string[] =>
  text
    .split("\n")
    .flatMap((line, i) =>
      [...line.matchAll(/[\w./-]*\w\.md\b/g)]
        .filter(
          ([cited]) => ![join(ROOT, cited), join(ROOT, path, "..", cited)].some((one) => existsSync(one)),
        )
        .map(() => `${path}:${i + 1}`),
    );
/** A header comment with text in it, not just a divider. */
const headless = ({ path, text }: Source): readonly string[] =>
  /^(?:#![^\n]*\n)?\/\*\*[\s*]*[A-Za-z`][\s\S]{15,}?\*\//.test(text) ? [] : [path];

/** Each rule with sources that break it and sources that do not: a rule that matches nothing would always pass. */
const RULES: readonly {
  readonly name: string;
  readonly of: readonly Source[];
  readonly check: (source: Source) => readonly string[];
  readonly bad: readonly string[];
  readonly good: readonly string[];
}[] = [
  {
    name: "no any",
    of: [...SOURCES, ...TESTS],
    check: anyTypes,
    bad: ["let a: any;", "b as any", "let c: any[];", "type D = Map<string, any>;", "f<any>()"],
    good: ["// any", '"any"', "Promise.any([])", "const company = 1;"],
  },
  {
    name: "no citation of a page that is not in the repository",
    of: SOURCES,
    check: citesAbsent,
    bad: ["// see decisions.md", "/** docs/none.md */"],
    good: ["// docs/security.md", "/** Of the README.md. */"],
  },
  {
    name: "no silenced type errors",
    of: [...SOURCES, ...TESTS.filter(({ path }) => !path.startsWith("test/house/"))],
    check: silenced,
    bad: ["// @ts-ignore", "/* @ts-expect-error */", "// @ts-nocheck"],
    good: ["// ts-ignore"],
  },
  {
    name: "no default export",
    of: SOURCES,
    check: defaults,
    bad: ["export default 1;", "export { a as default };"],
    good: ["// export default", "switch (a) { default: }"],
  },
  {
    name: "every file starts with a header comment",
    of: SOURCES,
    check: headless,
    bad: [
      "import a from 'a';\n/** Says what it is, too late. */",
      "/** */\n",
      "// A line that says what it is.",
    ],
    good: [
      "/** Says what it is. */\n",
      "/**\n * Says what it is.\n */\n",
      "#!/usr/bin/env bun\n/** Says what it is. */",
    ],
  },
  {
    name: "only lib/clock.ts reads a clock",
    of: SOURCES,
    check: clocks,
    bad: ["Date.now()", "performance.now()", "new Date()"],
    good: ["new Date(at)", "// Date.now()", "clock.now()"],
  },
  {
    name: "a decision writes no variable of its use case",
    of: SOURCES,
    check: writesInDecisions,
    bad: [
      "let a = 1; transact({}, () => { a = 2; return accept(null); });",
      "const b: string[] = []; transact(load, ({ rows }) => { b.push(rows); return accept(null); });",
      "transactAlso(transact, load, (rows) => { this.#at = rows.at; return UNDECIDED; })",
      "transact(load, (rows) => { c.d++; return accept(rows); })",
    ],
    good: [
      "transact(load, (rows) => { let a = 1; a = 2; return accept(a); });",
      "transact(load, ({ rows }) => { const b: Row[] = []; for (const c of rows) b.push(c); return accept(b); });",
      "let a = 1; transact(load, decide); a = 2;",
    ],
  },
  {
    name: "what is sent to a hub passes no proxy",
    of: READERS,
    check: sends,
    bad: ["await fetch(url)", "send = fetch", "given ?? fetch"],
    good: ["this.#fetch(url)", "directFetch(url)", "fetch: send"],
  },
  {
    name: "the readers of the command line, of the clients and of A2A lose no digit and no byte",
    of: READERS,
    check: lossy,
    bad: [
      "JSON.parse(text)",
      "Date.parse(at)",
      'readFileSync(file, "utf8")',
      "new TextDecoder()",
      "await Bun.stdin.text()",
      "Bun.file(path).json()",
    ],
    good: [
      "parseExact(text)",
      "instantMs(at)",
      "readTextFile(file)",
      'new TextDecoder("utf-8", { fatal: true })',
    ],
  },
];

for (const { name, of, check, bad, good } of RULES)
  describe(name, () => {
    test("holds", () => expect(of.flatMap(check)).toEqual([]));
    for (const text of bad)
      test(`rejects ${JSON.stringify(text.slice(0, 40))}`, () => {
        expect(check({ path: "src/bad.ts", text })).not.toEqual([]);
      });
    for (const text of good)
      test(`accepts ${JSON.stringify(text.slice(0, 40))}`, () => {
        expect(check({ path: "src/good.ts", text })).toEqual([]);
      });
  });

test("every exception is still needed", () => {
  const exists = ({ at }: Exception): boolean => SOURCES.some(({ path }) => path === at);
  const readers = SOURCES.filter((s) => /\b(?:Date|performance)\.now\b/.test(codeOf(s.text))).map(
    (s) => s.path,
  );
  expect([...CLOCK_READERS, ...LOSSY_READERS, ...DECIDED].filter((e) => !exists(e))).toEqual([]);
  expect(CLOCK_READERS.map((e) => e.at).filter((at) => !readers.includes(at))).toEqual([]);
});

test("every limit is used", () => {
  const limits = SOURCES.find(({ path }) => path === "src/domain/limits.ts")?.text ?? "";
  const names = [...limits.matchAll(/^export const (\w+)/gm)].map((match) => match[1] ?? "");
  expect(names.length).toBeGreaterThan(50);
  const code = SOURCES.filter(({ path }) => path !== "src/domain/limits.ts").map(({ text }) =>
    codeOf(text, "kept"),
  );
  const words = new Set(code.flatMap((text) => text.match(/\b[A-Z][A-Z0-9_]+\b/g) ?? []));
  expect(names.filter((name) => !words.has(name))).toEqual([]);
});
