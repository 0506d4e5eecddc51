/**
 * Large answers on their way (outbox.ts): all that is held of them together stays within the budget, each gives its share
 * back however it ends, and what is sent is what was said.
 */
import { afterEach, describe, expect, test } from "bun:test";
import { type Body, Outbox, type Worded } from "../../src/api/outbox.ts";
import { ANSWER_UNCOUNTED_MAX_BYTES } from "../../src/domain/limits.ts";
import type { Exchange } from "../../src/http/exchange.ts";
import { Budget, BudgetSpent } from "../../src/lib/budget.ts";

const MIB = 1024 * 1024;
/** More than the sockets of one connection hold. */
const HUGE = 16 * MIB;
/** For those who do not read. */
const BRISK = { stallMs: 500, turnMs: 200 };

type Asked = (outbox: Outbox, exchange: Exchange) => Promise<Body>;

const servers: { stop(force: boolean): Promise<void> }[] = [];
afterEach(() => Promise.all(servers.splice(0).map((server) => server.stop(true))));

/** A server of one outbox; what cannot be answered is 503. */
function serve(outbox: Outbox, asked: Asked): { port: number } {
  const server = Bun.serve({
    port: 0,
    idleTimeout: 60,
    development: false,
    error: () => new Response(null, { status: 500 }),
    routes: {
      "/": async (request, served) => {
        try {
          return new Response(await asked(outbox, { request, server: served, requestId: "r" }));
        } catch (error) {
          return new Response(null, { status: error instanceof BudgetSpent ? 503 : 500 });
        }
      },
    },
  });
  servers.push(server);
  return { port: server.port ?? 0 };
}

/** Asks and reads nothing. */
async function stall(port: number): Promise<{ readonly gone: Promise<void>; hangUp(): void }> {
  const gone = Promise.withResolvers<void>();
  const socket = await Bun.connect({
    hostname: "127.0.0.1",
    port,
    socket: { data: () => {}, close: () => gone.resolve(), error: () => gone.resolve() },
  });
  socket.pause();
  socket.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  return { gone: gone.promise, hangUp: () => void socket.terminate() };
}

async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await Bun.sleep(5);
}

const whole = (first: string): Worded => ({ first, rest: null });

async function* failing(first: string): AsyncGenerator<string> {
  yield first;
  throw new Error("the store is away");
}

async function* repeated(part: string, count: number): AsyncGenerator<string> {
  for (let i = 0; i < count; i++) yield part;
}

test("a small answer is sent without being counted", async () => {
  const budget = new Budget(1);
  await budget.take(1);
  const text = "x".repeat(ANSWER_UNCOUNTED_MAX_BYTES);
  const body = await new Outbox(budget).ofRead({} as Exchange, async () => whole(text)); // it is not looked at
  expect(body).toBe(text);
});

describe.each([
  ["one byte more than small", "x".repeat(ANSWER_UNCOUNTED_MAX_BYTES + 1)],
  ["of characters that are cut between slices", `x${"😀é\u0001".repeat(200_000)}`],
])("a large answer, %s", (_, text) => {
  test.each([
    ["read", (outbox: Outbox, exchange: Exchange) => outbox.ofRead(exchange, async () => whole(text))],
    ["written", async (outbox: Outbox, exchange: Exchange) => outbox.ofWrite(exchange, text)],
  ])("%s, arrives complete and releases its room", async (_kind, asked) => {
    const budget = new Budget(MIB);
    const { port } = serve(new Outbox(budget), asked);
    const answer = await fetch(`http://127.0.0.1:${port}/`);
    expect(await answer.text()).toBe(text);
    await until(() => budget.taken === 0);
  });
});

