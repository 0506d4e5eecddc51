/** Long polls, blocking receives and streams: they have no idle timeout, and their number is limited. */
import { expect, spyOn, test } from "bun:test";
import { EventStreams } from "../../src/api/stream.ts";
import { holdOpen } from "../../src/api/waiter-limit.ts";
import { WAITERS_MAX } from "../../src/domain/limits.ts";
import { Feed } from "../../src/service/feed.ts";
import { RawConnection } from "../e2e/raw.ts";
import { SECRET, startHub } from "../support/hub.ts";
import { addNode, hold, rawPost, send, until } from "./scene.ts";

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
    for (const nodeId of ["n1", "n2"]) await addNode(hub, nodeId);
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
    await send(hub, "op", "n1");
    expect((await waits.answered).status).toBe(200);
    for (const one of [poll, stream]) one.hangUp();
    expect(silent.paths).toEqual(["/message/receive", "/poll", "/agent/sse"]);
  } finally {
    silent.restore();
  }
});

test("a waiting call above the limit is 503 with Retry-After", () => {
  const silence: unknown[] = [];
  const exchange = { server: { timeout: (_: unknown, seconds: number) => silence.push(seconds) } };
  // Of the feed only how many wait is asked for, of the exchange only its server.
  const callWith = (waiting: number): void =>
    holdOpen({ waiting } as Feed, exchange as unknown as Parameters<typeof holdOpen>[1]);
  callWith(WAITERS_MAX - 1);
  expect(silence).toEqual([0]);
  const refused = expect.objectContaining({
    status: 503,
    code: "overloaded",
    extras: { headers: { "Retry-After": "1" } },
  });
  expect(() => callWith(WAITERS_MAX)).toThrow(refused);
  expect(silence).toEqual([0]);
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
    for (const nodeId of ["n1", "n2"]) await addNode(hub, nodeId);
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
