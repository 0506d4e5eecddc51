/** The worker of the typed client against a real hub: faults, refusals, restarts, and shutdown. */
import { afterAll, beforeAll, expect, spyOn, test } from "bun:test";
import { rmSync } from "node:fs";
import {
  type Event,
  type Handler,
  LuxHub,
  LuxHubError,
  type TaskAnswer,
  WorkerOutage,
  type WorkerEvent,
  type WorkerOptions,
} from "../../src/client/index.ts";
import { until } from "../e2e/program.ts";
import { ADMIN_KEY, SECRET, type TestHub, newDataDir, startHub } from "../support/hub.ts";
import { FaultyProxy } from "./faulty-proxy.ts";

const RESULT = { problem: "p", improvement: "i", lesson: "l" };
const QUICK = { firstPauseMs: 5, maxPauseMs: 50 };

const dataDir = newDataDir();
let server: TestHub;
let proxy: FaultyProxy;
let hub: LuxHub;

beforeAll(async () => {
  server = await startHub({ dataDir });
  proxy = new FaultyProxy(server.port(), 7);
  hub = new LuxHub({ url: proxy.url, secret: SECRET, adminKey: ADMIN_KEY, retry: QUICK });
});

afterAll(async () => {
  proxy[Symbol.dispose]();
  await server.close();
  rmSync(dataDir, { recursive: true, force: true });
});

/** A worker, and what it tells. */
class TestWorker implements AsyncDisposable {
  readonly events: WorkerEvent[] = [];
  readonly stop = new AbortController();
  readonly release = new AbortController();
  readonly ended: Promise<void>;

  constructor(node: string, handler: Handler, options: WorkerOptions = {}, by: LuxHub = hub) {
    const { signal } = this.stop;
    const onEvent = (event: WorkerEvent): void => void this.events.push(event);
    this.ended = by.worker(node, handler, {
      signal,
      release: this.release.signal,
      onEvent,
      capabilities: node,
      ...options,
    });
  }

  count(kind: WorkerEvent["kind"]): number {
    return this.events.filter((event) => event.kind === kind).length;
  }

  async heard(kind: WorkerEvent["kind"]): Promise<void> {
    await until(() => this.count(kind) > 0);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.release.abort();
    await this.ended.catch(() => undefined);
  }
}

/** A task for the worker of that name. */
function create(
  node: string,
  fields: Partial<Parameters<LuxHub["tasks"]["create"]>[0]> = {},
): Promise<TaskAnswer> {
  return hub.tasks.create({ title: "t", description: "d", task_type: node, ...fields });
}

async function eventsOf(taskId: string): Promise<readonly Event["kind"][]> {
  const { events } = await hub.call("events", { since: 0, task_id: taskId, limit: 1_000 });
  return events.map(({ kind }) => kind);
}

test("each task is done once, through faults and a restart of the hub", async () => {
  const runs = new Map<string, number>();
  await using worker = new TestWorker(
    "many",
    async ({ task_id }) => {
      runs.set(task_id, (runs.get(task_id) ?? 0) + 1);
      await Bun.sleep(10);
      return { ...RESULT, of: task_id };
    },
    { concurrency: 3 },
  );
  const tasks: string[] = [];
  for (let i = 0; i < 40; i++) tasks.push((await create("many")).task_id);
  await until(() => worker.count("completed") > 5);
  await server.close();
  server = await startHub({ dataDir });
  proxy.port = server.port();
  await until(() => worker.count("completed") === tasks.length);
  expect([...runs].toSorted()).toEqual(tasks.map((id) => [id, 1] as [string, number]).toSorted());
  for (const task_id of tasks)
    expect((await hub.tasks.get({ task_id })).task.result).toEqual({ ...RESULT, of: task_id });
  expect(proxy.faults).toBeGreaterThan(10);
  worker.stop.abort();
  await worker.ended;
  expect((await hub.nodes.get({ node_id: "many" })).node).toMatchObject({
    status: "offline",
    max_tasks: 3,
    auto_assign: false,
  });
});

