/**
 * GET agent/sse and GET events/stream (docs/events.md) from a raw socket: the head, streams that break off at random, slow
 * clients, and the end of a stream. node-streams.test.ts has what they show; test/http/sse.test.ts tests the framing.
 */
import { describe, expect, spyOn, test } from "bun:test";
import { rmSync } from "node:fs";
import net from "node:net";
import { LOG_STREAM_GATHER_MS } from "../../src/domain/limits.ts";
import { Feed } from "../../src/service/feed.ts";
import { dice } from "../support/dice.ts";
import { HANG_MS } from "../support/hang.ts";
import { SECRET, type TestHub, newDataDir, onlyOnce, startHub } from "../support/hub.ts";
import { VARIANTS, type VariantName, list, ok, until } from "./scene.ts";

const once = onlyOnce(import.meta.url);

/** One event as a client's parser gives it out. */
type Frame = {
  readonly id: number;
  readonly event: string;
  readonly data: Record<string, unknown>;
};

type Asked = {
  readonly lastEventId?: number | string;
  readonly variant?: VariantName;
  /** null: none is sent. */
  readonly secret?: string | null;
};

/** The stream of the whole log, as a client asks for it in place of a node's. */
const ofLog = (query = ""): { readonly path: string } => ({ path: `/events/stream${query}` });

/** A client that keeps a stream open and remembers what came whole. */
class Client {
  readonly #socket: net.Socket;
  #left = Buffer.alloc(0);
  #rest = "";
  #decoder = new TextDecoder();
  readonly frames: Frame[] = [];
  /** The lines of the head, when it is there. */
  head: readonly string[] = [];
  /** The pieces of the body that were no events: the time to come back, and comments. */
  readonly others: string[] = [];
  /** What came before anything else. */
  first = "";
  /** The body ended as it should: with its last chunk. */
  ended = false;
  /** The connection is gone, whoever closed it. */
  gone = false;
  readonly #isBehindProxy: boolean;

  constructor(
    hub: TestHub,
    of: string | { readonly path: string },
    { lastEventId, variant = "A", secret = SECRET }: Asked = {},
  ) {
    this.#isBehindProxy = hub.size > 1;
    const path = typeof of === "string" ? `/agent/sse?node_id=${of}` : of.path;
    const head = [
      `GET /api/v1${path} HTTP/1.1`,
      "Host: hub",
      ...(secret === null ? [] : [`X-Matrix-Secret: ${secret}`]),
      "Accept: text/event-stream",
      ...(lastEventId === undefined ? [] : [`Last-Event-ID: ${lastEventId}`]),
    ];
    this.#socket = net.connect(hub.port(variant), "127.0.0.1", () =>
      this.#socket.write(`${head.join("\r\n")}\r\n\r\n`),
    );
    this.#socket.on("data", (chunk: Buffer) => this.#take(chunk));
    this.#socket.on("error", () => undefined);
    this.#socket.on("close", () => (this.gone = true));
  }

  /** Nothing more can come. A proxy keeps the connection for the next request. */
  get over(): boolean {
    return this.gone || (this.#isBehindProxy && this.ended);
  }

  /** What came ends with a whole piece. */
  get whole(): boolean {
    return this.#rest === "";
  }

  get ids(): readonly number[] {
    return this.frames.map(({ id }) => id);
  }

  hangUp(): void {
    this.#socket.destroy();
  }

  pause(): void {
    this.#socket.pause();
  }

  resume(): void {
    this.#socket.resume();
  }

  /** Resolves when the stream runs: its first piece is there. */
  async open(): Promise<this> {
    const deadline = performance.now() + HANG_MS;
    while (this.others.length === 0 && performance.now() < deadline) await Bun.sleep(1);
    expect(this.others.length).toBeGreaterThan(0);
    return this;
  }

  /** The first `count` frames. */
  async take(count: number): Promise<readonly Frame[]> {
    await until(`${count} events`, async () => this.frames.length >= count);
    return this.frames.slice(0, count);
  }

  #take(chunk: Buffer): void {
    this.#left = Buffer.concat([this.#left, chunk]);
    if (this.head.length === 0) {
      const end = this.#left.indexOf("\r\n\r\n");
      if (end === -1) return;
      this.head = this.#left.subarray(0, end).toString("latin1").split("\r\n");
      this.#left = this.#left.subarray(end + 4);
    }
    this.#dechunk();
    this.#parse();
  }

  #dechunk(): void {
    for (;;) {
      const line = this.#left.indexOf("\r\n");
      if (line === -1) return;
      const size = Number.parseInt(this.#left.subarray(0, line).toString("latin1"), 16);
      if (this.#left.length < line + 2 + size + 2) return;
      if (size === 0) this.ended = true;
      this.#rest += this.#decoder.decode(this.#left.subarray(line + 2, line + 2 + size), { stream: true });
      this.#left = this.#left.subarray(line + 2 + size + 2);
    }
  }

  #parse(): void {
    const pieces = this.#rest.split("\n\n");
    this.#rest = pieces.pop() ?? "";
    this.first ||= pieces[0] ?? "";
    for (const piece of pieces) {
      const lines = piece.split("\n");
      const value = (name: string): string =>
        lines.find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2) ?? "";
      if (!lines.some((line) => line.startsWith("data"))) this.others.push(piece);
      else
        this.frames.push({
          id: Number(value("id")),
          event: value("event"),
          data: JSON.parse(value("data")),
        });
    }
  }
}

