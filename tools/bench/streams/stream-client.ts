// A process with some of the clients of the streams: raw sockets that note when a text came. It must stay cheap, because
// it shares the cores with the server. It ends with its parent.
import { serveJobs, within } from "../job-server.ts";
import { encodeRequest } from "../wire.ts";
import { type Arrivals, StreamJob, nowMs } from "./stream-job.ts";

const LIMIT_MS = 60_000;
/** Sockets that connect at the same time. */
const OPENED_TOGETHER = 50;
const FRAME_END = Buffer.from("\n\n\r\n");

class Streams {
  #mark: Buffer | null = null;
  #atMs: number[] = [];
  #first: Buffer | null = null;
  #done = Promise.withResolvers<Arrivals>();
  #size = 0;
  #failure: Error | null = null;

  async open(port: number, secret: string, path: string): Promise<void> {
    const opened = Promise.withResolvers<void>();
    let partial: Buffer | null = null;
    const fail = (reason: string) => {
      this.#failure = new Error(`stream ${path}: ${reason}`);
      opened.reject(this.#failure);
      this.#done.reject(this.#failure);
    };
    const socket = await Bun.connect({
      hostname: "127.0.0.1",
      port,
      socket: {
        data: (_, chunk) => {
          const bytes: Buffer = partial === null ? chunk : Buffer.concat([partial, chunk]);
          partial = bytes.subarray(-FRAME_END.length).equals(FRAME_END) ? null : bytes;
          if (partial !== null) return;
          if (bytes.subarray(0, 13).toString("latin1") === "HTTP/1.1 200 ") opened.resolve();
          else if (bytes.subarray(0, 9).toString("latin1") === "HTTP/1.1 ")
            fail(bytes.toString("utf8", 0, 300));
          this.#got(bytes);
        },
        close: () => fail("the server closed it"),
        error: (_, error) => fail(error.message),
      },
    });
    socket.write(encodeRequest("GET", path, secret, null));
    await opened.promise;
    this.#size++;
  }

  expect(mark: string): void {
    this.#mark = Buffer.from(mark);
    this.#atMs = [];
    this.#first = null;
    this.#done = Promise.withResolvers();
    this.#done.promise.catch(() => {}); // reported when it is collected
    if (this.#failure !== null) this.#done.reject(this.#failure);
  }

  get arrivals(): Promise<Arrivals> {
    return this.#done.promise;
  }

  #got(bytes: Buffer): void {
    if (this.#mark === null || bytes.indexOf(this.#mark) < 0) return;
    this.#atMs.push(nowMs());
    this.#first ??= bytes;
    if (this.#atMs.length === this.#size)
      this.#done.resolve({ atMs: this.#atMs, text: this.#first.toString() });
  }
}

const NONE: Arrivals = { atMs: [], text: "" };

const byPort = new Map<number, Streams>();

async function work(job: StreamJob): Promise<Arrivals> {
  const streams = byPort.get(job.port) ?? new Streams();
  byPort.set(job.port, streams);
  if (job.kind === "collect") return within(LIMIT_MS, "the last streams", streams.arrivals);
  if (job.kind === "expect") {
    streams.expect(job.mark);
    Bun.gc(true); // not while the text is on its way
    return NONE;
  }
  for (let at = 0; at < job.paths.length; at += OPENED_TOGETHER) {
    const some = job.paths.slice(at, at + OPENED_TOGETHER);
    const opened = Promise.all(some.map((path) => streams.open(job.port, job.secret, path)));
    await within(LIMIT_MS, "opening streams", opened);
  }
  return NONE;
}

serveJobs((job) => work(StreamJob.parse(job)));