test.each([
  ["a number that JSON has not", () => ({ output: { mean: NaN } }), /"mean" is NaN/],
  ["a Map", () => new Map([["sum", 3]]), /"output" is of class Map/],
  ["a function", () => ({ output: [() => 1] }), /"0" is a function/],
  ["a BigInt", () => ({ output: 1n }), /BigInt/],
])("%s in a result is an error that names it, not an empty result", async (_, given, said) => {
  const node = `empties_${Bun.randomUUIDv7().slice(-12)}`;
  const { task_id } = await create(node, { max_attempts: 1 });
  await using worker = new TestWorker(node, given);
  await worker.heard("failed");
  expect((await hub.tasks.get({ task_id })).task.failure?.message).toMatch(said);
});

const FILLED = { problem: "the title", lesson: "none" };
test.each([
  [" ", { ...FILLED, improvement: "no output", output: " " }],
  [undefined, { ...FILLED, improvement: "no output", output: null }],
  [null, { ...FILLED, improvement: "no output", output: null }],
  [42, { ...FILLED, improvement: "42", output: 42 }],
])("whatever a handler gives is a result: %j", async (given, result) => {
  await using _worker = new TestWorker("gives", () => given);
  const { task_id } = await create("gives", { title: "the title" });
  expect((await hub.tasks.get({ task_id, wait: 60 })).task).toMatchObject({ attempts: 0, result });
});

test("an output of data that is too large for a result becomes a file", async () => {
  const given = { output: "x", many: Array(40_000).fill(1) };
  await using _worker = new TestWorker("large", () => given);
  const { task_id } = await create("large");
  const { task } = await hub.tasks.get({ task_id, wait: 60 });
  const file_id = String(task.result?.["output_file"]);
  expect(task.files).toEqual([file_id]);
  expect(JSON.parse(await (await hub.files.download({ file_id })).text())).toMatchObject(given);
});

test("with capabilities a worker takes no task without a type, unless it says so", async () => {
  const { task_id } = await hub.tasks.create({ title: "t", description: "d" });
  const typed = await create("typed");
  {
    await using worker = new TestWorker("typed", () => RESULT);
    await worker.heard("completed");
    expect((await hub.tasks.get({ task_id: typed.task_id })).task.status).toBe("completed");
  }
  expect((await hub.tasks.get({ task_id })).task).toMatchObject({ status: "open" });
  await using _worker = new TestWorker("typed", () => RESULT, { untyped: true });
  expect((await hub.tasks.get({ task_id, wait: 60 })).task.status).toBe("completed");
});

test("an outage of a worker is no attempt of a task: it goes back, and the worker rests", async () => {
  const { task_id } = await create("outage", { title: "first", max_attempts: 1, priority: "high" });
  const second = await create("outage", { title: "second" });
  const handler: Handler = () => {
    throw new WorkerOutage("429: slow down", { isRateLimit: true });
  };
  await using worker = new TestWorker("outage", handler);
  await worker.heard("released");
  expect(worker.events).toContainEqual(expect.objectContaining({ kind: "resting", forMs: 60_000 }));
  expect((await hub.tasks.get({ task_id })).task).toMatchObject({ status: "open", attempts: 0 });
  const { events } = await hub.call("events", { since: 0, task_id, kind: "task.released" });
  expect(events).toMatchObject([{ data: { reason: "429: slow down" } }]);
  const { reasons } = await hub.tasks.explain({ task_id });
  expect(reasons.map(({ code }) => code)).toEqual(["rate"]);
  worker.stop.abort();
  await worker.ended;
  expect((await hub.tasks.get({ task_id: second.task_id })).task).toMatchObject({
    status: "open",
    started_at: null,
  });
  await hub.limits.delete({ key: "outage" });
});