/** Opens streams, and hangs all of them up in the end. */
class Clients {
  readonly #open: Client[] = [];

  async open(hub: TestHub, of: string | { readonly path: string }, asked?: Asked): Promise<Client> {
    const client = new Client(hub, of, asked);
    this.#open.push(client);
    return client.open();
  }

  [Symbol.dispose](): void {
    for (const client of this.#open) client.hangUp();
  }
}

/** The log from its beginning, read by GET events. */
async function log(hub: TestHub): Promise<readonly Record<string, unknown>[]> {
  const all: Record<string, unknown>[] = [];
  for (let cursor = 0; ;) {
    const body = await ok(hub.get(`/events?since=${cursor}&limit=1000`));
    const events = list(body, "events");
    if (events.length === 0) return all;
    all.push(...events);
    cursor = Number(body["cursor"]);
  }
}

/** What the stream of a node has to show of the log. */
async function shownOf(hub: TestHub, nodeId: string): Promise<readonly Record<string, unknown>[]> {
  const mailbox = list(await ok(hub.get(`/agent/messages?node_id=${nodeId}&limit=1000`)), "messages");
  const broadcasts = new Set(mailbox.filter(({ to_node }) => to_node === null).map(({ id }) => id));
  return (await log(hub)).filter(({ kind, node_id, data }) => {
    const { message_id, from_node } = { message_id: null, from_node: null, ...(data as object) };
    if (/^message\.(acked|parked|expired)$/.test(String(kind))) return from_node === nodeId;
    if (kind === "message.sent" && node_id === null) return broadcasts.has(message_id);
    return node_id === nodeId && (/^task\./.test(String(kind)) || kind === "message.sent");
  });
}

async function shownIds(hub: TestHub, nodeId: string): Promise<readonly number[]> {
  return (await shownOf(hub, nodeId)).map(({ id }) => Number(id));
}

async function lastId(hub: TestHub): Promise<number> {
  return Number((await ok(hub.get("/events?limit=1")))["cursor"]);
}

describe.each(VARIANTS)("the stream on a listener of %s", (variant) => {
  once.test("opens with the head of an event stream and a retry time", async () => {
    await using hub = await startHub();
    using clients = new Clients();
    await hub.addNodes(["n1"]);
    const client = await clients.open(hub, "n1", { variant });
    expect(client.head[0]).toStartWith("HTTP/1.1 200 ");
    const headers = client.head.map((line) => line.toLowerCase());
    expect(headers).toContain("content-type: text/event-stream");
    expect(headers).toContain("cache-control: no-store");
    expect(headers.some((line) => /^x-request-id: \S/.test(line))).toBe(true);
    await hub.send("op", "n1");
    await client.take(1);
    const again = await clients.open(hub, "n1", { variant, lastEventId: 0 });
    await again.take(1);
    for (const one of [client, again]) {
      expect(one.first).toBe("retry: 3000");
      expect(one.others).toEqual(["retry: 3000"]);
    }
  });

  test("names in a comment what it does not read of its query", async () => {
    await using hub = await startHub();
    using clients = new Clients();
    await hub.addNodes(["n1"]);
    for (const [path, names] of [
      ["/agent/sse?node_id=n1&kinds=x&%0Adata=1", ["kinds", "\ndata"]],
      ["/events/stream?since=&kinds=task.created&node_id=n1", ["kinds"]],
    ] as const) {
      const client = await clients.open(hub, { path });
      await until("the comment is there", () => Promise.resolve(client.others.length === 2));
      expect(client.others).toEqual(["retry: 3000", `: ${JSON.stringify({ ignored: names })}`]);
    }
  });
});

describe("a stream", () => {
  once.test("carries the largest message many times", async () => {
    await using hub = await startHub();
    using clients = new Clients();
    await hub.addNodes(["n1"]);
    const client = await clients.open(hub, "n1");
    const content = "ß".repeat(128 * 1024);
    for (let i = 0; i < 12; i++) await hub.send("op", "n1", { content });
    const frames = await client.take(12);
    for (const { data } of frames) expect(data["content"] === content).toBe(true);
    expect(client.ids).toEqual([...(await shownIds(hub, "n1"))]);
  });
});

once.describe("HEAD", () => {
  test("is answered at once with the head alone", async () => {
    await using hub = await startHub();
    await hub.addNodes(["n1"]);
    for (const variant of VARIANTS) {
      const answer = await hub.call("HEAD", "/agent/sse?node_id=n1", { variant });
      expect(answer.status).toBe(200);
      expect(answer.headers.get("content-type")).toBe("text/event-stream");
      expect(answer.headers.get("cache-control")).toBe("no-store");
      expect(answer.body).toEqual({});
    }
    expect((await hub.call("HEAD", "/agent/sse?node_id=n9")).status).toBe(404);
    expect((await hub.call("HEAD", "/agent/sse")).status).toBe(400);
  });

  test("leaves the connection usable", async () => {
    await using hub = await startHub();
    await hub.addNodes(["n1"]);
    const socket = net.connect(hub.port(), "127.0.0.1");
    let text = "";
    socket.on("data", (chunk: Buffer) => (text += chunk.toString("latin1")));
    const request = (line: string) =>
      socket.write(`${line} HTTP/1.1\r\nHost: hub\r\nX-Matrix-Secret: ${SECRET}\r\n\r\n`);
    request("HEAD /api/v1/agent/sse?node_id=n1");
    await until("the head", async () => text.includes("\r\n\r\n"));
    await hub.send("op", "n1");
    await Bun.sleep(20);
    expect(text).toEndWith("\r\n\r\n");
    expect(text.split("\r\n\r\n")).toHaveLength(2);
    text = "";
    request("GET /api/v1/status");
    await until("the next answer", async () => text.includes('"success":true'));
    expect(text).toStartWith("HTTP/1.1 200 ");
    socket.destroy();
  });
});

describe("the stream of the whole log", () => {
  /** Expects these frames to be these events of the log, each once. */
  const expectEvents = (frames: readonly Frame[], events: readonly Record<string, unknown>[]): void => {
    expect(frames.map(({ data }) => data)).toEqual([...events]);
    expect(frames.map(({ id, event }) => ({ id, kind: event }))).toEqual(
      events.map(({ id, kind }) => ({ id: Number(id), kind: String(kind) })),
    );
  };

  test("has every event once, in the order of the log, while they come and from any place in it", async () => {
    await using hub = await startHub();
    using clients = new Clients();
    await hub.addNodes(["n1", "n2", "n3"]);
    const before = await lastId(hub);
    const live = [
      await clients.open(hub, ofLog()),
      await clients.open(hub, ofLog(), { variant: "B" }),
      await clients.open(hub, ofLog(), { secret: null }),
    ];
    await bustle(hub, 150, 4);
    const all = await log(hub);
    const later = all.filter(({ id }) => Number(id) > before);
    expect(later.length).toBeGreaterThan(100);
    for (const client of live) expectEvents(await client.take(later.length), later);
    const middle = Number(all[Math.floor(all.length / 2)]?.["id"]);
    for (const [query, lastEventId, after] of [
      ["?since=0", undefined, 0],
      [`?since=${middle}`, undefined, middle],
      ["?since=0", middle, middle],
      ["", middle, middle],
    ] as const) {
      const wanted = all.filter(({ id }) => Number(id) > after);
      const asked = lastEventId === undefined ? {} : { lastEventId };
      expectEvents(await (await clients.open(hub, ofLog(query), asked)).take(wanted.length), wanted);
    }
    expect(live[0]?.first).toBe("retry: 3000");
    expect(hub.logged.join("")).not.toContain('"level":"error"');
  });

  once.test("reads events that are logged in quick succession together", async () => {
    await using hub = await startHub();
    using clients = new Clients();
    await hub.addNodes(["n1"]);
    const client = await clients.open(hub, ofLog("?kind=task.created"));
    const reads = spyOn(Feed.prototype, "eventsById");
    try {
      const startedMs = performance.now();
      for (let i = 0; i < 60; i++) await hub.addTask();
      await client.take(60);
      // 60 commits, which a slow machine spreads over many rounds.
      const rounds = (performance.now() - startedMs) / LOG_STREAM_GATHER_MS;
      expect(reads.mock.calls.length).toBeLessThan(rounds + 3);
    } finally {
      reads.mockRestore();
    }
  });
});

/** Commits `count` times, several at once: messages, broadcasts and tasks, for n1 and for others. */
async function bustle(hub: TestHub, count: number, seed: number): Promise<void> {
  const roll = dice(seed);
  const acts: readonly ((i: number) => Promise<unknown>)[] = [
    (i) => hub.send("op", "n1", { content: `to one\n${i}` }),
    (i) => hub.send("n1", "n2", { content: `to two ${i}` }),
    (i) => ok(hub.post("/message/broadcast", { from_node: "n2", content: `to all ${i}` })),
    () => hub.addTask({ creator_node: "n1" }),
    () => hub.addTaskOf("n2"),
    async () => hub.complete(await hub.addTaskOf("n1"), "n1"),
    () => ok(hub.post("/node/heartbeat", { node_id: "n1" })),
    () => Bun.sleep(roll(3)),
  ];
  let next = 0;
  const writer = async (): Promise<void> => {
    for (let i = next++; i < count; i = next++) await acts[roll(acts.length)]?.(i);
  };
  await Promise.all(Array.from({ length: 6 }, writer));
}

/**
 * Follows n1 from `since` and breaks off at random points, also in the middle of an event, until `done`; then to the end.
 * Answers all that came, over all streams: each time it goes on after the last event that came whole.
 */
async function restless(
  hub: TestHub,
  seed: number,
  since: number,
  done: () => boolean,
): Promise<{ ids: number[]; breaks: number }> {
  const roll = dice(seed);
  using clients = new Clients();
  const ids: number[] = [];
  let last = since;
  let breaks = 0;
  for (; !done(); breaks++) {
    const variant = roll(2) === 0 ? "A" : "B";
    const client = await clients.open(hub, "n1", { variant, lastEventId: last });
    const enough = roll(30);
    while (client.ids.length <= enough && !done()) await Bun.sleep(1);
    if (roll(3) === 0) await Bun.sleep(roll(8));
    client.hangUp();
    ids.push(...client.ids);
    last = client.ids.at(-1) ?? last;
    if (roll(3) === 0) await Bun.sleep(roll(40)); // away for a while
  }
  const client = await clients.open(hub, "n1", { lastEventId: last });
  const final = await lastId(hub);
  const rest = (await shownIds(hub, "n1")).filter((id) => id > last);
  await client.take(rest.length);
  expect(await lastId(hub)).toBe(final);
  return { ids: [...ids, ...client.ids], breaks };
}

describe("reconnecting with Last-Event-ID", () => {
  once.test("from far back, over many events of other nodes", async () => {
    await using hub = await startHub();
    using clients = new Clients();
    await hub.addNodes(["n1", "n2"]);
    await hub.send("op", "n1", { content: "first" });
    const others = { from_node: "op", to_node: "n2", content: "x" };
    await hub.inBatches(
      "message/send",
      Array.from({ length: 4_500 }, () => others),
    );
    await hub.send("op", "n1", { content: "last" });
    const client = await clients.open(hub, "n1", { lastEventId: 0 });
    await client.take(2);
    expect(client.frames.map(({ data }) => data["content"])).toEqual(["first", "last"]);
    expect(client.ids[1]).toBeGreaterThan(4_500);
    await hub.send("op", "n1", { content: "next" });
    await client.take(3);
    expect(client.ids).toEqual([...(await shownIds(hub, "n1"))]);
  });

  for (const seed of [1])
    test(`again and again while events are committed: each arrives once, in order (seed ${seed})`, async () => {
      await using hub = await startHub();
      await hub.addNodes(["n1", "n2", "n3"]);
      let running = true;
      const before = await lastId(hub);
      const readers = [1, 2, 3].map((n) => restless(hub, seed * 10 + n, before, () => !running));
      using clients = new Clients();
      const steady = await clients.open(hub, "n1");
      const [letters, fewest] = hub.engine === "sqlite" ? [250, 100] : [120, 40];
      await bustle(hub, letters, seed);
      running = false;
      const all = (await shownIds(hub, "n1")).filter((id) => id > before);
      expect(all.length).toBeGreaterThan(fewest);
      for (const { ids, breaks } of await Promise.all(readers)) {
        expect(ids).toEqual(all);
        expect(breaks).toBeGreaterThan(2);
      }
      await steady.take(all.length);
      expect(steady.ids).toEqual(all);
      expect(hub.logged.join("")).not.toContain('"level":"error"');
    });
});

once.describe("a slow client", () => {
  test("gets every event once it reads again, however many were committed meanwhile", async () => {
    await using hub = await startHub();
    using clients = new Clients();
    await hub.addNodes(["n1"]);
    const [slow, quick] = [await clients.open(hub, "n1"), await clients.open(hub, "n1")];
    slow.pause();
    const content = "x".repeat(60_000); // together more than the sockets hold
    for (let i = 0; i < 12; i++)
      await Promise.all(
        Array.from({ length: 25 }, (_, j) => hub.send("op", "n1", { content: `${i * 25 + j} ${content}` })),
      );
    const all = await shownIds(hub, "n1");
    expect(all).toHaveLength(300);
    await quick.take(all.length);
    expect(quick.ids).toEqual(all);
    expect(slow.frames.length).toBeLessThan(all.length);
    slow.resume();
    await slow.take(all.length);
    await hub.send("op", "n1", { content: "last" });
    await slow.take(all.length + 1);
    expect(slow.ids).toEqual([...(await shownIds(hub, "n1"))]);
  });
});

describe("when the hub goes down", () => {
  once.test("a stream ends with its last chunk, complete", async () => {
    const hub = await startHub();
    using clients = new Clients();
    try {
      await hub.addNodes(["n1", "n2"]);
      const streams = [await clients.open(hub, "n1"), await clients.open(hub, "n2", { variant: "B" })];
      for (let i = 0; i < 20; i++) await hub.send("op", "n1", { content: `${i}` });
      await streams[0]?.take(20);
      await hub.close(); // a stream that has not ended by the end of its patience is cut off
      await until("the streams are gone", async () => streams.every((client) => client.over));
      for (const client of streams) {
        expect(client.ended).toBe(true);
        expect(client.whole).toBe(true);
      }
      expect(streams[0]?.frames).toHaveLength(20);
      expect(hub.logged.join("")).not.toContain('"level":"error"');
    } finally {
      await hub.close();
    }
  });

  once.test("an event being written is not torn: the client has a prefix of the log", async () => {
    const dataDir = newDataDir();
    try {
      const hub = await startHub({ dataDir });
      using clients = new Clients();
      await hub.addNodes(["n1", "n2", "n3"]);
      const client = await clients.open(hub, "n1");
      const before = await lastId(hub);
      const busy = bustle(hub, 100_000, 9).catch(() => "the hub is down");
      await client.take(60);
      await hub.close();
      await busy;
      await until("the stream is gone", async () => client.over);
      expect(client.ended).toBe(true);
      await using again = await startHub({ dataDir });
      const all = (await shownIds(again, "n1")).filter((id) => id > before);
      expect(client.ids).toEqual(all.slice(0, client.ids.length));
      const back = await clients.open(again, "n1", { lastEventId: client.ids.at(-1) ?? 0 });
      await back.take(all.length - client.ids.length);
      expect([...client.ids, ...back.ids]).toEqual(all);
    } finally {
      rmSync(dataDir, { recursive: true, force: true });
    }
  });
});
