/** The typed client (src/client) against real hubs, on Bun and, as a bundle, on Node. */
import { expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as client from "../../src/client/luxhub.ts";
import { clientTypes } from "../support/client-types.ts";
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
