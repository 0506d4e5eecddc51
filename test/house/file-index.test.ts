/** src/FILES.md lists every file of src by the first sentence of its header comment. */
import { expect, test } from "bun:test";
import { join } from "node:path";
import { fileIndex, firstSentence } from "../../tools/generate/file-index.ts";

test("the page is what `bun run file-index` writes", async () => {
  expect(await Bun.file(join(import.meta.dir, "../../src/FILES.md")).text()).toBe(fileIndex());
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