/**
 * The client is told of each lease that it is one of a second: it extends the lease often, and a lease of ten minutes
 * does not end before that on any machine.
 */
async function fetchShortLease(url: string, init?: RequestInit): Promise<Response> {
  const response = await fetch(url, init);
  if (!response.ok || !url.endsWith("/task/next")) return response;
  const { task, ...rest } = Object(await response.json());
  const hasLease = task !== null && task.timeout_s !== null;
  return Response.json({ ...rest, task: hasLease ? { ...task, timeout_s: 1 } : task });
}

test("a handler reports usage, each step once; a task that costs too much is lost", async () => {
  let drops = 1;
  const flaky: typeof fetch = Object.assign(
    async (...[input, init]: Parameters<typeof fetch>) => {
      const response = await fetch(input, init);
      // The answer of the first report is lost.
      if (!String(input).endsWith("/task/extend") || drops-- <= 0) return response;
      return Response.json({ success: false, error: "internal_error", detail: "lost" }, { status: 500 });
    },
    { preconnect: fetch.preconnect },
  );
  const by = new LuxHub({
    url: `http://127.0.0.1:${server.port()}`,
    secret: SECRET,
    fetch: flaky,
    retry: { forMs: 0 },
  });
  const { task_id } = await create("costly", { max_cost_usd: 1, max_attempts: 1 });
  const step = { model: "large", input_tokens: 10, output_tokens: 1 };
  const left: unknown[] = [];
  const handler: Handler = async (_, { reportUsage, signal }) => {
    left.push(await reportUsage({ ...step, cost_usd: 0.25 }));
    left.push(await reportUsage(Array.from({ length: 25 }, () => ({ ...step, cost_usd: 0.01 }))));
    await reportUsage({ ...step, input_tokens: -1 }).catch((error) => left.push(error.code));
    await reportUsage({ ...step, cost_usd: 1 }).catch((error) => left.push(error.code));
    left.push(signal.aborted);
    throw new Error("it is over");
  };
  await using worker = new TestWorker("costly", handler, {}, by);
  await worker.heard("lost");
  await until(() => left.length === 5);
  expect(left).toEqual([null, 0.5, "invalid_request", "task_failed", true]);
  const { task } = await hub.tasks.get({ task_id });
  expect(task).toMatchObject({ status: "failed", failure: { kind: "budget" }, attempts: 1 });
  expect(task.usage).toMatchObject({ cost_usd: 1.5, reports: 27, input_tokens: 270 });
});

test("the last usage comes with the result", async () => {
  const { task_id } = await create("last-step");
  const refused: typeof fetch = Object.assign(
    async (...[input, init]: Parameters<typeof fetch>) =>
      String(input).endsWith("/task/extend")
        ? Response.json({ success: false, error: "internal_error", detail: "no" }, { status: 500 })
        : fetch(input, init),
    { preconnect: fetch.preconnect },
  );
  const by = new LuxHub({
    url: `http://127.0.0.1:${server.port()}`,
    secret: SECRET,
    fetch: refused,
    retry: { forMs: 0 },
  });
  const handler: Handler = async (_, { reportUsage }) => {
    expect(await reportUsage({ model: "m", input_tokens: 1, output_tokens: 2 })).toBeNull();
    return RESULT;
  };
  await using worker = new TestWorker("last-step", handler, {}, by);
  await worker.heard("completed");
  expect((await hub.tasks.get({ task_id })).task.usage).toMatchObject({ reports: 1, without_cost: 1 });
});

