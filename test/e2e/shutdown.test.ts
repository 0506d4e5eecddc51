/**
 * SIGTERM under load: waiting calls get an empty answer, streams end cleanly, running requests finish, new requests are
 * refused, and the next start finds every answered write.
 */
import { describe, expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { Hub, TempDir, listOf, objectOf, until } from "./program.ts";
import { FROM_SOURCE } from "../support/executable.ts";
import { RawConnection, headOf, postOf, uploadOf } from "./raw.ts";

/** Opens a connection and sends a whole request. */
async function ask(hub: Hub, request: string): Promise<RawConnection> {
  const connection = await RawConnection.open(hub.port);
  connection.send(request);
  return connection;
}

/** Asks and reads nothing. */
async function stall({ port }: Hub, request: string): Promise<Bun.Socket> {
  const socket = await Bun.connect({ hostname: "127.0.0.1", port, socket: { data: () => {} } });
  socket.pause();
  socket.write(request);
  return socket;
}

/** The JSON of an answer that is there whole. */
function bodyOf(connection: RawConnection): Readonly<Record<string, unknown>> {
  return objectOf(connection.received.slice(connection.received.indexOf("\r\n\r\n") + 4));
}

const WHOLE = /^HTTP\/1\.1 (\d{3})[\s\S]*\r\n\r\n\{[\s\S]*\}$/;

/** Answered once all that was sent before it has been read: what is sent after a wait began can count on it. */
async function settled(hub: Hub): Promise<void> {
  for (let i = 0; i < 3; i++) expect((await hub.get("/status")).status).toBe(200);
}

/** The names of files in the data directory, without the folders they lie in. */
function filesIn(data: string): readonly string[] {
  return readdirSync(`${data}/files`, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => entry.name);
}

// At once, for most of it is waiting.
describe.concurrent("SIGTERM", () => {
  test("answers waiting calls, ends streams, finishes running requests and keeps everything", async () => {
    using dir = new TempDir();
    const data = dir.join("data");
    await using hub = await Hub.start({ data });
    await hub.register("worker-1");
    const receive = await ask(
      hub,
      postOf("/message/receive", { node_id: "worker-1", blocking: true, timeout: 60 }),
    );
    const poll = await ask(hub, headOf({ path: "/poll?timeout=60" }));
    const stream = await ask(hub, headOf({ path: "/agent/sse?node_id=worker-1" }));
    await stream.got(/retry: 3000/);

    // A request whose body is half there, and an upload of which half is there.
    const create = await RawConnection.open(hub.port);
    const whole = postOf("/task/create", { title: "Unfinished", description: "x".repeat(1000) });
    create.send(whole.slice(0, -500));
    const { head, before, after } = uploadOf(200_000);
    const upload = await RawConnection.open(hub.port);
    upload.send(head + before + "a".repeat(100_000));
    await until(() => filesIn(data).length === 1);
    await settled(hub);

    const stopping = hub.stop();
    await hub.program.printed(/ending signal=SIGTERM/);
    create.send(whole.slice(-500));
    upload.send("b".repeat(100_000) + after);

    await Promise.all([receive, poll, create, upload].map((one) => one.got(WHOLE)));
    expect(receive.received).toStartWith("HTTP/1.1 200 ");
    expect(bodyOf(receive)).toMatchObject({ success: true, count: 0, messages: [] });
    expect(poll.received).toStartWith("HTTP/1.1 200 ");
    expect(bodyOf(poll)).toMatchObject({ success: true, events: [] });
    expect(create.received).toStartWith("HTTP/1.1 200 ");
    expect(upload.received).toStartWith("HTTP/1.1 200 ");
    await stream.got(/\r\n0\r\n\r\n$/); // the last chunk of a body that is whole

    expect((await stopping).code).toBe(0);
    expect(hub.program.stderr).toBe("");

    await using next = await Hub.start({ data });
    expect((await next.get("/node/worker-1")).body["node"]).toMatchObject({ status: "online" });
    const { tasks } = (await next.get("/task/list")).body;
    expect(listOf(tasks)).toMatchObject([{ title: "Unfinished" }]);
    const fileId = String(bodyOf(upload)["file_id"]);
    const file = await fetch(`${next.api}/file/download/${fileId}`);
    expect(await file.text()).toBe("a".repeat(100_000) + "b".repeat(100_000));
  });

  test("accepts no new requests", async () => {
    using dir = new TempDir();
    const data = dir.join("data");
    await using hub = await Hub.start({ data });
    // An upload that stands still keeps the hub in its drain.
    const { head, before } = uploadOf(200_000);
    const upload = await RawConnection.open(hub.port);
    upload.send(head + before + "a".repeat(100_000));
    await until(() => filesIn(data).length === 1);
    const stopping = hub.stop();
    await hub.program.printed(/ending signal=SIGTERM/);
    await until(async () => {
      const refused = await fetch(`${hub.api}/status`, { keepalive: false }).catch(() => null);
      return refused === null;
    });
    expect(hub.program.child.exitCode).toBeNull(); // not because it is gone
    expect((await stopping).code).toBe(0);
    await upload.ended();

    // What was never finished is gone.
    await using next = await Hub.start({ data });
    expect(filesIn(data)).toEqual([]);
    expect((await next.get("/file/list")).body).toMatchObject({ total: 0, files: [] });
  });

  test("takes no message out for a receive that waits behind unread answers", async () => {
    using dir = new TempDir();
    const data = dir.join("data");
    await using hub = await Hub.start({ data });
    await hub.register("worker-1");
    const content = "x".repeat(255 * 1024);
    const receive = { node_id: "worker-1", count: 33 };
    const send = () => hub.post("/message/send", { from_node: "a", to_node: "worker-1", content });
    // Five answers of 8 MiB, which nobody reads, leave no room for another in the share of the key.
    for (let i = 0; i < 6; i++) await Promise.all(Array.from({ length: 33 }, send));
    const stalled = await Promise.all(
      Array.from({ length: 5 }, () => stall(hub, postOf("/message/receive", receive))),
    );
    const left = async (): Promise<unknown> =>
      (await hub.post("/node/heartbeat", { node_id: "worker-1" })).body["messages_waiting"];
    await until(async () => (await left()) === 33);
    await settled(hub);
    const waiting = await ask(hub, postOf("/message/receive", receive));
    await settled(hub);
    expect(waiting.received).toBe("");

    const stopping = hub.stop();
    await waiting.got(/^HTTP\/1\.1 503 /);
    expect((await stopping).code).toBe(0);
    for (const socket of stalled) socket.terminate();
    await using next = await Hub.start({ data });
    expect((await next.post("/message/receive", receive)).body["count"]).toBe(33);
  });

  test("ends an idle hub, however many connections it has, before one that drains an upload", async () => {
    using dir = new TempDir();
    const data = dir.join("waits");
    await using waits = await Hub.start({ data });
    await using idle = await Hub.start({ data: dir.join("idle") });
    for (let i = 0; i < 20; i++) {
      const connection = await ask(idle, headOf({ path: "/status" }));
      await connection.got(WHOLE);
    }
    const { head, before } = uploadOf(200_000);
    const upload = await ask(waits, head + before + "a".repeat(100_000));
    await until(() => filesIn(data).length === 1);
    const ending = [waits, idle].map(async (hub) => ({ hub, ...(await hub.stop()) }));
    const first = await Promise.race(ending);
    expect(first.hub).toBe(idle);
    expect((await Promise.all(ending)).map(({ code }) => code)).toEqual([0, 0]);
    await upload.ended();
  });

  test("SIGINT does the same", async () => {
    using dir = new TempDir();
    await using hub = await Hub.start({ data: dir.join("data") });
    hub.program.child.kill("SIGINT");
    expect(await hub.program.ended).toBe(0);
    expect(hub.program.stdout).toEndWith("ended\n");
  });

  test("a second signal ends it at once", async () => {
    using dir = new TempDir();
    const data = dir.join("data");
    await using hub = await Hub.start({ data });
    const { head, before } = uploadOf(200_000);
    const upload = await RawConnection.open(hub.port);
    upload.send(head + before + "a".repeat(100_000));
    await until(() => filesIn(data).length === 1);
    void hub.stop();
    await hub.program.printed(/ending signal=SIGTERM/);
    await until(() => {
      hub.program.child.kill("SIGTERM");
      return hub.program.child.exitCode !== null;
    });
    expect(await hub.program.ended).toBe(1); // in order it would be 0
  });
});

describe("an uncaught error", () => {
  test.each([
    ["SIGUSR1", "a rejection"],
    ["SIGUSR2", "an exception"],
  ] as const)("%s ends the hub in order, and with 1: %s", async (signal, cause) => {
    using dir = new TempDir();
    const fixture = join(import.meta.dir, "../support/fault-fixture.ts");
    const [bun = "", ...words] = FROM_SOURCE;
    const command = [bun, "--preload", fixture, ...words];
    await using hub = await Hub.start({ data: dir.join("data"), command });
    const poll = await ask(hub, headOf({ path: "/poll?timeout=60" }));
    await settled(hub);
    hub.program.child.kill(signal);
    expect(await hub.program.ended).toBe(1);
    expect(poll.received).toMatch(/^HTTP\/1\.1 200/);
    expect(hub.program.stdout).toMatch(
      new RegExp(`ending after an uncaught error cause=.*nobody caught this.*${cause}`),
    );
    expect(hub.program.stdout).toEndWith("ended\n");
  });
});
