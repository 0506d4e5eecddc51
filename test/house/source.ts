/**
 * Reads source files for the house rules: strips comments and string contents and keeps every line number. Not a parser:
 * a tokeniser that knows just enough to tell code from comments, strings and regular expressions.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";

const ROOT = join(import.meta.dir, "../..");

export type Source = {
  /** Relative to the project root, with `/`. */
  readonly path: string;
  readonly text: string;
};

/** All TypeScript files below a project folder, sorted by path. */
export function sourcesIn(folder: string): readonly Source[] {
  const names = [...new Bun.Glob(`${folder}/**/*.{ts,tsx}`).scanSync({ cwd: ROOT })].toSorted();
  return names.map((path) => ({ path, text: readFileSync(join(ROOT, path), "utf8") }));
}

/** The source without comments and, unless `strings` is "kept", without string contents. */
export function codeOf(text: string, strings: "kept" | "blank" = "blank"): string {
  const out: string[] = [];
  const emit = (part: string, blank: boolean, quoted: boolean): void => {
    if (!blank) out.push(part);
    else if (quoted) out.push(part.charAt(0) + " ".repeat(part.length - 2) + part.charAt(0));
    else out.push(part.replaceAll(/[^\n]/g, " "));
  };
  /** For each open brace: whether it opened a code block or a template expression. */
  const braces: ("code" | "template")[] = [];
  let at = 0;
  let last = ""; // the last token that is not white space
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

/** The next token: a comment, string, regular expression, word, white space, or one character. */
function pieceOf(rest: string, last: string): string {
  const found =
    /^(?:\/\/[^\n]*|\/\*[\s\S]*?\*\/|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|\s+|[\w$]+)/.exec(rest)?.[0] ??
    (rest[0] === "/" && startsExpression(last)
      ? /^\/(?:[^/\\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+\/[a-z]*/.exec(rest)?.[0]
      : undefined);
  return found ?? rest.charAt(0);
}

/** The part of a template literal up to its next expression or its end. */
function templatePart(rest: string): string {
  return /^[`}](?:[^`\\$]|\\[\s\S]|\$(?!\{))*(?:`|\$\{)/.exec(rest)?.[0] ?? rest;
}

/** Whether a `/` after this token starts a regular expression (and is not a division). */
function startsExpression(last: string): boolean {
  return last === "" || /^(?:return|typeof|case|in|of|=>|[-(,=:[!&|?{};+*%<>~^])$/.test(last);
}

/** The module specifiers a file imports or re-exports, in order, including dynamic and type-only imports. */
export function importsOf(text: string): readonly string[] {
  const code = codeOf(text, "kept");
  // Match on code with blank strings, so that text in a string never counts; then read the specifier from the kept text.
  const pattern =
    /\b(?:(?:import|export)\b(?:\s+type\b)?\s*(?:[\w$*{][^'";=]*?\bfrom\s*)?|import\s*\(\s*)(["'])\s*\1/dg;
  return [...codeOf(text).matchAll(pattern)].map((match) => {
    const [quote] = match.indices?.[1] ?? [0, 0];
    return code.slice(quote + 1, match.index + match[0].length - 1);
  });
}
