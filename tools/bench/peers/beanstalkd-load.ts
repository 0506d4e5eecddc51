// The load client for beanstalkd: raw sockets, each of which puts a job, reserves the next one and deletes it, one
// command outstanding. It reads only the first line of an answer; a reserved job is complete when its bytes are there.
import { serveJobs, within } from "../job-server.ts";
import type { Measurement } from "../job.ts";
import { type Work, taskOf } from "../scenarios.ts";
import { Tally } from "../tally.ts";
import { BeanstalkdJob } from "./beanstalkd-job.ts";

const DRAIN_MS = 5_000;
const RESERVE = Buffer.from("reserve\r\n");

function putOf(work: Work): Buffer {
  const body = JSON.stringify(taskOf(work));
  return Buffer.from(`put 0 0 60 ${Buffer.byteLength(body)}\r\n${body}\r\n`);
}

class Worker {
  readonly #tally: Tally;
  readonly #put: Buffer;
  #end: { resolve(): void; reject(error: Error): void } | null = null;
  #socket: Bun.Socket<Worker> | null = null;
  #expected = "INSERTED";
  #untilMs = 0;
  #sentAtMs = 0;
  #partial: Buffer | null = null;

  constructor(tally: Tally, put: Buffer) {
    this.#tally = tally;
    this.#put = put;
  }

  /** Repeats the cycle until its time is over; resolves with the end of the last one. */
  run(socket: Bun.Socket<Worker>, untilMs: number): Promise<void> {
    this.#socket = socket;
    this.#untilMs = untilMs;
    return new Promise((resolve, reject) => {
      this.#end = { resolve, reject };
      this.#send(this.#put, "INSERTED");
    });
  }

  received(chunk: Buffer): void {
    const bytes = this.#partial === null ? chunk : Buffer.concat([this.#partial, chunk]);
    const length = answerLength(bytes);
    this.#partial = length > bytes.length ? bytes : null;
    if (this.#partial !== null) return;
    const [word = "", id = ""] = bytes.toString("latin1", 0, 40).split(/[ \r]/);
    if (word !== this.#expected) return this.fail(`${this.#expected} was due, ${word} came`);
    this.#answered(id);
  }

  /** Socket event, and whatever is not the answer that was due: the measurement ends with it. */
  fail(reason: string): void {
    this.#end?.reject(new Error(`beanstalkd: ${reason}`));
  }

  #answered(id: string): void {
    const now = performance.now();
    const inWindow = now <= this.#untilMs;
    if (inWindow) this.#tally.answered(now - this.#sentAtMs);
    if (this.#expected === "DELETED") {
      this.#tally.cyclesInAll++;
      if (inWindow) this.#tally.cycles++;
      if (!inWindow) return this.#end?.resolve(); // only whole cycles: nothing stays behind in the queue
      this.#send(this.#put, "INSERTED");
    } else if (this.#expected === "INSERTED") this.#send(RESERVE, "RESERVED");
    else this.#send(Buffer.from(`delete ${id}\r\n`), "DELETED");
  }

  #send(bytes: Buffer, expected: string): void {
    this.#expected = expected;
    this.#sentAtMs = performance.now();
    // A command is far smaller than the socket's buffer, which is empty: there is only ever one outstanding.
    if (this.#socket?.write(bytes) !== bytes.length) this.fail("a command was not written whole");
  }
}

/** How long the answer is that `bytes` begin with; more than there are, as long as that cannot be told. */
function answerLength(bytes: Buffer): number {
  const lineEnd = bytes.indexOf("\r\n");
  if (lineEnd < 0) return bytes.length + 1;
  const reserved = /^RESERVED \d+ (\d+)$/.exec(bytes.toString("latin1", 0, lineEnd));
  return lineEnd + 2 + (reserved === null ? 0 : Number(reserved[1]) + 2);
}

async function measure(message: unknown): Promise<Measurement> {
  const { port, work, connections, windowMs } = BeanstalkdJob.parse(message);
  const tally = new Tally();
  const put = putOf(work);
  const sockets: Bun.Socket<Worker>[] = [];
  try {
    for (let index = 0; index < connections; index++) sockets.push(await open(port, new Worker(tally, put)));
    return await tally.measure(windowMs, (untilMs) => {
      const runs = sockets.map((socket) => socket.data.run(socket, untilMs));
      return within(windowMs + DRAIN_MS, "the last answers", Promise.all(runs));
    });
  } finally {
    for (const socket of sockets) socket.terminate();
  }
}

async function open(port: number, worker: Worker): Promise<Bun.Socket<Worker>> {
  const socket = await Bun.connect<Worker>({
    hostname: "127.0.0.1",
    port,
    data: worker,
    socket: {
      data: ({ data }, chunk) => data.received(chunk),
      close: ({ data }) => data.fail("it closed the connection"),
      error: ({ data }, error) => data.fail(error.message),
    },
  });
  socket.setNoDelay(true);
  return socket;
}

serveJobs(measure);
