/** Event streams over a real Bun.serve and raw sockets: framing, hang-up, slow and stalled clients, ends, keep-alive. */
import { afterEach, describe, expect, test } from "bun:test";
import net from "node:net";
import {
  type Every,
  KeepAlive,
  type SseEvent,
  type SseStream,
  frame,
  openEventStream,
} from "../../src/http/sse.ts";
import { HANG_MS } from "../support/hang.ts";

const LIMIT_BYTES = 256 * 1024;
const PIECE = frame({ data: "x".repeat(64 * 1024) });

const FRAMES: readonly (readonly [name: string, event: SseEvent, text: string])[] = [
  ["data alone", { data: "hi" }, "data: hi\n\n"],
  [
    "every field",
    { id: 7, event: "task.created", retry: 3000, data: "{}" },
    "id: 7\nevent: task.created\nretry: 3000\ndata: {}\n\n",
  ],
  ["id 0 is an id", { id: 0, data: "a" }, "id: 0\ndata: a\n\n"],
  ["an empty id clears it", { id: "", data: "a" }, "id: \ndata: a\n\n"],
  ["empty data is an event", { data: "" }, "data: \n\n"],
  ["line feeds", { data: "a\nb" }, "data: a\ndata: b\n\n"],
  ["carriage returns", { data: "a\rb" }, "data: a\ndata: b\n\n"],
  ["both together are one", { data: "a\r\nb" }, "data: a\ndata: b\n\n"],
  ["mixed, and blank lines", { data: "a\n\r\n\rb" }, "data: a\ndata: \ndata: \ndata: b\n\n"],
  ["a break at the end", { data: "a\n" }, "data: a\ndata: \n\n"],
  ["leading space and colon stay", { data: " : a" }, "data:  : a\n\n"],
  ["no other break splits", { data: "a\u2028b\u0085c\fd" }, "data: a\u2028b\u0085c\fd\n\n"],
];

describe("frame", () => {
  test.each(FRAMES.map(([name, event, text]) => ({ name, event, text })))("$name", ({ event, text }) => {
    expect(frame(event)).toBe(text);
  });

  test.each<SseEvent>([
    { id: "1\ndata: forged", data: "" },
    { id: "1\0", data: "" },
    { event: "a\rb", data: "" },
    { retry: 1.5, data: "" },
    { retry: -1, data: "" },
    { retry: Number.NaN, data: "" },
  ])("refuses %j", (event) => {
    expect(() => frame(event)).toThrow(RangeError);
  });
});

/** Waits for a condition that other turns of the event loop bring about. */
async function until(what: string, condition: () => boolean): Promise<void> {
  const deadline = performance.now() + HANG_MS;
  while (!condition()) {
    if (performance.now() > deadline) throw new Error(`waited in vain: ${what}`);
    await new Promise<void>((next) => setTimeout(next, 1));
  }
}

type Client = {
  socket: net.Socket;
  text(): string;
  bytes(): number;
  gone(): boolean;
  resetByPeer(): boolean;
};

function connect(port: number, request = "GET / HTTP/1.1\r\nHost: hub\r\n\r\n"): Client {
  const socket = net.connect(port, "127.0.0.1", () => socket.write(request));
  const chunks: Buffer[] = [];
  let [bytes, gone, code] = [0, false, ""];
  socket.on("data", (chunk: Buffer) => {
    bytes += chunk.length;
    chunks.push(chunk);
  });
  socket.on("error", (error: NodeJS.ErrnoException) => (code = error.code ?? "?"));
  socket.on("close", () => (gone = true));
  return {
    socket,
    text: () => Buffer.concat(chunks).toString(),
    bytes: () => bytes,
    gone: () => gone,
    resetByPeer: () => code === "ECONNRESET",
  };
}

type Fixture = {
  port: number;
  server: Bun.Server<undefined>;
  streams: SseStream[];
  closes(): number;
  limitBytes: number;
  isContended: boolean;
  /** Called between opening a stream and returning its answer. */
  beforeAnswer: (stream: SseStream) => void | Promise<void>;
};

const servers: Bun.Server<undefined>[] = [];
afterEach(async () => {
  for (const server of servers.splice(0)) await server.stop(true);
});

