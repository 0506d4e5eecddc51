/** The typed client (src/client) against real hubs, on Bun and, as a bundle, on Node. */
import { expect, spyOn, test } from "bun:test";
import { join } from "node:path";
import * as client from "../../src/client/index.ts";
import { clientTypes, formatted } from "../../tools/generate/client-types.ts";
import { TempDir, until } from "../e2e/program.ts";
import { PROJECT } from "../support/executable.ts";
import { ADMIN_KEY, SECRET, startHub } from "../support/hub.ts";
import { FaultyProxy } from "./faulty-proxy.ts";
import { session } from "./session.ts";

const CLIENT = join(import.meta.dir, "../../src/client");

test("types.ts is what the declarations say: bun run client-types", async () => {
  expect(formatted(clientTypes())).toBe(await Bun.file(join(CLIENT, "types.ts")).text());
});

test("a session through faults on Bun", async () => {
  await using hub = await startHub();
  using proxy = new FaultyProxy(hub.port(), 5);
  await session(client, { url: proxy.url, secret: SECRET, adminKey: ADMIN_KEY });
  expect(proxy.faults).toBeGreaterThan(20);
});

const node = Bun.which("node");
if (node === null) console.log("The client is not tested on Node: there is none on the path.");

/** A directory with the client as one ES module, as it is shipped, and an empty place for what imports it. */
async function bundled(): Promise<TempDir> {
  const dir = new TempDir();
  const entrypoints = [join(CLIENT, "index.ts")];
  const into = { outdir: dir.path, naming: "luxhub.js" };
  const { success } = await Bun.build({ entrypoints, ...into, target: "browser", format: "esm" });
  expect(success).toBe(true);
  await Bun.write(dir.join("package.json"), '{"type":"module"}');
  return dir;
}

test.skipIf(node === null)("a session through faults on Node, from the bundle", async () => {
  using dir = await bundled();
  await using hub = await startHub();
  using proxy = new FaultyProxy(hub.port(), 5);
  const entrypoints = [join(import.meta.dir, "session.ts")];
  await Bun.build({ entrypoints, outdir: dir.path, target: "node", format: "esm" });
  await Bun.write(
    dir.join("main.js"),
    `import * as client from "./luxhub.js";
     import { session } from "./session.js";
     await session(client, ${JSON.stringify({ url: proxy.url, secret: SECRET, adminKey: ADMIN_KEY })});`,
  );
  const run = Bun.spawn([node ?? "", "main.js"], { cwd: dir.path, stdout: "pipe", stderr: "pipe" });
  const [out, err, code] = await Promise.all([run.stdout.text(), run.stderr.text(), run.exited]);
  expect({ out, err, code }).toEqual({ out: "", err: "", code: 0 });
  expect(proxy.faults).toBeGreaterThan(20);
});

test("the examples of docs/typescript.md", async () => {
  using dir = await bundled();
  await using hub = await startHub();
  const page = await Bun.file(join(PROJECT, "docs/typescript.md")).text();
  const examples = [...page.matchAll(/^```ts\n([\s\S]*?)^```$/gm)].map(([, code = ""]) => code);
  expect(examples).toHaveLength(5);
  const program = examples.join("\n");
  expect(program.match(/http:\/\/127\.0\.0\.1:19104/g)).toHaveLength(1);
  await Bun.write(dir.join("page.ts"), program.replace("http://127.0.0.1:19104", hub.base()));
  const run = Bun.spawn([process.execPath, "page.ts"], {
    cwd: dir.path,
    env: { LUXHUB_SECRET: SECRET },
    stdout: "pipe",
    stderr: "pipe",
  });
  // Its worker works until it is told to stop.
  await until(async () => {
    const { body } = await hub.get("/task/list?status=completed");
    return body["total"] === 1 || run.exitCode !== null;
  });
  run.kill("SIGTERM");
  const [out, err, code] = await Promise.all([run.stdout.text(), run.stderr.text(), run.exited]);
  expect({ err, code }).toEqual({ err: "", code: 0 });
  expect(out.replace(/\d+ task.created/, "1 task.created").split("\n")).toEqual([
    "open",
    "404 task_not_found",
    "1 task.created",
    "Hello, everyone.",
    "",
  ]);
});

test("a field that an operation does not read is refused before it is sent, also in a batch and within an object", async () => {
  const sent: string[] = [];
  const hub = new client.LuxHub({
    url: "http://127.0.0.1:1",
    fetch: async (url) => {
      sent.push(url);
      throw new Error("sent");
    },
  });
  const task = { title: "t", description: "d" };
  // As a program without types does.
  const mistyped = JSON.parse(JSON.stringify({ ...task, depend_on: [], requires: { capabilties: ["a"] } }));
  const refusal = (call: Promise<unknown>): Promise<unknown> => call.catch((error: unknown) => error);
  expect(await refusal(hub.tasks.create(mistyped))).toMatchObject({
    code: "unknown_field",
    detail: expect.stringContaining("did you mean depends_on?"),
    errors: [{ path: "depend_on" }, { path: "requires.capabilties" }],
  });
  const requests: { path: "task/create"; body: typeof task }[] = [
    { path: "task/create", body: task },
    { path: "task/create", body: mistyped },
  ];
  expect(await refusal(hub.batch(requests))).toMatchObject({
    code: "unknown_field",
    errors: [{ path: "requests.1.body.depend_on" }, { path: "requests.1.body.requires.capabilties" }],
  });
  expect(sent).toEqual([]);
});

