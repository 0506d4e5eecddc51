/**
 * Reads the sources as the tests of the house look at them: text without comments, without the content of strings, with
 * every line where it was. No parser: just enough of the language's words to tell code from what is not.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";

const ROOT = join(import.meta.dir, "../..");

export type Source = {
  /** From the root of the project, with `/`. */
  readonly path: string;
  readonly text: string;
};

/** Every TypeScript file below a folder of the project, by path. */
export function sourcesIn(folder: string): readonly Source[] {
  const names = [...new Bun.Glob(`${folder}/**/*.{ts,tsx}`).scanSync({ cwd: ROOT })].toSorted();
  return names.map((path) => ({ path, text: readFileSync(join(ROOT, path), "utf8") }));
}

/** The source without comments; without the content of strings too, unless they are kept. */
export function codeOf(text: string, strings: "kept" | "blank" = "blank"): string {
  const out: string[] = [];
  const emit = (part: string, blank: boolean, quoted: boolean): void => {
    if (!blank) out.push(part);
    else if (quoted) out.push(part.charAt(0) + " ".repeat(part.length - 2) + part.charAt(0));
    else out.push(part.replaceAll(/[^\n]/g, " "));
  };
  /** What closes each open brace: plain code, or the expression of a template. */
  const braces: ("code" | "template")[] = [];
  let at = 0;
  let last = ""; // the last piece of code that is no space
  while (at < text.length) {
    const rest = text.slice(at);
    const template = rest[0] === "`" || (rest[0] === "}" && braces.at(-1) === "template");
    if (template && rest[0] === "}") braces.pop();
    const piece = template ? templatePart(rest) : pieceOf(rest, last);
    if (template && piece.endsWith("${")) braces.push("template");
    else if (!template && piece === "{") braces.push("code");
    else if (!template && piece === "}") braces.pop();
    const comment = piece.startsWith("//") || piece.startsWith("/*");
    const quoted = /^["']/.test(piece) && piece.length > 1;
    const literal = template || quoted || (piece.length > 1 && piece.startsWith("/"));
    emit(piece, comment || (literal && strings === "blank"), quoted);
    if (!comment && piece.trim() !== "") last = literal ? '""' : piece;
    at += piece.length;
  }
  return out.join("");
}

/** One step through the code: a comment, a string, a regular expression, a word, a run of space, or one sign. */
function pieceOf(rest: string, last: string): string {
  const found =
    /^(?:\/\/[^\n]*|\/\*[\s\S]*?\*\/|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|\s+|[\w$]+)/.exec(rest)?.[0] ??
    (rest[0] === "/" && startsExpression(last)
      ? /^\/(?:[^/\\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+\/[a-z]*/.exec(rest)?.[0]
      : undefined);
  return found ?? rest.charAt(0);
}

/** From the opening (or the end of an expression) to the next expression or to the end. */
function templatePart(rest: string): string {
  return /^[`}](?:[^`\\$]|\\[\s\S]|\$(?!\{))*(?:`|\$\{)/.exec(rest)?.[0] ?? rest;
}

/** Whether a `/` after this begins a regular expression and is no division. */
function startsExpression(last: string): boolean {
  return last === "" || /^(?:return|typeof|case|in|of|=>|[-(,=:[!&|?{};+*%<>~^])$/.test(last);
}

/** What a file imports or exports from, in order; dynamic and type-only ones too. */
export function importsOf(text: string): readonly string[] {
  const code = codeOf(text, "kept");
  // Searched where strings are blank, so that no string is taken for code; read where they are not.
  const pattern =
    /\b(?:(?:import|export)\b(?:\s+type\b)?\s*(?:[\w$*{][^'";=]*?\bfrom\s*)?|import\s*\(\s*)(["'])\s*\1/dg;
  return [...codeOf(text).matchAll(pattern)].map((match) => {
    const [quote] = match.indices?.[1] ?? [0, 0];
    return code.slice(quote + 1, match.index + match[0].length - 1);
  });
}

export type FunctionSpan = { readonly name: string; readonly line: number; readonly lines: number };

/** What cannot be part of a return type: the walk back from a body has left its declaration. */
const DECLARES = /\b(?:class|interface|enum|export|function|const|let|return)\b/;

/** What stands before the parentheses of a block that is no function. */
const CONTROL = new Set(["if", "for", "await", "while", "switch", "catch", "with"]);

/** The functions with a body in braces: where they begin and how long they are. */
export function functionsOf(text: string): readonly FunctionSpan[] {
  const code = codeOf(text);
  const pairs = pairsOf(code);
  const spans: FunctionSpan[] = [];
  for (const [open, close] of pairs.closing) {
    if (code[open] !== "{") continue;
    const start = startOf(code, open, pairs.opening);
    if (start === null) continue;
    const from = code.slice(0, start.at).split("\n").length;
    const to = code.slice(0, close).split("\n").length;
    spans.push({ name: start.name, line: from, lines: to - from + 1 });
  }
  return spans.toSorted((a, b) => a.line - b.line);
}

type Pairs = {
  readonly closing: ReadonlyMap<number, number>;
  readonly opening: ReadonlyMap<number, number>;
};

/** The places of brackets that belong together. */
function pairsOf(code: string): Pairs {
  const closing = new Map<number, number>();
  const opening = new Map<number, number>();
  const open: number[] = [];
  for (const { 0: sign, index } of code.matchAll(/[(){}[\]]/g)) {
    if ("([{".includes(sign)) open.push(index);
    else {
      const partner = open.pop() ?? 0;
      closing.set(partner, index);
      opening.set(index, partner);
    }
  }
  return { closing, opening };
}

/** The name of the function whose body opens here, and where it begins; null when this opens something else. */
function startOf(code: string, body: number, opening: Pairs["opening"]): { name: string; at: number } | null {
  const before = code.slice(0, body).trimEnd();
  const arrow = before.endsWith("=>");
  const end = endOfParameters(arrow ? before.slice(0, -2).trimEnd() : before, opening);
  if (end === null && !arrow) return null;
  const at = end === null ? before.length - 2 : (opening.get(end) ?? 0);
  const line = code.slice(code.lastIndexOf("\n", at) + 1, at);
  const words = line.replace(/<[^()]*>\s*$/, "").match(/[\w$#]+/g) ?? [];
  const name = words.filter((word) => word !== "async" && !/^\d/.test(word)).at(-1) ?? "?";
  return !arrow && CONTROL.has(name) ? null : { name, at };
}

/** Where the parameters end, before a return type if there is one; null when there are none. */
function endOfParameters(header: string, opening: Pairs["opening"]): number | null {
  if (header.endsWith(")")) return header.length - 1;
  for (let at = header.length - 1; at > 0; at--) {
    const sign = header[at] ?? "";
    if (sign === "}" || sign === "]") at = opening.get(at) ?? 0;
    else if (sign === ":") {
      const end = header.slice(0, at).trimEnd().length - 1;
      const type = header.slice(at + 1).trim();
      return header[end] === ")" && type !== "" && !DECLARES.test(type) ? end : null;
    } else if (!/[\w\s.<>|&,"'$]/.test(sign)) return null;
  }
  return null;
}
