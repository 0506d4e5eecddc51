/** `bun run file-index` prints every file of src with the first sentence of its header comment. */
import { expect, test } from "bun:test";
import { fileIndex, firstSentence } from "../../tools/generate/file-index.ts";

test("every file of src has a header, and is printed", () => {
  const lines = fileIndex().split("\n");
  expect(lines).toContain("domain/");
  expect(lines.find((line) => line.startsWith("  main.ts"))).toContain("argv");
});

test("the first sentence ends at its own full stop", () => {
  const rows: readonly (readonly [text: string, sentence: string | null])[] = [
    ["/** One. Two. */", "One."],
    [
      "#!/usr/bin/env bun\n/**\n * One (see a.ts, 5.4)\n * goes on. Two.\n */",
      "One (see a.ts, 5.4) goes on.",
    ],
    ["/** No stop */\nconst a = 1.5;", "No stop"],
    ['"""One.\n\nTwo.\n"""', "One."],
    ["import a;\n/** Late. */", null],
  ];
  for (const [text, sentence] of rows) expect(firstSentence(text)).toBe(sentence);
});
