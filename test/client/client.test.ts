/** The typed client (src/client) against real hubs, on Bun and, as a bundle, on Node. */
import { expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as client from "../../src/client/luxhub.ts";
import { clientTypes } from "../support/client-types.ts";
import { until } from "../e2e/program.ts";
import { ADMIN_KEY, SECRET, startHub } from "../support/hub.ts";
import { FaultyProxy } from "./faulty-proxy.ts";
import { session } from "./session.ts";

const CLIENT = join(import.meta.dir, "../../src/client");

test("types.ts is what the declarations say: bun run client-types", async () => {
  const formatted = Bun.spawnSync([process.execPath, "fmt", "--stdin-filepath=types.ts"], {
    stdin: Buffer.from(await clientTypes()),
    cwd: CLIENT,
  });
  expect(formatted.stdout.toString()).toBe(await Bun.file(join(CLIENT, "types.ts")).text());
});

test("a session through faults on Bun", async () => {
  await using hub = await startHub();
  using proxy = new FaultyProxy(hub.port(), 5);
  await session(client, { url: proxy.url, secret: SECRET, adminKey: ADMIN_KEY });
  expect(proxy.faults).toBeGreaterThan(20);
});

const node = Bun.which("node");
if (node === null) console.log("The client is not tested on Node: there is none on the path.");

test.skipIf(node === null)("a session through faults on Node, from the bundle", async () => {
  await using hub = await startHub();
  using proxy = new FaultyProxy(hub.port(), 5);
  const dir = mkdtempSync(join(tmpdir(), "luxhub-client-"));
  try {
    const entrypoints = [join(CLIENT, "luxhub.ts"), join(import.meta.dir, "session.ts")];
    for (const entrypoint of entrypoints) {
      const target = entrypoint.endsWith("session.ts") ? "node" : "browser";
      await Bun.build({
        entrypoints: [entrypoint],
        outdir: dir,
        target,
        format: "esm",
        naming: "[name].mjs",
      });
    }
    const hubOf = { url: proxy.url, secret: SECRET, adminKey: ADMIN_KEY };
    await Bun.write(
      join(dir, "main.mjs"),
      `import * as client from "./luxhub.mjs";
       import { session } from "./session.mjs";
       await session(client, ${JSON.stringify(hubOf)});`,
    );
    const run = Bun.spawn([node ?? "", "main.mjs"], { cwd: dir, stdout: "pipe", stderr: "pipe" });
    const [out, err, code] = await Promise.all([run.stdout.text(), run.stderr.text(), run.exited]);
    expect({ out, err, code }).toEqual({ out: "", err: "", code: 0 });
    expect(proxy.faults).toBeGreaterThan(20);
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
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
  const wait = { node_id: "n", wait: 0.35 };
  expect(await hub.tasks.next(wait)).toMatchObject({ task: null });
  expect(asked).toBeGreaterThanOrEqual(4);
  asked = 0;
  const ended = hub.tasks.get({ task_id, wait: 3_600 });
  await until(async () => asked > 2);
  await hub.tasks.cancel({ task_id });
  expect((await ended).task.status).toBe("failed");
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
