/** The Python client (src/client/luxhub.py), as a hub serves it, against real hubs. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { Program, type ProgramOptions, TempDir, run, until } from "../e2e/program.ts";
import { PROJECT } from "../support/executable.ts";
import { ADMIN_KEY, SECRET, type TestHub, startHub } from "../support/hub.ts";
import { pythonFile } from "../../tools/generate/python-client.ts";
import { FaultyProxy } from "./faulty-proxy.ts";

const CLIENT = join(import.meta.dir, "../../src/client/luxhub.py");

test("luxhub.py has what the declarations say: bun run client-types", async () => {
  expect(await Bun.file(CLIENT).text()).toBe(await pythonFile());
});

test("a hub serves it, open on both variants of a private hub", async () => {
  await using hub = await startHub({ isPrivate: true });
  for (const variant of ["A", "B"] as const) {
    const url = `${hub.base(variant)}/client/luxhub.py`;
    const answer = await fetch(url);
    expect(await answer.text()).toBe(await Bun.file(CLIENT).text());
    expect([answer.status, answer.headers.get("content-type")]).toEqual([
      200,
      "text/x-python; charset=utf-8",
    ]);
    const etag = answer.headers.get("etag") ?? "";
    const head = await fetch(url, { method: "HEAD" });
    expect([head.status, head.headers.get("etag"), await head.text()]).toEqual([200, etag, ""]);
    const known = await fetch(url, { headers: { "If-None-Match": `"other", ${etag}` } });
    expect([known.status, known.headers.get("etag"), await known.text()]).toEqual([304, etag, ""]);
    expect((await fetch(url, { headers: { "If-None-Match": '"other"' } })).status).toBe(200);
    expect((await fetch(url, { method: "POST" })).status).toBe(405);
  }
});

/** The Python on the path itself: what is on the path may be a script that looks for it, at each start. */
function findPython(): { readonly path: string } | { readonly missing: string } {
  const python = Bun.which("python3");
  if (python === null) return { missing: "there is no python3 on the path" };
  const about = "import sys; print(*sys.version_info[:2], sys.executable)";
  const found = Bun.spawnSync([python, "-c", about]).stdout.toString();
  const [, major = "", minor = "", path = ""] = /^(\d+) (\d+) (.+)\n$/.exec(found) ?? [];
  return major === "3" && Number(minor) >= 11
    ? { path }
    : { missing: `python3 is ${major}.${minor}, and not 3.11 or later` };
}

const python = findPython();
if ("missing" in python) console.log(`The Python client is not run: ${python.missing}.`);
const mypy = Bun.which("mypy");
if (mypy === null)
  console.log("The types of the Python client are not checked: there is no mypy on the path.");

test.skipIf(mypy === null)(
  "its types are right, and those who use it can rely on them: mypy --strict",
  async () => {
    using dir = new TempDir();
    const scripts = ["session.py", "worker.py", "scenario_worker.py"];
    const files = [CLIENT, ...scripts.map((name) => join(import.meta.dir, name))];
    const checked = await run(["--strict", "--cache-dir", dir.path, ...files], {
      command: [mypy ?? ""],
      env: { MYPYPATH: join(CLIENT, "..") },
    });
    expect(checked).toMatchObject({ code: 0, stderr: "" });
  },
);

