/**
 * Coding agents with a repository: several workers with two tasks at once work in one repository, with agents which work,
 * hang, refuse, are signed out, commit by themselves, edit nothing, change one line or make repositories. Workers and
 * agents are killed at random. At the end every task must have its branch and a patch that makes the branch of its base,
 * and nothing else may be different or left. The agents are imitated here; repository-agents.ts has the real programs.
 */
import { existsSync, mkdirSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { LuxHub, type Task } from "../../src/client/luxhub.ts";
import { allPids, readIfThere } from "../../src/cli/worker-lock.ts";
import { Hub, Program, SECRET, TempDir, listOf } from "../../test/e2e/program.ts";
import { OWN_HOST } from "../../test/support/keeper.ts";
import { must } from "../../src/lib/assert.ts";
import { playScene } from "./agents-programs.ts";
import { randomFrom } from "./random.ts";
import type { Figure, Section } from "./section.ts";

const FILES = 2_000;
const WORKERS = 4;
const KILLS = 24;
const LOOK_EVERY_MS = 300;
const FOUND_MAX = 40;
export const PLANTED = {
  MODEL_API_KEY: 'planted"key\\of-the-model',
  GITHUB_TOKEN: "planted-token-of-github",
};
/** What each secret has, however it is written. */
const MARKS = ["key\\\\of-the-model", "key\\of-the-model", "planted-token", "of-github"];

/** No reviewer passes a patch with it. */
export const BAD = "BAD WORK";

/** Who plays the agents. */
export type Cast = {
  /** What an agent does, by the first word of the title of its task, and how the task must end; 40 tasks. */
  readonly kinds: readonly {
    readonly kind: string;
    readonly status: "completed" | "failed";
    readonly share: number;
    readonly fields?: { readonly max_attempts?: number; readonly review?: string };
  }[];
  /** The agent, the types of tasks and the environment of a worker. */
  readonly agentOf: (worker: number) => {
    readonly agent: string;
    readonly types: string;
    readonly env: Readonly<Record<string, string>>;
  };
  /** In the command line of each agent. */
  readonly program: RegExp;
  readonly idleS: number;
  readonly killAfterMs: { readonly least: number; readonly most: number };
  /** The agent of the first worker is signed out for so long. */
  readonly signedOutMs: number;
  readonly signOut: (isOut: boolean) => void;
};

/** What it does by the first word of the title. A run of `work` may end itself in the middle. */
const AGENT = `
[ ! -e "$DIR/signed-out-$LUXHUB_NODE_ID" ] || { echo "Not logged in: $GITHUB_TOKEN" >&2; exit 1; }
kind=\${LUXHUB_TASK_TITLE%% *}; n=\${LUXHUB_TASK_TITLE##* }
say() { printf '{"answer": "%s", "out": 5}\\n' "$1"; }
result() { printf '%s\\n' "$1" > .luxhub/result.json; }
say "began with $GITHUB_TOKEN"
echo "$MODEL_API_KEY" >&2
echo '{"note": "'"$GITHUB_TOKEN"'", "usage": {"model": "'"$GITHUB_TOKEN"'", "input_tokens": 1, "output_tokens": 1}}' >> .luxhub/.luxhub-report
mkdir -p .luxhub/out; echo "$MODEL_API_KEY" > .luxhub/out/log.txt
case $kind in
  hang) echo half > half.txt; sleep 600;;
  refuse) result '{"failed": "I will not", "retry": false}'; exit 0;;
  nested) git init -q inner; echo x > x.txt; echo y > inner/y.txt;;
  line) echo "line $n" > dir-0/file-0.txt;;
  nothing) ;;
  branch) git checkout -q -b "aside-$n" && git config user.name x && echo z > z.txt && git add . && git commit -qm Aside && echo more >> z.txt;;
  *) for i in 1 2 3; do
       echo "$n $i" >> "dir-$((n % 20))/new-$n-$i.txt"; echo "$n" >> "dir-$i/file-$i.txt"; rm -f "dir-4/file-$((n * 20 + 4)).txt"
       [ $kind = work ] || { git add --all && git commit -qm "Step $i of $n"; }
       sleep 0.$((RANDOM % 7 + 1))
     done;;
esac
[ $kind != work ] || [ $((RANDOM % 4)) -gt 0 ] || kill -9 $$
result '{"problem": "p", "improvement": "i '"$GITHUB_TOKEN"'", "lesson": "none", "output": {"n": '"$n"'}}'
say done
`;
const AGENT_TABLE = `
[agent.imitated]
program = "bash"
args = ["agent.sh"]
[agent.imitated.reads]
answer = { at = "answer" }
output_tokens = { at = "out", take = "sum" }
`;

function imitated(dir: TempDir): Cast {
  writeFileSync(dir.join("agent.sh"), AGENT);
  const table = AGENT_TABLE.replace("agent.sh", dir.join("agent.sh"));
  writeFileSync(dir.join("cwd/worker.toml"), table, { mode: 0o600 });
  const signedOut = dir.join("signed-out-w0");
  return {
    kinds: [
      { kind: "work", status: "completed", share: 16 },
      { kind: "commit", status: "completed", share: 6 },
      { kind: "line", status: "completed", share: 4 },
      { kind: "nothing", status: "completed", share: 3 },
      { kind: "branch", status: "completed", share: 3 },
      { kind: "login", status: "completed", share: 2 },
      // They fail each time.
      { kind: "hang", status: "failed", share: 2, fields: { max_attempts: 3 } },
      { kind: "refuse", status: "failed", share: 2 },
      { kind: "nested", status: "failed", share: 2, fields: { max_attempts: 3 } },
    ],
    agentOf: (i) => ({ agent: "imitated", types: i === 0 ? "coding,login" : "coding", env: {} }),
    program: /agent\.sh/,
    idleS: 6,
    killAfterMs: { least: 400, most: 1_600 },
    signedOutMs: 15_000,
    signOut: (isOut) => (isOut ? writeFileSync(signedOut, "") : rmSync(signedOut, { force: true })),
  };
}

export type Report = {
  readonly faults: string[];
  isRestShown: boolean;
  killed: number;
  completed: number;
  failed: number;
  patches: number;
  /** Tasks with commits of the agent's own. */
  ownCommits: number;
};

export class Scene implements AsyncDisposable {
  readonly dir = new TempDir();
  readonly repo = this.dir.join("the repository");
  readonly hub: Hub;
  readonly client: LuxHub;
  readonly #workers: Program[] = [];
  readonly logs: string[] = [];
  isClosing = false;
  readonly cast: Cast;

  private constructor(hub: Hub, castIn: (dir: TempDir) => Cast) {
    this.hub = hub;
    for (const name of ["the repository", "cwd"]) mkdirSync(this.dir.join(name));
    this.cast = castIn(this.dir);
    this.client = new LuxHub({ url: `http://${OWN_HOST}:${hub.port}`, secret: SECRET });
  }

  static async start(files: number, castIn: (dir: TempDir) => Cast): Promise<Scene> {
    const data = new TempDir();
    const scene = new Scene(await Hub.start({ data: data.path, host: OWN_HOST }), castIn);
    scene.data = data;
    scene.git("init", "--quiet");
    scene.git("config", "user.name", "Ada");
    scene.git("config", "user.email", "ada@example.org");
    for (let i = 0; i < files; i++) {
      mkdirSync(join(scene.repo, `dir-${i % 20}`), { recursive: true });
      writeFileSync(join(scene.repo, `dir-${i % 20}/file-${i}.txt`), `file ${i}\n`.repeat(20));
    }
    scene.git("add", ".");
    scene.git("commit", "--quiet", "-m", "First");
    writeFileSync(join(scene.repo, "dir-0/file-0.txt"), "not committed\n");
    writeFileSync(join(scene.repo, "mine.txt"), "not added\n");
    scene.git("status");
    return scene;
  }

  data = new TempDir();

  git(...args: readonly string[]): string {
    return this.gitWith({}, ...args);
  }

  /** @throws {Error} with what git said */
  gitWith(more: Readonly<Record<string, string>>, ...args: readonly string[]): string {
    const env = { PATH: process.env["PATH"], HOME: this.dir.path, GIT_OPTIONAL_LOCKS: "0", ...more };
    const { exitCode, stdout, stderr } = Bun.spawnSync(["git", "-C", this.repo, ...args], { env });
    if (exitCode !== 0) throw new Error(`git ${args[0]}: ${stderr.toString()}`);
    return stdout.toString().trimEnd();
  }

  startWorker(i: number): void {
    const { agent, types, env: agentEnv } = this.cast.agentOf(i);
    const flags = ["--capabilities", types, "--concurrency", "2", "--idle-timeout", String(this.cast.idleS)];
    const words = ["worker", "--agent", agent, "--node", `w${i}`, "--repo", this.repo, "--grace", "2"];
    const env = {
      ...PLANTED,
      LUXHUB_URL: `http://${OWN_HOST}:${this.hub.port}`,
      LUXHUB_SECRET: SECRET,
      XDG_STATE_HOME: this.dir.join("state"),
      HOME: this.dir.path,
      DIR: this.dir.path,
      BASH_ENV: "",
      ...agentEnv,
    };
    const worker = new Program([...words, ...flags], { cwd: this.dir.join("cwd"), env });
    this.#workers[i] = worker;
    void worker.ended.then((code) => {
      this.logs.push(worker.stderr, worker.stdout);
      if (this.isClosing) return;
      if (code !== null) this.logs.push(`ENDED w${i} with ${code}: ${worker.stderr}`);
      this.startWorker(i);
    });
  }

  killWorker(i: number): void {
    this.#workers[i]?.child.kill("SIGKILL");
  }

  /** Kills an agent that works; during an outage none of the worker that meets it. */
  killAgent(at: number, isOutage: boolean): void {
    const pids = allPids().filter((pid) => {
      const env = readIfThere(`/proc/${pid}/environ`);
      const isOurs = env.includes(`DIR=${this.dir.path}\0`) && env.includes("LUXHUB_TASK_ID=");
      if (!isOurs || (isOutage && env.includes("LUXHUB_NODE_ID=w0\0"))) return false;
      return this.cast.program.test(readIfThere(`/proc/${pid}/cmdline`));
    });
    const pid = Number(pids[Math.floor(at * pids.length)]);
    if (pid > 0) process.kill(pid, "SIGKILL");
  }

  async stopWorkers(): Promise<void> {
    this.isClosing = true;
    for (const { child } of this.#workers) child.kill("SIGTERM");
    await Promise.all(this.#workers.map(({ ended }) => ended));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.isClosing = true;
    for (const worker of this.#workers) await worker[Symbol.asyncDispose]();
    await this.hub[Symbol.asyncDispose]();
    this.dir[Symbol.dispose]();
    this.data[Symbol.dispose]();
  }
}

/** Every file of the user's: all but what branches and worktrees of tasks are made of, and a file of OpenCode's. */
function contentOf(scene: Scene): string {
  const OF_TASKS =
    /^\.git\/(?:objects|worktrees|packed-refs|(?:logs\/)?refs\/heads\/(?:luxhub|aside)|refs\/luxhub|logs\/refs\/luxhub|config$|opencode$)/;
  return readdirSync(scene.repo, { recursive: true, encoding: "utf8" })
    .filter((path) => !OF_TASKS.test(path) && statSync(join(scene.repo, path)).isFile())
    .toSorted()
    .map((path) => `${path} ${Bun.hash(readFileSync(join(scene.repo, path)))}`)
    .join("\n");
}

export async function runRepository(
  scale: number,
  seed: number,
  progress: (line: string) => void,
  castIn: (dir: TempDir) => Cast = imitated,
): Promise<Report> {
  const random = randomFrom(seed);
  const report: Report = {
    ...{ faults: [], killed: 0, completed: 0, failed: 0, patches: 0, ownCommits: 0 },
    isRestShown: false,
  };
  await using scene = await Scene.start(Math.max(200, Math.round(FILES * scale)), castIn);
  const { cast } = scene;
  const before = contentOf(scene);
  const plans = cast.kinds
    .flatMap(({ kind, share, ...plan }) =>
      Array.from({ length: Math.max(kind === "line" ? 2 : 1, Math.round(share * scale)) }, (_, i) => ({
        ...plan,
        kind,
        title: `${kind} ${i}`,
      })),
    )
    .toSorted(() => random() - 0.5);
  cast.signOut(true);
  const ids: string[] = [];
  for (const { kind, title, fields } of plans) {
    const task_type = kind === "login" ? "login" : "coding";
    const { task_id } = await scene.client.tasks.create({
      ...{ title, description: "d", task_type, backoff_s: 0, timeout_s: 10 },
      ...fields,
    });
    ids.push(task_id);
  }
  for (let i = 0; i < WORKERS; i++) scene.startWorker(i);
  const { least, most } = cast.killAfterMs;
  const kills = Math.max(4, Math.round(KILLS * scale));
  const signedInAt = Date.now() + cast.signedOutMs;
  let isOutage = true;
  let nextAt = Date.now() + most;
  let tasks: readonly Task[] = [];
  for (;;) {
    tasks = await Promise.all(ids.map(async (task_id) => (await scene.client.tasks.get({ task_id })).task));
    const unfinished = tasks.filter(
      ({ status, review }) =>
        (status !== "completed" && status !== "failed") ||
        (status === "completed" && review?.state === "pending"),
    );
    if (unfinished.length === 0) break;
    if (isOutage) {
      const { nodes } = await scene.client.nodes.list();
      report.isRestShown ||= nodes.some(
        ({ node_id, name }) => node_id === "w0" && / \(rests until /.test(name),
      );
      isOutage = Date.now() < signedInAt;
      if (!isOutage) cast.signOut(false);
    }
    if (report.killed < kills && Date.now() > nextAt) {
      if (random() < 0.5) scene.killWorker(Math.floor(random() * WORKERS));
      else scene.killAgent(random(), isOutage);
      report.killed++;
      nextAt = Date.now() + least + random() * (most - least);
      progress(`${report.killed} killed, ${unfinished.length} of ${tasks.length} tasks unfinished`);
    }
    await Bun.sleep(LOOK_EVERY_MS);
  }
  await scene.stopWorkers();
  if (!report.isRestShown) report.faults.push("the node did not say that its worker rests");
  for (const [i, task] of tasks.entries())
    await checkTask(task, must(plans[i], "each task has a plan"), signedInAt, scene, report);
  checkRest(scene, before, report);
  await scene.hub.stop();
  checkSecrets(scene, report);
  return report;
}

async function checkTask(
  task: Task,
  plan: Pick<Cast["kinds"][number], "status" | "fields">,
  signedInAt: number,
  scene: Scene,
  report: Report,
): Promise<void> {
  const { task_id, title, status, result, failure, review } = task;
  report[status === "completed" ? "completed" : "failed"]++;
  const fault = (what: string): number => report.faults.push(`${title} (${task_id}): ${what}`);
  if (status !== plan.status) fault(`${status}: ${JSON.stringify(failure)}`);
  if (status === "failed" && !failure?.message) fault("failed without a reason");
  if (plan.fields?.review !== undefined && review?.state !== "passed") fault(`review: ${review?.state}`);
  const { body } = await scene.hub.get(`/events?since=0&task_id=${task_id}&kind=task.attempt_failed`);
  for (const { node_id, at } of listOf(body["events"]))
    if (node_id === "w0" && Date.parse(String(at)) < signedInAt) fault("the outage cost an attempt");
  const { files } = await scene.client.files.list({ task_id });
  const patches = files.filter(({ name }) => name === "changes.patch");
  const output: Readonly<Record<string, unknown>> = { ...Object(result?.["output"]) };
  // An attempt that was killed before it had changed anything, or with its worker, may have been the last.
  if (Number(output["commits"]) > 1) report.ownCommits++;
  const hasSaved = failure?.kind === "stalled" || failure?.message?.includes("not all work") === true;
  const hasChanges = status === "completed" ? Number(output["files"]) > 0 : hasSaved;
  if (patches.length !== (hasChanges ? 1 : 0) && (hasChanges || status === "completed"))
    return void fault(`${patches.length} patches; ${JSON.stringify(failure)}`);
  const [patch] = patches;
  if (!patch) return;
  const { branch, base } = patch.metadata;
  if (status === "completed" && branch !== output["branch"]) fault(`a patch of ${String(branch)}`);
  const path = scene.dir.join("patch");
  await Bun.write(path, await scene.client.files.download({ file_id: patch.file_id }));
  if (readFileSync(path, "utf8").includes(BAD)) fault("a reviewer has passed it");
  const index = { GIT_INDEX_FILE: scene.dir.join("index") };
  try {
    scene.gitWith(index, "read-tree", String(base));
    scene.gitWith(index, "apply", "--cached", path);
    if (scene.gitWith(index, "write-tree") !== scene.git("rev-parse", `${String(branch)}^{tree}`))
      fault("the patch does not make the branch");
    report.patches++;
  } catch (error) {
    fault(String(error));
  }
}

/** The user's checkout, the repository, and what must be gone. */
function checkRest(scene: Scene, before: string, { faults }: Report): void {
  const now = contentOf(scene).split("\n");
  const then = new Set(before.split("\n"));
  for (const line of now.filter((row) => !then.has(row))) faults.push(`the checkout has changed: ${line}`);
  if (now.length < then.size) faults.push(`${then.size - now.length} files of the checkout are gone`);
  const worktrees = scene.git("worktree", "list").split("\n");
  for (const line of worktrees.slice(1)) faults.push(`left: ${line}`);
  const state = scene.dir.join("state/luxhub-agents");
  for (const node of readdirSync(state))
    for (const name of readdirSync(join(state, node))) {
      // Only the session of a task that has not ended stays, and all have: another worker has ended it.
      if (existsSync(join(state, node, name, "work"))) faults.push(`left: ${node}/${name}/work`);
    }
  for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name)))
    try {
      const cwd = readFileSync(`/proc/${pid}/environ`, "utf8");
      if (cwd.includes(`DIR=${scene.dir.path}\0`))
        faults.push(`left: process ${pid} ${readFileSync(`/proc/${pid}/cmdline`, "utf8")}`);
    } catch {
      // It has ended.
    }
  const check = scene.git("fsck", "--no-dangling", "--no-progress");
  if (check !== "") faults.push(`git fsck: ${check}`);
}

function checkSecrets(scene: Scene, { faults }: Report): void {
  const look = (where: string, bytes: Buffer): void => {
    for (const mark of MARKS) if (bytes.includes(mark)) faults.push(`a secret (${mark}) is in ${where}`);
  };
  look("the logs of the workers", Buffer.from(scene.logs.join("\n")));
  for (const dir of [scene.data.path, scene.dir.join("state")])
    for (const path of readdirSync(dir, { recursive: true, encoding: "utf8" }))
      if (statSync(join(dir, path)).isFile()) look(path, readFileSync(join(dir, path)));
  for (const line of scene.logs.filter((text) => text.startsWith("ENDED"))) faults.push(line);
}

export function figuresOf({
  faults,
  killed,
  completed,
  failed,
  patches,
  ownCommits,
}: Report): readonly Figure[] {
  const told = (what: string, value: string): Figure => ({ what, value, goal: "", held: true });
  return [
    told("Workers and agents killed", String(killed)),
    told("Tasks completed, and failed with a reason", `${completed}, ${failed}`),
    told("Patches that make the branch of their base", String(patches)),
    told("Tasks with several commits", String(ownCommits)),
    {
      what: "Faults: ends, patches, the user's checkout, what is left, attempts of an outage, secrets",
      value: String(faults.length),
      goal: "0",
      held: faults.length === 0,
    },
  ];
}

export const repositorySection: Section = {
  name: "repository",
  title: "Coding agents with a repository",
  limitMs: 15 * 60_000,
  async run(scale, seed, progress) {
    const report = await runRepository(scale, seed, progress);
    for (const fault of report.faults.slice(0, FOUND_MAX)) progress(fault);
    return figuresOf(report);
  },
};

export const codingAgentsSection: Section = {
  name: "coding-agents",
  title: "Coding agents with a repository: the programs of four agents",
  limitMs: 40 * 60_000,
  run: (scale, seed, progress) => playScene("repository-agents.ts", [String(scale), String(seed)], progress),
};
