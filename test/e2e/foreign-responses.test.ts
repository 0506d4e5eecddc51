/** Commands that wait, while something between them and their hub responds instead of the hub for a moment. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { FOREIGN, FaultyProxy } from "../client/faulty-proxy.ts";
import { SECRET, type TestHub, startHub } from "../support/hub.ts";
import { Program, until } from "./program.ts";

const [refused = null, , , , portal = null] = FOREIGN;
let hub: TestHub;
let proxy: FaultyProxy;

beforeAll(async () => {
  hub = await startHub();
  proxy = new FaultyProxy(hub.port());
  await hub.post("/node/register", { node_id: "n", name: "N" });
});
afterAll(async () => {
  proxy[Symbol.dispose]();
  await hub.close();
});

test.each(["task wait", "task logs -f", "events --follow --since 0 --task"])("luxhub %s", async (command) => {
  const { body } = await hub.post("/task/create", { title: "t", description: "d" });
  const taskId = String(body["task_id"]);
  await hub.post("/task/claim", { task_id: taskId, node_id: "n" });
  await hub.post("/task/output", { task_id: taskId, node_id: "n", offset: 0, data: "begun\n" });
  const env = { LUXHUB_URL: proxy.url, LUXHUB_SECRET: SECRET };
  await using program = new Program([...command.split(" "), taskId], { env });
  const before = proxy.requests;
  await until(() => proxy.requests > before + 1 || program.stdout !== "");
  for (const foreign of [refused, portal]) {
    const faults = proxy.faults;
    proxy.foreign = foreign;
    proxy.cut();
    await until(() => proxy.faults > faults || program.child.exitCode !== null);
    expect(program.child.exitCode).toBeNull();
  }
  proxy.foreign = null;
  const result = { problem: "p", improvement: "the end", lesson: "l" };
  await hub.post("/task/complete", { task_id: taskId, node_id: "n", result });
  if (command.startsWith("events")) await program.printed(/task\.completed/);
  else expect(await program.ended).toBe(0);
});