function serve(keepAlive?: KeepAlive): Fixture {
  let closes = 0;
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    development: false,
    idleTimeout: 1,
    error: () => new Response("fault", { status: 500 }),
    routes: {
      "/silent": () => new Promise<Response>(() => undefined),
      "/": async (request, server) => {
        const { response, stream } = openEventStream(request, server, {
          maxBacklogBytes: fixture.limitBytes,
          ...(keepAlive ? { keepAlive } : {}),
          isContended: () => fixture.isContended,
          headers: { "X-Kit": "yes" },
          onClose: () => closes++,
        });
        fixture.streams.push(stream);
        await fixture.beforeAnswer(stream);
        return response;
      },
    },
  });
  servers.push(server);
  const fixture: Fixture = {
    port: server.port ?? 0,
    server,
    streams: [],
    closes: () => closes,
    limitBytes: LIMIT_BYTES,
    isContended: false,
    beforeAnswer: () => undefined,
  };
  return fixture;
}

/** Opens one stream and waits until its first byte is there. */
async function opened(fixture: Fixture): Promise<{ client: Client; stream: SseStream }> {
  const client = connect(fixture.port);
  await until("the first byte", () => client.text().includes("\r\n\r\n"));
  const stream = fixture.streams.at(-1);
  if (!stream) throw new Error("no stream was opened");
  return { client, stream };
}

/** The chunked body put together again; null while its last chunk is missing. */
function wholeBody(text: string): string | null {
  let rest = Buffer.from(text.slice(text.indexOf("\r\n\r\n") + 4));
  const parts: Buffer[] = [];
  for (;;) {
    const head = rest.indexOf("\r\n");
    const size = Number.parseInt(rest.subarray(0, head).toString(), 16);
    if (head < 0 || rest.length < head + size + 4) return null;
    if (size === 0) return Buffer.concat(parts).toString();
    parts.push(rest.subarray(head + 2, head + 2 + size));
    rest = rest.subarray(head + 2 + size + 2);
  }
}

/** Sends to a client that does not read until the stream has something waiting. */
async function stall(client: Client, stream: SseStream): Promise<void> {
  client.socket.pause();
  for (let sent = 0; stream.backlogBytes === 0; sent++) {
    if (sent > 2_000) throw new Error("the socket takes everything");
    stream.send(PIECE);
    await new Promise((next) => setImmediate(next));
  }
}

describe("an open stream", () => {
  test("has the headers of an event stream, and a first byte at once", async () => {
    const { client } = await opened(serve());
    await until("the first comment", () => client.text().includes(":\n\n"));
    const head = client.text().toLowerCase();
    expect(head).toStartWith("http/1.1 200 ");
    expect(head).toContain("\r\ncontent-type: text/event-stream\r\n");
    expect(head).toContain("\r\ncache-control: no-store\r\n");
    expect(head).toContain("\r\nx-accel-buffering: no\r\n");
    expect(head).toContain("\r\nx-kit: yes\r\n");
    expect(head).not.toContain("content-length");
  });

  test("delivers events, including those sent before the response, in order and in UTF-8", async () => {
    const fixture = serve();
    fixture.beforeAnswer = (stream) => {
      expect(stream.send(frame({ data: "é" }))).toBe(true);
      expect(stream.backlogBytes).toBe(10);
    };
    const { client, stream } = await opened(fixture);
    expect(stream.send(frame({ data: "ü" }))).toBe(true);
    expect(stream.send(frame({ data: "日本" }))).toBe(true);
    expect({ drained: await stream.drained(), backlogBytes: stream.backlogBytes }).toEqual({
      drained: true,
      backlogBytes: 0,
    });
    stream.close();
    await until("the end", () => wholeBody(client.text()) !== null);
    expect(wholeBody(client.text())).toBe("data: é\n\ndata: ü\n\ndata: 日本\n\n");
  });

  test("outlives the server's idle timeout", async () => {
    const fixture = serve();
    const { client, stream } = await opened(fixture);
    const idle = connect(fixture.port, "GET /silent HTTP/1.1\r\nHost: hub\r\n\r\n");
    await until("the idle timeout of another", () => idle.gone());
    expect(stream.send(frame({ data: "still here" }))).toBe(true);
    await until("the event", () => client.text().includes("still here"));
  });
});

