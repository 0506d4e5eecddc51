/**
 * A pipeline of AI workers: documents are summarised, each by an attempt that may fail, hang or crash, one in ten asks a
 * person, and a task that depends on all of them combines the summaries. Meanwhile hubs and workers are killed and
 * frozen at random. At the end pipeline-checks.ts holds what the workers wrote down against what the hub has.
 *
 * The seed repeats the moments, though not the machine's timing.
 */
import { tmpdir } from "node:os";
import { LuxHub, LuxHubError } from "../../src/client/luxhub.ts";
import { Hub, Program, SECRET, TempDir, run } from "../../test/e2e/program.ts";
import { OWN_HOST, freePorts } from "../../test/support/keeper.ts";
import { POSTGRES_PROGRAMS, PostgresServer } from "../../test/support/postgres.ts";
import { type PipelineFindings, checkPipeline, readLines } from "./pipeline-checks.ts";
import { COMBINE, DOCUMENT, type Plan } from "./pipeline-worker.ts";
import { randomFrom } from "./random.ts";
import { type Figure, type Section, notRun } from "./section.ts";

const WORKERS = 6;
const WORKER_FILE = `${import.meta.dir}/pipeline-worker.ts`;
/** The tasks' leases: a worker that is frozen for longer loses its tasks. */
const LEASE_S = 3;
const FROZEN_MS = 4_500;
/** Of what is done to them, the rest is to hubs. */
const KILL_WORKER_EVERY = 3;
const FREEZE_EVERY = 10;
const KILL_AFTER_MS = { least: 300, most: 1_500 };
const LOOK_EVERY_MS = 200;
const ATTEMPTS_MAX = 100;
const COST_MAX_USD = 100;

export type PipelineReport = {
  readonly findings: PipelineFindings;
  hubsKilled: number;
  workersKilled: number;
  workersFrozen: number;
  /** Workers that ended although nobody had killed them and they had not crashed; their last words. */
  readonly ended: string[];
  /** Answers that were given, and those of them that were accepted, by question_id. */
  readonly accepted: Map<string, unknown[]>;
  answers: number;
};

/** The hubs and the workers, each with the same address and id whenever it starts again. */
class Plant implements AsyncDisposable {
  readonly #dir: TempDir;
  readonly #postgres: PostgresServer | null;
  readonly #random: () => number;
  readonly #ports: readonly number[];
  readonly #hubs: Hub[] = [];
  readonly #workers: Program[] = [];
  readonly #report: PipelineReport;
  #isClosing = false;

  private constructor(report: PipelineReport, random: () => number, postgres: PostgresServer | null) {
    this.#dir = new TempDir();
    this.#report = report;
    this.#random = random;
    this.#postgres = postgres;
    this.#ports = freePorts(postgres === null ? 1 : 2, OWN_HOST);
  }

