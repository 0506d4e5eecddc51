/**
 * Every published worker, killed while it waits, works and reports: no process of it is left, its node goes offline, and
 * its task is free again; a call that waited takes no task that comes later. The pauses of the scripts are shortened, and
 * their waits are lengthened: one that goes on waiting outlives the test.
 */
import { describe, expect, test } from "bun:test";
import { chmodSync, existsSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { SECOND_MS } from "../../src/lib/clock.ts";
import { TempDir, objectOf, until } from "../e2e/program.ts";
import { PROGRAM, PROJECT } from "../support/executable.ts";
import { SECRET, type TestHub, startHub } from "../support/hub.ts";

const read = (path: string): string => readFileSync(join(PROJECT, path), "utf8");

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
import { LuxHub } from ${JSON.stringify(join(PROJECT, "src/client/index.ts"))};
const { HUB: url = "", SECRET: secret = "" } = process.env;
await new LuxHub({ url, secret }).worker(process.argv[2] ?? "", async ({ title }) => {
  if (title.includes("works")) writeFileSync("started", "");
  while (title.includes("works") && !existsSync("go")) await Bun.sleep(50);
  return { problem: "p", improvement: "i", lesson: "l" };
});
`;

/** Between heartbeats. */
const PAUSES = /(?<=\[|min\()30\b/g;
/** Seconds of a call that waits, and those after which its client gives up. */
const WAITS = /(?<=wait: |wait=|timeout=|-m )(?:25|60)\b/g;

/** The text of a worker as it is tested here. */
function adapted(text: string): string {
  return text.replaceAll(PAUSES, "0.2").replaceAll(WAITS, "300");
}

type Published = {
  readonly name: string;
  readonly needs: readonly string[];
  readonly command: readonly string[];
  readonly text: string;
  readonly args: readonly string[];
  /** Also when the process that was started is killed. */
  readonly stopsInOrder?: boolean;
};

const SHELL_NEEDS = ["bash", "curl", "jq"];
const WORKERS: readonly Published[] = [
  {
    name: "docs/examples/worker.sh",
    needs: SHELL_NEEDS,
    command: ["bash", "worker"],
    text: adapted(read("docs/examples/worker.sh")),
    args: ["victim", "./work"],
  },
  {
    name: "docs/examples/worker.py",
    needs: ["python3"],
    command: ["python3", "worker"],
    text: adapted(read("docs/examples/worker.py")).replace(/(?<=def work\(task, lost\):\n)/, PYTHON_WORK),
    args: ["victim"],
  },
  {
    name: "the worker of the Python client",
    needs: ["python3"],
    command: ["python3", "worker"],
    text: PYTHON_CLIENT,
    args: ["victim"],
  },
  {
    name: "the worker of the TypeScript client",
    needs: [],
    command: [process.execPath, "worker.ts"],
    text: TYPESCRIPT,
    args: ["victim"],
  },
  {
    name: "luxhub worker",
    needs: [],
    command: [...PROGRAM, "worker"],
    text: "",
    args: ["--node", "victim", "--", "./work"],
  },
  {
    name: "luxhub worker under npx",
    needs: ["npm"],
    command: ["npm", "exec", "-c", `${PROGRAM.join(" ")} worker --node victim -- ./work`],
    text: "",
    args: [],
    stopsInOrder: true, // it sees that npx is gone
  },
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

  constructor({ command, text, args }: Pick<Published, "command" | "text" | "args">, url: string) {
    super();
    this.#mark = `KILLED_WORKER=${this.path}`;
    for (const name of ["worker", "worker.ts"]) writeFileSync(this.join(name), text);
    writeFileSync(this.join("luxhub.py"), read("src/client/luxhub.py"));
    writeFileSync(this.join("work"), SHELL_WORK);
    chmodSync(this.join("work"), 0o755);
    this.child = Bun.spawn([...command, ...args], {
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
const BOTH = ["SIGKILL", "SIGTERM"] as const;
/** One that stops in order waits for its hub, to leave it. */
const SIGNALS = { waits: BOTH, works: BOTH, reports: BOTH, "is without its hub": ["SIGKILL"] } as const;

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

async function waitingCalls(hub: TestHub): Promise<number> {
  const response = await fetch(`${hub.base()}/metrics`, { headers: { "X-Matrix-Secret": SECRET } });
  return Number(/^luxhub_waiting_calls\{secret="valid"\} (\d+)$/m.exec(await response.text())?.[1]);
}

const asked = (gate: Gate): number => gate.sent.split("/task/next").length - 1;

for (const worker of WORKERS) {
  const missing = worker.needs.filter((name) => Bun.which(name) === null);
  if (!existsSync("/proc/self/environ")) missing.push("/proc");
  const reason = missing.length === 0 ? "" : ` (skipped: there is no ${missing.join(" and no ")} here)`;
  describe.skipIf(reason !== "")(`${worker.name}${reason}`, () => {
    for (const state of STATES)
      for (const signal of SIGNALS[state])
        test(`${signal} while it ${state}`, async () => {
          await using hub = await startHub();
          using gate = new Gate(hub.port());
          using victim = new Victim(worker, gate.url);
          const begun = await bring(state, victim, gate, hub);
          victim.child.kill(signal);
          const isEnded = until(() => victim.running().length === 0);
          if (begun === "" && signal === "SIGKILL") {
            await isEnded;
            await until(async () => (await waitingCalls(hub)) === 0); // the connection ends a moment later
          }
          // After SIGTERM it may come in time for a worker that stops in order.
          const taskId = begun === "" ? await create(hub, "later") : begun;
          gate.drop();
          writeFileSync(victim.join("go"), ""); // a program that outlives its worker goes on to its end
          await isEnded;
          gate.isAway = false;
          const before = asked(gate);
          for (let passed = 0; passed < 240; passed += 30) {
            hub.clock.pass(30 * SECOND_MS);
            await hub.sweep();
          }
          const { body } = await hub.get(`/task/${taskId}`);
          const { events } = (await hub.get(`/events?since=0&task_id=${taskId}`)).body;
          if (begun === "" && signal === "SIGKILL") expect(events).toHaveLength(1); // nobody has had it
          // One that stops in order does what its last call was given.
          const isDone =
            (signal === "SIGTERM" || worker.stopsInOrder === true) &&
            objectOf(JSON.stringify(body["task"]))["status"] === "completed";
          if (!isDone)
            expect(body["task"]).toMatchObject({ status: "open", assigned_node: null, ready: true });
          expect((await hub.get("/node/victim")).body["node"]).toMatchObject({ status: "offline" });
          expect(asked(gate)).toBe(before);
        });
  });
}

/** The programs that wait for a task of theirs, and take none. */
const WAITERS = [
  { name: "producer.sh", needs: SHELL_NEEDS, program: "bash", args: ["Watched", "By its producer"] },
  { name: "planner.py", needs: ["python3"], program: "python3", args: ["First part"] },
] as const;

for (const { name, needs, program, args } of WAITERS) {
  const missing = needs.filter((one) => Bun.which(one) === null);
  if (!existsSync("/proc/self/environ")) missing.push("/proc");
  const reason = missing.length === 0 ? "" : ` (skipped: there is no ${missing.join(" and no ")} here)`;
  describe.skipIf(reason !== "")(`docs/examples/${name}${reason}`, () => {
    for (const isAway of [false, true])
      test(`SIGKILL while it ${isAway ? "is without its hub" : "waits"}`, async () => {
        await using hub = await startHub();
        using gate = new Gate(hub.port());
        // Its last call ends by itself, after a wait that is shortened here; nothing must come after it.
        const text = read(`docs/examples/${name}`).replaceAll(/\?wait=\d+/g, "?wait=1");
        using victim = new Victim({ command: [program, "worker"], text, args }, gate.url);
        await until(() => gate.sent.includes("?wait=1"));
        if (isAway) {
          gate.goAway();
          await until(() => gate.refused > 1);
        }
        victim.child.kill("SIGKILL");
        await until(() => victim.running().length === 0);
      });
  });
}