describe("the end", () => {
  test("close() ends the body cleanly, lets the server stop, and runs onClose once", async () => {
    const fixture = serve();
    const { client, stream } = await opened(fixture);
    const stopped = fixture.server.stop();
    stream.send(frame({ data: "last" }));
    stream.close();
    stream.close();
    await stopped;
    await until("the end", () => client.gone());
    expect(wholeBody(client.text())).toBe(":\n\ndata: last\n\n");
    expect({
      closes: fixture.closes(),
      closed: stream.closed,
      sent: stream.send("x"),
      reset: client.resetByPeer(),
    }).toEqual({
      closes: 1,
      closed: true,
      sent: false,
      reset: false,
    });
    expect(await stream.drained()).toBe(false);
  });

  test("close() before the answer still delivers the events already sent", async () => {
    const fixture = serve();
    fixture.beforeAnswer = (stream) => {
      stream.send(frame({ data: "only" }));
      stream.close();
    };
    const client = connect(fixture.port);
    await until("the event", () => client.text().endsWith("\r\n\r\ndata: only\n\n"));
    expect(client.text().toLowerCase()).toContain("content-length: 12\r\n"); // all of it known: no chunks
    expect(fixture.closes()).toBe(1);
  });

  test("close() on a client that has stopped reading delivers the buffered events once it reads", async () => {
    const fixture = serve();
    const { client, stream } = await opened(fixture);
    await stall(client, stream);
    stream.send(frame({ data: "last" }));
    stream.close();
    client.socket.resume();
    await until("the end", () => client.text().endsWith("0\r\n\r\n"));
    expect(wholeBody(client.text())).toEndWith("data: last\n\n");
    expect(fixture.closes()).toBe(1);
  });

  test("cut() drops the unread events of a stalled client, and ends other streams cleanly", async () => {
    const fixture = serve();
    const { client, stream } = await opened(fixture);
    await stall(client, stream);
    stream.send(frame({ data: "last" }));
    stream.cut();
    stream.cut();
    client.socket.resume();
    await until("the end of the request", () => fixture.server.pendingRequests === 0);
    expect(client.text()).not.toContain("data: last");
    const reader = await opened(fixture);
    reader.stream.send(frame({ data: "read" }));
    reader.stream.cut();
    await until("the end", () => reader.client.text().endsWith("0\r\n\r\n"));
    expect(wholeBody(reader.client.text())).toEndWith("data: read\n\n");
    expect(fixture.closes()).toBe(2);
  });

  test.each(["fin", "reset"])("a hang-up (%s) runs onClose once", async (how) => {
    const fixture = serve();
    const { client, stream } = await opened(fixture);
    if (how === "fin") client.socket.end();
    else client.socket.resetAndDestroy();
    await until("onClose", () => stream.closed);
    expect({ closes: fixture.closes(), sent: stream.send("x") }).toEqual({ closes: 1, sent: false });
    stream.close();
    await until("the request's end", () => fixture.server.pendingRequests === 0);
    expect(fixture.closes()).toBe(1);
  });

  test("a hang-up before the handler answers runs onClose once", async () => {
    const fixture = serve();
    const answer = Promise.withResolvers<void>();
    fixture.beforeAnswer = () => answer.promise;
    const client = connect(fixture.port);
    await until("the handler", () => fixture.streams.length === 1);
    client.socket.resetAndDestroy();
    await until("onClose", () => fixture.closes() === 1);
    answer.resolve();
    await until("the request's end", () => fixture.server.pendingRequests === 0);
    expect(fixture.closes()).toBe(1);
  });

  test("HEAD closes the stream at once", async () => {
    const fixture = serve();
    connect(fixture.port, "HEAD / HTTP/1.1\r\nHost: hub\r\n\r\n");
    await until("onClose", () => fixture.closes() === 1);
  });
});

