// The pairs, in a process of their own: of each, the receiver blocks, the sender sends one message, and both wait for
// their answers. All are raw sockets with one request outstanding. It ends with its parent.
import { serveJobs, within } from "../job-server.ts";
import { MESSAGE, registerRequest } from "../scenarios.ts";
import { Connection, encodeRequest } from "../wire.ts";
import { WakeJob, type Wakes } from "./wake-job.ts";

const LIMIT_MS = 60_000;
const MARK = Buffer.from(MESSAGE);

/** A socket that sends a request and resolves when the whole answer is there. */
type Line = { exchange(request: Buffer): Promise<Buffer>; close(): void };
type Pair = {
  readonly sender: Line;
  readonly receiver: Line;
  readonly send: Buffer;
  readonly receive: Buffer;
};

async function openHttp(port: number): Promise<Line> {
  const connection = await Connection.open(port);
  const exchange = async (request: Buffer): Promise<Buffer> => {
    const { status, bytes } = await connection.exchange(request);
    if (status !== 200) throw new Error(bytes.toString("utf8", 0, 500));
    return bytes;
  };
  return { exchange, close: () => connection.close() };
}

/** An answer of Redis is an integer, or a list whose last text is the message. */
async function openRedis(port: number): Promise<Line> {
  let answer = Promise.withResolvers<Buffer>();
  let partial = Buffer.alloc(0);
  const socket = await Bun.connect({
    hostname: "127.0.0.1",
    port,
    socket: {
      data: (_, chunk) => {
        partial = Buffer.concat([partial, chunk]);
        const isWhole = partial.toString("latin1", 0, 1) === "*" ? partial.includes(`${MESSAGE}\r\n`) : true;
        if (!isWhole) return;
        const whole = partial;
        partial = Buffer.alloc(0);
        if (whole.toString("latin1", 0, 1) === "-") answer.reject(new Error(whole.toString()));
        else answer.resolve(whole);
      },
      close: () => answer.reject(new Error("Redis closed the connection")),
      error: (_, error) => answer.reject(error),
    },
  });
  socket.setNoDelay(true);
  const exchange = (request: Buffer): Promise<Buffer> => {
    answer = Promise.withResolvers();
    socket.write(request);
    return answer.promise;
  };
  const close = (): void => {
    answer.promise.catch(() => {});
    socket.terminate();
  };
  return { exchange, close };
}

function command(...words: readonly string[]): Buffer {
  const texts = words.map((word) => `$${Buffer.byteLength(word)}\r\n${word}\r\n`);
  return Buffer.from(`*${words.length}\r\n${texts.join("")}`);
}

async function openPair({ server, port, secret }: WakeJob, index: number): Promise<Pair> {
  const node = `bench-${String(index).padStart(4, "0")}`;
  const open = server === "redis" ? openRedis : openHttp;
  const [sender, receiver] = await Promise.all([open(port), open(port)]);
  if (server === "redis")
    return { sender, receiver, send: command("LPUSH", node, MESSAGE), receive: command("BLPOP", node, "60") };
  await receiver.exchange(registerRequest(secret, node));
  const post = (path: string, body: object): Buffer =>
    encodeRequest("POST", `/api/v1/message/${path}`, secret, JSON.stringify(body));
  return {
    sender,
    receiver,
    send: post("send", { from_node: node, to_node: node, content: MESSAGE }),
    receive: post("receive", { node_id: node, count: 1, blocking: true, timeout: 60 }),
  };
}

async function run(
  { sender, receiver, send, receive }: Pair,
  { messages, pauseMs }: WakeJob,
): Promise<number[]> {
  const tookMs: number[] = [];
  for (let count = 0; count < messages; count++) {
    const received = receiver.exchange(receive).then((answer) => {
      if (!answer.includes(MARK)) throw new Error(`no message: ${answer.toString("utf8", 0, 500)}`);
      return performance.now();
    });
    await Bun.sleep(pauseMs * (0.5 + Math.random())); // so that pairs do not send at the same time
    const sentAtMs = performance.now();
    const [receivedAtMs] = await Promise.all([received, sender.exchange(send)]);
    tookMs.push(receivedAtMs - sentAtMs);
  }
  return tookMs;
}

async function work(job: WakeJob): Promise<Wakes> {
  const pairs = await Promise.all(Array.from({ length: job.pairs }, (_, index) => openPair(job, index)));
  try {
    Bun.gc(true);
    const cpuBefore = process.cpuUsage();
    const startMs = performance.now();
    const all = Promise.all(pairs.map((pair) => run(pair, job)));
    const sorted = (await within(LIMIT_MS, "the last messages", all)).flat().toSorted((a, b) => a - b);
    const { user, system } = process.cpuUsage(cpuBefore);
    const at = (share: number): number => sorted[Math.ceil(share * sorted.length) - 1] ?? Number.NaN;
    const clientCpu = (user + system) / 1_000 / (performance.now() - startMs);
    return { p50Ms: at(0.5), p99Ms: at(0.99), clientCpu };
  } finally {
    for (const { sender, receiver } of pairs) for (const line of [sender, receiver]) line.close();
  }
}

serveJobs((job) => work(WakeJob.parse(job)));