test("usage that cannot be sent at once is sent before a question gives the task back", async () => {
  let refusals = 2;
  const flaky: typeof fetch = Object.assign(
    async (...[input, init]: Parameters<typeof fetch>) =>
      String(input).endsWith("/task/extend") && refusals-- > 0
        ? Response.json({ success: false, error: "internal_error", detail: "no" }, { status: 500 })
        : fetch(input, init),
    { preconnect: fetch.preconnect },
  );
  const url = `http://127.0.0.1:${server.port()}`;
  const by = new LuxHub({ url, secret: SECRET, fetch: flaky, retry: { forMs: 0 } });
  const { task_id } = await create("costs-and-parks");
  const handler: Handler = async (_, { ask, reportUsage }) => {
    await reportUsage({ model: "m", input_tokens: 1, output_tokens: 2 }, { later: true });
    await ask("Which?", { park: true });
    return RESULT;
  };
  await using worker = new TestWorker("costs-and-parks", handler, {}, by);
  await worker.heard("parked");
  expect(refusals).toBeLessThan(0);
  expect((await hub.tasks.get({ task_id })).task.usage).toMatchObject({ reports: 1 });
});

test("what a handler writes can be read while it runs, and all of it before its result; the reader follows", async () => {
  const { task_id } = await create("chatty", { backoff_s: 0 });
  const line = (attempt: number, i: number): string => `attempt ${attempt}, line ${i} ✓\n`;
  const text = (attempt: number): string =>
    Array.from({ length: 3_000 }, (_, i) => line(attempt, i)).join("");
  const read: string[] = [];
  const begun = Promise.withResolvers<void>();
  let attempt = 0;
  const handler: Handler = async (_, { output }) => {
    attempt++;
    for (let i = 0; i < 3_000; i++) {
      output(line(attempt, i));
      if (i === 2_000) await begun.promise; // the reader has some of it while the handler runs
    }
    if (attempt === 1) throw new Error("once more");
    return RESULT;
  };
  await using worker = new TestWorker("chatty", handler);
  for await (const { attempt: epoch, data, dropped } of hub.output(task_id, { follow: true })) {
    begun.resolve();
    expect(dropped).toBe(0);
    read[epoch] = (read[epoch] ?? "") + data;
  }
  expect(read.filter((one) => one !== undefined)).toEqual([text(1), text(2)]);
  await worker.heard("completed");
  expect((await hub.tasks.get({ task_id })).task.status).toBe("completed");
});

test("a lease is extended while the handler works, and its loss aborts the handler", async () => {
  const leaseEnds: number[] = [];
  const impatient = new LuxHub({
    url: server.base(),
    secret: SECRET,
    fetch: async (url, init) => {
      const response = await fetchShortLease(url, init);
      if (response.ok && url.endsWith("/task/extend"))
        leaseEnds.push(Date.parse(Object(await response.clone().json()).lease.expires_at));
      return response;
    },
  });
  let lost: unknown = null;
  const handler: Handler = async ({ title }, { signal, extend }) => {
    if (title === "long") {
      await extend("begun");
      await until(() => leaseEnds.length > 2); // twice without the handler
      return RESULT;
    }
    await new Promise((resolve) => signal.addEventListener("abort", resolve));
    lost = signal.reason;
    return RESULT;
  };
  await using worker = new TestWorker("leases", handler, {}, impatient);
  const { task_id: long } = await create("leases", { title: "long", timeout_s: 600 });
  await worker.heard("completed");
  expect((await hub.tasks.get({ task_id: long })).task).toMatchObject({ attempts: 0, progress: "begun" });
  expect(new Set(leaseEnds.slice(0, 3)).size).toBe(3);
  expect(leaseEnds).toEqual(leaseEnds.toSorted());

  const { task_id: taken } = await create("leases", { title: "taken", timeout_s: 600 });
  await until(() => worker.count("started") === 2);
  await hub.tasks.cancel({ task_id: taken });
  await worker.heard("lost");
  expect(lost).toMatchObject({ name: "LuxHubError", status: 409 });
  expect(await eventsOf(taken)).not.toContain("task.completed");
});

