// The pairs, in a process of their own: of each, the receiver blocks, the sender sends one message, and both wait for
// their answers. All are raw sockets with one request outstanding, but for a bare PostgreSQL. It ends with its parent.
import { SQL } from "bun";
import { serveJobs, within } from "../job-server.ts";
import { MESSAGE, RESULT, registerRequest } from "../scenarios.ts";
import { Connection, encodeRequest } from "../wire.ts";
import { WakeJob, type WakeServer, type Wakes } from "./wake-job.ts";

const LIMIT_MS = 60_000;
const POSTGRES_POOL = 10;
const MARK = Buffer.from(MESSAGE);

/** A socket that sends a request and resolves when the whole answer is there. */
type Line = { exchange(request: Buffer): Promise<Buffer>; close(): void };
type Pair = {
  send(): Promise<unknown>;
  receive(): Promise<Buffer>;
  /** Ends what was received; not measured. */
  finish?(received: Buffer): Promise<unknown>;
  close(): void;
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
const openRedis = (port: number): Promise<Line> =>
  openSocket(port, "-", (answer) => !answer.startsWith("*") || answer.endsWith(`${MESSAGE}\r\n`));

/** An answer of beanstalkd is a line; after that of a reserve comes the job. */
const openBeanstalkd = (port: number): Promise<Line> =>
  openSocket(
    port,
    "NOT_FOUND",
    (answer) => answer.endsWith("\r\n") && (!answer.startsWith("RESERVED") || answer.includes(MESSAGE)),
  );

async function openSocket(
  port: number,
  errorMark: string,
  isWhole: (answer: string) => boolean,
): Promise<Line> {
  let answer = Promise.withResolvers<Buffer>();
  let partial = Buffer.alloc(0);
  const socket = await Bun.connect({
    hostname: "127.0.0.1",
    port,
    socket: {
      data: (_, chunk) => {
        partial = Buffer.concat([partial, chunk]);
        if (!isWhole(partial.toString("latin1"))) return;
        const whole = partial;
        partial = Buffer.alloc(0);
        if (whole.toString("latin1").startsWith(errorMark)) answer.reject(new Error(whole.toString()));
        else answer.resolve(whole);
      },
      close: () => answer.reject(new Error("the server closed the connection")),
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

/** Pairs of raw sockets. */
async function openLines(
  [sender, receiver]: readonly [Promise<Line>, Promise<Line>],
  send: Buffer,
  receive: Buffer,
): Promise<Pair> {
  const lines = [await sender, await receiver] as const;
  return {
    send: () => lines[0].exchange(send),
    receive: () => lines[1].exchange(receive),
    close: () => lines.forEach((line) => line.close()),
  };
}

type Open = { pair(node: string, delayS: number): Promise<Pair>; close(): Promise<void> };

async function open(server: WakeServer): Promise<Open> {
  if (server.kind === "postgres") return openPostgres(server.url);
  const close = async (): Promise<void> => {};
  if (server.kind === "redis") {
    const { port } = server;
    const pair = (node: string): Promise<Pair> =>
      openLines(
        [openRedis(port), openRedis(port)],
        command("LPUSH", node, MESSAGE),
        command("BLPOP", node, "60"),
      );
    return { pair, close };
  }
  if (server.kind === "beanstalkd")
    return { pair: (tube, delayS) => openTube(server.port, tube, delayS), close };
  const { what, sendPort, receivePort, secret } = server;
  const post = (path: string, body: object): Buffer =>
    encodeRequest("POST", `/api/v1/${path}`, secret, JSON.stringify(body));
  const pair = async (node: string, delayS: number): Promise<Pair> => {
    const receiver = await openHttp(receivePort);
    await receiver.exchange(registerRequest(secret, node));
    const ends = [openHttp(sendPort), Promise.resolve(receiver)] as const;
    if (what === "message")
      return openLines(
        ends,
        post("message/send", { from_node: node, to_node: node, content: MESSAGE }),
        post("message/receive", { node_id: node, count: 1, blocking: true, timeout: 60 }),
      );
    const lines = await openLines(
      ends,
      post("task/create", { title: "Bench", description: MESSAGE, task_type: node, delay_s: delayS }),
      post("task/next", { node_id: node, task_types: [node], wait: 60 }),
    );
    const finish = (received: Buffer): Promise<Buffer> => {
      const id = /"task_id":"([^"]+)"/.exec(received.toString())?.[1];
      return receiver.exchange(post("task/complete", { task_id: id, node_id: node, result: RESULT }));
    };
    return { ...lines, finish };
  };
  return { pair, close };
}

async function openTube(port: number, tube: string, delayS: number): Promise<Pair> {
  const [sender, receiver] = await Promise.all([openBeanstalkd(port), openBeanstalkd(port)]);
  await sender.exchange(Buffer.from(`use ${tube}\r\n`));
  await receiver.exchange(Buffer.from(`watch ${tube}\r\n`));
  const put = Buffer.from(`put 0 ${delayS} 60 ${MARK.length}\r\n${MESSAGE}\r\n`);
  const lines = [Promise.resolve(sender), Promise.resolve(receiver)] as const;
  const pair = await openLines(lines, put, Buffer.from("reserve\r\n"));
  const finish = (received: Buffer): Promise<Buffer> => {
    const [, id] = received.toString("latin1").split(" ");
    return receiver.exchange(Buffer.from(`delete ${id}\r\n`));
  };
  return { ...pair, finish };
}

/**
 * The least that a mailbox on PostgreSQL takes: a statement inserts the message and notifies, the receiver listens, and a
 * second statement takes the message.
 */
async function openPostgres(url: string): Promise<Open> {
  const sql = new SQL(url, { max: POSTGRES_POOL });
  await sql`CREATE TABLE IF NOT EXISTS messages (id bigserial PRIMARY KEY, box text NOT NULL, content text NOT NULL)`;
  await sql`CREATE INDEX IF NOT EXISTS messages_box ON messages (box, id)`;
  const blocked = new Map<string, () => void>();
  const listener = new SQL(url, { max: 1 });
  await listener.listen("messages", (box) => blocked.get(box)?.());
  const pair = async (box: string): Promise<Pair> => ({
    send: () => sql`
      WITH sent AS (INSERT INTO messages (box, content) VALUES (${box}, ${MESSAGE}))
      SELECT pg_notify('messages', ${box})`,
    async receive() {
      await new Promise<void>((resolve) => blocked.set(box, resolve));
      const [row] = await sql`
        DELETE FROM messages WHERE id = (
          SELECT id FROM messages WHERE box = ${box} ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED
        ) RETURNING content`;
      return Buffer.from(String(row?.content));
    },
    close() {},
  });
  const close = async (): Promise<void> => {
    await Promise.all([sql.close(), listener.close({ timeout: 0 })]);
  };
  return { pair, close };
}

async function run(
  { send, receive, finish }: Pair,
  { messages, pauseMs, delayS }: WakeJob,
): Promise<number[]> {
  const tookMs: number[] = [];
  for (let count = 0; count < messages; count++) {
    const received = receive().then((answer) => {
      if (!answer.includes(MARK)) throw new Error(`no message: ${answer.toString("utf8", 0, 500)}`);
      return { answer, atMs: performance.now() };
    });
    await Bun.sleep(pauseMs * (0.5 + Math.random())); // so that pairs do not send at the same time
    const sentAtMs = performance.now();
    const [{ answer, atMs }] = await Promise.all([received, send()]);
    tookMs.push(atMs - sentAtMs - delayS * 1_000);
    await finish?.(answer);
  }
  return tookMs;
}

async function work(job: WakeJob): Promise<Wakes> {
  const server = await open(job.server);
  const nodes = Array.from({ length: job.pairs }, (_, index) => `bench-${String(index).padStart(4, "0")}`);
  const pairs = await Promise.all(nodes.map((node) => server.pair(node, job.delayS)));
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
    for (const pair of pairs) pair.close();
    await server.close();
  }
}

serveJobs((job) => work(WakeJob.parse(job)));