describe("a slow client", () => {
  test("is reset at the buffer limit when it stops reading; onClose runs once and the limit holds", async () => {
    const fixture = serve();
    const { client, stream } = await opened(fixture);
    await stall(client, stream);
    const drained = stream.drained();
    let mostBytes = 0;
    for (let sent = 0; sent < 100 && stream.send(PIECE); sent++)
      mostBytes = Math.max(mostBytes, stream.backlogBytes);
    expect(mostBytes).toBeGreaterThan(LIMIT_BYTES - 2 * PIECE.length);
    expect(mostBytes).toBeLessThanOrEqual(LIMIT_BYTES);
    expect({ closes: fixture.closes(), closed: stream.closed, backlogBytes: stream.backlogBytes }).toEqual({
      closes: 1,
      closed: true,
      backlogBytes: 0,
    });
    expect(await drained).toBe(false);
    client.socket.resume();
    await until("the reset", () => client.gone());
    expect({ reset: client.resetByPeer(), ended: client.text().endsWith("0\r\n\r\n") }).toEqual({
      reset: true,
      ended: false,
    });
    expect(fixture.closes()).toBe(1);
  });

  test("gets the buffered events once it reads again, and only then counts as drained", async () => {
    const fixture = serve();
    fixture.limitBytes = 64 * 1024 * 1024;
    const { client, stream } = await opened(fixture);
    await stall(client, stream);
    const before = stream.backlogBytes;
    const large = frame({ data: "z".repeat(16 * 1024 * 1024) }); // more than the socket takes at once
    expect(stream.send(large)).toBe(true);
    expect(stream.backlogBytes).toBe(before + large.length);
    const drained = stream.drained();
    client.socket.resume();
    expect({ drained: await drained, backlogBytes: stream.backlogBytes }).toEqual({
      drained: true,
      backlogBytes: 0,
    });
    await until("all of it", () => client.bytes() > large.length && client.text().endsWith("z\n\n\r\n"));
  });

  test("gets an event larger than the limit when the buffer is empty", async () => {
    const { client, stream } = await opened(serve());
    const large = frame({ data: "y".repeat(8 * LIMIT_BYTES) });
    expect(stream.send(large)).toBe(true);
    expect(await stream.drained()).toBe(true);
    stream.close();
    await until("the end", () => client.text().endsWith("0\r\n\r\n"));
    expect(wholeBody(client.text()) === `:\n\n${large}`).toBe(true);
  });

  test("gets every event, however late, when the sender waits for drained()", async () => {
    const { client, stream } = await opened(serve());
    await stall(client, stream);
    const before = stream.backlogBytes;
    const waits = stream.drained();
    client.socket.resume();
    expect(await waits).toBe(true);
    let mostBytes = before;
    for (let n = 0; n < 200; n++) {
      expect(stream.send(PIECE)).toBe(true);
      mostBytes = Math.max(mostBytes, stream.backlogBytes);
      expect(await stream.drained()).toBe(true);
    }
    expect(mostBytes).toBeLessThanOrEqual(PIECE.length);
    stream.send(frame({ data: "last" }));
    stream.close();
    await until("the end", () => client.text().endsWith("data: last\n\n\r\n0\r\n\r\n"));
    const body = wholeBody(client.text()) ?? "";
    const pieces = body.slice(":\n\n".length, -"data: last\n\n".length).split("\n\n");
    expect(pieces.pop()).toBe("");
    expect(pieces.length).toBeGreaterThan(200);
    expect(pieces.every((piece) => `${piece}\n\n` === PIECE)).toBe(true);
  });
});

/** A timer that ticks when the test says so. */
function handTimer(): { every: Every; tick(times: number): void; running(): boolean; ms(): number } {
  let [run, ms]: [(() => void) | undefined, number] = [undefined, 0];
  return {
    every: (everyMs, tick) => {
      expect(run).toBeUndefined(); // one timer for all
      [run, ms] = [tick, everyMs];
      return () => (run = undefined);
    },
    tick: (times) => {
      for (let n = 0; n < times; n++) run?.();
    },
    running: () => run !== undefined,
    ms: () => ms,
  };
}

const ROUND = 15; // ticks: 15 s

