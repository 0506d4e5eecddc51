/** The TypeScript library as a worker of scenarios.ts: `bun scenario-worker.ts NODE CONCURRENCY [TIMEOUT_S]`. */
import { FatalError, LuxHub } from "../../src/client/index.ts";
import { type Step, large, lines, stepsOf } from "./scenarios.ts";

const [node = "", concurrency, timeoutS] = process.argv.slice(2);
const { LUXHUB_URL: url = "", LUXHUB_SECRET: secret = "" } = process.env;
const [stop, release] = [new AbortController(), new AbortController()];
process.on("SIGTERM", () => (stop.signal.aborted ? release : stop).abort());

await new LuxHub({ url, secret, retry: { firstPauseMs: 5, maxPauseMs: 50 } }).worker(
  node,
  async (task, context) => {
    const { signal } = context;
    const hang = (): Promise<never> =>
      new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
    const act = async (step: Step): Promise<unknown> => {
      if (step.prints !== undefined) context.output(lines(step.prints));
      if (step.note !== undefined) await context.extend(step.note);
      if (step.checkpoint !== undefined) await context.saveCheckpoint(step.checkpoint);
      if (step.usage !== undefined) await context.reportUsage(step.usage);
      if (step.ask !== undefined) await context.ask(step.ask, { choices: ["a"], park: step.park ?? false });
      if (step.sleepMs !== undefined) await Bun.sleep(step.sleepMs);
      if (step.hang !== undefined) await hang();
      if (step.fail !== undefined) throw new Error(step.fail);
      if (step.fatal !== undefined) throw new FatalError(step.fatal);
      if (step.large !== undefined) return large(step.large);
      if (step.see === undefined) return step.gives;
      const { inputs, checkpoint = null, failures, answers, lessons } = context;
      return { output: { inputs, checkpoint, failures, answers, lessons } };
    };
    let result: unknown = "done";
    for (const step of stepsOf(task)) result = (await act(step)) ?? result;
    return result;
  },
  {
    signal: stop.signal,
    release: release.signal,
    capabilities: node,
    concurrency: Number(concurrency),
    ...(timeoutS !== undefined && { timeoutMs: Number(timeoutS) * 1_000, graceMs: 200 }),
    onEvent: ({ kind }) => console.log(kind),
  },
);
