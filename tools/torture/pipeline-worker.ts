/**
 * A worker of the pipeline (pipeline.ts), as a program of its own: the TypeScript client's worker with a handler that
 * fails, hangs and crashes at random. It writes down each thing before it does it, and again when the hub has accepted
 * it, in a file that survives its own end. Arguments: a Plan as JSON.
 */
import { appendFileSync } from "node:fs";
import { LuxHub, LuxHubError, type Task, type TaskContext, type TaskResult } from "../../src/client/index.ts";
import { randomFrom } from "./random.ts";

export type Plan = {
  readonly url: string;
  readonly secret: string;
  readonly nodeId: string;
  readonly ledger: string;
  readonly seed: number;
};

/** What a worker knows about one attempt of a task. */
export type Line = { readonly task: string; readonly epoch: number } & LineOfAttempt;

type LineOfAttempt =
  | { readonly kind: "started"; readonly checkpoint: Place | null }
  /** Usage that is about to be reported. */
  | { readonly kind: "used"; readonly seq: number; readonly costMicro: number }
  /** The hub has all usage up to this one. */
  | { readonly kind: "reported"; readonly seq: number }
  | { readonly kind: "saving" | "saved"; readonly place: Place }
  | { readonly kind: "wrote"; readonly text: string }
  | { readonly kind: "told"; readonly answer: unknown }
  /** What the combining task found in its context, and then page by page. */
  | { readonly kind: "inputs"; readonly count: number; readonly omitted: number; readonly wrong: number }
  /** The hub has accepted the outcome; with it, all usage and output. */
  | { readonly kind: "ended"; readonly how: "completed" | "failed" | "parked" }
  | { readonly kind: "crashing" }
  | { readonly kind: "fault"; readonly words: string };

/** Where an attempt has got to: the epoch that says so, and the steps that are done. */
export type Place = { readonly epoch: number; readonly step: number };

type Saved = Place & {
  readonly answer: unknown;
  /** Of the combining task: the summaries that it has read, shortened, and the page that comes next. */
  readonly read: readonly string[];
  readonly cursor: string | null;
};

export const DOCUMENT_STEPS = 5;
/** The answer is asked for in this step. */
const ASKING_STEP = 2;
export const COMBINE = "combine";
export const DOCUMENT = "document";
const STEP_MS = { least: 40, most: 160 };
/** A handler that hangs fails after this. */
const TIMEOUT_MS = 4_000;
const GRACE_MS = 1_000;
const AT_ONCE = 3;
const PAGE = 10;
/** A result of this length: 200 of them are more than a context carries. */
const SUMMARY_CHARS = 2_000;
const SHORT_CHARS = 16;
const COST_MOST_MICRO = 5_000;

/** What the summary of a document has to be. */
export function summaryOf(title: string): string {
  return new Bun.CryptoHasher("sha256").update(title).digest("hex").repeat(32).slice(0, SUMMARY_CHARS);
}

/** The beginning of a summary, by which the combining task knows it. */
export function shortOf(summary: string): string {
  return summary.slice(0, SHORT_CHARS);
}

/** How a document asks a person: every twentieth goes back to the hub meanwhile, every twentieth holds its task. */
export function askingOf(title: string): "park" | "wait" | null {
  const number = Number(/\d+$/.exec(title)?.[0]) % 20;
  if (number === 3) return "park";
  return number === 13 ? "wait" : null;
}

type Desk = {
  readonly hub: LuxHub;
  readonly random: () => number;
  readonly note: (line: Line) => void;
};

class Attempt {
  readonly #desk: Desk;
  readonly #task: Task;
  readonly #context: TaskContext;
  #seq = 0;
  #saved: Saved;

  constructor(desk: Desk, task: Task, context: TaskContext) {
    this.#desk = desk;
    this.#task = task;
    this.#context = context;
    const saved = savedOf(context.checkpoint);
    this.#saved = saved ?? { epoch: context.epoch, step: 0, answer: null, read: [], cursor: null };
    this.#note({ kind: "started", checkpoint: saved && { epoch: saved.epoch, step: saved.step } });
  }

  async summarise(): Promise<TaskResult> {
    const { title } = this.#task;
    const asking = askingOf(title);
    while (this.#saved.step < DOCUMENT_STEPS) {
      let { answer } = this.#saved;
      if (asking !== null && this.#saved.step === ASKING_STEP) {
        const choices = ["publish", "keep"];
        answer = await this.#context.ask(`What becomes of ${title}?`, { choices, park: asking === "park" });
        this.#context.signal.throwIfAborted();
        this.#note({ kind: "told", answer });
      }
      await this.#step({ answer });
    }
    const { answer } = this.#saved;
    this.#context.signal.throwIfAborted();
    this.#write("summarised\n");
    return { problem: title, improvement: "summarised", lesson: "none", summary: summaryOf(title), answer };
  }

