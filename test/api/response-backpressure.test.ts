/**
 * Response backpressure: the unread bytes of all large answers stay within the limit, each answer releases its bytes
 * however it ends, and the sent bytes are the encoded ones.
 */
import { afterEach, describe, expect, test } from "bun:test";
import { encodeInPieces } from "../../src/api/answer.ts";
import { type Body, type Encoded, ResponseBackpressure } from "../../src/api/response-backpressure.ts";
import type { Share } from "../../src/api/caller-shares.ts";
import {
  ANSWER_BYTES_SHARES,
  ANSWER_UNCOUNTED_MAX_BYTES,
  LIST_PART_MAX_BYTES,
  READ_SHARES,
  READS_TOGETHER,
} from "../../src/domain/limits.ts";
import type { Exchange } from "../../src/http/exchange.ts";
import { AcquireTimeout, Semaphore } from "../../src/lib/semaphore.ts";
import { Rows } from "../../src/service/list-pages.ts";

const MIB = 1024 * 1024;
/** More than the sockets of one connection hold. */
const HUGE = 16 * MIB;
/** For those who do not read. */
const BRISK = { stallMs: 500, waitMs: 200 };

type Call = Parameters<ResponseBackpressure["ofRead"]>[0];
type Asked = (backpressure: ResponseBackpressure, call: Call) => Promise<Body>;

const SHARE: Share = { kind: "fullKey", name: "primary" };

/** Counts the unread bytes of all callers by `held`. */
function boundedBy(held: Semaphore, times: Partial<typeof BRISK> = {}): ResponseBackpressure {
  return new ResponseBackpressure({ bytes: { of: () => held, close: () => held.close() }, ...times });
}

const servers: { stop(force: boolean): Promise<void> }[] = [];
afterEach(() => Promise.all(servers.splice(0).map((server) => server.stop(true))));

/** A server with response backpressure; what cannot be answered is 503. */
function serve(backpressure: ResponseBackpressure, asked: Asked): { port: number } {
  const server = Bun.serve({
    port: 0,
    idleTimeout: 60,
    development: false,
    error: () => new Response(null, { status: 500 }),
    routes: {
      "/*": async (request, served) => {
        try {
          return new Response(
            await asked(backpressure, {
              exchange: { request, server: served, requestId: "r" },
              share: () => SHARE,
            }),
          );
        } catch (error) {
          return new Response(null, { status: error instanceof AcquireTimeout ? 503 : 500 });
        }
      },
    },
  });
  servers.push(server);
  return { port: server.port ?? 0 };
}

/** Asks and reads nothing. */
async function stall(port: number, path = "/"): Promise<{ readonly gone: Promise<void>; hangUp(): void }> {
  const gone = Promise.withResolvers<void>();
  const socket = await Bun.connect({
    hostname: "127.0.0.1",
    port,
    socket: { data: () => {}, close: () => gone.resolve(), error: () => gone.resolve() },
  });
  socket.pause();
  socket.write(`GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`);
  return { gone: gone.promise, hangUp: () => void socket.terminate() };
}

async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await Bun.sleep(5);
}

const whole = (first: string): Encoded => ({ first, next: null });

test("a small answer is sent without being counted", async () => {
  const held = new Semaphore(1);
  await held.acquire(1);
  const text = "x".repeat(ANSWER_UNCOUNTED_MAX_BYTES);
  const body = await boundedBy(held).ofRead({ exchange: {} as Exchange, share: () => SHARE }, async () =>
    whole(text),
  ); // it is not looked at
  expect(body).toBe(text);
});

describe.each([
  ["one byte more than small", "x".repeat(ANSWER_UNCOUNTED_MAX_BYTES + 1)],
  ["of characters that are cut between slices", `x${"😀é\u0001".repeat(200_000)}`],
])("a large answer, %s", (_, text) => {
  test.each([
    [
      "read",
      (backpressure: ResponseBackpressure, call: Call) => backpressure.ofRead(call, async () => whole(text)),
    ],
    ["written", async (backpressure: ResponseBackpressure, call: Call) => backpressure.ofWrite(call, text)],
  ])("%s, arrives complete and releases its bytes", async (_kind, asked) => {
    const held = new Semaphore(MIB);
    const { port } = serve(boundedBy(held), asked);
    const answer = await fetch(`http://127.0.0.1:${port}/`);
    expect(await answer.text()).toBe(text);
    await until(() => held.held === 0);
  });
});

test("an answer in pieces holds one piece at a time", async () => {
  const held = new Semaphore(MIB);
  const piece = "x".repeat(100_000);
  let most = 0;
  const { port } = serve(boundedBy(held), (backpressure, call) => {
    let left = 30;
    const next = async () => {
      most = Math.max(most, held.held);
      return left-- > 0 ? piece : null;
    };
    return backpressure.ofRead(call, async () => ({ first: piece, next }));
  });
  expect(await (await fetch(`http://127.0.0.1:${port}/`)).text()).toBe(piece.repeat(31));
  await until(() => held.held === 0);
  expect(most).toBe(piece.length);
});