describe("keep-alive", () => {
  test("10,000 streams each get a comment every 15 s, spread evenly, and the timer stops with the last", () => {
    const timer = handTimer();
    const keepAlive = new KeepAlive(15_000, timer.every);
    const counts = new Array<number>(10_000).fill(0);
    const streams = counts.map((_, at) => ({
      keepAlive: () => void (counts[at] = (counts[at] ?? 0) + 1),
    }));
    for (const stream of streams) keepAlive.add(stream);
    expect({ ms: timer.ms(), size: keepAlive.size }).toEqual({ ms: 1_000, size: 10_000 });
    let before = 0;
    for (let tick = 1; tick <= 2 * ROUND; tick++) {
      timer.tick(1);
      const total = counts.reduce((sum, n) => sum + n, 0);
      expect(total - before).toBeLessThanOrEqual(667);
      before = total;
      if (tick % ROUND === 0) expect(counts.every((n) => n === tick / ROUND)).toBe(true);
    }
    const [first = { keepAlive: () => undefined }, ...others] = streams;
    for (const stream of others) keepAlive.remove(stream);
    expect({ running: timer.running(), size: keepAlive.size }).toEqual({ running: true, size: 1 });
    keepAlive.remove(first);
    keepAlive.remove(first);
    expect({ running: timer.running(), size: keepAlive.size }).toEqual({ running: false, size: 0 });
    keepAlive.add({ keepAlive: () => undefined });
    expect(timer.running()).toBe(true);
  });

  test("the machine's timer calls it as well", async () => {
    const keepAlive = new KeepAlive(30);
    let counts = 0;
    const stream = { keepAlive: () => void counts++ };
    keepAlive.add(stream);
    await until("three keep-alives", () => counts >= 3);
    keepAlive.remove(stream);
  });

  test("reach the client as comments, and end with the stream", async () => {
    const timer = handTimer();
    const keepAlive = new KeepAlive(15_000, timer.every);
    const { client, stream } = await opened(serve(keepAlive));
    timer.tick(2 * ROUND);
    stream.close();
    await until("the end", () => wholeBody(client.text()) !== null);
    expect(wholeBody(client.text())).toBe(":\n\n:\n\n:\n\n");
    expect(timer.running()).toBe(false);
  });

  test("cut off a client that reads nothing for four of them, and do not grow its buffer", async () => {
    const timer = handTimer();
    const fixture = serve(new KeepAlive(15_000, timer.every));
    const { client, stream } = await opened(fixture);
    await stall(client, stream);
    const { backlogBytes } = stream;
    timer.tick(3 * ROUND);
    expect({ closed: stream.closed, backlogBytes: stream.backlogBytes }).toEqual({
      closed: false,
      backlogBytes,
    });
    timer.tick(ROUND);
    expect({ closed: stream.closed, closes: fixture.closes(), running: timer.running() }).toEqual({
      closed: true,
      closes: 1,
      running: false,
    });
    client.socket.resume();
    await until("the reset", () => client.gone());
  });

  test("cut it after two when others need its buffer", async () => {
    const timer = handTimer();
    const fixture = serve(new KeepAlive(15_000, timer.every));
    const { client, stream } = await opened(fixture);
    const reading = await opened(fixture);
    await stall(client, stream);
    timer.tick(2 * ROUND);
    expect(stream.closed).toBe(false);
    fixture.isContended = true;
    timer.tick(ROUND);
    expect([stream.closed, reading.stream.closed, fixture.closes()]).toEqual([true, false, 1]);
  });

  test("start the count again when the client has read", async () => {
    const timer = handTimer();
    const { client, stream } = await opened(serve(new KeepAlive(15_000, timer.every)));
    await stall(client, stream);
    timer.tick(3 * ROUND);
    client.socket.resume();
    expect(await stream.drained()).toBe(true);
    await stall(client, stream);
    timer.tick(3 * ROUND);
    expect(stream.closed).toBe(false);
  });

  test("end a stream whose answer was never returned", async () => {
    const timer = handTimer();
    const fixture = serve(new KeepAlive(15_000, timer.every));
    fixture.beforeAnswer = () => {
      throw new Error("the handler failed");
    };
    const client = connect(fixture.port);
    await until("the fault's answer", () => client.text().includes(" 500 "));
    timer.tick(6 * ROUND);
    expect({ closes: fixture.closes(), running: timer.running() }).toEqual({ closes: 1, running: false });
  });
});
