/**
 * The programs of docs/examples against a real hub: failures, kill -9 of the worker and of the hub, cancelled and lost
 * tasks. Only the pauses between heartbeats are changed.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { PROJECT } from "../support/executable.ts";
import { HANG_MS } from "../support/hang.ts";
import { OWN_HOST } from "../support/keeper.ts";
import { type Answer, Hub, SECRET, TempDir, listOf, objectOf, until } from "./program.ts";

type Fields = Readonly<Record<string, unknown>>;

const example = (name: string): string => readFileSync(join(PROJECT, "docs/examples", name), "utf8");

/** What a title asks for: to fail, to fail permanently, or to wait for the file `go`. */
const WORK = `#!/usr/bin/env bash
task=$(cat)
case $task in
  *hopeless*) echo 'nobody can' && exit 65 ;;
  *fails*) echo 'cannot do it' && exit 1 ;;
  *waits*) echo "$$" >started && until [ -e go ]; do sleep 0.05; done ;;
esac
[ -z "$SECRET" ] || echo 'with the secret'
printf 'did \\0 it\\n'
`;

/** The same in the function of worker.py. */
const PYTHON_WORK = `
    if "fails" in task["title"]: raise ValueError("cannot do it")
    if "waits" in task["title"]: open("started", "w").write("x")
    while "waits" in task["title"] and not os.path.exists("go"):
        if lost.wait(0.05): raise TimeoutError
    return {"problem": "p", "improvement": "did it", "lesson": "l"}
`;