test("an extension that comes after the result is no fault", async () => {
  const held = Promise.withResolvers<void>();
  const done = Promise.withResolvers<void>();
  const refused = Promise.withResolvers<number>();
  const slow: typeof fetch = Object.assign(
    async (...[input, init]: Parameters<typeof fetch>) => {
      const url = String(input);
      if (url.endsWith("/task/complete")) {
        const response = await fetch(input, init);
        done.resolve();
        await refused.promise;
        await Bun.sleep(50); // the client reads the refusal first
        return response;
      }
      if (!url.endsWith("/task/extend")) return fetchShortLease(url, init);
      held.resolve();
      await done.promise;
      const response = await fetch(input, init);
      refused.resolve(response.status);
      return response;
    },
    { preconnect: fetch.preconnect },
  );
  const by = new LuxHub({ url: `http://127.0.0.1:${server.port()}`, secret: SECRET, fetch: slow });
  await create("outrun", { timeout_s: 600 });
  const handler: Handler = async () => {
    await held.promise;
    return RESULT;
  };
  await using worker = new TestWorker("outrun", handler, {}, by);
  await worker.heard("completed");
  expect(await refused.promise).toBe(409);
  expect(worker.count("fault")).toBe(0);
});

test("a heartbeat finds the loss of a task without a timeout", async () => {
  // The hub asks for a heartbeat a minute: this client is told to send them faster.
  const impatient = new LuxHub({
    url: server.base(),
    secret: SECRET,
    fetch: async (url, init) => {
      if (url.includes("/agent/sse")) return Response.json({ error: "forbidden" }, { status: 403 }); // or it hears of it
      const response = await fetch(url, init);
      if (!url.endsWith("/node/register")) return response;
      return Response.json(Object.assign(Object(await response.json()), { heartbeat_interval: 0.1 }));
    },
  });
  await using worker = new TestWorker(
    "beats",
    (_, { signal }) =>
      new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason))),
    {},
    impatient,
  );
  const { task_id } = await create("beats");
  await worker.heard("started");
  await hub.tasks.revoke({ task_id });
  await worker.heard("lost");
});

test("a task that is cancelled before the response that hands it out arrives is lost at once", async () => {
  const seen = Promise.withResolvers<void>();
  const slow = new LuxHub({
    url: server.base(),
    secret: SECRET,
    fetch: async (url, init) => {
      const response = await fetch(url, init);
      if (url.includes("/agent/sse")) {
        const watch = new TransformStream<Uint8Array, Uint8Array>({
          transform: (chunk, to) => {
            to.enqueue(chunk);
            if (new TextDecoder().decode(chunk).includes("task.failed")) seen.resolve();
          },
        });
        return new Response(response.body?.pipeThrough(watch) ?? null, response);
      }
      if (!url.endsWith("/task/next")) return response;
      const answer = Object(await response.json());
      if (answer.task !== null) {
        await hub.tasks.cancel({ task_id: answer.task.task_id });
        await seen.promise;
        await hub.status(); // the worker has read the event by then
      }
      return Response.json(answer);
    },
  });
  await using worker = new TestWorker(
    "early",
    (_, { signal }) =>
      new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason))),
    {},
    slow,
  );
  await create("early");
  await worker.heard("lost");
});

test("a heartbeat finds that a hub lacks the end of a task, as a copy may, and gives the task back", async () => {
  let isForgotten = false;
  const forgetful = new LuxHub({
    url: server.base(),
    secret: SECRET,
    fetch: async (url, init) => {
      if (url.endsWith("/task/complete") && !isForgotten) {
        isForgotten = true;
        return Response.json({ success: true, lux_paid: 1 });
      }
      const response = await fetch(url, init);
      if (!url.endsWith("/node/register")) return response;
      return Response.json(Object.assign(Object(await response.json()), { heartbeat_interval: 0.1 }));
    },
  });
  const running = Promise.withResolvers<void>();
  await using worker = new TestWorker(
    "forgotten",
    ({ title }) => (title === "runs" ? running.promise : RESULT),
    { concurrency: 2 },
    forgetful,
  );
  const runs = await create("forgotten", { title: "runs" });
  await worker.heard("started");
  const { task_id } = await create("forgotten");
  await until(async () => (await hub.tasks.get({ task_id })).task.status === "completed");
  expect(isForgotten).toBe(true);
  expect(await eventsOf(task_id)).toContain("task.released");
  running.resolve();
  await until(() => worker.count("completed") === 3);
  expect(await eventsOf(runs.task_id)).not.toContain("task.released");
});

