/** Requests as bytes (docs/api.md): HEAD, bodies that are no JSON or too large, sockets; and what the log says of them. */
import { describe, expect, test } from "bun:test";
import { DECLARED } from "../../src/api/routes.ts";
import { ADMIN_KEY, SECRET, type TestHub, startHub } from "../support/hub.ts";
import { NO_ID, VARIANTS, badFields, ok, raw, rawPost, refused, until } from "./scene.ts";

const MIB = 1024 * 1024;
const BARE = { headers: { "X-Matrix-Secret": null } };

test("HEAD works wherever GET does, with the same status and headers and no body", async () => {
  await using hub = await startHub();
  await hub.addNode("n1");
  const task_id = await hub.addTask({ group: "g" });
  const form = new FormData();
  form.set("file", new File(["bytes"], "a.txt"));
  const { file_id } = await ok(hub.post("/file/upload", form));
  const ids: Readonly<Record<string, unknown>> = { task_id, file_id, node_id: "n1", group: "g" };
  for (const { method, path, auth } of DECLARED) {
    if (method !== "GET" || auth === "open" || /\/(?:stream|sse)$/.test(path)) continue;
    const named = path.replace("/api/v1", "").replaceAll(/:(\w+)/g, (_, name: string) => String(ids[name]));
    const url = `${named}?node_id=n1${/poll$/.test(path) ? "&since=0" : ""}`;
    for (const variant of VARIANTS) {
      const options = { variant, headers: { "X-Admin-Key": ADMIN_KEY } };
      const [get, head] = [await hub.get(url, options), await hub.call("HEAD", url, options)];
      expect([url, head.status]).toEqual([url, get.status]);
      expect(head.headers.get("content-type")).toBe(get.headers.get("content-type"));
      expect(head.headers.get("x-request-id")).toBeTruthy();
    }
  }
  for (const [path, status] of [
    ["/nope", 404],
    ["/task/create", 405],
    ["/task/list?page=0", 400],
  ] as const)
    expect((await hub.call("HEAD", path)).status).toBe(status);
  expect((await hub.call("HEAD", "/task/list", { ...BARE, variant: "B" })).status).toBe(401);
});

test("the request id is in the log, which contains no secret", async () => {
  await using hub = await startHub({ variants: ["A"] });
  await hub.get("/status?x=1", { headers: { "X-Request-Id": "look-for-me" } });
  await hub.admin("/task/delete", { task_id: NO_ID }, { headers: { "X-Request-Id": "and-me" } });
  const log = () => hub.logged.join("");
  await until("it is logged", async () => log().includes("look-for-me") && log().includes("and-me"));
  for (const secret of [SECRET, ADMIN_KEY]) expect(log()).not.toContain(secret);
});

test("a JSON body may have any Content-Type or none, except multipart, and is not compressed", async () => {
  await using hub = await startHub({ variants: ["A"] });
  const text = JSON.stringify({ node_id: "n1", name: "n" });
  const attempt = (body: string | Uint8Array<ArrayBuffer>, headers: Readonly<Record<string, string>>) =>
    hub.post("/node/register", new Blob([body]), { headers });
  await ok(attempt(text, {}));
  for (const type of [
    "application/json; charset=utf-8",
    "text/plain",
    "application/x-www-form-urlencoded",
    "x",
  ])
    await ok(attempt(text, { "Content-Type": type }));
  for (const type of [
    "multipart/form-data; boundary=x",
    "multipart/mixed",
    "MULTIPART/Form-Data; boundary=x",
  ])
    await refused(attempt(text, { "Content-Type": type }), 415, "unsupported_media_type");
  const zipped = await attempt(Bun.gzipSync(text), { "Content-Encoding": "gzip" });
  expect((await refused(zipped, 415, "unsupported_media_type")).headers.get("accept-encoding")).toBe(
    "identity",
  );
  for (const body of [{ file: "x" }, "x", undefined])
    await refused(hub.post("/file/upload", body), 415, "unsupported_media_type");
  const mixed = { headers: { "Content-Type": "multipart/mixed; boundary=x" } };
  await refused(hub.post("/file/upload", new Blob(["--x--"]), mixed), 415, "unsupported_media_type");
  await badFields(hub.call("POST", "/task/create"), [""]);
});

test("a JSON body that is not UTF-8 is refused, and one that is deeply nested is answered", async () => {
  await using hub = await startHub({ variants: ["A"] });
  for (const bytes of [[0xff], [0xc3], [0xed, 0xa0, 0x80], [0xc0, 0x80], [0xf5, 0x80, 0x80, 0x80]]) {
    const parts = ['{"title":"', Buffer.from(bytes), '","description":"d"}'];
    await badFields(hub.post("/task/create", new Blob(parts)), [""]);
  }
  const depth = 200_000;
  const body = `{"node_id":"n1","name":"n","x":${"[".repeat(depth)}${"]".repeat(depth)}}`;
  for (const headers of [{}, { "Idempotency-Key": "k" }])
    expect([200, 400]).toContain((await hub.post("/node/register", body, { headers })).status);
  const capabilities = new Array<number>(500_000).fill(1);
  const answer = await hub.post("/node/register", { node_id: "n1", name: "n", capabilities });
  expect(JSON.stringify(answer.body).length).toBeLessThan(1_000);
});