test("an answer without room waits and loads again, and is refused when no room comes", async () => {
  const held = new Semaphore(HUGE);
  let loads = 0;
  const text = "x".repeat(HUGE);
  const load: Asked = (backpressure, call) => backpressure.ofRead(call, async () => (loads++, whole(text)));
  const { port } = serve(boundedBy(held), load);
  const impatient = serve(boundedBy(held, BRISK), load); // with the same semaphore
  const staller = await stall(port);
  await until(() => held.held === HUGE);
  expect((await fetch(`http://127.0.0.1:${impatient.port}/`)).status).toBe(503);
  expect([loads, held.held]).toEqual([2, HUGE]);
  const waiting = fetch(`http://127.0.0.1:${port}/`);
  await until(() => held.contended);
  staller.hangUp();
  expect(await (await waiting).text()).toBe(text);
  expect(loads).toBe(4); // the staller's, the refused one's, and this one's two
  await until(() => held.held === 0);
});

test("an unread answer is cut off, and its bytes are released before that", async () => {
  const held = new Semaphore(HUGE);
  await held.acquire(HUGE); // what was written does not wait for room
  let written = 0;
  const text = "x".repeat(HUGE);
  const { port } = serve(boundedBy(held, BRISK), async (backpressure, call) => {
    const before = held.held;
    const body = backpressure.ofWrite(call, text);
    written += held.held - before;
    return body;
  });
  const stallers = await Promise.all([1, 2, 3].map(() => stall(port)));
  await until(() => written === 3 * HUGE);
  await until(() => held.held === HUGE);
  const server = servers[0] as unknown as { pendingRequests: number };
  await until(() => server.pendingRequests === 0); // far sooner than after the idle timeout
  for (const staller of stallers) staller.hangUp();
});

test("an answer whose caller hangs up releases its bytes at once", async () => {
  const held = new Semaphore(HUGE);
  const { port } = serve(boundedBy(held), async (backpressure, call) =>
    backpressure.ofWrite(call, "x".repeat(HUGE)),
  );
  const staller = await stall(port);
  await until(() => held.held === HUGE);
  staller.hangUp();
  await until(() => held.held === 0);
});

test("an answer that fails in the middle releases its bytes and does not look complete", async () => {
  const held = new Semaphore(HUGE);
  const { port } = serve(boundedBy(held), (backpressure, call) => {
    const pieces = ["x"];
    const next = async () => pieces.pop() ?? Promise.reject(new Error("the store is away"));
    return backpressure.ofRead(call, async () => ({ first: "x", next }));
  });
  const answer = await fetch(`http://127.0.0.1:${port}/`);
  expect(await answer.text().catch(() => "broken")).toBe("broken");
  await until(() => held.held === 0);
});

test("a second load that fails releases the bytes", async () => {
  const held = new Semaphore(MIB);
  await held.acquire(MIB);
  let loads = 0;
  const { port } = serve(boundedBy(held), (backpressure, call) =>
    backpressure.ofRead(call, async () => {
      if (loads++ > 0) throw new Error("the store is away");
      return whole("x".repeat(MIB));
    }),
  );
  const answer = fetch(`http://127.0.0.1:${port}/`);
  await until(() => held.contended);
  held.release(MIB);
  expect((await answer).status).toBe(500);
  expect(held.held).toBe(0);
});

test("HEAD counts no bytes", async () => {
  const held = new Semaphore(HUGE);
  const { port } = serve(boundedBy(held), (backpressure, call) =>
    backpressure.ofRead(call, async () => whole("x".repeat(HUGE))),
  );
  expect((await fetch(`http://127.0.0.1:${port}/`, { method: "HEAD" })).status).toBe(200);
  expect(held.held).toBe(0);
});

