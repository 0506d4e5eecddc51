/**
 * When a key is revoked or expires, its open calls end within a second: streams and uploads end, waiting calls answer
 * 401 and take nothing. No test here makes the hub reload its keys: the hub's own timer must.
 */
import { describe, expect, test } from "bun:test";
import { once } from "node:events";
import { connect } from "node:net";
import { FILE_UNCUT_MAX_BYTES } from "../../src/domain/limits.ts";
import { type Answer, SECRET, type TestHub, startHub } from "../support/hub.ts";
import { HANG_MS } from "../support/hang.ts";
import { addKey, as, runKeys } from "./key-commands.ts";
import { type RawAnswer, hold, list, ok, pick, refused, until } from "./scene.ts";

/** Reads an event stream to its end; what came. */
async function streamOf(
  hub: TestHub,
  secret: string,
  path = "agent/sse?node_id=n1",
): Promise<{ ended: Promise<string> }> {
  const response = await fetch(`${hub.base()}/api/v1/${path}`, {
    headers: { "X-Matrix-Secret": secret },
  });
  expect(response.status).toBe(200);
  return { ended: response.text() };
}

/** An upload that has sent its beginning. */
function uploadBegun(hub: TestHub, secret: string): Promise<{ answered: Promise<RawAnswer> }> {
  const body = '--b\r\nContent-Disposition: form-data; name="file"; filename="x"\r\n\r\nbegun';
  const head = [
    "POST /api/v1/file/upload HTTP/1.1",
    "Host: hub",
    `X-Matrix-Secret: ${secret}`,
    "Content-Type: multipart/form-data; boundary=b",
    "Content-Length: 100000",
  ];
  return hold(hub.port(), `${head.join("\r\n")}\r\n\r\n${body}`);
}

/** A download whose caller has stopped to read. `rest` reads on to the end of the connection: all bytes that came. */
async function pausedDownload(
  hub: TestHub,
  secret: string,
  fileId: string,
): Promise<{ rest(): Promise<number> }> {
  const socket = connect({ port: hub.port("B"), host: "127.0.0.1" });
  const closed = new Promise((resolve) => void socket.on("close", resolve));
  socket.on("error", () => undefined); // a reset is an end, too
  let bytes = 0;
  const lines = [`GET /api/v1/file/download/${fileId} HTTP/1.1`, "Host: hub", `X-Matrix-Secret: ${secret}`];
  socket.write([...lines, "Connection: close", "", ""].join("\r\n"));
  socket.on("data", (piece) => (bytes += piece.length));
  await once(socket, "data");
  socket.pause();
  const rest = async (): Promise<number> => {
    socket.resume();
    await closed;
    return bytes;
  };
  return { rest };
}

const RECEIVE = { node_id: "n1", blocking: true, timeout: 300 };

const LOSSES = {
  revoked: (hub: TestHub) => runKeys(hub, "revoke", "robot"),
  expired: async (hub: TestHub) => hub.clock.pass(121_000),
} as const;