  static async start(report: PipelineReport, random: () => number, onPostgres: boolean): Promise<Plant> {
    const postgres = onPostgres ? await PostgresServer.start(tmpdir()) : null;
    const plant = new Plant(report, random, postgres);
    for (const i of plant.#ports.keys()) await plant.#startHub(i);
    return plant;
  }

  get ledger(): string {
    return this.#dir.join("lines");
  }

  get data(): string {
    return this.#dir.join("hub-0");
  }

  get databaseUrl(): string | null {
    return this.#postgres?.url ?? null;
  }

  urlOf(i: number): string {
    return `http://${OWN_HOST}:${this.#ports[i % this.#ports.length]}`;
  }

  async #startHub(i: number): Promise<void> {
    const env: Record<string, string> = { LUXHUB_PORT: String(this.#ports[i]) };
    if (this.#postgres !== null) env["LUXHUB_DATABASE"] = this.#postgres.url;
    this.#hubs[i] = await Hub.start({ data: this.#dir.join(`hub-${i}`), host: OWN_HOST, env });
  }

  async killHub(): Promise<void> {
    const i = Math.floor(this.#random() * this.#hubs.length);
    await this.#hubs[i]?.[Symbol.asyncDispose]();
    this.#report.hubsKilled++;
    await this.#startHub(i);
  }

  startWorkers(): void {
    for (let i = 0; i < WORKERS; i++) this.#startWorker(i);
  }

  #startWorker(i: number): void {
    const plan: Plan = {
      url: this.urlOf(Math.floor(this.#random() * this.#ports.length)),
      secret: SECRET,
      nodeId: `worker-${i}`,
      ledger: this.ledger,
      seed: Math.floor(this.#random() * 2 ** 31),
    };
    const worker = new Program([JSON.stringify(plan)], { command: [process.execPath, WORKER_FILE] });
    this.#workers[i] = worker;
    void worker.ended.then((code) => {
      if (this.#isClosing) return;
      if (code !== null) this.#report.ended.push(`worker-${i} ended with ${code}: ${worker.stderr}`);
      this.#startWorker(i);
    });
  }

  killWorker(): void {
    this.#someWorker()?.child.kill("SIGKILL");
    this.#report.workersKilled++;
  }

  async freezeWorker(): Promise<void> {
    const worker = this.#someWorker();
    worker?.child.kill("SIGSTOP");
    this.#report.workersFrozen++;
    await Bun.sleep(FROZEN_MS); // longer than its leases
    worker?.child.kill("SIGCONT");
  }

  #someWorker(): Program | undefined {
    return this.#workers[Math.floor(this.#random() * WORKERS)];
  }

  /** The workers finish and leave. */
  async stopWorkers(): Promise<void> {
    this.#isClosing = true;
    for (const { child } of this.#workers) child.kill("SIGTERM");
    const codes = await Promise.all(this.#workers.map(({ ended }) => ended));
    // null: it was killed just before, or had just been started and did not listen for the signal yet.
    for (const [i, code] of codes.entries())
      if (code !== 0 && code !== null)
        this.#report.ended.push(`worker-${i} ended with ${code}: ${this.#workers[i]?.stderr}`);
  }

  async stopHubs(): Promise<void> {
    for (const hub of this.#hubs) await hub.stop();
  }

  /** What the doctor says of it, when it has found an error. */
  async examine(): Promise<string | null> {
    const env = { LUXHUB_SECRET: SECRET, ...(this.#postgres && { LUXHUB_DATABASE: this.#postgres.url }) };
    const { code, stdout, stderr } = await run(["doctor", "--data", this.data], { env });
    return code === 0 ? null : `${stdout}${stderr}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosing = true;
    for (const worker of this.#workers) await worker[Symbol.asyncDispose]();
    for (const hub of this.#hubs) await hub[Symbol.asyncDispose]();
    await this.#postgres?.remove();
    this.#dir[Symbol.dispose]();
  }
}

/** Runs a pipeline of so many documents to its end. */
export async function runPipeline(
  documents: number,
  seed: number,
  onPostgres: boolean,
  progress: (line: string) => void,
): Promise<PipelineReport> {
  const random = randomFrom(seed);
  const report: PipelineReport = {
    ...{ findings: { words: [], counts: {} }, hubsKilled: 0, workersKilled: 0, workersFrozen: 0 },
    ...{ ended: [], accepted: new Map(), answers: 0 },
  };
  await using plant = await Plant.start(report, random, onPostgres);
  const hub = new LuxHub({ url: plant.urlOf(0), secret: SECRET });
  const ids = await createTasks(hub, documents);
  const combineId = ids.at(-1) ?? "";
  plant.startWorkers();
  const over = new AbortController();
  const isOver = (): boolean => over.signal.aborted;
  const person = answerQuestions(hub, report, random, isOver);
  const chaos = wreck(plant, random, isOver, () => {
    const { hubsKilled, workersKilled } = report;
    progress(
      `${hubsKilled} hubs and ${workersKilled} workers killed, ${readLines(plant.ledger).length} lines`,
    );
  });
  try {
    for (;;) {
      // Does not wait in the hub: no hub lives that long.
      const { task } = await hub.tasks.get({ task_id: combineId });
      if (task.status === "completed" || task.status === "failed") break;
      await Bun.sleep(LOOK_EVERY_MS);
    }
  } finally {
    over.abort();
    await Promise.all([person, chaos]);
  }
  await plant.stopWorkers();
  const findings = await checkPipeline({
    hub,
    ids,
    lines: readLines(plant.ledger),
    accepted: report.accepted,
    data: plant.data,
    databaseUrl: plant.databaseUrl,
  });
  await plant.stopHubs();
  const doctor = await plant.examine();
  if (doctor !== null) findings.words.push(`doctor: ${doctor}`);
  return { ...report, findings };
}

/** Returns the ids of the documents, and as the last that of the combining task. */
async function createTasks(hub: LuxHub, documents: number): Promise<readonly string[]> {
  const limits = {
    ...{ backoff_s: 0, timeout_s: LEASE_S, max_attempts: ATTEMPTS_MAX },
    ...{ max_cost_usd: COST_MAX_USD, creator_node: "driver", description: "" },
  };
  const ids: string[] = [];
  for (let i = 0; i < documents; i++) {
    const title = `document ${i}`;
    const asked = { ...limits, title, description: title, task_type: DOCUMENT, lux_reward: 1 };
    ids.push((await hub.tasks.create(asked)).task.task_id);
  }
  const combining = { ...limits, title: COMBINE, description: "all summaries", task_type: COMBINE };
  const { task } = await hub.tasks.create({ ...combining, depends_on: [...ids] });
  return [...ids, task.task_id];
}

/** Kills and freezes, one after another, until it is over. */
async function wreck(
  plant: Plant,
  random: () => number,
  isOver: () => boolean,
  tell: () => void,
): Promise<void> {
  const { least, most } = KILL_AFTER_MS;
  const freezing: Promise<void>[] = [];
  for (let i = 1; !isOver(); i++) {
    await Bun.sleep(least + random() * (most - least)); // the moment is what this is about
    if (i % FREEZE_EVERY === 2) freezing.push(plant.freezeWorker());
    else if (i % KILL_WORKER_EVERY === 0) plant.killWorker();
    else await plant.killHub();
    if (i % 20 === 0) tell();
  }
  await Promise.all(freezing);
}

/** Two people see each question and answer it at the same moment, each in their own words. */
async function answerQuestions(
  hub: LuxHub,
  report: PipelineReport,
  random: () => number,
  isOver: () => boolean,
): Promise<void> {
  const answering: Promise<void>[] = [];
  while (!isOver()) {
    await Bun.sleep(LOOK_EVERY_MS);
    const { questions } = await hub.tasks.openQuestions({ limit: 50 });
    for (const { task_id, question_id } of questions) {
      if (report.accepted.has(question_id)) continue;
      const accepted: unknown[] = [];
      report.accepted.set(question_id, accepted);
      for (const answer of ["publish", "keep"]) {
        report.answers++;
        const waitMs = random() < 0.5 ? 0 : random() * 1_000; // sometimes a hub is killed first
        answering.push(answerOne(hub, { task_id, question_id, answer }, waitMs, accepted));
      }
    }
  }
  await Promise.all(answering);
}

type Answering = { readonly task_id: string; readonly question_id: string; readonly answer: string };

async function answerOne(hub: LuxHub, asked: Answering, waitMs: number, accepted: unknown[]): Promise<void> {
  await Bun.sleep(waitMs);
  try {
    await hub.tasks.answer(asked);
    accepted.push(asked.answer);
  } catch (error) {
    if (!(error instanceof LuxHubError && error.code === "question_answered")) throw error;
  }
}

const DOCUMENTS = 200;

function figuresOf(engine: string, documents: number, report: PipelineReport): readonly Figure[] {
  const { findings, hubsKilled, workersKilled, workersFrozen, ended, answers, accepted } = report;
  const { counts } = findings;
  const told = (what: string, value: string): Figure => ({
    what: `${engine}: ${what}`,
    value,
    goal: "",
    held: true,
  });
  return [
    {
      what: `${engine}: hubs killed; workers killed, frozen, crashed`,
      value: `${hubsKilled}; ${workersKilled}, ${workersFrozen}, ${counts["crashed"] ?? 0}`,
      goal: "some killed of both",
      held: Math.min(hubsKilled, workersKilled) > 0,
    },
    told("attempts; failed; parked", `${counts["attempts"]}; ${counts["failed"]}; ${counts["parked"]}`),
    told("checkpoints accepted; usage reports accepted", `${counts["saved"]}; ${counts["reported"]}`),
    told("dollars that all reports cost", `${(counts["costMicro"] ?? 0) / 1e6}`),
    told("questions; answers given", `${accepted.size}; ${answers}`),
    {
      what: `${engine}: results of documents that the combining task had`,
      value: String(counts["combined"]),
      goal: String(documents),
      held: counts["combined"] === documents,
    },
    {
      what: `${engine}: answers, checkpoints, reports, output, tasks not there once; workers that gave up`,
      value: `${findings.words.length}; ${ended.length}`,
      goal: "0; 0",
      held: findings.words.length === 0 && ended.length === 0,
    },
  ];
}

/** The long form. */
export const pipelineSection: Section = {
  name: "pipeline",
  title: "A pipeline of AI workers",
  limitMs: 20 * 60_000,
  async run(scale, seed, progress) {
    const documents = Math.max(20, Math.round(DOCUMENTS * scale));
    const figures: Figure[] = [];
    for (const onPostgres of [false, true]) {
      const engine = onPostgres ? "two hubs on PostgreSQL" : "SQLite";
      if (onPostgres && POSTGRES_PROGRAMS === null) {
        figures.push(notRun(engine, "no PostgreSQL of our own can be started here"));
        continue;
      }
      const report = await runPipeline(documents, seed, onPostgres, (line) => progress(`${engine}: ${line}`));
      for (const words of [...report.findings.words, ...report.ended].slice(0, 40)) progress(words);
      figures.push(...figuresOf(engine, documents, report));
    }
    return figures;
  },
};
