/** The report file of a worker's command, by itself; test/e2e/worker.test.ts has it in a worker. */
import { expect, test } from "bun:test";
import {
  appendFileSync,
  existsSync,
  linkSync,
  mkdtempSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ReportFile } from "../../src/cli/worker-report.ts";

type Sent = { readonly sent: unknown[]; readonly wrong: string[] };

/** What is sent of a report file that holds `text` when its command ends, and what was wrong with it. */
function sentOf(text: string | Buffer): Promise<Sent> {
  return sentWhile(async (path) => appendFileSync(path, text));
}

/** What is sent while a command does something with its report file. */
async function sentWhile(command: (path: string, now: Sent) => Promise<void>): Promise<Sent> {
  const dir = mkdtempSync(join(tmpdir(), "luxhub-report-test-"));
  const sent: unknown[] = [];
  const wrong: string[] = [];
  const file = new ReportFile(mkdtempSync(join(dir, "r-")), (reason) => wrong.push(reason));
  try {
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
    await file.follow(context, command(file.path, { sent, wrong }));
  } finally {
    file.close();
    expect(existsSync(file.path)).toBe(false);
    rmSync(dir, { recursive: true, force: true });
  }
  return { sent, wrong };
}

test("the last note and the last checkpoint are sent, also from a last line without a line feed", async () => {
  const lines = ['{"note":"one"}', "", '{"checkpoint":[1]}', '{"note":"two","checkpoint":0}', '{"note":"cut'];
  expect(await sentOf(lines.join("\n"))).toEqual({
    sent: [{ note: "two" }, { checkpoint: 0 }],
    wrong: [expect.stringContaining("is no")],
  });
  const whole = await sentOf(lines.with(-1, '{"checkpoint":{"x":2}}').join("\n"));
  expect(whole).toEqual({ sent: [{ note: "two" }, { checkpoint: { x: 2 } }], wrong: [] });
});

test("a line that is not UTF-8 is said, and not sent with other characters", async () => {
  const bytes = Buffer.from('{"checkpoint":"caf\xe9"}\n{"note":"fine"}\n', "latin1");
  expect(await sentOf(bytes)).toEqual({
    sent: [{ note: "fine" }],
    wrong: [expect.stringContaining("is no")],
  });
});

const step = (n: number) => ({ model: "m", input_tokens: n, output_tokens: 0 });
const usage = (n: number): string => `${JSON.stringify({ usage: step(n) })}\n`;

/** How the tools of agents write: in place, or into a new file that is renamed. */
const WRITES: Readonly<Record<string, (path: string, text: string) => void>> = {
  "written in place": writeFileSync,
  replaced: (path, text) => {
    writeFileSync(`${path}.tmp`, text);
    renameSync(`${path}.tmp`, path);
  },
};

test.each(Object.entries(WRITES))("a report file that is %s is read anew", async (_, write) => {
  const until = async (holds: () => boolean): Promise<void> => {
    while (!holds()) await Bun.sleep(10);
  };
  const { sent, wrong } = await sentWhile(async (path, now) => {
    write(path, `${usage(1)}{"note":"page 1"}`);
    await until(() => now.sent.length === 2);
    write(path, `${usage(1)}{"note":"page 2"}`); // of equal length
    await until(() => now.sent.length === 3);
    write(path, `{"note":"page 1"}\n${usage(1)}${usage(2)}{"note":"page 2"}\n{"checkpoint":{"p":2}}\n`);
    await until(() => now.sent.length === 5);
    appendFileSync(path, usage(2)); // the same step once more
    write(path, "");
    appendFileSync(path, `${usage(1)}${usage(1)}{"note":"end"}`);
  });
  expect(wrong).toEqual([]);
  expect(sent.slice(0, 5)).toEqual([
    ...[{ usage: [step(1)] }, { note: "page 1" }, { note: "page 2" }],
    ...[{ usage: [step(2)] }, { checkpoint: { p: 2 } }],
  ]);
  expect(sent.at(-1)).toEqual({ note: "end" });
});

test.each([
  ["a symbolic link", symlinkSync],
  ["a hard link", linkSync],
] as const)("%s in the place of the report file is not read", async (_, link) => {
  const { sent, wrong } = await sentWhile(async (path) => {
    writeFileSync(`${path}.foreign`, '{"note":"foreign"}\n');
    rmSync(path);
    link(`${path}.foreign`, path);
  });
  expect(sent).toEqual([]);
  expect(wrong).toHaveLength(1);
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
  const lines = [{ usage: step(1) }, { note: "one" }, { usage: [step(2), step(3)], note: "two" }];
  const text = lines.map((line) => `${JSON.stringify(line)}\n`).join("");
  expect(await sentOf(text)).toEqual({
    sent: [{ usage: [step(1), step(2), step(3)] }, { note: "two" }],
    wrong: [],
  });
});