test("an answer in parts holds one part at a time", async () => {
  const budget = new Budget(MIB);
  const part = `{"rows":[${JSON.stringify("x".repeat(100_000))}]}`;
  let most = 0;
  const seen = async function* (): AsyncGenerator<string> {
    for await (const one of repeated(part, 30)) {
      most = Math.max(most, budget.taken);
      yield one;
    }
  };
  const { port } = serve(new Outbox(budget), (outbox, exchange) =>
    outbox.ofRead(exchange, async () => ({ first: part, rest: seen() })),
  );
  const body: unknown = await (await fetch(`http://127.0.0.1:${port}/`)).json();
  expect(body).toEqual({ rows: Array.from({ length: 31 }, () => "x".repeat(100_000)) });
  await until(() => budget.taken === 0);
  expect(most).toBeLessThan(2 * part.length);
});

test("an answer without room waits and loads again, and is refused when no room comes", async () => {
  const budget = new Budget(HUGE);
  let loads = 0;
  const text = "x".repeat(HUGE);
  const load: Asked = (outbox, exchange) => outbox.ofRead(exchange, async () => (loads++, whole(text)));
  const { port } = serve(new Outbox(budget), load);
  const impatient = serve(new Outbox(budget, BRISK), load); // on the same budget
  const staller = await stall(port);
  await until(() => budget.taken === HUGE);
  expect((await fetch(`http://127.0.0.1:${impatient.port}/`)).status).toBe(503);
  expect([loads, budget.taken]).toEqual([2, HUGE]);
  const waiting = fetch(`http://127.0.0.1:${port}/`);
  await until(() => budget.isScarce);
  staller.hangUp();
  expect(await (await waiting).text()).toBe(text);
  expect(loads).toBe(4); // the staller's, the refused one's, and this one's two
  await until(() => budget.taken === 0);
});

test("an answer that nobody reads is cut off, and its room is released before that", async () => {
  const budget = new Budget(HUGE);
  const text = "x".repeat(HUGE);
  const { port } = serve(new Outbox(budget, BRISK), async (outbox, exchange) =>
    outbox.ofWrite(exchange, text),
  );
  const stallers = await Promise.all([1, 2, 3].map(() => stall(port)));
  await until(() => budget.taken === 3 * HUGE); // what was written cannot wait
  await until(() => budget.taken === 0);
  const server = servers[0] as unknown as { pendingRequests: number };
  await until(() => server.pendingRequests === 0); // far sooner than after the idle timeout
  for (const staller of stallers) staller.hangUp();
});

test("an answer whose caller hangs up releases its room at once", async () => {
  const budget = new Budget(HUGE);
  const { port } = serve(new Outbox(budget), async (outbox, exchange) =>
    outbox.ofWrite(exchange, "x".repeat(HUGE)),
  );
  const staller = await stall(port);
  await until(() => budget.taken === HUGE);
  staller.hangUp();
  await until(() => budget.taken === 0);
});

test("an answer that fails in the middle releases its room and does not look complete", async () => {
  const budget = new Budget(HUGE);
  const part = `{"rows":["x"]}`;
  const { port } = serve(new Outbox(budget), (outbox, exchange) =>
    outbox.ofRead(exchange, async () => ({ first: part, rest: failing(part) })),
  );
  const answer = await fetch(`http://127.0.0.1:${port}/`);
  expect(await answer.text().catch(() => "broken")).toBe("broken");
  await until(() => budget.taken === 0);
});

test("a second load that fails releases the room", async () => {
  const budget = new Budget(MIB);
  await budget.take(MIB);
  let loads = 0;
  const { port } = serve(new Outbox(budget), (outbox, exchange) =>
    outbox.ofRead(exchange, async () => {
      if (loads++ > 0) throw new Error("the store is away");
      return whole("x".repeat(MIB));
    }),
  );
  const answer = fetch(`http://127.0.0.1:${port}/`);
  await until(() => budget.isScarce);
  budget.give(MIB);
  expect((await answer).status).toBe(500);
  expect(budget.taken).toBe(0);
});

test("HEAD holds no room", async () => {
  const budget = new Budget(HUGE);
  const { port } = serve(new Outbox(budget), (outbox, exchange) =>
    outbox.ofRead(exchange, async () => whole("x".repeat(HUGE))),
  );
  expect((await fetch(`http://127.0.0.1:${port}/`, { method: "HEAD" })).status).toBe(200);
  expect(budget.taken).toBe(0);
});