describe("a caller that reads nothing", () => {
  const GREEDY: Share = { kind: "limitedKey", name: "greedy" };
  const part = "x".repeat(LIST_PART_MAX_BYTES);
  const fitting = ANSWER_BYTES_SHARES.limitedKey / LIST_PART_MAX_BYTES;

  /** A server whose callers are told apart by the path: /greedy reads a list of more than one part. */
  function serveBoth() {
    const backpressure = new ResponseBackpressure({ waitMs: 60_000 });
    const loads: string[] = [];
    /** How many were loaded in about one tick: what one release makes room for is spread over many. */
    const inTick = { now: 0, most: 0 };
    const { port } = serve(backpressure, (_, call) => {
      const isGreedy = new URL(call.exchange.request.url).pathname === "/greedy";
      const asked = { ...call, share: () => (isGreedy ? GREEDY : SHARE) };
      return backpressure.ofLargeRead(asked, async () => {
        loads.push(isGreedy ? "greedy" : "other");
        if (inTick.now++ === 0) setImmediate(() => (inTick.now = 0));
        inTick.most = Math.max(inTick.most, inTick.now);
        return { first: part, next: isGreedy ? async () => part : null };
      });
    });
    const greedyLoads = (): number => loads.filter((by) => by === "greedy").length;
    return { port, greedyLoads, inTick };
  }

  test("has its share of unread bytes and of running reads, loads nothing in vain, and delays no other", async () => {
    const { port, greedyLoads, inTick } = serveBoth();
    const stallers = await Promise.all(Array.from({ length: 100 }, () => stall(port, "/greedy")));
    await until(() => greedyLoads() >= fitting);
    for (let i = 0; i < 20; i++) expect(await (await fetch(`http://127.0.0.1:${port}/`)).text()).toBe(part);
    // As many more as begin in one tick are loaded to find that out.
    const most = fitting + READS_TOGETHER;
    expect(greedyLoads()).toBeLessThanOrEqual(most);
    for (const { hangUp } of stallers.slice(0, 50)) hangUp();
    await until(() => greedyLoads() > most);
    expect(await (await fetch(`http://127.0.0.1:${port}/`)).text()).toBe(part);
    expect(inTick.most).toBeLessThanOrEqual(2 * READS_TOGETHER); // what is counted together may be of two ticks

    for (const { hangUp } of stallers) hangUp();
  });

  test("and that hangs up while it waits, is no longer waited for", async () => {
    const { port, greedyLoads } = serveBoth();
    const stallers = await Promise.all(
      Array.from({ length: fitting + READ_SHARES.limitedKey + 20 }, () => stall(port, "/greedy")),
    );
    await until(() => greedyLoads() >= fitting);
    for (const { hangUp } of stallers) hangUp();
    const another = await fetch(`http://127.0.0.1:${port}/greedy`);
    const reader = another.body?.getReader();
    expect((await reader?.read())?.done).toBe(false);
    expect(greedyLoads()).toBeLessThanOrEqual(fitting + READ_SHARES.limitedKey + READS_TOGETHER);
    await reader?.cancel();
  });
});

test("running reads beyond the share wait, and are refused when none ends in time", async () => {
  const backpressure = new ResponseBackpressure({ waitMs: 200 });
  const ending = Promise.withResolvers<void>();
  const call = { exchange: { request: new Request("http://hub/") } as Exchange, share: () => SHARE };
  const address = { ...call, share: (): Share => ({ kind: "address", name: "a" }) };
  const reads = Array.from({ length: READ_SHARES.address }, () =>
    backpressure.runRead(address, () => ending.promise),
  );
  await expect(backpressure.runRead(address, async () => {})).rejects.toBeInstanceOf(AcquireTimeout);
  expect(await backpressure.runRead(call, async () => "another")).toBe("another");
  const patient = backpressure.runRead(address, async () => "at last");
  ending.resolve();
  expect(await patient).toBe("at last");
  await Promise.all(reads);
});

test("closed: a read that waits for others runs after them", async () => {
  const backpressure = new ResponseBackpressure();
  const ending = Promise.withResolvers<void>();
  const call = {
    exchange: { request: new Request("http://hub/") } as Exchange,
    share: (): Share => ({ kind: "address", name: "a" }),
  };
  const reads = Array.from({ length: READ_SHARES.address }, () =>
    backpressure.runRead(call, () => ending.promise),
  );
  const patient = backpressure.runRead(call, async () => "at last");
  backpressure.close();
  ending.resolve();
  expect(await patient).toBe("at last");
  await Promise.all(reads);
});

test.each([
  ["of one part", [["a"]]],
  ["of several, with what JSON marks a list's end with", [["a]", '"rows":[]'], ["]}", "["], ["c"]]],
  ["whose rows were deleted meanwhile", [[], [], ["a"], [], ["b"], []]],
  ["of which nothing is left", [[], [], []]],
])("a list %s is encoded as it would be whole, its fields in their order", async (_, parts) => {
  const [first = [], ...later] = parts;
  const next = later.length === 0 ? null : async () => later.shift() ?? null;
  const answer = { note: '"rows":[]', rows: new Rows<string>(first, next), total: 3, empty: [] };
  const whole = JSON.stringify({ success: true, ...answer, rows: parts.flat() });
  const encoded = encodeInPieces(answer);
  let text = encoded.first;
  for (let piece = await encoded.next?.(); piece; piece = await encoded.next?.()) text += piece;
  expect(text).toBe(whole);
});