test("a wait is asked for in parts until it is over or work comes", async () => {
  await using server = await startHub();
  let asked = 0;
  const hub = new client.LuxHub({
    url: server.base(),
    secret: SECRET,
    longestAskS: 0.1,
    fetch: (url, init) => {
      asked++;
      return fetch(url, init);
    },
  });
  await hub.nodes.register({ node_id: "n", name: "N" });
  const { task_id } = await hub.tasks.create({ title: "t", description: "d", delay_s: 3_600 });
  asked = 0;
  const wait = { node_id: "n", wait: 1 };
  expect(await hub.tasks.next(wait)).toMatchObject({ task: null });
  expect(asked).toBeGreaterThan(1);
  asked = 0;
  const ended = hub.tasks.get({ task_id, wait: 3_600 });
  await until(async () => asked > 2);
  await hub.tasks.cancel({ task_id });
  expect((await ended).task.status).toBe("failed");
});

test("a hub that stops, and so ends each wait for an answer at once, is not asked without a pause", async () => {
  let asks = 0;
  const question = { task_id: "t1", question_id: "q1", state: "open" };
  const hub = new client.LuxHub({
    url: "http://127.0.0.1:1",
    secret: SECRET,
    fetch: async () => {
      asks++;
      const open = asks === 1 ? { question } : { questions: [question] };
      return Response.json({ success: true, ...open });
    },
  });
  const { question: last } = await hub.tasks.ask({
    task_id: "t1",
    node_id: "n1",
    question: "Which?",
    wait: 1,
  });
  expect(last.state).toBe("open");
  expect(asks).toBeLessThanOrEqual(4); // half a second apart
});

test("a call that waits for a change of a question is not cut off before its wait is over", async () => {
  const hub = new client.LuxHub({
    url: "http://127.0.0.1:1",
    secret: SECRET,
    fetch: async () => Response.json({ success: true, questions: [], next_cursor: null }),
  });
  using timers = spyOn(globalThis, "setTimeout");
  await hub.tasks.questions({ task_id: "t1", wait: 300 });
  expect(timers.mock.calls.map(([, ms]) => ms)).toEqual([330_000]);
});

test("a stream says which events are no longer kept", async () => {
  await using server = await startHub({ alone: "firstCome" });
  const hub = new client.LuxHub<"B">({ url: server.base("B"), secret: SECRET });
  await hub.nodes.register({ node_id: "n", name: "N" });
  const { task } = await hub.tasks.create({ title: "t", description: "d", priority: "p5" });
  expect([task.status, task.priority, task.assigned_node]).toEqual(["pending", "p5", "n"]);
  server.clock.pass(8 * 86_400_000);
  await server.sweep();
  const stream = hub.stream("n", { lastEventId: 0 });
  const { value } = await stream.next();
  expect(value).toMatchObject({ event: "gap", data: { after: 0 } });
  await stream.return();
});

test("a batch is answered item by item, each typed as its operation", async () => {
  await using server = await startHub();
  const hub = new client.LuxHub({ url: server.base(), secret: SECRET });
  const [made, refused] = await hub.batch([
    { path: "task/create", body: { title: "t", description: "d" } },
    { path: "task/claim", body: { task_id: "none", node_id: "n" } },
  ]);
  if (!made.body.success) throw new Error(made.body.detail);
  const id: string = made.body.task.task_id;
  expect((await hub.tasks.get({ task_id: id })).task.title).toBe("t");
  if (refused.body.success) throw new Error("claimed a task that does not exist");
  expect([refused.status, refused.body.error]).toEqual([404, "task_not_found"]);
  const titles = ["a", "b", "c"];
  const many = await hub.batch(
    titles.map((title) => ({ path: "task/create" as const, body: { title, description: "d" } })),
  );
  expect(many.map(({ body }) => (body.success ? body.task.title : null))).toEqual(titles);
});

test("a batch that takes too long is sent on in others, and a repeat with its key does nothing twice", async () => {
  await using server = await startHub();
  const hub = new client.LuxHub({ url: server.base(), secret: SECRET });
  const titles = Array.from({ length: 40 }, (_, i) => `t${i}`);
  const send = async () => {
    const requests = titles.map((title) => ({
      path: "task/create" as const,
      body: { title, description: "d" },
    }));
    const answers = await hub.batch(requests, { idempotencyKey: "mine" });
    return answers.map(({ body }) => (body.success ? body.task : null));
  };
  server.clock.workMs = 5;
  const made = await send();
  expect(made.map((task) => task?.title)).toEqual(titles);
  expect((await send()).map((task) => task?.task_id)).toEqual(made.map((task) => task?.task_id));
  expect((await hub.tasks.stats()).total).toBe(titles.length);
});

test("a key is made once or not at all: it is not repeated, and has no Idempotency-Key", async () => {
  await using server = await startHub();
  let asked = 0;
  const hub = new client.LuxHub({
    url: server.base(),
    secret: SECRET,
    adminKey: ADMIN_KEY,
    fetch: async (url, init) => {
      asked++;
      expect(new Headers(init.headers).has("idempotency-key")).toBe(false);
      await (await fetch(url, init)).text();
      throw new TypeError("the connection broke");
    },
  });
  await expect(hub.keys.add({ name: "laptop" })).rejects.toBeInstanceOf(client.HubUnreachable);
  expect(asked).toBe(1);
  const other = new client.LuxHub({ url: server.base(), secret: SECRET, adminKey: ADMIN_KEY });
  const { keys } = await other.keys.list();
  expect(keys.map(({ name }) => name)).toContain("laptop");
  await other.keys.revoke({ name: "laptop" });
});
