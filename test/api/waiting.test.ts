/** Long polls, blocking receives and streams: they have no idle timeout, and their number is limited. */
import { describe, expect, spyOn, test } from "bun:test";
import { shareOfAddress, shareOfKey } from "../../src/api/caller-shares.ts";
import { EventStreams } from "../../src/api/stream.ts";
import { LongPolls } from "../../src/api/long-poll.ts";
import { WAIT_SHARES } from "../../src/domain/limits.ts";
import type { KeyRecord } from "../../src/domain/model.ts";
import type { Exchange } from "../../src/http/exchange.ts";
import { Problem } from "../../src/http/problem.ts";
import { Feed } from "../../src/service/feed.ts";
import type { KeyRing } from "../../src/service/keys.ts";
import { RawConnection } from "../e2e/raw.ts";
import { SECRET, startHub } from "../support/hub.ts";
import { addKey } from "./key-commands.ts";
import { hold, ok, rawPost, refused, until } from "./scene.ts";

const RECEIVE = { blocking: true, timeout: 60 };
const HEAD = `HTTP/1.1\r\nHost: hub\r\nX-Matrix-Secret: ${SECRET}\r\n\r\n`;

/** The paths of the requests whose idle timeout was turned off, in order. */
function watchSilence(): { readonly paths: readonly string[]; restore(): void } {
  const paths: string[] = [];
  const serve: (options: Bun.Serve.Options<undefined>) => Bun.Server<undefined> = Bun.serve;
  const spy = spyOn(Bun, "serve").mockImplementation(((options: Bun.Serve.Options<undefined>) => {
    const server = serve(options);
    const timeout = server.timeout.bind(server);
    server.timeout = (request, seconds) => {
      if (seconds === 0) paths.push(new URL(request.url).pathname.replace("/api/v1", ""));
      timeout(request, seconds);
    };
    return server;
  }) as typeof Bun.serve);
  return { paths, restore: () => spy.mockRestore() };
}

test("blocked receives, polls and streams have no idle timeout; other calls do", async () => {
  const silent = watchSilence();
  try {
    await using hub = await startHub();
    for (const nodeId of ["n1", "n2"]) await hub.addNode(nodeId);
    const at = hub.port();
    const waits = await hold(
      at,
      rawPost("/message/receive", { node_id: "n1", blocking: true, timeout: 300 }),
    );
    await until("the receive waits", async () => silent.paths.length === 1);
    const poll = await hold(at, `GET /api/v1/poll?timeout=300 ${HEAD}`);
    await until("the poll waits", async () => silent.paths.length === 2);
    const stream = await hold(at, `GET /api/v1/agent/sse?node_id=n2 ${HEAD}`);
    await until("the stream is open", async () => silent.paths.length === 3);
    await hub.post("/message/receive", { node_id: "n2" });
    await hub.get("/status");
    await hub.send("op", "n1");
    expect((await waits.answered).status).toBe(200);
    for (const one of [poll, stream]) one.hangUp();
    expect(silent.paths).toEqual(["/message/receive", "/poll", "/agent/sse"]);
  } finally {
    silent.restore();
  }
});

type Key = Pick<KeyRecord, "keyId" | "nodeId" | "role">;

/** Calls that wait, as the pipeline holds them; the keys and exchanges have only what is asked of them. */
function openLongPolls() {
  const keys = { hold: () => () => {} } as unknown as KeyRing;
  const silence: unknown[] = [];
  const polls = new LongPolls(keys);
  /** Its outcome while it waits is null. */
  const call = (key: Key | null, address = "a") => {
    const ending = Promise.withResolvers<void>();
    const exchange = {
      request: { signal: new AbortController().signal },
      server: { timeout: (_: unknown, seconds: number) => silence.push(seconds) },
    } as unknown as Exchange;
    const caller = { shownKey: key as KeyRecord | null }; // of it only its share is asked
    const share = key === null ? shareOfAddress(address) : shareOfKey(key);
    const ended = polls.hold(exchange, caller, share, () => ending.promise);
    return { ended, end: ending.resolve };
  };
  const refusal = async (one: { ended: Promise<void> }) => {
    const error = await one.ended.catch((thrown: unknown) => thrown);
    if (!(error instanceof Problem)) throw new Error(`was not refused: ${String(error)}`);
    expect(error.extras.headers).toEqual({ "Retry-After": "1" });
    return [error.status, error.code];
  };
  return { call, refusal, silence };
}

