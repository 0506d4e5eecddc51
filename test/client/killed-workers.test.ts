/**
 * Every published worker, killed while it waits, works and reports: no process of it is left that asks the hub for tasks,
 * its node goes offline, and its task is free again. Only the pauses of the scripts are shortened.
 */
import { describe, expect, test } from "bun:test";
import { chmodSync, existsSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { SECOND_MS } from "../../src/lib/clock.ts";
import { TempDir, objectOf, until } from "../e2e/program.ts";
import { PROGRAM, PROJECT } from "../support/executable.ts";
import { SECRET, type TestHub, startHub } from "../support/hub.ts";

const read = (path: string): string => readFileSync(join(PROJECT, path), "utf8");

/** The one block of a page in a language. */
function block(page: string, language: string): string {
  const [, text = "", ...more] = read(page).split(new RegExp(`^\`\`\`${language}\n`, "m"));
  expect(more).toEqual([]);
  return text.split("\n```")[0] ?? "";
}

/** Says that it has started, and goes on when the file `go` is there. */
const SHELL_WORK = `#!/usr/bin/env bash
case $(cat) in *works*) : >started && until [ -e go ]; do sleep 0.05; done ;; esac
echo done
`;
const PYTHON_WORK = `
    if "works" in task["title"]: open("started", "w").close()
    while "works" in task["title"] and not os.path.exists("go"): time.sleep(0.05)
    return {"problem": "p", "improvement": "i", "lesson": "l"}
`;
const PYTHON_CLIENT = `import os, sys, time
from luxhub import LuxHub
def handle(task, context):${PYTHON_WORK}
LuxHub(os.environ["HUB"], secret=os.environ["SECRET"]).worker(sys.argv[1], handle)
`;
const TYPESCRIPT = `import { existsSync, writeFileSync } from "node:fs";
import { LuxHub } from ${JSON.stringify(join(PROJECT, "src/client/luxhub.ts"))};
const { HUB: url = "", SECRET: secret = "" } = process.env;
await new LuxHub({ url, secret }).worker(process.argv[2] ?? "", async ({ title }) => {
  if (title.includes("works")) writeFileSync("started", "");
  while (title.includes("works") && !existsSync("go")) await Bun.sleep(50);
  return { problem: "p", improvement: "i", lesson: "l" };
});
`;

/** Between heartbeats. */
const PAUSES = /(?<=sleep |time\.sleep\(|\[|min\()30\b/g;

type Published = {
  readonly name: string;
  readonly needs: readonly string[];
  /** Without the id of the node and the program. */
  readonly command: readonly string[];
  readonly text: string;
};

const SHELL_NEEDS = ["bash", "curl", "jq"];
const WORKERS: readonly Published[] = [
  {
    name: "the bash worker of docs/worker.md",
    needs: SHELL_NEEDS,
    command: ["bash", "worker"],
    text: block("docs/worker.md", "bash"),
  },
  {
    name: "docs/examples/worker.sh",
    needs: SHELL_NEEDS,
    command: ["bash", "worker"],
    text: read("docs/examples/worker.sh"),
  },
  {
    name: "the Python worker of docs/worker.md",
    needs: ["python3"],
    command: ["python3", "worker"],
    text: block("docs/worker.md", "python"),
  },
  {
    name: "docs/examples/worker.py",
    needs: ["python3"],
    command: ["python3", "worker"],
    text: read("docs/examples/worker.py").replace(/(?<=def work\(task, lost\):\n)/, PYTHON_WORK),
  },
  {
    name: "the worker of the Python client",
    needs: ["python3"],
    command: ["python3", "worker"],
    text: PYTHON_CLIENT,
  },
  {
    name: "the worker of the TypeScript client",
    needs: [],
    command: [process.execPath, "worker.ts"],
    text: TYPESCRIPT,
  },
  { name: "luxhub worker", needs: [], command: [...PROGRAM, "worker", "--node"], text: "" },
];

/** A TCP proxy that can keep a request from the hub. */
class Gate implements Disposable {
  /** Requests that contain this text are kept, and the rest of their connection. */
  keeps: string | null = null;
  /** How many requests were kept. */
  kept = 0;
  /** Whether no connection is accepted. */
  isAway = false;
  refused = 0;
  /** What all clients have sent. */
  sent = "";
  readonly #listener: Bun.TCPSocketListener<Carried>;
  readonly #clients = new Set<Bun.Socket<Carried>>();

  constructor(port: number) {
    this.#listener = Bun.listen<Carried>({
      hostname: "127.0.0.1",
      port: 0,
      socket: {
        open: (client) => {
          if (this.isAway) {
            this.refused++;
            return void client.terminate();
          }
          this.#clients.add(client);
          const server = Bun.connect({
            hostname: "127.0.0.1",
            port,
            socket: {
              data: (_, bytes) => void client.write(bytes),
              close: () => void client.end(),
            },
          });
          client.data = { server, isKept: false };
        },
        data: async (client, bytes) => {
          if (this.isAway) return;
          const text = bytes.toString("latin1");
          this.sent += text;
          if (this.keeps !== null && text.includes(this.keeps)) {
            client.data.isKept = true;
            this.kept++;
          }
          const copy = Buffer.from(bytes);
          const { isKept } = client.data;
          const server = await client.data.server;
          if (!isKept) server.write(copy);
        },
        close: async (client) => {
          if (this.#clients.delete(client)) (await client.data.server).end();
        },
      },
    });
  }

  get url(): string {
    return `http://127.0.0.1:${this.#listener.port}`;
  }

  /** Drops the connections whose requests were kept. */
  drop(): void {
    this.keeps = null;
    for (const client of this.#clients) if (client.data.isKept) client.terminate();
  }

  /** Drops all connections and refuses new ones. */
  goAway(): void {
    this.isAway = true;
    for (const client of this.#clients) client.terminate();
  }

  [Symbol.dispose](): void {
    this.#listener.stop(true);
  }
}

type Carried = { readonly server: Promise<Bun.Socket<unknown>>; isKept: boolean };

/** A worker in a directory of its own, whose processes all have a mark in their environment. */
class Victim extends TempDir {
  readonly child: Bun.Subprocess;
  readonly #mark: string;

  constructor({ command, text }: Published, url: string) {
    super();
    this.#mark = `KILLED_WORKER=${this.path}`;
    for (const name of ["worker", "worker.ts"])
      writeFileSync(this.join(name), text.replaceAll(PAUSES, "0.2"));
    writeFileSync(this.join("luxhub.py"), read("src/client/luxhub.py"));
    writeFileSync(this.join("work"), SHELL_WORK);
    chmodSync(this.join("work"), 0o755);
    const separator = command.at(-1) === "--node" ? ["--"] : [];
    this.child = Bun.spawn([...command, "victim", ...separator, "./work"], {
      cwd: this.path,
      env: {
        PATH: process.env["PATH"] ?? "",
        HOME: this.path,
        HUB: url,
        SECRET,
        LUXHUB_URL: url,
        LUXHUB_SECRET: SECRET,
        KILLED_WORKER: this.path,
      },
      stdio: ["ignore", "ignore", "ignore"],
    });
  }

  /** The processes of the worker that run. */
  running(): readonly string[] {
    return readdirSync("/proc").filter((name) => {
      if (!/^\d+$/.test(name)) return false;
      try {
        return readFileSync(`/proc/${name}/environ`, "utf8").split("\0").includes(this.#mark);
      } catch {
        return false; // it has ended, or is another user's
      }
    });
  }

  override [Symbol.dispose](): void {
    for (const pid of this.running()) process.kill(Number(pid), "SIGKILL");
    super[Symbol.dispose]();
  }
}

const STATES = ["waits", "works", "reports", "is without its hub"] as const;

/** Brings the worker into the state; returns the task that it has, if it has one. */
async function bring(
  state: (typeof STATES)[number],
  victim: Victim,
  gate: Gate,
  hub: TestHub,
): Promise<string> {
  if (state === "waits") {
    await until(() => gate.sent.includes("/task/next"));
    return "";
  }
  if (state === "is without its hub") {
    await until(() => gate.sent.includes("/task/next"));
    gate.goAway();
    await until(() => gate.refused > 1);
    return "";
  }
  if (state === "reports") gate.keeps = "/task/complete";
  const taskId = await create(hub, state);
  await until(() => (state === "works" ? existsSync(victim.join("started")) : gate.kept > 0));
  return taskId;
}

async function create(hub: TestHub, title: string): Promise<string> {
  const { body } = await hub.post("/task/create", { title, description: "d" });
  return String(body["task_id"]);
}

const asked = (gate: Gate): number => gate.sent.split("/task/next").length - 1;

for (const worker of WORKERS) {
  const missing = worker.needs.filter((name) => Bun.which(name) === null);
  if (!existsSync("/proc/self/environ")) missing.push("/proc");
  const reason = missing.length === 0 ? "" : ` (skipped: there is no ${missing.join(" and no ")} here)`;
  describe.skipIf(reason !== "")(`${worker.name}${reason}`, () => {
    for (const state of STATES)
      for (const signal of state === "waits" ? (["SIGKILL", "SIGTERM"] as const) : (["SIGKILL"] as const))
        test(`${signal} while it ${state}`, async () => {
          await using hub = await startHub();
          using gate = new Gate(hub.port());
          using victim = new Victim(worker, gate.url);
          const begun = await bring(state, victim, gate, hub);
          victim.child.kill(signal);
          if (signal === "SIGKILL") await victim.child.exited;
          // What a call of it that still waits is given must come free, too.
          const taskId = begun === "" ? await create(hub, "later") : begun;
          gate.drop();
          writeFileSync(victim.join("go"), ""); // the program that it ran goes on to its end
          await until(() => victim.running().length === 0);
          gate.isAway = false;
          const before = asked(gate);
          for (let passed = 0; passed < 240; passed += 30) {
            hub.clock.pass(30 * SECOND_MS);
            await hub.sweep();
          }
          const { body } = await hub.get(`/task/${taskId}`);
          // One that stops in order at SIGTERM does what its last call was given.
          const isDone =
            signal === "SIGTERM" && objectOf(JSON.stringify(body["task"]))["status"] === "completed";
          if (!isDone)
            expect(body["task"]).toMatchObject({ status: "open", assigned_node: null, ready: true });
          expect((await hub.get("/node/victim")).body["node"]).toMatchObject({ status: "offline" });
          expect(asked(gate)).toBe(before);
        });
  });
}