  async combine(): Promise<TaskResult> {
    const { inputs } = this.#context;
    const given = inputs.filter(({ omitted }) => omitted !== true);
    const wrong = given.filter(({ title, result }) => result?.["summary"] !== summaryOf(title ?? "")).length;
    this.#note({ kind: "inputs", count: inputs.length, omitted: inputs.length - given.length, wrong });
    while (this.#saved.read.length === 0 || this.#saved.cursor !== null) {
      const asked = { task_id: this.#task.task_id, limit: PAGE, cursor: this.#saved.cursor ?? undefined };
      const page = await this.#desk.hub.tasks.inputs(asked);
      const read = page.inputs.map(({ result }) => shortOf(String(result?.["summary"])));
      await this.#step({ read: [...this.#saved.read, ...read], cursor: page.next_cursor });
    }
    this.#context.signal.throwIfAborted();
    this.#write("combined\n");
    return { problem: this.#task.title, improvement: "combined", lesson: "none", read: this.#saved.read };
  }

  /** Works, with all that can happen to it, and saves how far it has got. */
  async #step(found: Partial<Saved>): Promise<void> {
    const { random } = this.#desk;
    const { signal } = this.#context;
    const step = this.#saved.step + 1;
    signal.throwIfAborted(); // after its time is over, nobody waits for what it does
    this.#write(`${this.#task.title}: step ${step} of attempt ${this.#context.epoch}\n`);
    await Bun.sleep(STEP_MS.least + random() * (STEP_MS.most - STEP_MS.least));
    signal.throwIfAborted();
    await this.#report();
    const fate = random();
    if (fate < 0.04) throw new Error(`the model refused step ${step}`);
    if (fate < 0.06) await new Promise(() => {}); // hangs, and does not listen to its signal
    if (fate < 0.07) this.#note({ kind: "crashing" });
    if (fate < 0.07) process.kill(process.pid, "SIGKILL");
    const saved = { ...this.#saved, ...found, epoch: this.#context.epoch, step };
    const place = { epoch: saved.epoch, step };
    this.#note({ kind: "saving", place });
    await this.#context.saveCheckpoint(saved);
    this.#note({ kind: "saved", place });
    this.#saved = saved;
  }

  /** Reports one or two calls of a model, at once or with what comes next. */
  async #report(): Promise<void> {
    const { random } = this.#desk;
    const costs = Array.from({ length: random() < 0.3 ? 2 : 1 }, () => Math.ceil(random() * COST_MOST_MICRO));
    for (const costMicro of costs) this.#note({ kind: "used", seq: ++this.#seq, costMicro });
    const later = random() < 0.3;
    const left = await this.#context.reportUsage(
      costs.map((micro) => ({ model: "torture", input_tokens: 10, output_tokens: 1, cost_usd: micro / 1e6 })),
      { later },
    );
    // The tasks have a limit, so null is a hub that could not be reached.
    if (!later && left !== null) this.#note({ kind: "reported", seq: this.#seq });
  }

  #write(text: string): void {
    this.#note({ kind: "wrote", text });
    this.#context.output(text);
  }

  #note(line: LineOfAttempt): void {
    this.#desk.note({ task: this.#task.task_id, epoch: this.#context.epoch, ...line });
  }
}

/** The hub gives back what this program has saved. */
function savedOf(checkpoint: unknown): Saved | null {
  return checkpoint === undefined ? null : JSON.parse(JSON.stringify(checkpoint));
}

/** Runs until SIGTERM. */
async function work({ url, secret, nodeId, ledger, seed }: Plan): Promise<void> {
  const stop = new AbortController();
  process.on("SIGTERM", () => stop.abort());
  const desk: Desk = {
    hub: new LuxHub({ url, secret }),
    random: randomFrom(seed),
    note: (line) => appendFileSync(ledger, `${JSON.stringify(line)}\n`),
  };
  const epochs = new WeakMap<Task, number>();
  const handle = (task: Task, context: TaskContext): Promise<TaskResult> => {
    const attempt = new Attempt(desk, task, context);
    return task.task_type === COMBINE ? attempt.combine() : attempt.summarise();
  };
  await desk.hub.worker(nodeId, handle, {
    capabilities: [DOCUMENT, COMBINE],
    concurrency: AT_ONCE,
    timeoutMs: TIMEOUT_MS,
    graceMs: GRACE_MS,
    signal: stop.signal,
    onEvent: (event) => {
      if (event.kind === "started") epochs.set(event.task, event.epoch);
      else if (event.kind === "completed" || event.kind === "failed" || event.kind === "parked") {
        const { task, kind } = event;
        desk.note({ task: task.task_id, epoch: epochs.get(task) ?? 0, kind: "ended", how: kind });
      } else if (event.kind === "fault" && event.error instanceof LuxHubError && isWrong(event.error))
        desk.note({ task: "", epoch: 0, kind: "fault", words: event.error.message });
    },
  });
}

/** A repeated task/next whose task is another's by now is stale, as it has to be; a hub without its database has 5xx. */
function isWrong({ status, code }: LuxHubError): boolean {
  return status < 500 && code !== "stale_lease";
}

if (import.meta.main) {
  const plan: Plan = JSON.parse(process.argv[2] ?? "{}");
  await work(plan);
}
