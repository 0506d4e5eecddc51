/**
 * `bun run file-index`: prints the tree of src with the first sentence of each file's header comment, so that a file is
 * described in one place only: its own header. A file without a header is an error, and a failed test.
 */
import { readFileSync } from "node:fs";
import { join, posix } from "node:path";

const PROJECT = join(import.meta.dir, "../..");
const LINE_CHARS = 110;
const NAME_CHARS = 24;

/** The first sentence of a header comment (of TypeScript) or a docstring (of Python); null without one. */
export function firstSentence(text: string): string | null {
  const comment = /^(?:#![^\n]*\n)?(?:\/\*\*([\s\S]*?)\*\/|"""([\s\S]*?)""")/.exec(text);
  const prose = (comment?.[1] ?? comment?.[2] ?? "").replaceAll(/\n \*/g, " ").replaceAll(/\s+/g, " ").trim();
  return prose === "" ? null : (/^.*?[.!?](?= |$)/.exec(prose)?.[0] ?? prose);
}

export function fileIndex(): string {
  const files = [...new Bun.Glob("**/*.{ts,tsx,py}").scanSync({ cwd: join(PROJECT, "src") })];
  const folders = Map.groupBy(files.toSorted(), (path) => posix.dirname(path));
  const sections = [...folders].map(([folder, paths]) => {
    const lines = paths.map((path) =>
      lineOf(posix.basename(path), readFileSync(join(PROJECT, "src", path), "utf8")),
    );
    return `${folder === "." ? "src" : folder}/\n${lines.join("\n")}`;
  });
  return `${sections.join("\n\n")}\n`;
}

function lineOf(name: string, text: string): string {
  const sentence = firstSentence(text);
  if (sentence === null) throw new Error(`${name} has no header comment`);
  const lines = [""];
  for (const word of sentence.split(" ")) {
    const longer = `${lines.at(-1)} ${word}`;
    if (longer.length + NAME_CHARS + 2 > LINE_CHARS) lines.push(` ${word}`);
    else lines[lines.length - 1] = longer;
  }
  const indent = `\n${" ".repeat(NAME_CHARS + 2)}`;
  return `  ${name.padEnd(NAME_CHARS)}${lines.join(indent)}`;
}

if (import.meta.main) await Bun.write(Bun.stdout, fileIndex());
