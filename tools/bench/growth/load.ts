// The growth bench's load client: each job is one phase, a fixed number of requests of one kind, written out before
// the clock starts. Invariant: every connection keeps one request outstanding and takes the next remaining one, so
// that the phase ends for all at once. It keeps the tasks from phase to phase: they are created, claimed, completed
// and deleted by the same nodes in the same order.
import { serveJobs, within } from "../job-server.ts";
import { MESSAGE, RESULT, TASK } from "../scenarios.ts";
import { type Answer, Connection, encodeRequest } from "../wire.ts";
import { nodeName, spread } from "./fleet.ts";
import { Phase, PhaseJob } from "./job.ts";

const PHASE_LIMIT_MS = 60_000;
/** The number of answers of a phase whose body is checked. */
const CHECKED = 100;
const PREFIX = "/api/v1";
const TASK_ID = /"task_id":"([^"]+)"/;
/** As many as every node can see of the twenty open tasks of a small store. */
const PULLED = 10;

type Planned = { readonly bytes: Buffer; readonly expect: string };

const taskIds: string[] = [];

function plan(job: PhaseJob, turn: number): Planned {
  const node = nodeName(spread(turn, job.nodes));
  const post = (path: string, body: object, expect: string): Planned => ({
    bytes: encodeRequest("POST", `${PREFIX}${path}`, job.secret, JSON.stringify(body)),
    expect,
  });
  const get = (path: string, expect: string): Planned => ({
    bytes: encodeRequest("GET", `${PREFIX}${path}`, job.secret, null),
    expect,
  });
  const task_id = taskIds[turn];
  switch (job.operation) {
    case "create":
      return post("/task/create", TASK, '"task_id":"');
    case "claim":
      return post("/task/claim", { task_id, node_id: node }, '"assigned"');
    case "complete":
      return post("/task/complete", { task_id, node_id: node, result: RESULT }, '"lux_paid":2.5');
    case "delete":
      return {
        bytes: asAdmin(post("/task/delete", { task_id }, "").bytes, job.adminKey),
        expect: '"task_id":"',
      };
    case "pull":
      return get(`/task/pull?node_id=${node}&limit=${PULLED}`, '"status":"open"');
    case "list":
      return get("/task/list", '"page":1');
    case "stats":
      return get("/task/stats", '"top_nodes":[{');
    case "send":
      return post(
        "/message/send",
        { from_node: "operator", to_node: node, content: MESSAGE },
        '"message_id":"',
      );
    case "receive":
      return post("/message/receive", { node_id: node, count: 1 }, '"count":1');
    case "heartbeat":
      return post("/node/heartbeat", { node_id: node }, '"online"');
  }
}

function asAdmin(request: Buffer, adminKey: string): Buffer {
  return Buffer.from(request.toString("utf8").replace("\r\n", `\r\nX-Admin-Key: ${adminKey}\r\n`));
}

class Run {
  readonly #planned: readonly Planned[];
  readonly #latenciesMs: Float64Array;
  readonly #keepsIds: boolean;
  #next = 0;
  #failures = 0;
  #failure: string | null = null;

  constructor(job: PhaseJob) {
    this.#planned = Array.from({ length: job.count }, (_, turn) => plan(job, turn));
    this.#latenciesMs = new Float64Array(job.count);
    this.#keepsIds = job.operation === "create";
  }

  work(connection: Connection): Promise<void> {
    return new Promise((resolve, reject) => {
      let turn = 0;
      let sentAtMs = 0;
      const sendNext = (): void => {
        turn = this.#next++;
        const planned = this.#planned[turn];
        if (planned === undefined) return resolve();
        sentAtMs = performance.now();
        connection.send(planned.bytes);
      };
      connection.onFail = reject;
      connection.onAnswer = (answer) => {
        this.#latenciesMs[turn] = performance.now() - sentAtMs;
        this.#take(turn, answer);
        sendNext();
      };
      sendNext();
    });
  }

  found(tookMs: number): Phase {
    const sorted = this.#latenciesMs.toSorted();
    const at = (share: number): number => sorted[Math.ceil(sorted.length * share) - 1] ?? Number.NaN;
    return {
      requestsPerSecond: (sorted.length / tookMs) * 1_000,
      p50Ms: at(0.5),
      p99Ms: at(0.99),
      failures: this.#failures,
      failure: this.#failure,
    };
  }

  #take(turn: number, { status, bytes, bodyStart }: Answer): void {
    const expected = this.#planned[turn]?.expect ?? "";
    if (status !== 200 || (turn < CHECKED && bytes.indexOf(expected, bodyStart) < 0)) {
      this.#failures++;
      this.#failure ??= `${status} ${bytes.toString("utf8", bodyStart, bodyStart + 300)}`;
    } else if (this.#keepsIds) {
      taskIds[turn] = TASK_ID.exec(bytes.toString("latin1", bodyStart))?.[1] ?? "";
    }
  }
}

async function measure(message: unknown): Promise<Phase> {
  const job = PhaseJob.parse(message);
  const connections: Connection[] = [];
  try {
    for (let index = 0; index < job.connections; index++) connections.push(await Connection.open(job.port));
    const run = new Run(job);
    Bun.gc(true);
    const startMs = performance.now();
    const works = connections.map((connection) => run.work(connection));
    await within(PHASE_LIMIT_MS, job.operation, Promise.all(works));
    return run.found(performance.now() - startMs);
  } finally {
    for (const connection of connections) connection.close();
  }
}

serveJobs(measure);
