/** The report file of a worker's command, by itself; test/e2e/worker.test.ts has it in a worker. */
import { expect, test } from "bun:test";
import { appendFileSync, existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ReportFile } from "../../src/cli/worker-report.ts";

/** What is sent of a report file that holds `text` when its command ends, and what was wrong with it. */
async function sentOf(text: string): Promise<{ readonly sent: unknown[]; readonly wrong: string[] }> {
  const dir = mkdtempSync(join(tmpdir(), "luxhub-report-test-"));
  const sent: unknown[] = [];
  const wrong: string[] = [];
  const file = new ReportFile(join(dir, "r-"), (reason) => wrong.push(reason));
  try {
    appendFileSync(file.path, text);
    const context = {
      signal: new AbortController().signal,
      epoch: 1,
      inputs: [],
      checkpoint: undefined,
      failures: [],
      lessons: [],
      answers: [],
      ask: async (question: string, options: object = {}) => {
        sent.push({ ask: { question, ...options } });
        return "yes";
      },
      extend: async (note?: string) => void sent.push({ note }),
      output: () => {},
      saveCheckpoint: async (checkpoint: unknown) => void sent.push({ checkpoint }),
      reportUsage: async (usage: unknown) => (sent.push({ usage }), null),
    };
    await file.follow(context, Promise.resolve());
  } finally {
    file.close();
    expect(existsSync(file.path)).toBe(false);
    rmSync(dir, { recursive: true, force: true });
  }
  return { sent, wrong };
}

test("the last note and the last checkpoint are sent, and a line that is not complete is not read", async () => {
  const lines = ['{"note":"one"}', "", '{"checkpoint":[1]}', '{"note":"two","checkpoint":0}', '{"note":"cut'];
  expect(await sentOf(lines.join("\n"))).toEqual({ sent: [{ note: "two" }, { checkpoint: 0 }], wrong: [] });
});

test.each([
  "no JSON",
  "[]",
  "null",
  '{"other":1}',
  '{"note":7}',
  '{"usage":7}',
  '{"usage":[{},null]}',
  '{"note":" "}',
  `{"note":"${"x".repeat(200_000)}"}`,
])("%.20s is no report", async (line) => {
  const { sent, wrong } = await sentOf(`${line}\n{"note":"next"}\n`);
  expect(sent).toEqual([{ note: "next" }]);
  expect(wrong).toEqual([
    'a line of the report file is no {"note": "text"}, {"checkpoint": JSON}, {"usage": {…}} or {"ask": {"question": "text"}}',
  ]);
});

test("a question at the end of a command is asked only if it parks the task", async () => {
  const waits = { question: "Which?", choices: ["a"] };
  const parks = { question: "And?", within_s: 60, park: true };
  const lines = [waits, parks].map((ask) => `${JSON.stringify({ ask })}\n`);
  expect(await sentOf(lines.join(""))).toEqual({
    sent: [{ ask: { question: "And?", within: 60, park: true } }],
    wrong: [],
  });
  expect((await sentOf('{"ask":{"choices":[]}}\n')).wrong).toHaveLength(1);
});

test("a file without end is read up to its limit", async () => {
  const line = `{"note":"${"x".repeat(60_000)}"}\n`;
  const { sent, wrong } = await sentOf(line.repeat(400) + '{"note":"beyond"}\n');
  expect(sent).toEqual([{ note: "x".repeat(1_000) }]);
  expect(wrong).toEqual(["the report file has 16777216 bytes, and is read no further"]);
});

test("all usage is sent, in its order and before the last note", async () => {
  const step = (n: number) => ({ model: "m", input_tokens: n, output_tokens: 0 });
  const lines = [{ usage: step(1) }, { note: "one" }, { usage: [step(2), step(3)], note: "two" }];
  const text = lines.map((line) => `${JSON.stringify(line)}\n`).join("");
  expect(await sentOf(text)).toEqual({
    sent: [{ usage: [step(1), step(2), step(3)] }, { note: "two" }],
    wrong: [],
  });
});