/** The seconds between heartbeats, and those of a task without a timeout. */
const PAUSES = /(?<=\[|min\()30\b/g;
const NO_TIMEOUT = /(?<=timeout_s (?:\/\/|or) )90\b/g;

const HANG_S = HANG_MS / 1_000;

const SHELL_NEEDS = ["bash", "curl", "jq"];
const workers = [
  { name: "worker.sh", needs: SHELL_NEEDS, file: "worker.sh", text: example("worker.sh") },
  {
    name: "worker.py",
    needs: ["python3"],
    file: "worker.py",
    text: example("worker.py").replace(/(?<=def work\(task, lost\):\n)/, PYTHON_WORK),
  },
];

/** How a name of a test ends: with what is missing here, if anything is. */
function lacking(needs: readonly string[]): string {
  const missing = needs.filter((name) => Bun.which(name) === null);
  return missing.length === 0 ? "" : ` (skipped: there is no ${missing.join(" and no ")} here)`;
}

const folder = new TempDir();
let hub: Hub;
let port = "0";

beforeAll(async () => {
  await startHub();
  port = String(hub.port);
});

afterAll(async () => {
  await hub[Symbol.asyncDispose]();
  folder[Symbol.dispose]();
});

async function startHub(): Promise<void> {
  hub = await Hub.start({ data: folder.join("data"), host: OWN_HOST, env: { LUXHUB_PORT: port } });
}

async function ok(call: Promise<Answer>): Promise<Fields> {
  const { status, body } = await call;
  expect([status, body["success"]]).toEqual([200, true]);
  return body;
}

const field = (body: Fields, name: string): Fields => objectOf(JSON.stringify(body[name] ?? null));

async function create(title: string, more: Fields = {}): Promise<string> {
  const fields = { title, description: "Of the examples", lux_reward: 1, ...more };
  return String((await ok(hub.post("/task/create", fields)))["task_id"]);
}

const taskOf = async (id: string, query = ""): Promise<Fields> =>
  field(await ok(hub.get(`/task/${id}${query}`)), "task");

/** The task when it has ended. */
async function ended(id: string): Promise<Fields> {
  const task = await taskOf(id, `?wait=${HANG_MS / 1_000}`);
  if (!/^(?:completed|failed)$/.test(String(task["status"]))) throw await unended();
  return task;
}

/** What is known when a worker does not do what it should. */
async function unended(): Promise<Error> {
  const { tasks } = await ok(hub.get("/task/list?per_page=5"));
  return new Error(`${JSON.stringify(tasks, null, 1)}\n${hub.program.stdout.slice(-4_000)}`);
}

const nodeOf = async (id: string): Promise<Fields> => field(await ok(hub.get(`/node/${id}`)), "node");

/** A program of the examples in a directory of its own, in a process group of its own that ends with the block. */
class Example implements AsyncDisposable {
  readonly child: Bun.Subprocess<"ignore", "pipe", "pipe">;
  readonly #output: Promise<[string, string]>;

  constructor(cwd: string, command: readonly string[]) {
    const { PATH = "", HOME = "" } = process.env;
    this.child = Bun.spawn([...command], {
      cwd,
      env: { PATH, HOME, HUB: `http://${OWN_HOST}:${hub.port}`, SECRET },
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
      detached: true,
    });
    this.#output = Promise.all([this.child.stdout.text(), this.child.stderr.text()]);
  }

  async ended(): Promise<{ code: number | null; out: string; err: string }> {
    const code = await this.child.exited;
    const [out, err] = await this.#output;
    return { code, out, err };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    try {
      process.kill(-this.child.pid, "SIGKILL");
    } catch {
      return; // all of them have ended
    }
    await this.child.exited;
    // The curl of a killed worker.sh may outlive it by a moment: its call would take the next task, which nobody does.
    await until(async () => (await waitingCalls()) === 0);
  }
}

async function waitingCalls(): Promise<number> {
  const { api, secret } = hub;
  const response = await fetch(new URL("/metrics", api), { headers: { "X-Matrix-Secret": secret } });
  return Number(/^luxhub_waiting_calls\{secret="valid"\} (\d+)$/m.exec(await response.text())?.[1]);
}

/** A directory with a worker and its work in it. */
class Workplace extends TempDir {
  readonly #file: string;

  /** `pauseS`: between heartbeats. */
  constructor({ file, text, pauseS = 0.2 }: { file: string; text: string; pauseS?: number }) {
    super();
    this.#file = file;
    expect(text).toMatch(PAUSES);
    expect(text).toMatch(NO_TIMEOUT);
    const adapted = text.replaceAll(PAUSES, String(pauseS)).replaceAll(NO_TIMEOUT, String(3 * pauseS));
    writeFileSync(this.join(file), adapted);
    writeFileSync(this.join("work"), WORK);
    chmodSync(this.join("work"), 0o755);
  }

  start(nodeId: string): Example {
    const program = this.#file.endsWith(".py") ? "python3" : "bash";
    return new Example(this.path, [program, this.#file, nodeId, "./work"]);
  }

  /** Resolves when the work has begun that waits for `go`. */
  async begun(): Promise<string> {
    const started = this.join("started");
    const hasBegun = (): boolean => existsSync(started) && readFileSync(started, "utf8") !== "";
    await until(hasBegun).catch(async () => {
      throw await unended();
    });
    const said = readFileSync(started, "utf8").trim();
    rmSync(started);
    return said;
  }

  go(): void {
    writeFileSync(this.join("go"), "");
  }

  halt(): void {
    rmSync(this.join("go"));
  }
}

for (const { name, needs, file, text } of workers) {
  const reason = lacking(needs);
  describe.skipIf(reason !== "")(`${name}${reason}`, () => {
    const nodeId = `node-${file}`;

    test("completes tasks, fails one, resumes after kill -9, and waits for a hub that was killed", async () => {
      using place = new Workplace({ file, text });
      const titles = ["one", 'two "task_id":"x" \\ $HOME `id`'];
      const tasks = await Promise.all(titles.map((title) => create(title)));
      const failing = await create("fails", { max_attempts: 1 });
      const waiting = await create("waits", { priority: 2 });
      {
        await using _worker = place.start(nodeId);
        for (const id of tasks) {
          const task = await ended(id);
          expect(task).toMatchObject({ status: "completed", assigned_node: nodeId, attempts: 0 });
          expect(JSON.stringify(task["result"])).toContain("did");
          expect(JSON.stringify(task["result"])).not.toContain("secret");
        }
        const failed = await ended(failing);
        expect(failed).toMatchObject({ status: "failed", attempts: 1 });
        expect(String(field(failed, "failure")["message"])).toContain("cannot do it");
        await place.begun();
        const { last_heartbeat: before } = await nodeOf(nodeId);
        await until(async () => (await nodeOf(nodeId))["last_heartbeat"] !== before);
      }
      expect(await taskOf(waiting)).toMatchObject({ status: "assigned", assigned_node: nodeId });
      const open = await create("after the restart", { priority: 0 });
      {
        await using _worker = place.start(nodeId);
        await place.begun(); // what it had begun comes before what is more urgent
        await hub[Symbol.asyncDispose]();
        place.go(); // it ends while the hub is away
        await startHub();
        expect(await ended(waiting)).toMatchObject({ status: "completed", attempts: 0 });
        expect(await ended(open)).toMatchObject({ status: "completed", assigned_node: nodeId });
      }
      expect(await nodeOf(nodeId)).toMatchObject({ tasks_assigned: 0, tasks_completed: 4, lux_balance: 4 });
      const { events } = await ok(hub.get(`/events?since=0&task_id=${waiting}`));
      // It asks with resume, so the hub says when it took its task again.
      const isAgain = ({ data }: Fields): boolean => objectOf(JSON.stringify(data))["by"] === "resume";
      const kinds = listOf(events).flatMap((event) => (isAgain(event) ? [] : [event["kind"]]));
      expect(kinds).toEqual(["task.created", "task.assigned", "task.completed", "lux.paid"]);
    });

    test("extends its lease, drops a task that was taken from it, and leaves at SIGTERM", async () => {
      using place = new Workplace({ file, text });
      const id = await create("waits", { timeout_s: 600 });
      await using worker = place.start(nodeId);
      const work = await place.begun();
      // A repeated claim changes nothing and shows the lease.
      const lease = async (): Promise<Fields> =>
        field(await ok(hub.post("/task/claim", { task_id: id, node_id: nodeId })), "lease");
      const before = await lease();
      await until(async () => String((await lease())["expires_at"]) > String(before["expires_at"]));
      expect((await lease())["epoch"]).toBe(before["epoch"]);

      await ok(hub.admin("/task/revoke", { task_id: id }));
      const again = await place.begun(); // it has stopped, and was given it again
      if (file.endsWith(".sh")) expect(again).not.toBe(work);
      expect(Number((await lease())["epoch"])).toBeGreaterThan(Number(before["epoch"]));

      worker.child.kill("SIGTERM");
      const later = await create("after SIGTERM");
      place.go();
      const { code, err } = await worker.ended();
      expect(code).toBe(0);
      expect(err).toContain("stale_lease");
      expect(await taskOf(id)).toMatchObject({ status: "completed", assigned_node: nodeId, attempts: 0 });
      expect(await taskOf(later)).toMatchObject({ status: "open" });
      expect(await nodeOf(nodeId)).toMatchObject({ status: "offline", tasks_assigned: 0 });
      await ok(hub.admin("/task/delete", { task_id: later }));
    });

    test("stops at once when its task is cancelled or taken away, though its next heartbeat is far", async () => {
      using place = new Workplace({ file, text, pauseS: 10 * HANG_S });
      await using _worker = place.start(nodeId);
      const cancelled = await create("waits");
      const work = await place.begun();
      await ok(hub.post("/task/cancel", { task_id: cancelled }));
      const revoked = await create("waits");
      const next = await place.begun(); // it does not wait for `go`
      if (file.endsWith(".sh")) expect(() => process.kill(Number(work), 0)).toThrow();
      await ok(hub.admin("/task/revoke", { task_id: revoked }));
      const again = await place.begun();
      if (file.endsWith(".sh")) expect(again).not.toBe(next);
      place.go();
      expect(await ended(revoked)).toMatchObject({ status: "completed", assigned_node: nodeId, attempts: 0 });
      expect(await taskOf(cancelled)).toMatchObject({ status: "failed", failure: { kind: "cancelled" } });
    });
  });
}

const SHELL = lacking(SHELL_NEEDS);
const PYTHON = lacking(["python3"]);

/** Does tasks as worker.sh does, in this process: of the time of worker.sh, jq takes most. */
class Workman implements AsyncDisposable {
  #isDone = false;
  readonly #working: Promise<void>;

  constructor(nodeId: string) {
    this.#working = this.#work(nodeId);
  }

  async #work(nodeId: string): Promise<void> {
    await ok(hub.post("/node/register", { node_id: nodeId, name: nodeId }));
    while (!this.#isDone) {
      const given = await ok(hub.post("/task/next", { node_id: nodeId, wait: 0.2 }));
      const { task_id, title, description } = field(given, "task");
      if (task_id === undefined) continue;
      const held = { task_id, node_id: nodeId };
      const result = { problem: title, improvement: "Done", lesson: "None", output: "did it" };
      const error = { error: "exit status 65: nobody can", retry: false };
      if (/hopeless/.test(`${title} ${description}`)) await ok(hub.post("/task/fail", { ...held, ...error }));
      else await ok(hub.post("/task/complete", { ...held, result }));
    }
    await ok(hub.post("/node/leave", { node_id: nodeId }));
  }

  [Symbol.asyncDispose](): Promise<void> {
    this.#isDone = true;
    return this.#working;
  }
}

test.skipIf(SHELL !== "")(`producer.sh prints the result of its task${SHELL}`, async () => {
  await using _worker = new Workman("node-producer");
  const produce = async (title: string): Promise<{ code: number | null; out: string; err: string }> => {
    await using producer = new Example(folder.path, [
      "bash",
      join(PROJECT, "docs/examples/producer.sh"),
      title,
      'With "quotes" and $more',
    ]);
    return await producer.ended();
  };
  const good = await produce("Say hello");
  expect([good.code, good.err]).toEqual([0, ""]);
  expect(objectOf(good.out)).toMatchObject({ problem: "Say hello", output: "did it" });
  const bad = await produce("a hopeless one"); // exit status 65: not tried again
  expect([bad.code, bad.out]).toEqual([1, ""]);
  expect(bad.err).toContain("the task has failed (failed): exit status 65: nobody can");
  const refused = await produce(" ");
  expect(refused.code).toBe(1);
  expect(refused.err).toContain("invalid_request");
});

test.skipIf(PYTHON !== "")(`planner.py collects the results of its parts${PYTHON}`, async () => {
  await using _worker = new Workman("node-planner");
  const plan = async (
    ...parts: readonly string[]
  ): Promise<{ code: number | null; out: string; err: string }> => {
    await using planner = new Example(folder.path, [
      "python3",
      join(PROJECT, "docs/examples/planner.py"),
      ...parts,
    ]);
    return await planner.ended();
  };
  const good = await plan("First", "Second");
  expect([good.code, good.err]).toEqual([0, ""]);
  const results: unknown = JSON.parse(good.out);
  expect(listOf(results).map(({ problem }) => problem)).toEqual(["Part 1", "Part 2", "All parts"]);
  const bad = await plan("First", "hopeless");
  expect([bad.code, bad.out]).toEqual([1, ""]);
  expect(bad.err).toContain("Part 2: failed: exit status 65: nobody can");
  expect(bad.err).toContain("All parts: dependency:");
});

/** Compiled workers, of about 60 lines: what they are compiled with, where it can be had. */
const CRATES = "/usr/share/cargo/registry"; // those of Debian, so that nothing is downloaded
const compiled = [
  {
    name: "worker.go",
    needs: ["go"],
    missing: null,
    build: async (dir: TempDir): Promise<string> => {
      writeFileSync(dir.join("worker.go"), example("worker.go"));
      await built(["go", "build", "-o", "worker", "worker.go"], dir, { GOCACHE: dir.join("cache") });
      return dir.join("worker");
    },
  },
  {
    name: "worker.rs",
    needs: ["cargo"],
    missing:
      existsSync(join(CRATES, "ureq")) || existsSync(join(CRATES, "ureq-2.6.2")) ? null : "crates of Debian",
    build: async (dir: TempDir): Promise<string> => {
      const text = example("worker.rs");
      const needed = [...text.matchAll(/serde_json = "1"|ureq = \{.*?\}/g)].join("\n");
      const manifest = `[package]\nname = "worker"\nversion = "0.1.0"\nedition = "2021"\n[dependencies]\n${needed}\n`;
      writeFileSync(dir.join("Cargo.toml"), manifest);
      mkdirSync(dir.join("src"));
      writeFileSync(dir.join("src/main.rs"), text);
      const from = `[source.crates-io]\nreplace-with = "debian"\n[source.debian]\ndirectory = "${CRATES}"\n`;
      mkdirSync(dir.join(".cargo"));
      writeFileSync(dir.join(".cargo/config.toml"), from);
      await built(["cargo", "build", "--offline", "--quiet"], dir, {});
      return dir.join("target/debug/worker");
    },
  },
];

async function built(command: readonly string[], dir: TempDir, env: Record<string, string>): Promise<void> {
  const { PATH = "", HOME = "" } = process.env;
  const child = Bun.spawn([...command], { cwd: dir.path, env: { PATH, HOME, ...env }, stderr: "pipe" });
  const [code, text] = await Promise.all([child.exited, child.stderr.text()]);
  expect([code, code === 0 ? "" : text]).toEqual([0, ""]);
}

for (const { name, needs, missing, build } of compiled) {
  const reason = lacking(needs) || (missing === null ? "" : ` (skipped: there are no ${missing} here)`);
  test.skipIf(reason !== "")(
    `${name} completes tasks, fails one, and takes its task up again after kill -9${reason}`,
    async () => {
      using dir = new TempDir();
      const program = await build(dir);
      const nodeId = `node-${name}`;
      const [done, failing] = [
        await create("one two", { priority: 0 }),
        await create("fails", { max_attempts: 1 }),
      ];
      {
        await using _worker = new Example(dir.path, [program, nodeId]);
        expect(await ended(done)).toMatchObject({ status: "completed", result: { output: { words: 3 } } });
        expect(field(await ended(failing), "failure")).toMatchObject({ message: "cannot do fails" });
      }
      const held = await create("held");
      await ok(hub.post("/task/claim", { task_id: held, node_id: nodeId }));
      await using _again = new Example(dir.path, [program, nodeId]);
      expect(await ended(held)).toMatchObject({ status: "completed", assigned_node: nodeId });
    },
  );
}