/** A client that counts its requests, and answers those of one path with `refusal`. */
function counting(refusedPath = "none", refusal = 403): { by: LuxHub; requests: Map<string, number> } {
  const requests = new Map<string, number>();
  const by = new LuxHub({
    url: server.base(),
    secret: SECRET,
    fetch: async (url, init) => {
      const path = new URL(url).pathname.replace("/api/v1/", "");
      requests.set(path, (requests.get(path) ?? 0) + 1);
      if (path !== refusedPath) return fetchShortLease(url, init);
      return Response.json({ error: "forbidden", detail: "Not here." }, { status: refusal });
    },
  });
  return { by, requests };
}

test("a cancelled task is lost at once, is not extended again, and the next one follows", async () => {
  const { by, requests } = counting();
  const graceMs = 1_500;
  await using worker = new TestWorker(
    "cancelled",
    ({ title }) => (title === "deaf" ? new Promise(() => {}) : RESULT),
    { graceMs },
    by,
  );
  const { task_id } = await create("cancelled", { title: "deaf", timeout_s: 600 });
  await create("cancelled", { title: "next" });
  await worker.heard("started");
  await hub.tasks.cancel({ task_id });
  await worker.heard("lost"); // the next heartbeat comes a minute later
  const extended = requests.get("task/extend");
  await worker.heard("completed"); // after the grace, in which the lease would be extended three times
  expect(requests.get("task/extend")).toBe(extended);
  expect(requests.get("node/heartbeat") ?? 0).toBe(0);
  expect(worker.events.map(({ kind }) => kind)).toEqual([
    "registered",
    "started",
    "lost",
    "started",
    "completed",
  ]);
});

test("a handler hears at once that the hub has ended its task", async () => {
  const { by, requests } = counting();
  let reason: unknown;
  const handler: Handler = (_, { signal }) =>
    new Promise((_resolve, reject) =>
      signal.addEventListener("abort", () => reject((reason = signal.reason))),
    );
  await using worker = new TestWorker("hears", handler, { timeoutMs: null }, by);
  await create("hears", { max_run_s: 1, max_attempts: 1 });
  await worker.heard("lost");
  expect(reason).toBeInstanceOf(LuxHubError);
  expect(requests.get("node/heartbeat") ?? 0).toBe(0);
});

test("a worker whose event stream is refused says so once, and asks now and then", async () => {
  const { by, requests } = counting("agent/sse");
  const wait = globalThis.setTimeout;
  using _quicker = spyOn(globalThis, "setTimeout").mockImplementation(
    Object.assign((run: () => void, ms = 0) => wait(run, ms === 30_000 ? 50 : ms), wait),
  );
  await using worker = new TestWorker(
    "unheard",
    (_, { signal }) =>
      new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason))),
    {},
    by,
  );
  const { task_id } = await create("unheard");
  await worker.heard("started");
  await hub.tasks.cancel({ task_id });
  await worker.heard("lost");
  await until(() => (requests.get("agent/sse") ?? 0) > 2);
  expect(worker.count("fault")).toBe(1);
});