describe("a body over 1 MiB", () => {
  /** A body of this many bytes, good but for its size. */
  function bodyOf(bytes: number): string {
    const [head, tail] = ['{"node_id":"n1","name":"n","filler":"', '"}'];
    return head + "x".repeat(bytes - head.length - tail.length) + tail;
  }

  /** A POST of the body in chunks, with no Content-Length. */
  function chunked(hub: TestHub, body: string): Promise<Response> {
    const part = 64 * 1024;
    let sent = 0;
    const stream = new ReadableStream<Uint8Array>({
      pull(controller) {
        if (sent >= body.length) return controller.close();
        controller.enqueue(Buffer.from(body.slice(sent, (sent += part))));
      },
    });
    return fetch(`${hub.base()}/api/v1/node/register`, {
      method: "POST",
      headers: { "X-Matrix-Secret": SECRET },
      body: stream,
      keepalive: false,
    });
  }

  test("is 413, also in chunks and with a smaller limit on files; one of exactly 1 MiB is accepted", async () => {
    await using hub = await startHub({ variants: ["A"], maxFileBytes: 1024 });
    await ok(hub.post("/node/register", bodyOf(MIB)));
    for (const bytes of [MIB + 1, 8 * MIB])
      await refused(hub.post("/node/register", bodyOf(bytes)), 413, "body_too_large");
    expect((await chunked(hub, bodyOf(MIB))).status).toBe(200);
    const answer = await chunked(hub, bodyOf(MIB + 1));
    expect([answer.status, await answer.json()]).toMatchObject([413, { error: "body_too_large" }]);
    await refused(hub.post("/nope", bodyOf(8 * MIB)), 404, "not_found");
    await refused(hub.post("/node/register", bodyOf(8 * MIB), BARE), 401, "unauthorized");
  });

  test("is refused before it arrives, and the connection is closed after the answer", async () => {
    await using hub = await startHub({ variants: ["A"], alone: "ownHead" });
    const head = `POST /api/v1/node/register HTTP/1.1\r\nHost: hub\r\nX-Matrix-Secret: ${SECRET}\r\n`;
    const answer = await raw(hub.port(), `${head}Content-Length: ${100 * MIB}\r\n\r\n{"node_id":`);
    expect([answer.status, answer.headers.get("connection")]).toEqual([413, "close"]);
    expect(JSON.parse(answer.text)).toMatchObject({ error: "body_too_large" });
    const size = 256 * 1024;
    const chunk = `${size.toString(16)}\r\n${"x".repeat(size)}\r\n`;
    const never = await raw(hub.port(), `${head}Transfer-Encoding: chunked\r\n\r\n${chunk.repeat(5)}`); // ends
    expect([never.status, JSON.parse(never.text)]).toMatchObject([413, { error: "body_too_large" }]);
  });
});

describe("over a raw socket", () => {
  test("the Host changes nothing, even if it is invalid", async () => {
    await using hub = await startHub({ variants: ["A"] });
    await hub.addNode("n1");
    await hub.addTasks(2);
    for (const host of ["hub", "[", "a b", "x/y?z#", "", "☃", "hub:99999"]) {
      const bytes = rawPost("/node/heartbeat", { node_id: "n1" }, [`Idempotency-Key: k-${host.length}`]);
      const answer = await raw(hub.port(), bytes.replace("Host: hub", `Host: ${host}`));
      // The parser below the hub may turn it away (400); the hub itself must not fail at it.
      expect([host, [200, 400].includes(answer.status)]).toEqual([host, true]);
    }
    const request = "GET /api/v1/task/list?per_page=1 HTTP/1.1\r\nHost: hub?per_page=2&x=\r\n\r\n";
    const answer = await raw(hub.port(), request);
    if (answer.status !== 400) expect(JSON.parse(answer.text)).toMatchObject({ per_page: 1 });
  });

  test("the connection serves one request after the other", async () => {
    await using hub = await startHub({ variants: ["A"] });
    await hub.addNode("n1");
    const bytes = rawPost("/node/heartbeat", { node_id: "n1" });
    const last = rawPost("/node/heartbeat", { node_id: "ghost" });
    const statuses: number[] = [];
    const done = Promise.withResolvers<void>();
    let seen = "";
    const socket = await Bun.connect({
      hostname: "127.0.0.1",
      port: hub.port(),
      socket: {
        data(own, chunk) {
          seen += chunk.toString();
          const status = /^HTTP\/1\.1 (\d+)[^]*\r\n\r\n\{[^]*\}$/.exec(seen)?.[1];
          if (status === undefined) return;
          statuses.push(Number(status));
          seen = "";
          if (statuses.length === 4) done.resolve();
          else own.write(statuses.length === 2 ? last : bytes);
        },
        close: () => done.reject(new Error(`closed after ${statuses}`)),
      },
    });
    socket.write(bytes);
    await done.promise;
    socket.end();
    expect(statuses).toEqual([200, 200, 404, 200]);
  });
});