describe.each(["revoked", "expired"] as const)("a key that is %s", (how) => {
  test("loses its open calls, streams and uploads", async () => {
    await using hub = await startHub();
    const robot = await addKey(hub, "robot", { node_id: "n1", expires_in_s: 120 });
    await hub.addNodes(["n1", "n2"]);
    const repeatable = { headers: { "Idempotency-Key": "k1" } };
    const stream = await streamOf(hub, robot);
    const logStream = await streamOf(hub, robot, "events/stream");
    const upload = await uploadBegun(hub, robot);
    const waiting: Promise<Answer>[] = [
      hub.post("/message/receive", RECEIVE, as(robot)),
      hub.post("/message/receive", RECEIVE, as(robot, repeatable)),
      hub.post("/message/receive", RECEIVE, as(robot, repeatable)), // waits for the first
      hub.get("/poll?timeout=300", as(robot)),
      hub.get("/poll?timeout=300", as(robot, { variant: "B" })),
    ];
    const others = [
      hub.post("/message/receive", { ...RECEIVE, node_id: "n2" }),
      hub.get("/poll?timeout=300"),
      hub.get("/poll?timeout=300", as(null)),
    ];
    await until("all of them wait", () => hub.waits(waiting.length + others.length - 1)); // one without the secret
    await LOSSES[how](hub);
    const lostAt = performance.now();
    for (const answer of waiting) {
      const { headers } = await refused(answer, 401, "unauthorized");
      expect(headers.get("www-authenticate")).toContain("X-Matrix-Secret");
    }
    expect((await upload.answered).status).toBe(401);
    const seen = await stream.ended;
    await logStream.ended;
    expect(performance.now() - lostAt).toBeLessThan(HANG_MS); // not at the end of their own time
    await hub.send("op", "n1", { content: "for another" });
    expect(seen).not.toContain("for another");
    expect(pick({ messages: await hub.receive("n1") }, "messages", "content")).toEqual(["for another"]);
    expect(list(await ok(hub.get("/file/list")), "files")).toEqual([]);
    // Others wait on.
    await hub.send("op", "n2");
    await ok(hub.post("/task/create", { title: "t", description: "d" }));
    for (const answer of others) await ok(answer);
  });
});

test("a large download ends with the key that it needs, and no other does", async () => {
  await using hub = await startHub({ alone: "ownHead" });
  const robot = await addKey(hub, "robot");
  const content = new Uint8Array(2 * FILE_UNCUT_MAX_BYTES);
  const form = new FormData();
  form.set("metadata", "{}");
  form.set("file", new Blob([content]), "large");
  const fileId = String((await ok(hub.call("POST", "/file/upload", { body: form })))["file_id"]);
  const path = `${hub.base("B")}/api/v1/file/download/${fileId}`;
  const lengthOf = async (method: string, range: string): Promise<string> => {
    const response = await fetch(path, { method, headers: { "X-Matrix-Secret": robot, Range: range } });
    await response.body?.cancel();
    return `${response.status} ${response.headers.get("content-length")}`;
  };
  const { length } = content;
  expect(await lengthOf("HEAD", "bytes=1-")).toBe(`200 ${length}`);
  // Only on Linux can the hub cut off what the system sends.
  const isLinux = process.platform === "linux";
  expect(await lengthOf("GET", "none")).toBe(`200 ${isLinux ? length : null}`);
  expect(await lengthOf("GET", "bytes=1-")).toBe(`206 ${isLinux ? length - 1 : null}`);
  const [cut, whole] = await Promise.all(
    [robot, SECRET].map((secret) => pausedDownload(hub, secret, fileId)),
  );
  await runKeys(hub, "revoke", "robot");
  while ((await hub.get("/status", as(robot, { variant: "B" }))).status !== 401) await Bun.sleep(20);
  expect(await cut?.rest()).toBeLessThan(content.length / 2);
  expect(await whole?.rest()).toBeGreaterThan(content.length);
});

test("a stream of the log ends with the key that was shown, also where none is needed", async () => {
  await using hub = await startHub();
  const robot = await addKey(hub, "robot");
  const stream = await streamOf(hub, robot, "events/stream");
  await runKeys(hub, "revoke", "robot");
  expect(await stream.ended).toStartWith("retry: 3000\n\n");
});

test("a request whose body arrives after its key was revoked has no effect", async () => {
  await using hub = await startHub();
  const robot = await addKey(hub, "robot");
  const body = JSON.stringify({ title: "t", description: "d" });
  const head = [
    "POST /api/v1/task/create HTTP/1.1",
    "Host: hub",
    `X-Matrix-Secret: ${robot}`,
    "Content-Type: application/json",
    `Content-Length: ${body.length}`,
  ];
  const late = await hold(hub.port(), `${head.join("\r\n")}\r\n\r\n${body.slice(0, 5)}`);
  await ok(hub.get("/status")); // came later, so the first is there
  await runKeys(hub, "revoke", "robot");
  await hub.sweep();
  late.send(body.slice(5));
  expect((await late.answered).status).toBe(401);
  expect(await ok(hub.get("/task/list"))).toMatchObject({ total: 0 });
});