test("a handler that takes too long is a failed attempt, and the worker goes on", async () => {
  const reasons: unknown[] = [];
  await using worker = new TestWorker(
    "slow",
    ({ title }, { signal }) => {
      if (title === "next") return RESULT;
      return new Promise((resolve) =>
        signal.addEventListener("abort", () => {
          reasons.push(signal.reason);
          if (title === "late") resolve(RESULT); // too late: it has timed out
        }),
      );
    },
    { timeoutMs: 200, graceMs: 200 },
  );
  for (const title of ["hangs", "late", "next"]) await create("slow", { title, max_attempts: 1 });
  await worker.heard("completed");
  expect(reasons.map(String)).toEqual(Array(2).fill("TimeoutError: The handler timed out after 0.2 s."));
  const { tasks } = await hub.tasks.list({ task_type: "slow" });
  expect(tasks.map(({ status, failure }) => [status, failure?.kind, failure?.message])).toEqual([
    ["completed", undefined, undefined],
    ["failed", "failed", "The handler timed out after 0.2 s."],
    ["failed", "failed", "The handler timed out after 0.2 s."],
  ]);
});

test("a result survives a hub that cannot write it", async () => {
  let faults = 0;
  const unlucky = new LuxHub({
    url: server.base(),
    secret: SECRET,
    fetch: async (url, init) => {
      if (!url.endsWith("/task/complete") || faults++ > 0) return fetch(url, init);
      const problem = { success: false, error: "insufficient_storage", detail: "The disk is full." };
      return Response.json(problem, { status: 507 });
    },
  });
  await using worker = new TestWorker("disk", () => RESULT, {}, unlucky);
  const { task_id } = await create("disk");
  await worker.heard("completed");
  expect(worker.events).toContainEqual({ kind: "fault", error: expect.objectContaining({ status: 507 }) });
  expect((await hub.tasks.get({ task_id })).task).toMatchObject({ status: "completed", attempts: 0 });
});

test("a worker that must end now does so also when its hub is away", async () => {
  using portal = new FaultyProxy(server.port());
  const by = new LuxHub({ url: portal.url, secret: SECRET });
  const handler: Handler = (_, { signal }) =>
    new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
  const graceMs = 15_000;
  await using worker = new TestWorker("away", handler, { graceMs }, by);
  await create("away");
  await worker.heard("started");
  portal[Symbol.dispose]();
  worker.stop.abort();
  worker.release.abort();
  const isOver = await Promise.race([worker.ended.then(() => true), Bun.sleep(graceMs).then(() => false)]);
  expect(isOver).toBe(true); // its handler has ended, so it does not wait for the grace
});

test("a task that an earlier worker has just completed does not keep the others from being given back", async () => {
  await hub.nodes.register({ node_id: "late", name: "L", capabilities: "late" });
  const begun: string[] = [];
  for (let i = 0; i < 4; i++) begun.push((await create("late")).task_id);
  for (const task_id of begun) await hub.tasks.claim({ task_id, node_id: "late" });
  let isFirst = true;
  const late: typeof fetch = Object.assign(
    async (...[input, init]: Parameters<typeof fetch>) => {
      if (String(input).endsWith("/task/release") && isFirst) {
        isFirst = false;
        const { task_id } = JSON.parse(String(init?.body));
        await hub.tasks.complete({ task_id, node_id: "late", result: RESULT });
      }
      return fetch(input, init);
    },
    { preconnect: fetch.preconnect },
  );
  const by = new LuxHub({ url: `http://127.0.0.1:${server.port()}`, secret: SECRET, fetch: late });
  const { promise: finish, resolve } = Promise.withResolvers<void>();
  const handler: Handler = async () => {
    await finish;
    return RESULT;
  };
  await using worker = new TestWorker("late", handler, {}, by);
  const statuses = async (): Promise<readonly string[]> =>
    Promise.all(begun.map(async (task_id) => (await hub.tasks.get({ task_id })).task.status));
  await until(async () => (await statuses()).toSorted().join() === "assigned,completed,open,open");
  expect(worker.count("fault")).toBe(0);
  resolve();
});

test("it rejects when the hub does not let it work", async () => {
  const stranger = new LuxHub({ url: server.base(), secret: "wrong" });
  await expect(stranger.worker("stranger", () => RESULT)).rejects.toMatchObject({
    status: 401,
    code: "unauthorized",
  });
});