describe("the number of waiting calls", () => {
  const FLEET: Key = { keyId: "fleet", nodeId: null, role: "full" };
  const OTHER: Key = { ...FLEET, keyId: "other" };
  const ROBOT: Key = { ...FLEET, keyId: "robot", nodeId: "n1" };
  const EYE: Key = { ...FLEET, keyId: "eye", role: "viewer" };
  type Held = { readonly ended: Promise<void>; end(): void };
  const endAll = (held: readonly Held[]) => Promise.all(held.map(({ ended, end }) => (end(), ended)));

  test("is 20,000 for callers with a secret, and separately 2,000 for those without", async () => {
    const { call, refusal, silence } = openLongPolls();
    const known = Array.from({ length: WAIT_SHARES.keys }, (_, i) => call(i % 2 ? FLEET : OTHER));
    const anonymous = Array.from({ length: WAIT_SHARES.addresses }, (_, i) => call(null, `a${i % 4}`));
    expect(await refusal(call(FLEET))).toEqual([503, "overloaded"]);
    expect(await refusal(call(null, "b"))).toEqual([503, "overloaded"]);
    expect(silence).toHaveLength(22_000);
    known[0]?.end();
    await known[0]?.ended;
    known.push(call(FLEET));
    await endAll([...known, ...anonymous]);
  });

  test("is 15,000 of one key that is neither bound nor a viewer: a fleet may have one, and others have theirs", async () => {
    const { call, refusal } = openLongPolls();
    const waiting = Array.from({ length: 15_000 }, () => call(FLEET));
    expect(await refusal(call(FLEET))).toEqual([429, "too_many_calls"]);
    waiting.push(call(OTHER), call(ROBOT), call(EYE));
    await endAll(waiting);
  });

  test("is 500 of one address without a secret, of one key bound to a node, and of one viewer", async () => {
    const { call, refusal } = openLongPolls();
    const waiting = [null, ROBOT, EYE].flatMap((key) => Array.from({ length: 500 }, () => call(key)));
    for (const key of [null, ROBOT, EYE]) expect(await refusal(call(key))).toEqual([429, "too_many_calls"]);
    const others = [call(null, "b"), call({ ...ROBOT, keyId: "robot-2" }), call(FLEET)];
    waiting[0]?.end();
    await waiting[0]?.ended;
    others.push(call(null));
    await endAll([...waiting, ...others]);
  });
});

test("anonymous polls leave room for calls with a secret, and the other way round", async () => {
  await using hub = await startHub({ variants: ["A"] });
  await hub.addNode("n1");
  const poll = "GET /api/v1/poll?timeout=60 HTTP/1.1\r\nHost: hub\r\n\r\n";
  const waiting = await Promise.all(
    Array.from({ length: WAIT_SHARES.address }, () => hold(hub.port(), poll)),
  );
  await ok(hub.get("/status")); // came later, so they wait
  await refused(hub.get("/poll?timeout=60", { headers: { "X-Matrix-Secret": null } }), 429, "too_many_calls");
  await refused(
    hub.get("/poll?timeout=60", { headers: { "X-Matrix-Secret": "wrong" } }),
    429,
    "too_many_calls",
  );
  const known = [hub.get("/poll?timeout=60"), hub.post("/message/receive", { ...RECEIVE, node_id: "n1" })];
  await ok(hub.get("/status"));
  await hub.addTask();
  await hub.send("op", "n1");
  for (const answer of [...known, ...waiting.map(({ answered }) => answered)])
    expect((await answer).status).toBe(200);
});

test("waits of one bound key leave room for others, and end with their caller, also with an Idempotency-Key", async () => {
  await using hub = await startHub({ variants: ["A"] });
  for (const nodeId of ["n1", "n2"]) await hub.addNode(nodeId);
  const robot = await addKey(hub, "robot", { node_id: "n1" });
  const wait = (key: string) => {
    const body = { ...RECEIVE, node_id: "n1" };
    return hold(
      hub.port(),
      rawPost("/message/receive", body, [`Idempotency-Key: ${key}`]).replace(SECRET, robot),
    );
  };
  const waiting = await Promise.all(
    // Every other is a repeat, which waits for the first.
    Array.from({ length: WAIT_SHARES.limitedKey }, (_, i) => wait(`k${i >> 1}`)),
  );
  await ok(hub.get("/status"));
  const asRobot = { headers: { "X-Matrix-Secret": robot } };
  await refused(hub.post("/message/receive", { ...RECEIVE, node_id: "n1" }, asRobot), 429, "too_many_calls");
  const other = hub.post("/message/receive", { ...RECEIVE, node_id: "n2" });
  await hub.send("op", "n2");
  await ok(other);
  for (const { hangUp } of waiting) hangUp();
  const again = await wait("again");
  await hub.send("op", "n1", { content: "for who waits" });
  expect((await again.answered).text).toContain("for who waits");
});