describe.skipIf("missing" in python)("on Python", () => {
  let dir: TempDir;
  let hub: TestHub;

  beforeAll(async () => {
    dir = new TempDir();
    hub = await startHub();
    await Bun.write(dir.join("luxhub.py"), await (await fetch(`${hub.base()}/client/luxhub.py`)).text());
  });

  afterAll(async () => {
    await hub.close();
    dir[Symbol.dispose]();
  });

  function options(url: string, ...flags: readonly string[]): ProgramOptions {
    return {
      command: ["path" in python ? python.path : "", ...flags], // its compiled luxhub.py goes into the directory too
      cwd: dir.path,
      env: {
        PYTHONPATH: dir.path,
        LUXHUB_URL: url,
        LUXHUB_SECRET: SECRET,
        LUXHUB_ADMIN_KEY: ADMIN_KEY,
      },
    };
  }

  test("its doctests", async () => {
    await using own = await startHub();
    const doctests = "import doctest, luxhub; print(doctest.testmod(luxhub))";
    const { code, stdout, stderr } = await run(["-c", doctests], options(own.base()));
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).toMatch(/^TestResults\(failed=0, attempted=\d\d\)\n$/);
  });

  test("a session over the whole API through faults", async () => {
    await using own = await startHub();
    using proxy = new FaultyProxy(own.port(), 5);
    const script = join(import.meta.dir, "session.py");
    await using program = new Program([script, dir.path], options(proxy.url, "-X", "dev"));
    await program.printed(/cut/);
    proxy.cut();
    expect({ code: await program.ended, stderr: program.stderr }).toEqual({ code: 0, stderr: "" });
    expect(proxy.faults).toBeGreaterThan(20);
  });

  test("a hub of variant B", async () => {
    const script = `
from luxhub import LuxHub
with LuxHub() as hub:
    node = hub.nodes.register("n", "N", capabilities="b")["node"]
    task = hub.tasks.create("t", "d", task_type="b", priority="p5")["task"]
    print(node["capabilities"], task["status"], task["priority"], task["assigned_node"], hub.tasks.batch_assign()["assigned"])
    hub.nodes.leave("n")
    hub.tasks.cancel(task["task_id"])
`;
    const ended = await run(["-c", script], options(hub.base("B")));
    expect(ended).toEqual({ code: 0, stdout: "['b'] pending p5 n 0\n", stderr: "" });
  });

  test("a batch that takes too long is sent on in others, and a repeat with its key does nothing twice", async () => {
    await using own = await startHub();
    own.clock.workMs = 5;
    const script = `
from luxhub import CallOptions, LuxHub
with LuxHub() as hub:
    requests = [{"path": "task/create", "body": {"title": f"t{i}", "description": "d"}} for i in range(40)]
    first, again = [hub.batch(requests, CallOptions(idempotency_key="mine")) for _ in range(2)]
    print([answer["body"]["task"]["title"] for answer in first] == [f"t{i}" for i in range(40)])
    print([a["body"]["task_id"] for a in first] == [a["body"]["task_id"] for a in again], hub.tasks.stats()["total"])
`;
    const ended = await run(["-c", script], options(own.base()));
    expect(ended).toEqual({ code: 0, stdout: "True\nTrue 40\n", stderr: "" });
  });

  test("its worker: failures, leases, loss, stop and resumption", async () => {
    const ended = await run([join(import.meta.dir, "worker.py")], options(hub.base(), "-X", "dev"));
    expect({ ...ended, stdout: "" }).toEqual({ code: 0, stdout: "", stderr: "" });
    expect(ended.stdout.split("\n")).toContain("deaf_handler");
  });

  test("the examples of docs/python.md", async () => {
    await using own = await startHub();
    const page = await Bun.file(join(PROJECT, "docs/python.md")).text();
    const examples = [...page.matchAll(/^```python\n([\s\S]*?)^```$/gm)].map(([, code = ""]) => code);
    expect(examples).toHaveLength(5);
    await using program = new Program(["-c", examples.join("\n")], options(own.base()));
    // Its worker works until it is told to stop.
    await until(async () => {
      const { body } = await own.get("/task/list?status=completed");
      return body["total"] === 1 || program.child.exitCode !== null;
    });
    program.child.kill("SIGTERM");
    expect({ code: await program.ended, stderr: program.stderr }).toEqual({ code: 0, stderr: "" });
    expect(program.stdout.replace(/\d+ task.created/, "1 task.created").split("\n")).toEqual([
      "open",
      "404 task_not_found",
      "1 task.created",
      "b'Hello, everyone.'",
      "",
    ]);
  });
});
