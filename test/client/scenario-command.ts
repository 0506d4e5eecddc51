/** The command of `luxhub worker` in scenarios.ts: does the steps of its task by what a command has. */
import { appendFileSync, readFileSync } from "node:fs";
import { type Step, large, lines, stepsOf } from "./scenarios.ts";

const { LUXHUB_REPORT = "", LUXHUB_ANSWERS = "" } = process.env;
const task = await Bun.stdin.json();

function report(line: unknown): void {
  appendFileSync(LUXHUB_REPORT, `${JSON.stringify(line)}\n`);
}

async function act(step: Step): Promise<unknown> {
  if (step.prints !== undefined) process.stderr.write(lines(step.prints));
  if (step.note !== undefined) report({ note: step.note });
  if (step.checkpoint !== undefined) report({ checkpoint: step.checkpoint });
  if (step.usage !== undefined) report({ usage: step.usage });
  if (step.ask !== undefined) {
    report({ ask: { question: step.ask, choices: ["a"], park: step.park ?? false } });
    while (!readFileSync(LUXHUB_ANSWERS, "utf8").includes(JSON.stringify(step.ask))) await Bun.sleep(20);
  }
  if (step.sleepMs !== undefined) await Bun.sleep(step.sleepMs);
  if (step.hang !== undefined) await new Promise(() => setInterval(() => {}, 60_000));
  const error = step.fail ?? step.fatal;
  if (error !== undefined) {
    process.stderr.write(error);
    process.exit(step.fatal === undefined ? 1 : 65);
  }
  if (step.large !== undefined) return large(step.large);
  if (step.see === undefined) return step.gives;
  const { inputs = [], checkpoint, failures = [], answers = [], lessons = [] } = task.context ?? {};
  return { output: { inputs, checkpoint: checkpoint ?? null, failures, answers, lessons } };
}

let result: unknown = "done";
for (const step of stepsOf(task)) result = (await act(step)) ?? result;
await Bun.write(Bun.stdout, typeof result === "string" ? result : JSON.stringify(result));
