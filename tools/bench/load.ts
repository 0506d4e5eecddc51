// The load client: a process of its own that takes jobs over IPC, one after the other, and replies to each
// with a measurement. Invariant: every connection keeps exactly one request outstanding; a broken connection or
// an answer that does not come fails the whole job, any answer but a 200 is counted. It ends with its parent.
import { Job, type Measurement } from "./job.ts";
import { serveJobs, within } from "./job-server.ts";
import { BUNQUEUE_SCENARIOS } from "./peers/bunqueue-scenario.ts";
import {
  PLACEHOLDER_ID,
  SCENARIOS,
  type Scenario,
  type Template,
  encodeStep,
  registerRequest,
} from "./scenarios.ts";
import { Tally } from "./tally.ts";
import { type Answer, Connection } from "./wire.ts";

/** How long the last answers may take after the window has closed. */
const DRAIN_MS = 5_000;
/** In how many cycles of each connection the answers are looked into. */
const CHECKED_CYCLES = 2;
const QUOTE = Buffer.from('"');

/** One connection working as one node through the scenario's cycle, again and again. */
class Worker {
  readonly #connection: Connection;
  readonly #scenario: Scenario;
  readonly #job: Job;
  readonly #nodeId: string;
  readonly #peerId: string;
  readonly #tally: Tally;
  #templates: Template[];
  #idLength = PLACEHOLDER_ID.length;
  #at = 0;
  #cycles = 0;
  #sentAtMs = 0;

  constructor(connection: Connection, scenario: Scenario, job: Job, index: number, tally: Tally) {
    this.#connection = connection;
    this.#scenario = scenario;
    this.#job = job;
    this.#nodeId = nodeName(index);
    this.#peerId = nodeName((index + 1) % job.connections);
    this.#tally = tally;
    this.#templates = this.#encode(PLACEHOLDER_ID);
  }

  async register(): Promise<void> {
    const answer = await this.#connection.exchange(registerRequest(this.#job.secret, this.#nodeId));
    if (answer.status !== 200) throw new Error(`register: ${describe(answer)}`);
  }

  run(untilMs: number): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#connection.onFail = reject;
      this.#connection.onAnswer = (answer) => {
        const now = performance.now();
        const inWindow = now <= untilMs;
        if (inWindow) this.#tally.answered(now - this.#sentAtMs);
        this.#take(answer, inWindow);
        if (inWindow) this.#sendNext(now);
        else resolve();
      };
      this.#sendNext(performance.now());
    });
  }

  #sendNext(now: number): void {
    const template = this.#templates[this.#at];
    if (template === undefined) throw new Error("a scenario without steps");
    this.#sentAtMs = now;
    this.#connection.send(template.bytes);
  }

  #take(answer: Answer, inWindow: boolean): void {
    const step = this.#scenario.steps[this.#at];
    if (step === undefined) return;
    const isWanted =
      answer.status === 200 &&
      (!this.#job.isChecked ||
        this.#cycles >= CHECKED_CYCLES ||
        answer.bytes.indexOf(step.expect, answer.bodyStart) >= 0);
    if (!isWanted) {
      this.#tally.failed(`${step.path}: ${describe(answer)}`);
      this.#at = 0;
      return;
    }
    if (step.givesId === true && this.#job.isChecked) this.#keepId(answer);
    this.#at = (this.#at + 1) % this.#scenario.steps.length;
    if (this.#at !== 0) return;
    this.#cycles++;
    this.#tally.cyclesInAll++;
    if (inWindow) this.#tally.cycles++;
  }

  /** Copies the id's bytes from the answer into the requests to come; they are encoded again only if its length differs. */
  #keepId({ bytes, bodyStart }: Answer): void {
    const { idMark } = this.#scenario;
    const start = bytes.indexOf(idMark, bodyStart) + idMark.length;
    const end = bytes.indexOf(QUOTE, start);
    if (start < idMark.length + bodyStart || end < 0) throw new Error("no id in the answer");
    if (end - start !== this.#idLength) {
      this.#idLength = end - start;
      this.#templates = this.#encode(bytes.toString("latin1", start, end));
      return;
    }
    for (const template of this.#templates) {
      if (template.idAt >= 0) bytes.copy(template.bytes, template.idAt, start, end);
    }
  }

  #encode(taskId: string): Template[] {
    const { secret } = this.#job;
    return this.#scenario.steps.map((step) => encodeStep(step, secret, this.#nodeId, this.#peerId, taskId));
  }
}

function nodeName(index: number): string {
  return `bench-${String(index).padStart(4, "0")}`;
}

function describe(answer: Answer): string {
  return `${answer.status} ${answer.bytes.toString("utf8", answer.bodyStart, answer.bodyStart + 300)}`;
}

/** Opens the connections, registers their nodes, runs the window and waits for the last answers. */
async function measure(job: Job): Promise<Measurement> {
  const scenario = [...SCENARIOS, ...BUNQUEUE_SCENARIOS].find(({ name }) => name === job.scenario);
  if (scenario === undefined) throw new Error(`no scenario named ${job.scenario}`);
  const connections: Connection[] = [];
  try {
    const tally = new Tally();
    for (let index = 0; index < job.connections; index++) {
      connections.push(await Connection.open(job.ports[index % job.ports.length] ?? 0));
    }
    const workers = connections.map(
      (connection, index) => new Worker(connection, scenario, job, index, tally),
    );
    if (scenario.registers) {
      await within(DRAIN_MS, "registering", Promise.all(workers.map((worker) => worker.register())));
    }

    Bun.gc(true);
    return await tally.measure(job.windowMs, (untilMs) => {
      const runs = workers.map((worker) => worker.run(untilMs));
      return within(job.windowMs + DRAIN_MS, "the last answers", Promise.all(runs));
    });
  } finally {
    for (const connection of connections) connection.close();
  }
}

serveJobs((job) => measure(Job.parse(job)));