test("a viewer has 500 waits for tasks and 500 streams, and others wait beside it", async () => {
  await using hub = await startHub({ variants: ["A"] });
  await hub.addNode("n1");
  const taskId = await hub.addTask();
  const eye = await addKey(hub, "eye", { role: "viewer" });
  const asEye = { headers: { "X-Matrix-Secret": eye } };
  const head = HEAD.replace(SECRET, eye);
  const waits = await Promise.all(
    Array.from({ length: 500 }, () => hold(hub.port(), `GET /api/v1/task/${taskId}?wait=300 ${head}`)),
  );
  await ok(hub.get("/status")); // came later, so they wait
  await refused(hub.get(`/task/${taskId}?wait=1`, asEye), 429, "too_many_calls");
  await refused(hub.get("/poll?timeout=1", asEye), 429, "too_many_calls");
  await ok(hub.get(`/task/${taskId}`, asEye));
  const streams = await Promise.all(
    Array.from({ length: 500 }, async () => {
      const stream = await RawConnection.open(hub.port());
      stream.send(`GET /api/v1/events/stream ${head}`);
      await stream.got(/retry: 3000/);
      return stream;
    }),
  );
  await refused(hub.get("/events/stream", asEye), 429, "too_many_calls");
  const other = hub.post("/message/receive", { ...RECEIVE, node_id: "n1" });
  const ended = hub.get(`/task/${taskId}?wait=60`);
  await hub.send("op", "n1");
  await ok(other);
  await ok(hub.post("/task/cancel", { task_id: taskId }));
  await ok(ended);
  for (const { answered } of waits) expect((await answered).status).toBe(200);
  for (const stream of streams) stream.cut();
});

test("a closed stream is no longer notified", async () => {
  const subscribed = new Set<string>();
  const { subscribe } = Feed.prototype;
  const { close } = EventStreams.prototype;
  const open: number[] = [];
  const spies = [
    spyOn(Feed.prototype, "subscribe").mockImplementation(function (this: Feed, nodeId, notify) {
      subscribed.add(nodeId);
      const unsubscribe = subscribe.call(this, nodeId, notify);
      return () => {
        subscribed.delete(nodeId);
        unsubscribe();
      };
    }),
    spyOn(EventStreams.prototype, "close").mockImplementation(function (this: EventStreams) {
      open.push(this.size);
      close.call(this);
    }),
  ];
  try {
    await using hub = await startHub();
    for (const nodeId of ["n1", "n2"]) await hub.addNode(nodeId);
    const streams = await Promise.all(["n1", "n2"].map(() => RawConnection.open(hub.port())));
    for (const [i, stream] of streams.entries())
      stream.send(`GET /api/v1/agent/sse?node_id=n${i + 1} ${HEAD}`);
    await until("both are open", async () => subscribed.size === 2);
    streams[0]?.cut();
    await until("one has gone", async () => subscribed.size === 1);
    expect([...subscribed]).toEqual(["n2"]);
    streams[1]?.cut();
    await until("the other has gone", async () => subscribed.size === 0);
    await hub.close();
    expect(open).toEqual([0]);
  } finally {
    for (const spy of spies) spy.mockRestore();
  }
});

test("polls that one commit wakes are answered in slices: others are served in between", async () => {
  const POLLS = 1_000;
  const silent = watchSilence();
  await using hub = await startHub({ variants: ["A"] });
  const polls = await Promise.all(Array.from({ length: POLLS }, () => RawConnection.open(hub.port())));
  for (const poll of polls)
    poll.send(`GET /api/v1/poll?timeout=60 HTTP/1.1\r\nHost: hub\r\nX-Matrix-Secret: ${SECRET}\r\n\r\n`);
  await until("all wait", async () => silent.paths.length === POLLS);
  silent.restore();
  const answered = (): number => polls.filter(({ received }) => received.includes("task.created")).length;
  const created = hub.post("/task/create", { title: "for all", description: "d" });
  // The hub is in this process: what comes between two ticks is what it answered in one.
  let most = 0;
  for (let before = 0; before < POLLS;) {
    await new Promise((resolve) => setImmediate(resolve));
    const now = answered();
    most = Math.max(most, now - before);
    before = now;
  }
  expect((await created).status).toBe(200);
  for (const poll of polls) poll.cut();
  expect(most).toBeLessThan(POLLS / 2);
});
